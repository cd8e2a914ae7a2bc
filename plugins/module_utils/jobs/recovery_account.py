# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions, attempts, gates, drains and repairs as incidents with their time lines, and as goodput. Pure.

Texts that come from logs and schedulers are kept short and without what looks like a credential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import chains, goodput, timeline
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.chains import SLACK, millis, utc
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.recovery_given import check, spec_of
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.redaction import excerpt
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

_COMES_BACK = ("hold", "retry", "restart", "requeue")
_TEXTS = 5  # reasons and lines of an incident
_TRACKS = 20  # gates, drains and repairs of an incident
_NODES = 1000


def account(given: Mapping) -> dict:
    """What happened to jobs, and what it cost.

    given: {name, until, decisions: [RecoveryDecision], attempts: [Attempt], actions: [{attempt, status, detail, at}],
    gates: [{node, owner, reason, since, until}] or the `nodes` of node_gate_info, drains: [{node, status, startedAt,
    finishedAt}], repairs: [RepairRequest], phases: [{attempt, class, from, to}]}; times in UTC such as
    2026-03-06T09:34:56Z, absent or null where they are not known.

    Returns {name, until, incidents: [{attempt, job, number, state, status, action, marks, parts, toRunning,
    toFirstStep, unsplit, lostSteps, tracks, clocks, …}], mttr, jobs: [goodput.of_job], goodput: goodput.of_all,
    notes}; seconds everywhere. Raises InvalidDocument with everything that is wrong.
    """
    problems = check(given)
    if problems:
        raise InvalidDocument(problems)
    decisions = {spec["attempt"]: spec for spec in map(spec_of, given.get("decisions") or ())}
    attempts = {key: _unseen(key, spec) for key, spec in decisions.items()}
    attempts |= {attempt["key"]: attempt for attempt in given.get("attempts") or ()}
    actions = {item.get("attempt") or item["key"]: item for item in given.get("actions") or ()}
    hardware = _by_node([*_gates(given.get("gates") or ()), *_drains(given), *_repairs(given)])
    until = millis(given.get("until"))
    phases: dict[str, list] = {}
    for phase in given.get("phases") or ():
        phases.setdefault(phase["attempt"], []).append(phase)
    incidents, jobs = [], []
    for chain in chains.chains(attempts.values()):
        steps = {one["key"]: _resume(decisions.get(one["key"])) for one in chain}
        resume = {key: step for key, step in steps.items() if step is not None}
        waiting = [one["key"] for one in chain[-1:] if (decisions.get(one["key"]) or {}).get("action") in _COMES_BACK]
        again = chains.went_on_from(chain, resume)
        jobs.append(goodput.of_job(chain, phases, resume, waiting, until))
        for place, attempt in enumerate(chain):
            decision = decisions.get(attempt["key"])
            if chains.broke_off(attempt) or (decision or {}).get("action", "none") != "none":
                successor = chain[place + 1] if place + 1 < len(chain) else None
                acted = actions.get(attempt["key"])
                incidents.append(_incident(attempt, decision, successor, acted, hardware, again[place]))
    incidents.sort(key=lambda each: (each["marks"][0]["at"] or each["marks"][1]["at"] or "", each["attempt"]))
    return {
        "name": str(given.get("name") or ""),
        "until": given.get("until"),
        "incidents": incidents,
        "mttr": timeline.summary(incidents),
        "jobs": jobs,
        "goodput": goodput.of_all(jobs),
        "notes": _notes(decisions, actions, phases, {one["key"] for one in given.get("attempts") or ()}),
    }


def _unseen(key: str, spec: Mapping) -> dict:
    """An attempt of which only the decision is given: its key is NAMESPACE/NAME/UID/NUMBER."""
    namespace, name, uid, number = (*key.split("/", 3), "", "", "")[:4]
    job = {"namespace": namespace, "name": name, "uid": uid, **(spec.get("job") or {})}
    return {"key": key, "job": job, "number": int(number) if number.isdecimal() else 1, "state": "unknown"}


def _resume(decision: Mapping | None) -> int | None:
    step = ((decision or {}).get("resume") or {}).get("step")
    return step if chains.whole(step) else None


def _gates(given: Iterable[Mapping]) -> Iterable[dict]:
    for item in given:
        for gate in item["gates"] or () if "gates" in item else [item]:
            node = item["name"] if "gates" in item else item["node"]
            what = f"{gate.get('owner') or 'gate'}: {gate.get('reason') or 'no reason'}"
            yield _track("gate", node, gate.get("since"), gate.get("until"), what)


def _drains(given: Mapping) -> Iterable[dict]:
    for item in given.get("drains") or ():
        what = str(item.get("status") or "drain")
        yield _track("drain", item["node"], item.get("startedAt"), item.get("finishedAt"), what)


def _repairs(given: Mapping) -> Iterable[dict]:
    for item in given.get("repairs") or ():
        status, fault = item.get("status") or {}, item["spec"].get("fault") or {}
        begin = status.get("startedAt") or fault.get("since")
        what = f"{status.get('rung') or 'repair'}, {status.get('phase') or 'Open'}: {fault.get('code') or 'no code'}"
        yield _track("repair", item["spec"]["node"]["name"], begin, status.get("finishedAt"), what)


def _track(kind: str, node: str, begin: object, end: object, what: str) -> dict:
    return {"kind": kind, "node": node, "since": begin or None, "until": end or None, "what": excerpt(what)}


