# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is a workload's rollout complete? One rule set per kind, on raw API objects.

A status field that is not there counts as nothing done, never as a pass.
"""

from __future__ import annotations

from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import name_of, unhealthy

KINDS = ("Deployment", "DaemonSet", "StatefulSet", "Job")  # those looked for; CronJobs and ReplicaSets when declared


class Progress(NamedTuple):
    """How far a rollout is: pods wanted, (got, wanted) for each stage, pods of an older revision."""

    desired: int
    stages: dict[str, tuple[int, int]]
    surplus: int = 0


def faults(kind: str, obj: dict, optional: bool = False) -> list[dict]:
    """Reasons why the workload is not healthy. `optional` allows zero desired pods, nothing else."""
    name, meta, status = name_of(obj, kind), obj["metadata"], obj.get("status") or {}
    found = []
    if meta.get("deletionTimestamp"):
        look = kubectl(obj, f"get {short(kind, obj)} -o yaml")
        found.append(unhealthy("terminating", name, "is being deleted", look))
    if kind == "Job":
        return found + _job(name, obj, optional)
    if kind == "CronJob":
        return found + (_suspended(kind, name, obj) if (obj.get("spec") or {}).get("suspend") and not optional else [])
    generation, observed = meta.get("generation"), status.get("observedGeneration")
    if observed is None or (generation is not None and observed < generation):
        found.append(
            unhealthy(
                "stale-generation",
                name,
                f"its controller has not acted on the newest change (generation {generation}, observed {observed})",
                "see whether kube-controller-manager runs, and wait",
            )
        )
    return found + _rollout(kind, name, obj, optional)


def _progress(kind: str, spec: dict, status: dict) -> Progress:
    if kind == "DaemonSet":
        desired = number(status.get("desiredNumberScheduled"))
        fields = {"updated": "updatedNumberScheduled", "ready": "numberReady", "available": "numberAvailable"}
        return Progress(desired, {word: (number(status.get(field)), desired) for word, field in fields.items()})
    desired = number(spec.get("replicas"), 1)
    # pods of a StatefulSet below the partition stay on the old revision by the author's wish
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    updated = max(desired - number(rolling.get("partition")), 0)
    stages = {
        "updated": (number(status.get("updatedReplicas")), updated),
        "ready": (number(status.get("readyReplicas")), desired),
        "available": (number(status.get("availableReplicas")), desired),
    }
    if kind == "ReplicaSet":
        del stages["updated"]  # it is one revision
    return Progress(desired, stages, max(number(status.get("replicas")) - desired, 0))


def _rollout(kind: str, name: str, obj: dict, optional: bool) -> list[dict]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    progress = _progress(kind, spec, status)
    if progress.desired == 0 and not (optional and progress.surplus):
        return [] if optional else [_zero(kind, name, obj)]
    notes = [f"{got} of {want} {word}" for word, (got, want) in progress.stages.items() if got < want]
    if progress.surplus:
        notes.append(f"{progress.surplus} of an older revision still there")
    if not notes:
        return []
    text = ", ".join(notes)
    if spec.get("paused"):
        text += "; the rollout is paused"
    got, want = progress.stages.get("updated", (0, 0))
    if got < want and (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        text += "; update strategy OnDelete: old pods stay until something deletes them"
    text = "; ".join([text, *_complaints(status)])
    return [unhealthy("rollout-incomplete", name, text, kubectl(obj, f"describe {short(kind, obj)}"))]


def _zero(kind: str, name: str, obj: dict) -> dict:
    if kind == "DaemonSet":
        text = "no node wants it (0 desired)"
        look = kubectl(obj, f"get {short(kind, obj)} -o yaml")
        step = f"compare its nodeSelector and tolerations with the nodes: {look}"
    else:
        text, step = "is scaled to zero (0 desired)", kubectl(obj, f"scale {short(kind, obj)} --replicas=1")
    return unhealthy("zero-desired", name, text, step + ", or declare it optional in health.workloads")


def _complaints(status: dict) -> list[str]:
    """What the controller itself reports: a quota, an admission refusal, the deadline passed."""
    bad = {"Progressing": "False", "ReplicaFailure": "True"}
    return [
        f"{item.get('reason')}: {item.get('message')}"
        for item in status.get("conditions") or []
        if item.get("status") == bad.get(item.get("type"))
    ]


def job_state(job: dict) -> str:
    """complete, failed, suspended or active."""
    conditions = {item.get("type"): item.get("status") for item in (job.get("status") or {}).get("conditions") or []}
    states = {"Failed": "failed", "FailureTarget": "failed", "Complete": "complete", "Suspended": "suspended"}
    for kind, state in states.items():
        if conditions.get(kind) == "True":
            return state
    return "suspended" if (job.get("spec") or {}).get("suspend") else "active"


def _job(name: str, job: dict, optional: bool) -> list[dict]:
    state, status = job_state(job), job.get("status") or {}
    look = kubectl(job, f"describe {short('Job', job)}")
    if state == "failed":
        why = next(item for item in status["conditions"] if item.get("type") in ("Failed", "FailureTarget"))
        return [unhealthy("job-failed", name, f"failed: {why.get('reason')}: {why.get('message')}", look)]
    if state == "active":
        done, wanted = number(status.get("succeeded")), number((job.get("spec") or {}).get("completions"), 1)
        return [unhealthy("job-incomplete", name, f"{done} of {wanted} completions done", look)]
    return _suspended("Job", name, job) if state == "suspended" and not optional else []


def _suspended(kind: str, name: str, obj: dict) -> list[dict]:
    look = kubectl(obj, f"describe {short(kind, obj)}")
    return [unhealthy("zero-desired", name, "is suspended", f"{look}, or declare it optional in health.workloads")]


def number(value, default: int = 0) -> int:
    """The count, or `default` where the API left it out."""
    return value if isinstance(value, int) else default


def short(kind: str, obj: dict) -> str:
    """kind/name as kubectl takes it."""
    return f"{kind.lower()}/{obj['metadata']['name']}"


def kubectl(obj: dict, command: str) -> str:
    """A command line on the object's namespace."""
    return f"kubectl -n {obj['metadata'].get('namespace', 'default')} {command}"
