"""Draining nodes of a real API server: its evictions, its disruption budgets, controllers that make pods anew."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates.kubernetes import hold_many

from tests.integration import modules
from tests.simfleet import EmbeddedCluster
from tests.simfleet import workloads as make
from tests.simfleet.api import MERGE_PATCH, wait_until
from tests.simfleet.apiproxy import ApiProxy
from tests.simfleet.workloads import path

pytestmark = pytest.mark.cluster

RBAC = Path(__file__).parents[2] / "gitops/rbac/drain.yaml"
NODE, OTHER = "gpu-0000", "gpu-0001"
GPU_A = "GPU-00000000-aaaa-4000-8000-000000000001"
GPU_B = "GPU-00000000-aaaa-4000-8000-000000000002"
EVICT = {"action": "evict"}
DEAF = "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.2; done\n"


class Site:
    """A cluster with one closed node, a namespace of the test's own, and the drains of it."""

    def __init__(self, cluster: EmbeddedCluster):
        self.cluster, self.api = cluster, cluster.api
        self.namespace = f"test-{uuid.uuid4().hex[:8]}"
        self.api.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_until(lambda: self.api.find(account), 20, account, pause=0.02)

    def close(self, node: str = NODE, since: str = "", owner: str = "maintenance") -> None:
        client = connect({"kubeconfig": str(self.cluster.kubeconfig)})
        want = {"node": node, "owner": owner, "reason": "drain test", **({"since": since} if since else {})}
        assert hold_many(client, [want])[0]["status"] == "held"

    def open_all(self) -> None:
        for item in self.api.list("/api/v1/nodes"):
            notes = item["metadata"].get("annotations") or {}
            gone = {key: None for key in notes if key.startswith("gate.goodput.fleet/")}
            taints = [each for each in item["spec"].get("taints") or [] if not each["key"].startswith("gate.")]
            body = {"metadata": {"annotations": gone}, "spec": {"taints": taints or None, "unschedulable": None}}
            self.api.patch(f"/api/v1/nodes/{item['metadata']['name']}", body, MERGE_PATCH)

    # ---- pods ----

    def pod(self, name: str, node: str = NODE, gpus: int = 0, **fields) -> None:
        """A pod of a controller that nobody runs: not naked, and nothing makes it anew. The garbage collector lets
        pods be whose owner's kind is not served."""
        spec, behaviour = fields.pop("spec", {}), fields.pop("behaviour", {})
        body = make.pod(name, gpus, {"nodeName": node, **spec}, **behaviour)
        body["metadata"]["labels"] = fields.pop("labels", {"app": name})
        body["metadata"]["annotations"].update(fields.pop("annotations", {}))
        if fields.pop("owned", True):
            owner = {"apiVersion": "example.com/v1", "kind": "Trainer", "name": "t", "uid": str(uuid.uuid4())}
            body["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        assert not fields
        self.api.create(path(self.namespace, "pods"), body)

    def workload(self, kind: str, name: str, replicas: int, node: str | None = None, **spec) -> None:
        body = make.workload(kind, name, {"replicas": replicas})
        body["spec"]["template"]["spec"].update(spec)
        if node:
            body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        if kind == "StatefulSet":
            body["spec"]["serviceName"] = name
        self.api.create(f"/apis/apps/v1/namespaces/{self.namespace}/{kind.lower()}s", body)

    def budget(self, name: str, app: str, allowed: int = 0) -> None:
        spec = {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": app}}}
        address = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        self.api.create(address, {"metadata": {"name": name}, "spec": spec})
        wait_until(lambda: "disruptionsAllowed" in self.api.get(f"{address}/{name}").get("status", {}), 20, name)

    def pods(self) -> dict[str, dict]:
        return {item["metadata"]["name"]: item for item in self.api.list(path(self.namespace, "pods"))}

    def running(self, count: int, node: str | None = NODE) -> dict[str, dict]:
        """Wait for that many running pods (on the node); them."""
        found: dict[str, dict] = {}

        def there() -> bool:
            found.clear()
            for name, item in self.pods().items():
                ready = {"type": "Ready", "status": "True"}.items()
                conditions = item["status"].get("conditions") or []
                if node in (None, item["spec"].get("nodeName")) and any(ready <= each.items() for each in conditions):
                    found[name] = item
            return len(found) == count

        wait_until(there, 30, lambda: f"{count} running pods; {sorted(found)}", pause=0.1)
        return found

    # ---- drains ----

    def arguments(self, *policies: dict, **options) -> dict:
        entries = [{"namespaces": [self.namespace], **policy} for policy in policies]
        defaults = {"kubeconfig": str(self.cluster.kubeconfig), "nodes": [NODE], "timeout": 40, "interval": 0.5}
        return {**defaults, "policies": entries, **options}

    def drain(self, *policies: dict, check: bool = False, **options) -> dict:
        return modules.run("node_drain", self.arguments(*policies, **options), check=check, diff=True)

    def key(self, name: str) -> str:
        return f"{self.namespace}/{name}"


@pytest.fixture(scope="module")
def drained_cluster(show) -> Iterator[EmbeddedCluster]:
    """A cluster of this module's own: its nodes are closed and opened."""
    with EmbeddedCluster(nodes=4, profile="demo", say=show) as cluster:
        yield cluster


@pytest.fixture
def site(drained_cluster) -> Iterator[Site]:
    drained_cluster.check()
    site = Site(drained_cluster)
    yield site
    site.open_all()
    drained_cluster.api.delete(f"/api/v1/namespaces/{site.namespace}")
    drained_cluster.api.delete(path(site.namespace, "pods"), gracePeriodSeconds=0)
    wait_until(lambda: not site.pods(), 20, "the test's pods are gone", pause=0.1)


def left(result: dict, node: int = 0) -> dict[str, dict]:
    return {entry["pod"].partition("/")[2]: entry for entry in result["nodes"][node]["remaining"]}


# ---- whole nodes ----


def test_a_closed_node_is_emptied_and_a_second_run_changes_nothing(site):
    site.workload("Deployment", "web", 3, node=NODE)
    site.pod("elsewhere", node=OTHER)
    site.api.create(path(site.namespace, "daemonsets"), make.daemon_set("agent"))
    site.running(4)
    site.close()
    result = site.drain(EVICT)
    node = result["nodes"][0]
    assert (result["failed"], result["changed"], node["status"], len(node["evicted"])) == (False, True, "drained", 3)
    assert [entry["why"] for entry in node["stays"] if entry["pod"].startswith(site.namespace)] == [
        "pod of DaemonSet agent"
    ]
    on_node = [name for name, item in site.pods().items() if item["spec"].get("nodeName") == NODE]
    assert len(on_node) == 1 and on_node[0].startswith("agent-")
    assert "elsewhere" in site.pods()
    assert result["diff"]["before"][NODE] == node["evicted"] and result["diff"]["after"][NODE] == []
    again = site.drain(EVICT)
    assert (again["failed"], again["changed"], again["nodes"][0]["status"]) == (False, False, "drained")


def test_an_open_node_is_refused(site):
    site.pod("a")
    site.running(1)
    result = site.drain(EVICT)
    assert result["failed"] and result["nodes"][0]["code"] == "open"
    assert "gpu-0000: failed: it has no gate and is not cordoned" in result["msg"]
    assert "a" in site.pods()
    assert site.drain(EVICT, allow_open=True)["nodes"][0]["status"] == "drained"


def test_a_cordon_will_do_but_not_where_a_gate_is_asked_for(site):
    site.pod("a")
    site.running(1)
    site.api.patch(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}})
    assert "it has no gate of maintenance" in site.drain(EVICT, owner="maintenance")["msg"]
    assert site.drain(EVICT)["nodes"][0]["status"] == "drained"


