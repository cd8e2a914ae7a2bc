# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a document given as data that no file could hold: they fit every schema, and cannot be stored. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem

LARGEST = 10**18


def faults(document: yamltree.Document) -> list[Problem]:
    """One problem for each of them: nan, infinity, numbers without end, texts that are no Unicode."""
    return [document.problem(path, "bad-value", what) for path, what in _found(document.data, ())]


def _found(value: object, path: tuple) -> Iterator[tuple[tuple, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no number that can be used"
    elif isinstance(value, int) and abs(value) > LARGEST:
        yield path, "is too large a number"
    elif isinstance(value, str) and any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in value):
        yield path, "holds what is no text"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _found(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _found(inner, (*path, index))
