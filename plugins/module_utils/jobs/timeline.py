# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happened when between a job's fault and its next step, and where the time to recovery went. Pure.

Times come from several clocks: containers, logs, the API server, this collection. Where two contradict each other that
is said and the time between them is not known; it is never negative and never zero for want of a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import chains
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.chains import SECOND, SLACK, millis

MARKS = ("fault", "detected", "decided", "gated", "requested", "running", "firstStep")
PARTS = ("detect", "decide", "gate", "restart", "run", "step")  # each ends at the mark of its place, after the fault
_BETWEEN = {
    "detect": ("fault", "detected"),
    "decide": ("detected", "decided"),
    "run": ("requested", "running"),
    "step": ("running", "firstStep"),
}
_ENDS = ("none", "giveBack", "escalate")
_CLOCKS = ("fault", "detected", "decided", "requested", "running", "firstStep")  # a gate may come before the decision


@dataclass(frozen=True)
class Mark:
    """One moment. `source`: where its time comes from; `why`: for what reason there is no time."""

    at: int | None  # milliseconds since 1970
    source: str = ""
    estimated: bool = False
    why: str = ""
    needed: bool = True  # False: nothing had to happen here

    def as_dict(self, name: str) -> dict:
        told = {"at": self.at, "source": self.source, "estimated": self.estimated, "why": self.why}
        return {"mark": name, **told, "needed": self.needed}


def marks(
    attempt: Mapping,
    decision: Mapping | None,
    successor: Mapping | None,
    action: Mapping | None,
    gates: Iterable[Mapping],
) -> dict[str, Mark]:
    """The marks of one incident, in the order of `MARKS`.

    attempt, successor: Attempts; decision: spec of a RecoveryDecision; action: {status, at}; gates: [{node, since}].
    """
    found = {
        "fault": _fault(attempt),
        "detected": _detected(attempt),
        "decided": _decided(decision),
        "gated": _gated(attempt, decision, list(gates)),
        "requested": _requested(successor, action),
        "running": _running(successor),
        "firstStep": _first_step(successor),
    }
    if successor is None and (decision or {}).get("action") in _ENDS:
        over = Mark(None, why="the job is not started again", needed=False)
        found |= dict.fromkeys(("requested", "running", "firstStep"), over)
    return found


def _fault(attempt: Mapping) -> Mark:
    """The earliest sign of what ended the attempt; evidence after which it still made steps is none."""
    begin, last = millis(attempt.get("startedAt")), chains.last_step_at(attempt)
    first = attempt.get("firstFailure") or {}
    found = [(millis(first.get("at")), "the first rank that failed", False)]
    found += [
        (millis(item.get("at")), f"{item.get('source')} on {node}: {item.get('what')}", False)
        for node, items in (attempt.get("hardware") or {}).items()
        for item in items
        if item.get("fatal") and not item.get("before")
    ]
    if chains.hangs(attempt):
        found.append((last, "its last step, after which it was silent", True))
    usable = [one for one in found if one[0] is not None and one[0] >= max(begin or one[0], (last or one[0]) - SLACK)]
    if usable:
        at, source, estimated = min(usable, key=lambda one: one[0])
        return Mark(at, source, estimated)
    failed = [
        millis(rank.get("finishedAt"))
        for rank in attempt.get("ranks") or ()
        if rank.get("exitCode") or rank.get("signal") or rank.get("disruption")
    ]
    ended = min((at for at in failed if at is not None), default=None)
    if ended is not None:
        return Mark(ended, "the first container that ended with an error")
    return Mark(None, why="no rank, log or node tells when it began")


def _detected(attempt: Mapping) -> Mark:
    at = millis(attempt.get("detectedAt"))
    if at is not None:
        return Mark(at, "job recovery saw it")
    at = millis(attempt.get("endedAt"))
    if at is not None:
        return Mark(at, "the scheduler's record of its end")
    limit, last = (attempt.get("progress") or {}).get("limitSeconds"), chains.last_step_at(attempt)
    if chains.hangs(attempt) and isinstance(limit, (int, float)) and last is not None and 0 <= limit < 1e9:
        return Mark(last + round(limit * SECOND), "the limit of silence was reached", estimated=True)
    return Mark(None, why="nothing tells when it was first seen")


def _decided(decision: Mapping | None) -> Mark:
    if decision is None:
        return Mark(None, why="there is no decision")
    at = millis(decision.get("decidedAt"))
    return Mark(at, "the decision") if at is not None else Mark(None, why="the decision has no time")


def _gated(attempt: Mapping, decision: Mapping | None, gates: list[Mapping]) -> Mark:
    """When the last of the nodes was closed that had to be."""
    if decision is None:
        return Mark(None, why="there is no decision")
    nodes = {item["node"] for item in decision.get("hardware") or () if item.get("advice") == "gate"}
    if not nodes:
        return Mark(None, why="no node had to be closed", needed=False)
    begin, closed = millis(attempt.get("startedAt")), {}
    seen = [(gate["node"], millis(gate.get("since"))) for gate in gates]
    seen += [
        (node, millis(item.get("at")))
        for node, items in (attempt.get("hardware") or {}).items()
        for item in items
        if item.get("source") == "gate"
    ]
    for node, since in seen:
        if node in nodes and since is not None and (begin is None or since >= begin):
            closed[node] = min(since, closed.get(node, since))
    missing = sorted(nodes - set(closed))
    if missing:
        return Mark(None, why=f"no gate on {', '.join(missing[:5])} is known")
    return Mark(max(closed.values()), "the gate")


