"""Policies: first match wins, system namespaces stay, bad entries are all told at once."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_policy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

EVICT = {"namespaces": ["team-*"], "action": "evict"}


def chosen(entries, namespace, labels=None, **options):
    return drain_policy.load(entries, **options).match(namespace, labels or {})


@pytest.mark.parametrize(
    ("namespace", "labels", "name", "action"),
    [
        ("team-a", {"job": "x"}, "policies[0]", "leave"),
        ("team-a", {}, "policies[1]", "evict"),
        ("other", {}, "policies[2]", "wait"),
        ("kube-system", {}, "system_namespaces", "leave"),
        ("gpu-operator", {}, "system_namespaces", "leave"),
        ("gpu-operator-2", {}, "policies[2]", "wait"),
    ],
)
def test_the_first_that_takes_a_pod(namespace, labels, name, action):
    entries = [
        {"namespaces": ["team-*"], "selector": "job", "action": "leave"},
        EVICT,
        {"namespaces": ["*"], "action": "wait"},
    ]
    policy = chosen(entries, namespace, labels)
    assert (policy.name, policy.action) == (name, action)


def test_without_policies_everything_is_waited_for():
    assert chosen([], "any").action == "wait"


def test_a_catch_all_does_not_reach_the_system():
    assert chosen([{"namespaces": ["*"], "action": "evict"}], "kube-system").action == "leave"
    assert chosen([{"namespaces": ["*"], "action": "evict"}], "kube-system", system_namespaces=[]).action == "evict"


def test_all_values_are_read():
    entry = {**EVICT, "after": "1h30m", "unmanaged": True, "local_data": True, "grace_seconds": 60}
    policy = chosen([{**entry, "force": True, "force_after": 90, "force_grace_seconds": 0}], "team-a")
    assert (policy.after, policy.force_after, policy.grace_seconds, policy.force_grace_seconds) == (5400, 90, 60, 0)
    assert policy.unmanaged and policy.local_data


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({**EVICT, "after": "soon"}, "policies[0].after: 'soon' is not a duration"),
        ({**EVICT, "after": "-5"}, "policies[0].after"),
        ({**EVICT, "after": True}, "policies[0].after"),
        ({**EVICT, "afer": "1h"}, "policies[0].afer: there is no such key (did you mean 'after'?"),
        ({**EVICT, "action": "delete"}, "policies[0].action: is 'delete'"),
        ({"namespaces": ["a"]}, "policies[0].action: is missing"),
        ({**EVICT, "namespaces": []}, "policies[0].namespaces: is not a list"),
        ({**EVICT, "namespaces": "a"}, "policies[0].namespaces: is not a list"),
        ({**EVICT, "namespaces": ["kube-system"]}, "'kube-system' is a system namespace"),
        ({**EVICT, "selector": "a=b=c"}, "policies[0].selector: cannot read 'a=b=c'"),
        ({**EVICT, "grace_seconds": 0}, "policies[0].grace_seconds: is 0, not a number of seconds from 1 on"),
        ({**EVICT, "force": True}, "policies[0].force_after: is missing"),
        ({**EVICT, "force_after": "1h"}, "policies[0].force_after: means nothing without force"),
        ({**EVICT, "force_grace_seconds": 0}, "policies[0].force_grace_seconds: means nothing without force"),
        ({"namespaces": ["a"], "action": "wait", "after": "1h"}, "policies[0].after: means nothing with action wait"),
        ("evict", "policies[0]: is str, not a map"),
    ],
)
def test_what_is_refused(entry, told):
    with pytest.raises(InvalidDocument) as error:
        drain_policy.load([entry])
    assert told in str(error.value)


def test_every_problem_is_told_at_once():
    with pytest.raises(InvalidDocument) as error:
        drain_policy.load([{**EVICT, "after": "x"}, {"namespaces": [], "action": "go"}])
    assert [problem.path for problem in error.value.problems] == [
        "policies[0].after",
        "policies[1].action",
        "policies[1].namespaces",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("1h30m", 5400), ("90s", 90), ("90", 90), (90, 90), (1.5, 1.5), ("500ms", 0.5), ("2d", 172800),
     ("1.5h", 5400), (" 5m ", 300), (0, 0)],
)  # fmt: skip
def test_durations(text, seconds):
    assert drain_policy.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "5 m", "5x", "1h-", None, True, -1, float("nan"), float("inf"), [], "1e9"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="not a duration"):
        drain_policy.duration(text)
