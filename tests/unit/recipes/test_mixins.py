"""Mixins: content that overlays share, applied where it is included."""

from __future__ import annotations

import pytest

from .layers import chart

EKS, H100, BOTH = {"service": "eks"}, {"accelerator": "h100"}, {"service": "eks", "accelerator": "h100"}


def values(**data) -> dict:
    return {"components": [{"name": "a", "values": data}]}


@pytest.fixture
def layer(bare):
    bare.registry(chart("a"))
    bare.overlay("base", components=["a"])
    bare.mixin("ubuntu", **values(x=1, y=1))
    return bare


def test_a_mixin_stands_just_before_its_includer(layer):
    layer.overlay("eks", EKS, include=["ubuntu"], **values(x=2))
    lock = layer.resolve(**EKS)
    assert lock["spec"]["components"][0]["values"] == {"x": 2, "y": 1}
    assert lock["spec"]["overlays"] == [
        {"name": "base", "criteria": {}},
        {"name": "ubuntu", "criteria": {}, "includedBy": "eks"},
        {"name": "eks", "criteria": EKS},
    ]


def test_a_mixin_is_never_matched(layer):
    layer.overlay("eks", EKS)
    assert layer.component("a", **EKS)["values"] == {}


def test_the_same_mixin_of_two_includers_is_no_conflict(layer):
    layer.overlay("eks", EKS, include=["ubuntu"])
    layer.overlay("h100", H100, include=["ubuntu"])
    assert layer.component("a", **BOTH)["values"] == {"x": 1, "y": 1}


def test_a_mixin_has_the_rank_of_its_includer(layer):
    layer.overlay("eks", EKS, include=["ubuntu"])
    layer.overlay("h100", H100, **values(x=3))
    (problem,) = layer.problems(**BOTH)
    assert problem.code == "conflict"
    assert "ubuntu (included by eks)" in problem.message
    layer.overlay("h100-eks", BOTH, **values(x=4))
    assert layer.component("a", **BOTH)["values"] == {"x": 4, "y": 1}


def test_two_mixins_of_one_includer_may_not_contradict_unless_it_decides(layer):
    layer.mixin("cos", **values(x=9))
    layer.overlay("eks", EKS, include=["ubuntu", "cos"])
    (problem,) = layer.problems(**EKS)
    assert problem.code == "conflict"
    layer.overlay("eks", EKS, include=["ubuntu", "cos"], **values(x=5))
    assert layer.component("a", **EKS)["values"]["x"] == 5


def test_mixins_may_include_mixins_and_outrank_them(layer):
    layer.mixin("noble", include=["ubuntu"], **values(x=7))
    layer.overlay("eks", EKS, include=["noble"])
    lock = layer.resolve(**EKS)
    assert lock["spec"]["components"][0]["values"] == {"x": 7, "y": 1}
    assert [one["name"] for one in lock["spec"]["overlays"]] == ["base", "ubuntu", "noble", "eks"]


def test_a_mixin_reached_twice_is_applied_once(layer):
    layer.mixin("one", include=["ubuntu"])
    layer.mixin("two", include=["ubuntu"])
    layer.overlay("eks", EKS, include=["one", "two", "ubuntu"])
    names = [one["name"] for one in layer.resolve(**EKS)["spec"]["overlays"]]
    assert names == ["base", "ubuntu", "one", "two", "eks"]


def test_a_mixin_may_clear_what_its_includer_sets_anew(layer):
    layer.overlay("base", **values(storage={"size": "50Gi"}))
    layer.mixin("clear", components=[{"name": "a", "values": {"storage": None}}])
    layer.overlay("eks", EKS, include=["clear"], **values(storage="none"))
    assert layer.component("a", **EKS)["values"] == {"storage": "none"}


@pytest.mark.parametrize(
    "mixin, overlay, code, words",
    [
        ({}, {"include": ["ubunut"]}, "unknown-mixin", "did you mean 'ubuntu'?"),
        ({}, {"include": ["base"]}, "not-a-mixin", "applies by its own criteria"),
        ({}, {"include": ["ubuntu", "ubuntu"]}, "duplicate-name", "twice"),
        ({"criteria": EKS}, {}, "bad-mixin", "a mixin has no criteria"),
        ({"recipe": True}, {}, "bad-mixin", "a mixin has no recipe"),
        ({"include": ["ubuntu"]}, {}, "cycle", "ubuntu -> ubuntu"),
    ],
)
def test_faults(layer, mixin, overlay, code, words):
    layer.mixin("ubuntu", **mixin)
    layer.overlay("eks", EKS, **overlay)
    (problem,) = layer.problems()
    assert (problem.code, words in str(problem)) == (code, True), str(problem)


def test_a_cycle_of_mixins(layer):
    layer.mixin("ubuntu", include=["noble"])
    layer.mixin("noble", include=["ubuntu"])
    (problem,) = layer.problems()
    assert "noble -> ubuntu -> noble" in problem.message


def test_lint_finds_mixins_that_do_nothing_or_the_same_again(layer):
    assert [one.code for one in layer.lint()] == ["unused-mixin"] + ["dead-value"] * 9
    layer.overlay("eks", EKS, include=["ubuntu"])
    layer.overlay("h100-eks", BOTH, include=["ubuntu"])
    found = [one for one in layer.lint() if one.code != "dead-value"]
    assert [one.code for one in found] == ["redundant-include"]
    assert found[0].severity == "warning"
