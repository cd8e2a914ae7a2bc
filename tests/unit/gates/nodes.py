"""Raw nodes for the tests of gates, and a small API server's way with patches."""

from __future__ import annotations

import copy
import json
from typing import Any

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates

BOOT = "b0000000-0000-4000-8000-000000000001"
NEXT_BOOT = "b0000000-0000-4000-8000-000000000002"
FATAL = {"key": "nvidia.com/gpu-error", "value": "fatal", "effect": "NoSchedule"}


def node(name: str = "gpu-0000", **fields: Any) -> dict:
    """fields: taints, labels, annotations, unschedulable, by (who set that), boot."""
    raw: dict = {
        "metadata": {"name": name, "resourceVersion": "1", "labels": fields.get("labels", {})},
        "spec": {"providerID": f"metal://{name}"},
        "status": {
            "nodeInfo": {"bootID": fields.get("boot", BOOT)},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}],
        },
    }
    if fields.get("annotations"):
        raw["metadata"]["annotations"] = fields["annotations"]
    if fields.get("taints"):
        raw["spec"]["taints"] = fields["taints"]
    if fields.get("unschedulable"):
        set_unschedulable(raw, True, fields.get("by", "kubectl-cordon"))
    return raw


def set_unschedulable(raw: dict, on: bool, by: str) -> None:
    """As the API server keeps it: only a change makes somebody its manager."""
    if bool(raw["spec"].get("unschedulable")) == on:
        return
    raw["metadata"]["managedFields"] = []
    raw["spec"].pop("unschedulable", None)
    if on:
        raw["spec"]["unschedulable"] = True
        entry = {"manager": by, "time": "2026-11-29T12:00:00Z", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
        raw["metadata"]["managedFields"] = [entry]


def apply(raw: dict, patch: dict | None) -> dict:
    """The node after our merge patch, written by our manager."""
    after = copy.deepcopy(raw)
    if patch is None:
        return after
    assert patch["metadata"]["resourceVersion"] == raw["metadata"]["resourceVersion"]
    annotations = after["metadata"].setdefault("annotations", {})
    for key, value in patch["metadata"].get("annotations", {}).items():
        if value is None:
            annotations.pop(key, None)
        else:
            annotations[key] = value
    spec = patch.get("spec", {})
    if "taints" in spec:
        taints = spec["taints"] or []
        pairs = [gates.identity(taint) for taint in taints]
        assert len(pairs) == len(set(pairs)), "the API server refuses two taints of one key and effect"
        after["spec"]["taints"] = copy.deepcopy(taints)
    if "unschedulable" in spec:
        set_unschedulable(after, bool(spec["unschedulable"]), gates.MANAGER)
    after["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) + 1)
    return after


def gate(owner: str = "quarantine", **fields: Any) -> dict:
    return {"owner": owner, "reason": "gpu fell off", "since": "2026-11-29T12:00:00Z", **fields}


def annotation(raw: dict, owner: str) -> dict:
    return json.loads(raw["metadata"]["annotations"][f"gate.goodput.fleet/{owner}"])
