"""API objects as a cluster gives them, short to write in a test."""

from __future__ import annotations


def component(name="gpu-operator", namespace=None, **more) -> dict:
    return {"name": name, "namespace": namespace or name, "release": name, **more}


def meta(
    name: str, namespace: str | None = "gpu-operator", owner: tuple = (), release: str | None = None, **more
) -> dict:
    kept = {"name": name, "generation": 2, **more}
    if namespace:
        kept["namespace"] = namespace
    if owner:
        kept["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    if release:
        kept.setdefault("annotations", {})["meta.helm.sh/release-name"] = release
    return kept


def deployment(name="operator", replicas=3, release="gpu-operator", **status) -> dict:
    full = {
        "observedGeneration": 2,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
    }
    return {"metadata": meta(name, release=release), "spec": {"replicas": replicas}, "status": {**full, **status}}


def daemonset(name="driver", desired=100, release="gpu-operator", **status) -> dict:
    full = {
        "observedGeneration": 2,
        "desiredNumberScheduled": desired,
        "updatedNumberScheduled": desired,
        "numberReady": desired,
        "numberAvailable": desired,
    }
    return {"metadata": meta(name, release=release), "spec": {}, "status": {**full, **status}}


def pod(
    name="p", phase="Running", owner: tuple = (), ready=True, waiting=None, init_waiting=None, node="gpu-1", **more
) -> dict:
    def state(reason):
        return {"waiting": {"reason": reason, "message": f"back-off: {reason}"}} if reason else {"running": {}}

    status = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": [{"name": "main", "state": state(waiting)}],
        "initContainerStatuses": [{"name": "setup", "state": state(init_waiting)}] if init_waiting else [],
    }
    return {"metadata": meta(name, owner=owner, **more), "spec": {"nodeName": node}, "status": status}


def replica_set(name: str, deployment_name: str, revision: int) -> dict:
    return {
        "metadata": meta(
            name,
            owner=("Deployment", deployment_name),
            annotations={"deployment.kubernetes.io/revision": str(revision)},
        )
    }


def job(
    name="migrate",
    condition: str | None = None,
    owner: tuple = (),
    release="gpu-operator",
    created="2026-01-01T00:00:00Z",
    **spec,
) -> dict:
    conditions = (
        [{"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "gave up"}]
        if condition
        else []
    )
    return {
        "metadata": meta(name, owner=owner, release=release, creationTimestamp=created),
        "spec": spec,
        "status": {"conditions": conditions},
    }


def crd(name="clusterpolicies.nvidia.com", established="True") -> dict:
    conditions = [{"type": "Established", "status": established, "message": "not yet"}] if established else []
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def objects(namespace="gpu-operator", crds=(), checks=None, phase="Active", **kinds) -> dict:
    """A namespace with the lists given as deployments=[...], pods={"error": ...}; kinds left out are empty lists."""
    names = {
        "deployments": "Deployment",
        "daemonsets": "DaemonSet",
        "statefulsets": "StatefulSet",
        "replicasets": "ReplicaSet",
        "jobs": "Job",
        "pods": "Pod",
    }
    lists = {kind: {"items": []} for kind in names.values()}
    for key, value in kinds.items():
        lists[names[key]] = value if isinstance(value, dict) else {"items": list(value)}
    return {
        "namespaces": {namespace: {"object": {"metadata": {"name": namespace}, "status": {"phase": phase}}}},
        "lists": {namespace: lists},
        "crds": crds if isinstance(crds, dict) else {"items": list(crds)},
        "checks": checks or {},
    }
