"""From a job that fails to its next attempt, and to what the nodes' side is told: on a real API server.

Simulated is what runs in the pods: what ranks print and how they end is seeded per node, as the hardware under them
would have it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

from tests.integration import modules
from tests.simfleet import EmbeddedCluster, gpuwork, workloads
from tests.simfleet.api import MERGE_PATCH, wait_until
from tests.simfleet.apiproxy import ApiProxy, Request
from tests.unit.jobs.checkpoints import trees

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
FULL = """Traceback (most recent call last):
  File "/workspace/train.py", line 301, in save
    torch.save(state, path)
OSError: [Errno 5] Input/output error: '/checkpoints/llm/step_4000/model.pt'
"""
DEAF = "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n"  # a process that no signal ends
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
        for name in (SPACE, "goodput-fleet", "goodput-certify"):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        running.fleet.wait_ready(NODES)
        yield running


@pytest.fixture(scope="module")
def account(fleet: EmbeddedCluster) -> Path:
    """A kubeconfig with the rights that gitops/rbac grants for this, bound to one namespace, and no others."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    items = yaml.safe_load((ROOT / "gitops/rbac/recover_jobs.yaml").read_text())["items"]
    roles = {(item["kind"], item["metadata"]["name"]): item for item in items}
    own = roles["Role", "goodput-fleet-recover"]["rules"]
    names = ("goodput-fleet-recover", "goodput-fleet-recover-out-of-service")
    everywhere = [rule for name in names for rule in roles["ClusterRole", name]["rules"]]
    act = roles["ClusterRole", "goodput-fleet-recover-act"]
    fleet.api.create(f"{rbac}/clusterroles", act)
    binding = {
        "metadata": {"name": "recover"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": act["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "recover", "namespace": "goodput-fleet"}],
    }
    fleet.api.create(f"{rbac}/namespaces/{SPACE}/rolebindings", binding)
    return fleet.access.service_account("recover", "goodput-fleet", own, everywhere)


