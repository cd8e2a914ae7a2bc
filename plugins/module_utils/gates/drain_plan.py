# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain does with each pod of a node now, and why. Pure: pods, budgets, policies and the time in, a plan out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_budgets import Budgets
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_gpus import in_scope
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_pods import Pod
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_policy import (
    EVICT,
    LEAVE,
    WAIT,
    Policies,
    Policy,
)

# states of a pod that remains
WAITING, EVICTING, TERMINATING, BLOCKED, FAILED = "waiting", "evicting", "terminating", "blocked", "failed"
# states of a node, beside FAILED, BLOCKED and WAITING
DRAINED, DRAINING = "drained", "draining"
RETURNS = 2  # pods of one controller that are evicted after they came onto a node that is being drained


@dataclass
class Attempt:
    """What became of the requests to evict one pod (by its uid)."""

    tries: int = 0  # requests that were answered otherwise than by a conflict
    conflicts: int = 0
    accepted: bool = False
    unsure: bool = False  # the answer was lost
    final: bool = False  # asking again is of no use
    blocked: bool = False  # a budget or an admission rule says no
    message: str = ""
    next_at: float = 0.0  # Unix time before which it is not asked again


@dataclass(frozen=True)
class Step:
    """One request: an eviction, or with `force` a deletion. `grace` None: the pod's own."""

    pod: Pod
    force: bool
    grace: int | None


@dataclass
class NodePlan:
    node: str
    steps: list[Step] = field(default_factory=list)
    remaining: list[dict] = field(default_factory=list)  # {pod, state, why, pdb, policy}
    stays: list[dict] = field(default_factory=list)  # {pod, why}

    @property
    def status(self) -> str:
        states = {entry["state"] for entry in self.remaining}
        if not states:
            return DRAINED
        for state in (FAILED, BLOCKED):
            if state in states:
                return state
        return DRAINING if states & {EVICTING, TERMINATING} else WAITING


@dataclass
class Situation:
    """What the plan for one node rests on, beside its pods. Times are Unix seconds."""

    node: str
    now: float
    since: float  # what deadlines count from
    ready: bool = True
    gpus: list[str] | None = None  # only pods that use one of these
    attempts: dict[str, Attempt] = field(default_factory=dict)  # by pod uid
    returned: dict[tuple, int] = field(default_factory=dict)  # (namespace, owner): evicted after they came back


def plan(pods: Iterable[Pod], budgets: Budgets, policies: Policies, at: Situation) -> NodePlan:
    """The plan for one node. Budgets are used up in the order of the pods' names."""
    result = NodePlan(at.node)
    for pod in sorted(pods, key=lambda pod: pod.key):
        if pod.finished:
            continue
        policy = policies.match(pod.namespace, pod.labels)
        why = stay_reason(pod, policy, at.gpus)
        if why:
            result.stays.append({"pod": pod.key, "why": why})
            continue
        state, why, step = _decide(pod, policy, budgets, at)
        entry = {"pod": pod.key, "state": state, "why": why, "pdb": budgets.names(pod), "policy": policy.name}
        result.remaining.append(entry)
        if step:
            result.steps.append(step)
    return result


def stay_reason(pod: Pod, policy: Policy, gpus: list[str] | None) -> str:
    """Why the drain lets a pod be, or ""."""
    if pod.mirror:
        why = "mirror pod of the kubelet"
    elif pod.owner[0] == "DaemonSet":
        why = f"pod of DaemonSet {pod.owner[1]}"
    elif not in_scope(pod.gpus, gpus):
        return "uses none of the GPUs"
    elif policy.action == LEAVE:
        why = f"{policy.name} says leave"
    else:
        return ""
    # whoever resets the GPU has to end these himself
    return why + ("; it uses the GPU" if gpus is not None and in_scope(pod.gpus, gpus) else "")


def _decide(pod: Pod, policy: Policy, budgets: Budgets, at: Situation) -> tuple[str, str, Step | None]:
    """(state, why, what to ask of the API server now)."""
    if pod.ends is not None:
        return _terminating(pod, policy, at)
    if policy.action == WAIT:
        why = f"{policy.name} says wait for its completion"
        if pod.endless:
            why += ", and by itself it never ends (restartPolicy Always); action: evict moves it"
        return WAITING, why, None
    due = at.since + policy.after
    if at.now < due:
        return WAITING, f"{policy.name} evicts it at {moment(due)}", None
    if not any(pod.owner) and not policy.unmanaged:
        return BLOCKED, "no controller would make it anew; unmanaged: true evicts it all the same", None
    if pod.local and not policy.local_data:
        kept = ", ".join(pod.local)
        return BLOCKED, f"its local data would be lost (volume {kept}); local_data: true evicts it all the same", None
    if at.returned.get((pod.namespace, pod.owner), 0) >= RETURNS:
        owner = " ".join(pod.owner[:2])
        return BLOCKED, f"{owner} puts its pods onto this node again and again: they tolerate that it is closed", None
    return _evict(pod, policy, budgets, at, due)


def _evict(pod: Pod, policy: Policy, budgets: Budgets, at: Situation, due: float) -> tuple[str, str, Step | None]:
    attempt = at.attempts.get(pod.uid) or Attempt()
    forbidden = budgets.forbids(pod)
    if attempt.final:
        return FAILED, attempt.message, None
    # the eviction is always asked for first, however late it is
    if attempt.tries and attempt.blocked and policy.force_after is not None and at.now >= due + policy.force_after:
        why = f"{attempt.message or forbidden}; {policy.name} deletes it by force now"
        return EVICTING, why, Step(pod, force=True, grace=policy.force_grace_seconds)
    step = Step(pod, force=False, grace=policy.grace_seconds) if at.now >= attempt.next_at else None
    if attempt.tries:
        return (BLOCKED if attempt.blocked else EVICTING), attempt.message, step
    return (BLOCKED, forbidden, step) if forbidden else (EVICTING, "to be evicted", step)


def _terminating(pod: Pod, policy: Policy, at: Situation) -> tuple[str, str, Step | None]:
    """It ends on its own. Its grace is cut short, or its record removed, only as the policy says, pod by pod."""
    if at.now < pod.ends:
        why = f"is ending, until {moment(pod.ends)} at the latest"
    else:
        why = f"should have ended at {moment(pod.ends)}"
        if not at.ready:
            why += "; its node is not ready, so nothing tells whether it still runs"
    grace = policy.force_grace_seconds
    if policy.action != EVICT or policy.force_after is None or grace is None:
        return TERMINATING, why, None
    overdue = at.now >= max(at.since + policy.after, pod.begins) + policy.force_after
    useful = at.now >= pod.ends if grace == 0 else at.now + grace < pod.ends
    if not (overdue and useful):
        return TERMINATING, why, None
    attempt = at.attempts.get(pod.uid) or Attempt()
    if attempt.final:
        return FAILED, attempt.message, None
    step = Step(pod, force=True, grace=grace) if at.now >= attempt.next_at else None
    return TERMINATING, f"{why}; {policy.name} ends it by force", step


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
