# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certification at work: starts runs, watches them, reads and stores what came of them, until nothing is left.

    session = Session(name, course, evidence, launcher, overdue, clock)
    session.resume()
    while not session.advance():
        wait()
    session.results()

Everything that a later process needs is in the evidence and in the cluster. A run that has ended and is stored is
never started again; one that goes on in the cluster is taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    bounds,
    inventory,
    reading,
    results,
    verdict,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.course import Course
from ansible_collections.goodput.fleet.plugins.module_utils.certification.evidence import Evidence
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, InvalidDocument

STARTED = "started.json"  # runs that were handed to the cluster and have not been recorded yet
LEAVING_SECONDS = 120  # that pods of a run may take to go before their nodes count as not clean
ENDED = ("succeeded", "failed", "gone")


class Session:
    """`launcher`: starts, observes and stops runs, see launchers.kubernetes.Launcher; `overdue`: what of its limits a
    run has passed; `clock`: the time, with its zone."""

    def __init__(
        self,
        name: str,
        course: Course,
        evidence: Evidence,
        launcher,
        overdue: Callable,
        clock: Callable[[], datetime],
    ):
        self.name, self.course, self.evidence, self.launcher = name, course, evidence, launcher
        self._overdue, self._clock = overdue, clock
        self.ended: dict[str, dict] = {}
        self.running: dict[str, dict] = {}
        self.leaving: dict[str, tuple[dict, datetime]] = {}
        self.step: dict = {}
        self.news: list[str] = []
        self.bounds = load_bounds(course)
        self.begun = ""

    def resume(self) -> None:
        """Take in what is stored, and what an earlier process has left in the cluster."""
        for run_id in self.evidence.runs():
            stored = self.evidence.load(run_id)
            if stored:
                self.ended[run_id] = {**stored, **self._outcomes(stored)}
        state = self.evidence.read(STARTED) or {"begun": self._clock().strftime("%Y-%m-%dT%H:%M:%SZ"), "runs": []}
        self.begun = state["begun"]
        started = {run["id"]: run for run in state["runs"]}
        self.running = {run_id: run for run_id, run in started.items() if run_id not in self.ended}
        for run_id in self.launcher.orphans(self.running):
            self.launcher.stop(run_id)
            run = (self.ended.get(run_id) or {}).get("run")
            if run:  # stored, and the process died before it was removed
                self.leaving[run_id] = (run, self._clock())
        seen = self.launcher.observe(self.running.values())
        for run_id, run in self.running.items():
            if seen[run_id]["phase"] == "gone" and not seen[run_id]["pods"]:
                self.launcher.start(run)  # written down, and never started
        if self.running or self.ended:
            self.news.append(f"goes on: {len(self.ended)} tests are done, {len(self.running)} are running")

    def advance(self) -> bool:
        """One look at everything. Whether the certification is over."""
        self._collect()
        self._see_off()
        busy = [*self.running.values(), *(run for run, _since in self.leaving.values())]
        self.step = self.course.step(self.ended, busy, self._closed())
        fresh = [run for run in self.step["start"] if run["id"] not in self.leaving]
        if fresh:
            self._write_down([*self.running.values(), *fresh])
        for run in fresh:
            self._start(run)
        return self.step["over"]

    def _closed(self) -> bool:
        """Whether limits.maxMinutes have passed: what runs may end, nothing else begins."""
        most = self.course.planner.limits.get("maxMinutes")
        if not most:
            return False
        begun = datetime.fromisoformat(self.begun)
        return (self._clock() - begun).total_seconds() > 60 * most

    def progress(self) -> dict:
        """{done, running, waiting, nodes}: numbers of tests, and the nodes that are busy."""
        nodes = {name for run in self.running.values() for name in run["nodes"]}
        counts = {"done": len(self.ended), "running": len(self.running), "waiting": self.step.get("waiting", 0)}
        return {**counts, "nodes": len(nodes)}

    def _write_down(self, runs: list[dict]) -> None:
        self.evidence.write(STARTED, {"begun": self.begun, "runs": runs})

    def _start(self, run: dict) -> None:
        try:
            answer = self.launcher.start(run)
        except Conflict as error:
            # not ours, or not what we would run: the test has no result, and nothing of it is touched
            self._record(run, [], {"phase": "gone", "pods": [], "why": str(error)})
            return
        self.running[run["id"]] = run
        note = f" ({answer['note']})" if answer["note"] else ""
        self.news.append(f"{answer['status']} {_name(run)}{note}")

    def _collect(self) -> None:
        """Read and store what has ended, or has to be ended."""
        if not self.running:
            return
        now = self._clock()
        for run_id, seen in self.launcher.observe(list(self.running.values())).items():
            run = self.running[run_id]
            late = self._overdue(run, seen, now)
            if seen["phase"] not in ENDED and not late:
                continue
            if late:
                limit = late["limit"]
                seen = {**seen, "why": late["why"]}
                seen |= {"phase": "failed"} if limit == "survivors" else {"timedOut": limit}
            logs = [] if seen["phase"] == "gone" else list(self.launcher.logs(run))
            self._record(run, logs, seen)
            self.launcher.stop(run_id)
            self.leaving[run_id] = (run, now)

    def _record(self, run: dict, logs: list[dict], seen: Mapping) -> None:
        """Stored first, removed from the cluster after: a run that is lost in between is only looked at once more."""
        codes = [pod["exitCode"] for pod in seen["pods"] if pod["exitCode"] is not None]
        parsed = reading.read(run, logs, codes) if logs else None
        stored = {"run": run, "parsed": parsed, "observed": dict(seen)}
        judged = self._outcomes(stored)
        self.evidence.record(run, {log["pod"]: log["text"] for log in logs}, parsed, dict(seen), judged["rows"])
        self.running.pop(run["id"], None)
        self.ended[run["id"]] = {**stored, **judged}
        self._write_down(list(self.running.values()))
        said = ", ".join(f"{category}: {outcome}" for category, outcome in judged["outcomes"].items())
        self.news.append(f"{_name(run)}: {said}")

    def _see_off(self) -> None:
        """Nodes are free again when the pods of their last test are gone."""
        if not self.leaving:
            return
        left = self.launcher.left(list(self.leaving))
        now = self._clock()
        for run_id, (run, since) in list(self.leaving.items()):
            pods = left.get(run_id)
            if pods and (now - since).total_seconds() < LEAVING_SECONDS:
                continue
            del self.leaving[run_id]
            if pods:
                self._dirty(run, pods)

    def _dirty(self, run: dict, pods: list[dict]) -> None:
        """Its processes do not end: no later test on these nodes could be trusted."""
        item = self.ended[run["id"]]
        names = {pod["node"]: f"pod {pod['name']} does not end" for pod in pods if pod["node"]}
        stored = {key: item[key] for key in ("run", "parsed")}
        stored["observed"] = {**item["observed"], "dirty": names}
        self.ended[run["id"]] = {**stored, **self._outcomes(stored)}
        self.news.append(f"{_name(run)}: {', '.join(names.values())}")

    # ------------------------------------------------------------ judging

    def _outcomes(self, stored: Mapping) -> dict:
        """{rows, outcomes: {category: group's outcome}, signatures}, by the bounds of each category of the run."""
        run, rows, outcomes, signatures = stored["run"], [], {}, {}
        peers = bounds.peers(run, [(item["run"], item["parsed"]) for item in self.ended.values()])
        for category in run["categories"]:
            context = {"category": category, "fleet": peers}
            mine = verdict.outcomes(
                run, stored["parsed"], stored["observed"], self.bounds[category, run["accelerator"]], context
            )
            found = verdict.for_search(mine)
            outcomes[category], signatures[category] = found["outcome"], found["signature"]
            rows += mine
        return {"rows": rows, "outcomes": outcomes, "signatures": signatures}

    def results(self, finished: str | None) -> dict:
        """The results document; every run is judged anew, now that all peers are known."""
        planned, searches = self.course.planned, self.step.get("searches", [])
        judged = [self._outcomes(item) for item in self.ended.values()]
        rows = [row for item in judged for row in item["rows"]] + [_unrun(row) for row in planned["blocked"]]
        found = {item["category"]: item["verdict"] or item["progress"] for item in searches if item["progress"]}
        cleared = {category: report["cleared"] for category, report in found.items()}
        options = self.course.planner.categories
        allowed = [name for name, category in options.items() if category["options"].get("allowUnbounded")]
        verdicts = verdict.combine(
            rows,
            required=list(options),
            asked=planned["nodes"],
            allow_unbounded=allowed,
            cleared=cleared,
            blamed={category: _blamed(report) for category, report in found.items()},
        )
        return results.build(
            name=self.name,
            rows=rows,
            verdicts=verdicts,
            categories=planned["categories"],
            runs=[(item["run"], item["parsed"]) for item in self.ended.values()],
            isolation=found,
            started=self.begun,
            finished=finished,
            notes=planned["notes"],
        )

    def inventory(self, nodes: list[Mapping]) -> dict:
        return inventory.build(nodes, [(item["run"], item["parsed"]) for item in self.ended.values()])


