"""Bodies of the pods, jobs and daemon sets that tests put on simulated nodes, and their API paths."""

from __future__ import annotations

from typing import Any

from tests.simfleet.kubelet.behaviour import KEYS, PREFIX

IMAGE = "registry.example.com/sim/app:1"


def behaviour_annotations(**behaviour: Any) -> dict[str, str]:
    """(exit_code=3) -> {"sim.goodput.fleet/exit-code": "3"}; `script__main=...` is for the container main only."""
    result = {}
    for key, value in behaviour.items():
        name, _, container = key.partition("__")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        name = name.replace("_", "-")
        if name not in KEYS:
            raise ValueError(f"{name}: known are {', '.join(sorted(KEYS))}")
        result[f"{PREFIX}{name}" + (f".{container}" if container else "")] = text
    return result


def pod_spec(gpus: int = 0, **spec: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": IMAGE, "resources": resources}
    return {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}


def pod(name: str, gpus: int = 0, spec: dict[str, Any] | None = None, **behaviour: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": behaviour_annotations(**behaviour)},
        "spec": pod_spec(gpus, **(spec or {})),
    }


def job(name: str, completions: int, gpus: int = 0, backoff_limit: int = 0, **behaviour: Any) -> dict[str, Any]:
    template = {
        "metadata": {"annotations": behaviour_annotations(**behaviour)},
        "spec": pod_spec(gpus, restartPolicy="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": completions,
            "parallelism": completions,
            "completionMode": "Indexed",
            "backoffLimit": backoff_limit,
            "template": template,
        },
    }


def daemon_set(name: str, **behaviour: Any) -> dict[str, Any]:
    return workload("DaemonSet", name, {}, **behaviour)


def deployment(name: str, replicas: int = 1, **behaviour: Any) -> dict[str, Any]:
    return workload("Deployment", name, {"replicas": replicas}, **behaviour)


def workload(kind: str, name: str, spec: dict[str, Any], **behaviour: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": behaviour_annotations(**behaviour)}, "spec": pod_spec()}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def path(namespace: str, kind: str, name: str = "") -> str:
    """path("ns", "jobs", "x") -> /apis/batch/v1/namespaces/ns/jobs/x"""
    group = {"jobs": "apis/batch/v1", "daemonsets": "apis/apps/v1", "deployments": "apis/apps/v1"}.get(kind, "api/v1")
    return f"/{group}/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")
