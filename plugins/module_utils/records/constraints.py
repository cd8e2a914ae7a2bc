# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that constraints name, and their judgement on a Snapshot: every constraint at once, on the worst node.

OS and GPU facts are judged on the nodes that carry GPUs (on all nodes where none does), kubelets on every node. A node
whose fact is not known makes the constraint unknown unless another node fails it: unknown never passes.
"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records import versions

# name -> (kind of the fact, part of the snapshot, on GPU nodes only, path of keys)
FACTS = {
    "K8s.server.version": ("version", "server", False, ("version",)),
    "K8s.node.kubelet": ("version", "nodes", False, ("kubelet",)),
    "OS.release.ID": ("text", "nodes", True, ("osId",)),
    "OS.release.VERSION_ID": ("version", "nodes", True, ("osVersion",)),
    "OS.kernel": ("version", "nodes", True, ("kernel",)),
    "GPU.driver.version": ("version", "nodes", True, ("driver",)),
    "GPU.count": ("count", "nodes", True, ("gpus", "count")),
}


def fault(name: str, value: str) -> str:
    """What is wrong with a constraint, "" when nothing is."""
    kind = FACTS[name][0]
    try:
        return "" if versions.satisfiable(value, kind) else f"{value!r} can never be satisfied"
    except ValueError as error:
        return str(error)


def tighter(name: str, child: str, parent: str) -> bool:
    """Does the child's value allow nothing that the parent's refuses?"""
    return versions.implies(child, parent, FACTS[name][0])


def evaluate(constraints: list[dict], snapshot: dict) -> list[dict]:
    """Judge a lock's constraints on a Snapshot document.

    Each result: name, value, severity, remediation, status (pass | fail | unknown), reason, found (the worst), nodes
    (those that fail or are unknown, by name; empty for a cluster fact and for a pass).
    """
    return [_judge(constraint, snapshot.get("spec") or {}) for constraint in constraints]


def _judge(constraint: dict, spec: dict) -> dict:
    name, value = constraint["name"], constraint["value"]
    kind, part, on_gpus, path = FACTS[name]
    result = {key: constraint[key] for key in ("name", "value", "severity", "remediation") if key in constraint}
    state = (spec.get("parts") or {}).get(part) or {}
    if state.get("status", "ok") != "ok":
        return {
            **result,
            "status": "unknown",
            "reason": state.get("reason") or f"{part} not read",
            "found": None,
            "nodes": [],
        }
    if part == "server":
        found = _at(spec.get("server"), path)
        status, reason = versions.satisfies(value, found, kind)
        return {**result, "status": status, "reason": reason, "found": found, "nodes": []}
    nodes = spec.get("nodes") or []
    carrying = [node for node in nodes if _at(node, ("gpus", "capacity"))]
    nodes = carrying if on_gpus and carrying else nodes
    if not nodes:
        return {**result, "status": "unknown", "reason": "the snapshot has no node", "found": None, "nodes": []}
    judged = [(node.get("name", ""), _fact(node, path)) for node in nodes]
    judged = [(*versions.satisfies(value, found, kind), found, node) for node, found in judged]
    status = next(status for status in ("fail", "unknown", "pass") if any(one[0] == status for one in judged))
    worst = min((one for one in judged if one[0] == status), key=lambda one: (_rank(one[2]), one[3]))
    reason = worst[1] if status == "pass" else f"node {worst[3]}: {worst[1]}"
    return {
        **result,
        "status": status,
        "reason": reason,
        "found": worst[2],
        "nodes": [] if status == "pass" else sorted(one[3] for one in judged if one[0] == status),
    }


def _rank(found: object) -> tuple:
    """The lowest version counts as the worst; what is no version comes first."""
    version = versions.parse(str(found)) if found is not None else None
    return version.key if version else ()


def _fact(node: dict, path: tuple) -> object:
    gpus = node.get("gpus") or {}
    if path == ("gpus", "count") and "count" not in gpus:
        path = ("gpus", "capacity")  # slices (MIG, sharing) count as GPUs where nothing tells the boards
    return _at(node, path)


def _at(data: object, path: tuple) -> object:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data
