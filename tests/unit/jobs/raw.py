# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw jobs, pods and nodes, of the shapes that API servers give them."""

from __future__ import annotations

import datetime

T0 = datetime.datetime(2026, 3, 6, 9, 0, 0, tzinfo=datetime.UTC)
CLIQUE = "0f6a3c51-1111-4000-8000-00000000000{}.1"


def at(seconds: float) -> str:
    return (T0 + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def now(seconds: float) -> float:
    return T0.timestamp() + seconds


def owned(kind: str, name: str, uid: str) -> list[dict]:
    return [{"apiVersion": "x/v1", "kind": kind, "name": name, "uid": uid, "controller": True}]


def template(gpus: int = 8, image: str = "registry.example/llm:7", **metadata) -> dict:
    trainer = {"name": "train", "image": image, "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "proxy", "image": "proxy:1"}, trainer]}}


def job(name: str = "llm", pods: int = 4, *, uid: str = "", notes: dict | None = None, **spec) -> dict:
    status = spec.pop("status", {"startTime": at(0), "active": pods})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid or f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": at(0),
            "annotations": {"goodput.fleet/recovery": "act"} if notes is None else notes,
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": template(),
            **spec,
        },
        "status": status,
    }


def custom(kind: str, name: str, spec: dict, status: dict | None = None, notes: dict | None = None) -> dict:
    made = job(name, notes=notes, status=status or {})
    versions = {"JobSet": "jobset.x-k8s.io/v1alpha2", "TrainJob": "trainer.kubeflow.org/v1alpha1"}
    return {**made, "apiVersion": versions.get(kind, "kubeflow.org/v1"), "kind": kind, "spec": spec}


def condition(kind: str, reason: str = "", message: str = "", when: float = 100, status: str = "True") -> dict:
    told = {"reason": reason, "message": message, "lastTransitionTime": at(when)}
    return {"type": kind, "status": status, **told}


def failed(reason: str, message: str = "", when: float = 100) -> dict:
    both = [condition(kind, reason, message, when + later) for kind, later in (("FailureTarget", 0), ("Failed", 1))]
    return {"startTime": at(0), "failed": 2, "conditions": both}


def pod(
    index: int | None,
    node: str = "",
    *,
    job: str = "llm",
    name: str = "",
    phase: str = "Running",
    made: float = 1,
    labels: dict | None = None,
    owner: list | None = None,
    deleted: float | None = None,
    state: dict | None = None,
    last: dict | None = None,
    restarts: int = 0,
    disruption: str = "",
    **status,
) -> dict:
    told = dict(labels or {})
    if index is not None and labels is None:
        told["batch.kubernetes.io/job-completion-index"] = str(index)
    metadata = {
        "name": name or f"{job}-{index}-{int(made):05d}",
        "namespace": "ml",
        "uid": f"pod-{job}-{index}-{name}-{made}",
        "creationTimestamp": at(made),
        "labels": told,
        "ownerReferences": owned("Job", job, f"uid-{job}") if owner is None else owner,
    }
    if deleted is not None:
        metadata["deletionTimestamp"] = at(deleted)
    conditions = [condition("Initialized", when=made)]
    if disruption:
        conditions.append(condition("DisruptionTarget", disruption, when=90))
    running = {"running": {"startedAt": at(made + 1)}} if phase == "Running" else {"waiting": {"reason": "Creating"}}
    containers = [{"name": "train", "state": state or running, "lastState": last or {}, "restartCount": restarts}]
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, **template()["spec"]},
        "status": {
            "phase": phase,
            "startTime": at(made),
            "conditions": conditions,
            "containerStatuses": containers if node else [],
            **status,
        },
    }


def ended(code: int, reason: str = "Error", when: float = 95, began: float = 2) -> dict:
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": at(began), "finishedAt": at(when)}}


def node(name: str, *, uid: str = "", clique: int = 1, ready: str = "True", since: float = -900, **more) -> dict:
    made = more.pop("made", -1000)
    reason = {"True": "KubeletReady", "Unknown": "NodeStatusUnknown", "False": "KubeletNotReady"}[ready]
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"node-{name}",
            "creationTimestamp": at(made),
            "labels": {"nvidia.com/gpu.clique": CLIQUE.format(clique), "kubernetes.io/hostname": name},
        },
        "spec": {},
        "status": {
            "conditions": [condition("Ready", reason, when=since, status=ready)],
            "nodeInfo": {"bootID": more.pop("boot", "boot-1")},
        },
    }


def event(node: str, when: float, code: str = "79", *, fatal: bool = True, healthy: bool = False, **spec) -> dict:
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "HealthEvent",
        "metadata": {"name": f"{node}-{code}-{when}"},
        "spec": {
            "nodeName": node,
            "agent": "kernel-log",
            "componentClass": "GPU",
            "checkName": "SysLogsXIDError",
            "isFatal": fatal,
            "isHealthy": healthy,
            "state": "healthy" if healthy else "sick",
            "errorCode": [code],
            "entitiesImpacted": [{"entityType": "PCI", "entityValue": "0000:1b:00"}],
            "generatedTimestamp": at(when),
            "receivedTimestamp": at(when + 1),
            "bootId": "boot-1",
            "message": "GPU has fallen off the bus.",
            **spec,
        },
    }


def gate(when: float, owner: str = "quarantine", **more) -> dict:
    told = {"owner": owner, "reason": "Xid 79 on 0000:1b:00", "since": at(when), "bootId": "boot-1", "evidence": "e1"}
    return {**told, "fault": "xid-79", "action": "RESTART_BM", "entity": "0000:1b:00", "readable": True, **more}
