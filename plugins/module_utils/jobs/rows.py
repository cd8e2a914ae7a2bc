# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table: which case an attempt is, the first row that holds. What may then stop a restart is in guards.py.

| row | condition | job | hardware |
|---|---|---|---|
| 0 | control plane away, data too old, clocks apart, or too many nodes not ready | hold | none |
| 1 | not opted in, not to be touched, cancelled, done, or still on its way | none | none |
| 2 | time limit | requeue if declared, not counted | none |
| 3 | preempted, drained, maintained by others | requeue, not counted | none |
| 4 | an error of the program that cannot go away, before any progress | give back | none |
| 5 | hardware evidence on its nodes in its time, or a strong signature that names one | restart without them | gate |
| 6 | hardware is likely, but not proven | restart without them, for this job | diagnose |
| 7 | network between two nodes, first time | retry | observe |
| 8 | network again, with one node in common | restart without it | diagnose |
| 9 | several jobs or nodes of one domain | hold, a person looks | none |
| 10 | transient software | retry | none, or diagnose a node that the same failure has in common |
| 11 | hangs, and a rank is named | restart without its node | diagnose |
| 12 | hangs, nobody is named | retry, the second time on other nodes than half of them | none |
| 13 | newest checkpoint broken, an older one is whole | restart from that | none |
| 14 | no checkpoint where there was one, storage away or full | hold, a person looks | none |
| 15 | memory ran out | retry once if it had advanced, else give back | look for what was left |
| 16 | the same again, or a budget is used up | give back | none |
| 17 | unknown | retry | none |
| 18 | not enough healthy nodes | hold, or smaller if declared | faster diagnosis |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import evidence, memory, moments, suspects
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.blast import Incident
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.evidence import Look
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.memory import Entry
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Policy

GIVEN_UP = "fail to user"  # how the catalogue of signatures says that a restart cannot help
OLDER = "retry from older checkpoint"
ELSEWHERE = "restart elsewhere"
TIME_LIMIT = "DUE TO TIME LIMIT"  # Slurm, in the log of the job
OBSERVE = "none (observe)"
HANG = "hang"  # the class under which a hang is remembered, whatever the log says
STRONG = 0.9  # confidence from which a log alone closes a node, if it names one


@dataclass(slots=True)
class Case:
    """An attempt and all that is known around it. `before`: its earlier attempts; `others`: all that is remembered."""

    policy: Policy
    attempt: Mapping
    look: Look
    fleet: Mapping
    before: list[Entry]
    history: memory.History
    advanced: bool | None
    incidents: Mapping[str, Incident]
    unready: str
    storage: str
    superseded: bool
    now: float

    @property
    def nodes(self) -> Mapping[str, Mapping]:
        return self.fleet.get("nodes") or {}

    @property
    def cls(self) -> str:
        """As what the failure is remembered: what the nodes show goes before what the log says."""
        return "hardware" if self.look.sick else HANG if self.look.hung else self.look.cls

    @property
    def moved(self) -> bool | None:
        """Whether the attempt itself got anywhere; `advanced` is whether it got further than those before it.

        A log without any step proves that it did not only of a job whose logs tell steps.
        """
        progress = self.attempt.get("progress") or {}
        first, last, told = progress.get("firstStep"), progress.get("lastStep"), progress.get("advanced")
        if told or self.advanced or (first is not None and last is not None and last > first):
            return True
        if told is False:
            return False
        silent = memory.step_of(self.attempt) is None and self.attempt.get("signature")
        return False if silent and any(entry.step is not None for entry in self.history.of(self.attempt)) else None

    @property
    def job(self) -> Mapping:
        return self.attempt["job"]


@dataclass(slots=True)
class Verdict:
    """`exclude` and `hardware` are {node: why} and {node: (advice, why)}. `soft`: rather with these nodes than not at
    all. `until`: in seconds since 1970."""

    action: str
    why: list[str]
    exclude: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, tuple[str, str]] = field(default_factory=dict)
    shun: list[str] = field(default_factory=list)
    soft: bool = False
    escalate: bool = False
    until: float | None = None
    confidence: float = 1.0
    safety: set[int] = field(default_factory=set)
    rule: str = ""


def row_0(case: Case) -> Verdict | None:
    plane = case.fleet.get("controlPlane") or {}
    age, limit = plane.get("age"), case.policy.data.max_age
    ahead = [
        name
        for name in ("startedAt", "endedAt")
        if (moments.of(case.attempt.get(name)) or 0) > case.now + case.policy.data.skew
    ]
    if plane.get("ok") is False:
        why = f"the control plane cannot be relied on: {plane.get('why') or 'it does not answer'}"
    elif age is not None and age > limit:
        why = f"what is known of the cluster is {moments.spell(age)} old, more than {moments.spell(limit)}"
    elif ahead:
        why = f"the attempt's {ahead[0]} ({case.attempt[ahead[0]]}) is ahead of our clock"
    elif case.unready:
        why = case.unready
    else:
        return None
    return Verdict("hold", [why], safety={4, 14} if why == case.unready else set())


