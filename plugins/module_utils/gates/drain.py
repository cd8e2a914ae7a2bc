# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drain nodes: look, plan, evict, and again until nothing is left or the time is up.

Every round decides from what is there now, so a run that was killed is simply run again. Nodes are never written to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_evict, drain_node
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_budgets import Budgets
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_look import WORKERS, Look, concerns_all, look
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_plan import (
    BLOCKED,
    DRAINED,
    DRAINING,
    FAILED,
    WAITING,
    Attempt,
    NodePlan,
    Situation,
    Step,
    plan,
    stay_reason,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_policy import EVICT
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied

FIRST_PAUSE = 0.5  # seconds; most pods end well before the interval
ROUND = 10.0  # seconds of requests after which the nodes are looked at again: somebody may have opened one


@dataclass
class _Node:
    """What is known of one node over the rounds."""

    name: str
    uid: str = ""
    seen: set[str] | None = None  # uids of its pods at the first look
    attempts: dict[str, Attempt] = field(default_factory=dict)
    asked: dict[str, Step] = field(default_factory=dict)  # the last request for each pod uid
    returned: dict[tuple, int] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    plan: NodePlan = field(default_factory=lambda: NodePlan(""))
    since: float = 0.0
    failure: str = ""
    code: str = ""
    ended: bool = False
    deleted: bool = False
    gone: set[str] = field(default_factory=set)  # uids that left after an answer was lost


class Drain:
    """One run. `client` reads; `writer` must not repeat requests by itself: rounds do, within the time."""

    def __init__(
        self,
        client,
        writer,
        request: Request,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._client, self._writer, self._request = client, writer, request
        self._clock, self._sleep = clock, sleep
        self._nodes = [_Node(name) for name in dict.fromkeys(request.nodes)]
        self._quick = FIRST_PAUSE

    def preview(self) -> list[dict]:
        """What run() would do in its first round. Nothing is written."""
        self._began = self._clock()
        self._observe()
        return [self._result(node, self._expected(node)) for node in self._nodes]

    def run(self) -> tuple[list[dict], float]:
        """(results by node, seconds it took). A result: see _result."""
        self._began = self._clock()
        end = self._began + (self._request.timeout if self._request.wait else 0)
        while True:
            self._observe()
            steps = [(node, step) for node in self._nodes if not node.ended for step in node.plan.steps]
            all_asked = self._act(steps, end)
            now = self._clock()
            if not steps and (now >= end or all(self._is_settled(node) for node in self._nodes)):
                break
            if now >= end:  # what the last requests did is looked at, without new ones
                self._observe()
                break
            if all_asked:
                self._sleep(min(self._pause(now), end - now))
        return [self._result(node, self._done(node)) for node in self._nodes], self._clock() - self._began

    # ---- look and decide ----

    def _observe(self) -> None:
        nodes = [node for node in self._nodes if not node.ended]
        seen = look(self._client, [node.name for node in nodes], self._request.devices, self._may_move)
        if not any(node.uid for node in self._nodes):
            for error in filter(concerns_all, seen.errors.values()):
                raise error  # from the start; one that comes later may pass
        budgets = Budgets(seen.budgets)
        for node in nodes:
            self._take_in(node, seen, budgets)
        self._budgets_error = seen.budgets_error

    def _may_move(self, pod) -> bool:
        policy = self._request.policies.match(pod.namespace, pod.labels)
        return policy.action == EVICT and not stay_reason(pod, policy, self._request.gpus)

    def _take_in(self, node: _Node, seen: Look, budgets: Budgets) -> None:
        now = self._clock()
        if error := seen.errors.get(node.name):
            node.failure, node.code = str(error), error.problems[0].code
            node.ended = isinstance(error, Denied)
            node.plan.steps = []
            return
        node.failure = node.code = ""
        raw = seen.nodes[node.name]
        pods = seen.pods[node.name]
        self._check_node(node, raw)
        if node.failure:
            node.ended, node.plan.steps = True, []
            return
        if node.seen is None:
            node.seen = {pod.uid for pod in pods}
        there = {pod.uid: pod for pod in pods}
        node.gone |= {
            uid
            for uid, attempt in node.attempts.items()
            if attempt.unsure and (uid not in there or there[uid].ends is not None)
        }
        node.since = drain_node.since(raw, self._request.owner, self._began) if raw else self._began
        situation = Situation(
            node=node.name,
            now=now,
            since=node.since,
            ready=bool(raw) and drain_node.is_ready(raw),
            gpus=self._request.gpus,
            attempts=node.attempts,
            returned=node.returned,
        )
        node.plan = plan(pods, budgets, self._request.policies, situation)
        if raw is None:
            node.plan.steps = []  # what is left is the garbage collector's
        if not node.before:
            node.before = [entry["pod"] for entry in node.plan.remaining]

    def _check_node(self, node: _Node, raw: dict | None) -> None:
        if raw is None:
            if not node.uid:
                node.failure, node.code = "there is no such node", "not-found"
            node.deleted = True
            return
        if node.uid and drain_node.identity(raw) != node.uid:
            node.failure = "the node was deleted and made anew while it was drained; look whether it is still to go"
            node.code = "replaced"
            return
        first, node.uid = not node.uid, drain_node.identity(raw)
        if self._request.allow_open and self._request.owner is None:
            return
        why = drain_node.is_open(raw, self._request.owner)
        if why and first:
            node.failure = f"{why}, so pods would come back; hold it with node_gate first"
        elif why:
            node.failure = f"somebody opened the node while it was drained ({why}); nothing more was evicted"
        node.code = "open" if why else ""

    def _is_settled(self, node: _Node) -> bool:
        if node.ended or (not node.failure and node.plan.status == DRAINED):
            return True
        states = {entry["state"] for entry in node.plan.remaining}
        return not node.failure and states == {FAILED}

    def _pause(self, now: float) -> float:
        """The interval; less where a request is due earlier, and at first after pods were told to end."""
        quick, self._quick = self._quick, self._quick * 2
        due = [
            attempt.next_at - now
            for node in self._nodes
            for attempt in node.attempts.values()
            if not attempt.accepted and attempt.next_at > now
        ]
        return max(0.05, min([self._request.interval, quick, *due]))

    # ---- act ----

    def _act(self, steps: list[tuple[_Node, Step]], end: float) -> bool:
        """Ask for as many as there is time for in one round. Whether that was all."""
        pdbs = {entry["pod"]: entry["pdb"] for node in self._nodes for entry in node.plan.remaining}
        # without waiting there is one round only; and one with hardly any time still begins
        until = min(max(end, self._began + 1), self._clock() + ROUND) if self._request.wait else float("inf")

        def ask(item: tuple[_Node, Step]) -> Attempt | None:
            node, step = item
            now = self._clock()
            if now > until:
                return None
            before = node.attempts.get(step.pod.uid)
            return drain_evict.attempt(
                self._writer, step, before, pdbs.get(step.pod.key, []), now, self._request.interval
            )

        all_asked = True
        with ThreadPoolExecutor(WORKERS) as pool:
            for (node, step), made in zip(steps, pool.map(ask, steps), strict=True):
                if made is None:
                    all_asked = False
                else:
                    self._note(node, step, made)
        return all_asked

    def _note(self, node: _Node, step: Step, made: Attempt) -> None:
        uid, before = step.pod.uid, node.attempts.get(step.pod.uid)
        if made.accepted or not made.tries:
            self._quick = FIRST_PAUSE
        if made.accepted and node.seen is not None and uid not in node.seen:
            key = (step.pod.namespace, step.pod.owner)
            node.returned[key] = node.returned.get(key, 0) + 1
        if before and before.accepted and not made.accepted:
            made.accepted = True  # its eviction stands, whatever became of cutting its grace short
        else:
            node.asked[uid] = step
        node.attempts[uid] = made

    # ---- tell ----

    def _done(self, node: _Node) -> list[Step]:
        return [step for uid, step in node.asked.items() if node.attempts[uid].accepted or uid in node.gone]

    def _expected(self, node: _Node) -> list[Step]:
        blocked = {entry["pod"] for entry in node.plan.remaining if entry["state"] == BLOCKED}
        return [step for step in node.plan.steps if step.pod.key not in blocked]

    def _result(self, node: _Node, steps: list[Step]) -> dict:
        """{node, status, reason, code, changed, evicted, forced, remaining, stays, before}."""
        status = FAILED if node.failure else node.plan.status
        reason = node.failure
        if not reason and node.deleted:
            reason = "the node was deleted meanwhile"
        if not reason and self._budgets_error and status == BLOCKED:
            reason = f"which PodDisruptionBudgets there are is not known: {self._budgets_error}"
        return {
            "node": node.name,
            "status": status,
            "reason": reason,
            "code": node.code,
            "changed": bool(steps),
            "evicted": sorted(step.pod.key for step in steps if not step.force),
            "forced": sorted(step.pod.key for step in steps if step.force),
            "remaining": node.plan.remaining,
            "stays": node.plan.stays,
            "before": node.before,
        }


def counts(results: list[dict]) -> dict[str, int]:
    tally = {"total": len(results), **dict.fromkeys((DRAINED, DRAINING, WAITING, BLOCKED, FAILED), 0)}
    for result in results:
        tally[result["status"]] += 1
    return tally


def diff(results: list[dict]) -> dict:
    """The pods that count before and after, by node, where something was moved."""
    changed = [result for result in results if result["changed"]]
    gone = {result["node"]: {*result["evicted"], *result["forced"]} for result in changed}
    return {
        "before": {result["node"]: result["before"] for result in changed},
        "after": {
            result["node"]: [pod for pod in result["before"] if pod not in gone[result["node"]]] for result in changed
        },
    }


def describe(results: list[dict], nodes: int = 10, pods: int = 3) -> str:
    """What is not drained, for a message: bounded, worst first."""
    order = (FAILED, BLOCKED, DRAINING)
    left = [result for result in results if result["status"] != DRAINED]
    left.sort(key=lambda result: order.index(result["status"]) if result["status"] in order else len(order))
    lines = [f"{len(left)} of {len(results)} nodes are not drained"]
    for result in left[:nodes]:
        shown = [f"{entry['pod']} ({entry['why']})" for entry in _worst_first(result["remaining"])[:pods]]
        more = len(result["remaining"]) - len(shown)
        text = "; ".join(part for part in (result["reason"], *shown) if part) + (f"; {more} more" if more > 0 else "")
        lines.append(f"{result['node']}: {result['status']}: {text}")
    if len(left) > nodes:
        lines.append(f"and {len(left) - nodes} more nodes")
    return "\n".join(lines)


def _worst_first(remaining: list[dict]) -> list[dict]:
    order = {FAILED: 0, BLOCKED: 1}
    return sorted(remaining, key=lambda entry: order.get(entry["state"], 2))