def test_several_nodes_and_one_that_is_not_there(site):
    for node in (NODE, OTHER):
        site.pod(f"on-{node}", node=node)
        site.close(node)
    site.running(2, node=None)
    result = site.drain(EVICT, nodes=[NODE, "gpu-9999", OTHER])
    assert [node["status"] for node in result["nodes"]] == ["drained", "failed", "drained"]
    assert result["failed"] and "gpu-9999: failed: there is no such node" in result["msg"]
    assert result["counts"] == {"total": 3, "drained": 2, "draining": 0, "waiting": 0, "blocked": 0, "failed": 1}


def test_check_mode_is_the_plan(site):
    site.pod("plain")
    site.pod("guarded")
    site.budget("never", "guarded")
    site.pod("naked", owned=False)
    site.pod("scratch", spec={"volumes": [{"name": "tmp", "emptyDir": {}}]})
    site.running(4)
    site.close()
    result = site.drain(EVICT, check=True)
    node = result["nodes"][0]
    assert (result["failed"], result["changed"], node["status"]) == (False, True, "blocked")
    assert node["evicted"] == [site.key("plain")]
    entries = left(result)
    assert entries["guarded"]["pdb"] == ["never"] and "PodDisruptionBudget never allows no" in entries["guarded"]["why"]
    assert "unmanaged: true" in entries["naked"]["why"] and "volume tmp" in entries["scratch"]["why"]
    assert not any("deletionTimestamp" in item["metadata"] for item in site.pods().values())
    assert site.key("plain") not in result["diff"]["after"][NODE]


