"""Values merge deeply: maps merge, lists replace, null deletes, clashes are errors, nothing is shared."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.merge import merge
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.booleans() | st.integers(-3, 3) | st.text(max_size=3)
LEAVES = SCALARS | st.lists(SCALARS, max_size=3)
# map and scalar under one name would clash, so the shape is a function of the name
TREES = st.recursive(
    st.dictionaries(st.sampled_from(["x", "y"]), LEAVES, max_size=2),
    lambda inner: st.fixed_dictionaries({}, optional={"m": inner, "n": inner, "x": LEAVES}),
    max_leaves=6,
)
PATCHES = st.recursive(
    st.dictionaries(st.sampled_from(["x", "y"]), LEAVES | st.none(), max_size=2),
    lambda inner: st.fixed_dictionaries({}, optional={"m": inner | st.none(), "n": inner, "x": LEAVES | st.none()}),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "base, patch, result",
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": None}, {}),
        ({"a": 1}, {"a": "1"}, {"a": "1"}),
        ({"a": [1]}, {"a": "x"}, {"a": "x"}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({}, {"a": {"b": None}}, {"a": {"b": None}}),
        ({"a": {"b": None}}, {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}),
    ],
    ids=str,
)
def test_one_over_the_other(base, patch, result):
    assert merge(base, patch) == result


def test_deep_merge_keeps_what_a_shallow_one_loses():
    """A child that sets only the retention must not drop the volume claim."""
    base = {"prometheus": {"prometheusSpec": {"storageSpec": {"size": "50Gi"}, "retention": "10d"}}}
    merged = merge(base, {"prometheus": {"prometheusSpec": {"retention": "30d"}}})
    assert merged["prometheus"]["prometheusSpec"] == {"storageSpec": {"size": "50Gi"}, "retention": "30d"}


def test_null_is_for_the_chart_only_where_there_is_nothing_to_delete():
    assert merge({}, {"limits": None}) == {"limits": None}, "Helm drops the chart's own default"
    assert merge({"limits": 1}, {"limits": None}) == {}, "what the recipe set is gone, the chart's default is back"
    assert merge({"limits": 1}, {"limits": None}, {"limits": None}) == {}, "said twice is not said differently"
    assert merge({"limits": 1}, {"limits": None}, {"limits": 2}) == {"limits": 2}


@pytest.mark.parametrize(
    "base, patch, words",
    [
        ({"a": {"b": 1}}, {"a": 1}, "a map already and cannot become a scalar"),
        ({"a": {"b": 1}}, {"a": [1]}, "a map already and cannot become a list"),
        ({"a": 1}, {"a": {"b": 1}}, "the value 1 already and cannot become a map"),
        ({"a": [1]}, {"a": {"b": {"c": 1}}}, "a list already and cannot become a map"),
        ({"a": 1}, {"a": {}}, "cannot become a map"),
    ],
)
def test_a_map_does_not_become_a_scalar_silently(base, patch, words):
    with pytest.raises(InvalidDocument, match=words) as caught:
        merge(base, patch)
    assert len(caught.value.problems) == 1
    cleared = dict.fromkeys(base)
    assert merge(base, cleared, patch) == patch, "deleted first, it may"


def test_all_clashes_at_once_and_each_map_once():
    with pytest.raises(InvalidDocument) as caught:
        merge({"a": 1, "b": {"c": 1}}, {"a": {"x": 1, "y": 2, "z": 3}, "b": 2})
    assert len(caught.value.problems) == 2


ENV = {("driver", "env"): ("name",)}


@pytest.mark.parametrize(
    "patch, result",
    [
        ([{"name": "B", "value": "2"}], [("A", "1"), ("B", "2")]),
        ([{"name": "A", "value": "9"}], [("A", "9")]),
        ([{"name": "A", "$patch": "delete"}, {"name": "B", "value": "2"}], [("B", "2")]),
        ([], [("A", "1")]),
    ],
)
def test_lists_with_a_merge_key(patch, result):
    merged = merge({"driver": {"env": [{"name": "A", "value": "1"}]}}, {"driver": {"env": patch}}, keys=ENV)
    assert [(item["name"], item["value"]) for item in merged["driver"]["env"]] == result


def test_items_of_keyed_lists_merge_deeply_and_null_deletes_the_whole_list():
    base = {"driver": {"env": [{"name": "A", "from": {"x": 1, "y": 2}}]}}
    merged = merge(base, {"driver": {"env": [{"name": "A", "from": {"y": 3}}]}}, keys=ENV)
    assert merged == {"driver": {"env": [{"name": "A", "from": {"x": 1, "y": 3}}]}}
    assert merge(base, {"driver": {"env": None}}, keys=ENV) == {"driver": {}}


@pytest.mark.parametrize(
    "items, words",
    [
        ([{"value": "1"}], "merge by name"),
        (["A=1"], "merge by name"),
        ([{"name": "A"}, {"name": "A"}], "twice"),
        ([{"name": "A", "$patch": "replace"}], "only be delete"),
        ([{"name": "GONE", "$patch": "delete"}], "not there to be removed"),
    ],
)
def test_faults_in_keyed_lists(items, words):
    with pytest.raises(InvalidDocument, match=words):
        merge({"driver": {"env": [{"name": "B"}]}}, {"driver": {"env": items}}, keys=ENV)


@given(TREES, TREES, TREES)
def test_merge_without_null_is_associative(one, two, three):
    assert merge(merge(one, two), three) == merge(one, merge(two, three)) == merge(one, two, three)


@given(TREES)
def test_merge_is_idempotent_and_empty_is_neutral(one):
    assert merge(one, one) == merge(one, {}) == merge({}, one) == merge(one) == one


def _nulls(data) -> bool:
    return data is None or (isinstance(data, dict) and any(map(_nulls, data.values())))


@given(TREES, PATCHES, PATCHES)
def test_sources_are_never_changed_and_nothing_is_shared(base, patch, last):
    sources = [base, patch, last]
    before = copy.deepcopy(sources)
    try:
        merged = merge(*sources)
    except InvalidDocument:
        assert sources == before
        return
    _scribble(merged)
    assert sources == before


def _scribble(data) -> None:
    if isinstance(data, dict):
        for value in data.values():
            _scribble(value)
        data["scribble"] = 1
    elif isinstance(data, list):
        data.append("scribble")


@given(TREES, PATCHES)
def test_what_null_deletes_is_gone(base, patch):
    merged = merge(base, patch)

    def check(below, stated, result):
        for key, value in stated.items():
            if value is None:
                assert result.get(key) is None
                assert key not in result if key in below else key in result
            elif isinstance(value, dict):
                check(below.get(key, {}), value, result[key])
            else:
                assert result[key] == value

    check(base, patch, merged)
