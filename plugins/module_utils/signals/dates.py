# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times as APIs and their clients write them, as events hold them: `2026-03-06T09:34:56Z`, in UTC."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import timestamps

_MAIL = re.compile(  # Thu, 1 Nov 2018 22:00:00 GMT; 21 Jan 2019 09:00:43 GMT; Thu, 30 Oct 2025 19:26:44 -0400
    r"(?:[A-Za-z]{2,9}\.?,?\s+)?(\d{1,2})[ -]([A-Za-z]{3,9})\.?[ -](\d{4})\s+"
    r"(\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?:\s+\(?[A-Z]{1,5}\)?)?"
)
_GO = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) ?([+-]\d{4})(?: [A-Z+-][A-Z0-9+-]{0,5})?(?: m=\S+)?")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")


def utc(value: object) -> str | None:
    """Of ISO 8601, mail dates, Go's dates, seconds or milliseconds since 1970, {seconds, nanos} and {$date: ...}.

    No zone is UTC. None for what cannot be read, and for the zero of a clock that was never set.
    """
    found = micros(value)
    return timestamps.utc(found) if found is not None and found > 0 else None


def received(value: object) -> str | None:
    """What a caller says about when something came in; None for none. Raises InvalidDocument for what is no time."""
    if value is None:
        return None
    found = utc(value)
    if found is None:
        raise InvalidDocument(
            f"received is {value!r}, which is no time", path="received", hint="such as 2026-03-06T09:34:56Z"
        )
    return found


def micros(value: object) -> int | None:
    """Microseconds since 1970; None for what cannot be read."""
    if isinstance(value, str):
        return _text(value.strip()) if len(value) <= 64 else None
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _epoch(value)
    if isinstance(value, Mapping):
        for key in ("$date", "$numberLong"):
            if key in value:
                return None if isinstance(value[key], Mapping) and key in value[key] else micros(value[key])
        seconds, nanos = _whole(value.get("seconds")), _whole(value.get("nanos") or value.get("nanoseconds") or 0)
        if seconds is not None and nanos is not None and abs(seconds) < 10**12:
            return seconds * timestamps.SECOND + nanos // 1000
    return None


@functools.lru_cache(maxsize=4096)
def _text(text: str) -> int | None:
    found = timestamps.iso(text)
    if found is not None:
        return found
    go = _GO.fullmatch(text)
    if go:
        return timestamps.iso(go[1] + go[2])
    mail = _MAIL.fullmatch(text)
    if mail:
        day, month, year, clock, zone = mail.groups()
        east = timestamps.offset("Z" if zone in (None, "GMT") else zone)
        return timestamps.written(month, day, clock, year, None, east or 0)
    return _epoch(float(text)) if _NUMBER.fullmatch(text) else None


def _epoch(number: float) -> int | None:
    if not math.isfinite(number) or abs(number) > 1e18:
        return None
    size = abs(number)
    unit = 1 if size < 1e11 else 1_000 if size < 1e14 else 1_000_000  # seconds, milliseconds, microseconds
    return int(number * timestamps.SECOND / unit)


def _whole(value: object) -> int | None:
    if isinstance(value, Mapping):
        value = value.get("$numberLong", value.get("low"))
    if isinstance(value, bool):
        return None
    try:
        return int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
