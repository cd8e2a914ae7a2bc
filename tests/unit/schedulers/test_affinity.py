"""Exclusions as node affinity: a pod that could run on a node that is not excluded still can; never on an excluded."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import affinity
from hypothesis import given, settings
from hypothesis import strategies as st

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTS = [f"gpu-{number}" for number in range(6)]
LABELS = {"pool": ["a", "b"], "zone": ["x", "y", "z"]}


def matches(term: dict, node: dict) -> bool:
    """As the scheduler does: requirements of a term all hold; a term without any matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    facts = [(each, node["labels"].get(each["key"])) for each in expressions]
    facts += [(each, node["name"]) for each in fields]
    return all(holds(each, value) for each, value in facts)


def holds(requirement: dict, value: str | None) -> bool:
    operator, values = requirement["operator"], requirement.get("values") or []
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    return (value is not None) == (operator == "Exists")


def admits(value: dict | None, node: dict) -> bool:
    required = ((value or {}).get("nodeAffinity") or {}).get(REQUIRED)
    return required is None or any(matches(term, node) for term in required["nodeSelectorTerms"])


def requirement(key: str, values: list[str]) -> st.SearchStrategy:
    listed = st.fixed_dictionaries(
        {"key": st.just(key), "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(st.sampled_from(values))}
    )
    return listed | st.fixed_dictionaries(
        {"key": st.just(key), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    )


expressions = st.one_of(
    *(requirement(key, values) for key, values in LABELS.items()), requirement(affinity.HOSTNAME, HOSTS)
)
fields = st.fixed_dictionaries(
    {"key": st.just("metadata.name"), "operator": st.just("In"), "values": st.lists(st.sampled_from(HOSTS), min_size=1)}
)
terms = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(expressions, max_size=3), "matchFields": st.lists(fields, max_size=1)}
)
affinities = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "podAffinity": st.just({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}),
        "nodeAffinity": st.fixed_dictionaries(
            {},
            optional={
                REQUIRED: st.fixed_dictionaries({"nodeSelectorTerms": st.lists(terms, min_size=1, max_size=4)}),
                "preferredDuringSchedulingIgnoredDuringExecution": st.just([{"weight": 1, "preference": {}}]),
            },
        ),
    },
)
nodes = st.builds(
    lambda name, labels: {"name": name, "labels": {affinity.HOSTNAME: name, **labels}},
    st.sampled_from(HOSTS),
    st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in LABELS.items()}),
)
excluded = st.lists(st.sampled_from(HOSTS), min_size=1, max_size=4)


@settings(max_examples=400, deadline=None)
@given(affinities, excluded, nodes)
def test_excluding_takes_those_nodes_and_no_others(value, hosts, node):
    before = copy.deepcopy(value)
    after = affinity.excluding(value, hosts)
    assert value == before
    assert admits(after, node) is (admits(value, node) and node["name"] not in hosts)


@settings(max_examples=400, deadline=None)
@given(affinities, excluded, excluded, nodes)
def test_what_was_added_can_be_taken_off_again(value, hosts, later, node):
    back = affinity.including(affinity.excluding(value, hosts), hosts)
    assert admits(back, node) is admits(value, node)
    assert without_nothing(back) == without_nothing(value)
    moved = affinity.excluding(affinity.including(affinity.excluding(value, hosts), hosts), later)
    assert without_nothing(moved) == without_nothing(affinity.excluding(value, later))


def without_nothing(value: dict | None) -> dict:
    """Without empty maps, which say nothing, but for terms: one that is empty matches nothing."""
    result = copy.deepcopy(value or {})
    node = result.get("nodeAffinity")
    if node is not None and not node:
        del result["nodeAffinity"]
    for term in ((node or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
        if not term.get("matchExpressions"):
            term.pop("matchExpressions", None)
    return result


def test_terms_are_alternatives_so_each_gets_the_exclusion():
    pools = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]} for pool in "ab"]
    value = affinity.excluding({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pools}}}, ["gpu-1"])
    for term in value["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]:
        assert term["matchExpressions"][-1] == {"key": affinity.HOSTNAME, "operator": "NotIn", "values": ["gpu-1"]}


def test_preferences_come_and_go():
    terms_ = affinity.preference("rack", ["r2", "r1"])
    assert terms_[0]["preference"]["matchExpressions"][0]["values"] == ["r1", "r2"]
    value = affinity.preferring({"podAffinity": {}}, terms_)
    assert affinity.not_preferring(value, terms_) == {"podAffinity": {}}
    assert affinity.preferring(None, []) is None and affinity.preference("rack", []) == []


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", '[{"node": "a"}]'])
def test_annotations_that_are_not_ours_take_nothing_off(text):
    assert affinity.remembered({"metadata": {"annotations": {affinity.EXCLUDED: text}}}) == ([], [])


def test_annotations_are_read_back():
    entries, terms_ = [{"node": "n", "hostname": "h", "until": ""}], affinity.preference("rack", ["r"])
    job = {"metadata": {"annotations": affinity.annotations(entries, terms_)}}
    assert affinity.remembered(job) == (entries, terms_)
    assert affinity.annotations([], []) == {affinity.EXCLUDED: None, affinity.PREFERRED: None}


@pytest.mark.parametrize(
    "text", ['[{"hostname": "a"}]', '[{"node": ["a"], "hostname": "a"}]', '[{"node": {}, "hostname": "a"}]', "[" * 9999]
)
def test_a_forged_note_excludes_nobody_and_breaks_nothing(text):
    job = {"metadata": {"annotations": {affinity.EXCLUDED: text}}}
    assert affinity.remembered(job)[0] == []


def test_what_is_noted_of_hundreds_of_nodes_leaves_room_for_other_annotations():
    names = [f"gpu-{number:04d}.cluster.example" for number in range(512)]
    many = [
        {"node": name, "hostname": name, "uid": "1d0f6901-8288-4893-9462-63f57ed047a7", "why": "x" * 512, "until": ""}
        for name in names
    ]
    notes = affinity.annotations(many, [])
    assert len(notes[affinity.EXCLUDED]) < 256 * 1024 * 0.7
    assert [each["node"] for each in affinity.remembered({"metadata": {"annotations": notes}})[0]] == names
