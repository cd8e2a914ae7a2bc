# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of jobs as lines, whatever they come as, and in bounded memory.

    for batch in batches(open("rank-0.log.gz", "rb")):
        for raw in batch: ...                   # bytes without the end of the line

A line that starts with MORE goes on with the one before: a progress bar that went back to the start of its line.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.signatures import Table

CHUNK = 1 << 18
HEAD, TAIL = 6144, 2048  # bytes kept of a line that is longer than both
MORE = b"\0"
# what gives a rank, the surest first: the program, its launcher, its place in a group
RANKS = ("rank", "task", "member")
_GZIP = b"\x1f\x8b"
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_ISO = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[T_ ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?\d*(?: ?Z|([+-])(\d\d):?(\d\d))?")
_GLOG = re.compile(rb"(\d{1,2}?)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?\d*")
_SYSLOG = re.compile(rb"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)")
_MONTHS = {name: number for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_WRAPPED = re.compile(rb'^\{"log":"(?P<log>(?:[^"\\]|\\.)*)"(?:.*?"time":"(?P<time>[^"]+)")?')


def whole(digits: str | bytes) -> int:
    """The number that they are. Nothing in a log needs more of them, and Python takes no more than some thousands."""
    return int(digits[:18])


@dataclass(slots=True)
class Line:
    """A line without what stands before it. `stamp` is the time as it stands there."""

    text: str
    rank: int | None = None
    local: int | None = None
    host: str = ""
    stamp: bytes = b""
    sure: bool = False  # the program says its rank itself


def batches(content: object) -> Iterator[list[bytes]]:
    """The lines of a text, of bytes, of something with read(), or of an iterable of lines; gzip is unpacked."""
    pieces = iter(_pieces(content))
    first = next(pieces, b"")
    pieces = _unpacked(first, pieces) if first.startswith(_GZIP) else _chain(first, pieces)
    rest = b""
    for piece in pieces:
        if b"\r" in piece:
            # a carriage return at the very end may be half of a line's end
            piece, held = (piece[:-1], b"\r") if piece.endswith(b"\r") else (piece, b"")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n" + MORE)
        else:
            held = b""
        if rest.endswith(b"\r"):
            rest = rest[:-1] + (b"" if piece.startswith(b"\n") else b"\n" + MORE)
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > HEAD + TAIL:
            rest = _cut(rest)
        rest += held
        yield [line if len(line) <= HEAD + TAIL else _cut(line) for line in lines]
    rest = rest.rstrip(b"\r")
    if rest:
        yield [rest]


def _pieces(content: object) -> Iterator[bytes]:
    if isinstance(content, str):
        content = content.encode("utf-8", "replace")
    if isinstance(content, (bytes, bytearray, memoryview)):
        view = memoryview(content)
        for start in range(0, len(view), CHUNK):
            yield bytes(view[start : start + CHUNK])
    elif hasattr(content, "read"):
        while piece := content.read(CHUNK):
            yield _bytes(piece)
    elif isinstance(content, Iterable):
        yield from _gathered(content)
    else:
        raise TypeError(f"a log is a text, bytes, a file or lines, not {type(content).__name__}")


def _gathered(lines: Iterable) -> Iterator[bytes]:
    """Lines, or pieces of any size as a connection gives them, in pieces of a handy size.

    Items of a list are lines. Of anything else the first item tells: with an end of line in it, they are pieces.
    """
    held, size, whole = [], 0, None
    for line in lines:
        line = _bytes(line)
        if whole is None:
            pieces = not isinstance(lines, (list, tuple)) and b"\n" in line
            whole = not pieces and not line.startswith(_GZIP)  # gzip comes apart anywhere, and has no lines
        held.append(line + b"\n" if whole and not line.endswith(b"\n") else line)
        size += len(line)
        if size >= CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _bytes(piece: object) -> bytes:
    if isinstance(piece, str):
        return piece.encode("utf-8", "replace")
    if isinstance(piece, (bytes, bytearray, memoryview)):
        return bytes(piece)
    raise TypeError(f"lines of a log are texts or bytes, not {type(piece).__name__}")


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _unpacked(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """gzip, also several members in a row; what is damaged ends it."""
    decoder = zlib.decompressobj(wbits=31)
    for piece in _chain(first, rest):
        while piece:
            try:
                yield decoder.decompress(piece, 4 * CHUNK)
            except zlib.error:
                return
            piece = decoder.unconsumed_tail
            if decoder.eof:
                piece, decoder = decoder.unused_data, zlib.decompressobj(wbits=31)
    try:
        yield decoder.flush()
    except zlib.error:
        return


def _cut(line: bytes) -> bytes:
    return line[:HEAD] + b" ... " + line[-TAIL:]


def plain(raw: bytes) -> bytes:
    """Without colours and other signs for terminals, and out of the container runtime's JSON."""
    if raw.startswith(b'{"log":"'):
        found = _WRAPPED.match(raw)
        if found:
            text = (
                found["log"].replace(b'\\"', b'"').replace(b"\\n", b"").replace(b"\\t", b"\t").replace(b"\\\\", b"\\")
            )
            raw = (found["time"] or b"") + b" " * bool(found["time"]) + text
    if b"\x1b" in raw:
        raw = _ANSI.sub(b"", raw)
    return raw.lstrip(b"\0")


def stripped(table: Table, raw: bytes) -> Line:
    """The line without the marks of launchers and loggers before it."""
    position, line = 0, Line("")
    caught: dict[str, bytes] = {}
    for _mark in range(8) if table.prefix else ():
        found = table.prefix.match(raw, position)
        if not found or found.end() == position:
            break
        position = found.end()
        for name, indexes in table.prefix_groups.items():
            for index in indexes:
                if found[index] is not None:
                    caught.setdefault(name, found[index])
    for name in RANKS:
        if line.rank is None and len(caught.get(name, b"")) in range(1, 10):
            line.rank, line.sure = whole(caught[name]), name == RANKS[0]
    if len(caught.get("local", b"")) in range(1, 10):
        line.local = whole(caught["local"])
    line.host = caught.get("host", b"").decode("ascii", "replace")
    line.stamp = caught.get("time", b"")
    line.text = raw[position:].decode("utf-8", "replace")
    return line


def moment(stamp: bytes, year: int) -> float | None:
    """A stamp as seconds since 1970, UTC where it names no zone; the year for stamps without one. None for others."""
    try:
        found = _ISO.match(stamp)
        if found:
            numbers = [whole(found[index]) for index in range(1, 7)]
            value = datetime(*numbers, tzinfo=UTC).timestamp() + _fraction(found[7])
            if not found[8]:
                return value
            shift = whole(found[9]) * 3600 + whole(found[10]) * 60
            return value - (shift if found[8] == b"+" else -shift)
        found = _GLOG.fullmatch(stamp)
        if found:
            numbers = [whole(found[index]) for index in range(1, 6)]
            return datetime(year, *numbers, tzinfo=UTC).timestamp() + _fraction(found[6])
        found = _SYSLOG.match(stamp)
        if found:
            numbers = [whole(found[index]) for index in range(2, 6)]
            return datetime(year, _MONTHS[found[1]], *numbers, tzinfo=UTC).timestamp()
    except (ValueError, KeyError, OverflowError):
        return None
    return None


def _fraction(digits: bytes | None) -> float:
    return float(b"0." + digits) if digits else 0.0
