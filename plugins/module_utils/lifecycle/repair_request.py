# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RepairRequests as they are made from gates, and the ticket that a node ends in when nothing helps. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget
from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import sha256
from ansible_collections.goodput.fleet.plugins.module_utils.records.schema import API_VERSION
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.healthevent import ACTIONS

QUARANTINE, VALIDATION = "quarantine", "validation"
CERTIFICATION = "certification"  # code of the fault of a node that did not pass its validation
UNKNOWN = "unknown"  # code of the fault of a gate that tells none
NO_REPAIR = "goodput.fleet/no-repair"  # annotation: hands off, whatever its value
FINAL = ("Closed", "Withdrawn")
_NOT_ASCII = re.compile(r"[^ -~]")


def machine(raw: Mapping) -> dict:
    """What a raw Node tells of the machine, for executors and for people: {address, providerId, machineId, systemUUID,
    noRepair (bool)}."""
    metadata, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    info = status.get("nodeInfo") or {}
    addresses = {each.get("type"): each.get("address") or "" for each in reversed(status.get("addresses") or ())}
    return {
        "address": addresses.get("InternalIP") or addresses.get("ExternalIP") or addresses.get("Hostname") or "",
        "providerId": spec.get("providerID") or "",
        "machineId": info.get("machineID") or "",
        "systemUUID": info.get("systemUUID") or "",
        "noRepair": NO_REPAIR in (metadata.get("annotations") or {}),
    }


def for_gate(node: Mapping, gate: Mapping, namespace: str) -> dict:
    """The RepairRequest of the fault that a gate stands for. One gate is one request, from when it closed the node
    until somebody takes it off, whatever else it comes to stand for."""
    fault = {
        "code": _code(gate.get("fault") or UNKNOWN),
        "action": gate.get("action") if gate.get("action") in ACTIONS else "",
        "entity": gate.get("entity") or "",
        "reason": (gate.get("reason") or "")[:512],
        "rule": gate.get("rule") or "",
    }
    return _make(node, gate, fault, [node["uid"], gate["owner"], since(gate)], namespace)


def for_failure(node: Mapping, gate: Mapping, validation: str, why: str, namespace: str) -> dict:
    """The RepairRequest of a node that did not pass a ValidationRequest."""
    fault = {
        "code": CERTIFICATION,
        "action": "",
        "entity": "",
        "reason": f"did not pass {validation}: {why}"[:512],
        "rule": validation,
    }
    return _make(node, gate, fault, [node["uid"], CERTIFICATION, validation], namespace)


def failed_validation(doc: Mapping) -> str:
    """Name of the ValidationRequest that the node did not pass, where that is the fault."""
    fault = doc["spec"]["fault"]
    return fault.get("rule") or "" if fault["code"] == CERTIFICATION else ""


def since(gate: Mapping) -> str:
    """When the gate was closed, as the request tells it."""
    moment = budget.moment(gate.get("since"))
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def of_gate(doc: Mapping, gate: Mapping | None) -> bool:
    """Whether it is this gate that the request is about, rather than a later one of the same owner. A request that does
    not tell since when is about whichever there is."""
    return gate is not None and (doc["spec"]["fault"].get("since") or since(gate)) == since(gate)


def owner(doc: Mapping) -> str:
    return doc["spec"].get("gate") or QUARANTINE


def key(doc: Mapping, rung: str, number: int) -> str:
    """What tells one attempt from every other, for executors and for receivers of tickets."""
    return f"{doc['metadata']['name']}/{rung}/{number}"


def ticket(doc: Mapping, status: Mapping, node: Mapping, why: str, key_: str) -> dict:
    """What people need who take over: {request, key, node, uid, bootId, address, domain, providerId, machineId,
    systemUUID, serials, fault, evidence, gate, attempts, why, who}."""
    spec, attempts = doc["spec"], status.get("attempts") or ()
    fault = {part: spec["fault"].get(part) or "" for part in ("code", "action", "entity", "reason", "rule", "since")}
    told = (
        "rung",
        "executor",
        "requestedAt",
        "executedAt",
        "executed",
        "verified",
        "validation",
        "validated",
        "detail",
    )
    return {
        "request": doc["metadata"]["name"],
        "key": key_,
        "node": spec["node"]["name"],
        "uid": spec["node"]["uid"],
        **{part: node.get(part) or "" for part in ("bootId", "address", "domain")},
        **{part: node.get(part) or "" for part in ("providerId", "machineId", "systemUUID")},
        "serials": list(status.get("serials") or ()),
        "fault": fault,
        "evidence": _evidence(spec, attempts),
        "gate": owner(doc),
        "attempts": [{part: each.get(part) for part in told} for each in attempts if each["rung"] != "ticket"],
        "why": why,
        "who": who(fault["action"]),
    }


def who(action: str) -> str:
    """Who has to act next."""
    asked = {
        "RUN_FIELDDIAG": "run the vendor's field diagnostics, then open a support case",
        "RUN_DCGMEUD": "run DCGM's extended utility diagnostics, then open a support case",
        "CONTACT_SUPPORT": "open a support case with the vendor",
        "REPLACE_VM": "have the provider replace the machine",
    }
    then = asked.get(action, "find what is broken and have it mended or replaced")
    return f"the operators of the hardware: {then}; the node stays closed until it has passed validation"


def _evidence(spec: Mapping, attempts: Iterable[Mapping]) -> list[str]:
    found = [spec.get("evidence") or "", *(each.get("evidence") or "" for each in attempts)]
    return list(dict.fromkeys(each for each in found if each))


def _make(node: Mapping, gate: Mapping, fault: dict, identity: list[str], namespace: str) -> dict:
    if since(gate):
        fault["since"] = since(gate)
    about = {part: node[part] for part in ("name", "uid", "bootId") if node[part]}
    number = sha256(identity).removeprefix("sha256:")[:8]
    metadata = {"name": f"{node['name'][:50].rstrip('-.')}-{number}"}
    if namespace:
        metadata["namespace"] = namespace
    if node.get("systemUUID"):
        metadata["annotations"] = {budget.MACHINE: node["systemUUID"]}
    return {
        "apiVersion": API_VERSION,
        "kind": "RepairRequest",
        "metadata": metadata,
        "spec": {"node": about, "gate": gate["owner"], "evidence": gate.get("evidence") or "", "fault": fault},
    }


def _code(text: str) -> str:
    return _NOT_ASCII.sub("?", text)[:253].strip() or UNKNOWN
