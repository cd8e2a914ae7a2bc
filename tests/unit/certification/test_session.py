"""A certification at work, on a cluster that is played: what it does when the cluster is not as it should be."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.evidence import Evidence
from ansible_collections.goodput.fleet.plugins.module_utils.certification.session import Session
from ansible_collections.goodput.fleet.plugins.module_utils.launchers import observation
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, Denied, Unavailable

from tests.unit.certification.test_course import course

CLOCK = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WORK = {
    "name": "work",
    "workload": {
        "image": "registry.example.com/work:1",
        "exec": {"command": ["/work"]},
        "parser": {"tool": "regex", "pattern": "speed: ([0-9.]+)", "metric": "speed"},
        "sharedMemory": "1Gi",
    },
    "options": {"testScale": "intra-node", "thresholds": {"speed": "value >= 100"}},
}


class Cluster:
    """Runs end at the look after their start and print `speed` of their slowest node. Errors are raised once each."""

    def __init__(self, **speeds: float):
        self.speeds, self.runs, self.started = speeds, {}, Counter()
        self.start_errors: dict[str, list[Exception]] = {}  # by node
        self.log_problems: dict[str, int] = {}  # by node: at how many looks the log cannot be read
        self.observe_errors: list[Exception] = []
        self.stop_errors: list[Exception] = []
        self.stay: set[str] = set()  # nodes on which pods do not end
        self.pods_left: dict[str, list[dict]] = {}

    def start(self, run: dict) -> dict:
        for node in run["nodes"]:
            if self.start_errors.get(node):
                raise self.start_errors[node].pop(0)
        status = "adopted" if run["id"] in self.runs else "created"
        self.started[run["id"]] += status == "created"
        self.runs[run["id"]] = run
        return {"status": status, "launcher": "job", "note": ""}

    def observe(self, runs) -> dict[str, dict]:
        if self.observe_errors:
            raise self.observe_errors.pop(0)
        return {run["id"]: self._seen(run) for run in runs}

    def _seen(self, run: dict) -> dict:
        seen = {"createdAt": None, "startedAt": None, "endedAt": None, "lastLogAt": None, "why": ""}
        if run["id"] not in self.runs:
            return {**seen, "phase": "gone", "pods": [], "why": "there is no such run in the cluster"}
        pods = [
            {
                "name": f"gp-{run['id']}-{index}",
                "node": node,
                "role": "worker",
                "index": index,
                "phase": "Succeeded",
                "exitCode": 0,
                "reason": "",
                "message": "",
                "restarts": 0,
                "startedAt": "2026-03-01T12:00:00Z",
            }
            for index, node in enumerate(run["nodes"])
        ]
        return {**seen, "phase": "succeeded", "pods": pods}

    def logs(self, run: dict):
        for index, node in enumerate(run["nodes"]):
            unread = self.log_problems.get(node, 0)
            self.log_problems[node] = max(unread - 1, 0)
            text = "" if unread else f"speed: {self.speeds.get(node.replace('-', '_'), 200)}\n"
            entry = {"pod": f"gp-{run['id']}-{index}", "node": node, "index": index, "role": "worker", "host": node}
            yield {**entry, "text": text, "problem": "the connection broke" if unread else ""}

    def stop(self, run_id: str) -> list[str]:
        if self.stop_errors:
            raise self.stop_errors.pop(0)
        run = self.runs.pop(run_id, None)
        left = [{"name": f"gp-{run_id}", "node": node} for node in (run or {"nodes": []})["nodes"] if node in self.stay]
        if left:
            self.pods_left[run_id] = left
        return ["Job"] if run else []

    def left(self, run_ids) -> dict:
        return {run_id: pods for run_id, pods in self.pods_left.items() if run_id in run_ids}

    def orphans(self, known=()) -> dict:
        return {run_id: ["Job"] for run_id in self.runs if run_id not in known}


class Site:
    def __init__(self, folder, cluster: Cluster, *categories: dict, count: int = 3, limits: dict | None = None):
        self.folder, self.cluster, self.now = str(folder), cluster, CLOCK
        self.categories, self.count, self.limits = categories or (WORK,), count, limits
        self.evidence: Evidence | None = None

    def begin(self, count: int = 0) -> Session:
        """As another process would."""
        if self.evidence:
            self.evidence.close()
        planned = course(count or self.count, *self.categories, limits=self.limits)
        spec = {"metadata": {"name": "accept"}, "spec": {}}
        self.evidence = Evidence.open(self.folder, spec, [], ["the", "same"])
        session = Session("accept", planned, self.evidence, self.cluster, observation.overdue, lambda: self.now)
        session.resume()
        return session

    def look(self, session: Session) -> bool:
        self.now += timedelta(seconds=5)
        return session.advance()

    def run(self, session: Session | None = None, looks: int = 200) -> dict:
        session = session or self.begin()
        for _look in range(looks):
            if self.look(session):
                return session.results("2026-03-01T13:00:00Z")
        raise AssertionError(f"not over: {session.progress()} {session.news}")


def words(results: dict) -> dict[str, str]:
    return {node["node"]: node["verdict"] for node in results["nodes"]}


def why(results: dict, node: str) -> str:
    return "\n".join(next(each["reasons"] for each in results["nodes"] if each["node"] == node))


def test_all_nodes_are_tested_once(tmp_path):
    cluster = Cluster(gpu_001=50)
    results = Site(tmp_path, cluster).run()
    assert words(results) == {"gpu-000": "pass", "gpu-001": "fail", "gpu-002": "pass"}
    assert cluster.runs == {} and results["unstarted"] == []


@pytest.mark.parametrize("looks", range(6))
def test_a_process_that_dies_between_two_looks_costs_nothing(tmp_path, looks):
    cluster = Cluster(gpu_001=50)
    site = Site(tmp_path, cluster, limits={"maxNodesOut": 1})
    first = site.begin()
    for _look in range(looks):
        site.look(first)
    results = site.run(site.begin())
    assert words(results) == {"gpu-000": "pass", "gpu-001": "fail", "gpu-002": "pass"}
    assert set(cluster.started.values()) == {1} and cluster.runs == {}


def test_a_fault_of_the_api_server_that_ends_is_waited_for(tmp_path):
    cluster = Cluster()
    cluster.start_errors = {"gpu-001": [Unavailable("503"), Unavailable("503")]}
    cluster.stop_errors = [Unavailable("503"), Denied("403")]
    cluster.log_problems = {"gpu-002": 2}
    site = Site(tmp_path, cluster)
    session = site.begin()
    cluster.observe_errors = [Unavailable("503")] * 5
    results = site.run(session)
    assert set(words(results).values()) == {"pass"} and cluster.runs == {}
    assert set(cluster.started.values()) == {1}


def test_an_api_server_that_stays_away_ends_the_process_and_not_the_certification(tmp_path):
    cluster = Cluster()
    site = Site(tmp_path, cluster)
    session = site.begin()
    site.look(session)
    cluster.observe_errors = [Unavailable("503")] * 100
    with pytest.raises(Unavailable):
        site.run(session)
    cluster.observe_errors = []
    assert set(words(site.run(site.begin())).values()) == {"pass"}
    assert set(cluster.started.values()) == {1}


@pytest.mark.parametrize("error", [Denied("create jobs.batch: 403"), Unavailable("503"), Conflict("is of another")])
def test_what_the_cluster_refuses_has_no_result_until_it_is_run_again(tmp_path, error):
    cluster = Cluster()
    cluster.start_errors = {"gpu-001": [error] * 3}
    site = Site(tmp_path, cluster)
    results = site.run()
    assert words(results) == {"gpu-000": "pass", "gpu-001": "not_run", "gpu-002": "pass"}
    assert results["status"] == "incomplete" and str(error) in why(results, "gpu-001")
    assert {node for item in results["unstarted"] for node in item["nodes"]} == {"gpu-001"}
    cluster.start_errors = {}
    assert set(words(site.run(site.begin())).values()) == {"pass"}
    assert set(cluster.started.values()) == {1}


def test_what_is_anothers_is_left_alone(tmp_path):
    cluster = Cluster()
    cluster.start_errors = {"gpu-001": [Conflict("is of another certification")]}
    stopped = []
    stop = cluster.stop
    cluster.stop = lambda run_id: stopped.append(run_id) or stop(run_id)
    results = Site(tmp_path, cluster).run()
    assert not {item["run"] for item in results["unstarted"]} & set(stopped)


def test_a_log_that_cannot_be_read_is_no_pass(tmp_path):
    cluster = Cluster()
    cluster.log_problems = {"gpu-001": 100}
    results = Site(tmp_path, cluster).run()
    assert words(results) == {"gpu-000": "pass", "gpu-001": "error", "gpu-002": "pass"}
    assert "cannot be read: the connection broke" in why(results, "gpu-001")


@pytest.mark.parametrize("dies", [False, True])
def test_pods_that_do_not_end_make_a_node_dirty_whoever_looks(tmp_path, dies):
    cluster = Cluster()
    cluster.stay = {"gpu-001"}
    site = Site(tmp_path, cluster)
    session = site.begin()
    for _look in range(20):  # less than they are given
        site.look(session)
        session = site.begin() if dies else session
    results = site.run(session)
    assert words(results) == {"gpu-000": "pass", "gpu-001": "error", "gpu-002": "pass"}
    assert "does not end" in why(results, "gpu-001")
    again = site.run(site.begin())
    assert words(again) == words(results)


def test_the_plan_stays_when_a_node_changes_meanwhile(tmp_path):
    site = Site(tmp_path, Cluster())
    session = site.begin()
    site.look(session)
    results = site.run(site.begin(count=2))
    assert words(results) == {"gpu-000": "pass", "gpu-001": "pass", "gpu-002": "pass"}


def test_no_run_begins_after_the_time_that_is_allowed(tmp_path):
    cluster = Cluster()
    site = Site(tmp_path, cluster, limits={"maxNodesOut": 1, "maxMinutes": 1})
    session = site.begin()
    site.look(session)
    site.now += timedelta(minutes=5)
    results = site.run(session)
    assert Counter(words(results).values()) == {"pass": 1, "not_run": 2}
    assert len(cluster.started) == 1 and results["status"] == "incomplete"


def test_searches_of_two_bounds_share_their_runs(tmp_path):
    def bounded(name: str, least: int) -> dict:
        options = {"nodesPerJob": 4, "thresholds": {"speed": f"value >= {least}"}}
        return {**WORK, "name": name, "options": options}

    cluster = SlowestNode(gpu_001=50)
    results = Site(tmp_path, cluster, bounded("high", 150), bounded("low", 100), count=4).run()
    assert set(cluster.started.values()) == {1}
    for name in ("high", "low"):
        assert [item["node"] for item in results["isolation"][name]["bad"]] == ["gpu-001"]
    assert words(results) == {f"gpu-{number:03d}": "fail" if number == 1 else "pass" for number in range(4)}


class SlowestNode(Cluster):
    def logs(self, run: dict):
        slowest = min(self.speeds.get(node.replace("-", "_"), 200) for node in run["nodes"])
        for log in super().logs(run):
            yield {**log, "text": f"speed: {slowest}\n"}
