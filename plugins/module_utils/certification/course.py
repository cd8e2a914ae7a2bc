# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a certification: what to start now, from what has ended and what is running. Pure.

    course = Course(planner)
    while True:
        step = course.step(ended, running)
        if step["over"]:
            break
        start(step["start"])                        # Runs, whose nodes are free
        ...                                         # wait for any to end
        ended[run["id"]] = {"run": run, "outcomes": {category: "pass"}, "signatures": {category: "..."}}

Nothing is kept between two steps, so that a killed certification goes on with what it has stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import plan as isolation
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.state import PASSES
from ansible_collections.goodput.fleet.plugins.module_utils.certification.plan import DIAGNOSE, Planner


class Course:
    """One plan, on its way. `planned` is the plan as `plan.plan` gives it."""

    def __init__(self, planner: Planner):
        self.planner, self.planned = planner, planner.plan()
        self.planned_ids = {run["id"] for run in self.planned["runs"]}
        self.most_nodes = planner.limits.get("maxNodesOut")
        self.most_tests = planner.limits.get("maxTests")

    def step(self, ended: Mapping[str, Mapping], running: Collection[Mapping], closed: bool = False) -> dict:
        """{start: [Run], shared: [Run], over, searches: [{category, nodes, verdict, progress}], waiting: how many}.

        shared: runs of `ended` that a search asks for on behalf of a category which they have no outcome for yet.

        ended: {run id: {run, outcomes: {category: outcome}, signatures?: {category: text}}} of this and of
        earlier attempts; outcomes are those of isolation.state.OUTCOMES, for the group as a whole. running:
        Runs that keep their nodes busy; one that has ended is among them until its pods are gone. closed:
        nothing is started any more. Over: nothing runs, nothing is to be started. A search has a verdict once
        it has nothing left to test.
        """
        searches = [self._search(search, ended, running) for search in self.planned["searches"]]
        further = _merged(run for search in searches for run in search.pop("runs"))
        shared = [run for run in further if run["id"] in ended]
        waiting = [run for run in self.planned["runs"] if run["id"] not in ended]
        known = {run["id"] for run in running}
        queue = [run for run in [*further, *waiting] if run["id"] not in known and run["id"] not in ended]
        start = [] if closed else self._fitting(queue, ended, running)
        return {
            "start": start,
            "shared": shared,
            "over": not start and not running and not shared,
            "searches": searches,
            "waiting": len(queue) - len(start),
        }

    def _search(self, search: Mapping, ended: Mapping[str, Mapping], running: Collection[Mapping]) -> dict:
        """One search, a step further. It begins with the first group that fails, or with the category's own runs."""
        category, names = search["category"], {node["name"] for node in search["nodes"]}
        results = [
            {
                "group": item["run"]["nodes"],
                "outcome": item["outcomes"][category],
                "repeat": item["run"]["repeat"],
                "signature": item.get("signatures", {}).get(category, ""),
                "id": run_id,
            }
            for run_id, item in ended.items()
            if category in item["outcomes"] and names.issuperset(item["run"]["nodes"])
        ]
        found = {"category": category, "nodes": sorted(names), "verdict": None, "progress": None, "runs": []}
        diagnose = self.planner.categories[category]["options"].get("testScale") == DIAGNOSE
        if not diagnose and all(result["outcome"] in PASSES for result in results):
            return found
        own = [
            run
            for run in running
            if run["id"] not in ended and category in run["categories"] and names.issuperset(run["nodes"])
        ]
        screening = [
            run
            for run in self.planned["runs"]
            if run["id"] not in ended and category in run["categories"] and names.issuperset(run["nodes"])
        ]
        if screening and not diagnose:
            # groups that were planned anyway tell more than a guess does
            busy = [run["nodes"] for run in {run["id"]: run for run in [*own, *screening]}.values()]
        else:
            busy = [run["nodes"] for run in own]
        step = isolation.advance(search["nodes"], results, search["options"], busy=_apart(busy))
        found["progress"], found["verdict"] = step["progress"], step["verdict"]
        found["runs"] = [
            self.planner.run(category, test["group"], test["repeat"], test["purpose"]) for test in step["tests"]
        ]
        return found

    def _fitting(self, queue: Iterable[dict], ended: Mapping, running: Collection[Mapping]) -> list[dict]:
        """Those that may start now: free nodes, room in the category and in the limits. Each node has one test."""
        busy = {name for run in running for name in run["nodes"]}
        alive = [run for run in running if run["id"] not in ended]
        active = Counter(run["category"] for run in alive)
        concurrent = self.planner.concurrent()
        room = None if self.most_tests is None else self.most_tests - len(ended) - len(alive)
        chosen: dict[str, dict] = {}
        for run in queue:
            if run["id"] in chosen or not busy.isdisjoint(run["nodes"]):
                continue
            if room is not None and len(chosen) >= room:
                break
            if active[run["category"]] >= concurrent.get(run["category"], float("inf")):
                continue
            if self.most_nodes is not None and len(busy) + len(run["nodes"]) > self.most_nodes:
                continue
            chosen[run["id"]] = run
            busy.update(run["nodes"])
            active[run["category"]] += 1
        return list(chosen.values())


def _merged(runs: Iterable[dict]) -> list[dict]:
    """Searches of categories that differ in bounds only ask for the same runs: one run for all of them."""
    found: dict[str, dict] = {}
    for run in runs:
        first = found.setdefault(run["id"], run)
        first["categories"] = list(dict.fromkeys([*first["categories"], *run["categories"]]))
    return list(found.values())


def _apart(groups: Iterable[list[str]]) -> list[list[str]]:
    """Groups that share a node with an earlier one say nothing new about what is busy."""
    seen: set[str] = set()
    kept = []
    for group in groups:
        if seen.isdisjoint(group):
            seen.update(group)
            kept.append(group)
    return kept
