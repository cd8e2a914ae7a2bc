# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers in the info lines of a diagnostic: bandwidths, latencies, temperatures, stress levels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import number

_GPU = re.compile(r"^\W*(?:GPU\s?\d+[:\s]+)+", re.IGNORECASE)
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_PAIR = re.compile(rf"([A-Za-z][A-Za-z ()/_-]{{1,60}}?):\s*{_NUMBER}\s*([A-Za-z%][A-Za-z/%]*)?", re.IGNORECASE)
_SPECIAL = (
    ("relative_stress_level", "", re.compile(rf"relative stress level:?\s+{_NUMBER}", re.IGNORECASE)),
    ("gflops", "Gflop/s", re.compile(rf"approximately {_NUMBER}\s*gigaflops", re.IGNORECASE)),
    ("allocated", "B", re.compile(rf"^Allocated {_NUMBER} bytes", re.IGNORECASE)),
)
# where DCGM has no value it prints one of these, and for the reason a number a little above
_BLANKS = (float(0x7FFFFFF0), 140737488355328.0, float(0x7FFFFFFFFFFFFFF0))


def values(info: str) -> Iterator[tuple[str, float, str]]:
    """(name, value, unit) of each number an info line gives a name; blanks are left out."""
    text = _GPU.sub("", info)
    for name, unit, pattern in _SPECIAL:
        if match := pattern.search(text):
            value = number(match[1])
            if value is not None and not blank(value):
                yield name, value, unit
            return
    for match in _PAIR.finditer(text):
        value = number(match[2])
        name = re.sub(r"[^a-z0-9]+", "_", match[1].lower()).strip("_")
        if value is not None and not blank(value) and name:
            yield name, value, match[3] or ""


def blank(value: float) -> bool:
    return any(start <= value < start + 16 for start in _BLANKS[:2]) or value >= _BLANKS[2]
