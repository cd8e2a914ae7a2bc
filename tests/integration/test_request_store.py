"""Requests as objects of a real API server: what is stored, who wins, and what is said where something is missing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import documents, requests
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import ClusterStore
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    InvalidDocument,
    NotFound,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.validationrequest import MAX_NODES

from tests.integration.fixtures_crds import install
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH, ApiError
from tests.simfleet.apiproxy import ApiProxy

pytestmark = pytest.mark.cluster

KIND = "ValidationRequest"
TESTS = [{"domain": "communication", "variant": "nccl-loopback-nvswitch"}]
BASE = "/apis/goodput.fleet/v1alpha1/namespaces"


@pytest.fixture(scope="module")
def bare() -> Iterator[EmbeddedCluster]:
    """Without the CRDs of this collection."""
    with EmbeddedCluster(nodes=1) as running:
        yield running


@pytest.fixture(scope="module")
def served(bare) -> EmbeddedCluster:
    install(bare.api)
    return bare


@pytest.fixture
def store(served, request) -> ClusterStore:
    name = "t-" + str(abs(hash(request.node.name)))
    served.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return store_of(served.kubeconfig, name)


def store_of(kubeconfig, namespace: str) -> ClusterStore:
    return ClusterStore(connect({"kubeconfig": str(kubeconfig)}), namespace)


def made(number: int = 1, **options) -> dict:
    node = {"name": f"gpu-{number}", "uid": f"u{number}", "bootId": "b"}
    return requests.make("repaired", [node], TESTS, options={"variables": {"margin": 2.0}}, **options)


def repair() -> dict:
    fault = {"code": "xid-79", "action": "RESTART_BM", "entity": "0000:65:00.0", "since": "2026-11-30T00:00:00Z"}
    spec = {"node": {"name": "gpu-1", "uid": "u1", "bootId": "b"}, "evidence": "9f86", "fault": fault}
    return {"apiVersion": "goodput.fleet/v1alpha1", "kind": "RepairRequest", "metadata": {"name": "r1"}, "spec": spec}


def test_without_the_definitions_the_error_says_what_to_apply(bare):
    store = store_of(bare.kubeconfig, "default")
    for work in (lambda: store.list(KIND), lambda: store.create(made()), lambda: store.get(KIND, "x")):
        with pytest.raises(NotFound, match="kubectl apply -f gitops/crds"):
            work()


def test_a_request_is_stored_once_and_its_status_replaced(served, store):
    doc = made()
    assert store.list(KIND) == ([], [])
    assert store.create(doc) is True and store.create(doc) is False
    [read], problems = store.list(KIND)
    assert problems == [] and documents.same(read["spec"], doc["spec"])
    assert requests.digest_of(read["spec"]) == requests.digest_of(doc["spec"])
    basis = {"bootId": "b", "gpus": {"capacity": 8}}
    nodes = [
        {"name": "gpu-1", "uid": "u1", "phase": "Running", "attempts": 1, "batch": "vr-1", "basis": basis},
        {"name": "gpu-2", "phase": "Pending", "basis": None},
    ]
    status = {"phase": "Running", "digest": requests.digest_of(doc["spec"]), "counts": {"Running": 1}, "nodes": nodes}
    running = store.write_status(read, status)
    assert running["status"] == status == store.list(KIND)[0][0]["status"]
    assert store.write_status(running, copy.deepcopy(status)) == running
    over = store.write_status(running, {"phase": "Failed", "finishedAt": "2026-11-30T00:00:00Z"})
    assert over["status"] == {"phase": "Failed", "finishedAt": "2026-11-30T00:00:00Z"}
    assert store.get(KIND, doc["metadata"]["name"]) == over and store.get(KIND, "nothing") is None


def test_a_repair_request_is_stored_with_what_is_not_known_yet(store):
    assert store.create(repair())
    [read], _problems = store.list("RepairRequest")
    assert read["spec"] == repair()["spec"]
    attempt = {"rung": "reboot", "key": "k", "executedAt": None, "executed": None, "verified": False, "validation": ""}
    status = {"phase": "Repairing", "rung": "reboot", "attempts": [attempt], "serials": ["SN"], "ticket": {}}
    assert store.write_status(read, status)["status"] == status == store.list("RepairRequest")[0][0]["status"]


def test_what_is_not_as_it_was_read_is_a_conflict(served, store):
    doc = made()
    store.create(doc)
    [read], _problems = store.list(KIND)
    store.write_status(read, {"phase": "Running"})
    with pytest.raises(Conflict):
        store.write_status(read, {"phase": "Failed"})
    with pytest.raises(Conflict, match="asks for something else"):
        store.create({**doc, "spec": {**doc["spec"], "retries": 3}})
    [read], _problems = store.list(KIND)
    path = f"{BASE}/{store.namespace}/validationrequests/{doc['metadata']['name']}"
    served.api.delete(path)
    with pytest.raises(Conflict, match="was deleted meanwhile"):
        store.write_status(read, {"phase": "Failed"})
    store.create(doc)  # of the same name, and another object
    with pytest.raises(Conflict):
        store.write_status(read, {"phase": "Failed"})
    assert "status" not in store.list(KIND)[0][0]


def test_of_many_writers_none_loses_what_another_wrote(served, store):
    store.create(made())

    def add(_number: int) -> None:
        mine = store_of(served.kubeconfig, store.namespace)
        while True:
            [doc], _problems = mine.list(KIND)
            count = doc.get("status", {}).get("counts", {}).get("Pending", 0)
            try:
                mine.write_status(doc, {"phase": "Running", "counts": {"Pending": count + 1}})
                return
            except Conflict:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert store.list(KIND)[0][0]["status"]["counts"] == {"Pending": 12}


def test_a_write_whose_answer_is_lost_is_done_once(served, store):
    store.create(made())
    with ApiProxy(served.kubeconfig) as proxy:
        mine = store_of(proxy.kubeconfig, store.namespace)
        [read], _problems = mine.list(KIND)
        proxy.rule("PUT", "/status", lose_answer=True, times=1)
        assert mine.write_status(read, {"phase": "Running"})["status"] == {"phase": "Running"}


def test_an_object_that_is_no_good_is_named_and_left_out(served, store):
    store.create(made(1))
    path = f"{BASE}/{store.namespace}/validationrequests"
    bad = made(2)
    served.api.create(path, {**bad, "spec": {**bad["spec"], "tests": [*TESTS, {**TESTS[0], "name": "again"}]}})
    docs, problems = store.list(KIND)
    assert [doc["spec"]["nodes"][0]["name"] for doc in docs] == ["gpu-1"]
    [problem] = problems
    assert f"ValidationRequest {store.namespace}/{bad['metadata']['name']}" in str(problem)
    assert "asks for the same as tests[0]" in str(problem)
    with pytest.raises(InvalidDocument, match="asks for the same"):
        store.get(KIND, bad["metadata"]["name"])


def test_the_server_refuses_what_makes_no_sense_and_what_was_asked_for_is_not_changed(served, store):
    doc = made()
    path = f"{BASE}/{store.namespace}/validationrequests"
    for spec, words in (
        ({"nodes": []}, "spec.nodes"),
        ({"nodes": [{"name": "gpu-1"}, {"name": "gpu-1"}]}, "Duplicate value"),
        ({"tests": []}, "spec.tests"),
        ({"tests": [{"domain": "training"}]}, "domain and variant"),
        ({"reason": "because"}, "spec.reason"),
        ({"retries": 6}, "spec.retries"),
    ):
        with pytest.raises(ApiError) as refused:
            served.api.create(path, {**doc, "spec": {**doc["spec"], **spec}})
        assert refused.value.status == 422 and words in str(refused.value)
    store.create(doc)
    with pytest.raises(ApiError, match="what was asked for is not changed"):
        served.api.patch(f"{path}/{doc['metadata']['name']}", {"spec": {"retries": 2}}, MERGE_PATCH)
    store.create(repair())
    with pytest.raises(ApiError, match="what was asked for is not changed"):
        path = f"{BASE}/{store.namespace}/repairrequests/r1"
        served.api.patch(path, {"spec": {"fault": {"code": "xid-48"}}}, MERGE_PATCH)


def test_the_largest_request_can_be_stored_with_its_status(store):
    nodes = [{"name": f"{i:04d}" + "n" * 40, "uid": "u" * 36 + str(i), "bootId": "b" * 36} for i in range(MAX_NODES)]
    store.create(requests.make("changed", nodes, TESTS))
    basis = {"uid": "u" * 36, "bootId": "b" * 36, "osImage": "o" * 40, "kernel": "k" * 30, "driver": "580.105.08"}
    basis |= {"containerRuntime": "containerd://2.1.4", "gpus": {"capacity": 8, "allocatable": 8}}
    about = {"phase": "Failed", "attempts": 2, "batch": "vr-0123456789abcdef", "basis": basis, "why": "w" * 400}
    [doc], _problems = store.list(KIND)
    status = {"phase": "Failed", "nodes": [{"name": one["name"], "uid": one["uid"], **about} for one in nodes]}
    assert len(store.write_status(doc, status)["status"]["nodes"]) == MAX_NODES


def test_a_namespace_that_is_not_there_and_rights_that_are_missing_are_told(served):
    with pytest.raises(NotFound, match="there is no namespace nowhere for the requests"):
        store_of(served.kubeconfig, "nowhere").create(made())
    with pytest.raises(InvalidDocument, match=r"metadata\.namespace"):
        store_of(served.kubeconfig, "default").create(made(namespace="other"))
    nobody = store_of(served.access.service_account("nobody"), "default")
    with pytest.raises(Denied, match="list validationrequests"):
        nobody.list(KIND)
    with pytest.raises(Denied, match="create validationrequests"):
        nobody.create(made())
