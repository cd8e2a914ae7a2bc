# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods are which job's, and which place in the job each has. Pure.

By the chain of controllers (pod, Job, JobSet, TrainJob), by uid. Names only help where a link of the chain is gone, and
then only for pods that are not older than the job: an earlier job of the same name had pods of the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import shapes

_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOBSET = "jobset.sigs.k8s.io/"
_TRAINING = "training.kubeflow.org/"


def of_jobs(jobs: Iterable[Mapping], pods: Iterable[Mapping]) -> dict[str, list[Mapping]]:
    """{uid of the outermost job: [its raw pods]}. Pods of no job of the list are left out."""
    by_uid = {uid: job for job in jobs if (uid := shapes.text(shapes.metadata(job).get("uid")))}
    by_name: dict[tuple, list[str]] = {}
    for uid, job in by_uid.items():
        meta = shapes.metadata(job)
        place = (shapes.text(job.get("kind")), *(shapes.text(meta.get(part)) for part in ("namespace", "name")))
        by_name.setdefault(place, []).append(uid)
    roots: dict[str, str] = {}
    found: dict[str, list[Mapping]] = {}
    for pod in pods:
        uid = _parent(pod, by_uid, by_name)
        if uid:
            if uid not in roots:
                roots[uid] = _root(uid, by_uid)
            found.setdefault(roots[uid], []).append(pod)
    return found


def children(jobs: Iterable[Mapping]) -> dict[str, list[Mapping]]:
    """{uid of the outermost job: [the jobs that it made, and those that these made]}."""
    by_uid = {uid: job for job in jobs if (uid := shapes.text(shapes.metadata(job).get("uid")))}
    found: dict[str, list[Mapping]] = {}
    for uid, job in by_uid.items():
        root = _root(uid, by_uid)
        if root != uid:
            found.setdefault(root, []).append(job)
    return found


def _root(uid: str, by_uid: Mapping[str, Mapping]) -> str:
    seen = {uid}
    while (above := shapes.text(shapes.owner(by_uid[uid]).get("uid"))) in by_uid and above not in seen:
        uid = above
        seen.add(uid)
    return uid


def _parent(pod: Mapping, by_uid: Mapping, by_name: Mapping) -> str:
    owner = shapes.owner(pod)
    if owner:
        if shapes.text(owner.get("uid")) in by_uid:
            return owner["uid"]
        if owner.get("kind") != "Job":  # of something else, or of an earlier job
            return ""
    labels = shapes.labels(pod)
    if not owner:
        for key in _JOB_UID:
            if shapes.text(labels.get(key)) in by_uid:
                return labels[key]
    meta = shapes.metadata(pod)
    names = [("JobSet", labels.get(f"{_JOBSET}jobset-name")), ("TrainJob", labels.get(f"{_JOBSET}jobset-name"))]
    names += [(kind, labels.get(f"{_TRAINING}job-name")) for kind in shapes.REPLICAS]
    told = labels.get(f"{_JOBSET}jobset-uid")
    for kind, name in names:
        for uid in by_name.get((kind, shapes.text(meta.get("namespace")), shapes.text(name)), ()):
            job = by_uid[uid]
            # a time of the same form compares as text
            older = shapes.text(meta.get("creationTimestamp")) < shapes.text(
                shapes.metadata(job).get("creationTimestamp")
            )
            if not older and not (kind == "JobSet" and told and told != uid):
                return uid
    return ""


class Layout:
    """Where a job's pods stand: `place(pod)` is (part, job of it, index in it), `index(pod)` its number of all ranks.

    `ranks`: how many there are; 0 where nothing tells.
    """

    def __init__(self, job: Mapping, below: Iterable[Mapping] = ()):
        self._kind = job.get("kind")
        shape = job
        if self._kind == "TrainJob":
            # what runs is told by the JobSet that its runtime made of it
            shape = next((each for each in below if each.get("kind") == "JobSet"), job)
        self._shape_kind = shape.get("kind")
        self._first: dict[str, tuple[int, int]] = {}
        self._starters: set[str] = set()
        self.ranks = self.pods = 0
        self.parts = list(shapes.parts(shape))
        spec = shapes.spec(job)
        for name, jobs, pods, template in self.parts:
            self.pods += jobs * pods
            if self._kind == "MPIJob" and spec.get("runLauncherAsWorker") is True:
                self._first[name.lower()] = (0, pods)  # its operator counts the launcher as the first worker
                self.ranks += pods
            elif shapes.is_trainer(name, template, self._kind):
                self._first[name.lower()] = (self.ranks, pods)
                self.ranks += jobs * pods
            else:
                self._starters.add(name.lower())
        self.indexed = self._kind != "Job" or spec.get("completionMode") == "Indexed" or self.pods == 1

    def place(self, pod: Mapping) -> tuple[str, int, int | None]:
        """The third is None for a pod that has no place of its own."""
        labels = shapes.labels(pod)
        inside = labels.get(_INDEX) or shapes.notes(pod).get(_INDEX)
        if self._shape_kind in ("JobSet", "TrainJob"):
            part = shapes.text(labels.get(f"{_JOBSET}replicatedjob-name")).lower() or next(iter(self._first), "")
            return part, shapes.count(labels.get(f"{_JOBSET}job-index")), shapes.count(inside)
        if self._kind in shapes.REPLICAS:
            role = labels.get(f"{_TRAINING}replica-type") or labels.get(f"{_TRAINING}job-role") or ""
            index = labels.get(f"{_TRAINING}replica-index")
            # of the launcher of an MPIJob the operator numbers nothing
            return shapes.text(role).lower(), 0, shapes.count(index)
        if not self.indexed:
            return "", 0, None
        return "", 0, shapes.count(inside)

    def index(self, pod: Mapping) -> int | None:
        part, job, inside = self.place(pod)
        if inside is None or part in self._starters:
            return None
        return self._number(part, job, inside)

    def of_job(self, job: Mapping, inside: int) -> tuple[int | None, str]:
        """(its number of all ranks, part) of a pod with that index in a Job, which is the job itself or one of its."""
        labels = shapes.labels(job)
        part = shapes.text(labels.get(f"{_JOBSET}replicatedjob-name")).lower()
        if part in self._starters:
            return None, part
        return self._number(part, shapes.count(labels.get(f"{_JOBSET}job-index")), inside), part

    def _number(self, part: str, job: int, inside: int) -> int | None:
        if part not in self._first:
            return inside if not part else None
        first, pods = self._first[part]
        return first + job * pods + inside


def restart_of(pod: Mapping) -> int | None:
    """Which restart of its JobSet the pod was made by."""
    told = shapes.labels(pod).get(f"{_JOBSET}restart-attempt")
    return shapes.count(told) if told is not None else None
