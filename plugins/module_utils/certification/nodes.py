# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a certification: what they have, who holds them, which of them a target means. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ansible_collections.goodput.fleet.plugins.module_utils.certification.durations import quantity
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

GPU = "nvidia.com/gpu"
GATE = "gate.goodput.fleet/"
CORDON = "node.kubernetes.io/unschedulable"
PRODUCT_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator")
MACHINE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", "nvidia.com/gpu.machine")
COUNT_LABEL = "nvidia.com/gpu.count"
# of NVLink domains first, then of racks: nodes that share the value are close to each other
DOMAIN_LABELS = (
    "nvidia.com/gpu.clique",
    "goodput.fleet/rack",
    "topology.kubernetes.io/rack",
    "cloud.google.com/gce-topology-subblock",
    "topology.k8s.aws/network-node-layer-3",
    "oci.oraclecloud.com/rdma.local_block_id",
)
# what reserves a pool for the very workloads that are tested
POOL_TAINTS = (
    "nvidia.com/gpu",
    "vpc.amazonaws.com/efa",
    "sku",
    "dedicated",
    "node-role.kubernetes.io/*",
    "kubernetes.azure.com/scalesetpriority",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-queued",
    "kubernetes.io/arch",
)
UNKNOWN = "there is no such node"
_CLOSING = ("NoSchedule", "NoExecute")
_MODEL = re.compile(r"(gb|gh|mi|[abhlvtp])\d+[a-z]?")


@dataclass(frozen=True)
class Node:
    """`gates`: owner -> the gate's taint and cordon as far as they are told. `accelerator`: h100, gb200, …"""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping, ...]
    cordoned: bool
    others_cordon: bool  # somebody else than a gate of this collection holds it
    ready: str
    gates: Mapping[str, Mapping]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    product: str
    accelerator: str
    machine: str

    def domain(self, labels: Iterable[str]) -> str | None:
        return next((self.labels[label] for label in labels if self.labels.get(label)), None)

    @property
    def mig(self) -> bool:
        return "-MIG-" in self.product.upper() or any(
            name.startswith("nvidia.com/mig-") and count for name, count in self.allocatable.items()
        )


@dataclass
class Access:
    """Whether a node may be tested: `why` it may not, or the taints that its pods must tolerate."""

    why: str = ""
    tolerated: list[dict] = field(default_factory=list)


def read(nodes: Iterable[Mapping]) -> list[Node]:
    """Raw Nodes, or facts {name, labels, taints, unschedulable, ready, gates: [owner | {owner, taint, cordon}],
    external, capacity and allocatable: {resource: count}, gpus: n | {capacity, allocatable}}. By name."""
    found = {}
    for number, given in enumerate(nodes):
        node = _node(given, f"nodes[{number}]")
        found[node.name] = node
    return [found[name] for name in sorted(found)]


def _node(given: Mapping, where: str) -> Node:
    facts = facts_of(given) if isinstance(given.get("metadata"), Mapping) else given
    if not isinstance(facts.get("name"), str) or not facts["name"]:
        raise InvalidDocument("is no node", path=where, hint="a Node, or facts with name and labels")
    labels = facts.get("labels") or {}
    capacity, allocatable = dict(facts.get("capacity") or {}), dict(facts.get("allocatable") or {})
    gpus = facts.get("gpus")
    if gpus is not None:
        two = gpus if isinstance(gpus, Mapping) else {"capacity": gpus, "allocatable": gpus}
        capacity.setdefault(GPU, two.get("capacity") or 0)
        allocatable.setdefault(GPU, two.get("allocatable") or 0)
    gates = {}
    for gate in facts.get("gates") or ():
        gates.update({gate: {}} if isinstance(gate, str) else {gate["owner"]: gate})
    product = _first(labels, PRODUCT_LABELS)
    ready = facts.get("ready", "True")
    cordons = [entry for entry in facts.get("external") or () if entry.get("kind") == "cordon" and entry.get("holds")]
    return Node(
        name=facts["name"],
        labels=labels,
        taints=tuple(facts.get("taints") or ()),
        cordoned=bool(facts.get("unschedulable")),
        others_cordon=bool(cordons) if "external" in facts else not gates,
        ready=ready if isinstance(ready, str) else "True" if ready else "False",
        gates=gates,
        capacity=_counts(capacity),
        allocatable=_counts(allocatable),
        product=product,
        accelerator=accelerator(product),
        machine=_first(labels, MACHINE_LABELS),
    )


def facts_of(node: Mapping) -> dict:
    """Of a raw Node, what a plan needs of it; a caller who knows more of its gates adds that."""
    metadata, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
    ready = [each.get("status") for each in status.get("conditions") or () if each.get("type") == "Ready"]
    gates = [key[len(GATE) :] for key in metadata.get("annotations") or {} if key.startswith(GATE)]
    return {
        "name": metadata.get("name") or "",
        "labels": dict(metadata.get("labels") or {}),
        "taints": [dict(taint) for taint in spec.get("taints") or ()],
        "unschedulable": bool(spec.get("unschedulable")),
        "ready": ready[0] if ready and ready[0] in ("True", "False") else "Unknown",
        "gates": gates,
        "capacity": _counts(status.get("capacity") or {}),
        "allocatable": _counts(status.get("allocatable") or {}),
    }