def row_1(case: Case) -> Verdict | None:
    job, state, reason = case.job, case.attempt.get("state"), case.attempt.get("reason")
    if job.get("mode") not in ("act", "advise"):
        why = f"the job is not opted in ({job.get('modeFrom') or 'nothing says so'})"
    elif job.get("neverTouch"):
        told = job.get("neverTouchWhy")
        why = (
            f"nobody but its owner may start it again: {told}" if told else "the job says that it must never be touched"
        )
    elif case.superseded:
        why = "there is a newer attempt of the job"
    elif state == "succeeded":
        why = "the job is done"
    elif reason in evidence.CANCELLED:
        why = f"somebody cancelled the job ({reason})"
    elif case.look.cls == "user-code" and case.look.wish == OBSERVE:
        why = f"somebody ended the job, as its log says ({case.look.id})"
    elif state in ("pending", "running") and not case.look.hung and not case.look.struck:
        why = f"the job is {state}"
    elif (state == "suspended" or job.get("suspended")) and reason not in evidence.HELD:
        why = "the job is suspended, and who did that lets it go on"
    else:
        return None
    return Verdict("none", [why])


def row_2(case: Case) -> Verdict | None:
    reason = case.attempt.get("reason")
    if reason not in evidence.TIME_LIMITS and TIME_LIMIT not in case.look.line:
        return None
    why = f"the job reached its time limit ({reason if reason in evidence.TIME_LIMITS else case.look.id})"
    if case.job.get("requeue"):
        return Verdict("requeue", [why, "it asks to be queued again then"])
    return Verdict("none", [why, "it does not ask to be queued again"])


def row_3(case: Case) -> Verdict | None:
    look = case.look
    if look.sick or not (look.disruption or look.cls == "preemption"):
        return None
    what = look.disruption or f"signature {look.id}"
    why = [f"others took its nodes ({what}), which is no failure of the job: back to the queue, at its old priority"]
    return Verdict("requeue", why, safety={11})


def row_4(case: Case) -> Verdict | None:
    look = case.look
    first = (case.attempt.get("firstFailure") or {}).get("node")
    if look.cls != "user-code" or look.wish != GIVEN_UP or look.oom or case.moved is not False:
        return None
    if first in look.fatal or look.confidence < case.policy.suspects.confidence:
        return None
    why = ["an error of the program that a restart does not cure, before it got anywhere", *_said(case)]
    return Verdict("giveBack", why, confidence=look.confidence)


def row_5(case: Case) -> Verdict | None:
    look = case.look
    if look.fatal:
        exclude = {**look.gone, **look.fatal}
        why = [f"{node}: {reason}" for node, reason in exclude.items()]
        why.append("the job starts again on other nodes and does not wait for the old ones")
        hardware = {node: ("gate" if node in look.fatal else "diagnose", reason) for node, reason in exclude.items()}
        return Verdict("restart", why, exclude, hardware, safety={1, 7})
    if not _names_hardware(look, ("emitter", "named-node")) or len(look.blamed) != 1 or look.confidence < STRONG:
        return None
    if look.mismatch or _blamed_elsewhere(case):
        return None
    node = look.blamed[0]
    why = [f"the log shows a fault of {node}", *_said(case)]
    reason = f"signature {look.id} in the log of {memory.job_of(case.attempt)}"
    return Verdict("restart", why, {node: reason}, {node: ("gate", reason)}, confidence=look.confidence, safety={1, 9})


def row_6(case: Case) -> Verdict | None:
    look = case.look
    if look.gone:
        why = [f"{node}: {reason}" for node, reason in look.gone.items()]
        why.append("nothing proves yet that it is off, so the old pods must be gone first, or that proven")
        hardware = {node: ("diagnose", reason) for node, reason in look.gone.items()}
        return Verdict("restart", why, dict(look.gone), hardware, confidence=0.8, safety={3, 4, 8})
    if look.hung or not (look.cls == "hardware" or (look.cls == "network" and _wants_away(look))):
        return None
    why = ["hardware is likely, but not proven", *_said(case)]
    safety = {1, 9}
    if look.mismatch:
        why.append("only new processes see a driver that was updated: jobs that run on that node are fine")
        safety.add(15)
    if look.kind == "clique":
        domains = sorted(case.attempt.get("domains") or ())
        why.append("it is one of the links within a domain, so other domains come first")
        return Verdict("restart", why, shun=domains, soft=True, confidence=look.confidence, safety=safety)
    suspects_ = look.blamed or sorted(look.weak)
    if not suspects_:
        return None
    return _without(case, suspects_, why, look.weak, safety)


