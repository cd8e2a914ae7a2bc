# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a step of repair works with, and what it comes to for one RepairRequest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget, ladder
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_request as made
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import gate as gate_of

STAMP = "%Y-%m-%dT%H:%M:%SZ"
MESSAGE_LIMIT = 1024
AHEAD = timedelta(minutes=10)  # clocks differ by that much; a fault that is more ahead is a wrong clock's
TIMEOUTS = {"reset": 900, "reboot": 3600, "replace": 7200}


@dataclass(frozen=True)
class Policy:
    """`executors`: rung -> name of what carries it out; `timeouts` in seconds; `tests`, `options` and `retries` of the
    ValidationRequest after a repair; `namespace` of what is made, "" for none."""

    tests: list
    bounds: budget.Bounds = field(default_factory=budget.Bounds)
    executors: Mapping[str, str] = field(default_factory=lambda: {ladder.TICKET: ""})
    timeouts: Mapping[str, int] = field(default_factory=lambda: TIMEOUTS)
    options: Mapping | None = None
    retries: int = 1
    on_validation_failure: str = ladder.TICKET
    namespace: str = ""


@dataclass
class Step:
    """A request with its new status.

    `tells`: (list of the result, entry), true once the status is written. `handover`: what puts the node under
    validation and opens its quarantine gate: {request, node, uid, bootId, standing ({owner, evidence} of the gate that
    holds it), validation (document), made (whether that is there), evidence (of the validation gate), release (gate or
    None)}. `due`: it wants its next rung. `fresh`: it is not made yet.
    """

    doc: dict
    status: dict
    tells: list[tuple[str, dict]] = field(default_factory=list)
    handover: dict | None = None
    due: bool = False
    fresh: bool = False

    @property
    def name(self) -> str:
        return self.doc["metadata"]["name"]

    @property
    def node(self) -> str:
        return self.doc["spec"]["node"]["name"]

    @property
    def uid(self) -> str:
        return self.doc["spec"]["node"]["uid"]

    @property
    def fault(self) -> Mapping:
        return self.doc["spec"]["fault"]

    @property
    def attempts(self) -> list[dict]:
        return self.status.get("attempts") or []

    @property
    def written(self) -> dict | None:
        """The status to be written, None where it is there."""
        return None if self.fresh or self.status == (self.doc.get("status") or {}) else self.status

    def tell(self, where: str, **entry: object) -> None:
        self.tells.append((where, {"request": self.name, "node": self.node, **entry}))

    def say(self, message: str) -> None:
        self.status["message"] = message[:MESSAGE_LIMIT]

    def end(self, phase: str, why: str, at: str, **more: object) -> None:
        self.due = False
        self.status.update(phase=phase, finishedAt=at)
        self.say(why)
        self.tell(phase.lower(), why=self.status["message"], **more)


@dataclass
class Context:
    """Everything that is known: `nodes` by name, `validations` by name, `outcomes` by request and key, `drained` by
    node, `newest` fault by node, `history` of attempts by uid; `chosen` are the uids of machines that something is
    begun on in this step; `proven` is what budget.proven() tells."""

    nodes: Mapping[str, Mapping]
    validations: Mapping[str, Mapping]
    outcomes: Mapping[tuple, Mapping]
    drained: Mapping[str, Mapping]
    newest: Mapping[str, datetime]
    history: Mapping[str, list[budget.Attempt]]
    policy: Policy
    now: datetime
    chosen: set[str] = field(default_factory=set)
    proven: Mapping[tuple[str, str], list[datetime]] = field(default_factory=dict)

    @property
    def stamp(self) -> str:
        return self.now.strftime(STAMP)

    def outcome(self, step: Step, attempt: Mapping) -> Mapping:
        return self.outcomes.get((step.name, attempt["key"]), {})

    def fault_after(self, step: Step, attempt: Mapping, at: str | None) -> str:
        """What came up on the node since, "" for nothing."""
        gate = gate_of(self.nodes[step.node], made.owner(step.doc))
        other = made.of_gate(step.doc, gate) and gate["evidence"] != (attempt.get("evidence") or "")
        if other and gate["owner"] != made.VALIDATION:
            return f"the gate stands for {gate['evidence'] or 'nothing told'} now"
        bound = budget.moment(at) or budget.moment(attempt.get("requestedAt"))
        newest = self.newest.get(step.node)
        return f"seen at {newest.strftime(STAMP)}" if newest and (bound is None or newest > bound) else ""

    def at_work(self, attempt: budget.Attempt) -> bool:
        """Whether it may still be under way, even if its request is over."""
        if not attempt.open or budget.is_to_come(attempt.at, self.now):
            return False
        return attempt.at > self.now - timedelta(seconds=self.policy.timeouts[attempt.rung])


def newest_faults(ledger: Iterable[Mapping], now: datetime) -> dict[str, datetime]:
    """By node: of when the newest fault is that the quarantine gate was closed for, or stood for. Entries are those of
    the breaker's ledger, {node, owner, at, seen?}."""
    newest: dict[str, datetime] = {}
    for entry in ledger:
        times = [budget.moment(entry.get(each)) for each in ("at", "seen")] if entry["owner"] == made.QUARANTINE else []
        for at in times:
            if at is not None and at <= now + AHEAD:
                newest[entry["node"]] = max(at, newest.get(entry["node"], at))
    return newest


def phase(doc: Mapping) -> str:
    return (doc.get("status") or {}).get("phase") or "Open"


def open_attempt(status: Mapping) -> dict | None:
    """The last attempt, where nobody knows yet what came of it."""
    attempts = status.get("attempts") or []
    return attempts[-1] if attempts and budget.is_open(attempts[-1]) else None
