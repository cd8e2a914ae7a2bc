"""Component health on a real API server: what looks well and is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.health.evaluate import describe, evaluate
from ansible_collections.goodput.fleet.plugins.module_utils.health.observe import observe
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, Unavailable

from tests.simfleet import EmbeddedCluster
from tests.simfleet import workloads as make
from tests.simfleet.api import wait_until
from tests.simfleet.workloads import path

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
READ = [
    {"apiGroups": ["", "apps", "batch"], "resources": ["*"], "verbs": ["get", "list"]},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
]


class Component:
    """One component in a namespace of its own, and a look at its health."""

    def __init__(self, cluster: EmbeddedCluster, namespace: str):
        self.cluster, self.namespace, self.kubeconfig = cluster, namespace, cluster.kubeconfig
        self.fields: dict = {}

    def create(self, plural: str, body: dict) -> None:
        body["metadata"].setdefault("annotations", {})["meta.helm.sh/release-name"] = "gpu"
        self.cluster.api.create(path(self.namespace, plural), body)

    def look(self) -> dict:
        components = [{"name": "gpu", "namespace": self.namespace, "release": "gpu", **self.fields}]
        client = connect({"kubeconfig": str(self.kubeconfig)})
        return evaluate(components, observe(client, components))[0]

    def codes(self) -> list[str]:
        return sorted(reason["code"] for reason in self.look()["reasons"])

    def settles_at(self, *codes: str, seconds: float = 25) -> dict:
        """Wait for exactly these reasons; the result."""
        seen = []

        def there() -> bool:
            seen[:] = self.codes()
            return seen == sorted(codes)

        wait_until(there, seconds, lambda: f"{sorted(codes)}; {seen}: {describe([self.look()])}", pause=0.2)
        return self.look()

    def pods(self) -> list[dict]:
        return self.cluster.api.list(path(self.namespace, "pods"))


@pytest.fixture
def component(cluster, namespace) -> Component:
    return Component(cluster, namespace)


def test_nothing_there_is_not_healthy(component):
    assert component.look()["status"] == "unhealthy"
    assert component.codes() == ["absent"]


def test_a_namespace_that_is_not_there(component):
    component.namespace = "no-such-namespace"
    assert component.codes() == ["absent"]
    assert "no-such-namespace" in component.look()["reasons"][0]["object"]


def test_a_finished_rollout_is_healthy(component):
    component.create("deployments", make.deployment("operator", replicas=2))
    component.create("daemonsets", make.daemon_set("driver"))
    assert component.settles_at()["status"] == "healthy"


def test_running_but_waiting_in_crash_loop(component):
    component.create("daemonsets", make.daemon_set("driver", waiting="CrashLoopBackOff", restarts=7))
    result = component.settles_at("container-waiting", "rollout-incomplete")
    assert {pod["status"]["phase"] for pod in component.pods()} == {"Running"}
    waiting = next(reason for reason in result["reasons"] if reason["code"] == "container-waiting")
    assert waiting["object"] == f"DaemonSet/{component.namespace}/driver"
    assert waiting["pods"] == 8 and len(waiting["nodes"]) == 8 and "CrashLoopBackOff" in waiting["message"]


def test_crash_loop_of_an_operand_that_nobody_declared(component):
    """A workload that an operator makes carries no label of the release; its pods are in the component's namespace."""
    component.create("deployments", make.deployment("operator"))
    component.cluster.api.create(
        path(component.namespace, "daemonsets"), make.daemon_set("operand", waiting="ImagePullBackOff")
    )
    component.settles_at("container-waiting")


def test_an_init_container_that_fails(component):
    body = make.deployment("operator", waiting__setup="CreateContainerConfigError")
    body["spec"]["template"]["spec"]["initContainers"] = [{"name": "setup", "image": make.IMAGE}]
    component.create("deployments", body)
    result = component.settles_at("container-waiting", "rollout-incomplete")
    assert "init container setup waits in CreateContainerConfigError" in describe([result])


def test_zero_desired_fails_unless_optional(component):
    body = make.daemon_set("mig-manager")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"nvidia.com/mig.config": "all-1g.10gb"}
    component.create("daemonsets", body)
    component.settles_at("zero-desired")
    component.fields["health"] = {"workloads": [{"kind": "DaemonSet", "name": "mig-manager", "optional": True}]}
    assert component.look()["status"] == "healthy"


