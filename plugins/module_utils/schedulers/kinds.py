# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of jobs: where each keeps its pod templates, its suspend field and its end; what of a live one is the user's.

Pure. `job` is a raw object of one of KINDS, with apiVersion and kind.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotCovered, nearest


@dataclass(frozen=True, slots=True)
class Kind:
    """`suspend`, `retries`: paths in the object. `ends`: condition type -> state. `api_version`: the usual one."""

    api_version: str
    plural: str
    suspend: tuple[str, ...]
    retries: tuple[str, ...]
    ends: tuple[tuple[str, str], ...]
    pod_label: str


_JOBSET_PODS, _TRAINING_PODS = "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name"
_POLICY_SUSPEND, _POLICY_RETRIES = ("spec", "runPolicy", "suspend"), ("spec", "runPolicy", "backoffLimit")
_TRAINING_ENDS = (("Failed", "failed"), ("Succeeded", "succeeded"))
KINDS = {
    "Job": Kind(
        "batch/v1",
        "jobs",
        ("spec", "suspend"),
        ("spec", "backoffLimit"),
        (("Failed", "failed"), ("Complete", "succeeded")),
        "batch.kubernetes.io/controller-uid",
    ),
    "JobSet": Kind(
        "jobset.x-k8s.io/v1alpha2",
        "jobsets",
        ("spec", "suspend"),
        ("spec", "failurePolicy", "maxRestarts"),
        (("Failed", "failed"), ("Completed", "succeeded")),
        _JOBSET_PODS,
    ),
    # retries are its runtime's; its pods are those of the JobSet of its name
    "TrainJob": Kind(
        "trainer.kubeflow.org/v1alpha1",
        "trainjobs",
        ("spec", "suspend"),
        (),
        (("Failed", "failed"), ("Complete", "succeeded")),
        _JOBSET_PODS,
    ),
    "PyTorchJob": Kind(
        "kubeflow.org/v1", "pytorchjobs", _POLICY_SUSPEND, _POLICY_RETRIES, _TRAINING_ENDS, _TRAINING_PODS
    ),
    "MPIJob": Kind("kubeflow.org/v2beta1", "mpijobs", _POLICY_SUSPEND, _POLICY_RETRIES, _TRAINING_ENDS, _TRAINING_PODS),
}
_REPLICAS = {"PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}
# what the API server and garbage collection put there
_SERVERS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_COLLECTORS = ("foregroundDeletion", "orphan")
_GENERATED_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
_OPERATORS = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}
_NOBODY = "goodput.fleet/nobody"  # an empty selector would be everybody's pods
_RECOVERY = "goodput.fleet/recovery"
_GENERATED_NOTES = ("batch.kubernetes.io/job-tracking",)


def kind_of(job: Mapping) -> Kind:
    """Raises NotCovered for a kind that is none of ours."""
    kind = job.get("kind")
    if kind not in KINDS:
        raise NotCovered(f"a {kind} is no job that can be recovered", path="job.kind", hint=nearest(kind, KINDS))
    return KINDS[kind]


def suspended(job: Mapping) -> bool:
    return _at(job, kind_of(job).suspend) is True


def set_suspended(job: dict, value: bool) -> None:
    *parents, last = kind_of(job).suspend
    place = job
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = value


def max_retries(job: Mapping) -> int | None:
    """The scheduler's own retries that the job asks for; None where it says nothing."""
    found = _at(job, kind_of(job).retries) if kind_of(job).retries else None
    return found if isinstance(found, int) else None


def ended(job: Mapping) -> dict | None:
    """{state: failed | succeeded, reason, message, at} of a job that has come to its end; None before."""
    ends = dict(kind_of(job).ends)
    for each in (job.get("status") or {}).get("conditions") or ():
        if each.get("status") == "True" and each.get("type") in ends:
            said = {key: each.get(key) or "" for key in ("reason", "message")}
            return {"state": ends[each["type"]], **said, "at": each.get("lastTransitionTime") or ""}
    return None


def pod_selector(job: Mapping) -> str:
    """The label selector of its pods."""
    kind, metadata, spec = kind_of(job), job.get("metadata") or {}, job.get("spec") or {}
    if job["kind"] == "Job":
        if spec.get("manualSelector"):
            return _selector(spec.get("selector") or {}) or _NOBODY
        return f"{kind.pod_label}={metadata.get('uid', '')}"
    return f"{kind.pod_label}={metadata.get('name', '')}"


def _selector(selector: Mapping) -> str:
    """A LabelSelector as the text that lists take."""
    said = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        said.append(_OPERATORS[each["operator"]].format(key=key, values=values))
    return ",".join(said)


def expected_pods(job: Mapping) -> int | None:
    """How many pods run at a time; None where the job does not say."""
    kind_of(job)
    spec = job.get("spec") or {}
    if job["kind"] == "Job":
        return _parallel(spec)
    if job["kind"] == "JobSet":
        jobs = [(_replicas(each), (each.get("template") or {}).get("spec") or {}) for each in _jobs(spec)]
        return sum(replicas * _parallel(inner) for replicas, inner in jobs)
    if job["kind"] in _REPLICAS:
        return sum(_replicas(each) for each in (spec.get(_REPLICAS[job["kind"]]) or {}).values())
    return (spec.get("trainer") or {}).get("numNodes")