def test_naked_pods_and_local_data_go_when_the_policy_says_so(site):
    site.pod("naked", owned=False)
    site.pod("scratch", spec={"volumes": [{"name": "tmp", "emptyDir": {}}]})
    site.running(2)
    site.close()
    assert site.drain({**EVICT, "unmanaged": True, "local_data": True})["nodes"][0]["status"] == "drained"


# ---- waiting ----


def test_a_job_is_waited_for(site):
    body = make.job("train", 1, exit_code=0, after=4)
    body["spec"]["template"]["spec"]["nodeName"] = NODE
    site.api.create(path(site.namespace, "jobs"), body)
    site.running(1)
    site.close()
    early = site.drain(wait=False)
    assert (early["failed"], early["changed"], early["nodes"][0]["status"]) == (False, False, "waiting")
    result = site.drain()
    assert (result["failed"], result["changed"], result["nodes"][0]["status"]) == (False, False, "drained")
    assert all(item["status"]["phase"] == "Succeeded" for item in site.pods().values())


def test_the_deadline_counts_from_the_gate_and_survives_runs(site):
    site.pod("a")
    site.running(1)
    ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 595))
    site.close(since=ago)
    policy = {**EVICT, "after": "10m"}
    early = site.drain(policy, wait=False)
    assert early["nodes"][0]["status"] == "waiting" and "policies[0] evicts it at" in left(early)["a"]["why"]
    result = site.drain(policy)
    assert result["nodes"][0]["status"] == "drained" and result["waited"] < 15


def test_as_a_task_of_a_playbook(site, run_play, tmp_path):
    """With the connection from the action group's defaults; the plan first, then the drain."""
    site.pod("a")
    site.running(1)
    site.close()
    arguments = site.arguments(EVICT)
    connection = {"kubeconfig": arguments.pop("kubeconfig")}
    group = {"group/goodput.fleet.kubernetes": connection}
    task = {"goodput.fleet.node_drain": arguments, "module_defaults": group}
    tasks = [{**task, "check_mode": True, "diff": True, "register": "plan"}, {**task, "register": "done"}]
    results = run_play(tmp_path, [*tasks, {**task, "register": "again"}])
    assert [results[name]["changed"] for name in ("plan", "done", "again")] == [True, True, False]
    assert results["plan"]["nodes"][0]["evicted"] == results["done"]["nodes"][0]["evicted"] == [site.key("a")]


def test_it_fails_with_what_is_left_when_the_time_is_up(site):
    site.pod("endless")
    site.running(1)
    site.close()
    began = time.monotonic()
    result = site.drain(timeout=2)
    assert time.monotonic() - began < 10
    assert result["failed"] and "1 of 1 nodes are not drained" in result["msg"]
    assert f"{NODE}: waiting: {site.key('endless')} (the default says wait for its completion, and" in result["msg"]
    assert not site.drain(timeout=1, fail_on_remaining=False)["failed"]


# ---- budgets ----


def test_a_budget_holds_is_named_and_keeps_no_other_from_going(site):
    site.pod("guarded")
    site.pod("plain")
    site.budget("never", "guarded")
    site.running(2)
    site.close()
    result = site.drain(EVICT, timeout=3)
    entry = left(result)["guarded"]
    assert (result["failed"], result["nodes"][0]["status"]) == (True, "blocked")
    assert entry["pdb"] == ["never"]
    assert "PodDisruptionBudget never forbids it: Cannot evict pod" in entry["why"]
    assert result["changed"] and result["nodes"][0]["evicted"] == [site.key("plain")]
    assert list(site.pods()) == ["guarded"]


def test_a_budget_that_allows_one_at_a_time(site):
    """Each next one goes only when the controller's new pod is ready elsewhere."""
    site.workload("Deployment", "web", 3)
    site.budget("web", "web", allowed=1)
    site.running(3, node=None)
    for node in (NODE, OTHER, "gpu-0002"):  # wherever they are: all of them move to the fourth node
        site.close(node)
    result = site.drain(EVICT, nodes=[NODE, OTHER, "gpu-0002"])
    assert not result["failed"]
    assert {item["spec"]["nodeName"] for item in site.running(3, node=None).values()} == {"gpu-0003"}


