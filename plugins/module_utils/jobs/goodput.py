# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of a job's elapsed time made progress, and what the rest went into. Pure.

Only times of attempts and of their first and last steps are needed, no change of the training code. Every moment counts
once, in the first class of `CLASSES` that has a claim on it, so that the classes never sum to more than what elapsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import chains
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.chains import SECOND, SLACK

# what only marks in time tell; without one it is part of productive time, start-up or what is not known
MARKED = (
    "custom", "checkpointSave", "checkpointRestore", "dataLoading", "deviceInit", "trainingPrep",
)  # fmt: skip
PHASES = ("excluded", *MARKED, "programStartup")
CLASSES = (
    "excluded", *MARKED, "wastedProgress", "productive", "infrastructureRecovery", "programStartup", "other", "unknown",
)  # fmt: skip
NOTES = 50  # per job


def of_job(
    chain: Sequence[Mapping],
    phases: Mapping[str, Iterable[Mapping]] | None = None,
    resume: Mapping[str, int] | None = None,
    waiting: Iterable[str] = (),
    until: int | None = None,
) -> dict:
    """The account of one chain of attempts, see chains.chains.

    phases: attempt's key: [{class, from, to}]; resume: attempt's key: step of the checkpoint that the next one begins
    with; waiting: keys of attempts whose successor is still to come; until: milliseconds, when this was looked at.

    Returns {job, attempts, gpus, elapsedSeconds, goodput, goodputAtMost, seconds: {class: seconds}, disruptions,
    lostSteps, lastStep, notes}. What is not known is None, never 0. `goodput` takes unknown time for lost,
    `goodputAtMost` for productive; time that is excluded counts in neither.
    """
    given = phases or {}
    notes: list[str] = []
    spans: list[tuple[int, int, str]] = []
    lost: list[int | None] = []
    runs = [_run(attempt, notes) for attempt in chain]
    _in_order(runs, notes)
    again, held, after = chains.went_on_from(chain, resume or {}), set(waiting), None
    for index in reversed(range(len(runs))):
        run, attempt = runs[index], chain[index]
        ends = index + 1 < len(runs) or attempt["key"] in held
        if ends or chains.broke_off(attempt):
            lost.append(chains.lost_steps(attempt, again[index]))
        if run["start"] is not None:
            spans += _steps(run, again[index], ends, notes)
            spans += _after(run, after, ends, until)
            spans += _phases(run, given.get(attempt["key"]) or (), notes)
            after = run["start"]
    return _account(chain, spans, lost, given, notes)


def _run(attempt: Mapping, notes: list[str]) -> dict:
    """The attempt's times, with everything that contradicts itself told and left out."""
    start, end = chains.millis(attempt.get("startedAt")), chains.millis(attempt.get("endedAt"))
    first, rough = chains.first_step_at(attempt)
    last, number = chains.last_step_at(attempt), attempt["number"]
    if start is None and attempt["state"] not in ("pending", "suspended"):
        notes.append(f"attempt {number}: when it began is not known, so its time is not counted")
    if start is not None and end is not None and end < start:
        notes.append(f"attempt {number}: ends before it begins, by {_seconds(start - end)}; clocks disagree")
        end = start
    if first is not None and last is not None and first > last:
        notes.append(f"attempt {number}: its first step is after its last, by {_seconds(first - last)}; both left out")
        first = last = None
    for what, at in (("first", first), ("last", last)):
        early = start is not None and at is not None and start - at
        late = end is not None and at is not None and at - end
        if (early or 0) > SLACK and not (rough and what == "first"):
            notes.append(f"attempt {number}: its {what} step is {_seconds(early)} before its begin; clocks disagree")
        elif (late or 0) > SLACK:
            notes.append(f"attempt {number}: its {what} step is {_seconds(late)} after its end; clocks disagree")
    if rough:
        notes.append(f"attempt {number}: when its first step was done is reckoned from the last one and the usual step")
    return {"attempt": attempt, "start": start, "end": end, "first": first, "last": last}