def resize(job: dict, pods: int) -> None:
    """Give the job so many pods that train. Raises NotCovered where that cannot be told of it."""
    spec, kind = job.setdefault("spec", {}), job["kind"]
    if kind == "Job":
        _set_parallel(spec, pods)
    elif kind == "TrainJob":
        spec.setdefault("trainer", {})["numNodes"] = pods
    elif kind in _REPLICAS:
        replicas = spec.get(_REPLICAS[kind]) or {}
        left = pods - (_replicas(replicas["Master"]) if "Master" in replicas else 0)
        if "Worker" not in replicas or left < 1:
            raise _fixed(job, pods)
        replicas["Worker"]["replicas"] = left
    elif len(_jobs(spec)) == 1:
        (each,) = _jobs(spec)
        inner = each.setdefault("template", {}).setdefault("spec", {})
        jobs, rest = divmod(pods, max(1, _parallel(inner)))
        if _replicas(each) == 1:
            _set_parallel(inner, pods)
        elif rest or not jobs:
            raise _fixed(job, pods)
        else:
            each["replicas"] = jobs
    else:
        raise _fixed(job, pods)


def _set_parallel(spec: dict, pods: int) -> None:
    if spec.get("completionMode") == "Indexed" or spec.get("completions") == _given(spec.get("parallelism")):
        spec["completions"] = pods
    spec["parallelism"] = pods


def _fixed(job: Mapping, pods: int) -> NotCovered:
    hint = "it takes one group of pods that can have any size"
    return NotCovered(f"{name_of(job)} cannot be given {pods} pods", code="job-size", hint=hint)


def _parallel(spec: Mapping) -> int:
    parallel, completions = _given(spec.get("parallelism")), spec.get("completions")
    return parallel if completions is None else min(parallel, completions)


def _replicas(part: Mapping) -> int:
    return _given((part or {}).get("replicas"))


def _given(number: int | None) -> int:
    return 1 if number is None else number


def _jobs(spec: Mapping) -> list:
    return spec.get("replicatedJobs") or []


def templates(job: Mapping) -> Iterator[tuple[str, dict]]:
    """(name, PodTemplateSpec) of each; what is changed in one is changed in the job. A TrainJob has none of its own."""
    kind_of(job)
    spec = job.get("spec") or {}
    if job["kind"] == "Job":
        yield "", spec.setdefault("template", {})
    elif job["kind"] == "JobSet":
        for each in _jobs(spec):
            inner = each.setdefault("template", {}).setdefault("spec", {})
            yield each.get("name") or "", inner.setdefault("template", {})
    elif job["kind"] in _REPLICAS:
        for name, each in sorted((spec.get(_REPLICAS[job["kind"]]) or {}).items()):
            yield name, each.setdefault("template", {})


def next_manifest(job: Mapping) -> dict:
    """A live job as the body of a new one of the same name: all that is the user's, nothing that was the server's.

    Owners that only hold it for garbage collection stay; a controlling owner is the caller's to refuse before.
    """
    manifest = copy.deepcopy({key: value for key, value in job.items() if key != "status"})
    metadata, spec = manifest["metadata"], manifest.setdefault("spec", {})
    uid, name = metadata.get("uid"), metadata.get("name")
    for key in _SERVERS:
        metadata.pop(key, None)
    _without(metadata, "annotations", _GENERATED_NOTES)
    metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each not in _COLLECTORS]
    metadata["ownerReferences"] = [each for each in metadata.get("ownerReferences") or () if not each.get("controller")]
    for key in ("finalizers", "ownerReferences"):
        if not metadata[key]:
            del metadata[key]
    if job.get("kind") == "Job" and not spec.get("manualSelector"):
        spec.pop("selector", None)
        spec.pop("manualSelector", None)
        # the server shows a job's pod labels as its own where it has none
        for place in (metadata, (spec.get("template") or {}).get("metadata") or {}):
            labels = place.get("labels") or {}
            generated = [key for key in _GENERATED_LABELS if labels.get(key) in (uid, name)]
            _without(place, "labels", generated)
    for _name, template in templates(manifest):
        (template.get("metadata") or {}).pop("creationTimestamp", None)
    return manifest


def opted_out(job: Mapping) -> str:
    """What the job itself says about its recovery, where that is anything but act; "" where nothing or act."""
    metadata = job.get("metadata") or {}
    for place in ("annotations", "labels"):
        said = (metadata.get(place) or {}).get(_RECOVERY)
        if isinstance(said, str):
            return "" if said.strip().lower() == "act" else f"the job says {_RECOVERY}: {said[:60]}"
    return ""


def controller(job: Mapping) -> dict | None:
    """The ownerReference of the controller that made the job, None for one that a person made."""
    owners = (job.get("metadata") or {}).get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), None)


def name_of(job: Mapping) -> str:
    """ "Job ml/train", for people."""
    metadata = job.get("metadata") or {}
    return f"{job.get('kind')} {metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _at(job: Mapping, path: tuple[str, ...]) -> object:
    place: object = job
    for part in path:
        place = place.get(part) if isinstance(place, Mapping) else None
    return place


def _without(place: dict, field: str, keys) -> None:
    if place.get(field) is not None:
        place[field] = {key: value for key, value in place[field].items() if key not in keys}
        if not place[field]:
            del place[field]