def test_two_budgets_on_one_pod_are_both_named(site):
    site.pod("guarded")
    site.budget("first", "guarded", allowed=1)
    site.budget("second", "guarded", allowed=1)
    site.running(1)
    site.close()
    result = site.drain(EVICT, timeout=2)
    assert result["nodes"][0]["status"] == "blocked"
    assert left(result)["guarded"]["pdb"] == ["first", "second"]
    assert "more than one PodDisruptionBudget selects it (first, second)" in left(result)["guarded"]["why"]


def test_force_goes_past_a_budget_after_its_own_deadline_only(site):
    site.pod("guarded")
    site.budget("never", "guarded")
    site.running(1)
    site.close()
    policy = {**EVICT, "force": True, "force_after": "1h"}
    assert site.drain(policy, timeout=2)["nodes"][0]["status"] == "blocked"
    result = site.drain({**policy, "force_after": "2s"})
    node = result["nodes"][0]
    assert (node["status"], node["evicted"], node["forced"]) == ("drained", [], [site.key("guarded")])


def test_a_slow_pod_is_cut_short_alone(site):
    slow = {"terminationGracePeriodSeconds": 3600}
    for name in ("slow", "patient"):
        site.pod(name, spec=slow, behaviour={"script": DEAF})
    site.pod("guarded")
    site.budget("never", "guarded")
    site.running(3)
    site.close()
    cut = {**EVICT, "selector": "app=slow", "force": True, "force_after": "2s", "force_grace_seconds": 1}
    result = site.drain(cut, EVICT, timeout=5)
    assert result["nodes"][0]["forced"] == [site.key("slow")]
    grace = {name: item["metadata"].get("deletionGracePeriodSeconds") for name, item in site.pods().items()}
    # the simulated kubelet is not told of the shorter grace; the real one is
    assert grace == {"slow": 1, "patient": 3600, "guarded": None}
    assert left(result)["patient"]["state"] == "terminating" and left(result)["guarded"]["state"] == "blocked"


def test_an_admission_rule_blocks_and_is_quoted(site):
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    space = {"matchLabels": {"kubernetes.io/metadata.name": site.namespace}}
    policy = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": space},
        "validations": [{"expression": "false", "message": "not on Fridays", "reason": "Forbidden"}],
    }
    kinds = {
        "validatingadmissionpolicies": policy,
        "validatingadmissionpolicybindings": {"policyName": "no-evictions", "validationActions": ["Deny"]},
    }
    for plural, spec in kinds.items():
        site.api.create(f"{group}/{plural}", {"metadata": {"name": "no-evictions"}, "spec": spec})
    try:
        time.sleep(1.5)  # until the API server has taken the rule in
        site.pod("a")
        site.running(1)
        site.close()
        result = site.drain(EVICT, timeout=2)
        assert result["nodes"][0]["status"] == "blocked" and "not on Fridays" in left(result)["a"]["why"]
    finally:
        for plural in kinds:
            site.api.delete(f"{group}/{plural}/no-evictions")
    wait_until(lambda: not site.drain(EVICT, timeout=5)["failed"], 20, "a drain without the rule")


# ---- what comes after a pod ----


def test_a_stateful_pod_is_not_chased_to_its_new_node(site):
    site.workload("StatefulSet", "db", 1)
    (pod,) = site.running(1, node=None).values()
    node = pod["spec"]["nodeName"]
    site.close(node)
    result = site.drain(EVICT, nodes=[node])
    assert (result["nodes"][0]["status"], result["nodes"][0]["evicted"]) == ("drained", [site.key("db-0")])
    (new,) = site.running(1, node=None).values()
    assert new["metadata"]["name"] == "db-0" and new["spec"]["nodeName"] != node
    assert not site.drain(EVICT, nodes=[node])["changed"]
    assert site.pods()["db-0"]["metadata"]["uid"] == new["metadata"]["uid"]


def test_a_pod_of_the_same_name_that_came_between_is_not_evicted(site):
    site.pod("db-0")
    site.running(1)
    site.close()

    def replace(_request) -> None:
        site.api.delete(path(site.namespace, "pods", "db-0"), gracePeriodSeconds=0)
        wait_until(lambda: "db-0" not in site.pods(), 10, "db-0 is gone", pause=0.02)
        site.pod("db-0", node=OTHER)

    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/eviction", times=1, before=replace)
        result = site.drain(EVICT, kubeconfig=str(proxy.kubeconfig))
        assert [request.status for request in proxy.requests if request.method == "POST"] == [409]
    assert (result["nodes"][0]["status"], result["changed"]) == ("drained", False)
    assert "deletionTimestamp" not in site.pods()["db-0"]["metadata"]


