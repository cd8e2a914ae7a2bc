"""Any value of a recipe says which overlay set it, where, and what it replaced."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.explain import explain
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound

from .layers import chart

EKS, BOTH = {"service": "eks"}, {"service": "eks", "os": "ubuntu"}


@pytest.fixture
def layer(bare):
    bare.write("values/a.yaml", "driver:\n  version: '1'\n  env: [{name: X, value: '1'}]\nhost.name/x: y\n")
    bare.registry(
        chart(
            "a", valuesFiles=["values/a.yaml"], mergeKeys={"driver.env": "name"}, nodeFacts={"driver": "driver.version"}
        ),
        chart("b"),
    )
    bare.overlay("base", components=["a", "b"], constraints=[{"name": "K8s.server.version", "value": ">= 1.32"}])
    bare.mixin("mix", components=[{"name": "a", "values": {"driver": {"version": "2"}}}])
    bare.overlay(
        "eks",
        EKS,
        include=["mix"],
        components=[{"name": "a", "version": "1.1.0", "values": {"driver": {"env": [{"name": "X", "value": "2"}]}}}],
        constraints=[{"name": "K8s.server.version", "value": ">= 1.34"}],
        checks=[{"name": "nccl", "expression": "value >= 300"}],
    )
    bare.overlay("both", BOTH, components=[{"name": "a", "values": {"driver": None}}, {"name": "b", "remove": True}])
    return bare


def chain(layer, path: str, criteria=EKS) -> list[tuple]:
    found = explain(layer.load(), criteria, path)
    return [(one["overlay"], one["action"], one.get("value"), one.get("replaced")) for one in found["chain"]]


@pytest.mark.parametrize(
    "path, value, expected",
    [
        ("a.values.driver.version", "2", [("(registry)", "set", "1", None), ("mix", "set", "2", "1")]),
        ("a.version", "1.1.0", [("(registry)", "set", "1.0.0", None), ("eks", "set", "1.1.0", "1.0.0")]),
        ("a.chart.version", "1.1.0", [("(registry)", "set", "1.0.0", None), ("eks", "set", "1.1.0", "1.0.0")]),
        ("components.a.namespace", "a", [("(registry)", "set", "a", None)]),
        ("a.values.host.name/x", "y", [("(registry)", "set", "y", None)]),
        ("a.values.driver.env[X].value", "2", [("(registry)", "set", "1", None), ("eks", "set", "2", "1")]),
        ("a.nodeFacts.driver", "driver.version", [("(registry)", "set", "driver.version", None)]),
        (
            "constraints.K8s.server.version.value",
            ">= 1.34",
            [("base", "set", ">= 1.32", None), ("eks", "set", ">= 1.34", ">= 1.32")],
        ),
        ("a", None, [("base", "added", None, None), ("mix", "listed", None, None), ("eks", "listed", None, None)]),
    ],
)
def test_chain(layer, path, value, expected):
    found = explain(layer.load(), EKS, path)
    assert (found["present"], found["value"]) == (True, value)
    assert chain(layer, path) == expected


def test_links_name_file_line_and_includer(layer):
    first, second = explain(layer.load(), EKS, "a.values.driver.version")["chain"]
    assert first["file"].endswith("values/a.yaml")
    assert first["line"] == 2
    assert second["file"].endswith("overlays/mix.yaml")
    assert "version:" in (layer.root / "overlays/mix.yaml").read_text().splitlines()[second["line"] - 1]
    assert second["includedBy"] == "eks"


@pytest.mark.parametrize(
    "path, expected",
    [
        ("a.values.driver.version", ("both", "deleted", None, "2")),
        ("a.values.driver", ("both", "deleted", None, {"version": "2", "env": [{"name": "X", "value": "2"}]})),
        ("b", ("both", "removed", None, None)),
        ("b.version", ("both", "removed", None, "1.0.0")),
    ],
)
def test_what_was_removed_is_explained_too(layer, path, expected):
    found = explain(layer.load(), BOTH, path)
    assert (found["present"], found["value"]) == (False, None)
    assert chain(layer, path, BOTH)[-1] == expected


def test_a_map_is_explained_by_its_parts(layer):
    found = explain(layer.load(), EKS, "constraints.K8s.server.version")
    assert found["value"] == {"value": ">= 1.34", "severity": "error"}
    parts = [(one["overlay"], one["path"].rsplit(".", 1)[1], one["value"]) for one in found["chain"]]
    assert ("eks", "value", ">= 1.34") in parts
    found = explain(layer.load(), EKS, "checks.nccl")
    assert found["chain"][0]["overlay"] == "eks"


@pytest.mark.parametrize(
    "path, hint",
    [
        ("a.versoin", "did you mean 'a.version'?"),
        ("aa.version", "valid: a, b, checks.nccl, constraints.K8s.server.version"),
        ("a.values.driver.versin", "did you mean 'a.values.driver.version'?"),
        ("constraints.K8s.server", "did you mean 'constraints.K8s.server.version'?"),
        ("", "valid: a, b"),
    ],
)
def test_unknown_paths_name_the_nearest(layer, path, hint):
    with pytest.raises(NotFound) as caught:
        explain(layer.load(), EKS, path)
    assert hint in caught.value.problems[0].hint


def test_the_explained_value_is_the_value_of_the_lock(layer):
    component = layer.component("a", **EKS)
    assert explain(layer.load(), EKS, "a.values")["value"] == component["values"]
    assert explain(layer.load(), EKS, "a.chart")["value"] == component["chart"]


def test_the_shown_value_is_a_copy(layer):
    loaded = layer.load()
    explain(loaded, EKS, "a.values")["value"]["driver"]["env"].append("scribble")
    assert "scribble" not in explain(loaded, EKS, "a.values")["value"]["driver"]["env"]