def load_bounds(course: Course) -> dict[tuple[str, str], bounds.Bounds]:
    """(category, accelerator) -> bounds. Raises InvalidDocument with every problem of any of them."""
    loaded, problems = {}, []
    for key, test in course.planner.resolved.items():
        try:
            loaded[key] = bounds.load(test)
        except InvalidDocument as error:
            problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise InvalidDocument(problems)
    return loaded


def _blamed(report: Mapping) -> dict[str, str]:
    """{node: why} of those that a search found."""
    found = {}
    for item in report["flaky"]:
        if "node" in item:
            found[item["node"]] = f"flaky: {item['failed']} of {item['failed'] + item['passed']} tests failed"
    for item in report["bad"]:
        where = {"inside": " inside its domain", "across": " towards other domains"}.get(item["scope"], "")
        found[item["node"]] = f"{item['failed']} tests{where} failed in which all others are good"
    return found


def _unrun(row: Mapping) -> dict:
    """A row of the plan for a node that no run was planned for, in the shape of a verdict's."""
    return {
        **{key: row[key] for key in ("node", "category", "test", "outcome")},
        "run": "",
        "repeat": 0,
        "purpose": "screen",
        "code": row["outcome"].replace("_", "-"),
        "reasons": [row["why"]],
        "attribution": None,
        "metrics": {},
        **{key: [] for key in ("warnings", "violations", "notMeasured", "boundsUsed")},
    }


def _name(run: Mapping) -> str:
    nodes = run["nodes"]
    where = ", ".join(nodes) if len(nodes) <= 3 else f"{nodes[0]} … {nodes[-1]} ({len(nodes)} nodes)"
    return f"{run['test']} on {where}"
