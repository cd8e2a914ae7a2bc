"""gitops/admission/new-gpu-nodes.yaml on a real API server: which nodes are born with the gate's taint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration import modules
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH, wait_until

pytestmark = pytest.mark.cluster

FILE = Path(__file__).parents[2] / "gitops/admission/new-gpu-nodes.yaml"
PATHS = {
    "MutatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
}
NODES = "/api/v1/nodes"
LABEL = {"goodput.fleet/validate-new": "true"}
GATE = {"key": "gate.goodput.fleet/validation", "value": "new-node", "effect": "NoSchedule"}
OTHER = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def born(cluster: EmbeddedCluster, name: str, labels: dict | None, *taints: dict, dry: bool = False) -> list[dict]:
    """The taints of a node as it was created, but for those that Kubernetes itself sets."""
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)} if taints else {}}
    made = cluster.api.create(NODES + ("?dryRun=All" if dry else ""), body)
    return [each for each in made["spec"].get("taints", []) if not each["key"].startswith("node.kubernetes.io/")]


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=1) as cluster:
        for body in yaml.safe_load(FILE.read_text())["items"]:
            cluster.api.create(PATHS[body["kind"]], body)
        wait_until(lambda: born(cluster, "probe", LABEL, dry=True), 60, "the policy is in force")
        yield cluster


def test_a_node_of_a_gpu_pool_is_born_closed(guarded):
    assert born(guarded, "new-1", LABEL) == [GATE]
    assert born(guarded, "new-2", LABEL, OTHER) == [OTHER, GATE]


def test_other_nodes_are_not(guarded):
    assert born(guarded, "new-3", None) == []
    assert born(guarded, "new-4", {"goodput.fleet/validate-new": "false"}) == []
    assert born(guarded, "new-5", {"pool": "cpu"}, OTHER) == [OTHER]


def test_a_taint_that_is_there_is_not_doubled_and_a_weaker_one_is_no_gate(guarded):
    for effect in ("NoSchedule", "NoExecute"):
        mine = {**GATE, "value": "mine", "effect": effect}
        assert born(guarded, f"new-6-{effect.lower()}", LABEL, OTHER, mine) == [OTHER, mine]
    weak = {**GATE, "value": "mine", "effect": "PreferNoSchedule"}
    assert born(guarded, "new-7", LABEL, weak) == [weak, GATE]


def test_the_gate_takes_the_taint_over_and_once_released_it_stays_so(guarded):
    born(guarded, "new-8", LABEL, OTHER)
    gate = {"kubeconfig": str(guarded.kubeconfig), "owner": "validation", "nodes": ["new-8"]}
    held = modules.run("node_gate", {**gate, "reason": "a new node", "evidence": "vr-1"})
    assert held["results"][0]["status"] == "held"
    released = modules.run("node_gate", {**gate, "evidence": "vr-1", "state": "released"})
    assert released["results"][0]["status"] == "released"
    changed = guarded.api.patch(f"{NODES}/new-8", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    keys = [each["key"] for each in changed["spec"].get("taints", [])]
    assert GATE["key"] not in keys and OTHER["key"] in keys


def pod_on(node: str, name: str, *tolerated: str) -> dict:
    keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", *tolerated]
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"key": key, "operator": "Exists"} for key in keys],
        "containers": [{"name": "c", "image": "registry.example.com/work:1"}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_a_pod_that_waits_does_not_land_on_a_node_that_joins(guarded):
    path = "/api/v1/namespaces/default/pods"

    def landed(name: str) -> bool:
        return bool(guarded.api.get(f"{path}/{name}")["spec"].get("nodeName"))

    guarded.api.create(path, pod_on("new-9", "waits"))
    guarded.api.create(path, pod_on("new-9", "tolerates", GATE["key"]))
    born(guarded, "new-9", {**LABEL, "kubernetes.io/hostname": "new-9"})
    room = {"pods": "10", "cpu": "8", "memory": "8Gi"}
    guarded.api.patch(f"{NODES}/new-9/status", {"status": {"capacity": room, "allocatable": room}}, MERGE_PATCH)
    wait_until(lambda: landed("tolerates"), 60, "the scheduler uses the new node")
    assert not landed("waits")
    left = [each for each in guarded.api.get(f"{NODES}/new-9")["spec"].get("taints", []) if each["key"] != GATE["key"]]
    guarded.api.patch(f"{NODES}/new-9", {"spec": {"taints": left}}, MERGE_PATCH)
    wait_until(lambda: landed("waits"), 60, "the pod lands when the gate is released")


def test_a_site_names_a_label_of_its_own(guarded):
    pools = {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["h100", "b200"]}
    spec = {"matchConstraints": {"objectSelector": {"matchExpressions": [pools]}}}
    guarded.api.patch(f"{PATHS['MutatingAdmissionPolicy']}/new-gpu-nodes.goodput.fleet", {"spec": spec}, MERGE_PATCH)
    pool = {"karpenter.sh/nodepool": "b200"}
    wait_until(lambda: born(guarded, "probe", pool, dry=True) == [GATE], 60, "the new label is in force")
    assert born(guarded, "new-10", pool, OTHER) == [OTHER, GATE]
    assert born(guarded, "new-11", {"karpenter.sh/nodepool": "cpu"}) == []
    assert born(guarded, "new-12", LABEL) == []
