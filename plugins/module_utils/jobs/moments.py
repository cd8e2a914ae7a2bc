# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times such as 2026-03-06T09:34:56Z as seconds since 1970 in UTC, and durations such as 1h30m as seconds."""

from __future__ import annotations

import datetime
import math
import re

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_LAST = 253402300799


def of(time: str | datetime.datetime | None) -> float | None:
    """None for no time, or for what is none."""
    if isinstance(time, str):
        try:
            time = datetime.datetime.fromisoformat(time)
        except ValueError:
            return None
    if not isinstance(time, datetime.datetime):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return time.timestamp()


def text(seconds: float) -> str:
    """To the second, never earlier than the moment; nothing is later than the year 9999."""
    moment = datetime.datetime.fromtimestamp(min(-(-seconds // 1), _LAST), datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def span(duration: str) -> int:
    """Seconds of a duration that a schema has checked."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([dhms])", duration))


def spell(seconds: float) -> str:
    """As 1h30m."""
    if not math.isfinite(seconds):
        return "an unknown time"
    parts, left = [], int(seconds)
    for unit, size in _UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
