"""Certification and WorkloadRun on a real API server: what is taken, what is refused, and what is read back."""

from __future__ import annotations

import copy

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.certification import documents

from tests.simfleet.api import ApiError

pytestmark = pytest.mark.cluster

SPEC = """
target: {nodeSelector: {nvidia.com/gpu.present: "true"}}
categories:
  - {domain: communication, variant: nccl-all-reduce, options: {thresholds: {busBandwidthGBps: "value >= 300"}}}
  - {domain: training, variant: nemotron5-8b}
"""
RUN = """
target: {nodeNames: [gpu-1]}
image: registry.example.com/burn:1.0
exec: {command: [burn, --minutes, "10"]}
resources: {limits: {cpu: 8, memory: 64Gi}}
thresholds: {flops: "value > 900"}
parser: {tool: regex, pattern: "flops: ([0-9.]+)", metric: flops, unit: TFLOP/s}
"""


def path_of(namespace: str, plural: str = "certifications") -> str:
    return f"/apis/goodput.fleet/v1alpha1/namespaces/{namespace}/{plural}"


def document(spec: str | dict = SPEC, kind: str = "Certification", name: str = "delivery") -> dict:
    spec = yaml.safe_load(spec) if isinstance(spec, str) else spec
    return {"apiVersion": "goodput.fleet/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def strict(path: str) -> str:
    """Unknown fields are refused, as kubectl asks for."""
    return f"{path}?fieldValidation=Strict"


def test_a_certification_is_taken_as_written_and_read_back(cluster, certification_crds, namespace):
    cluster.api.create(strict(path_of(namespace)), document())
    stored = cluster.api.get(f"{path_of(namespace)}/delivery")
    assert stored["spec"] == yaml.safe_load(SPEC)
    found = documents.load(stored)["certification"]
    assert found["metadata"]["uid"] == stored["metadata"]["uid"]
    assert found["spec"] == documents.load(document())["certification"]["spec"]


def test_a_workload_run_is_taken_as_written_and_read_back(cluster, certification_crds, namespace):
    path = path_of(namespace, "workloadruns")
    cluster.api.create(strict(path), document(RUN, "WorkloadRun"))
    stored = cluster.api.get(f"{path}/delivery")
    assert stored["spec"] == yaml.safe_load(RUN)
    assert documents.load(stored)["certification"]["spec"]["categories"][0]["name"] == "delivery"


def test_what_was_asked_for_cannot_be_changed_but_its_status_can(cluster, certification_crds, namespace):
    path = f"{path_of(namespace)}/delivery"
    cluster.api.create(path_of(namespace), document())
    with pytest.raises(ApiError) as refused:
        cluster.api.patch(path, {"spec": {"limits": {"maxTests": 5}}}, "application/merge-patch+json")
    assert refused.value.status == 422
    assert "what was asked for is not changed" in str(refused.value)
    cluster.api.patch(path, {"metadata": {"labels": {"team": "a"}}}, "application/merge-patch+json")
    status = {
        "phase": "Failed",
        "startedAt": "2026-11-29T21:00:00Z",
        "counts": {"pass": 7, "fail": 1},
        "conditions": [{"type": "Succeeded", "status": "False", "reason": "NodesFailed"}],
        "nodes": [{"name": "gpu-3", "verdict": "fail", "why": "busBandwidthGBps 41 < 300"}],
        "evidence": {"digest": "sha256:0", "location": "records/delivery"},
    }
    cluster.api.patch(f"{path}/status", {"status": status}, "application/merge-patch+json")
    assert cluster.api.get(path)["status"] == status


def with_(path: tuple, value: object, spec: str = SPEC) -> dict:
    changed = copy.deepcopy(yaml.safe_load(spec))
    place = changed
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    if value is None:
        place.pop(path[-1])
    else:
        place[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (with_(("target",), None), "spec.target"),
        (with_(("target",), {}), "spec.target"),
        (with_(("categories",), []), "spec.categories"),
        (with_(("categories", 0, "variant"), None), "domain and variant"),
        (with_(("categories", 0, "workload"), {"image": "x:1", "exec": {"command": ["x"]}}), "or a workload"),
        (with_(("options", "testScale"), "everywhere"), "spec.options.testScale"),
        (with_(("options", "maxBytes"), "16GB"), "spec.options.maxBytes"),
        (with_(("options", "timeoutPerJob"), "1 hour"), "spec.options.timeoutPerJob"),
        (with_(("options", "nodesPerJobs"), 2), "nodesPerJobs"),
        (with_(("limits", "maxTests"), 0), "spec.limits.maxTests"),
    ],
)
def test_a_certification_that_makes_no_sense_is_refused(cluster, certification_crds, namespace, spec, words):
    with pytest.raises(ApiError) as refused:
        cluster.api.create(strict(path_of(namespace)), document(spec))
    assert refused.value.status in (400, 422)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (with_(("exec",), None, RUN), "exactly one of exec, mpi and torch"),
        (with_(("torch",), {"script": "a.py"}, RUN), "exactly one of exec, mpi and torch"),
        (with_(("image",), None, RUN), "spec.image"),
        (with_(("resources", "limits", "cpu"), "a lot", RUN), "spec.resources.limits.cpu"),
        (with_(("parser", "tool"), "eyes", RUN), "spec.parser.tool"),
    ],
)
def test_a_workload_run_that_makes_no_sense_is_refused(cluster, certification_crds, namespace, spec, words):
    with pytest.raises(ApiError) as refused:
        cluster.api.create(strict(path_of(namespace, "workloadruns")), document(spec, "WorkloadRun"))
    assert refused.value.status == 422
    assert words in str(refused.value)
