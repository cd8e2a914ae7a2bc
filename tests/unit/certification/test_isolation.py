"""Any number of bad nodes, links and flaky nodes, found in random fleets, and no good one blamed."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import board

from tests.unit.certification.faulty_fleets import FaultyFleet, Launcher, random_fleet


def faults_told_right(fleet: FaultyFleet, verdict: dict) -> None:
    """Everything that is broken is named, and nothing else is."""
    comes_and_goes = set(fleet.flaky)
    named = {item["node"] for item in verdict["bad"]}
    unreached = {name for item in verdict["badDomains"] if item["kind"] == "unreached" for name in item["nodes"]}
    doubted = {name for item in verdict["flaky"] for name in item["nodes"]}
    pairs = {frozenset((item["a"], item["b"])) for item in verdict["badPairs"]}
    assert fleet.bad <= named | unreached
    assert named | unreached <= fleet.bad | comes_and_goes
    assert {item["node"] for item in verdict["flaky"] if "node" in item} <= comes_and_goes
    # an end of a link that flickers may hide the link; a link that flickers is one of a flaky node
    for link in fleet.links:
        assert frozenset(link) in pairs or doubted & set(link)
    assert all(tuple(sorted(pair)) in fleet.links or pair & comes_and_goes for pair in pairs)
    assert not verdict["suspicions"] and not verdict["budgetExhausted"]
    if not comes_and_goes:
        assert not verdict["unexplained"] and not verdict["unknown"] and not verdict["flaky"]
        assert verdict["linksProven"]
        assert set(verdict["cleared"]) == set(fleet.names) - named - unreached
        assert verdict["green"] == (not fleet.bad and not fleet.links)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_fleets(first):
    for seed in range(first, first + 20):
        fleet = random_fleet(seed)
        # all running tests end together, or one or three of them in any order
        finish = (None, 1, 3)[seed % 3] if len(fleet.nodes) <= 40 else None
        launcher = Launcher(fleet, finish=finish)
        verdict = launcher.run()
        faults_told_right(fleet, verdict)
        assert verdict["tests"] == len(launcher.results) <= board.ceiling(len(fleet.nodes))
        classes = [*(item["node"] for item in (*verdict["bad"], *verdict["unknown"])), *verdict["cleared"]]
        classes += [item["node"] for item in verdict["flaky"] if "node" in item]
        classes += [
            name for item in verdict["badDomains"] if item["kind"] in ("uplink", "unreached") for name in item["nodes"]
        ]
        assert sorted(classes) == sorted(fleet.names), "every node is in one class"


def test_budgets_hold_at_every_moment():
    for seed in range(40):
        fleet, rng = random_fleet(seed, sizes=(4, 48)), random.Random(seed)
        options = {
            "max_tests": rng.randrange(30),
            "max_nodes": rng.randrange(2, 20),
            "max_node_tests": rng.randrange(200),
        }
        launcher = Launcher(fleet, options, finish=rng.choice([None, 1, 2]))
        verdict = launcher.run()
        assert verdict["tests"] <= options["max_tests"] and verdict["nodeTests"] <= options["max_node_tests"]
        named = {item["node"] for item in verdict["bad"]}
        assert named <= fleet.bad | set(fleet.flaky)
        if verdict["budgetExhausted"]:
            assert not verdict["green"]


def test_ends_whatever_the_tests_say():
    """Outcomes by dice: a verdict within the ceiling, no group run for ever."""
    for seed in range(12):
        fleet, dice = random_fleet(seed, sizes=(4, 12)), random.Random(seed)
        odds = [dice.random() for _outcome in range(3)]
        fleet.outcome = lambda _group, dice=dice, odds=odds: dice.choices(["pass", "fail", "error"], odds)[0]
        launcher = Launcher(fleet, finish=dice.choice([None, 3]))
        verdict = launcher.run()
        assert verdict["tests"] <= board.ceiling(len(fleet.nodes))
        runs = Counter(tuple(test["group"]) for test in launcher.results)
        # repeats, flaky_runs and error_retries by default, and the first
        assert max(runs.values(), default=0) <= 2 + 4 + 1 + 1
        failed = any(test["outcome"] == "fail" for test in launcher.results)
        assert not (failed and verdict["green"])
