# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one attempt shows, gathered once: hardware evidence, blame, whether it hangs, and how its pods ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import culprits, moments
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Policy

# pods end so when somebody else wants the node or its capacity: not the job's fault, and not the node's
DISRUPTIONS = ("PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager", "DeletionByPodGC")
OF_NODES = ("DeletionByTaintManager", "DeletionByPodGC")  # pods of a node that is lost
SHUT_DOWN = ("Terminated", "NodeShutdown", "Shutdown")  # of a pod
PREEMPTED = ("Preempted", "PREEMPTED", "Evicted", "NodeMaintenance", "Drained", "Requeued")
TIME_LIMITS = ("DeadlineExceeded", "TIMEOUT", "TimeLimit", "DEADLINE")
CANCELLED = ("Cancelled", "CANCELLED", "Deleted", "UserCancelled")
LOST = ("NodeLost", "NODE_FAIL", "NodeFail", "NodeFailure", "NodeFailures", "BOOT_FAIL")
# Slurm: a prolog failed, the job is requeued but held until somebody releases it
HELD = ("launch_failed_requeued_held", "JobHoldMaxRequeue", "PrologFailed")
# a silence that means something together with a fault of a node: seconds, and times the usual step
STILL, STILL_STEPS = 60, 3
_OOM = re.compile(r"out of memory|oom[-_ ]?kill|OutOfMemory|Memory cgroup", re.IGNORECASE)
_MISMATCH = re.compile(r"driver/library version mismatch", re.IGNORECASE)


@dataclass(slots=True)
class Look:
    """What counts of it. `fatal`, `weak` and `gone` are {node: why}; `blamed` are nodes that the log names."""

    cls: str
    id: str
    confidence: float
    line: str
    fatal: dict[str, str] = field(default_factory=dict)
    weak: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)  # of the fatal: those that were told to be well since
    blamed: list[str] = field(default_factory=list)
    kind: str = "none"
    wish: str = ""
    oom: bool = False
    mismatch: bool = False
    hung: bool = False
    struck: bool = False  # it still runs as far as its scheduler knows, but a fault of a node has ended or stopped it
    disruption: str = ""
    lingering: list[str] = field(default_factory=list)

    @property
    def sick(self) -> dict[str, str]:
        """Nodes that are surely at fault, or not there any more."""
        return {**self.gone, **self.fatal}


def look(policy: Policy, attempt: Mapping, nodes: Mapping[str, Mapping]) -> Look:
    """`nodes` are the fleet's. Only evidence on the attempt's own nodes and from its own time counts."""
    signature = attempt.get("signature") or {}
    lines = signature.get("lines") or ()
    exception = signature.get("exception") or {}
    seen = Look(
        cls=signature.get("class") or "unknown",
        id=signature.get("id") or "",
        confidence=float(signature.get("confidence") or 0),
        line=_line(lines),
        blamed=culprits.nodes(attempt, policy.suspects.confidence),
        kind=(signature.get("blame") or {}).get("kind") or "none",
        wish=signature.get("action") or "",
        hung=attempt.get("state") == "hung" or bool((attempt.get("progress") or {}).get("hung")),
    )
    texts = [exception.get("type") or "", exception.get("message") or "", *(line.get("text") or "" for line in lines)]
    ranks = attempt.get("ranks") or ()
    seen.oom = any(rank.get("reason") == "OOMKilled" for rank in ranks) or any(map(_OOM.search, texts))
    seen.mismatch = any(map(_MISMATCH.search, texts))
    seen.disruption = next(
        (rank["disruption"] for rank in ranks if rank.get("disruption") in DISRUPTIONS or _shut_down(rank)),
        attempt.get("reason") if attempt.get("reason") in PREEMPTED else "",
    )
    seen.lingering = sorted(
        rank.get("pod") or str(rank.get("index"))
        for rank in ranks
        if rank.get("terminating") or rank.get("phase") in ("Running", "Pending", "Unknown")
    )
    _hardware(seen, attempt)
    _lost(seen, attempt, nodes)
    seen.struck = attempt.get("state") == "running" and _struck(seen, attempt)
    return seen


