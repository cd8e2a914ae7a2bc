# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON documents inside an output that also holds other text, whole or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_BRACES = 64  # opening braces tried before a document's key
_TRIES = 2000  # places tried in one text, so that nonsense made of keys and braces comes to an end
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\],]', re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)


def documents(text: str, keys: Iterable[str]) -> list[tuple[dict, int, int, bool]]:
    """[(document, start, end, whole)] of every object that has one of `keys` at its top level, in the text's order.

    A document that breaks off is closed after its last complete value; `whole` is False then.
    """
    mark = re.compile(r'"(' + "|".join(map(re.escape, keys)) + r')"\s*:')
    found: list[tuple[dict, int, int, bool]] = []
    after = tries = 0
    while tries < _TRIES and (match := mark.search(text, after)):
        starts = _starts(text, match.start(), after)
        tries += 1 + len(starts)
        document = _around(text, match.start(), starts, match[1])
        if document is None:
            after = match.end()
            continue
        found.append(document)
        after = max(document[2], match.end())
    return found


def _starts(text: str, position: int, floor: int) -> list[int]:
    """The opening braces before a key, the nearest first."""
    starts: list[int] = []
    start = text.rfind("{", floor, position)
    while start >= 0 and len(starts) < _BRACES:
        starts.append(start)
        start = text.rfind("{", floor, start)
    return starts


def _around(text: str, position: int, starts: list[int], key: str) -> tuple[dict, int, int, bool] | None:
    for start in starts:
        try:
            document, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if end > position and isinstance(document, dict) and key in document:
            return document, start, end, True
    for start in starts[:4]:
        document = _closed(text, start)
        if isinstance(document, dict) and key in document:
            return document, start, len(text), False
    return None


def _closed(text: str, start: int) -> object:
    """The document cut after its last complete value and closed there; None where there is none."""
    stack: list[str] = []
    cut, closing = 0, ""
    for token in _TOKEN.finditer(text, start):
        sign = token[0]
        if sign in "{[":
            stack.append("}" if sign == "{" else "]")
            if len(stack) > 200:
                break
        elif sign in "}]":
            if not stack or stack.pop() != sign:
                break
            cut, closing = token.end(), "".join(reversed(stack))
        elif sign == ",":
            cut, closing = token.start(), "".join(reversed(stack))
        if not stack:
            break
    if not cut:
        return None
    try:
        return json.loads(text[start:cut] + closing, strict=False)
    except (ValueError, RecursionError):
        return None
