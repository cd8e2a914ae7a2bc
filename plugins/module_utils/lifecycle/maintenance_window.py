# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times at which work on nodes is welcome: "22:00-05:00 UTC", "Sat,Sun 08:00-20:00 Europe/Berlin", "always". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ALWAYS = "always"
_HINT = 'such as "22:00-05:00 UTC" or "Sat,Sun 08:00-20:00 Europe/Berlin", or "always"'
_FORM = re.compile(
    r"(?:(?P<days>[A-Za-z]{3}(?:[,-][A-Za-z]{3})*) +)?(?P<from>\d\d?:\d\d) *- *(?P<to>\d\d?:\d\d)(?: +(?P<zone>\S+))?"
)


@dataclass(frozen=True)
class Window:
    """`days`: numbers, Monday is 0, of the day it begins on; `begin`, `end`: minutes of the day, `end` may be the next
    day's."""

    days: frozenset[int]
    begin: int
    end: int
    zone: tzinfo

    def open(self, now: datetime) -> bool:
        local = now.astimezone(self.zone)
        minute = local.hour * 60 + local.minute
        if self.begin < self.end:
            return local.weekday() in self.days and self.begin <= minute < self.end
        yesterday = (local - timedelta(days=1)).weekday()
        return (local.weekday() in self.days and minute >= self.begin) or (yesterday in self.days and minute < self.end)


def is_open(texts: Iterable[str], now: datetime) -> bool:
    """Whether any of the windows is open; `now` has a zone. Raises InvalidDocument with every problem."""
    given = list(texts)
    found, problems = [], []
    for number, text in enumerate(given):
        try:
            found.append(None if str(text).strip().lower() == ALWAYS else parse(str(text)))
        except InvalidDocument as error:
            problems += [
                Problem(each.code, each.message, path=f"window[{number}]", hint=each.hint) for each in error.problems
            ]
    if not given:
        problems.append(Problem("wrong-value", "is empty", path="window", hint=_HINT))
    if problems:
        raise InvalidDocument(problems)
    return any(each is None or each.open(now) for each in found)


def parse(text: str) -> Window:
    """Raises InvalidDocument."""
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise InvalidDocument(f"{text!r} is no window of time", hint=_HINT)
    begin, end = _minute(match["from"], text), _minute(match["to"], text)
    if begin == end:
        raise InvalidDocument(f"{text!r} begins when it ends", hint="always, or 00:00-24:00, for the whole day")
    return Window(_days(match["days"], text), begin % 1440, end, _zone(match["zone"] or "UTC", text))


def _minute(text: str, whole: str) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or hour * 60 + minute > 1440:
        raise InvalidDocument(f"{text} in {whole!r} is no time of the day", hint="00:00 to 24:00")
    return hour * 60 + minute


def _days(text: str | None, whole: str) -> frozenset[int]:
    if not text:
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.lower().split(","):
        ends = part.split("-")
        if len(ends) > 2 or not set(ends) <= set(DAYS):
            raise InvalidDocument(f"{part!r} in {whole!r} is no day", hint="such as Mon-Fri or Sat,Sun")
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        found |= {day % 7 for day in range(first, last + 1 if first <= last else last + 8)}
    return frozenset(found)


def _zone(name: str, whole: str) -> tzinfo:
    if name.upper() in ("UTC", "Z"):
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # of names that are none, or lead out of the zones' folder
        raise InvalidDocument(f"{name!r} in {whole!r} is no time zone", hint="such as UTC or Europe/Berlin") from error
