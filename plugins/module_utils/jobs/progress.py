# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a job gets on: its steps in time, and from which silence on it hangs. Pure.

A sample is {at: TIME, step: number}. The limit is learnt from the job's own steps; pauses that belong to its work (a
checkpoint, an evaluation, the start) are no hang, and what nobody can tell is unknown, never a hang.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments

LIMITS = {"factor": 10, "least": 600, "most": 7200, "start": 1800}  # seconds, but for the factor
KEEP = 200  # samples of one job
_WARM_UP = 3  # steps that are slower than all later ones
_FEW = 3  # steps from which nothing is learnt yet
_PAUSES = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "checkpoint": r"\bsav(?:e|ing)\b.{0,40}\b(?:checkpoint|model|weights|state)|checkpoint\w* (?:save|saving)",
        "evaluation": r"\b(?:running|starting|begin\w*|start of)\b.{0,20}\b(?:eval|validat|test)|\bevaluating\b",
        "start": r"\bload(?:ing)?\b.{0,30}\b(?:checkpoint|weights|shards)|\bcompil(?:ing|ation)\b|\bwarm[- ]?up\b",
    }.items()
}
_OVER = re.compile(
    r"success|\b(?:saved|finished|completed?|done|loaded|took|fail\w*|error|exception|abort\w*|traceback)\b",
    re.IGNORECASE,
)

_STEP = re.compile(r"\b(?:step|iter\w*)\b\D{0,4}\d", re.IGNORECASE)


def verdict(
    samples: Iterable[Mapping],
    now: float,
    started: str | None = None,
    limits: Mapping | None = None,
    step_seconds: float | None = None,
    pause: Mapping | None = None,
    last_line_at: str | None = None,
    previous_step: int | None = None,
) -> dict:
    """{firstStep, lastStep, lastStepAt, stepSeconds, silenceSeconds, limitSeconds, hung, advanced: true | false | null,
    verdict: hung | stepping | starting | paused | unknown, reasons: [texts]}; None for what is not known.

    limits: {factor, least, most, start}: a silence of `factor` usual steps, but from `least` to `most` seconds, and
    `start` seconds before the first step. step_seconds: the usual step, where samples tell none. pause: what its log
    said last that it does, {kind, at}. previous_step: the last of the attempts before.
    """
    bounds = {**LIMITS, **{key: value for key, value in (limits or {}).items() if value is not None}}
    points = _last_run(samples)
    began, spoke = moments.of(started), moments.of(last_line_at)
    usual, slow, gap = _learn(points, step_seconds)
    first, last = (points[0][1], points[-1][1]) if points else (None, None)
    moved = _moved(points)
    told = {
        "firstStep": first,
        "lastStep": last,
        "lastStepAt": moments.text(moved) if moved is not None else None,
        "stepSeconds": round(usual, 3) if usual is not None else None,
        "silenceSeconds": None,
        "limitSeconds": None,
        "hung": False,
        "advanced": _advanced(points, previous_step),
    }

    def is_(word: str, *reasons: str) -> dict:
        return {**told, "hung": word == "hung", "verdict": word, "reasons": list(reasons)}

    if last is None:
        return _without_steps(told, is_, now, began, spoke, bounds, previous_step)
    told["silenceSeconds"] = silence = max(0.0, now - moved)
    warm = usual is not None and (len(points) > _FEW or step_seconds is not None)
    limit = _limit(slow, gap, bounds) if warm else max(bounds["start"], bounds["least"])
    told["limitSeconds"] = limit
    since = f"step {last} is {_s(silence)} old"
    learnt = f"the limit of {_s(limit)} comes from steps of {_s(usual)}" if warm else "too few steps to learn from"
    at = moments.of((pause or {}).get("at"))
    if silence <= limit:
        return is_("stepping" if warm else "starting", f"{since}; {learnt}")
    doing = (pause or {}).get("kind")
    if doing and at is not None and at >= moved - 1:
        if now - at <= bounds["most"]:
            return is_("paused", f"{since}, but its log told of a pause ({doing}) {_s(now - at)} ago")
        return is_("hung", f"{since}; {learnt}", f"the pause ({doing}) has lasted {_s(now - at)}")
    # lines without steps may be work that nobody knows the name of: it gets twice the time
    if spoke is not None and now - spoke <= limit and silence <= 2 * limit:
        return is_("paused", f"{since}, but its log went on {_s(now - spoke)} ago")
    quiet = f"its log is silent for {_s(now - spoke)}" if spoke is not None else "nothing else is known of its log"
    return is_("hung", f"{since}; {learnt}", quiet)


