# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Safetensors files: the header tells how long the file has to be."""

from __future__ import annotations

import json
import math
from typing import BinaryIO

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged

MOST_HEADER = 100_000_000  # bytes; the format's own bound
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


def tensors(file: BinaryIO, size: int) -> set[str]:
    """Names of the file's tensors. Raises `Damaged` unless the header is whole and the data as long as it says."""
    head = file.read(8)
    if size == 0:
        raise Damaged("is empty")
    if len(head) < 8:
        raise Damaged(f"breaks off: {size} bytes")
    length = int.from_bytes(head, "little")
    if head == b"version ":
        raise Damaged("is a pointer of git-lfs: the data was not fetched")
    if length == 0:
        raise Damaged("has an empty header: its data was never written")
    if length > MOST_HEADER:
        raise Damaged(f"is not a safetensors file: a header of {length} bytes")
    if length + 8 > size:
        raise Damaged(f"breaks off in its header: {size} bytes of {length + 8}")
    try:
        header = json.loads(_exactly(file, length))
    except (ValueError, RecursionError):
        raise Damaged("has a broken header") from None
    if not isinstance(header, dict):
        raise Damaged("has a broken header")
    header.pop("__metadata__", None)
    ranges = sorted(_range(name, entry) for name, entry in header.items())
    at = 0
    for begin, end, name in ranges:
        if begin != at:
            raise Damaged(f"has a gap or overlap in its data before {name}")
        at = end
    if at != size - 8 - length:
        raise Damaged(f"has {size} bytes, {8 + length + at} by its header")
    return set(header)


def _range(name: str, entry: object) -> tuple[int, int, str]:
    try:
        begin, end = entry["data_offsets"]
        shape = entry["shape"]
        bits = _BITS.get(entry["dtype"])
        if not 0 <= begin <= end or (bits and math.prod(shape) * bits != (end - begin) * 8):
            raise ValueError
        return begin, end, name
    except (TypeError, KeyError, ValueError):
        raise Damaged(f"has a broken header at {name}") from None


def _exactly(file: BinaryIO, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = file.read(length - len(data))
        if not part:
            raise Damaged("became shorter while it was read")
        data += part
    return bytes(data)