def test_pods_that_tolerate_everything_come_back_and_are_not_chased_for_ever(site):
    site.workload("Deployment", "stubborn", 1, node=NODE, tolerations=[{"operator": "Exists"}])
    site.running(1)
    site.close()
    result = site.drain(EVICT, timeout=8)
    assert result["nodes"][0]["status"] == "blocked"
    assert len(result["nodes"][0]["evicted"]) <= 3
    assert any("onto this node again and again" in entry["why"] for entry in left(result).values())


def test_a_node_that_is_opened_meanwhile_is_left_alone(site):
    for name in ("a", "b"):
        site.pod(name)
        site.budget(name, name)
    site.running(2)
    site.close()
    timer = threading.Timer(3, site.open_all)
    timer.start()
    result = site.drain(EVICT, timeout=60)
    timer.join()
    assert result["failed"] and result["nodes"][0]["code"] == "open" and result["waited"] < 20
    assert "somebody opened the node while it was drained" in result["msg"]


def test_a_node_that_is_silent_is_not_drained(site):
    """Its pods may run on; that nobody hears of them is no proof."""
    site.pod("lost", spec={"terminationGracePeriodSeconds": 3600}, behaviour={"script": DEAF})
    site.running(1)
    site.close()
    site.cluster.fleet.set_not_ready(NODE)
    try:
        # the simulated kubelet gives it an hour and does not hear that it is to be a second: as one that is gone
        for grace in (3600, 1):
            site.api.delete(path(site.namespace, "pods", "lost"), gracePeriodSeconds=grace)
        policy = {**EVICT, "force": True, "force_after": "1h", "force_grace_seconds": 0}
        result = site.drain(policy, timeout=3)
        assert result["failed"] and not result["changed"] and result["nodes"][0]["status"] == "draining"
        assert "its node is not ready, so nothing tells whether it still runs" in left(result)["lost"]["why"]
        result = site.drain({**policy, "force_after": "1s"})
        assert (result["nodes"][0]["status"], result["nodes"][0]["forced"]) == ("drained", [site.key("lost")])
    finally:
        site.cluster.fleet.set_ready(NODE)
        wait_until(lambda: NODE in site.cluster.fleet.ready(), 20, f"{NODE} is ready")


# ---- one GPU ----


def devices(*uuids: str) -> dict[str, str]:
    return {"dgxc.nvidia.com/devices": json.dumps({"devices": {"nvidia.com/gpu": list(uuids)}})}


def test_only_the_pods_of_one_gpu_go(site):
    site.pod("on-a", gpus=1, annotations=devices(GPU_A))
    site.pod("on-b", gpus=1, annotations=devices(GPU_B))
    site.pod("untold", gpus=1)
    site.pod("told", gpus=1, annotations=devices(GPU_A))
    site.pod("plain")
    site.running(5)
    site.close()
    given = {site.key("told"): [GPU_B]}  # the kubelet knows better than a stale annotation
    result = site.drain(EVICT, gpus=[GPU_A], devices=given)
    node = result["nodes"][0]
    assert (node["status"], node["evicted"]) == ("drained", [site.key("on-a"), site.key("untold")])
    assert result["gpus"] == [GPU_A]
    assert sorted(site.pods()) == ["on-b", "plain", "told"]
    assert not site.drain(EVICT, gpus=[GPU_A], devices=given)["changed"]
    # a wider action needs a wider drain
    assert sorted(site.drain(EVICT)["nodes"][0]["evicted"]) == [site.key(name) for name in ("on-b", "plain", "told")]


# ---- an API server with bad days, runs that are killed ----


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": 429, "headers": {"Retry-After": "1"}, "times": 3},
        {"status": 500, "times": 3},
        {"status": 503, "times": 3},
        {"drop": True, "times": 2},
        {"lose_answer": True, "times": 2},
        {"status": 409, "times": 2},
    ],
    ids=lambda trouble: "-".join(map(str, trouble.values())),
)
def test_evictions_that_go_wrong_at_first(site, trouble):
    for name in ("a", "b", "c"):
        site.pod(name)
    site.running(3)
    site.close()
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/eviction", **trouble)
        result = site.drain(EVICT, kubeconfig=str(proxy.kubeconfig))
    node = result["nodes"][0]
    assert (node["status"], node["evicted"]) == ("drained", [site.key(name) for name in ("a", "b", "c")])
    assert not site.pods()


