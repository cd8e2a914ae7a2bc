# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations and quantities as Kubernetes writes them."""

from __future__ import annotations

import re

LONGEST = 366 * 24 * 3600  # seconds

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_SUFFIXES = {
    "m": 1e-3,
    "": 1,
    **{letter: 1000 ** (power + 1) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")},
}


def seconds(text: str) -> int:
    """Whole seconds of a duration such as 1h30m or 1.5h, which the schema has checked."""
    total = sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|h|m|s)", text))
    return int(min(total, 10.0**15))


def fault(text: str) -> str:
    """What is wrong with a duration as a limit of a run; "" for nothing."""
    if seconds(text) < 1:
        return "is shorter than a second"
    return "is longer than a year" if seconds(text) > LONGEST else ""


def quantity(value: str | float) -> float:
    """A quantity such as 8, 500m or 64Gi as a number; 0 for what is none."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)([A-Za-z]{0,2})", str(value).strip())
    if not match or match[2] not in _SUFFIXES:
        return 0
    return min(float(match[1]) * _SUFFIXES[match[2]], 1e18)


def text(seconds_: float) -> str:
    """As people say it: 45 s, 12 min, 3 h 20 min."""
    whole = round(seconds_)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{minutes} min" if not hours else f"{hours} h {minutes} min" if minutes else f"{hours} h"
