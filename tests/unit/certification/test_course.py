"""What runs next: isolation after a failure, free nodes only, and the same end from any point."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import catalogue, documents
from ansible_collections.goodput.fleet.plugins.module_utils.certification.course import Course
from ansible_collections.goodput.fleet.plugins.module_utils.certification.plan import Planner

from tests.unit.signals.shipped import CATALOG

TESTS = catalogue.load_tests([str(CATALOG)])
ALL_REDUCE = {"domain": "communication", "variant": "nccl-all-reduce"}
LEVEL_1 = {"domain": "diagnostics", "variant": "dcgm-level1"}


def nodes(count: int, rack: int = 8) -> list[dict]:
    return [
        {
            "name": f"gpu-{number:03d}",
            "labels": {
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "goodput.fleet/rack": f"rack-{number // rack}",
            },
            "ready": "True",
            "capacity": {"nvidia.com/gpu": 8},
            "allocatable": {"nvidia.com/gpu": 8},
        }
        for number in range(count)
    ]


def course(count: int, *categories: dict, limits: dict | None = None) -> Course:
    document = {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Certification",
        "metadata": {"name": "accept"},
        "spec": {
            "target": {"nodeSelector": {"nvidia.com/gpu.present": "true"}},
            "categories": list(categories),
            **({"limits": limits} if limits else {}),
        },
    }
    return Course(Planner(documents.load(document)["certification"], TESTS, nodes(count)))


class Site:
    """Runs what the course asks for on a fleet whose bad nodes are known."""

    def __init__(self, course: Course, bad: set[str], seed: int = 0):
        self.course, self.bad, self.random = course, bad, random.Random(seed)
        self.ended: dict[str, dict] = {}
        self.running: dict[str, dict] = {}
        self.most_nodes = 0

    def end_one(self) -> None:
        run = self.running.pop(self.random.choice(sorted(self.running)))
        outcome = "fail" if self.bad & set(run["nodes"]) else "pass"
        self.ended[run["id"]] = {"run": run, "outcomes": dict.fromkeys(run["categories"], outcome)}

    def step(self) -> dict:
        step = self.course.step(self.ended, list(self.running.values()))
        for run in step["start"]:
            assert run["id"] not in self.running and run["id"] not in self.ended
            self.running[run["id"]] = run
        names = [name for run in self.running.values() for name in run["nodes"]]
        assert len(names) == len(set(names)), "a node with two tests at once"
        self.most_nodes = max(self.most_nodes, len(names))
        return step

    def run(self, until: int = 10_000) -> dict:
        for _turn in range(until):
            step = self.step()
            if step["over"]:
                return step
            self.end_one()
        return step


def found(step: dict) -> set[str]:
    return {item["node"] for search in step["searches"] if search["verdict"] for item in search["verdict"]["bad"]}


def test_when_all_is_well_nothing_but_the_plan_runs():
    one = course(16, ALL_REDUCE, LEVEL_1)
    site = Site(one, set())
    step = site.run()
    assert set(site.ended) == one.planned_ids
    assert all(search["verdict"] is None for search in step["searches"])


@pytest.mark.parametrize("seed", range(6))
def test_a_failing_group_is_searched_while_other_tests_go_on(seed):
    chance = random.Random(seed)
    names = [node["name"] for node in nodes(24)]
    bad = set(chance.sample(names, chance.randint(1, 3)))
    site = Site(course(24, ALL_REDUCE, LEVEL_1), bad, seed)
    step = site.run()
    assert found(step) == bad
    assert site.course.planned_ids <= set(site.ended)


@pytest.mark.parametrize("kills", [1, 5])
def test_a_killed_certification_ends_with_the_same_answer(kills):
    whole = Site(course(16, ALL_REDUCE), {"gpu-003", "gpu-011"}, 3)
    verdict = found(whole.run())
    assert verdict == {"gpu-003", "gpu-011"}
    parts = Site(course(16, ALL_REDUCE), {"gpu-003", "gpu-011"}, 3)
    for _kill in range(kills):
        parts.run(until=2)
        parts.course = course(16, ALL_REDUCE)  # a new process; jobs run on, and what ended was stored
    assert found(parts.run()) == verdict
    assert len(parts.ended) == len(set(parts.ended))


def test_limits_hold():
    site = Site(course(16, ALL_REDUCE, LEVEL_1, limits={"maxNodesOut": 4}), {"gpu-002"})
    site.run()
    assert site.most_nodes <= 4
    few = Site(course(16, LEVEL_1, limits={"maxTests": 5}), set())
    few.run()
    assert len(few.ended) == 5


def test_tests_of_one_category_bounded_at_once():
    one = course(16, {**LEVEL_1, "options": {"maxConcurrent": 3}})
    site = Site(one, set())
    counts = []
    while not site.step()["over"]:
        counts.append(len(site.running))
        site.end_one()
    assert max(counts) == 3 and len(site.ended) == 16


def test_categories_that_differ_in_bounds_share_runs_and_not_outcomes():
    strict = {**ALL_REDUCE, "name": "strict", "options": {"thresholds": {"busBandwidthGBps": "value >= 400"}}}
    loose = {**ALL_REDUCE, "name": "loose", "options": {"thresholds": {"busBandwidthGBps": "value >= 40"}}}
    one = course(8, strict, loose)
    (run,) = one.planned["runs"]
    assert run["categories"] == ["strict", "loose"]
    step = one.step({run["id"]: {"run": run, "outcomes": {"strict": "fail", "loose": "pass"}}}, [])
    searched = {search["category"] for search in step["searches"] if search["progress"]}
    assert searched == {"strict"} and step["start"]


def test_an_answer_that_says_nothing_blames_nobody():
    one = course(8, ALL_REDUCE)
    site = Site(one, set())
    while not (step := site.step())["over"]:
        run = site.running.pop(sorted(site.running)[0])
        site.ended[run["id"]] = {"run": run, "outcomes": dict.fromkeys(run["categories"], "error")}
    assert found(step) == set()
    assert all(not search["verdict"] or not search["verdict"]["green"] for search in step["searches"])


def test_every_step_is_a_function_of_what_is_stored():
    site = Site(course(16, ALL_REDUCE), {"gpu-005"})
    seen = []
    while not site.step()["over"]:
        seen.append(sorted(site.running))
        site.end_one()
    again = Site(course(16, ALL_REDUCE), {"gpu-005"})
    other = []
    while not again.step()["over"]:
        other.append(sorted(again.running))
        again.end_one()
    assert seen == other and all(before != after for before, after in pairwise(seen))
