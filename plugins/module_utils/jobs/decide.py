# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about each failed attempt. Pure: the same input gives the same decisions, whatever its order.

    decisions = decide(policy, attempts, fleet, history, now)   # RecoveryDecision documents, one per attempt, by key

`policy` is from policy.load. `attempts`: {key, job, number, state, startedAt, endedAt, reason, ranks, nodes, domains,
hardware, firstFailure, signature, progress, checkpoint}. `fleet`: {nodes: {name: {uid, domain, gpus, freeGpus, open,
ready, verdict, lemon, certifiedAt, readySince}}, controlPlane: {ok, why, age: seconds}, storage: {ok, why}}. `history`:
{decisions: [entries as memory.entry makes them]}. `now` is a time in UTC, as text or datetime.

Which case it is, says rows.py; what may stop a restart, guards.py. Only decisions of mode act may be acted on.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import (
    blast,
    budgets,
    evidence,
    guards,
    lemons,
    memory,
    moments,
    rows,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.guards import Passed, Shared
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Policy
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.rows import Case, Verdict
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, schema
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.recoverydecision import ADVICE

KIND = "RecoveryDecision"
FAILED = ("failed", "lost", "hung")
QUIET = ("row-0", "row-1", "row-9")  # where nothing is said about nodes
_JOB = ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "user", "image")
_LONGEST = {"image": 1024}  # characters
BLAMELESS = ("user-code", "preemption")
PREFERRED = 8  # domains named at most
_SETS_RESUME = (*memory.RESTARTS, "requeue", "hold")


def decide(
    policy: Policy,
    attempts: Iterable[Mapping],
    fleet: Mapping,
    history: Mapping | None,
    now: str | datetime.datetime,
) -> list[dict]:
    """Raises InvalidDocument where `now` is no time."""
    moment = moments.of(now)
    if moment is None:
        raise InvalidDocument(f"is {now!r}, which is no time", path="now", hint="such as 2026-03-06T09:34:56Z")
    cases = _cases(
        policy, sorted(attempts, key=lambda each: each["key"]), fleet, memory.History(history, moment), moment
    )
    cases.sort(key=_turn)
    nodes = fleet.get("nodes") or {}
    entries = cases[0].history.entries if cases else []
    shared = Shared(
        budgets.Everybody(policy.budgets.everybody, entries, moment),
        lemons.names(policy.lemon, entries, nodes, moment),
    )
    gates = blast.Gates(policy.blast, nodes)
    decided = [_document(case, guards.guard(case, rows.judge(case), shared), gates) for case in cases]
    return sorted(decided, key=lambda document: document["spec"]["attempt"])


def mode(case: Case) -> str:
    """Whether the decision may be acted on: policy and job must both want it, and to stop a job that hangs without any
    proof of why, the policy's hang.act too."""
    wanted = case.policy.mode == "enforce" and case.job.get("mode") == "act"
    doubt = case.look.hung and not case.look.fatal
    return "act" if wanted and (case.policy.hang.act or not doubt) else "advise"


def _cases(policy: Policy, attempts: list[Mapping], fleet: Mapping, history: memory.History, now: float) -> list[Case]:
    nodes = fleet.get("nodes") or {}
    looks = [(attempt, evidence.look(policy, attempt, nodes)) for attempt in attempts]
    failed = [(attempt, look) for attempt, look in looks if attempt.get("state") in FAILED or look.hung or look.struck]
    newest: dict[tuple, tuple] = {}
    for attempt in attempts:
        newest[_job(attempt)] = max(newest.get(_job(attempt), _age(attempt)), _age(attempt))
    incidents = blast.incidents(policy.blast, failed, history.entries, nodes, now)
    unready = blast.unready(policy.blast, nodes, now)
    storage = blast.storage(policy.blast, failed, fleet.get("storage") or {}, now)
    cases = []
    for attempt, look in looks:
        chain = history.chain(attempt)
        cases.append(
            Case(
                policy=policy,
                attempt=attempt,
                look=look,
                fleet=fleet,
                before=chain,
                history=history,
                advanced=memory.advanced(attempt, chain),
                incidents=incidents,
                unready=unready,
                storage=storage,
                superseded=_age(attempt) != newest[_job(attempt)],
                now=now,
            )
        )
    return cases


def _job(attempt: Mapping) -> tuple:
    return (attempt["job"].get("kind"), attempt["job"].get("namespace"), attempt["job"].get("name"))


def _age(attempt: Mapping) -> tuple:
    return (attempt["job"].get("created") or "", attempt.get("number") or 0, attempt["key"])


def _turn(case: Case) -> tuple:
    """Who goes first where not all may: who is acted on, then whose node is surely at fault, then who waits longest."""
    acts = mode(case) == "act"
    ended = moments.of(case.attempt.get("endedAt"))
    return (not acts, not case.look.fatal, case.now if ended is None else ended, case.attempt["key"])