def test_a_server_that_stays_overloaded_is_not_taken_for_a_budget(site):
    site.pod("a")
    site.running(1)
    site.close()
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/eviction", status=429, headers={"Retry-After": "1"}, message="too many requests")
        policy = {**EVICT, "force": True, "force_after": "1s"}
        result = site.drain(policy, kubeconfig=str(proxy.kubeconfig), timeout=5)
        assert proxy.count("POST", "/eviction") <= 6
        assert proxy.count("DELETE") == 0
    assert (result["nodes"][0]["status"], left(result)["a"]["pdb"]) == ("draining", [])
    assert "too many requests" in left(result)["a"]["why"]


def test_a_node_that_may_not_be_read_harms_no_other(site):
    for node in (NODE, OTHER):
        site.pod(f"on-{node}", node=node)
        site.close(node)
    site.running(2, node=None)
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("GET", f"/nodes/{NODE}$", status=403)
        result = site.drain(EVICT, kubeconfig=str(proxy.kubeconfig), nodes=[NODE, OTHER])
    assert [node["status"] for node in result["nodes"]] == ["failed", "drained"]
    assert f"forbidden: cannot get nodes {NODE}" in result["msg"]


def test_a_run_killed_after_any_eviction_is_simply_run_again(site):
    names = ["a", "b", "c"]
    site.close()
    for nth in range(1, len(names) + 1):
        for name in names:
            site.pod(name)
        site.running(len(names))
        with ApiProxy(site.cluster.kubeconfig) as proxy:
            process = modules.start("node_drain", site.arguments(EVICT, kubeconfig=str(proxy.kubeconfig)))

            def kill(_request, nth=nth, process=process, proxy=proxy) -> None:
                if proxy.count("POST", "/eviction") >= nth:
                    os.kill(process.pid, signal.SIGKILL)

            proxy.rule("POST", "/eviction", after=kill)
            assert modules.finish(process) == {}
        result = site.drain(EVICT)
        assert (result["failed"], result["nodes"][0]["status"]) == (False, "drained")
        assert not site.pods()
        assert not site.drain(EVICT)["changed"]


# ---- rights ----


def test_the_shipped_rights_are_enough_and_none_too_many(site):
    for item in yaml.safe_load_all(RBAC.read_text()):
        for part in item["items"]:
            namespace = part["metadata"].get("namespace")
            group = "api/v1" if part["apiVersion"] == "v1" else f"apis/{part['apiVersion']}"
            scope = f"/namespaces/{namespace}" if namespace else ""
            site.api.apply(f"/{group}{scope}/{part['kind'].lower()}s/{part['metadata']['name']}", part)
    account = "/api/v1/namespaces/goodput-fleet/serviceaccounts/goodput-fleet-drain"
    token = site.api.create(f"{account}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    kubeconfig = str(site.cluster.access.with_token("drain", token))
    site.pod("plain")
    site.pod("guarded")
    site.budget("never", "guarded")
    site.running(2)
    site.close()
    policy = {**EVICT, "force": True, "force_after": "1s"}
    result = site.drain(policy, kubeconfig=kubeconfig, timeout=4)
    assert result["nodes"][0]["evicted"] == [site.key("plain")]
    assert left(result)["guarded"]["state"] == "failed"  # nobody gave it the right to force
    assert "forbidden: cannot delete pods guarded" in left(result)["guarded"]["why"]
    site.api.delete(f"/apis/policy/v1/namespaces/{site.namespace}/poddisruptionbudgets/never")
    assert site.drain(EVICT, kubeconfig=kubeconfig)["nodes"][0]["status"] == "drained"
    with ApiProxy(kubeconfig) as proxy:
        site.drain(EVICT, kubeconfig=str(proxy.kubeconfig))
        asked = {(request.method, request.path.split("?")[0].split("/")[-1]) for request in proxy.requests}
    assert asked == {("GET", NODE), ("GET", "pods")}


def test_a_cluster_that_cannot_be_reached_is_one_error(site):
    result = site.drain(EVICT, kubeconfig=str(site.cluster.access.unreachable()))
    assert result["failed"] and "cannot reach the API server" in result["msg"]
    result = site.drain(EVICT, kubeconfig=str(site.cluster.access.wrong_token()))
    assert result["failed"] and "does not accept the credential" in result["msg"]
