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
from ansible_collections.goodput.fleet.plugins.module_utils.records.versions import satisfies

# the name of a constraint -> (which nodes, their fact, what kind of value); K8s.server.version is no node's
CONSTRAINTS = {
    "K8s.node.kubelet": ("all", "kubelet", "version"),
    "OS.release.ID": ("gpu", "osId", "text"),
    "OS.release.VERSION_ID": ("gpu", "osVersion", "version"),
    "OS.kernel": ("gpu", "kernel", "version"),
    "GPU.driver.version": ("gpu", "driver", "version"),
    "GPU.count": ("gpu", "gpuCount", "count"),
}
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
    parts, nodes = snapshot["spec"]["parts"], snapshot["spec"]["nodes"]
    constraints = lock["spec"].get("constraints") or []
    server = [entry for entry in constraints if entry["name"] == "K8s.server.version"]
    _server(server, snapshot, outcome)
    if parts["nodes"]["status"] != "ok":
        outcome.unknown("nodes", parts["nodes"].get("reason", "not read"))
        return
    if not nodes:
        outcome.unknown("nodes", "there is no node")
        return
    gpu = [node for node in nodes if is_gpu(node)]
    blind = [node["name"] for node in gpu if not node.get("driver")]
    if blind:
        outcome.unknown("nodes/driver", f"no driver version on {_names(blind)}; is GPU feature discovery running?")
    seen: set[tuple[str, str]] = set()  # (fact, node): one cause, one finding
    _fixed(lock, gpu, outcome, seen)
    for entry in constraints:
        if entry not in server:
            _constraint(entry, nodes, gpu, outcome, seen)
    _allocatable(gpu, outcome)
    _groups(nodes, outcome, seen, list(node_keys))


def value(node: dict, fact: str):
    """A node's fact as text, '' where the node does not tell."""
    if fact == "gpus":
        return str((node.get("gpus") or {}).get("capacity", ""))
    if fact == "gpuCount":
        count = (node.get("gpus") or {}).get("count")
        return "" if count is None else str(count)
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


def _server(entries: list[dict], snapshot: dict, outcome: Outcome) -> None:
    part = snapshot["spec"]["parts"]["server"]
    version = snapshot["spec"]["server"].get("version", "")
    if part["status"] != "ok" or not version:
        outcome.unknown("server", part.get("reason", "its version is not known"))
        return
    for entry in entries:
        verdict, reason = _satisfies(entry["value"], version, "version")
        if verdict == "unknown":
            outcome.unknown(f"constraints/{entry['name']}", reason)
        elif verdict == "fail":
            outcome.add(_violated(entry, version, [], f"the API server is {version}"))


def _satisfies(constraint: str, found: str, kind: str) -> tuple[str, str]:
    try:
        return satisfies(constraint, found, kind)
    except ValueError as error:
        return "unknown", f"the constraint {constraint!r} {error}"


def _violated(entry: dict, found: str, nodes: list[str], what: str) -> dict:
    return finding(
        "constraint-violated",
        f"constraints/{entry['name']}",
        f"{entry['name']} must be {entry['value']}: {what}",
        expected=entry["value"],
        found=found,
        nodes=nodes,
        severity=entry.get("severity"),
        hint=entry.get("remediation"),
    )


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
                        f"{word} is {have} on {_nodes(len(names))}, {component['name']} fixes {want}: {_names(names)}",
                        component=component["name"],
                        expected=want,
                        found=have,
                        nodes=names,
                    )
                    outcome.add(item, recertify=fact in CERTIFIED_FACTS)


def _constraint(entry: dict, nodes: list[dict], gpu: list[dict], outcome: Outcome, seen: set) -> None:
    part = f"constraints/{entry['name']}"
    which, fact, kind = CONSTRAINTS.get(entry["name"], (None, None, None))
    if fact is None:
        outcome.unknown(part, "no fact of a cluster has this name")
        return
    concerned = nodes if which == "all" else gpu
    if not concerned and entry["name"].startswith("OS."):
        concerned = nodes  # a cluster whose GPUs nobody announces still has an operating system
    if not concerned:
        outcome.unknown(part, "there is no GPU node")
        return
    wrong: list[str] = []
    values: list[str] = []
    for have, names in sorted(_by_value(concerned, fact).items()):
        if not have:
            outcome.unknown(part, f"not told by {_names(names)}")
            continue
        verdict, reason = _satisfies(entry["value"], have, kind)
        if verdict == "unknown":
            outcome.unknown(part, f"{have} on {_names(names)}: {reason}")
        elif verdict == "fail":
            names = [name for name in names if (fact, name) not in seen]
            if names:
                wrong += names
                values.append(f"{have} on {_nodes(len(names))}")
    if wrong:
        seen.update((fact, name) for name in wrong)
        found = ", ".join(values)
        item = _violated(entry, found, wrong, f"{found} ({_names(wrong)})")
        certified = fact in CERTIFIED_FACTS or fact in ("osId", "osVersion", "gpuCount")
        outcome.add(item, recertify=certified and bool(gpu))


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