def accelerator(product: str) -> str:
    """h100 of NVIDIA-H100-80GB-HBM3 and of nvidia-h100-mega-80gb; the whole in lower case where no model is known."""
    words = re.split(r"[-_ ]+", product.lower())
    if "rtx" in words:
        return "rtx" + "".join(words[words.index("rtx") + 1 :][:2])
    return next((word for word in words if _MODEL.fullmatch(word)), product.lower())


def select(nodes: list[Node], target: Mapping) -> tuple[list[Node], dict[str, str]]:
    """The nodes that fit all parts of a target, and of those that it names why the others do not."""
    found = list(nodes)
    selector = target.get("nodeSelector") or {}
    found = [node for node in found if all(node.labels.get(key) == value for key, value in selector.items())]
    for expression in target.get("matchExpressions") or ():
        found = [node for node in found if _matches(node.labels, expression)]
    for wanted in target.get("taintSelectors") or ():
        found = [node for node in found if any(fits(taint, wanted) for taint in _taints(node))]
    names = target.get("nodeNames")
    if not names:
        return found, {}
    known, fitting, wanted = {node.name for node in nodes}, {node.name for node in found}, set(names)
    rest = ", ".join(part for part in target if part != "nodeNames")
    others = {
        name: f"does not fit the rest of the target: {rest}" if name in known else UNKNOWN
        for name in names
        if name not in fitting
    }
    return [node for node in found if node.name in wanted], others


def left_by(nodes: list[Node], target: Mapping) -> list[str]:
    """How many nodes each part of a target leaves, for a person who finds that it leaves none."""
    return [f"{part} fits {len(select(nodes, {part: target[part]})[0])}" for part in target]


def _matches(labels: Mapping[str, str], expression: Mapping) -> bool:
    """As Kubernetes: NotIn is also true of nodes without the label."""
    key, values = expression["key"], expression.get("values") or ()
    return {
        "In": key in labels and labels[key] in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[expression["operator"]]


def _taints(node: Node) -> list[Mapping]:
    """A cordon also counts as the taint that Kubernetes makes of it, which comes a moment later."""
    shadow = {"key": CORDON, "value": "", "effect": "NoSchedule"}
    return [*node.taints, shadow] if node.cordoned else list(node.taints)


def fits(taint: Mapping, wanted: Mapping) -> bool:
    """Whether a taint is one that {key, value?, effect?} means."""
    return all((taint.get(part) or "") == wanted[part] for part in ("key", "value", "effect") if part in wanted)


def access(
    node: Node, gates: Iterable[str], selectors: Iterable[Mapping], pools: Iterable[str], include_cordoned: bool
) -> Access:
    """Whether tests may run on a node, behind the gates of these owners and the taints that the target names."""
    gates, selectors = set(gates), list(selectors)
    closed = sorted(set(node.gates) - gates)
    if node.ready != "True":
        return Access(
            why="the node is not ready" if node.ready == "False" else "the node does not tell that it is ready"
        )
    if closed:
        return Access(why=f"gate of {', '.join(closed)}: not in tolerateGates")
    result, behind = Access(), set(node.gates) & gates
    cordon_ok = include_cordoned or any(wanted["key"] == CORDON for wanted in selectors)
    cordon_ok = cordon_ok or (bool(behind) and not node.others_cordon)
    for taint in _taints(node):
        if (taint.get("effect") or "") not in _CLOSING:
            continue
        if taint["key"] == CORDON:
            allowed, why = cordon_ok, "the node is cordoned"
        else:
            allowed = _is_gate(taint, node, behind) or any(fits(taint, wanted) for wanted in selectors)
            allowed = allowed or any(fnmatchcase(taint["key"], pool) for pool in pools)
            why = f"taint {_show(taint)}: neither of a gate in tolerateGates nor in target.taintSelectors"
        if not allowed:
            return Access(why=why)
        entry = {part: taint.get(part) or "" for part in ("key", "value", "effect")}
        if entry not in result.tolerated:
            result.tolerated.append(entry)
    return result


def _is_gate(taint: Mapping, node: Node, owners: set[str]) -> bool:
    for owner in owners:
        told = node.gates[owner].get("taint")
        if fits(taint, {"key": f"{GATE}{owner}"}) or (told and fits(taint, told)):
            return True
    return False


def _show(taint: Mapping) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect') or ''}"


def whole_counts(nodes: list[Node], resource: str = GPU) -> dict[str, int]:
    """How many devices each node should have: the most that a machine of its type has, since a type has one number.

    Where machines tell no type, what most nodes of the product have, of two numbers as frequent the larger.
    """
    kinds: dict[tuple, Counter] = {}
    built = {}
    for node in nodes:
        told = node.labels.get(COUNT_LABEL, "") if resource == GPU and not node.mig else ""
        told_count = int(told) if told.isascii() and told.isdecimal() and len(told) < 6 else 0
        built[node.name] = max(node.capacity.get(resource, 0), node.allocatable.get(resource, 0), told_count)
        kinds.setdefault(_kind(node), Counter())[built[node.name]] += 1
    usual = {
        kind: max(counts) if kind[1] else max(counts, key=lambda count: (counts[count], count))
        for kind, counts in kinds.items()
    }
    return {node.name: max(usual[_kind(node)], built[node.name]) for node in nodes}


def _kind(node: Node) -> tuple:
    return (node.product, node.machine)


def _counts(resources: Mapping) -> dict[str, int]:
    return {str(name): int(quantity(value)) for name, value in resources.items()}


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