def _requested(successor: Mapping | None, action: Mapping | None) -> Mark:
    status = (action or {}).get("status")
    at = millis((action or {}).get("at"))
    if at is not None and status in ("done", "already", "waiting", None):
        return Mark(at, "the act")
    at = millis(successor["job"].get("created")) if successor else None
    if at is not None and successor and successor.get("previous"):
        return Mark(at, "the next attempt was created")
    return Mark(None, why=f"the act is {status}" if status else "no act is known")


def _running(successor: Mapping | None) -> Mark:
    """When all of its ranks ran: a gang that is half there does nothing."""
    if successor is None:
        return Mark(None, why="there is no next attempt")
    ranks = successor.get("ranks") or []
    starts = [millis(rank.get("startedAt")) for rank in ranks]
    pods = (successor["job"].get("shape") or {}).get("pods")
    if starts and None not in starts and (not isinstance(pods, int) or len(starts) >= pods):
        return Mark(max(starts), "the last rank of the next attempt started")
    at = millis(successor.get("startedAt"))
    if at is not None and successor.get("state") not in ("pending", "suspended"):
        return Mark(at, "the scheduler's record of its start", estimated=bool(ranks))
    return Mark(None, why="the next attempt does not run yet")


def _first_step(successor: Mapping | None) -> Mark:
    if successor is None:
        return Mark(None, why="there is no next attempt")
    at, estimated = chains.first_step_at(successor)
    if at is None:
        return Mark(None, why="no step of the next attempt is known")
    return Mark(at, "reckoned from its last step" if estimated else "the log of the next attempt", estimated)


def settled(found: Mapping[str, Mark]) -> tuple[dict[str, int | None], list[str]]:
    """The times that can be reckoned with, in order, and what is said of those that contradict each other.

    Less than a second of disorder is how times are cut off; a mark that contradicts another has no time here, nor has
    the other, since nobody knows which of both clocks is wrong.
    """
    times: dict[str, int | None] = {name: found[name].at for name in MARKS}
    told, wrong, latest = [], set(), None
    for name in _CLOCKS:
        at = times[name]
        if at is None:
            continue
        if latest is not None and times[latest] - at > SLACK:
            told.append(
                f"{name} ({found[name].source}) is {(times[latest] - at) / SECOND:.4g} s before {latest} "
                f"({found[latest].source}); their clocks disagree"
            )
            wrong |= {name, latest}
            continue
        if latest is not None:
            times[name] = max(at, times[latest])
        latest = name
    after = next((name for name in ("requested", "running", "firstStep") if times[name] is not None), None)
    if times["gated"] is not None and after and times["gated"] > times[after]:
        late = times["gated"] - times[after]
        if late > SLACK:
            told.append(
                f"{after} ({found[after].source}) is {late / SECOND:.4g} s before gated ({found['gated'].source}): the "
                "restart did not wait for the gate, or their clocks disagree"
            )
            wrong.add("gated")
        times["gated"] = times[after]
    return {name: None if name in wrong else at for name, at in times.items()}, told


def parts(found: Mapping[str, Mark], times: Mapping[str, int | None]) -> dict[str, float | None]:
    """{part: seconds}. `gate` is what closing the node added after the decision; 0 where it was closed before."""
    split = {part: _span(times[begin], times[end]) for part, (begin, end) in _BETWEEN.items()}
    decided, gated, requested = times["decided"], times["gated"], times["requested"]
    if not found["gated"].needed:
        split["gate"], split["restart"] = 0.0, _span(decided, requested)
    elif gated is None or decided is None:
        split["gate"] = split["restart"] = None
    else:
        ready = max(decided, gated)
        split["gate"], split["restart"] = (ready - decided) / SECOND, _span(ready, requested)
    return {part: split[part] for part in PARTS}


def totals(times: Mapping[str, int | None], split: Mapping[str, float | None]) -> dict[str, float | None]:
    """{toRunning, toFirstStep, unsplit} in seconds: from the fault on, and what of it no part accounts for."""
    running, first = _span(times["fault"], times["running"]), _span(times["fault"], times["firstStep"])
    whole, named = (running, PARTS[:-1]) if first is None else (first, PARTS)
    known = sum(split[part] or 0.0 for part in named)
    unsplit = None if whole is None else round(max(0.0, whole - known), 3)
    return {"toRunning": running, "toFirstStep": first, "unsplit": unsplit}


def summary(incidents: Iterable[Mapping]) -> dict:
    """Medians over incidents: {count, running, toRunning: {median, p95, most}, parts: {part: median}} in seconds."""
    incidents = list(incidents)
    times = sorted(each["toRunning"] for each in incidents if each["toRunning"] is not None)
    split = {part: [each["parts"][part] for each in incidents if each["parts"][part] is not None] for part in PARTS}
    spread = None
    if times:
        spread = {"median": median(times), "p95": times[-(-len(times) * 95 // 100) - 1], "most": times[-1]}
    return {
        "count": len(incidents),
        "running": len(times),
        "toRunning": spread,
        "parts": {part: median(values) if values else None for part, values in split.items()},
    }


def _span(begin: int | None, end: int | None) -> float | None:
    """Seconds between times that are settled, None when one of both is not known."""
    return None if begin is None or end is None else (end - begin) / SECOND