def _hardware(seen: Look, attempt: Mapping) -> None:
    start = moments.of(attempt.get("startedAt"))
    own = set(attempt.get("nodes") or ())
    lost = _lost_nodes(attempt)
    for node, reports in sorted((attempt.get("hardware") or {}).items()):
        if node not in own:
            continue
        for report in sorted(reports, key=lambda report: (report.get("at") or "", report.get("what") or "")):
            at = moments.of(report.get("at"))
            if report.get("before") or (at is not None and start is not None and at < start):
                continue
            at_text = f"at {report['at']}" if report.get("at") else "since then"
            why = f"{report.get('source') or 'evidence'}: {report.get('what') or 'fault'} {at_text}"
            if report.get("source") == "gone":
                # a node that went after its pods had ended did not end them
                kind = None if node not in lost else seen.fatal if report.get("fatal") else seen.gone
            else:
                kind = seen.fatal if report.get("fatal") else seen.weak
                if report.get("fatal") and report.get("over"):
                    seen.over.add(node)
            if kind is not None:
                kind.setdefault(node, why)


def _struck(seen: Look, attempt: Mapping) -> bool:
    """Pods that need each other all wait for one that a fault has ended; a job that gets on is left alone."""
    sick = seen.fatal.keys() - seen.over
    if not sick or not (attempt["job"].get("shape") or {}).get("gang"):
        return False
    progress = attempt.get("progress") or {}
    silence, step = progress.get("silenceSeconds"), progress.get("stepSeconds")
    if silence is not None and step and silence >= max(STILL, STILL_STEPS * step):
        return True
    return any(
        rank.get("node") in sick and (rank.get("phase") == "Failed" or rank.get("lost") or rank.get("exitCode"))
        for rank in attempt.get("ranks") or ()
    )


def _lost(seen: Look, attempt: Mapping, nodes: Mapping[str, Mapping]) -> None:
    """The scheduler says that a node was lost: those that do not answer. A clock alone does not make them broken."""
    if attempt.get("state") != "lost" and attempt.get("reason") not in LOST:
        return
    taken = sorted(
        {rank.get("node") or "" for rank in attempt.get("ranks") or () if rank.get("disruption") in OF_NODES}
    )
    for node in attempt.get("lostNodes") or taken or attempt.get("nodes") or ():
        facts = nodes.get(node)
        if node in seen.fatal or node in seen.gone:
            continue
        if facts is None and nodes:
            seen.gone[node] = "the node is lost, and not among the nodes that are known"
        elif facts and facts.get("ready") in ("Unknown", "False"):
            seen.gone[node] = f"the node does not answer (Ready is {facts['ready']})"


def _shut_down(rank: Mapping) -> bool:
    """By a node that was told to go; what a node ends for want of memory or disk has the same disruption."""
    return rank.get("disruption") == "TerminationByKubelet" and rank.get("reason") in SHUT_DOWN


def _lost_nodes(attempt: Mapping) -> set[str]:
    """Nodes whose pods did not end of themselves."""
    ended = ("Failed", "Succeeded", "Gone")  # gone: deleted when the job ended
    ranks = attempt.get("ranks") or ()
    found = {rank.get("node") for rank in ranks if rank.get("lost") or rank.get("phase") not in ended}
    unseen = set(attempt.get("nodes") or ()) - {rank.get("node") for rank in ranks}
    return {*found, *unseen, *(attempt.get("lostNodes") or ())}


def _line(lines) -> str:
    for line in lines:
        if line.get("text"):
            rank = f"rank {line['rank']}, " if line.get("rank") is not None else ""
            number = f"line {line['number']}" if line.get("number") is not None else "log"
            return f"{rank}{line.get('pod') or ''} {number}: {line['text'][:300]}".replace("  ", " ").strip()
    return ""
