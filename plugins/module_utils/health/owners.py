# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which workload stands behind a pod, and which pods no longer count. Pure, on the objects of one namespace."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.health import workloads


def controller(obj: dict) -> tuple:
    """(kind, name) of the object's controller, or ()."""
    for item in (obj.get("metadata") or {}).get("ownerReferences") or []:
        if item.get("controller"):
            return (item["kind"], item["name"])
    return ()


class Owners:
    """Index of one namespace's controllers. Kinds that could not be read are given as empty lists."""

    def __init__(self, deployments: list[dict], replica_sets: list[dict], jobs: list[dict]):
        self.deployments = {item["metadata"]["name"]: item for item in deployments}
        self.sets = {item["metadata"]["name"]: item for item in replica_sets}
        self.jobs = {item["metadata"]["name"]: item for item in jobs}
        self.newest: dict[str, int] = {}  # Deployment -> its newest ReplicaSet's revision
        for item in replica_sets:
            kind, name = controller(item) or ("", "")
            if kind == "Deployment":
                self.newest[name] = max(self.newest.get(name, -1), _revision(item))
        self.done: dict[str, str] = {}  # CronJob -> creation of its newest complete Job
        for job in jobs:
            kind, name = controller(job) or ("", "")
            if kind == "CronJob" and workloads.job_state(job) == "complete":
                self.done[name] = max(self.done.get(name, ""), _created(job))

    def top(self, pod: dict) -> tuple:
        """(kind, name) of the workload that a person created, or () for a bare pod."""
        kind, name = controller(pod) or ("", "")
        if kind == "ReplicaSet":
            # unread ReplicaSet: a Deployment names it after itself, with a hash
            above = controller(self.sets[name]) if name in self.sets else ("Deployment", name.rpartition("-")[0])
            return above if above and above[1] in self.deployments else (kind, name)
        if kind == "Job" and controller(self.jobs.get(name, {}))[:1] == ("CronJob",):
            return controller(self.jobs[name])
        return (kind, name) if kind else ()

    def is_past(self, pod: dict) -> bool:
        """Its work is done, or other pods have taken over."""
        kind, name = controller(pod) or ("", "")
        phase = (pod.get("status") or {}).get("phase")
        if phase == "Succeeded" or pod["metadata"].get("deletionTimestamp"):
            return True
        if kind == "ReplicaSet" and name in self.sets:
            above = controller(self.sets[name])
            if above[:1] != ("Deployment",):
                return False
            if _revision(self.sets[name]) < self.newest[above[1]]:
                return True
            # an evicted pod stays listed long after its replacement is ready
            deployment = self.deployments.get(above[1])
            return phase == "Failed" and deployment is not None and not workloads.faults("Deployment", deployment)
        if kind == "Job" and name in self.jobs:
            return self._attempt_is_past(self.jobs[name], phase)
        return False

    def _attempt_is_past(self, job: dict, phase: str | None) -> bool:
        """A Job retries its pods: its own end tells, not that of one attempt."""
        state, above = workloads.job_state(job), controller(job)
        if state == "complete" or (state == "active" and phase == "Failed"):
            return True
        return above[:1] == ("CronJob",) and self.done.get(above[1], "") > _created(job)


def _revision(replica_set: dict) -> int:
    annotations = replica_set["metadata"].get("annotations") or {}
    text = annotations.get("deployment.kubernetes.io/revision", "")
    return int(text) if text.isdigit() else -1


def _created(obj: dict) -> str:
    return obj["metadata"].get("creationTimestamp") or ""
