"""From a job that fails to its next attempt, and to what the nodes' side is told: on a real API server.

Simulated is what runs in the pods: what ranks print and how they end is seeded per node, as the hardware under them
would have it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

from tests.integration import modules
from tests.simfleet import EmbeddedCluster, workloads
from tests.simfleet.api import MERGE_PATCH, wait_until

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
SPACE = "ml"
H100 = {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-22.04", "driver": "580.105.08"}
NODES = 20
PROFILE = {"nodes": NODES, "groups": [{**H100, "perRack": 10}]}
QUARANTINE = "gate.goodput.fleet/quarantine"
JOURNAL = "/api/v1/namespaces/goodput-fleet/configmaps/goodput-recovery"
TABLES = tables.load_catalog([str(modules.CATALOG)])
FELL_OFF = "NVRM: Xid (PCI:0000:1b:00): 79, pid=4242, name=python, GPU has fallen off the bus."
DIED = "RuntimeError: CUDA error: unspecified launch failure"
TIMED_OUT = """[rank{rank}]:[E1129 03:12:01.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught \
collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, \
Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
"""
BUG = """ [2026-11-29 03:11:0{rank}] iteration      812/    5000 | elapsed time per iteration (ms): 812.4 | lm loss: 2.1
Traceback (most recent call last):
  File "/workspace/train.py", line 118, in <module>
    main()
  File "/workspace/data.py", line 42, in collate
    return torch.stack(items)
ValueError: all tensors must be of the same size, got 2048 and 2047 at sample 8126
"""


@pytest.fixture(scope="module")
def fleet(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(profile=PROFILE, say=show) as running:
        for name in (SPACE, "goodput-fleet"):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        running.fleet.wait_ready(NODES)
        yield running


class Site:
    """The fleet, with jobs of one test's own."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path):
        self.cluster, self.api, self.folder = cluster, cluster.api, folder
        self.jobs: list[str] = []
        self.policy = yaml.safe_load((modules.CATALOG / "recovery/default.yaml").read_text())
        self.policy["spec"]["mode"] = "enforce"

    def arguments(self, **options: Any) -> dict:
        return {
            "kubeconfig": str(self.cluster.kubeconfig),
            "catalog": [str(modules.CATALOG)],
            "policy": self.policy,
            "mode": "enforce",
            "evidence_dir": str(self.folder / "evidence"),
            "wait": 60,
            **options,
        }

    def recover(self, check: bool = False, **options: Any) -> dict:
        return modules.run("job_recovery", self.arguments(**options), check=check)

    def job(self, name: str, pods: int, change: Callable[[dict], None] = lambda body: None, **notes: str) -> dict:
        body = workloads.job(name, pods, gpus=8)
        told = {f"goodput.fleet/{key.replace('_', '-')}": value for key, value in {"recovery": "act", **notes}.items()}
        body["metadata"]["annotations"] = told
        body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
        change(body)
        self.jobs.append(name)
        self.api.create(workloads.path(SPACE, "jobs"), body)
        return self.running(name, pods)

    def live(self, name: str) -> dict:
        return self.api.get(workloads.path(SPACE, "jobs", name))

    def pods(self, name: str) -> list[dict]:
        path = f"/api/v1/namespaces/{SPACE}/pods"
        return self.api.list(path, labelSelector=f"batch.kubernetes.io/job-name={name}")

    def nodes_of(self, name: str) -> list[str]:
        return sorted(pod["spec"].get("nodeName", "") for pod in self.pods(name) if _lives(pod))

    def rank(self, name: str, index: int) -> dict:
        label = "batch.kubernetes.io/job-completion-index"
        (found,) = [pod for pod in self.pods(name) if pod["metadata"]["labels"][label] == str(index)]
        return found

    def running(self, name: str, count: int) -> dict:
        def seen() -> dict | None:
            live = [pod for pod in self.pods(name) if _lives(pod) and pod["status"].get("phase") == "Running"]
            found = self.api.find(workloads.path(SPACE, "jobs", name))
            return found if len(live) == count and found and found["status"].get("ready") == count else None

        return wait_until(seen, 60, f"all {count} pods of Job {name} run")

    def failed(self, name: str) -> dict:
        def seen() -> dict | None:
            found = self.live(name)
            return found if any(each["type"] == "Failed" for each in found["status"].get("conditions", [])) else None

        return wait_until(seen, 60, f"Job {name} has failed")

    def breaks(self, name: str, *indexes: int, log: str, code: int = 1) -> None:
        """These ranks print that and end, for as long as the test does not say otherwise."""
        for index in indexes:
            pod = self.rank(name, index)["metadata"]["name"]
            text = log.format(rank=index)
            self.cluster.faults.set(f"{name}-{index}", {"namespace": SPACE, "pod": pod}, exit_code=code, log=text)

    def gates(self) -> dict[str, list[str]]:
        found = {}
        for node in self.api.list("/api/v1/nodes"):
            marks = [key for key in node["metadata"].get("annotations") or {} if key.startswith("gate.")]
            marks += [taint["key"] for taint in node["spec"].get("taints") or []]
            if marks or node["spec"].get("unschedulable"):
                found[node["metadata"]["name"]] = marks
        return found

    def fell_off(self, node: str) -> list[dict]:
        boot = self.cluster.fleet.get(node)["status"]["nodeInfo"]["bootID"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        context = kernel.Context(node=node, boot_id=boot, received=now)
        return kernel.parse(f"{now} {node} kernel: {FELL_OFF}", TABLES, context)["events"]

    def gate(self, events: list[dict]) -> dict:
        policy = yaml.safe_load((modules.CATALOG / "policies/default.yaml").read_text())
        policy["spec"]["mode"] = "enforce"
        access = {key: self.arguments()[key] for key in ("kubeconfig", "catalog")}
        return modules.run("node_quarantine", {**access, "policy": policy, "mode": "enforce", "events": events})

    def clear(self) -> None:
        self.cluster.faults.clear_all()
        for name in self.jobs:
            self.api.delete(workloads.path(SPACE, "jobs", name), propagationPolicy="Background")
        for pod in self.api.list(f"/api/v1/namespaces/{SPACE}/pods"):
            self.api.delete(f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}", gracePeriodSeconds=0)
        for space in (SPACE, "goodput-fleet"):
            for found in self.api.list(f"/api/v1/namespaces/{space}/configmaps"):
                if found["metadata"]["name"].startswith("goodput-"):
                    self.api.delete(f"/api/v1/namespaces/{space}/configmaps/{found['metadata']['name']}")
        for node in self.api.list("/api/v1/nodes"):
            marks = [key for key in node["metadata"].get("annotations") or {} if "goodput" in key]
            if marks or node["spec"].get("taints") or node["spec"].get("unschedulable"):
                change = {
                    "metadata": {"annotations": dict.fromkeys(marks)},
                    "spec": {"taints": None, "unschedulable": None},
                }
                self.api.patch(f"/api/v1/nodes/{node['metadata']['name']}", change, MERGE_PATCH)


def _lives(pod: dict) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in ("Failed", "Succeeded")


@pytest.fixture
def site(fleet: EmbeddedCluster, tmp_path: Path) -> Iterator[Site]:
    made = Site(fleet, tmp_path)
    yield made
    made.clear()


def test_a_job_starts_again_without_the_node_that_lost_a_gpu(site):
    """Sixteen nodes; the sick one is gated in the same pass, no other job feels it, and there is one copy."""
    first = site.job("train", 16)
    other = site.job("other", 2)
    sick = site.rank("train", 5)["spec"]["nodeName"]
    site.breaks("train", 5, log=DIED)
    site.failed("train")

    events = site.fell_off(sick)
    assert site.gate(events)["gated"] == [sick]
    planned = site.recover(check=True, events=events)
    assert [one["status"] for one in planned["actions"]] == ["planned"] and not planned["changed"]
    assert site.live("train")["metadata"]["uid"] == first["metadata"]["uid"]

    done = site.recover(events=events)
    (decision,), (action,) = done["decisions"], done["actions"]
    assert (decision["spec"]["action"], decision["spec"]["rule"]) == ("restart", "row-5")
    assert [one["node"] for one in decision["spec"]["exclude"]] == [sick]
    assert (action["status"], action["outcome"], action["onExcluded"]) == ("done", "running", [])
    assert [one["node"] for one in done["advice"]["gate"]] == [sick]
    nodes = site.nodes_of("train")
    assert len(set(nodes)) == 16 and sick not in nodes
    assert site.live("train")["metadata"]["annotations"]["goodput.fleet/attempt"] == "2"
    assert site.running("other", 2)["metadata"]["uid"] == other["metadata"]["uid"]

    again = site.recover(events=events)
    assert (again["changed"], again["decisions"]) == (False, [])
    assert len(site.nodes_of("train")) == 16


def test_a_time_out_is_tried_again_where_it_was_and_no_node_is_touched(site):
    site.job("train", 4)
    nodes = site.nodes_of("train")
    site.breaks("train", 0, 1, 2, 3, log=TIMED_OUT)
    site.failed("train")
    site.cluster.faults.clear_all()

    done = site.recover()
    (decision,), (action,) = done["decisions"], done["actions"]
    assert (decision["spec"]["action"], decision["spec"]["exclude"]) == ("retry", []), decision
    assert (action["status"], action["outcome"], action["excluded"]) == ("done", "running", [])
    assert (done["advice"]["gate"], done["advice"]["diagnose"], site.gates()) == ([], [], {})
    (term,) = json.loads(site.live("train")["metadata"]["annotations"]["goodput.fleet/preferred-placement"])
    assert term["weight"] == 100 and sorted(term["preference"]["matchExpressions"][0]["values"]) == nodes


def test_the_same_exception_at_the_same_step_is_given_back_with_its_line(site):
    site.job("train", 2)
    site.breaks("train", 0, 1, log=BUG)
    site.failed("train")
    first = site.recover()
    assert first["actions"][0]["outcome"] == "running", first["lines"]
    site.breaks("train", 0, 1, log=BUG)
    site.failed("train")
    second = site.recover()
    (spec,) = [one["spec"] for one in second["decisions"]]
    assert spec["action"] == "giveBack" and second["actions"] == [], spec
    assert "data.py:42" in " ".join(spec["reasons"]) and second["advice"]["gate"] == []
    assert site.nodes_of("train") == []


def test_of_two_runs_at_once_one_acts(site):
    site.job("train", 2)
    site.breaks("train", 0, log=DIED)
    site.failed("train")
    site.cluster.faults.clear_all()
    runs = [modules.start("job_recovery", site.arguments()) for _each in range(2)]
    results = [modules.finish(run) for run in runs]
    assert [one["failed"] for one in results] == [False, False], results
    assert sum(one["changed"] for one in results) == 1, [one["actions"] for one in results]
    assert site.live("train")["metadata"]["annotations"]["goodput.fleet/attempt"] == "2"
    site.running("train", 2)
