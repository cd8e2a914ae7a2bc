"""Which nodes a change has touched."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.affected import (
    affected,
    drifted_components,
    gone,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

LEAF = "example.com/leaf"


def node(number: int, **labels: str) -> dict:
    metadata = {"name": f"gpu-{number}", "uid": f"u{number}", "labels": {LEAF: f"leaf-{number // 2}", **labels}}
    return {"metadata": metadata, "status": {"nodeInfo": {"bootID": f"b{number}"}}}


def pod(on: str | None, namespace: str = "operator", phase: str = "Running", **labels: str) -> dict:
    return {
        "metadata": {"namespace": namespace, "labels": labels},
        "spec": {"nodeName": on} if on else {},
        "status": {"phase": phase},
    }


def finding(path: str, nodes: list[str], component: str | None = None, severity: str = "error") -> dict:
    about = {"code": "node-driver", "severity": severity, "path": path, "message": "m", "nodes": nodes}
    return {**about, "component": component}


def report(*findings: dict, again: list[str] = (), **parts: str) -> dict:
    states = {part.replace("_", "/"): {"status": "unknown", "reason": why} for part, why in parts.items()}
    return {
        "spec": {"findings": list(findings), "recertify": list(again), "parts": {"server": {"status": "ok"}, **states}}
    }


NODES = [node(number) for number in (3, 1, 0, 2)]


def names(found: list[dict]) -> list[str]:
    return [each["name"] for each in found]


def test_named_nodes_come_with_uid_and_boot():
    assert affected(NODES, names=["gpu-2", "gpu-0", "gpu-2"]) == [
        {"name": "gpu-0", "uid": "u0", "bootId": "b0", "why": "named"},
        {"name": "gpu-2", "uid": "u2", "bootId": "b2", "why": "named"},
    ]
    assert affected(NODES) == []


def test_a_node_that_several_take_is_there_once_with_all_the_reasons():
    found = affected(
        NODES, names=["gpu-1"], topology={LEAF: "leaf-0"}, selector=lambda labels: labels[LEAF] == "leaf-0"
    )
    assert [(each["name"], each["why"]) for each in found] == [
        ("gpu-0", f"selected; {LEAF}=leaf-0"),
        ("gpu-1", f"named; selected; {LEAF}=leaf-0"),
    ]
    assert names(affected(NODES, topology={LEAF: ["leaf-0", "leaf-1"]})) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_a_selector_may_take_none():
    assert affected(NODES, selector=lambda labels: False) == []


def test_what_nothing_has_is_told_all_at_once():
    components = {"operator": {"namespace": "nowhere", "selector": {}}}
    with pytest.raises(InvalidDocument) as refused:
        affected(NODES, [pod("gpu-1")], names=["gpu-10"], topology={LEAF: "leaf-9", "rack": "r"}, components=components)
    lines = str(refused.value).splitlines()
    assert len(lines) == 4
    assert "there is no GPU node gpu-10 (did you mean 'gpu-1'?" in lines[0]
    assert f"no GPU node has the label {LEAF}=leaf-9 (did you mean" in lines[1]
    assert "no GPU node has the label rack=r" in lines[2]
    assert "operator has no running pod in namespace nowhere" in lines[3]


def test_pods_of_a_component_name_their_nodes():
    pods = [
        pod("gpu-0", app="driver"),
        pod("gpu-1", app="other"),
        pod("gpu-2", "elsewhere", app="driver"),
        pod("gpu-3", app="driver", phase="Succeeded"),
        pod(None, app="driver"),
        pod("control-plane", app="driver"),
    ]
    components = {"driver": {"namespace": "operator", "selector": {"app": "driver"}}}
    assert affected(NODES, pods, components=components) == [
        {"name": "gpu-0", "uid": "u0", "bootId": "b0", "why": "pods of driver"}
    ]
    every = {"driver": {"namespace": "operator"}}
    assert names(affected(NODES, pods, components=every)) == ["gpu-0", "gpu-1"]


def test_drift_names_nodes_and_the_components_that_count():
    drift = report(
        finding("nodes/driver", ["gpu-1", "gpu-9"]),
        finding("releases/a/b/version", [], "driver"),
        finding("releases/c/d/version", [], "calm", "info"),
        again=["gpu-1", "gpu-9", "gpu-3"],
    )
    pods = [pod("gpu-0", app="driver"), pod("gpu-2", app="calm")]
    components = {key: {"namespace": "operator", "selector": {"app": key}} for key in ("driver", "calm")}
    found = affected(NODES, pods, drift_report=drift, components=components)
    assert [(each["name"], each["why"]) for each in found] == [
        ("gpu-0", "pods of driver"),
        ("gpu-1", "drift: nodes/driver"),
        ("gpu-3", "drift: to be certified again"),
    ]
    assert gone(drift, NODES) == ["gpu-9"]
    assert drifted_components(drift) == {"driver"}
    assert affected(NODES, pods, drift_report=report(), components=components) == []


@pytest.mark.parametrize("part", ["nodes", "nodes_driver"])
def test_a_report_that_could_not_see_nodes_is_refused(part):
    with pytest.raises(InvalidDocument, match=r"the drift report does not know nodes.*: forbidden"):
        affected(NODES, drift_report=report(**{part: "forbidden"}))
    assert affected(NODES, drift_report=report(releases="forbidden")) == []
