"""Which overlays a query gets, in which order, and what is refused because nothing carries it."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotCovered

from .layers import chart


def applied(lock: dict) -> list[str]:
    return [one["name"] for one in lock["spec"]["overlays"]]


@pytest.fixture
def four(bare):
    bare.registry(chart("a"))
    bare.overlay("base", components=["a"])
    bare.overlay("eks", {"service": "eks"})
    bare.overlay("h100-any", {"accelerator": "h100", "service": "any", "os": "any"})
    bare.overlay("h100-eks", {"accelerator": "h100", "service": "eks"})
    bare.overlay("h100-eks-ubuntu", {"accelerator": "h100", "service": "eks", "os": "ubuntu"})
    bare.overlay("gke-cos", {"service": "gke", "os": "cos"})
    bare.overlay("training", {"intent": "training"})
    return bare


@pytest.mark.parametrize(
    "criteria, expected",
    [
        ({"service": "eks"}, ["base", "eks"]),
        ({"accelerator": "h100"}, ["base", "h100-any"]),
        ({"service": "eks", "accelerator": "h100"}, ["base", "eks", "h100-any", "h100-eks"]),
        ({"service": "eks", "accelerator": "any", "os": "", "intent": None}, ["base", "eks"]),
        ({"service": "amazon"}, ["base", "eks"]),
        ({"service": "self-managed", "accelerator": "h100"}, ["base", "h100-any"]),
        (
            {"os": "ubuntu", "accelerator": "h100", "service": "eks"},
            ["base", "eks", "h100-any", "h100-eks", "h100-eks-ubuntu"],
        ),
    ],
)
def test_matching_is_asymmetric_and_the_specific_comes_later(four, criteria, expected):
    assert applied(four.resolve(**criteria)) == expected


def test_a_query_without_a_value_never_pulls_specific_content(four):
    four.overlay("eks-extra", {"service": "eks", "intent": "inference"}, components=[{"name": "a", "version": "9.9.9"}])
    assert four.component("a", service="eks")["chart"]["version"] == "1.0.0"


def test_any_and_absent_are_the_same_specificity(bare):
    """If an absent field counted as specific, both would tie, and the file that is read last would win."""
    bare.registry(chart("a"))
    bare.overlay("wide", {"service": "eks"}, components=[{"name": "a", "version": "1.1.1"}])
    spelled = {"service": "eks", "accelerator": "h100", "intent": "training", "os": "any"}
    bare.overlay("narrow", spelled, components=[{"name": "a", "version": "2.2.2"}], file="overlays/0-first.yaml")
    query = {"service": "eks", "accelerator": "h100", "intent": "training"}
    assert bare.component("a", **query)["chart"]["version"] == "2.2.2"
    assert applied(bare.resolve(**query)) == ["wide", "narrow"]


@pytest.mark.parametrize(
    "criteria, path, hint",
    [
        ({"service": "gke"}, "criteria.service", "add os: cos"),
        ({"service": "eks", "accelerator": "b200"}, "criteria.accelerator", "carried for accelerator: h100"),
        ({"service": "eks", "os": "ubuntu"}, "criteria.os", "add accelerator: h100"),
        ({"service": "gke", "os": "ubuntu"}, "criteria.service", "os: cos instead of ubuntu"),
        ({"service": "eks", "intent": "inference"}, "criteria.intent", "carried for intent: training"),
        ({"service": "aks"}, "criteria.service", "carried for service: eks, gke"),
    ],
)
def test_what_no_overlay_carries_is_refused_with_the_completions_that_exist(four, criteria, path, hint):
    """A recipe of the base only, with the criteria echoed in it, would look like an answer."""
    with pytest.raises(NotCovered) as caught:
        four.resolve(**criteria)
    problem = next(one for one in caught.value.problems if one.path == path)
    assert hint in problem.hint


def test_everything_uncovered_is_told_at_once(four):
    problems = four.problems(service="gke", accelerator="b200", intent="training")
    assert [one.path for one in problems] == ["criteria.service", "criteria.accelerator"]


def test_a_dimension_that_nothing_depends_on_says_so(four):
    four.registry(chart("a"), criteria={**_dimensions(), "region": {"values": ["eu"]}})
    (problem,) = four.problems(service="eks", region="eu")
    assert "nothing in this catalogue depends on region" in problem.hint


def _dimensions():
    return {name: {"values": list(values)} for name, values in _VALUES.items()}


_VALUES = {
    "service": ["eks", "aks", "gke"],
    "accelerator": ["h100", "b200"],
    "os": ["ubuntu", "cos"],
    "intent": ["training", "inference"],
}


def test_a_site_may_add_dimensions_and_values(four, tmp_path):
    more = type(four)(tmp_path / "site")
    more.registry(name="site", criteria={"region": {"values": ["eu"]}, "service": {"values": ["metal"]}})
    more.overlay("metal", {"service": "metal", "region": "eu"})
    lock = resolve(four.load(more), {"region": "eu", "service": "metal"})
    assert applied(lock) == ["base", "metal"]
    assert lock["spec"]["criteria"] == {"service": "metal", "region": "eu"}
    assert lock["metadata"]["name"] == "metal-eu"


@pytest.mark.parametrize(
    "criteria, path, words",
    [
        ({"service": "ekss"}, "criteria.service", "did you mean 'eks'?"),
        ({"service": "oke"}, "criteria.service", "valid: aks, amazon, any, eks, gke, self-managed"),
        ({"servcie": "eks"}, "criteria.servcie", "did you mean 'service'?"),
        ({"nodes": -3}, "criteria.nodes", "is not declared"),
        ({"os": 24.04}, "criteria.os", "put it in quotes"),
        ({"service": True}, "criteria.service", "not a text"),
        ({"service": ["eks"]}, "criteria.service", "not a text"),
        ({}, "criteria", "no criteria are stated"),
        ({"service": "any", "os": "self-managed"}, "criteria.os", "not known"),
        ({"service": "self-managed"}, "criteria", "state at least one of service: eks, aks, gke; accelerator:"),
    ],
    ids=str,
)
def test_bad_queries_name_what_would_be_right(four, criteria, path, words):
    with pytest.raises(InvalidDocument) as caught:
        resolve(four.load(), criteria)
    assert [one.path for one in caught.value.problems] == [path]
    assert words in str(caught.value)


@pytest.mark.parametrize("criteria", ["service=eks", ["eks"], None])
def test_criteria_that_are_no_map(four, criteria):
    with pytest.raises(InvalidDocument, match="must be a map"):
        resolve(four.load(), criteria)


def test_every_bad_criterion_at_once(four):
    with pytest.raises(InvalidDocument) as caught:
        resolve(four.load(), {"service": "x", "accelerator": "y", "region": "z"})
    assert len(caught.value.problems) == 3


def test_the_lock_names_criteria_in_the_order_of_the_dimensions(four):
    lock = four.resolve(os="ubuntu", service="amazon", accelerator="h100", intent="any")
    assert lock["spec"]["criteria"] == {"service": "eks", "accelerator": "h100", "os": "ubuntu"}
    assert list(lock["spec"]["criteria"]) == ["service", "accelerator", "os"]
    assert lock["metadata"]["name"] == "eks-h100-ubuntu"


def test_what_files_are_called_decides_nothing(bare, tmp_path):
    contents = [
        ("eks", {"service": "eks"}, {"values": {"x": 1, "z": {"p": 1}}}),
        ("h100", {"accelerator": "h100"}, {"values": {"y": 2, "z": {"q": 1}}}),
        ("both", {"accelerator": "h100", "service": "eks"}, {"values": {"x": 3}}),
    ]
    seen = set()
    for number, order in enumerate(itertools.permutations(contents)):
        layer = type(bare)(tmp_path / str(number))
        layer.registry(chart("a"), name=f"r{number}")
        for position, (name, criteria, fields) in enumerate(order):
            component = {"name": "a", **fields}
            layer.overlay(name, criteria, components=[component], file=f"overlays/{position}-{number}/{position}.yaml")
        lock = layer.resolve(service="eks", accelerator="h100")
        lock["spec"]["catalog"]["digest"] = lock["metadata"]["digest"] = ""  # paths count in the catalogue's digest
        seen.add(repr(lock))
    assert len(seen) == 1
