# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers of a document given as data that are none: nan and inf fit every schema, and no file. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem


def faults(document: yamltree.Document) -> list[Problem]:
    """One problem for each of them."""
    return [
        document.problem(path, "bad-value", f"{value} is no number that can be used")
        for path, value in _endless(document.data, ())
    ]


def _endless(value: object, path: tuple) -> Iterator[tuple[tuple, float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _endless(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _endless(inner, (*path, index))