def _without_steps(told: dict, is_, now, began, spoke, bounds: Mapping, previous: int | None) -> dict:
    if spoke is not None:
        told["silenceSeconds"] = max(0.0, now - spoke)
    if began is None:
        return is_("unknown", "no step is known, and not when it began")
    told["limitSeconds"] = limit = float(bounds["start"])
    age = now - began
    if age <= limit:
        return is_("starting", f"no step yet, {_s(age)} after its start")
    if previous is None:
        return is_("unknown", f"no step in {_s(age)}: it may be one that tells none")
    if spoke is not None and now - spoke <= bounds["least"]:
        return is_("starting", f"no step in {_s(age)}, but its log went on {_s(now - spoke)} ago")
    return is_("hung", f"no step {_s(age)} after its start, and the attempt before had reached step {previous}")


def samples(told: Mapping | None, kept: Sequence[Mapping], now: float) -> list[dict]:
    """The kept samples and what a log tells now ({firstStep, lastStep, lastStepAt, stepSeconds}), at most KEEP.

    A log without times tells that the step is reached, so that it counts from when it was first seen.
    """
    found = [{"at": each["at"], "step": each["step"]} for each in kept if _point(each)]
    last = (told or {}).get("lastStep")
    if isinstance(last, int) and not isinstance(last, bool):
        at = told.get("lastStepAt") if moments.of(told.get("lastStepAt")) is not None else None
        new = {"at": at or moments.text(now), "step": last}
        if not found or found[-1]["step"] != last:
            found.append(new)
    return found[-KEEP:]


def pause(lines: Iterable[str], at: str | None = None) -> dict | None:
    """The pause that the last lines of a log tell of and that is not over by then: {kind, at}. Lines of progress, and
    those that tell the end of something, end it."""
    found = None
    for line in lines:
        kind = next((kind for kind, pattern in _PAUSES.items() if pattern.search(line)), None)
        if _OVER.search(line) or (not kind and _STEP.search(line)):
            found = None
        elif kind:
            found = {"kind": kind, "at": at}
    return found


def apply(attempt: dict, told: Mapping) -> dict:
    """Notes the progress in the attempt; one that runs and hangs is `hung`, and one that does not run cannot hang."""
    attempt["progress"] = dict(told)
    if attempt["state"] not in ("running", "hung"):
        attempt["progress"]["hung"] = False
    elif told.get("hung"):
        attempt["state"] = "hung"
        attempt["reason"] = attempt["reason"] or "NoProgress"
        attempt["message"] = attempt["message"] or "; ".join(told.get("reasons") or ())
    return attempt


def _point(sample: object) -> tuple[float, int] | None:
    if not isinstance(sample, Mapping):
        return None
    at, step = moments.of(sample.get("at")), sample.get("step")
    return (at, step) if at is not None and isinstance(step, int) and not isinstance(step, bool) else None


def _last_run(samples_: Iterable[Mapping]) -> list[tuple[float, int]]:
    """In order of time, from the last time that the steps began anew."""
    points = sorted(point for each in samples_ if (point := _point(each)))
    start = 0
    for index in range(1, len(points)):
        if points[index][1] < points[index - 1][1]:
            start = index
    return points[start:]


def _moved(points: Sequence[tuple[float, int]]) -> float | None:
    """When the last step was first seen."""
    return next((at for at, step in points if step == points[-1][1]), None)


def _learn(points: Sequence[tuple[float, int]], told: float | None) -> tuple[float | None, float, float]:
    """(seconds of a usual step, of a slow one, the longest silence it came back from). Pauses do not move a median."""
    moves: list[tuple[float, int]] = []
    before = None
    for at, step in points:
        if before is not None and step > before[1]:
            moves.append((at - before[0], step - before[1]))
        if before is None or step > before[1]:
            before = (at, step)
    learnt = moves[_WARM_UP:] if len(moves) > 2 * _WARM_UP else moves
    if not learnt:
        valid = isinstance(told, (int, float)) and 0 < told < math.inf
        usual = float(told) if valid else None
        return usual, usual or 0.0, 0.0
    times = [seconds / steps for seconds, steps in learnt]
    usual = statistics.median(times)
    spread = statistics.median(abs(each - usual) for each in times)
    longest = max(seconds - (steps - 1) * usual for seconds, steps in learnt)
    return usual, usual + 3 * spread, longest


def _limit(slow: float, gap: float, bounds: Mapping) -> float:
    learnt = max(bounds["factor"] * slow, 1.5 * gap)
    return float(min(max(learnt, bounds["least"]), max(bounds["most"], bounds["least"])))


def _advanced(points: Sequence[tuple[float, int]], previous: int | None) -> bool | None:
    if not points:
        return None
    if previous is not None:
        return points[-1][1] > previous
    return True if points[-1][1] > points[0][1] else None


def _s(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else moments.spell(seconds)