def _in_order(runs: list[dict], notes: list[str]) -> None:
    """Every attempt ends before the next one begins: at most one of them makes progress."""
    known = [run for run in runs if run["start"] is not None]
    for run, after in pairwise(known):
        number = run["attempt"]["number"]
        if after["start"] < run["start"]:
            notes.append(f"attempt {number}: begins after the next one; clocks disagree")
        elif run["end"] is not None and run["end"] - after["start"] > SLACK:
            over = _seconds(run["end"] - after["start"])
            notes.append(f"attempt {number}: still ran for {over} after the next one began; that time counts once")
        border = max(run["start"], after["start"])
        run["end"] = border if run["end"] is None else min(run["end"], border)


def _steps(run: Mapping, again: int | None, ends: bool, notes: list[str]) -> list[tuple[int, int, str]]:
    """Start-up, steps, and those of them that had to be done again."""
    attempt, first, last = run["attempt"], run["first"], run["last"]
    number = attempt["number"]
    if last is None or first is None:
        notes.append(f"attempt {number}: no times of steps are known, so nothing of it counts as productive")
        return []
    each = chains.step_millis(attempt) or 0
    begin = max(run["start"], first - each)
    spans = [(run["start"], begin, "programStartup"), (begin, last, "productive")]
    lost = chains.lost_steps(attempt, again)
    if lost is None and ends:
        notes.append(f"attempt {number}: how many of its steps are lost is not known yet")
    if lost:
        low, high = chains.step_of(attempt, "firstStep"), chains.step_of(attempt, "lastStep")
        count = 1 if low is None or high is None else high - low + 1
        # steps are taken to be even: only the first and the last one have a time
        spans.append((last - (last - begin) * min(lost, count) // count, last, "wastedProgress"))
    return _within(spans, run)


def _after(run: Mapping, after: int | None, ends: bool, until: int | None) -> list[tuple[int, int, str]]:
    """From the last step, or from the end, to where the next attempt begins."""
    end, last = run["end"], run["last"]
    begin = min(last, end) if last is not None and end is not None else end if last is None else last
    if begin is None:
        return [] if until is None else [(run["start"], until, "unknown")]
    begin = max(begin, run["start"])
    if after is not None:
        return [(begin, after, "infrastructureRecovery")]
    if ends and until is not None:
        return [(begin, until, "infrastructureRecovery")]
    if end is not None:
        return [(begin, end, "other")]
    # it still runs: what it has done since its last step will be told by the next one
    return [] if until is None else [(begin, until, "unknown")]


def _phases(run: Mapping, phases: Iterable[Mapping], notes: list[str]) -> list[tuple[int, int, str]]:
    spans, number = [], run["attempt"]["number"]
    for phase in phases:
        begin, end = chains.millis(phase.get("from")), chains.millis(phase.get("to"))
        if begin is None or end is None or end < begin:
            notes.append(f"attempt {number}: {phase.get('class')} has no begin and end that can be counted")
            continue
        spans.append((begin, end, phase["class"]))
    inside = _within(spans, run)
    outside = sum(end - begin for begin, end, _kind in spans) - sum(end - begin for begin, end, _kind in inside)
    if outside > SLACK:
        notes.append(f"attempt {number}: {_seconds(outside)} of its phases are outside of it and are not counted")
    return inside


def _within(spans: Iterable[tuple[int, int, str]], run: Mapping) -> list[tuple[int, int, str]]:
    low, high = run["start"], run["end"]
    cut = [(max(begin, low), end if high is None else min(end, high), kind) for begin, end, kind in spans]
    return [span for span in cut if span[0] < span[1]]


def _account(chain: Sequence[Mapping], spans: list, lost: list[int | None], phases: Mapping, notes: list[str]) -> dict:
    totals, twice = _counted(spans, [run for attempt in chain for run in _whole(attempt)])
    if twice:
        notes.append(f"phases overlap by {_seconds(twice)}; that time counts once")
    told = {phase.get("class") for attempt in chain for phase in phases.get(attempt["key"]) or ()}
    elapsed = sum(totals.values()) - totals["excluded"]
    # without a mark nobody knows how much of the time such a class has
    seconds = {kind: totals[kind] / SECOND if kind not in MARKED or kind in told else None for kind in CLASSES}
    steps = [step for step in (chains.step_of(attempt, "lastStep") for attempt in chain) if step is not None]
    shape = chain[-1]["job"].get("shape") or {}
    gpus = [shape.get("pods"), shape.get("gpusPerPod")]
    return {
        "job": chains.name_of(chain[-1]),
        "attempts": len(chain),
        "gpus": gpus[0] * gpus[1] if all(chains.whole(count) and count >= 0 for count in gpus) else None,
        "elapsedSeconds": elapsed / SECOND,
        "goodput": totals["productive"] / elapsed if elapsed else None,
        "goodputAtMost": (totals["productive"] + totals["unknown"]) / elapsed if elapsed else None,
        "seconds": seconds,
        "disruptions": len(lost),
        "lostSteps": None if None in lost else sum(lost),
        "lastStep": max(steps, default=None),
        "notes": notes[:NOTES] + ([f"{len(notes) - NOTES} more notes"] if len(notes) > NOTES else []),
    }


def _whole(attempt: Mapping) -> list[tuple[int, int, str]]:
    """What of an attempt nothing else has a claim on is not known."""
    begin, end = chains.millis(attempt.get("startedAt")), chains.millis(attempt.get("endedAt"))
    return [(begin, end, "unknown")] if begin is not None and end is not None and begin < end else []


def _counted(spans: list[tuple[int, int, str]], base: list[tuple[int, int, str]]) -> tuple[dict[str, int], int]:
    """Milliseconds of each class from the first moment to the last, and how many more than one phase claims."""
    events: dict[int, list[tuple[int, str]]] = {}
    for begin, end, kind in filter(lambda span: span[0] < span[1], (*spans, *base)):
        events.setdefault(begin, []).append((1, kind))
        events.setdefault(end, []).append((-1, kind))
    totals, claims, twice, moment = dict.fromkeys(CLASSES, 0), dict.fromkeys(CLASSES, 0), 0, None
    marks = ("excluded", *MARKED)
    for time in sorted(events):
        if moment is not None:
            kind = next((kind for kind in CLASSES if claims[kind]), "unknown")
            totals[kind] += time - moment
            twice += (time - moment) * (sum(claims[mark] for mark in marks) > 1)
        for change, kind in events[time]:
            claims[kind] += change
        moment = time
    return totals, twice


def of_all(jobs: Sequence[Mapping]) -> dict:
    """The accounts together, {jobs, gpuSeconds, goodput, goodputAtMost, shares: {class: share}, left: [jobs]}.

    A second of a job counts as often as it has GPUs. Jobs whose GPUs are not known are named in `left`. A class that
    no job has marks of is None; one that only some have is a share of the time of all, and so a lower bound.
    """
    known = [job for job in jobs if job["gpus"] and job["elapsedSeconds"]]
    total = sum(job["gpus"] * job["elapsedSeconds"] for job in known)
    shares: dict[str, float | None] = {}
    for kind in CLASSES[1:]:
        told = [job["gpus"] * job["seconds"][kind] for job in known if job["seconds"][kind] is not None]
        shares[kind] = sum(told) / total if told and total else None
    productive = shares["productive"]
    return {
        "jobs": len(known),
        "gpuSeconds": total,
        "goodput": productive,
        "goodputAtMost": None if productive is None else min(1.0, productive + (shares["unknown"] or 0)),
        "shares": shares,
        "left": sorted({job["job"] for job in jobs if not (job["gpus"] and job["elapsedSeconds"])}),
    }


def _seconds(millis: int) -> str:
    return f"{millis / SECOND:.4g} s"
