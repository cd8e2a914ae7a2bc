# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the fields of a step line lie. A log's step lines are alike: the first one tells how to read the rest quickly."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import training_fields
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_fields import STEP_TIME

_HEAD = re.compile(r"iteration[:\s]*(\d{1,12})\s*/\s*(\d{1,12})\s*(?=\||$)")
_KEYS: dict[str, tuple[int, float] | None] = {}


def known(key: str) -> tuple[int, float] | None:
    """`training_fields.field`, which costs more than to look it up."""
    if key not in _KEYS:
        if len(_KEYS) > 1000:
            _KEYS.clear()
        _KEYS[key] = training_fields.field(key) if len(key) < 100 else None
    return _KEYS[key]


class Layout:
    """`match(line, place)` gives (step, total, *texts of the fields) of a line that lies like the first one."""

    def __init__(self, parts: list[str]):
        pattern = [r"iteration[:\s]*(\d{1,12})\s*/\s*(\d{1,12})\s*"]
        self.fields: list[tuple[int, float]] = []
        for part in parts[1:]:
            key, colon, _text = part.partition(":")
            field = known(key) if colon else None
            if field:
                self.fields.append(field)
                pattern.append(re.escape(key) + r":([^|]*)")
            else:
                pattern.append(r"[^|]*")
        self.match = re.compile(r"\|".join(pattern) + r"\Z").match
        self.timed = any(kind == STEP_TIME for kind, _factor in self.fields)

    def columns(self, fields: list[tuple[str, ...]]) -> dict[int, list]:
        """{field of training_fields: [number or None of each line]} of the texts of each field."""
        columns: dict[int, list] = {}
        for (kind, factor), texts in zip(self.fields, fields, strict=True):
            try:
                numbers: list = list(map(float, texts))
            except ValueError:
                numbers = _suffixed(texts, kind)
            columns[kind] = numbers if factor == 1.0 else [None if item is None else item * factor for item in numbers]
        return columns


def _suffixed(texts: tuple[str, ...], kind: int) -> list:
    """Of values like 4.71K; most columns have the same letter in all lines."""
    bare = [text.strip() for text in texts]
    one = training_fields.value(f"1{bare[0][-1:]}", kind)
    if one is not None and bare[0][-1:].isalpha() and {text[-1:] for text in bare} == {bare[0][-1:]}:
        try:
            return [float(text[:-1]) * one for text in bare]
        except ValueError:
            pass
    return [training_fields.value(text, kind) for text in texts]


def head(line: str, place: int) -> tuple[int, int, int] | None:
    """(step, total, where the fields begin) at "iteration" in a line."""
    match = _HEAD.match(line, place)
    return (int(match[1]), int(match[2]), match.end()) if match else None


def merge(values: list, parts: list[str]) -> bool:
    """Takes over the fields that stand in parts of a line; whether there were any, of use here or not."""
    found = False
    for part in parts:
        key, colon, text = part.partition(":")
        field = known(key) if colon else None
        found = found or bool(colon)
        if field and (number := training_fields.value(text, field[0])) is not None:
            values[field[0]] = number * field[1]
    return found