class Site:
    """The fleet, with jobs of one test's own."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path, account: Path):
        self.cluster, self.api, self.folder, self.account = cluster, cluster.api, folder, account
        self.jobs: list[str] = []
        self.policy = yaml.safe_load((modules.CATALOG / "recovery/default.yaml").read_text())
        self.policy["spec"]["mode"] = "enforce"

    def arguments(self, **options: Any) -> dict:
        return {
            "kubeconfig": str(self.account),
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

    def play(self, book: str, **variables: Any) -> subprocess.Popen:
        quarantine = yaml.safe_load((modules.CATALOG / "policies/default.yaml").read_text())
        quarantine["spec"]["mode"] = "enforce"
        common = {
            "goodput_mode": "enforce",
            "quarantine_policy": quarantine,
            "quarantine_kubeconfig": str(self.cluster.kubeconfig),
            "recover_jobs_kubeconfig": str(self.cluster.kubeconfig),
            "recover_jobs_policy": self.policy,
            "recover_jobs_evidence_dir": "evidence",
            "recover_jobs_report_dir": "reports",
            "recover_jobs_tests": [{"domain": "diagnostics", "variant": "dcgm-level2"}],
            "recover_jobs_certify_interval": 0.2,
        }
        (self.folder / "vars.yml").write_text(yaml.safe_dump({**common, **variables}))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "GOODPUT_", "K"))}
        return subprocess.Popen(
            [str(ROOT / ".venv/bin/ansible-playbook"), f"goodput.fleet.{book}", "-e", "@vars.yml"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**kept, "HOME": str(self.folder), "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections")},
        )

    def tested_on(self, node: str) -> bool:
        """Whether a GPU test runs there."""
        there = self.api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return any(pod["metadata"]["name"].startswith("gp-") and _lives(pod) for pod in there)

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

    def clear(self) -> None:
        self.cluster.faults.clear_all()
        path = f"/api/v1/namespaces/{SPACE}/pods"
        for name in self.jobs:
            self.api.delete(workloads.path(SPACE, "jobs", name), propagationPolicy="Background")
        for pod in self.api.list(path):
            self.api.delete(f"{path}/{pod['metadata']['name']}", gracePeriodSeconds=0)
        wait_until(
            lambda: not self.api.list(workloads.path(SPACE, "jobs")) and not self.api.list(path), 30, "all is gone"
        )
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
def site(fleet: EmbeddedCluster, account: Path, tmp_path: Path) -> Iterator[Site]:
    made = Site(fleet, tmp_path, account)
    yield made
    made.clear()


def test_a_job_runs_again_on_healthy_nodes_while_its_old_node_is_diagnosed(site):
    """Sixteen nodes, one loses a GPU. The diagnosis ends when the test has seen the job run again, so that it would
    never end if the job waited for it."""
    site.job("train", 16)
    other = site.job("other", 2)
    sick = site.rank("train", 5)["spec"]["nodeName"]
    site.breaks("train", 5, log=DIED)
    site.failed("train")
    events = site.folder / "events.json"
    events.write_text(json.dumps(site.fell_off(sick)))
    planned = site.recover(check=True, event_files=[str(events)])
    assert [one["status"] for one in planned["actions"]] == ["planned"] and not planned["changed"]
    assert site.live("train")["metadata"].get("annotations", {}).get("goodput.fleet/attempt") is None

    gpuwork.seed(site.cluster, seconds=0.1)
    go_on = site.folder / "go-on"
    held = f"#!/bin/sh\nwhile [ ! -e {go_on} ]; do sleep 0.2; done\nexec {site.cluster.scripts / 'gpuwork'}\n"
    site.cluster.faults.set(gpuwork.RULE, {"pod": "gp-*"}, script=held)
    with site.play("recover", quarantine_event_files=[str(events)], recover_jobs_event_files=[str(events)]) as run:
        try:
            wait_until(lambda: site.tested_on(sick) or run.poll() is not None, 120, "the node is being diagnosed")
            site.running("train", 16)
            assert QUARANTINE in site.gates()[sick]
            assert site.tested_on(sick) and run.poll() is None, run.communicate()[0]
        finally:
            go_on.touch()
            printed, _none = run.communicate(timeout=120)
    assert run.returncode == 0, printed
    done = json.loads((site.folder / "evidence/recovery.json").read_text())
    (decision,), (action,) = done["decisions"], done["actions"]
    assert (decision["spec"]["action"], decision["spec"]["rule"]) == ("restart", "row-5")
    assert [one["node"] for one in decision["spec"]["exclude"]] == [sick]
    assert (action["status"], action["outcome"], action["onExcluded"]) == ("done", "running", [])
    assert [one["node"] for one in done["advice"]["gate"]] == [sick]
    nodes = site.nodes_of("train")
    assert len(set(nodes)) == 16 and sick not in nodes
    assert site.live("train")["metadata"]["annotations"]["goodput.fleet/attempt"] == "2"
    assert site.running("other", 2)["metadata"]["uid"] == other["metadata"]["uid"]
    report = json.loads((site.folder / "reports/recovery.json").read_text())
    assert len(report["incidents"]) == 1 and (site.folder / "reports/recovery.html").exists()
    again = site.recover(event_files=[str(events)])
    assert (again["changed"], again["decisions"], len(site.nodes_of("train"))) == (False, [], 16)


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


def test_a_time_out_of_three_jobs_that_share_a_node_offers_that_node_and_closes_none(site):
    site.policy["spec"]["blastRadius"] = {"jobs": 9, "nodes": 9}
    names = sorted(site.cluster.fleet.names())
    for number, others in enumerate((names[1:3], names[3:5], names[5:7])):
        wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": [names[0], *others]}

        def pin(body: dict, wanted: dict = wanted) -> None:
            terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
            need = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            body["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": need}

        name = f"train-{number}"
        site.job(name, 3, pin, recovery="advise")
        site.breaks(name, 0, 1, 2, log=TIMED_OUT)
        site.failed(name)
        site.cluster.faults.clear_all()
        done = site.recover()
        offered = [one["node"] for one in done["advice"]["diagnose"]]
        assert (offered, done["advice"]["gate"]) == ([names[0]] if number == 2 else [], []), done["lines"]
        assert done["actions"] == [] and not done["changed"]
    assert site.gates() == {}


def test_a_torn_checkpoint_is_passed_over_and_that_is_said(site):
    whole = trees.huggingface(site.folder / "llm/checkpoint-100")
    torn = trees.huggingface(site.folder / "llm/checkpoint-200")
    (torn / "model.safetensors").write_bytes((whole / "model.safetensors").read_bytes()[:-9])
    site.job("train", 1, checkpoint_path="/checkpoints/llm", recovery_resume_env="RESUME_FROM")
    site.breaks("train", 0, log=DIED)
    site.failed("train")
    site.cluster.faults.clear_all()
    done = site.recover(checkpoint_roots={"/checkpoints": str(site.folder)}, checkpoint_settle=0)
    (spec,) = [one["spec"] for one in done["decisions"]]
    assert (spec["resume"]["path"], spec["resume"]["step"]) == ("/checkpoints/llm/checkpoint-100", 100)
    assert "checkpoint-200" in spec["resume"]["note"] and "checkpoint-200" in done["lines"][0]
    (container,) = site.live("train")["spec"]["template"]["spec"]["containers"]
    assert {"name": "RESUME_FROM", "value": "/checkpoints/llm/checkpoint-100"} in container["env"]


def test_when_storage_fails_for_many_jobs_the_budget_of_all_holds(site):
    site.policy["spec"]["budgets"] = {"global": {"max": 3, "window": "10m"}}
    names = [f"train-{number}" for number in range(6)]
    for name in names:
        site.job(name, 1)
    for name in names:
        site.breaks(name, 0, log=FULL)
    for name in names:
        site.failed(name)
    site.cluster.faults.clear_all()
    done = site.recover()
    acted = [one for one in done["actions"] if one["status"] == "done"]
    held = [one["spec"] for one in done["decisions"] if one["spec"]["action"] == "hold"]
    assert (len(acted), len(held)) == (3, 3), done["lines"]
    assert done["advice"]["gate"] == [] and site.gates() == {}
    again = site.recover()
    assert not again["changed"] and again["counts"]["decisions"] == {"hold": 3}, again["lines"]


def test_killed_at_any_write_a_run_is_gone_on_with(site):
    site.job("train", 1)
    site.breaks("train", 0, log=DIED)
    site.failed("train")
    site.cluster.faults.clear_all()
    kills = 0
    for number in range(1, 12):
        with ApiProxy(site.cluster.kubeconfig) as proxy:
            process = modules.start("job_recovery", {**site.arguments(), "kubeconfig": str(proxy.kubeconfig)})

            def kill(request: Request, proxy=proxy, process=process, number=number) -> None:
                if proxy.writes == number:
                    process.kill()
                    process.wait()

            proxy.rule("write", "", **{"after" if number % 2 else "before": kill})
            if modules.finish(process):
                break
            kills += 1
    assert kills >= 4
    site.running("train", 1)
    job = site.live("train")
    assert job["metadata"]["annotations"]["goodput.fleet/attempt"] == "2" and not job["metadata"].get("finalizers")
    assert site.recover()["changed"] is False


def test_a_job_whose_node_vanished_waits_for_the_proof_that_it_is_off(site):
    def lives_on(body: dict) -> None:
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
        body["spec"]["podFailurePolicy"] = {"rules": [rule]}
        gone = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        keys = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
        template = body["spec"]["template"]
        template["spec"]["tolerations"] = [{**gone, "key": key} for key in keys]
        template["spec"]["terminationGracePeriodSeconds"] = 3600
        template["metadata"]["annotations"] = workloads.behaviour_annotations(script=DEAF)

    site.job("train", 2, lives_on)
    lost = site.rank("train", 1)["spec"]["nodeName"]
    site.cluster.fleet.set_not_ready(lost)
    try:
        wait_until(lambda: site.rank("train", 1)["metadata"].get("deletionTimestamp"), 60, "its pod is to be deleted")
        waits = site.recover(wait=1)
        assert [one["status"] for one in waits["actions"]] == ["waiting"], waits["lines"]
        assert not any("out-of-service" in mark for mark in site.gates()[lost])
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        done = site.recover(off_nodes=[{"node": lost, "source": "bmc", "at": now}], wait=60)
        assert [one["status"] for one in done["out_of_service"]] == ["held"], done
        site.running("train", 2)
        assert lost not in site.nodes_of("train")
    finally:
        for pod in site.pods("train"):
            site.api.delete(f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}", gracePeriodSeconds=0)
        site.cluster.fleet.set_ready(lost)
        site.cluster.fleet.reboot(lost)
        wait_until(lambda: lost in site.cluster.fleet.ready(), 60, "the node is back")
    back = site.recover()
    assert ("released", True) in [(one["status"], one["changed"]) for one in back["out_of_service"]], back


def test_a_watching_run_acts_when_a_job_fails(site):
    site.job("train", 2)
    run = modules.start("job_recovery", site.arguments(watch=9, interval=60))
    wait_until((site.folder / "evidence/seen.json").exists, 60, "the first pass is made")
    site.breaks("train", 1, log=DIED)

    def again() -> bool:
        found = site.api.find(workloads.path(SPACE, "jobs", "train")) or {"metadata": {}}
        return (found["metadata"].get("annotations") or {}).get("goodput.fleet/attempt") == "2"

    wait_until(again, 30, "the next attempt")
    assert run.poll() is None
    done = modules.finish(run)
    assert [one["outcome"] for one in done["actions"]] == ["running"], done["lines"]
    by_number = {one["number"]: one for one in done["job_attempts"]}
    assert len(by_number[1]["nodes"]) == 2, by_number[1]  # also of the pod that was deleted when the job failed
    assert by_number[2]["state"] == "running" and len(by_number[2]["nodes"]) == 2, by_number[2]


def test_a_job_that_hangs_is_told_and_stopped_only_where_the_policy_says_so(site):
    steps = 'for n in 1 2 3 4 5 6 7 8; do echo " iteration $n/ 900 | elapsed time per iteration (ms): 100.0"; done'
    template = workloads.behaviour_annotations(script=f"#!/bin/sh\n{steps}\nexec sleep 600\n")

    def stalls(body: dict) -> None:
        body["spec"]["template"]["metadata"]["annotations"] = template

    site.policy["spec"]["hang"] = {"factor": 2, "least": "2s", "most": "3s", "start": "1h"}
    first = site.job("train", 2, stalls)

    def hung() -> dict | None:
        done = site.recover(hangs=True)
        return done if done["decisions"] else None

    told = wait_until(hung, 60, "the hang is seen", pause=1)
    (spec,) = [one["spec"] for one in told["decisions"]]
    assert (spec["class"], spec["action"], spec["mode"]) == ("hang", "retry", "advise"), spec
    assert not told["changed"] and site.live("train")["metadata"]["uid"] == first["metadata"]["uid"]
    assert site.recover()["decisions"] == []  # who does not ask is not told

    site.policy["spec"]["hang"]["act"] = True
    done = site.recover(hangs=True)
    (action,) = done["actions"]
    # not at once: it has to be sure that the old attempt is gone
    assert done["decisions"][0]["spec"]["mode"] == "act" and action["status"] in ("waiting", "done"), done["lines"]
