# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A log in blocks of whole lines, so that what is rare can be looked for in many lines at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import streams
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

BLOCK = 1 << 18  # characters
LINE_LIMIT = 1 << 20  # of a line that never ends this much is read at a time

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def blocks(text: streams.Text) -> Iterator[str]:
    """Texts that end where a line ends, but for the last. Raises InvalidDocument for what is no log.

    A list's item is a line, with or without its end; an item of several lines is taken apart.
    """
    pieces: Iterable[str]
    if isinstance(text, (bytes, bytearray, memoryview)):
        pieces = _slices(bytes(text), b"\n")
    elif isinstance(text, str):
        pieces = _slices(text, "\n")
    else:
        pieces = _gathered(text)
    for piece in pieces:
        if "\x1b" in piece:
            piece = _ESCAPE.sub("", piece)
        if "\r" in piece:
            piece = piece.replace("\r\n", "\n")
        yield piece


def _slices(text: str | bytes, newline: str | bytes) -> Iterator[str]:
    start, size = 0, len(text)
    while start < size:
        end = min(start + BLOCK, size)
        if end < size:
            cut = text.rfind(newline, start, end) + 1  # type: ignore[arg-type]
            if not cut:
                cut = text.find(newline, end, start + LINE_LIMIT) + 1  # type: ignore[arg-type]
            end = cut or min(start + LINE_LIMIT, size)
        piece = text[start:end]
        yield piece if isinstance(piece, str) else piece.decode("utf-8", "replace")
        start = end


def _gathered(items: object) -> Iterator[str]:
    if isinstance(items, dict) or not isinstance(items, Iterable):
        raise InvalidDocument(
            f"the log is {type(items).__name__}, not a text", hint="a text, bytes, an open file, or a list of lines"
        )
    held: list[str] = []
    size = 0
    for number, item in enumerate(items, 1):
        if isinstance(item, (bytes, bytearray)):
            item = bytes(item).decode("utf-8", "replace")
        if not isinstance(item, str):
            raise InvalidDocument(
                f"item {number} of the log is {type(item).__name__}, not a line of text",
                hint="a text, bytes, an open file, or a list of lines",
            )
        held.append(item if item.endswith("\n") else item + "\n")
        size += len(item) + 1
        if size >= BLOCK:
            yield "".join(held)
            held, size = [], 0
    if held:
        yield "".join(held)
