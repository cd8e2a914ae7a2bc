# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of the repair of all nodes: what to do now, and what every RepairRequest's status shall be. Pure.

    decision = decide(nodes, ledger, repairs, validations, outcomes, drained, policy, now)
    decision.create        RepairRequests to be made: of gates, and of failed validations, that nobody repairs yet
    decision.steps         one for every request that is not over: its status, and what follows once that is written

Level-triggered: nodes, gates and statuses say where a repair stands, and a run may be killed anywhere. Whoever cannot
write a step's status does nothing of that step: somebody else was quicker. An attempt is in the status before it is
made, so that it is never made twice and always counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    budget,
    repair_next,
    repair_standing,
    repair_validation,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_request as made
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import gate as gate_of
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.repair_step import (
    Context,
    Policy,
    Step,
    newest_faults,
    phase,
)


@dataclass
class Decision:
    """`tells`: of nodes without a request, as those of a step."""

    create: list[dict]
    steps: list[Step]
    tells: list[tuple[str, dict]]


def decide(
    nodes: Mapping[str, Mapping],
    ledger: Iterable[Mapping],
    repairs: Iterable[Mapping],
    validations: Iterable[Mapping],
    outcomes: Iterable[Mapping],
    drained: Iterable[Mapping],
    policy: Policy,
    now: datetime,
    only: Iterable[str] = (),
) -> Decision:
    """`nodes`: facts by name, with what repair_request.machine() tells; `ledger`: entries of the breaker's; `repairs`
    and `validations`: the documents with their statuses; `outcomes`: {request, rung, key, executed, verified, detail,
    serials, executor, reference, at}; `drained`: {node, scope: gpu|node, entity}; `now` in UTC; `only`: names of the
    nodes to work on, all where there are none."""
    docs = sorted(repairs, key=lambda doc: (doc["spec"]["fault"].get("since") or "", doc["metadata"]["name"]))
    context = Context(
        nodes=nodes,
        validations={doc["metadata"]["name"]: doc for doc in validations},
        outcomes={(each.get("request"), each.get("key")): each for each in outcomes},
        drained={each["node"]: each for each in drained},
        newest=newest_faults(ledger, now),
        history=budget.history(docs, budget.machines(nodes.values())),
        policy=policy,
        now=now,
        proven=budget.proven(docs),
    )
    chosen = set(only)
    mine = [doc for doc in docs if not chosen or doc["spec"]["node"]["name"] in chosen]
    steps = [repair_standing.look(context, doc) for doc in mine if phase(doc) not in made.FINAL]
    tells: list[tuple[str, dict]] = []
    create = [*_for_gates(context, docs, tells), *_for_failures(context, docs, steps)]
    if chosen:
        create = [doc for doc in create if doc["spec"]["node"]["name"] in chosen]
        strange = chosen - nodes.keys() - {step.node for step in steps}
        tells = [(where, one) for where, one in tells if one["node"] in chosen]
        tells += [("waiting", _about(name, "there is no such node")) for name in sorted(strange)]
    tells += [("created", doc["metadata"]["name"]) for doc in create]
    steps += [Step(doc, {}, due=True, fresh=True) for doc in create]
    room = _room(context, docs, steps)
    ready = [step for step in steps if step.due]
    ready.sort(key=lambda step: (not repair_next.is_drained(context, step), step.fault.get("since") or "", step.name))
    for step in ready:
        repair_next.go_on(context, step, room)
    known = {(doc["metadata"]["name"], each["key"]) for doc in docs for each in _attempts(doc)}
    tells += [("unknown_outcomes", {"request": one, "key": key}) for one, key in context.outcomes.keys() - known]
    return Decision(create, steps, tells)


def crowded(docs: Iterable[Mapping], nodes: Mapping[str, Mapping], policy: Policy, now: datetime) -> bool:
    """Whether more nodes are under repair than may be, by the documents as they are."""
    context = Context({**nodes}, {}, {}, {}, {}, {}, policy, now)
    return _room(context, docs).over


def _room(context: Context, docs: Iterable[Mapping], steps: Iterable[Step] = ()) -> budget.Room:
    """Who is under repair by the statuses of all documents, those of `steps` as they will be."""
    statuses = {step.name: step.status for step in steps}
    room = budget.Room(context.policy.bounds)
    for doc in docs:
        now = {**doc, "status": statuses.get(doc["metadata"]["name"]) or doc.get("status") or {}}
        open_ = [each for uid in budget.history([now]).values() for each in uid if each.open]
        if any(context.at_work(each) for each in open_) or (open_ and phase(now) not in made.FINAL):
            name = doc["spec"]["node"]["name"]
            room.take(name, (context.nodes.get(name) or {}).get("domain") or "")
    return room


def taken_back(status: Mapping, key: str) -> dict:
    """The status without an attempt that nobody began: others were quicker to fill the room."""
    attempts = [each for each in status["attempts"] if each["key"] != key]
    return {**status, "phase": "Open", "attempts": attempts, "message": "no room: other nodes are under repair"}


def _for_gates(context: Context, docs: list[Mapping], tells: list[tuple[str, dict]]) -> list[dict]:
    known = {doc["metadata"]["name"]: doc for doc in docs}
    under_way: dict[str, list[Mapping]] = {}
    for doc in docs:
        if phase(doc) not in made.FINAL and made.owner(doc) == made.QUARANTINE:
            under_way.setdefault(doc["spec"]["node"]["uid"], []).append(doc)
    found = []
    for name in sorted(context.nodes):
        node = context.nodes[name]
        gate = gate_of(node, made.QUARANTINE)
        if gate is None:
            continue
        doc, why = {}, gate.get("problem") or "" if not gate["readable"] else ""
        if gate["readable"]:
            doc = made.for_gate(node, gate, context.policy.namespace)
            there = known.get(doc["metadata"]["name"])
            if there is None and any(made.of_gate(each, gate) for each in under_way.get(node["uid"], ())):
                continue  # by hand, under a name of its own
            if there is None and not node["noRepair"]:
                found.append(doc)
            elif there is None:
                why = f"annotation {made.NO_REPAIR}"
            elif phase(there) in made.FINAL:
                why = f"its request is {phase(there)}; delete it to begin anew"
        if why:
            tells.append(("waiting", _about(name, why, doc["metadata"]["name"] if doc else "")))
    return found


def _for_failures(context: Context, docs: list[Mapping], steps: list[Step]) -> list[dict]:
    """Of nodes that failed a validation, which their gate still stands for, while no repair is under way."""
    known = {doc["metadata"]["name"] for doc in docs}
    at_work = {step.uid for step in steps if step.status["phase"] not in made.FINAL}
    found: dict[str, dict] = {}
    for name, request in sorted(context.validations.items()):
        for entry in (request.get("status") or {}).get("nodes") or ():
            node = context.nodes.get(entry["name"])
            if entry["phase"] != "Failed" or node is None or entry.get("uid") != node["uid"] or node["uid"] in at_work:
                continue
            gate = gate_of(node, made.VALIDATION)
            if node["noRepair"] or gate is None or gate_of(node, made.QUARANTINE) is not None:
                continue
            doc = made.for_failure(node, gate, name, entry.get("why") or "", context.policy.namespace)
            if doc["metadata"]["name"] not in known and repair_validation.stands_for(gate, request):
                found.setdefault(node["uid"], doc)
    return list(found.values())


def _about(node: str, why: str, request: str = "") -> dict:
    return {"request": request, "node": node, "why": why}


def _attempts(doc: Mapping) -> list[dict]:
    return (doc.get("status") or {}).get("attempts") or []
