# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A decision about repairs carried out: documents and statuses written, gates handed over, and what is told of it.

    found = carry_out(decision, hands, "enforce")
    found["execute"]        attempts that are written down and have to be made now, by whoever called

Each step stands for itself: one that another run was quicker with, or that cannot be written, is told and left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_request as made
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_step
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import gate as gate_of
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.repair import Decision, taken_back
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.repair_step import Step
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, FleetError

LISTS = (
    "created",
    "repairs",
    "execute",
    "planned",
    "tickets",
    "pending",
    "verified",
    "failed_attempts",
    "validations",
    "released",
    "closed",
    "exhausted",
    "withdrawn",
    "waiting",
    "conflicts",
    "failures",
    "unknown_outcomes",
)
_ACTIONS = ("execute", "tickets")  # what is true only once it is written down
_SHUT = ("held", "unchanged")


@dataclass(frozen=True)
class Hands:
    """What reads and writes. `look` reads nodes of these names anew, facts by name; `hold` and `release` take gates and
    give results, {node, status, reason}; `newest_faults` reads again of when the newest fault of each node is;
    `crowded` whether more nodes are under repair than may be."""

    store: object
    look: Callable[[list[str]], Mapping[str, Mapping]]
    hold: Callable[[list[dict]], list[dict]]
    release: Callable[[list[dict]], list[dict]]
    newest_faults: Callable[[], Mapping[str, datetime]]
    crowded: Callable[[], bool]
    now: datetime


def carry_out(decision: Decision, hands: Hands, mode: str) -> dict:
    """{list: entries} of LISTS, `requests`: [{name, node, phase, rung, message}] that are not over, and `changed`.

    `mode`: enforce; dry_run, in which RepairRequests are made and nothing else; observe, in which nothing is.
    """
    found: dict = {name: [] for name in LISTS}
    found.update(changed=False, requests=[])
    for where, entry in decision.tells:
        if where != "created":
            found[where].append(entry)
    unmade = {doc["metadata"]["name"] for doc in decision.create if not _create(doc, hands, mode, found)}
    done = [step for step in decision.steps if step.name not in unmade and _write(step, hands, mode, found)]
    if mode == "enforce":
        _take_back(hands, found)
        try:
            _hand_over([step for step in done if step.handover], hands, found)
        except FleetError as error:  # what was requested has to be told all the same
            found["failures"].append({"request": "", "node": "", "why": f"not handed over to validation: {error}"})
    return found


def _create(doc: Mapping, hands: Hands, mode: str, found: dict) -> bool:
    """Whether it is there: nothing is begun for a request that nobody could take up later."""
    about = {"request": doc["metadata"]["name"], "node": doc["spec"]["node"]["name"]}
    try:
        if mode == "observe" or hands.store.create(doc):
            found["created"].append(about["request"])
            found["changed"] = True
    except Conflict as error:
        found["conflicts"].append({**about, "why": str(error)})
        return False
    except FleetError as error:
        found["failures"].append({**about, "why": str(error)})
        return False
    return True


def _write(step: Step, hands: Hands, mode: str, found: dict) -> bool:
    """Whether the step is as it shall be."""
    about = {"request": step.name, "node": step.node}
    if mode == "enforce" and step.written is not None:
        try:
            step.doc = hands.store.write_status(step.doc, step.written)
        except Conflict as error:
            found["conflicts"].append({**about, "why": f"another run was quicker: {error}"})
            return False
        except FleetError as error:
            found["failures"].append({**about, "why": str(error)})
            return False
        found["changed"] = True
    elif step.written is not None and mode == "observe":
        found["changed"] = True
    for where, entry in step.tells:
        if where in _ACTIONS and mode != "enforce":
            found["planned"].append({key: value for key, value in entry.items() if key != "key"})
        else:
            found[where].append({**entry, "doc": step.doc} if where == "execute" else entry)
    if step.status.get("phase", "Open") not in made.FINAL:
        said = {part: step.status.get(part) or "" for part in ("rung", "message")}
        phase = step.status.get("phase") or "Open"
        found["requests"].append({"name": step.name, "node": step.node, "phase": phase, **said})
    return True


def _take_back(hands: Hands, found: dict) -> None:
    """Two runs at once may each have found room. What is written down shows it: whoever sees too many gives way, so
    that never more are under repair than may be. Attempts that cannot be taken back count, and time out."""
    requested, found["execute"] = found["execute"], []
    try:
        over = bool(requested) and hands.crowded()
    except FleetError:  # not known; the attempts are written down by now
        over = True
    for entry in requested:
        doc = entry.pop("doc")
        if not over:
            found["execute"].append(entry)
            continue
        why = "another run filled the room meanwhile, or nobody can tell"
        try:
            hands.store.write_status(doc, taken_back(doc["status"], entry["key"]))
        except FleetError as error:
            why = f"{why}, and the attempt cannot be taken back: {error}"
        found["conflicts"].append({"request": entry["request"], "node": entry["node"], "why": why})