def _document(case: Case, passed: Passed, gates: blast.Gates) -> dict:
    verdict, attempt, policy = passed.verdict, case.attempt, case.policy
    hardware = _hardware(case, verdict, gates)
    resume = _resume(case, verdict)
    exclude = _exclude(case, verdict)
    digest_ = digest.sha256(attempt["key"])[7:17]
    name = re.sub(r"[^a-z0-9.-]+", "-", f"{case.job.get('name', '')}".lower()).strip("-.")[:200]
    return {
        "apiVersion": schema.API_VERSION,
        "kind": KIND,
        "metadata": {"name": f"{name or 'job'}-{digest_}"},
        "spec": {
            "attempt": attempt["key"],
            "job": {
                **{"kind": "", "namespace": "", "name": "", "uid": ""},
                **{key: str(case.job[key])[: _LONGEST.get(key, 253)] for key in _JOB if case.job.get(key) is not None},
            },
            "action": verdict.action,
            "escalate": verdict.escalate,
            "rule": verdict.rule,
            "safety": [f"safety-{number}" for number in sorted(verdict.safety)],
            "reasons": [_clip(why, 1024) for why in verdict.why],
            "class": case.cls,
            "signature": case.look.id,
            "blamed": _blamed(case),
            "advanced": case.advanced,
            "exclude": exclude,
            "prefer": passed.place.prefer[:PREFERRED] if passed.place and verdict.action == "restart" else [],
            "hardware": hardware,
            "resume": resume,
            "resize": passed.resize,
            "missing": passed.missing,
            "notBefore": moments.text(verdict.until) if verdict.until is not None else None,
            "budget": {use.name: {"used": use.used, "max": use.max} for use in passed.uses},
            "confidence": round(min(1.0, max(0.0, verdict.confidence)), 3),
            "mode": mode(case),
            "decidedAt": moments.text(case.now // 1),
            "policy": {"name": policy.name, "digest": policy.digest},
        },
    }


def _blamed(case: Case) -> list[str]:
    """Nodes that the failure points at, whatever is done about them. An error of the program points at none."""
    look = case.look
    return sorted({*look.sick, *(look.blamed if look.cls not in BLAMELESS else ())})


def _uid(case: Case, node: str) -> str:
    """Of the node as the attempt had it, else as it is now."""
    for rank in case.attempt.get("ranks") or ():
        if rank.get("node") == node and rank.get("nodeUid"):
            return rank["nodeUid"]
    return (case.nodes.get(node) or {}).get("uid") or ""


def _replaced(case: Case, node: str) -> bool:
    """Another machine has the name now: what was wrong is gone with the old one."""
    now, then = (case.nodes.get(node) or {}).get("uid"), _uid(case, node)
    return bool(now and then and now != then)


def _exclude(case: Case, verdict: Verdict) -> list[dict]:
    if verdict.action not in (*memory.RESTARTS, "requeue"):
        return []
    until = moments.text(case.now + case.policy.suspects.exclude)
    nodes = dict(verdict.exclude)
    if verdict.action == "requeue":
        nodes.update(case.look.fatal)
    found = []
    for node, why in sorted(nodes.items()):
        if _replaced(case, node):
            verdict.why.append(f"{node} is another machine by now, so it may be used")
        else:
            found.append({"node": node, "uid": _uid(case, node), "why": _clip(why, 512), "until": until})
    return found


def _hardware(case: Case, verdict: Verdict, gates: blast.Gates) -> list[dict]:
    """Advice to those who look after nodes. A restart on the same nodes never closes one."""
    if verdict.rule in QUIET:
        return []
    wanted = {**{node: ("gate", why) for node, why in case.look.fatal.items()}, **verdict.hardware}
    found = []
    for node, (advice, why) in sorted(wanted.items()):
        if case.nodes and (node not in case.nodes or _replaced(case, node)):
            advice, why = ADVICE[1], f"{why}; that machine is not among the known nodes any more"
        elif advice == "gate":
            if node in case.look.over:
                blocked = "it was told to be well since"
            else:
                blocked = "the job starts again on it" if verdict.action == "retry" else gates.admit(node)
            if blocked:
                advice, why = "diagnose", f"{why}; not closed: {blocked}"
                verdict.safety.add(1)
        found.append({"node": node, "uid": _uid(case, node), "advice": advice, "why": _clip(why, 512)})
    return found


def _resume(case: Case, verdict: Verdict) -> dict | None:
    checkpoint = case.attempt.get("checkpoint")
    if not checkpoint or verdict.action not in _SETS_RESUME:
        return None
    torn = [f"{one.get('path')} ({one.get('why')})" for one in checkpoint.get("torn") or ()]
    if not (checkpoint.get("complete") and checkpoint.get("path")):
        verdict.why.append("no checkpoint is whole" + (f": {'; '.join(torn)}" if torn else ""))
        return None
    note = ""
    if torn:
        note = f"newer ones are broken: {'; '.join(torn)}"
        verdict.why.append(f"from the checkpoint of step {checkpoint.get('step')}; {note}")
    return {"path": checkpoint["path"], "step": checkpoint.get("step"), "note": _clip(note, 1024)}


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
