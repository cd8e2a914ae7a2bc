"""JobSet, TrainJob with its runtimes, PyTorchJob and MPIJob as an API server serves them, without their controllers.

The schemas say no more than that a spec is a map: what a cluster's own CRDs refuse is for tests with those.
"""

from __future__ import annotations

from typing import Any

from tests.integration.fixtures_crds import PATH
from tests.simfleet.api import Api, ApiError, wait_until

KINDS = {  # kind: group, version, plural, namespaced
    "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets", True),
    "TrainJob": ("trainer.kubeflow.org", "v1alpha1", "trainjobs", True),
    "TrainingRuntime": ("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", True),
    "ClusterTrainingRuntime": ("trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", False),
    "PyTorchJob": ("kubeflow.org", "v1", "pytorchjobs", True),
    "MPIJob": ("kubeflow.org", "v2beta1", "mpijobs", True),
    "Workload": ("kueue.x-k8s.io", "v1beta1", "workloads", True),
}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "registry.example.com/train:1"}]}}
SPECS: dict[str, dict[str, Any]] = {
    "JobSet": {
        "suspend": False,
        "failurePolicy": {"maxRestarts": 3},
        "replicatedJobs": [
            {"name": "leader", "replicas": 1, "template": {"spec": {"template": TEMPLATE}}},
            {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": TEMPLATE}}},
        ],
    },
    "TrainJob": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 4}},
    "PyTorchJob": {
        "runPolicy": {"backoffLimit": 2},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": TEMPLATE},
            "Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": TEMPLATE},
        },
    },
    "MPIJob": {
        "slotsPerWorker": 8,
        "runPolicy": {"cleanPodPolicy": "Running"},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": TEMPLATE},
            "Worker": {"replicas": 2, "template": TEMPLATE},
        },
    },
}


def crd(kind: str) -> dict[str, Any]:
    group, version, plural, namespaced = KINDS[kind]
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{**served, "schema": {"openAPIV3Schema": SCHEMA}}],
        },
    }


def path(kind: str, namespace: str = "default", name: str = "") -> str:
    group, version, plural, namespaced = KINDS[kind]
    space = f"/namespaces/{namespace}" if namespaced else ""
    return f"/apis/{group}/{version}{space}/{plural}" + (f"/{name}" if name else "")


def install(api: Api) -> None:
    for kind in KINDS:
        if not api.find(f"{PATH}/{crd(kind)['metadata']['name']}"):
            api.create(PATH, crd(kind))
    for kind in KINDS:
        wait_until(lambda kind=kind: _served(api, kind), 20, f"{kind} can be listed")


def _served(api: Api, kind: str) -> bool:
    try:
        return api.find(path(kind)) is not None
    except ApiError as error:
        if error.status in (429, 503):  # its storage is being made
            return False
        raise


def failed(api: Api, kind: str, namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    """A job of that kind which its controller has given up."""
    group, version, *_rest = KINDS[kind]
    body = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name, **metadata}}
    api.create(path(kind, namespace), {**body, "spec": SPECS[kind]})
    condition = {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "a pod failed"}
    return api.patch(
        f"{path(kind, namespace, name)}/status",
        {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-11-29T15:52:21Z"}]}},
        "application/merge-patch+json",
    )
