# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a running job gets on, from the end of one of its logs and what earlier passes saw. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, progress
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Hang

LINES = 200  # of the end of a log


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
    told = steps(lines)
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
    lines, spoke = [], None
    for line in tail.decode("utf-8", "replace").splitlines():
        at, blank, rest = line.partition(" ")
        if blank and moments.of(at) is not None:
            line, spoke = rest, at
        lines.append(line)
    return lines, spoke


def listened_to(attempt: Mapping) -> Mapping | None:
    """The rank whose log tells most: the first that runs. Others print less, or nothing."""
    running = [rank for rank in attempt["ranks"] if rank["phase"] == "Running" and rank["index"] is not None]
    return min(running, key=lambda rank: rank["index"], default=None)