def _hand_over(steps: list[Step], hands: Hands, found: dict) -> None:
    """Validation's gate first, the fault's gate off after it, so that the node is never open in between."""
    ready, nodes = [], hands.look([step.node for step in steps]) if steps else {}
    for step in steps:
        about = {"request": step.name, "node": step.node}
        if not _stands(step.handover, nodes.get(step.node)):
            found["conflicts"].append(
                {**about, "why": "the node changed meanwhile; another run, or a person, was quicker"}
            )
            continue
        try:
            if not step.handover["made"]:
                found["changed"] = hands.store.create(step.handover["validation"]) or found["changed"]
            ready.append(step.handover)
        except FleetError as error:
            found["failures"].append({**about, "why": str(error)})
    holds = [
        {
            "node": each["node"],
            "uid": each["uid"],
            "bootId": each["bootId"],
            "owner": made.VALIDATION,
            "reason": f"repaired, to be validated: {each['validation']['spec']['cause']}",
            "evidence": each["evidence"],
        }
        for each in ready
    ]
    shut = [each for each, result in zip(ready, _gates(hands.hold, holds, found), strict=True) if result in _SHUT]
    opening = [each for each in shut if each["release"]]
    newest = hands.newest_faults() if opening else {}
    releases = []
    for each in opening:
        fault = newest.get(each["node"])
        if fault is not None and fault > hands.now:
            why = f"a fault came up at {fault.strftime(repair_step.STAMP)}, the gate stays"
            found["waiting"].append({"request": each["request"], "node": each["node"], "why": why})
            continue
        expected = {"owner": each["release"]["owner"], "evidence": each["release"]["evidence"]}
        releases.append({"node": each["node"], "uid": each["uid"], "bootId": each["bootId"], **expected})
    _gates(hands.release, releases, found)


def _stands(handover: Mapping, node: Mapping | None) -> bool:
    """Whether the node is still closed by the gate that it was closed by when that was decided. A run with an old view
    would else close a node that has been proven since."""
    if node is None or node["uid"] != handover["uid"]:
        return False
    gate = gate_of(node, handover["standing"]["owner"])
    return gate is not None and gate["readable"] and gate["evidence"] == handover["standing"]["evidence"]


def _gates(change: Callable[[list[dict]], list[dict]], wants: list[dict], found: dict) -> list[str]:
    results = change(wants) if wants else []
    for want, result in zip(wants, results, strict=True):
        found["changed"] = found["changed"] or result["status"] in ("held", "released")
        if result["status"] == "released":
            found["released"].append(result)
        elif result["status"] not in _SHUT:
            why = f"gate {want['owner']}: {result.get('reason') or result['status']}"
            found["failures"].append({"request": "", "node": want["node"], "why": why})
    return [result["status"] for result in results]


def lines(found: Mapping) -> list[str]:
    """What was done and what waits, one line each."""
    words = {
        "repairs": lambda one: f"to be drained for {one['rung']}" + (f" of {one['entity']}" if one["entity"] else ""),
        "execute": lambda one: f"{one['rung']} requested, attempt {one['attempt']}",
        "planned": lambda one: f"{one.get('rung') or 'ticket'} would be requested",
        "tickets": lambda one: f"a ticket is to be handed over: {one['why']}",
        "pending": lambda one: f"{one['rung']} is not verified yet: {one['why']}",
        "verified": lambda one: f"{one['rung']} verified: {one['why']}",
        "failed_attempts": lambda one: f"{one['rung']} did not help: {one['why']}",
        "validations": lambda one: f"to be validated by {one['name']}",
        "closed": lambda one: f"closed: {one['why']}",
        "exhausted": lambda one: f"EXHAUSTED, stays closed: {one['why']}",
        "withdrawn": lambda one: f"withdrawn: {one['why']}",
        "waiting": lambda one: f"waits: {one['why']}",
        "conflicts": lambda one: f"CONFLICT: {one['why']}",
        "failures": lambda one: f"FAILED: {one['why']}",
    }
    told = [f"{name}: a repair begins" for name in found["created"]]
    told += [f"{one['node']}: {say(one)}" for name, say in words.items() for one in found[name]]
    return told + [f"{one['request']}: no attempt {one['key']}" for one in found["unknown_outcomes"]]


_STATES = ("repairs", "planned", "tickets", "pending", "waiting", "requests")


def joined(first: Mapping, second: Mapping) -> dict:
    """Two steps of one call: what happened in both, and how it stands after the second."""
    events = {name: [*first[name], *second[name]] for name in LISTS}
    states = {name: second[name] for name in _STATES}
    return {**events, **states, "changed": first["changed"] or second["changed"]}


def line(found: Mapping, mode: str) -> str:
    """What was done in one line, as 'enforce: 1 to be drained; 2 wait'."""
    words = {
        "created": "made",
        "repairs": "to be drained",
        "execute": "requested",
        "planned": "would be requested",
        "tickets": "to be handed over",
        "pending": "not verified yet",
        "verified": "verified",
        "failed_attempts": "did not help",
        "closed": "closed",
        "exhausted": "EXHAUSTED",
        "withdrawn": "withdrawn",
        "waiting": "waiting",
        "conflicts": "left to another run",
        "failures": "FAILED",
    }
    parts = [f"{len(found[name])} {said}" for name, said in words.items() if found[name]]
    return f"{mode}: {'; '.join(parts) or 'nothing to repair'}"
