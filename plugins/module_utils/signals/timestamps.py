# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of logs, as microseconds since 1970 in UTC. What cannot be read is None, never a guess."""

from __future__ import annotations

import calendar
import datetime
import functools
import re

SECOND = 1_000_000
DAY = 86_400 * SECOND

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?)?\s?(Z|z|UTC|[+-]\d\d:?\d\d|[+-]\d\d)?"
)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")

# Names of months, short as logs print them, in languages of Europe; dots and case do not count.
_NAMES = {
    1: "jan january jän jänner januar janv janvier ene enero gen gennaio gener janeiro januari sty led tammi янв",
    2: "feb february februar févr février febrero febbraio febr fev fevereiro februari lut úno helmi фев",
    3: "mar march mär märz mrz mars marzo març março maart mrt bře maalis мар",
    4: "apr april avr avril abr abril aprile kwi dub huhti апр",
    5: "may mai mayo mag maggio maig maio mei maj kvě touko мая май",
    6: "jun june juni juin junio giu giugno juny junho cze čen kesä июн",
    7: "jul july juli juil juillet julio lug luglio juliol julho lip čec heinä июл",
    8: "aug august août aou ago agosto agost augusti augustus sie srp elo авг",
    9: "sep sept september septembre septiembre set settembre setembre setembro wrz zář syys сен",
    10: "oct october okt oktober octobre octubre ott ottobre out outubro paź říj loka окт",
    11: "nov november novembre noviembre novembro lis marras ноя",
    12: "dec december dez dezember déc décembre dic diciembre dicembre des desembre dezembro gru pro joulu дек",
}
_MONTHS = {name: number for number, names in _NAMES.items() for name in names.split()}


def utc(micros: int | None) -> str | None:
    """As `2026-03-06T09:34:56.5Z`; None for None and for times outside the years 1 to 9999."""
    if micros is None:
        return None
    seconds, fraction = divmod(micros, SECOND)
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{moment.isoformat()}{tail}Z"


@functools.lru_cache(maxsize=4096)
def iso(text: str, east: int = 0) -> int | None:
    """An ISO 8601 date, with or without time. `east` (seconds east of UTC) holds where the text names no zone."""
    match = _ISO.fullmatch(text.strip())
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if zone is not None:
        east = _zone(zone)
    clock = (int(hour or 0), int(minute or 0), int(second or 0))
    return _join(int(year), int(month), int(day), clock, fraction, east)


def zoned(text: str) -> bool:
    """Whether the text itself says in which zone it counts."""
    match = _ISO.fullmatch(text.strip())
    return bool(match and match[8])


@functools.lru_cache(maxsize=4096)
def written(month: str, day: str, clock: str, year: str | None, received: int | None, east: int = 0) -> int | None:
    """A date with the month's name. Without a year, the latest one that is not after `received` by more than a day."""
    number, time = _month(month), _CLOCK.fullmatch(clock)
    if not number or not time:
        return None
    hms, fraction = (int(time[1]), int(time[2]), int(time[3])), time[4]
    if year is not None:
        return _join(int(year), number, int(day), hms, fraction, east)
    if received is None:
        return None
    now = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=received // SECOND)
    # 29 February may lie up to eight years back
    for candidate in range(now.year + 1, now.year - 9, -1):
        moment = _join(candidate, number, int(day), hms, fraction, east)
        if moment is not None and moment <= received + DAY:
            return moment
    return None


def offset(text: str) -> int | None:
    """Seconds east of UTC of a zone written as `+02:00`, `-0700` or `Z`."""
    return _zone(text) if re.fullmatch(r"Z|z|UTC|[+-]\d\d(?::?\d\d)?", text) else None


def kernel(text: str) -> int | None:
    """Seconds since boot, such as `171167.620236`, as microseconds."""
    whole, _point, fraction = text.partition(".")
    return int(whole) * SECOND + int((fraction + "000000")[:6]) if len(whole) <= 12 else None


def _month(name: str) -> int | None:
    name = name.casefold().rstrip(".")
    if name.endswith("月") and name[:-1].isdecimal():
        number = int(name[:-1])
        return number if 1 <= number <= 12 else None
    return _MONTHS.get(name)


def _zone(text: str) -> int:
    if text[0] not in "+-":
        return 0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
    return -seconds if text[0] == "-" else seconds


def _join(year: int, month: int, day: int, clock: tuple[int, int, int], fraction: str | None, east: int) -> int | None:
    hour, minute, second = clock
    if not (1 <= month <= 12 and 1 <= year <= 9999 and hour < 24 and minute < 60 and second <= 60):
        return None
    if not 1 <= day <= calendar.monthrange(year, month)[1]:
        return None
    seconds = calendar.timegm((year, month, day, hour, minute, second)) - east
    return seconds * SECOND + int(((fraction or "") + "000000")[:6])
