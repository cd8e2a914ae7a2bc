# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a change has touched: those that drift names, that an operator's pods run on, or behind a switch. Pure.

affected(nodes, pods, drift_report=report, components={"gpu-operator": {"namespace": "gpu-operator", "selector": {}}},
         topology={"example.com/leaf": ["leaf-07"]}, names=["gpu-0001"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

OVER = ("Succeeded", "Failed")
DRIFTED = ("error", "warning")
Selects = Callable[[Mapping[str, str]], bool]


def affected(
    nodes: Iterable[Mapping],
    pods: Iterable[Mapping] = (),
    drift_report: Mapping | None = None,
    components: Mapping[str, Mapping] | None = None,
    topology: Mapping[str, str | list[str]] | None = None,
    names: Iterable[str] = (),
    selector: Selects | None = None,
) -> list[dict]:
    """[{name, uid, bootId, why}] of the raw nodes that any of these takes, sorted by name.

    drift_report: a DriftReport; the nodes that it wants certified again. components: NAME -> {namespace, selector},
    whose pods' nodes are taken, with a drift report only where it has findings about the component. topology:
    LABEL -> value or values. selector: says of a node's labels whether it is taken, which may be none.
    Raises InvalidDocument for a name, value or component that nothing has, and for a report that could not see nodes.
    """
    known = {node["metadata"]["name"]: node for node in nodes}
    whys: dict[str, list[str]] = {}
    problems: list[Problem] = []

    def take(found: Iterable[str], why: str) -> None:
        for name in found:
            if why not in whys.setdefault(name, []):
                whys[name].append(why)

    for name in names:
        if name in known:
            take([name], "named")
        else:
            problems.append(Problem("no-node", f"there is no GPU node {name}", path="nodes", hint=nearest(name, known)))
    if selector:
        take((name for name, node in known.items() if selector(_labels(node))), "selected")
    for label, values in (topology or {}).items():
        for value in [values] if isinstance(values, str) else values:
            found = [name for name, node in known.items() if _labels(node).get(label) == value]
            take(found, f"{label}={value}")
            if not found:
                there = {_labels(node)[label] for node in known.values() if label in _labels(node)}
                what = f"no GPU node has the label {label}={value}"
                problems.append(Problem("no-node", what, path="topology", hint=nearest(value, there)))
    drifted = None
    if drift_report is not None:
        problems += _blind(drift_report)
        drifted = drifted_components(drift_report)
        for name, why in _recertified(drift_report).items():
            take([name] if name in known else [], f"drift: {why}")
    wanted = {name: about for name, about in (components or {}).items() if drifted is None or name in drifted}
    for name, on in _nodes_of(wanted, pods).items():
        take(sorted(on & known.keys()), f"pods of {name}")
        if not on:
            about = wanted[name]
            what = f"{name} has no running pod in namespace {about['namespace']}"
            hint = "namespace and selector (labels of its pods) as the component has them"
            problems.append(Problem("no-pod", what, path="components", hint=hint))
    if problems:
        raise InvalidDocument(problems)
    return [{**identity(known[name]), "why": "; ".join(whys[name])} for name in sorted(whys)]


def identity(node: Mapping) -> dict:
    """{name, uid, bootId} of a raw node."""
    metadata, info = node["metadata"], (node.get("status") or {}).get("nodeInfo") or {}
    return {"name": metadata["name"], "uid": metadata.get("uid") or "", "bootId": info.get("bootID") or ""}


def drifted_components(report: Mapping) -> set[str]:
    """Components that the report has findings about."""
    findings = report["spec"]["findings"]
    return {one["component"] for one in findings if one.get("component") and one["severity"] in DRIFTED}


def gone(report: Mapping, nodes: Iterable[Mapping]) -> list[str]:
    """Nodes that the report wants certified again, and that are none any more."""
    return sorted(_recertified(report).keys() - {node["metadata"]["name"] for node in nodes})


def _recertified(report: Mapping) -> dict[str, str]:
    spec = report["spec"]
    paths: dict[str, list[str]] = {name: [] for name in spec.get("recertify", [])}
    for one in spec["findings"]:
        for name in one.get("nodes", []):
            if name in paths and one["path"] not in paths[name]:
                paths[name].append(one["path"])
    return {name: ", ".join(found) or "to be certified again" for name, found in paths.items()}


def _blind(report: Mapping) -> list[Problem]:
    """Of nodes that could not be looked at nobody knows whether the change has touched them."""
    hint = "take the report again; or accept it there: ignore \"code == 'unknown' && path == '{}'\""
    return [
        Problem(
            "unknown-drift",
            f"the drift report does not know {part}: {state.get('reason', '')}",
            path="drift",
            hint=hint.format(part),
        )
        for part, state in report["spec"]["parts"].items()
        if state["status"] == "unknown" and part.partition("/")[0] == "nodes"
    ]


def _nodes_of(components: Mapping[str, Mapping], pods: Iterable[Mapping]) -> dict[str, set[str]]:
    """Component -> names of the nodes that its pods run on."""
    found: dict[str, set[str]] = {name: set() for name in components}
    if not components:
        return found
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        if not node or (pod.get("status") or {}).get("phase") in OVER:
            continue
        labels = pod["metadata"].get("labels") or {}
        for name, about in components.items():
            wanted = (about.get("selector") or {}).items()
            if pod["metadata"].get("namespace") == about["namespace"] and wanted <= labels.items():
                found[name].add(node)
    return found


def _labels(node: Mapping) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}
