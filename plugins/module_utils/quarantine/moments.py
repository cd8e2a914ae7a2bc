# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moments as microseconds since 1970 in UTC, and durations as seconds."""

from __future__ import annotations

import datetime
import functools
import re

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

SECOND = 1_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_ISO = re.compile(r"([0-8]\d{3}-\d\d-\d\dT\d\d:\d\d):(\d\d)(?:\.(\d{1,9}))?Z")


@functools.lru_cache(maxsize=65536)
def micros(text: str | None) -> int | None:
    """Of a time such as 2026-03-06T09:34:56.5Z. None for no time, or for what is none, as in the year 9999."""
    match = _ISO.fullmatch(text) if text else None
    if not match:
        return None
    try:
        minute = datetime.datetime.fromisoformat(f"{match[1]}:00+00:00")
    except ValueError:
        return None
    # a leap second is the first of the next minute
    return of(minute) + int(match[2]) * SECOND + int((match[3] or "").ljust(6, "0")[:6])


def of(moment: datetime.datetime) -> int:
    """Of a datetime; one without a zone is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


def moment(micros_: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=micros_)


def text(micros_: int) -> str:
    """As 2026-03-06T09:34:56Z, to the second."""
    return moment(micros_).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_up(micros_: int) -> str:
    """As `text`, but never earlier than the moment."""
    return text(-(-micros_ // SECOND) * SECOND)


def seconds(duration: str) -> int:
    """Of a duration such as 1h30m, which the schema has checked."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([dhms])", duration))


def duration(text: str, name: str) -> int:
    """Seconds of a duration that a user gave. Raises InvalidDocument."""
    if not re.fullmatch(r"([1-9]\d{0,5}[dhms])+", text):
        raise InvalidDocument(f"is {text!r}, which is no duration", path=name, hint="such as 90s, 10m, 1h or 1h30m")
    return seconds(text)


def spell(duration: int) -> str:
    """Seconds as 1h30m."""
    parts = []
    for unit, size in _UNITS.items():
        count, duration = divmod(duration, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