def row_7(case: Case) -> Verdict | None:
    look = case.look
    if look.cls != "network" or look.hung:
        return None
    ends = dict.fromkeys(look.blamed, ("observe", f"an end of the connection that failed ({look.id})"))
    why = ["the network between nodes failed: again on the same nodes", *_said(case)]
    return Verdict("retry", why, hardware=ends, confidence=look.confidence or 0.5)


def row_8(case: Case) -> Verdict | None:
    if case.look.cls != "network" or case.look.hung:
        return None
    rule = case.policy.suspects
    before = [entry for entry in case.history.since(rule.window, case.now) if entry.cls == "network"]
    node = suspects.common(case.attempt, case.look.blamed, _not_this(case, before), rule.network, only_blamed=True)
    if not node:
        return None
    why = [f"the network failed again within {moments.spell(rule.window)}, and {node} was at it each time"]
    return _without(case, [node], [*why, *_said(case)], {}, {1})


def row_9(case: Case) -> Verdict | None:
    look = case.look
    if look.cls in ("user-code", "storage", "preemption") and not look.sick:
        return None
    domains = {(case.nodes.get(node) or {}).get("domain") for node in case.attempt.get("nodes") or ()}
    hit = [case.incidents[domain] for domain in sorted(domains & case.incidents.keys())]
    if not hit:
        return None
    why = [*(incident.why for incident in hit), "the job waits, no node is touched, and a person has to look"]
    return Verdict("hold", why, escalate=True, until=max(one.until for one in hit), confidence=0.8, safety={1, 14})


def row_10(case: Case) -> Verdict | None:
    look = case.look
    transient = look.cls == "transient-software" or (look.cls == "storage" and look.wish not in (OLDER, *_GRAVE))
    if look.hung or not transient:
        return None
    node = _shared(case)
    if node:
        count = case.policy.suspects.timeouts
        why = [f"the same failure ({look.id}) for at least {count} times, and {node} was at it each time", *_said(case)]
        why.append("no proof: the node is offered for certification, and stays open to others")
        return _without(case, [node], why, {}, {1})
    if _wants_away(look) and look.blamed:
        why = ["a disk or mount of the node" if look.cls == "storage" else "the others waited for it", *_said(case)]
        return _without(case, look.blamed, why, {}, {1, 9})
    what = "storage failed for the moment" if look.cls == "storage" else "software failed for the moment"
    why = [f"{what}, and no hardware evidence on its nodes: again on the same nodes", *_said(case)]
    return Verdict("retry", why, confidence=look.confidence or 0.5, safety={1, 14} if look.cls == "storage" else {1})


def row_11(case: Case) -> Verdict | None:
    look = case.look
    if not look.hung or not look.blamed:
        return None
    why = [_silence(case), f"and the others wait for what runs on {', '.join(look.blamed)}", *_said(case)]
    return _without(case, look.blamed, why, {}, {6, 9})


def row_12(case: Case) -> Verdict | None:
    if not case.look.hung:
        return None
    why = [_silence(case), "nothing names a rank", *_said(case)]
    hung = [entry for entry in case.before if entry.cls == HANG]
    if not hung or case.advanced:
        return Verdict("retry", why, confidence=0.4, safety={6, 9})
    half = _half(case, hung)
    why.append(f"the second time: without one half of the nodes both ran on ({', '.join(half)})")
    return Verdict(
        "restart",
        why,
        dict.fromkeys(half, "half of the nodes on which the job hung twice"),
        soft=True,
        confidence=0.4,
        safety={6, 9},
    )


def row_13(case: Case) -> Verdict | None:
    look = case.look
    checkpoint = case.attempt.get("checkpoint") or {}
    if look.wish != OLDER or not (checkpoint.get("complete") and checkpoint.get("torn")):
        return None
    why = [f"the newest checkpoint is broken, the one of step {checkpoint.get('step')} is whole", *_said(case)]
    return Verdict("restart", why, confidence=look.confidence)


def row_14(case: Case) -> Verdict | None:
    if case.look.cls != "storage" or case.look.wish not in _GRAVE:
        return None
    why = ["storage is full or cannot be read, and a restart would not change that", *_said(case)]
    return Verdict("hold", why, escalate=True, confidence=case.look.confidence, safety={14})


def row_15(case: Case) -> Verdict | None:
    look = case.look
    if not look.oom:
        return None
    node = (case.attempt.get("firstFailure") or {}).get("node")
    residue = {node: ("observe", "whether memory of an earlier job is still held")} if node else {}
    why = ["memory ran out", *_said(case)]
    if case.moved is False:
        return Verdict("giveBack", [*why, "before it got anywhere, so it would again"], hardware=residue)
    again = [entry for entry in case.before if entry.cls == look.cls and entry.id == look.id and entry.restarted]
    if again:
        return Verdict("giveBack", [*why, "and it did before: it was started again once"], hardware=residue)
    had = "after it had advanced" if case.moved else "and whether it had advanced is not known"
    return Verdict("retry", [*why, f"{had}: once more"], hardware=residue, confidence=0.5)


