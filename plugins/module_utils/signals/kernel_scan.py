# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few lines of a big log that may matter, with their numbers. Bytes in pieces of any size; nothing is decoded.

Nearly all lines are of no interest, so they are never looked at one by one: each needle is searched over megabytes at
once, and newlines are counted between hits. What holds of a line never depends on where the pieces were cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.signals import nic

# in lower case; a line without any of these is dropped unseen
NEEDLES = (
    b"xid",
    b"fallen off",
    b"gpu at pci",
    b"the nvidia gpu",
    b"nvrm: loading",
    b"gpu reset executed",
    b"linux version ",
    b"-- boot ",
    b"-- reboot",
    b'"message":[',  # journald writes a message that is not UTF-8 as a list of numbers
    *(needle for pattern in nic.PATTERNS for needle in pattern.needles),
)
LINE_LIMIT = 64 * 1024  # the rest of a longer line is not read
PIECE = 4 * 1024 * 1024


class Scanner:
    """`feed` and `finish` give (number from 1, line without its end) of each line that may matter."""

    def __init__(self) -> None:
        self.lines = 0
        self._rest = b""  # the line that is not complete yet, up to the limit
        self._skipping = False  # the limit was passed: drop all until the line ends

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        for start in range(0, len(data), PIECE):
            yield from self._piece(data[start : start + PIECE])

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """The last line, where the log does not end with a newline."""
        rest, self._rest = self._rest, b""
        if rest:
            self._skipping = False
            yield from self._complete(rest + b"\n")

    def _piece(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return
        if self._skipping:
            head = data.index(b"\n") + 1
            whole, self._rest, self._skipping = self._rest + b"\n", b"", False
            yield from self._complete(whole)
            yield from self._complete(data[head:end])
        else:
            whole, self._rest = self._rest + data[:end], b""
            yield from self._complete(whole)
        self._keep(data[end:])

    def _keep(self, data: bytes) -> None:
        if self._skipping or not data:
            return
        self._rest += data
        if len(self._rest) > LINE_LIMIT:
            self._rest = self._rest[:LINE_LIMIT]
            self._skipping = True

    def _complete(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        """Of a block of complete lines."""
        folded = block.lower()
        starts: set[int] = set()
        for needle in NEEDLES:
            hit = folded.find(needle)
            while hit >= 0:
                starts.add(folded.rfind(b"\n", 0, hit) + 1)
                hit = folded.find(needle, folded.index(b"\n", hit))
        counted, position = self.lines, 0
        for start in sorted(starts):
            counted += block.count(b"\n", position, start)
            position = start
            stop = block.index(b"\n", start)
            line = block[start : min(stop, start + LINE_LIMIT)]
            if stop - start > LINE_LIMIT and not any(needle in line.lower() for needle in NEEDLES):
                continue  # the needle lies beyond the limit
            yield counted + 1, line.rstrip(b"\r")
        self.lines = counted + block.count(b"\n", position)
