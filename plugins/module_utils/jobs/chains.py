# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attempts of one piece of work, in their order. Pure.

A restart makes a new object under the same name, and so does a person who submits again: only the uid that an attempt
names as its previous one tells them apart.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments

SECOND = 1000  # times are whole milliseconds, so that sums are exact
SLACK = SECOND  # API objects have times to the second, cut off


def chains(attempts: Iterable[Mapping]) -> list[list[Mapping]]:
    """Each chain from its first attempt to its last. Of two records with one key the later one in the list counts."""
    found = list({attempt["key"]: attempt for attempt in attempts}.values())
    before = {attempt["job"]["uid"]: attempt.get("previous") or "" for attempt in found}
    roots: dict[str, str] = {}
    made: dict[str, list[Mapping]] = {}
    for attempt in found:
        made.setdefault(_root(attempt["job"]["uid"], before, roots), []).append(attempt)
    for chain in made.values():
        chain.sort(key=lambda each: (each["number"], millis(each.get("startedAt")) or 0, each["key"]))
    return sorted(made.values(), key=lambda chain: (name_of(chain[0]), chain[0]["key"]))


def _root(uid: str, before: Mapping[str, str], roots: dict[str, str]) -> str:
    """The first object that this one goes back to; `roots` remembers, since a chain can be thousands long."""
    way: dict[str, None] = {}
    while uid not in roots and uid not in way and before.get(uid):
        way[uid] = None
        uid = before[uid]
    # in a circle each of its uids has to come to the same end, and any will do
    end = roots.get(uid, uid)
    roots |= dict.fromkeys((*way, uid), end)
    return end


def name_of(attempt: Mapping) -> str:
    return f"{attempt['job']['namespace']}/{attempt['job']['name']}"


def broke_off(attempt: Mapping) -> bool:
    """Whether it ended before its time, or makes no progress any more."""
    return attempt["state"] in ("failed", "lost") or hangs(attempt)


def hangs(attempt: Mapping) -> bool:
    return attempt["state"] == "hung" or (
        attempt["state"] == "running" and (attempt.get("progress") or {}).get("hung") is True
    )


def millis(time: object) -> int | None:
    """Milliseconds since 1970; None where there is no time, or none that can be read."""
    seconds = moments.of(time) if isinstance(time, str) else None
    return None if seconds is None else round(seconds * SECOND)


def utc(at: int | None) -> str | None:
    """Milliseconds as 2026-03-06T09:34:56.500Z, without a fraction where there is none; None outside the calendar."""
    if at is None:
        return None
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=at)
    except OverflowError:
        return None
    return f"{moment.isoformat(timespec='milliseconds' if at % SECOND else 'seconds')}Z"


def whole(value: object) -> bool:
    """Whether it is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def step_of(attempt: Mapping, key: str) -> int | None:
    """`firstStep` or `lastStep` of the attempt's progress."""
    value = (attempt.get("progress") or {}).get(key)
    return value if whole(value) else None


def step_millis(attempt: Mapping) -> int | None:
    """How long one step takes."""
    value = (attempt.get("progress") or {}).get("stepSeconds")
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9
    return round(value * SECOND) if usable else None


def first_step_at(attempt: Mapping) -> tuple[int | None, bool]:
    """When the first step was done, and whether that is only reckoned back from the last one."""
    known = millis((attempt.get("progress") or {}).get("firstStepAt"))
    if known is not None:
        return known, False
    first, last, each = step_of(attempt, "firstStep"), step_of(attempt, "lastStep"), step_millis(attempt)
    at = last_step_at(attempt)
    if at is None or first is None or last is None or last < first:
        return None, False
    if first == last:
        return at, False
    begun = None if each is None else at - (last - first) * each
    return (None, False) if begun is None or begun < 0 else (begun, True)


def last_step_at(attempt: Mapping) -> int | None:
    return millis((attempt.get("progress") or {}).get("lastStepAt"))


def went_on_from(chain: Sequence[Mapping], resume: Mapping[str, int]) -> list[int | None]:
    """For each attempt the lowest step that a later one began with, else the one after the checkpoint to go on from."""
    found: list[int | None] = []
    lowest = None
    for attempt in reversed(chain):
        step = resume.get(attempt["key"])
        found.append(lowest if lowest is not None or step is None else step + 1)
        first = step_of(attempt, "firstStep")
        if first is not None:
            lowest = first if lowest is None else min(lowest, first)
    return found[::-1]


def lost_steps(attempt: Mapping, again: int | None) -> int | None:
    """Steps that have to be done once more; None where one of both is not known. 0 without any step."""
    first, last = step_of(attempt, "firstStep"), step_of(attempt, "lastStep")
    if last is None:
        return 0 if (attempt.get("progress") or {}).get("advanced") is False else None
    if again is None:
        return None
    return max(0, last - max(again, last if first is None else first) + 1) if again <= last else 0
