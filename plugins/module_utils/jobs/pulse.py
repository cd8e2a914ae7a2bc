# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a running job gets on, from the end of one of its logs and what earlier passes saw. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, progress
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Hang

LINES = 200  # of the end of a log
APART = 5.0  # seconds by which a log's own clock and kubelet's may differ


def feel(
    attempt: Mapping,
    tail: bytes,
    steps: Callable[[list[str]], Mapping],
    kept: Sequence[Mapping],
    now: float,
    hang: Hang,
) -> dict:
    """As progress.verdict(). `tail`: lines with the time that kubelet puts before each. `steps`: {lastStep,
    stepSeconds, …} of lines. `kept`: the samples of earlier passes, {at, step}."""
    lines, spoke = stamped(tail)
    told = dict(steps(lines))
    if told.get("lastStepAt"):
        told["lastStepAt"] = _by_kubelet(tail, lines, steps, told)
    began = moments.of(attempt["startedAt"]) or 0
    # its scheduler may have started it again since
    kept = [each for each in kept if (moments.of(each.get("at")) or 0) >= began]
    return progress.verdict(
        progress.samples(told, kept, now),
        now,
        attempt["startedAt"],
        {"factor": hang.factor, "least": hang.least, "most": hang.most, "start": hang.start},
        step_seconds=told.get("stepSeconds"),
        pause=progress.pause(lines, spoke),
        last_line_at=spoke,
    )


def stamped(tail: bytes) -> tuple[list[str], str | None]:
    """(the lines without their times, the time of the last one that has one)."""
    told = list(_timed(tail))
    return [line for _at, line in told], next((at for at, _line in reversed(told) if at), None)


def _timed(tail: bytes) -> Iterator[tuple[str | None, str]]:
    for line in tail.decode("utf-8", "replace").splitlines():
        at, blank, rest = line.partition(" ")
        yield (at, rest) if blank and moments.of(at) is not None else (None, line)


def _by_kubelet(tail: bytes, lines: list[str], steps: Callable, told: Mapping) -> str:
    """When the last step was told. A program may write the time of its own zone, without saying which that is."""
    without, upto = 0, len(lines)
    while upto - without > 1:
        middle = (without + upto) // 2
        there = steps(lines[:middle]).get("lastStep") == told["lastStep"]
        without, upto = (without, middle) if there else (middle, upto)
    stamp = [at for at, _line in _timed(tail)][upto - 1]
    apart = abs((moments.of(stamp) or 0) - (moments.of(told["lastStepAt"]) or 0))
    return stamp if stamp and apart > APART else told["lastStepAt"]


def listened_to(attempt: Mapping) -> Mapping | None:
    """The rank whose log tells most: the first that runs. Others print less, or nothing."""
    running = [rank for rank in attempt["ranks"] if rank["phase"] == "Running" and rank["index"] is not None]
    return min(running, key=lambda rank: rank["index"], default=None)
