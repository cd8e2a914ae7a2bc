# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan without the cluster: the nodes of a stored Snapshot as `nodes.read` takes them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import nodes

# labels that a snapshot leaves out, since a field of its own has them
_PRODUCT = nodes.PRODUCT_LABELS[0]


def facts(snapshot: Mapping) -> list[dict]:
    """Facts of each node of a checked Snapshot. Of its resources a snapshot knows the GPUs, of its gates the taints."""
    return [_node(node) for node in snapshot["spec"]["nodes"]]


def _node(node: Mapping) -> dict:
    taints = [_taint(text) for text in node.get("taints") or ()]
    gpus = node.get("gpus") or {}
    labels = dict(node["labels"])
    if node.get("accelerator") and not any(labels.get(name) for name in nodes.PRODUCT_LABELS):
        labels[_PRODUCT] = node["accelerator"]
    return {
        "name": node["name"],
        "labels": labels,
        "taints": taints,
        "unschedulable": node.get("unschedulable", False),
        "ready": node.get("ready", False),
        "gates": sorted(
            {taint["key"].removeprefix(nodes.GATE) for taint in taints if taint["key"].startswith(nodes.GATE)}
        ),
        "gpus": {"capacity": gpus.get("capacity", 0), "allocatable": gpus.get("allocatable", 0)},
    }


def _taint(text: str) -> dict:
    """key=value:Effect, as snapshots write taints; a key or value has no colon and no equals sign."""
    both, _colon, effect = text.rpartition(":")
    key, _equals, value = both.partition("=")
    return {"key": key, "value": value, "effect": effect}
