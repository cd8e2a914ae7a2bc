# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes against the lock and against each other: the worst node counts, and every node at fault is named."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase

from ansible_collections.goodput.fleet.plugins.module_utils.drift.codes import finding
from ansible_collections.goodput.fleet.plugins.module_utils.drift.facts import instance_type, is_gpu
from ansible_collections.goodput.fleet.plugins.module_utils.drift.verdict import CERTIFIED_FACTS, Outcome
from ansible_collections.goodput.fleet.plugins.module_utils.records import constraints

# what a lock may fix on nodes
FACTS = ("driver", "kernel", "osImage", "osId", "osVersion", "kubelet", "containerRuntime", "accelerator")
# what nodes of one group share. The first set tells groups' members apart for the second.
GROUP_FACTS = ("osImage",)
SAME_OS_FACTS = ("driver", "kernel", "kubelet", "containerRuntime", "gpus")
WORDS = {
    "osImage": "OS image",
    "osId": "OS",
    "osVersion": "OS version",
    "containerRuntime": "container runtime",
    "gpus": "number of GPUs",
    "gpuCount": "number of GPUs",
}


def compare(lock: dict, snapshot: dict, outcome: Outcome, node_keys: Iterable[str] = ()) -> None:
    """Adds the findings about nodes and the API server. `node_keys`: labels and taints that groups share (globs)."""
    judged = constraints.evaluate(lock["spec"].get("constraints") or [], snapshot)
    parts, nodes = snapshot["spec"]["parts"], snapshot["spec"]["nodes"]
    if parts["nodes"]["status"] != "ok" or not nodes:
        outcome.unknown("nodes", parts["nodes"].get("reason", "there is no node"))
        nodes = []
    gpu = [node for node in nodes if is_gpu(node)]
    blind = [node["name"] for node in gpu if not node.get("driver")]
    if blind:
        outcome.unknown("nodes/driver", f"no driver version on {_names(blind)}; is GPU feature discovery running?")
    seen: set[tuple[str, str]] = set()  # (fact, node): one cause, one finding
    if nodes:
        _fixed(lock, gpu, outcome, seen)
    for result in judged:
        _constraint(result, outcome, seen)
    _allocatable(gpu, outcome)
    _groups(nodes, outcome, seen, list(node_keys))


def value(node: dict, fact: str) -> str:
    """A node's fact as text, '' where the node does not tell."""
    if fact == "gpus":
        return str((node.get("gpus") or {}).get("capacity", ""))
    return node.get(fact) or ""


