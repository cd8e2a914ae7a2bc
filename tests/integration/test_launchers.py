"""Runs on a real API server: started, observed, read, stopped; taken over after a kill; on its bad days, too."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import dcgm_diag, nccl, training
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates.kubernetes import hold_many, release_many
from ansible_collections.goodput.fleet.plugins.module_utils.launchers import names, observation
from ansible_collections.goodput.fleet.plugins.module_utils.launchers.kubernetes import Launcher
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, Denied, Unavailable

from tests.simfleet import EmbeddedCluster, gpuwork
from tests.simfleet.api import wait_until
from tests.simfleet.apiproxy import ApiProxy
from tests.unit.launchers.a_run import a_run

pytestmark = pytest.mark.cluster

RBAC = Path(__file__).parents[2] / "gitops/rbac/certify.yaml"
ENDS = ("succeeded", "failed")


class Site:
    def __init__(self, cluster: EmbeddedCluster, namespace: str):
        self.cluster, self.api, self.namespace = cluster, cluster.api, namespace
        self.certification = str(uuid.uuid4())
        self.launcher = self.of(cluster.kubeconfig)

    def of(self, kubeconfig, certification: str = "", namespace: str = "") -> Launcher:
        """A launcher as another process would have it."""
        client = connect({"kubeconfig": str(kubeconfig)})
        client._sleep = lambda seconds: time.sleep(min(seconds, 0.05))
        return Launcher(client, namespace or self.namespace, certification or self.certification)

    def see(self, run: dict) -> dict:
        return self.launcher.observe([run])[run["id"]]

    def until(self, run: dict, *phases: str, seconds: float = 40) -> dict:
        seen: dict = {}

        def there() -> bool:
            seen.update(self.see(run))
            return seen["phase"] in phases

        wait_until(there, seconds, lambda: f"{phases}: {seen}", pause=0.2)
        return seen

    def text(self, run: dict) -> str:
        return "".join(log["text"] for log in self.launcher.logs(run))

    def gone(self, *runs: dict) -> None:
        for run in runs:
            self.launcher.stop(run["id"])
        ids = {run["id"] for run in runs}
        wait_until(lambda: not self.launcher.left(ids), 40, lambda: f"left: {self.launcher.left(ids)}")
        wait_until(lambda: not self.objects(), 20, lambda: f"left: {self.objects()}")

    def objects(self) -> list[str]:
        found = []
        for kind, base in (("services", "/api/v1"), ("secrets", "/api/v1"), ("jobs", "/apis/batch/v1")):
            for item in self.api.list(f"{base}/namespaces/{self.namespace}/{kind}"):
                found.append(f"{kind}/{item['metadata']['name']}")
        return found


@pytest.fixture
def site(cluster: EmbeddedCluster, namespace: str) -> Iterator[Site]:
    gpuwork.seed(cluster)
    yield Site(cluster, namespace)
    gpuwork.clear(cluster)


def group(*nodes: int, **more) -> dict:
    """A short collective on these nodes. Its limits are in seconds."""
    limits = more.pop("limits", {})
    run = a_run(names=[f"gpu-{index:04}" for index in nodes], maxBytes="1G", **more)
    return {**run, "limits": {**run["limits"], **limits}}


def alone(node: int, variant: str = "dcgm-level2", **more) -> dict:
    limits = more.pop("limits", {})
    run = a_run(variant, domain="diagnostics", names=[f"gpu-{node:04}"], **more)
    return {**run, "limits": {**run["limits"], **limits}}


def test_a_group_from_its_start_to_its_end(site):
    run = group(1, 3, 5)
    started = site.launcher.start(run)
    assert started["status"] == "created" and started["launcher"] == "indexed-job"
    assert "does not serve MPIJob" in started["note"]
    seen = site.until(run, *ENDS)
    assert seen["phase"] == "succeeded" and seen["startedAt"] <= seen["endedAt"]
    assert sorted(pod["node"] for pod in seen["pods"]) == run["nodes"]  # one on each
    leader = next(pod for pod in seen["pods"] if pod["index"] == 0)
    assert leader["exitCode"] == 0
    logs = list(site.launcher.logs(run))
    result = nccl.parse(next(log["text"] for log in logs if log["index"] == 0), **run["arguments"])
    assert result["complete"] and not [f for f in result["findings"] if f["severity"] == "error"]
    # what a process calls its host leads to its node
    assert sorted(result["runs"][0]["hosts"]) == sorted(pod["host"] for pod in seen["pods"])
    site.gone(run)
    assert site.see(run)["phase"] == "gone" and not site.launcher.stop(run["id"])


def test_training_without_an_operator(site):
    run = a_run("nemotron5-8b", domain="training", names=["gpu-0000", "gpu-0001"], maxSteps=20, resources={})
    site.launcher.start(run)
    site.until(run, "succeeded")
    last = next(log for log in site.launcher.logs(run) if log["index"] == 1)
    assert training.parse(last["text"])["runs"][0]["steps"] == 20
    site.gone(run)


def test_many_runs_are_seen_by_two_lists(site):
    runs = [alone(index) for index in range(8)]
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        launcher = site.of(proxy.kubeconfig)
        for run in runs:
            launcher.start(run)
        wait_until(
            lambda: all(seen["phase"] == "succeeded" for seen in launcher.observe(runs).values()), 60, "eight runs"
        )
        proxy.clear()
        seen = launcher.observe(runs)
        asked = [request.path.split("?")[0].rsplit("/", 1)[1] for request in proxy.requests]
    assert sorted(asked) == ["jobs", "pods"]
    for run in runs:
        assert [pod["node"] for pod in seen[run["id"]]["pods"]] == run["nodes"]
        result = dcgm_diag.parse(site.text(run), **run["arguments"])
        assert result["complete"] and not [f for f in result["findings"] if f["severity"] == "error"]
    site.gone(*runs)


def test_a_closed_node_is_entered_by_those_who_name_its_gate(site):
    client = connect({"kubeconfig": str(site.cluster.kubeconfig)})
    gate = {"node": "gpu-0002", "owner": "burn-in", "reason": "new"}
    assert hold_many(client, [gate])[0]["status"] == "held"
    try:
        taint = next(
            each
            for each in site.api.get("/api/v1/nodes/gpu-0002")["spec"]["taints"]
            if each["key"] == "gate.goodput.fleet/burn-in"
        )
        shut, open_ = alone(2, "dcgm-level1"), alone(2, tolerated=[{"value": "", **taint}])
        site.launcher.start(shut)
        site.until(shut, "queued")
        wait_until(lambda: "untolerated taint" in site.see(shut)["why"], 20, lambda: str(site.see(shut)))
        waiting = site.see(shut)
        late = observation.overdue(shut, waiting, datetime.now(UTC) + timedelta(seconds=shut["limits"]["start"] + 1))
        assert late["limit"] == "queue" and "untolerated taint" in late["why"]
        site.launcher.start(open_)
        site.until(open_, "succeeded")
        site.gone(shut, open_)
    finally:
        release_many(client, [{**gate, "force": True}])


def test_faults_are_told(site):
    gpuwork.seed(
        site.cluster,
        {"gpu-0001": "crash", "gpu-0003": "image-pull", "gpu-0005": "no-sshd", "gpu-0007": "hang"},
    )
    limits = {"start": 4, "run": 100, "silence": 3}
    crash, pull, deaf, hang = (group(index, index + 1, limits=limits) for index in (0, 2, 4, 6))
    for run in (crash, pull, deaf, hang):
        site.launcher.start(run)
    assert "exit code 139" in site.until(crash, *ENDS)["why"]
    site.until(deaf, *ENDS)

    def codes() -> dict:
        return {pod["node"]: pod["exitCode"] for pod in site.see(deaf)["pods"]}

    # the first pod may be either: without sshd it ends the run at once, and the other one waits for it
    wait_until(lambda: codes()["gpu-0005"] == 127, 20, lambda: str(codes()))
    assert codes()["gpu-0004"] in (255, None)
    assert {log["node"] for log in site.launcher.logs(deaf) if "sshd: not found" in log["text"]} == {"gpu-0005"}

    def late(run: dict) -> dict:
        now = datetime.now(UTC)
        return observation.overdue(run, site.launcher.observe([run], now)[run["id"]], now) or {}

    wait_until(lambda: late(pull), 30, "a limit")
    assert late(pull)["limit"] == "start" and late(pull)["nodes"] == ["gpu-0003"]
    assert "ImagePullBackOff" in late(pull)["why"] and "not found" in late(pull)["why"]
    unread = next(log for log in site.launcher.logs(pull) if log["node"] == "gpu-0003")
    assert unread["problem"] and not unread["text"]
    wait_until(lambda: late(hang), 30, "a limit")
    assert late(hang)["limit"] == "silence"
    assert "Rank" in site.text(hang)
    site.gone(crash, pull, deaf, hang)


def test_why_a_job_gets_no_pods(site):
    base = f"/api/v1/namespaces/{site.namespace}/resourcequotas"
    site.api.create(base, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    wait_until(lambda: site.api.get(f"{base}/none").get("status", {}).get("hard"), 20, "the quota")
    run = alone(0)
    site.launcher.start(run)
    wait_until(lambda: "exceeded quota" in site.see(run)["why"], 20, lambda: str(site.see(run)))
    assert site.see(run)["phase"] == "queued"
    site.gone(run)


def test_an_equal_run_is_adopted_and_no_other(site):
    run = group(0, 1)
    assert site.launcher.start(run)["status"] == "created"
    assert site.of(site.cluster.kubeconfig).start(run)["status"] == "adopted"
    with pytest.raises(Conflict, match="not what would be started"):
        site.launcher.start({**run, "image": "registry.example.com/tests:2"})
    with pytest.raises(Conflict, match=f"is of certification {site.certification}"):
        site.of(site.cluster.kubeconfig, certification="another").start(run)
    assert len([each for each in site.objects() if each.startswith("jobs/")]) == 1
    site.until(run, "succeeded")
    site.launcher.stop(run["id"])
    assert site.launcher.start(run)["status"] == "created"  # when the last one is wholly gone
    site.until(run, "succeeded")
    site.gone(run)


@pytest.mark.parametrize("at", ["services", "secrets", "jobs"])
def test_killed_between_two_objects(site, at):
    run = group(0, 1)
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("POST", f"/{at}", drop=True)
        with pytest.raises(Unavailable):
            site.of(proxy.kubeconfig).start(run)
    left = site.launcher.orphans()
    assert left == ({} if at == "services" else {run["id"]: ["Service"]})
    assert site.launcher.start(run)["status"] == "created"
    assert site.launcher.orphans({run["id"]}) == {} and sorted(site.launcher.orphans()) == [run["id"]]
    site.until(run, "succeeded")
    site.gone(run)
    assert site.launcher.orphans() == {}


@pytest.mark.parametrize("at", ["jobs", "secrets", "services"])
def test_killed_while_it_is_stopped(site, at):
    run = group(0, 1)
    site.launcher.start(run)
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("DELETE", f"/{at}/", drop=True)
        with pytest.raises(Unavailable):
            site.of(proxy.kubeconfig).stop(run["id"])
    assert run["id"] in site.launcher.orphans()
    site.gone(run)


@pytest.mark.parametrize(
    "what",
    [
        {"status": 429, "headers": {"Retry-After": "1"}},
        {"status": 500},
        {"status": 503},
        {"lose_answer": True},
        {"drop": True},
    ],
    ids=["429", "500", "503", "lost", "dropped"],
)
def test_a_bad_day(site, what):
    """Each kind of request fails once; nothing is made twice."""
    run = group(0, 1)
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        for method in ("POST", "GET", "DELETE"):
            for kind in ("services", "secrets", "jobs", "pods", "/log"):
                proxy.rule(method, kind, times=1, **what)
        launcher = site.of(proxy.kubeconfig)
        assert launcher.start(run)["status"] == "created"
        wait_until(lambda: launcher.observe([run])[run["id"]]["phase"] == "succeeded", 40, "the run")
        first = next(log for log in launcher.logs(run) if log["index"] == 0)
        assert not first["problem"] and "Collective test concluded" in first["text"]
        assert sorted(site.objects()) == sorted(f"{kind}/gp-{run['id']}" for kind in ("jobs", "secrets", "services"))
        launcher.stop(run["id"])
    site.gone(run)


def test_rights_that_lack(site):
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/jobs", status=403)
        with pytest.raises(Denied, match=r"create jobs\.batch"):
            site.of(proxy.kubeconfig).start(alone(0))
        assert proxy.count("POST", "/jobs") == 1


def test_operators_where_they_are(make_cluster):
    """Their own controllers are not here: objects are made, adopted, seen and removed."""
    cluster = make_cluster(nodes=4)
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "certify"}})
    site = Site(cluster, "certify")
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for group_name, version, kind in (
        ("kubeflow.org", "v2beta1", "MPIJob"),
        ("trainer.kubeflow.org", "v1alpha1", "TrainJob"),
        ("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime"),
    ):
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        spec = {
            "group": group_name,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [served],
        }
        cluster.api.create(crds, {"metadata": {"name": f"{plural}.{group_name}"}, "spec": spec})
        path = f"/apis/{group_name}/{version}/{plural}"
        wait_until(lambda path=path: site.launcher.client.find(path), 20, plural)
    mpi = group(0, 1)
    train = a_run("nemotron5-8b", domain="training", names=["gpu-0002", "gpu-0003"])
    for run, kind in ((mpi, "mpijob"), (train, "trainjob")):
        assert site.launcher.start(run) == {"status": "created", "launcher": kind, "note": ""}
        assert site.launcher.start(run)["status"] == "adopted"
    assert {run_id: set(found) for run_id, found in site.launcher.orphans().items()} == {
        mpi["id"]: {"MPIJob"},
        train["id"]: {"TrainJob", "TrainingRuntime"},
    }
    seen = site.launcher.observe([mpi, train])
    assert {entry["phase"] for entry in seen.values()} == {"queued"}
    assert site.launcher.stop(mpi["id"]) == ["MPIJob"]
    assert site.launcher.stop(train["id"]) == ["TrainJob", "TrainingRuntime"]
    assert site.launcher.orphans() == {}


def test_a_log_is_read_in_bounds(site):
    run = group(0, 1)
    site.launcher.start(run)
    site.until(run, "succeeded")
    first = next(log for log in site.launcher.logs(run, limit=4000) if log["index"] == 0)
    assert first["leftOut"] > 0 and len(first["text"]) < 4400 and first["bytes"] > 4400
    assert first["text"].startswith("# Collective test starting") and "are left out here" in first["text"]
    assert first["text"].endswith("# Collective test concluded: all_reduce_perf\n")
    site.gone(run)


def test_the_shipped_rights_are_enough_and_none_writes_to_nodes(site):
    for item in yaml.safe_load_all(RBAC.read_text()):
        for part in item["items"]:
            namespace = part["metadata"].get("namespace")
            prefix = "api/v1" if part["apiVersion"] == "v1" else f"apis/{part['apiVersion']}"
            scope = f"/namespaces/{namespace}" if namespace else ""
            site.api.apply(f"/{prefix}{scope}/{part['kind'].lower()}s/{part['metadata']['name']}", part)
    account = "/api/v1/namespaces/goodput-certify/serviceaccounts"
    wait_until(lambda: site.api.find(f"{account}/default"), 20, "the namespace's own account")
    body = {"spec": {"expirationSeconds": 3600}}
    token = site.api.create(f"{account}/goodput-fleet-certify/token", body)["status"]["token"]
    limited = site.cluster.access.with_token("certify", token)
    rules = [
        rule
        for item in yaml.safe_load_all(RBAC.read_text())
        for part in item["items"]
        for rule in part.get("rules", ())
    ]
    assert {verb for rule in rules if "nodes" in rule["resources"] for verb in rule["verbs"]} == {"get", "list"}
    site.namespace = "goodput-certify"
    site.launcher = site.of(limited)
    run, another = group(0, 1, limits={"silence": 1}), alone(2)
    before = site.api.get("/api/v1/nodes/gpu-0000")["spec"]
    for each in (run, another):
        site.launcher.start(each)
        assert site.launcher.start(each)["status"] == "adopted"
        site.until(each, "succeeded")
        assert site.text(each)
    assert site.launcher.observe([run], datetime.now(UTC) + timedelta(hours=1))
    assert sorted(site.launcher.orphans()) == sorted((run["id"], another["id"]))
    site.gone(run, another)
    assert site.api.get("/api/v1/nodes/gpu-0000")["spec"] == before
    assert names.object_name(run["id"]) not in str(site.objects())