def row_17(case: Case) -> Verdict | None:
    look = case.look
    known = f"class {look.cls}" if look.cls != "unknown" else "what failed is not known"
    held = case.attempt.get("reason") in evidence.HELD
    if held:
        why = ["Slurm holds it after a prolog failed on a node, which Slurm drained: it is released"]
        return Verdict("requeue", why, confidence=0.5, safety={2})
    return Verdict("retry", [f"{known}, and nothing better than to try again", *_said(case)], confidence=0.3)


ROWS: tuple[tuple[str, Callable[[Case], Verdict | None]], ...] = (
    ("row-0", row_0),
    ("row-1", row_1),
    ("row-2", row_2),
    ("row-3", row_3),
    ("row-4", row_4),
    ("row-9", row_9),  # before the rows that leave single nodes out
    ("row-5", row_5),
    ("row-6", row_6),
    ("row-8", row_8),  # before the first time
    ("row-7", row_7),
    ("row-15", row_15),  # memory that ran out is no transient
    ("row-10", row_10),
    ("row-11", row_11),
    ("row-12", row_12),
    ("row-13", row_13),
    ("row-14", row_14),
    ("row-17", row_17),
)
_GRAVE = ("hold / fail to user", GIVEN_UP)


def judge(case: Case) -> Verdict:
    """What the first row says that holds. An attempt that is not opted in is never looked at further."""
    rows = ROWS if case.job.get("mode") in ("act", "advise") else ROWS[1:2]
    for name, row in rows:
        verdict = row(case)
        if verdict:
            verdict.rule = name
            return verdict
    raise AssertionError("the last row always holds")


def _said(case: Case) -> list[str]:
    """What the log said, as far as anything."""
    look = case.look
    exception = (case.attempt.get("signature") or {}).get("exception") or {}
    said = []
    if look.line:
        said.append(f"{look.id or 'log'}, {look.line}")
    if exception.get("file"):
        step = memory.step_of(case.attempt)
        at = f" at step {step}" if step is not None else ""
        said.append(f"{exception.get('type')} in {exception['file']}:{exception.get('line')}{at}")
    return said


def _names_hardware(look: Look, kinds: tuple[str, ...]) -> bool:
    return look.cls == "hardware" and look.kind in kinds and not look.hung


def _wants_away(look: Look) -> bool:
    return look.wish == ELSEWHERE and look.kind in ("emitter", "named-node", "named-rank")


def _blamed_elsewhere(case: Case) -> bool:
    """The same line blamed another node before: then it is the job that breaks, and would close node after node."""
    return any(
        entry.id == case.look.id and entry.blamed - set(case.look.blamed) for entry in case.history.of(case.attempt)
    )


def _without(case: Case, nodes: list[str], why: list[str], known: Mapping[str, str], safety: set[int]) -> Verdict:
    """Somewhere else for this job only; the nodes stay open and are offered for diagnosis."""
    reason = f"suspect of {memory.job_of(case.attempt)} ({case.look.id or case.look.cls})"
    exclude = {node: known.get(node, reason) for node in nodes}
    hardware = {node: ("diagnose", reason) for node, reason in exclude.items()}
    return Verdict("restart", why, exclude, hardware, soft=True, confidence=case.look.confidence or 0.5, safety=safety)


def _not_this(case: Case, entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.key != case.attempt["key"]]


def _shared(case: Case) -> str:
    """The one node that the same failure had in common lately, of this job and of others."""
    rule = case.policy.suspects
    if not case.look.id:
        return ""
    before = [
        entry
        for entry in case.history.since(rule.window, case.now)
        if (entry.id, entry.cls) == (case.look.id, case.cls)
    ]
    return suspects.common(case.attempt, case.look.blamed, _not_this(case, before), rule.timeouts)


def _silence(case: Case) -> str:
    progress = case.attempt.get("progress") or {}
    silence, limit = progress.get("silenceSeconds"), progress.get("limitSeconds")
    if silence is None:
        return "the job makes no progress"
    return f"no progress for {moments.spell(silence)}" + (f", more than {moments.spell(limit)}" if limit else "")


def _half(case: Case, hung: list[Entry]) -> list[str]:
    """Half of the nodes that the attempts that hung have in common."""
    own = set(case.attempt.get("nodes") or ())
    both = sorted(own & hung[-1].nodes) or sorted(own)
    return both[: max(1, len(both) // 2)]
