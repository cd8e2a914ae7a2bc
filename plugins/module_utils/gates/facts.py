# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A raw Node as rules and reports see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_
from ansible_collections.goodput.fleet.plugins.module_utils.gates.external import external, is_cordoned


def boot_id(node: Mapping) -> str:
    """What the node tells; nothing when that is no id, as no gate could carry it."""
    told = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or ""
    return told if isinstance(told, str) and told.isprintable() and len(told) <= gates_.TEXT_LIMIT else ""


def name_of(node: Mapping) -> str:
    return (node.get("metadata") or {}).get("name") or ""


def ready(node: Mapping) -> str:
    """Status of the condition Ready: "True", "False", or "Unknown" when it is that or not there."""
    for each in (node.get("status") or {}).get("conditions") or ():
        if each.get("type") == "Ready" and each.get("status") in ("True", "False"):
            return each["status"]
    return "Unknown"


def missing(node: Mapping, gate: Mapping) -> list[str]:
    """What a gate wants on the node and is not there."""
    gone = []
    there = map(gates_.identity, (node.get("spec") or {}).get("taints") or ())
    if gate["readable"] and gates_.identity(gate["taint"]) not in there:
        gone.append("taint")
    if gate["cordon"] and not is_cordoned(node):
        gone.append("cordon")
    return gone


def node_facts(node: Mapping, pool_taints: Iterable[str] = ()) -> dict:
    """{name, labels, annotations, taints: [{key, value, effect}], unschedulable, ready: "True"|"False"|"Unknown",
    bootId, providerId, conditions: {type: {status, reason, message}}, gates: [owners], gaps: {owner: what of its gate
    is missing: taint, cordon, or text for one that cannot be read}, external: [entries of external.py],
    resourceVersion}. What a node does not tell is "", [], {} or False, never None.
    """
    metadata, spec, status = node.get("metadata") or {}, node.get("spec") or {}, node.get("status") or {}
    gates = gates_.read(metadata.get("annotations"))
    conditions = {
        each["type"]: {part: each.get(part) or "" for part in ("status", "reason", "message")}
        for each in status.get("conditions") or ()
        if each.get("type")
    }
    return {
        "name": name_of(node),
        "labels": dict(metadata.get("labels") or {}),
        "annotations": dict(metadata.get("annotations") or {}),
        "taints": [
            {part: taint.get(part) or "" for part in ("key", "value", "effect")} for taint in spec.get("taints") or ()
        ],
        "unschedulable": is_cordoned(node),
        "ready": ready(node),
        "bootId": boot_id(node),
        "providerId": spec.get("providerID") or "",
        "conditions": conditions,
        "gates": [each["owner"] for each in gates],
        "gaps": {
            each["owner"]: gone for each in gates if (gone := missing(node, each) if each["readable"] else ["text"])
        },
        "external": external(node, gates, pool_taints),
        "resourceVersion": metadata.get("resourceVersion") or "",
    }