def _by_node(tracks: Iterable[dict]) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for track in tracks:
        found.setdefault(track["node"], []).append(track)
    for tracks in found.values():
        tracks.sort(key=lambda track: millis(track["since"]) or 0)
    return found


def _incident(
    attempt: Mapping,
    decision: Mapping | None,
    successor: Mapping | None,
    action: Mapping | None,
    hardware: Mapping[str, list[dict]],
    again: int | None,
) -> dict:
    nodes = list(dict.fromkeys(_nodes(attempt, decision)))[:_NODES]
    gates = [track for node in nodes for track in hardware.get(node, ()) if track["kind"] == "gate"]
    found = timeline.marks(attempt, decision, successor, action, gates)
    times, clocks = timeline.settled(found)
    split = timeline.parts(found, times)
    tracks = sorted(_of_incident(attempt, nodes, hardware), key=lambda track: (track["since"] or "", track["node"]))
    signature = attempt.get("signature") or {}
    lines = [str(line.get("text")) for line in signature.get("lines") or () if isinstance(line, Mapping)]
    spec = decision or {}
    return {
        "attempt": attempt["key"],
        "job": chains.name_of(attempt),
        "kind": str(attempt["job"].get("kind") or ""),
        "number": attempt["number"],
        "state": attempt["state"],
        "reason": excerpt(str(attempt.get("reason") or "")),
        "class": str(spec.get("class") or signature.get("class") or "unknown"),
        "signature": str(signature.get("id") or spec.get("signature") or ""),
        "lines": [excerpt(line) for line in lines[:_TEXTS]],
        "action": str(spec.get("action") or ""),
        "rule": str(spec.get("rule") or ""),
        "mode": str(spec.get("mode") or ""),
        "reasons": [excerpt(str(reason)) for reason in (spec.get("reasons") or ())[:_TEXTS]],
        "done": {"status": str(action.get("status") or ""), "detail": excerpt(str(action.get("detail") or ""))}
        if action
        else None,
        "excluded": [item["node"] for item in spec.get("exclude") or ()][:_NODES],
        "nodes": nodes,
        "successor": successor["key"] if successor else None,
        "status": _status(decision, successor, action, found),
        "marks": [_mark(name, mark) for name, mark in found.items()],
        "parts": split,
        **timeline.totals(times, split),
        "lostSteps": chains.lost_steps(attempt, again),
        "resumeStep": _resume(decision),
        "tracks": tracks[:_TRACKS],
        "moreTracks": max(0, len(tracks) - _TRACKS),
        "parallel": _parallel(times["running"], tracks),
        "clocks": [excerpt(text) for text in clocks],
    }


def _nodes(attempt: Mapping, decision: Mapping | None) -> Iterable[str]:
    """The nodes that somebody has to look after."""
    for item in (decision or {}).get("hardware") or ():
        if item.get("advice") in ("gate", "diagnose"):
            yield item["node"]
    for item in (decision or {}).get("exclude") or ():
        yield item["node"]
    for node, items in (attempt.get("hardware") or {}).items():
        if any(item.get("fatal") and not item.get("before") for item in items):
            yield node


def _of_incident(attempt: Mapping, nodes: list[str], hardware: Mapping[str, list[dict]]) -> Iterable[dict]:
    """What was done to those nodes: of each kind the first that had not ended when the attempt began.

    What ended before is another story, and so is what follows once the node is back.
    """
    begin = millis(attempt.get("startedAt"))
    for node in nodes:
        kinds = set()
        for track in hardware.get(node, ()):
            end = millis(track["until"])
            if track["kind"] not in kinds and (begin is None or end is None or end >= begin):
                kinds.add(track["kind"])
                yield track


def _parallel(running: int | None, tracks: Iterable[Mapping]) -> bool | None:
    """Whether the job ran again before its old nodes were done with. None: not known, or no node was worked on."""
    if running is None:
        return None
    worked = [track for track in tracks if track["kind"] != "gate" and track["since"]]
    ends = [millis(track["until"]) for track in worked]
    return any(end is None or end - running > SLACK for end in ends) if worked else None


def _status(decision: Mapping | None, successor: Mapping | None, action: Mapping | None, found: Mapping) -> str:
    done, wanted = (action or {}).get("status"), (decision or {}).get("action")
    if successor is not None and found["firstStep"].at is not None:
        return "recovered"
    if successor is not None and chains.broke_off(successor):
        return "failedAgain"
    if successor is not None and successor["state"] in ("running", "succeeded"):
        return "running"
    if done in ("failed", "refused"):
        return "notDone"
    if wanted in ("giveBack", "escalate"):
        return {"giveBack": "givenBack", "escalate": "escalated"}[wanted]
    if wanted in _COMES_BACK:
        return "advised" if (decision or {}).get("mode") == "advise" and successor is None else "waiting"
    return "ignored" if wanted == "none" else "undecided"


def _mark(name: str, mark: timeline.Mark) -> dict:
    told = mark.as_dict(name)
    return {**told, "at": utc(mark.at), "source": excerpt(mark.source), "why": excerpt(mark.why)}


def _notes(decisions: Mapping, actions: Mapping, phases: Mapping, attempts: set[str]) -> list[str]:
    told = []
    for what, keys in (("decisions", decisions), ("actions", actions), ("phases", phases)):
        unknown = [key for key in keys if key not in attempts]
        if unknown:
            named = ", ".join(excerpt(key, 120) for key in unknown[:3])
            told.append(f"{len(unknown)} {what} are about attempts that are not given: {named}")
    return told
