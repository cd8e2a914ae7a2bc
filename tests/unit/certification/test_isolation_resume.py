"""The search keeps nothing: any order of the results, any interruption, the same answer."""

from __future__ import annotations

import copy
import doctest
import random

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import plan
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.certification.faulty_fleets import FaultyFleet, Launcher, random_fleet


def names(count: int) -> list[str]:
    return [f"n{number:03d}" for number in range(count)]


def fleet(count: int, **faults) -> FaultyFleet:
    return FaultyFleet([{"name": name} for name in names(count)], **faults)


def findings(verdict: dict) -> dict:
    """Who is to blame, without the tests that show it."""
    return {
        "bad": [item["node"] for item in verdict["bad"]],
        "pairs": [(item["a"], item["b"]) for item in verdict["badPairs"]],
        "cleared": verdict["cleared"],
        "unknown": verdict["unknown"],
        "green": verdict["green"],
    }


def test_the_example_in_the_docstring_is_true():
    assert doctest.testmod(plan).failed == 0


def test_order_of_results_does_not_matter():
    for seed in range(15):
        launcher = Launcher(random_fleet(seed, sizes=(4, 64)), finish=2)
        launcher.run()
        rng = random.Random(seed)
        for _shuffle in range(3):
            known = launcher.results[: rng.randrange(len(launcher.results) + 1)]
            mixed = rng.sample(known, len(known))
            ask = [plan.advance(launcher.fleet.nodes, results) for results in (known, mixed)]
            assert ask[0] == ask[1]


def test_goes_on_from_any_point():
    """Killed after any number of results, running tests lost: the same findings, and no finished test is run again."""
    for seed in range(8):
        first = Launcher(random_fleet(seed, sizes=(4, 40), flaky=False), finish=2)
        expected = findings(first.run())
        for count in range(0, len(first.results), 5):
            again = Launcher(first.fleet, results=first.results[:count], finish=2)
            assert findings(again.run()) == expected
            asked = [(tuple(test["group"]), test["repeat"]) for test in again.results]
            assert len(asked) == len(set(asked))


def test_a_finished_search_asks_for_nothing():
    launcher = Launcher(fleet(20, bad={"n007"}))
    verdict = launcher.run()
    step = plan.advance(launcher.fleet.nodes, launcher.results)
    assert step["tests"] == [] and step["verdict"] == verdict == step["progress"]


def test_results_given_twice_count_once():
    """A pair needs two failures: one result that is read twice is not two."""
    nodes = names(6)
    known = [
        {"group": nodes[:3], "outcome": "pass", "repeat": 1},
        {"group": nodes[3:], "outcome": "fail", "repeat": 1},
        {"group": ["n000", "n004"], "outcome": "fail", "repeat": 1},
    ]
    once, twice = (plan.advance(nodes, results) for results in (known, known + known))
    assert once == twice


def test_a_passing_group_needs_no_search():
    step = plan.advance(names(256), [{"group": names(256), "outcome": "pass"}])
    assert step["tests"] == [] and step["verdict"]["green"] and step["verdict"]["tests"] == 1


def test_starts_from_a_failed_run_of_everything():
    launcher = Launcher(fleet(256, bad={"n100", "n200"}), results=[{"group": names(256), "outcome": "fail"}])
    assert [item["node"] for item in launcher.run()["bad"]] == ["n100", "n200"]


def test_starts_from_failed_groups_of_a_larger_run():
    """Those that passed are not tested again; the failed one is taken apart at once."""
    groups = [names(64)[start : start + 16] for start in range(0, 64, 16)]
    known = [{"group": group, "outcome": "fail" if "n020" in group else "pass"} for group in groups]
    step = plan.advance(names(64), known)
    assert sorted(test["about"][0] for test in step["tests"]) == groups[1]
    assert all(len(test["group"]) == 2 for test in step["tests"])


def test_no_waves():
    """A suspect is tested as soon as one group passed, while others still run."""
    nodes = names(64)
    step = plan.advance(nodes, [])
    first, second, *rest = (test["group"] for test in step["tests"])
    known = [{"group": first, "outcome": "pass"}, {"group": second, "outcome": "fail"}]
    step = plan.advance(nodes, known, busy=rest)
    assert sorted(test["about"][0] for test in step["tests"]) == second
    assert all(set(test["group"]) <= set(first) | set(second) for test in step["tests"])
    assert plan.advance(nodes, known, busy=[*rest, *(test["group"] for test in step["tests"])])["tests"] == []


def test_nodes_named_by_a_log_come_first():
    nodes = names(25)
    groups = [nodes[start : start + 5] for start in range(0, 25, 5)]
    known = [{"group": group, "outcome": "pass"} for group in groups[1:]]
    known.append({"group": groups[0], "outcome": "fail", "suspects": ["n003", "not-in-this-run"]})
    step = plan.advance(nodes, known, {"max_tests": len(known) + 1})
    assert [test["about"] for test in step["tests"]] == [["n003"]]


