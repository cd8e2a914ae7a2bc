# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of torch.save: whole or broken off, by their zip directory, and the plain values in them."""

from __future__ import annotations

import struct
from typing import BinaryIO

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import pickles
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged, Unclear

LOCAL = b"PK\x03\x04"
_END = struct.Struct("<4s4H2IH")
_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQ2H2I4Q")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_OLD_FORM = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
MOST_DIRECTORY = 256 << 20
MOST_PICKLE = 64 << 20


def pickled(head: bytes) -> bool:
    """Whether a file that begins with `head` is one of plain pickles."""
    return head[:1] == b"\x80" and not head.startswith(_OLD_FORM[: len(head)])


def check(file: BinaryIO, size: int) -> None:
    """Raises `Damaged` when the file is not whole, `Unclear` when its form does not tell."""
    if size == 0:
        raise Damaged("is empty")
    head = _at(file, 0, 16)
    if head.startswith(LOCAL):
        directory(file, 0, size)
    elif head.startswith(_OLD_FORM):
        raise Unclear("has the form of torch.save before 1.6, which does not tell where it ends")
    elif not head.strip(b"\0"):
        raise Damaged("begins with zeros: its data was never written")
    else:
        raise Damaged("is not a file of torch.save")


def directory(file: BinaryIO, start: int, size: int) -> dict[str, tuple[int, int, int]]:
    """Members of the zip in `size` bytes from `start`: name to (offset of its header, bytes, method).

    Raises `Damaged` unless the zip's end is where the bytes end and all members lie in front of its directory.
    """
    if size < _END.size:
        raise Damaged(f"breaks off: {size} bytes")
    end_at = size - _END.size
    magic, disk, disk_dir, here, count, length, offset, comment = _END.unpack(_at(file, start + end_at, _END.size))
    if magic != b"PK\x05\x06" or comment or disk or disk_dir or here != count:
        raise Damaged("breaks off: the zip directory at its end is missing")
    if end_at >= _LOCATOR.size:
        magic, _disk, at, _disks = _LOCATOR.unpack(_at(file, start + end_at - _LOCATOR.size, _LOCATOR.size))
        if magic == b"PK\x06\x07":
            end_at = at
            if at + _END64.size > size:
                raise Damaged("has a zip directory that points past its end")
            found = _END64.unpack(_at(file, start + at, _END64.size))
            if found[0] != b"PK\x06\x06":
                raise Damaged("has a broken zip directory")
            count, length, offset = found[7], found[8], found[9]
    if offset + length != end_at or length < count * _ENTRY.size:
        raise Damaged("has a zip directory that does not fit its length")
    if length > MOST_DIRECTORY:
        raise Unclear(f"has a zip directory of {length} bytes, more than are read")
    members = _members(_at(file, start + offset, length), count)
    for name, (at, stored, _dummy) in members.items():
        if at + _LOCAL.size + stored > offset:
            raise Damaged(f"lacks the data of {name}")
    ordered = sorted(place[0] for place in members.values())
    for at in {*ordered[:1], *ordered[-1:]}:
        if _at(file, start + at, 4) != LOCAL:
            raise Damaged("has no data where its zip directory says")
    return members


def values(file: BinaryIO, size: int) -> object:
    """What torch.save was given, without tensors: see `pickles.read`. Raises like `check`."""
    members = directory(file, 0, size)
    name = next((name for name in members if name.endswith("/data.pkl") or name == "data.pkl"), None)
    if name is None:
        raise Damaged("has no data.pkl")
    at, stored, method = members[name]
    if method != 0 or stored > MOST_PICKLE:
        raise Unclear("holds its values in a form that is not read")
    header = _LOCAL.unpack(_at(file, at, _LOCAL.size))
    data = _at(file, at + _LOCAL.size + header[-2] + header[-1], stored)
    return pickles.read(data)[0]


def _members(data: bytes, count: int) -> dict[str, tuple[int, int, int]]:
    members = {}
    at = 0
    for _dummy in range(count):
        if at + _ENTRY.size > len(data):
            raise Damaged("has a broken zip directory")
        entry = _ENTRY.unpack_from(data, at)
        if entry[0] != b"PK\x01\x02":
            raise Damaged("has a broken zip directory")
        method, stored, full, offset = entry[4], entry[8], entry[9], entry[16]
        name_at = at + _ENTRY.size
        extra_at = name_at + entry[10]
        name = data[name_at:extra_at].decode("utf-8", "replace")
        if 0xFFFFFFFF in (stored, full, offset):
            stored, offset = _wide(data[extra_at : extra_at + entry[11]], stored, full, offset)
        members[name] = (offset, stored, method)
        at = extra_at + entry[11] + entry[12]
    return members


def _wide(extra: bytes, stored: int, full: int, offset: int) -> tuple[int, int]:
    """Sizes and offset of four gibibytes and more, which stand in an extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            given = [int.from_bytes(extra[i : i + 8], "little") for i in range(at + 4, at + 4 + length - 7, 8)]
            try:
                if full == 0xFFFFFFFF:
                    given.pop(0)
                if stored == 0xFFFFFFFF:
                    stored = given.pop(0)
                if offset == 0xFFFFFFFF:
                    offset = given.pop(0)
            except IndexError:
                break
            return stored, offset
        at += 4 + length
    raise Damaged("has a broken zip directory")


def _at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    parts = []
    while length > 0:
        part = file.read(length)
        if not part:
            break
        parts.append(part)
        length -= len(part)
    data = b"".join(parts)
    if length and (parts or offset):
        raise Damaged("became shorter while it was read") if length > 16 else Damaged("breaks off")
    return data
