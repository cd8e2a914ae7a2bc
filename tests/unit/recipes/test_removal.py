"""Inherited things can be taken away by name, and what is needed or never was there cannot."""

from __future__ import annotations

import pytest

from .layers import chart

EKS, BOTH, ALL = (
    {"service": "eks"},
    {"service": "eks", "os": "ubuntu"},
    {"service": "eks", "os": "ubuntu", "intent": "training"},
)
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


@pytest.fixture
def layer(bare):
    health = {
        "workloads": [{"kind": "Deployment", "name": "a"}, {"kind": "DaemonSet", "name": "d"}],
        "selector": {"app": "a", "part": "x"},
        "checks": [{"name": "ok", "apiVersion": "v1", "kind": "Node", "plural": "nodes", "expression": "x"}],
    }
    bare.registry(
        chart(
            "a",
            manifests=[{"name": "one", "content": OBJECT}, {"name": "two", "content": OBJECT, "phase": "pre"}],
            health=health,
            nodeFacts={"driver": "driver.version"},
            values={"driver": {"version": "580.1"}},
        ),
        chart("b", dependsOn=["a"]),
        chart("c", dependsOnOptional=["b"]),
    )
    bare.overlay(
        "base",
        components=["a", "b", "c"],
        checks=[{"name": "nccl", "expression": "value >= 300"}, {"name": "smi", "expression": "ok"}],
    )
    bare.overlay("eks", EKS)
    return bare


def test_a_component_is_removed_with_its_optional_edges(layer):
    layer.overlay("eks-ubuntu", BOTH, components=[{"name": "b", "remove": True}])
    lock = layer.resolve(**BOTH)
    assert lock["spec"]["order"] == ["a", "c"]
    assert lock["spec"]["components"][1]["dependsOn"] == []
    assert layer.names(**EKS) == ["a", "b", "c"]


def test_removing_what_others_need_names_them(layer):
    """Dependents must not be left pointing at nothing."""
    layer.overlay("eks", EKS, components=[{"name": "c", "dependsOn": ["a"]}])
    layer.overlay("eks-ubuntu", BOTH, components=[{"name": "a", "remove": True}])
    (problem,) = layer.problems(**BOTH)
    assert problem.code == "needed"
    assert "component a is removed and needed by b, c" in problem.message
    assert problem.file.endswith("eks-ubuntu.yaml")


def test_a_more_specific_overlay_may_add_it_again_from_the_start(layer):
    layer.overlay("base", components=["a", {"name": "b", "values": {"old": True}}, "c"])
    layer.overlay("eks-ubuntu", BOTH, components=[{"name": "b", "remove": True}])
    layer.overlay("again", ALL, components=[{"name": "b", "values": {"new": True}}])
    assert layer.component("b", **ALL)["values"] == {"new": True}
    assert "b" not in layer.names(**BOTH)


@pytest.mark.parametrize(
    "component",
    [
        {"manifests": [{"name": "gone", "remove": True}]},
        {"health": {"workloads": [{"kind": "Deployment", "name": "gone", "remove": True}]}},
        {"health": {"checks": [{"name": "gone", "remove": True}]}},
        {"health": {"selector": {"gone": None}}},
        {"nodeFacts": {"gone": None}},
    ],
    ids=str,
)
def test_removing_what_is_not_there_is_an_error(layer, component):
    layer.overlay("eks", EKS, components=[{"name": "a", **component}])
    (problem,) = layer.problems(**EKS)
    assert problem.code == "nothing-to-remove"
    assert "gone" in problem.message
    assert problem.line > 5


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"components": [{"name": "b", "remove": True}]}, "component b is not there"),
        ({"constraints": [{"name": "OS.kernel", "remove": True, "reason": "x"}]}, "constraints.OS.kernel is not there"),
        ({"checks": [{"name": "gone", "remove": True}]}, "checks.gone is not there"),
    ],
)
def test_removing_what_no_overlay_adds(layer, spec, words):
    layer.overlay("base", components=["a"])
    layer.overlay("eks", EKS, **spec)
    (problem,) = layer.problems(**EKS)
    assert words in problem.message


def test_manifests_health_facts_and_checks_by_name(layer):
    layer.overlay(
        "eks",
        EKS,
        components=[
            {
                "name": "a",
                "manifests": [{"name": "one", "remove": True}, {"name": "three", "content": OBJECT}],
                "health": {
                    "workloads": [
                        {"kind": "DaemonSet", "name": "d", "remove": True},
                        {"kind": "Deployment", "name": "a", "optional": True},
                    ],
                    "selector": {"part": None},
                    "checks": [{"name": "ok", "remove": True}],
                },
                "nodeFacts": {"driver": None},
            }
        ],
        checks=[{"name": "nccl", "remove": True}],
    )
    component = layer.component("a", **EKS)
    assert [(one["name"], one["phase"]) for one in component["manifests"]] == [("three", "post"), ("two", "pre")]
    assert component["health"]["workloads"] == [{"kind": "Deployment", "name": "a", "optional": True}]
    assert component["health"]["selector"] == {"app": "a"}
    assert component["health"]["checks"] == []
    assert component["nodeFacts"] == {}
    assert [one["name"] for one in layer.resolve(**EKS)["spec"]["checks"]] == ["smi"]


def test_removing_twice_is_no_fault(layer):
    layer.overlay("eks", EKS, components=[{"name": "b", "remove": True}])
    layer.overlay("ubuntu", {"os": "ubuntu"}, components=[{"name": "b", "remove": True}])
    layer.overlay("training", {"intent": "training"}, components=[{"name": "b", "remove": True}])
    assert layer.names(**ALL) == ["a", "c"]


def test_a_removed_component_has_nothing_else(layer):
    layer.overlay("eks", EKS, components=[{"name": "b", "remove": True, "version": "1.0.0"}])
    (problem,) = layer.problems()
    assert problem.code == "bad-removal"


def test_a_recipe_without_components_is_none(layer):
    gone = [{"name": name, "remove": True} for name in "abc"]
    layer.overlay("eks", EKS, components=gone)
    assert [one.code for one in layer.problems(**EKS)] == ["empty-recipe"]
