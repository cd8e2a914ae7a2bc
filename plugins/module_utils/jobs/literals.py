# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which texts every line has that a regular expression fits: `connect to (\\S+) failed` needs `connect to `.

Looking for a text costs a hundredth of trying an expression, and nearly all lines of a log have none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LEAST = 4  # characters, digits not counted
_CLASSES = set("wWdDsSbBAZ")
_DIGITS = str.maketrans("", "", "0123456789")


def without_digits(text: str) -> str:
    return text.translate(_DIGITS)


def needed(pattern: str) -> list[str]:
    """Texts one of which is in every line that fits: the longest of each alternative at the top level, [] where one of
    them has none that is long enough."""
    found = [max(_runs(part), key=_weight, default="") for part in _alternatives(pattern)]
    return found if all(_weight(text) >= LEAST for text in found) else []


def any_of(texts: Iterable[str]) -> re.Pattern:
    """Finds any of the texts in bytes that have no digits. Common beginnings are looked at once, which is five times as
    fast as an expression that lists them."""
    tree: dict = {}
    for text in texts:
        node = tree
        for byte in without_digits(text).encode():
            node = node.setdefault(byte, {})
        node[None] = {}
    return re.compile(_expression(tree) if tree else b"(?!)")


def _expression(node: dict) -> bytes:
    if None in node:
        return b""
    parts = [re.escape(bytes([byte])) + _expression(rest) for byte, rest in sorted(node.items())]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"


def _weight(text: str) -> int:
    return len(without_digits(text))


def _alternatives(pattern: str) -> list[str]:
    parts, depth, start, index = [], 0, 0, 0
    while index < len(pattern):
        index, char = _next(pattern, index)
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            parts.append(pattern[start : index - 1])
            start = index
    return [*parts, pattern[start:]]


def _runs(part: str) -> list[str]:
    """The stretches of plain characters outside of groups."""
    runs, run, depth, index = [], "", 0, 0
    while index < len(part):
        before = index
        index, char = _next(part, index)
        plain = _plain(part[before:index])
        if char in "?*{" and depth == 0:
            run = run[:-1]  # the character before may be missing
        if depth == 0 and plain:
            run += plain
            continue
        runs.append(run)
        run = ""
        depth += (char == "(") - (char == ")")
        if char == "{":
            index = part.index("}", index) + 1
    return [*runs, run]


def _next(pattern: str, index: int) -> tuple[int, str]:
    """Where the element at index ends, and its sign: `[` for a set, a backslash for an escape."""
    char = pattern[index]
    if char == "\\":
        return index + 2, char
    if char == "[":
        end = index + 1
        if pattern[end : end + 1] == "^":
            end += 1
        if pattern[end : end + 1] == "]":
            end += 1
        while pattern[end] != "]":
            end += 2 if pattern[end] == "\\" else 1
        return end + 1, char
    return index + 1, char


def _plain(element: str) -> str:
    """The character an element stands for, "" where it stands for several or none."""
    if len(element) == 2 and element[0] == "\\":
        return "" if element[1] in _CLASSES or element[1].isdigit() else element[1]
    return "" if len(element) != 1 or element in ".^$*+?{}[]|()" else element