def test_a_change_that_the_controller_has_not_seen(component):
    """The status of the generation before looks complete."""
    component.create("deployments", make.deployment("operator"))
    component.settles_at()
    address = path(component.namespace, "deployments", "operator")
    # a controller that is behind: its status is of an older generation than the spec
    generation = component.cluster.api.get(address)["metadata"]["generation"]
    component.cluster.api.patch(address, {"spec": {"paused": True}})
    status = {"status": {"observedGeneration": generation}}
    component.cluster.api.patch(f"{address}/status", status)
    done = threading.Event()

    def keep_behind():  # the real controller mends it within milliseconds, again and again
        while not done.is_set():
            component.cluster.api.patch(f"{address}/status", status)

    writers = [threading.Thread(target=keep_behind) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        seen = wait_until(component.codes, 60, "a look at a status that is behind", pause=0)
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert seen == ["stale-generation"]


def test_pending_for_want_of_gpus(component):
    body = make.deployment("server")
    body["spec"]["template"]["spec"] = make.pod_spec(gpus=64)
    component.create("deployments", body)
    result = component.settles_at("pod-pending", "rollout-incomplete")
    assert "nvidia.com/gpu" in describe([result])


def test_a_failed_job_and_a_completed_one(component):
    component.create("jobs", make.job("good", 1, exit_code=0))
    component.settles_at()
    component.create("jobs", make.job("bad", 1, exit_code=3))
    component.settles_at("container-failed", "job-failed")


def test_a_replaced_revision_counts_no_more(component):
    """The new pods run; the old revision's pods, which crash, are still being removed."""
    component.create("deployments", make.deployment("operator", replicas=2, waiting="ImagePullBackOff"))
    component.settles_at("container-waiting", "rollout-incomplete")
    address = path(component.namespace, "deployments", "operator")
    annotations = {"sim.goodput.fleet/waiting": None}
    component.cluster.api.patch(address, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
    component.settles_at()


def test_crd_that_is_absent_or_not_established(component):
    component.fields["crds"] = ["widgets.health.example.com"]
    component.create("deployments", make.deployment("operator"))
    component.settles_at("crd-absent")
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "health.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    component.cluster.api.create(CRDS, {**body, "metadata": {"name": "widgets.health.example.com"}, "spec": spec})
    component.settles_at()
    # a second CRD that wants the same kind is never Established
    rival = {**spec, "names": {**names, "plural": "widgetz", "singular": "widgetz"}}
    component.cluster.api.create(CRDS, {**body, "metadata": {"name": "widgetz.health.example.com"}, "spec": rival})
    try:
        component.fields["crds"] = ["widgets.health.example.com", "widgetz.health.example.com"]
        result = component.settles_at("crd-not-established")
        assert "already in use" in describe([result])
    finally:
        for name in component.fields["crds"]:
            component.cluster.api.delete(f"{CRDS}/{name}")


def test_checks_read_any_kind(component):
    component.create("deployments", make.deployment("operator"))
    check = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "expression": "data.ready == 'yes'"}
    component.fields["health"] = {"checks": [{"name": "ready", "selector": {"app": "gpu"}, **check}]}
    component.settles_at("check-no-object")
    body = {"metadata": {"name": "state", "labels": {"app": "gpu"}}, "data": {"ready": "no"}}
    component.create("configmaps", body)
    component.settles_at("check-failed")
    component.cluster.api.patch(path(component.namespace, "configmaps", "state"), {"data": {"ready": "yes"}})
    component.settles_at()
    missing = {"name": "policy", "apiVersion": "nvidia.example.com/v1", "kind": "Policy", "plural": "policies"}
    component.fields["health"] = {"checks": [{**missing, "expression": "status.ok"}]}
    assert "the API has no Policy" in describe([component.look()])


def test_everything_at_once(component):
    component.fields["crds"] = ["absent.health.example.com"]
    component.fields["health"] = {
        "workloads": [
            {"kind": "Deployment", "name": "operator"},
            {"kind": "DaemonSet", "name": "driver"},
            {"kind": "StatefulSet", "name": "database"},
        ],
        "checks": [{"name": "x", "apiVersion": "v1", "kind": "Secret", "plural": "secrets", "expression": "data.x"}],
    }
    component.create("deployments", make.deployment("operator", replicas=0))
    component.create("daemonsets", make.daemon_set("driver", waiting="ErrImagePull"))
    component.settles_at(
        "absent", "check-no-object", "container-waiting", "crd-absent", "rollout-incomplete", "zero-desired"
    )


class TestRights:
    def account(self, component: Component, *kinds: str, cluster_rules=()) -> None:
        rules = [{"apiGroups": ["*"], "resources": list(kinds), "verbs": ["get", "list"]}]
        component.kubeconfig = component.cluster.access.service_account(
            f"reader-{component.namespace}", component.namespace, rules, cluster_rules
        )

    def test_reading_needs_get_and_list_in_the_namespace_only(self, component):
        component.create("deployments", make.deployment("operator"))
        component.settles_at()
        kinds = ("namespaces", "pods", "deployments", "daemonsets", "statefulsets", "replicasets", "jobs")
        self.account(component, *kinds)
        assert component.look()["status"] == "healthy"

    def test_what_is_denied_is_unknown(self, component):
        component.create("deployments", make.deployment("operator"))
        component.settles_at()
        self.account(component, "namespaces", "deployments", "daemonsets", "statefulsets", "replicasets", "jobs")
        result = component.look()
        assert result["status"] == "unknown"
        assert "cannot list pods in namespace" in describe([result])

    def test_crds_are_denied(self, component):
        component.fields["crds"] = ["clusterpolicies.nvidia.com"]
        component.create("deployments", make.deployment("operator"))
        self.account(component, "*")
        wait_until(lambda: component.codes() == ["denied"], 20, "denied CRDs", pause=0.3)
        assert component.look()["status"] == "unknown"


def test_a_server_that_is_not_there_or_a_wrong_token_is_one_error(component):
    component.kubeconfig = component.cluster.access.unreachable()
    with pytest.raises(Unavailable) as caught:
        component.look()
    assert len(caught.value.problems) == 1
    component.kubeconfig = component.cluster.access.wrong_token()
    with pytest.raises(Denied) as caught:
        component.look()
    assert "401" in str(caught.value)


def test_one_of_a_hundred_ready(make_cluster):
    cluster = make_cluster(nodes=100, profile="eks")
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "gpu-operator"}})
    account = "/api/v1/namespaces/gpu-operator/serviceaccounts/default"
    wait_until(lambda: cluster.api.find(account), 20, account)
    component = Component(cluster, "gpu-operator")
    cluster.faults.set("not-ready", {"owner": "DaemonSet/driver", "exceptNode": cluster.nodes[0]}, ready=False)
    component.create("daemonsets", make.daemon_set("driver"))
    result = component.settles_at("rollout-incomplete", seconds=40)
    assert "1 of 100 ready" in result["reasons"][0]["message"]
    cluster.faults.clear("not-ready")
    assert component.settles_at()["status"] == "healthy"