def _names(names: list[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _by_value(nodes: list[dict], fact: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        found[value(node, fact)].append(node["name"])
    return found


def _fixed(lock: dict, gpu: list[dict], outcome: Outcome, seen: set) -> None:
    """What a component fixes on nodes, such as the driver that the GPU operator installs."""
    for component in lock["spec"]["components"]:
        for fact, source in sorted((component.get("nodeFacts") or {}).items()):
            want = str(source["value"])
            if fact not in FACTS:
                outcome.unknown(f"nodes/{fact}", f"component {component['name']} fixes it, but no node tells it")
                continue
            if not gpu:
                outcome.unknown(f"nodes/{fact}", "there is no GPU node")
            for have, names in sorted(_by_value(gpu, fact).items()):
                seen.update((fact, name) for name in names)
                if not have:
                    if fact != "driver":
                        outcome.unknown(f"nodes/{fact}", f"not told by {_names(names)}")
                elif have != want:
                    word = WORDS.get(fact, fact)
                    item = finding(
                        "node-not-as-locked",
                        f"nodes/{fact}",
                        f"{word} is {have} on {_nodes(len(names))}, {component['name']} pins {want}: {_names(names)}",
                        component=component["name"],
                        expected=want,
                        found=have,
                        nodes=names,
                    )
                    outcome.add(item, recertify=fact in CERTIFIED_FACTS)


def _constraint(result: dict, outcome: Outcome, seen: set) -> None:
    """A judged constraint. Nodes that another finding names for the same fact are not named again."""
    name, fact = result["name"], constraints.FACTS[result["name"]][3][0]
    if result["status"] == "unknown":
        told = f" ({_names(result['nodes'])})" if result["nodes"] else ""
        outcome.unknown(f"constraints/{name}", f"{result['reason']}{told}")
        return
    wrong = [node for node in result["nodes"] if (fact, node) not in seen]
    if result["status"] == "pass" or (result["nodes"] and not wrong):
        return
    seen.update((fact, node) for node in wrong)
    where = f" on {_nodes(len(wrong))}: {_names(wrong)}" if wrong else ""
    item = finding(
        "constraint-violated",
        f"constraints/{name}",
        f"{name} must be {result['value']}, found {result['found']}{where}",
        expected=result["value"],
        found=result["found"],
        nodes=wrong,
        severity=result.get("severity"),
        hint=result.get("remediation"),
    )
    outcome.add(item, recertify=fact in CERTIFIED_FACTS or fact in ("osId", "osVersion"))


def _allocatable(gpu: list[dict], outcome: Outcome) -> None:
    short: dict[tuple[int, int], list[str]] = defaultdict(list)
    for node in gpu:
        gpus = node["gpus"]
        if gpus["allocatable"] < gpus["capacity"]:
            short[gpus["allocatable"], gpus["capacity"]].append(node["name"])
    for (allocatable, capacity), names in sorted(short.items()):
        message = f"{allocatable} of {capacity} GPUs can be used on {_nodes(len(names))}: {_names(names)}"
        item = finding(
            "gpus-not-allocatable", "nodes/gpus/allocatable", message, expected=capacity, found=allocatable, nodes=names
        )
        outcome.add(item, recertify=True)


def _groups(nodes: list[dict], outcome: Outcome, seen: set, node_keys: list[str]) -> None:
    """Odd ones out. A group is a pool, or where pools have no names, one accelerator and instance type."""
    groups: dict[tuple[str, str, str], list[dict]] = defaultdict(list)
    for node in nodes:
        key = (node.get("group") or "", node.get("accelerator") or "", instance_type(node))
        if any(key) or is_gpu(node):  # nodes of which nothing tells what they are share nothing
            groups[key].append(node)
    for key, members in sorted(groups.items()):
        label = " ".join(part for part in key if part) or "GPU nodes"
        for fact in GROUP_FACTS:
            _odd(members, fact, label, outcome, seen)
        by_os: dict[str, list[dict]] = defaultdict(list)
        for node in members:
            by_os[node.get("osImage") or ""].append(node)
        for _image, alike in sorted(by_os.items()):
            for fact in SAME_OS_FACTS:
                _odd(alike, fact, label, outcome, seen)
        if node_keys:
            _odd_keys(members, label, outcome, node_keys)


def _odd(members: list[dict], fact: str, label: str, outcome: Outcome, seen: set) -> None:
    """A node that another finding names for this fact is left out; so is one that does not tell it."""
    left = [node for node in members if (fact, node["name"]) not in seen and value(node, fact)]
    certified = fact in CERTIFIED_FACTS and any(is_gpu(node) for node in left)
    _report_odd(_by_value(left, fact), f"nodes/{fact}", WORDS.get(fact, fact), label, outcome, certified)


def _odd_keys(members: list[dict], label: str, outcome: Outcome, patterns: list[str]) -> None:
    def wanted(key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in patterns)

    labels = sorted({key for node in members for key in node["labels"] if wanted(key)})
    for key in labels:
        found: dict[str, list[str]] = defaultdict(list)
        for node in members:
            found[node["labels"].get(key, "(absent)")].append(node["name"])
        _report_odd(found, f"nodes/labels/{key}", f"label {key}", label, outcome, False)
    for taint in sorted(
        {
            taint
            for node in members
            for taint in node.get("taints") or ()
            if wanted(taint.partition(":")[0].partition("=")[0])
        }
    ):
        found = defaultdict(list)
        for node in members:
            found["present" if taint in (node.get("taints") or ()) else "absent"].append(node["name"])
        _report_odd(found, f"nodes/taints/{taint}", f"taint {taint}", label, outcome, False)


def _report_odd(
    found: dict[str, list[str]], path: str, word: str, label: str, outcome: Outcome, recertify: bool
) -> None:
    if len(found) < 2:
        return
    ranking = Counter({have: len(names) for have, names in found.items()}).most_common()
    (usual, most), (_second, next_most) = ranking[:2]
    if most == next_most:
        sides = "; ".join(f"{have} on {_names(names)}" for have, names in sorted(found.items()))
        everyone = [name for names in found.values() for name in names]
        outcome.add(
            finding(
                "node-group-split",
                path,
                f"{word} in {label} has no majority: {sides}",
                found=sorted(found),
                nodes=everyone,
            ),
            recertify,
        )
        return
    for have, names in sorted(found.items()):
        if have != usual:
            message = (
                f"{word} is {have} on {_nodes(len(names))} of {label} where {most} others have {usual}: {_names(names)}"
            )
            outcome.add(finding("node-odd-one-out", path, message, expected=usual, found=have, nodes=names), recertify)
