# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a job may be started again, and when. Only proven progress resets what is counted without progress."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import memory, moments
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.memory import Entry
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Backoff, Budgets, Policy, Within


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a budget is used. `full`: one more would be too many."""

    name: str
    used: int
    max: int
    why: str

    @property
    def full(self) -> bool:
        return self.used >= self.max


def fruitless(chain: Sequence[Entry], advanced: bool | None, cls: str | None = None) -> int:
    """Restarts since the job last advanced after which it surely did not. Unknown is not counted.

    `advanced` is that of the attempt after the chain; `cls` counts restarts after failures of that class only.
    """
    count = 0
    result = advanced
    for entry in reversed(chain):
        if result:
            break
        if result is False and entry.restarted and cls in (None, entry.cls):
            count += 1
        result = entry.advanced
    return count


def of_job(
    budgets: Budgets, attempt: Mapping, chain: Sequence[Entry], advanced: bool | None, cls: str, now: float
) -> list[Use]:
    """All budgets of a job whose failure is of that class."""
    used = fruitless(chain, advanced)
    uses = [Use("noProgress", used, budgets.no_progress, f"{_times(used)} without progress")]
    if cls in budgets.classes:
        used = fruitless(chain, advanced, cls)
        uses.append(Use(f"class-{cls}", used, budgets.classes[cls], f"{_times(used)} without progress after {cls}"))
    for within in budgets.job:
        used = len(_within(chain, within, now))
        span = moments.spell(within.window)
        uses.append(Use(f"job-{span}", used, within.max, f"{_times(used)} within {span}"))
    declared = attempt["job"].get("maxRetries")
    if declared is not None:
        used = sum(entry.restarted for entry in chain)
        uses.append(Use("declared", used, declared, f"{_times(used)}, and the job allows {declared}"))
    return uses


def same(entries: Sequence[Entry], attempt: Mapping) -> int:
    """How often the job failed before exactly so: same exception, same line, same step, same image.

    Attempts that were submitted anew count too: nobody mended it. Not where a later checkpoint proves that it got on.
    """
    fault = memory.fault_of(attempt)
    if not fault:
        return 0
    image = memory.image_of(attempt)
    saved, step = memory.checkpoint_of(attempt), memory.step_of(attempt)
    count = 0
    for entry in entries:
        moved = step is None and (
            (saved or 0) > (entry.checkpoint or 0) or (attempt.get("progress") or {}).get("advanced") is True
        )
        count += entry.fault == fault and entry.image == image and not moved
    return count


def requeues(within: Within, chain: Sequence[Entry], now: float) -> Use:
    used = sum(entry.acted and entry.action == "requeue" and entry.at > now - within.window for entry in chain)
    return Use("requeues", used, within.max, f"requeued {used} times within {moments.spell(within.window)}")


class Everybody:
    """The restarts of all jobs together. `take` gives out what is left, to who comes first."""

    def __init__(self, within: Within, entries: Sequence[Entry], now: float):
        self.within, self.now = within, now
        self._at = sorted(entry.at for entry in entries if entry.restarted and entry.at > now - within.window)
        self._known = {entry.key for entry in entries if entry.restarted}
        self.used = len(self._at)

    def take(self, key: str) -> bool:
        if self.spent(key):
            return False
        self.used += key not in self._known
        return True

    def spent(self, key: str) -> bool:
        """Whether nothing is left for it. An attempt that was let through before needs no second place."""
        return key not in self._known and self.used >= self.within.max

    def again(self) -> float:
        """When the next place is free, at the latest."""
        return (self._at[0] if self._at else self.now) + self.within.window

    def use(self) -> Use:
        span = moments.spell(self.within.window)
        return Use("global", self.used, self.within.max, f"{self.used} restarts of all jobs within {span}")


def admission(policy: Policy, now: str | datetime.datetime) -> Callable:
    """What a journal asks before it writes entries down, with what stands there by then: (entries, wanted) ->
    (admitted, blocked). Of several runs at once this keeps the budget of all jobs."""
    moment = moments.of(now)

    def admit(entries: list[dict], wanted: list[dict]) -> tuple[list[dict], list[dict]]:
        known = memory.History({"decisions": entries}, moment).entries
        everybody = Everybody(policy.budgets.everybody, known, moment)
        admitted: list[dict] = []
        blocked: list[dict] = []
        for entry in wanted:
            restarts = entry.get("action") in memory.RESTARTS and entry.get("mode") == "act"
            (admitted if not restarts or everybody.take(entry["key"]) else blocked).append(entry)
        return admitted, blocked

    return admit


def delay(backoff: Backoff, key: str, retries: int, at_once: bool) -> int:
    """Seconds to wait before a restart. The jitter comes from the key, so that it is the same each time it is asked.

    `at_once`: it is proven that the old attempt ended cleanly, or that a node was to blame which is left out.
    """
    index = min(retries, len(backoff.delays) - 1)
    wait = backoff.delays[index]
    if not at_once and not wait:
        wait = next((one for one in backoff.delays if one), 0)
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) / 2**32
    return round(wait * (1 + share * backoff.jitter / 100))


def _within(chain: Sequence[Entry], within: Within, now: float) -> list[Entry]:
    return [entry for entry in chain if entry.restarted and entry.at > now - within.window]


def _times(count: int) -> str:
    return f"{count} restart{'' if count == 1 else 's'}"