class TestModule:
    """Through the module's own door, as a process."""

    def run(self, tmp_path: Path, **options) -> dict:
        arguments = tmp_path / "arguments.json"
        arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": options}))
        name = "ansible_collections.goodput.fleet.plugins.modules.component_health_info"
        done = subprocess.run(
            [sys.executable, "-m", name, str(arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT / ".build/collections")},
            capture_output=True,
            text=True,
        )
        assert done.stdout.startswith("\n{") or done.stdout.startswith("{"), done.stderr
        return json.loads(done.stdout)

    def test_waits_until_healthy(self, component, tmp_path):
        component.create("deployments", make.deployment("operator", replicas=2, start_delay=2))
        result = self.run(
            tmp_path,
            kubeconfig=str(component.kubeconfig),
            components=[{"name": "gpu", "namespace": component.namespace}],
            wait=True,
            timeout=30,
            interval=0.3,
        )
        assert result["healthy"] and result["counts"] == {"total": 1, "healthy": 1, "unhealthy": 0, "unknown": 0}
        assert result["waited"] > 1 and not result["changed"]

    def test_fails_with_the_last_state_and_what_to_do(self, component, tmp_path):
        component.create("deployments", make.deployment("operator", waiting="CrashLoopBackOff"))
        result = self.run(
            tmp_path,
            kubeconfig=str(component.kubeconfig),
            components=[{"name": "gpu", "namespace": component.namespace}],
            wait=True,
            timeout=4,
            interval=1,
        )
        assert result["failed"] and not result["healthy"]
        assert "waits in CrashLoopBackOff" in result["msg"] and "logs" in result["msg"]

    def test_says_what_is_wrong_with_its_input(self, component, tmp_path):
        options = {"kubeconfig": str(component.kubeconfig), "components": [{"name": "gpu", "namespace": "x"}]}
        result = self.run(tmp_path, **options, only=["gpo"])
        assert result["failed"] and "did you mean 'gpu'" in result["msg"]
        check = {"name": "c", "apiVersion": "v1", "kind": "Node", "expression": "status.=="}
        options["components"][0]["health"] = {"checks": [check]}
        result = self.run(tmp_path, **options)
        assert result["failed"] and "is not JMESPath: at position 8" in result["msg"]
        assert "Traceback" not in result["msg"]
