"""What repair takes from its caller, and what it says to what it cannot take."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_options
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.lifecycle.repairing import TESTS

GIVEN = {
    "tests": TESTS,
    "test_options": None,
    "retries": 1,
    "executors": ["ticket"],
    "attempts": None,
    "per_fault": 3,
    "per_node": 5,
    "window": 604800,
    "timeouts": None,
    "min_between": 600,
    "max_parallel": 4,
    "max_parallel_per_domain": 1,
    "on_validation_failure": "ticket",
    "wait": 0,
    "poll": 5,
    "concurrency": 8,
    "records_dir": None,
    "namespace": "goodput-fleet",
}


def test_what_is_not_given_is_the_default():
    policy = repair_options.policy({**GIVEN, "attempts": {"reset": "2"}, "timeouts": {"reboot": 60}})
    assert policy.bounds.attempts == {"reset": 2, "reboot": 1, "replace": 1}
    assert policy.timeouts == {"reset": 900, "reboot": 60, "replace": 7200}
    assert (policy.executors, policy.namespace) == ({"ticket": ""}, "goodput-fleet")
    named = repair_options.policy({**GIVEN, "executors": {"reboot": "redfish"}, "records_dir": "/r"})
    assert (named.executors, named.namespace) == ({"reboot": "redfish"}, "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"executors": ["rest"]}, "executors: 'rest' is no rung (did you mean 'reset'?"),
        ({"executors": "reset"}, "executors: is a str"),
        ({"timeouts": {"reboot": "soon"}}, "timeouts.reboot: is 'soon' (a whole number from 1 to 604800)"),
        ({"timeouts": {"ticket": 3}}, "timeouts.ticket: is no rung"),
        ({"attempts": {"reset": True}}, "attempts.reset: is True"),
        ({"per_node": -1}, "per_node: is -1 (from 0 to 20)"),
        ({"tests": []}, "tests"),
        ({"tests": [{"domain": "x"}]}, "tests[0]"),
    ],
)
def test_options_that_are_refused(options, said):
    with pytest.raises(InvalidDocument) as error:
        repair_options.policy({**GIVEN, **options})
    assert said in str(error.value)


def test_everything_that_is_wrong_is_told_at_once():
    with pytest.raises(InvalidDocument) as error:
        repair_options.policy({**GIVEN, "per_node": 99, "executors": ["a"], "attempts": {"b": 1}, "poll": 0})
    assert len(error.value.problems) == 4


def test_a_drain_of_the_node_is_wider_than_one_of_a_gpu():
    found = repair_options.drained(["gpu-1", {"node": "gpu-1", "scope": "gpu", "entity": "GPU-1"}, {"node": "gpu-2"}])
    assert {each["node"]: each["scope"] for each in found} == {"gpu-1": "node", "gpu-2": "node"}
    for wrong in (7, {"name": "gpu-1"}, {"node": "gpu-1", "scope": "rack"}):
        with pytest.raises(InvalidDocument, match=r"drained\[0\]"):
            repair_options.drained([wrong])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"execute": True}, "outcomes[1].execute: is not known (did you mean 'executed'?"),
        ({"key": ""}, "outcomes[1].key: is ''"),
        ({"request": None}, "outcomes[1].request: is None"),
        ({"executed": "yes"}, "outcomes[1].executed: is 'yes'"),
        ({"at": "today"}, "outcomes[1].at: is 'today', no time"),
        ({"at": "2026-03-06T09:00:00"}, "no time"),
        ({"serials": "SN"}, "outcomes[1].serials: is no list"),
    ],
)
def test_outcomes_that_are_refused(change, said):
    good = {"request": "r", "rung": "reset", "key": "r/reset/1", "executed": True}
    assert repair_options.outcomes([good]) == ([good], [])
    found, wrong = repair_options.outcomes([good, {**good, **change}])
    assert found == [good] * (2 if "execute" in change else 1)  # the others' word is not lost
    assert said in wrong[0]["why"]
