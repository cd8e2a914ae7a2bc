"""The order of deployment comes from the dependencies alone, and is the same every time."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.order import deployment_order, tiers
from ansible_collections.goodput.fleet.plugins.module_utils.records import graph
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from hypothesis import given
from hypothesis import strategies as st


def components(**edges) -> list[dict]:
    return [{"name": name, "dependsOn": before} for name, before in edges.items()]


@pytest.mark.parametrize(
    "edges, order, levels",
    [
        ({"b": [], "a": []}, ["a", "b"], {"a": 0, "b": 0}),
        ({"a": ["z"], "z": [], "m": ["a"]}, ["z", "a", "m"], {"z": 0, "a": 1, "m": 2}),
        ({"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}, ["a", "b", "c", "d"], {"a": 0, "b": 1, "c": 1, "d": 2}),
        ({"a": [], "x": ["a", "y"], "y": []}, ["a", "y", "x"], {"a": 0, "y": 0, "x": 1}),
        ({}, [], {}),
    ],
)
def test_order_and_tiers(edges, order, levels):
    assert deployment_order(components(**edges)) == order
    assert tiers(components(**edges)) == levels


@pytest.mark.parametrize(
    "listed, words",
    [
        (components(a=["b"], b=["c"], c=["a"]), "a -> b -> c -> a"),
        (components(z=["z"]), "z -> z"),
        (components(x=["b"], b=["c"], c=["b"]), "b -> c -> b"),
        (components(a=["gpu-operatr"], **{"gpu-operator": []}), "did you mean 'gpu-operator'?"),
        ([{"name": "a"}, {"name": "a"}], "there twice"),
    ],
)
def test_faults(listed, words):
    with pytest.raises(InvalidDocument, match=words.replace("?", r"\?")):
        deployment_order(listed)


GRAPHS = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=8)


@given(GRAPHS)
def test_any_graph_has_an_order_or_a_cycle(edges):
    edges = {name: [other for other in before if other in edges] for name, before in edges.items()}
    ring = graph.cycle(edges)
    if ring:
        assert ring[0] == ring[-1] == min(ring)
        assert all(after in edges[before] for before, after in itertools.pairwise(ring))
        with pytest.raises(ValueError, match="cycle"):
            graph.order(edges)
        return
    order = graph.order(edges)
    assert sorted(order) == sorted(edges)
    place = {name: position for position, name in enumerate(order)}
    levels = graph.tiers(edges)
    for name, before in edges.items():
        assert all(place[other] < place[name] for other in before)
        assert levels[name] == max((levels[other] + 1 for other in before), default=0)
