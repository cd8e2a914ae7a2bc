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

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
from ansible_collections.goodput.fleet.plugins.module_utils.certification.findings import INFRASTRUCTURE, NOT_RUN
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    InvalidDocument,
    Unavailable,
)

PLAN = "plan.json"  # as it was at the begin: nodes that change later change no group
STARTED = "started.json"  # what is under way, for whoever goes on after this process
LEAVING_SECONDS = 120  # that pods of a run may take to go before their nodes count as not clean
LOOKS = 3  # at which a log or a start may fail before it has failed
OUTAGE_LOOKS = 12  # at which the whole API server may be away
ENDED = ("succeeded", "failed", "gone")
REFUSED = "refused"  # phase of a run that the cluster did not take


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
        self.dirty: dict[str, dict[str, str]] = {}
        self._looks: Counter = Counter()  # at what could not be started, read, or reached
        self._unstopped: dict[str, str] = {}

    def resume(self) -> None:
        """Take in what is stored, and what an earlier process has left in the cluster."""
        state = self.evidence.read(STARTED) or {"begun": self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")}
        self.begun, self.dirty = state["begun"], state.get("dirty") or {}
        planned = self.evidence.read(PLAN)
        if planned:
            self.course.planned = planned
        else:
            self.evidence.write(PLAN, self.course.planned)
        for run_id in self.evidence.runs():
            stored = self.evidence.load(run_id)
            if stored:
                stored["observed"] |= {"dirty": self.dirty[run_id]} if run_id in self.dirty else {}
                self.ended[run_id] = {**stored, **self._outcomes(stored)}
        for run_id, since in (state.get("leaving") or {}).items():
            if run_id in self.ended:
                self.leaving[run_id] = (self.ended[run_id]["run"], datetime.fromisoformat(since))
        self.running = {run["id"]: run for run in state.get("runs") or () if run["id"] not in self.ended}
        for run_id in self.launcher.orphans(self.running):
            self._remove(run_id)
            run = (self.ended.get(run_id) or {}).get("run")
            if run:  # stored, and the process died before it was removed
                self.leaving.setdefault(run_id, (run, self._clock()))
        if self.running or self.ended:
            self.news.append(f"goes on: {len(self.ended)} tests are done, {len(self.running)} are running")
        seen = self.launcher.observe(self.running.values())
        for run_id, run in list(self.running.items()):
            if seen[run_id]["phase"] == "gone" and not seen[run_id]["pods"]:
                del self.running[run_id]
                self._start(run)  # written down, and never started

    def advance(self) -> bool:
        """One look at everything. Whether the certification is over. Raises what the API server says when it is
        away for long."""
        try:
            over = self._look()
        except Unavailable as error:
            self._looks["all"] += 1
            if self._looks["all"] > OUTAGE_LOOKS:
                raise
            self.news.append(f"the cluster does not answer: {error}")
            return False
        self._looks["all"] = 0
        return over

    def _look(self) -> bool:
        self._collect()
        self._see_off()
        busy = [*self.running.values(), *(run for run, _since in self.leaving.values())]
        self.step = self.course.step(self.ended, busy, self._closed())
        for run in self.step["shared"]:
            self._share(run)
        fresh = [run for run in self.step["start"] if run["id"] not in self.leaving]
        if fresh:
            self._write_down(fresh)
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

    def _write_down(self, fresh: Iterable[dict] = ()) -> None:
        leaving = {run_id: since.isoformat() for run_id, (_run, since) in self.leaving.items()}
        runs = [*self.running.values(), *fresh]
        self.evidence.write(STARTED, {"begun": self.begun, "runs": runs, "leaving": leaving, "dirty": self.dirty})

    def _start(self, run: dict) -> None:
        try:
            answer = self.launcher.start(run)
        except FleetError as error:
            self._looks[run["id"]] += 1
            if isinstance(error, Unavailable) and self._looks[run["id"]] < LOOKS:
                return  # the course asks for it again
            self._refuse(run, error)
            return
        self.running[run["id"]] = run
        note = f" ({answer['note']})" if answer["note"] else ""
        self.news.append(f"{answer['status']} {_name(run)}{note}")

    def _refuse(self, run: dict, error: FleetError) -> None:
        """It has no result, and is not recorded: whoever runs this certification again tries again."""
        stored = {"run": run, "parsed": None, "observed": {"phase": REFUSED, "pods": [], "why": str(error)}}
        self.ended[run["id"]] = {**stored, **self._outcomes(stored)}
        self._write_down()
        if not isinstance(error, Conflict):  # else it is another's
            self._remove(run["id"])
            self.leaving[run["id"]] = (run, self._clock())
        self.news.append(f"{_name(run)}: not started: {error}")

    def _share(self, run: dict) -> None:
        """A search asks for what was run for another category already: the same result, held against its bounds."""
        item = self.ended[run["id"]]
        categories = list(dict.fromkeys([*item["run"]["categories"], *run["categories"]]))
        stored = {key: item[key] for key in ("parsed", "observed")} | {"run": {**item["run"], "categories": categories}}
        self.ended[run["id"]] = {**stored, **self._outcomes(stored)}

    def _remove(self, run_id: str) -> None:
        """From the cluster; what fails is tried again at the next look."""
        try:
            self.launcher.stop(run_id)
        except FleetError as error:
            self._unstopped[run_id] = str(error)
        else:
            self._unstopped.pop(run_id, None)

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
            logs, problems = ([], []) if seen["phase"] == "gone" else self._logs(run, seen)
            self._looks[run_id] += 1
            if problems and self._looks[run_id] < LOOKS:
                continue
            self._record(run, logs, problems, seen)
            self._remove(run_id)

    def _logs(self, run: dict, seen: Mapping) -> tuple[list[dict], list[str]]:
        """(logs, why one of them is not whole)."""
        ran = {pod["name"] for pod in seen["pods"] if pod["startedAt"]}
        try:
            logs = list(self.launcher.logs(run))
        except FleetError as error:
            return [], [f"the logs cannot be read: {error}"]
        return logs, [
            f"the log of {log['pod']} cannot be read: {log['problem']}"
            for log in logs
            if log["problem"] and log["pod"] in ran
        ]

    def _record(self, run: dict, logs: list[dict], problems: list[str], seen: Mapping) -> None:
        """Stored first, removed from the cluster after: a run that is lost in between is only looked at once more."""
        codes = [pod["exitCode"] for pod in seen["pods"] if pod["exitCode"] is not None]
        parsed = reading.read(run, logs, codes, problems) if logs or problems else None
        stored = {"run": run, "parsed": parsed, "observed": dict(seen)}
        judged = self._outcomes(stored)
        self.evidence.record(run, {log["pod"]: log["text"] for log in logs}, parsed, dict(seen), judged["rows"])
        self.running.pop(run["id"], None)
        self.ended[run["id"]] = {**stored, **judged}
        self.leaving[run["id"]] = (run, self._clock())
        self._write_down()
        said = ", ".join(f"{category}: {outcome}" for category, outcome in judged["outcomes"].items())
        self.news.append(f"{_name(run)}: {said}")

    def _see_off(self) -> None:
        """Nodes are free again when the pods of their last test are gone."""
        if not self.leaving:
            return
        for run_id in list(self._unstopped):
            self._remove(run_id)
        left = self.launcher.left(list(self.leaving))
        now = self._clock()
        for run_id, (run, since) in list(self.leaving.items()):
            there = left.get(run_id) or run_id in self._unstopped
            if there and (now - since).total_seconds() < LEAVING_SECONDS:
                continue
            del self.leaving[run_id]
            if there:
                self._soil(run, left.get(run_id) or [])

    def _soil(self, run: dict, pods: list[dict]) -> None:
        """Its processes do not end: no later test on these nodes could be trusted."""
        item, why = self.ended[run["id"]], self._unstopped.pop(run["id"], "")
        what = f"cannot be removed: {why}" if why else "does not end"
        names = {pod["node"]: f"pod {pod['name']} {what}" for pod in pods if pod["node"]}
        self.news.append(f"{_name(run)}: {', '.join(names.values()) or what}")
        if not names:
            return
        stored = {key: item[key] for key in ("run", "parsed")}
        stored["observed"] = {**item["observed"], "dirty": names}
        self.ended[run["id"]] = {**stored, **self._outcomes(stored)}
        self.dirty[run["id"]] = names
        self._write_down()

    # ------------------------------------------------------------ judging

    def _outcomes(self, stored: Mapping) -> dict:
        """{rows, outcomes: {category: group's outcome}, signatures}, by the bounds of each category of the run."""
        run, rows, outcomes, signatures = stored["run"], [], {}, {}
        if stored["observed"]["phase"] == REFUSED:
            return _refused(run, stored["observed"]["why"])
        bounded = {category: self.bounds[category, run["accelerator"]] for category in run["categories"]}
        peers = []
        if any(each.compare for each in bounded.values()):
            peers = bounds.peers(run, [(item["run"], item["parsed"]) for item in self.ended.values()])
        for category, bound in bounded.items():
            context = {"category": category, "fleet": peers}
            mine = verdict.outcomes(run, stored["parsed"], stored["observed"], bound, context)
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
        document = results.build(
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
        return {**document, "unstarted": self._unstarted()}

    def _unstarted(self) -> list[dict]:
        """[{run, nodes, why}] of what the cluster did not take: not over, whatever else is."""
        return [
            {"run": run_id, "nodes": item["run"]["nodes"], "why": item["observed"]["why"]}
            for run_id, item in self.ended.items()
            if item["observed"]["phase"] == REFUSED
        ]

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


def _refused(run: Mapping, why: str) -> dict:
    """What `Session._outcomes` gives, for a run that the cluster did not take."""
    text = f"the test could not be started: {why}"
    rows = [
        _unrun({"node": node, "category": category, "test": run["test"], "outcome": NOT_RUN, "why": text}, run)
        for category in run["categories"]
        for node in run["nodes"]
    ]
    categories = run["categories"]
    return {"rows": rows, "outcomes": dict.fromkeys(categories, NOT_RUN), "signatures": dict.fromkeys(categories, text)}


def _unrun(row: Mapping, run: Mapping | None = None) -> dict:
    """A row for a node that has no run, or of a run that did not start, in the shape of a verdict's."""
    run = run or {"id": "", "repeat": 0, "purpose": "screen"}
    return {
        **{key: row[key] for key in ("node", "category", "test", "outcome")},
        "run": run["id"],
        **{key: run[key] for key in ("repeat", "purpose")},
        "code": row["outcome"].replace("_", "-"),
        "reasons": [row["why"]],
        "attribution": None if not run["id"] else INFRASTRUCTURE,
        "metrics": {},
        **{key: [] for key in ("warnings", "violations", "notMeasured", "boundsUsed")},
    }


def _name(run: Mapping) -> str:
    nodes = run["nodes"]
    where = ", ".join(nodes) if len(nodes) <= 3 else f"{nodes[0]} … {nodes[-1]} ({len(nodes)} nodes)"
    return f"{run['test']} on {where}"