def test_evidence_names_partners_that_are_good():
    for seed in range(25):
        launcher = Launcher(random_fleet(seed, sizes=(8, 100), flaky=False))
        verdict = launcher.run()
        for item in verdict["bad"]:
            tests = [test for test in item["evidence"] if len(test["group"]) == 2 and test["outcome"] == "fail"]
            partners = {name for test in tests for name in test["group"]} - {item["node"]}
            assert len(partners & set(verdict["cleared"])) >= 2
        for item in verdict["badPairs"]:
            assert item["failed"] >= 2
            assert {item["a"], item["b"]} <= set(verdict["cleared"])


@pytest.mark.parametrize("outcome", ["error", "blocked", "not_measured", "not_run", "skipped", "not_applicable"])
def test_outcomes_that_say_nothing_about_a_node(outcome):
    """Given for one node's every test, it is not blamed; given once, it is tried again."""
    nodes = names(9)
    step = plan.advance(nodes, [{"group": nodes[:3], "outcome": outcome, "repeat": 1}])
    assert (nodes[:3], 2) in [(test["group"], test["repeat"]) for test in step["tests"]]
    launcher = Launcher(fleet(9))
    launcher.fleet.outcome = lambda group: outcome if "n004" in group else "pass"
    verdict = launcher.run()
    assert [item["node"] for item in verdict["unknown"]] == ["n004"] and not verdict["bad"]
    assert len(verdict["cleared"]) == 8


def test_rounds_are_the_longest_path():
    for bad in ({"n100"}, {"n001", "n002", "n003", "n129", "n255"}):
        launcher = Launcher(fleet(256, bad=bad))
        named = launcher.run(until=lambda step: not step["progress"]["unknown"])
        assert named["rounds"] == launcher.rounds == 3
        assert {item["node"] for item in named["bad"]} == bad
        assert named["nodeTests"] <= 256 + 2 * 16 * len(bad) + 2 * len(bad)
        assert launcher.run()["rounds"] == 4


@pytest.mark.parametrize(
    ("nodes", "results", "options", "said"),
    [
        (["a", "a"], [], {}, "nodes[1]: 'a' is named twice"),
        (["a", 7], [], {}, "nodes[1]: is 7 (a name, or {name, domain})"),
        ([{"name": "a", "domain": 3}], [], {}, "nodes[0].domain: is 3, not a text"),
        (["a", "b"], [{"group": ["a", "c"], "outcome": "pass"}], {}, "results[0].group: 'c' is no node of this run"),
        (["a", "b"], [{"group": ["a", "a"], "outcome": "pass"}], {}, "results[0].group: 'a' is named twice"),
        (["a", "b"], [{"group": [], "outcome": "pass"}], {}, "results[0].group: is []"),
        (["a", "b"], ["pass"], {}, "results[0]: is 'pass'"),
        (["a"], [{"group": ["a"], "outcome": "pass", "repeat": "1"}], {}, "results[0].repeat: is '1', not a whole"),
        (["a"], [{"group": ["a"], "outcome": "pass", "suspects": "a"}], {}, "results[0].suspects: is 'a', not a list"),
        (["a", "b"], [{"group": ["a", "b"], "outcome": "passed"}], {}, "results[0].outcome: is 'passed' (did you mean"),
        (["a", "b"], [], {"max_test": 3}, "options.max_test: there is no such option (did you mean 'max_tests'?"),
        (["a", "b"], [], {"max_tests": -1}, "options.max_tests: is -1, not a whole number from 0 on"),
        (["a", "b"], [], {"mode": "training "}, "options.mode: is 'training ' (did you mean 'training'?"),
        (["a", "b"], [], {"sizes": []}, "options.sizes: is [], not a list of group sizes"),
        (["a", "b"], [], {"max_nodes": 1}, "options.max_nodes: leaves no room for a group of 2 nodes"),
        (["a", "b"], [], {"links": "none"}, "options.links: is 'none'"),
    ],
)
def test_bad_input_is_one_clear_error(nodes, results, options, said):
    with pytest.raises(InvalidDocument) as error:
        plan.advance(nodes, results, options)
    assert said in str(error.value)


def test_two_outcomes_for_one_test():
    known = [{"group": ["a", "b"], "outcome": outcome, "repeat": 1} for outcome in ("pass", "fail")]
    with pytest.raises(InvalidDocument, match="repeat 1 is 'fail' here and 'pass' before"):
        plan.advance(["a", "b"], known)


def test_all_problems_at_once():
    known = [{"group": ["x"], "outcome": "pass"}, {"group": ["a", "b"], "outcome": "well"}]
    with pytest.raises(InvalidDocument) as error:
        plan.advance(["a", "b"], copy.deepcopy(known))
    assert len(error.value.problems) == 2
