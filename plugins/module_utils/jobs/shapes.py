# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw jobs of every kind, read alike: their pods' templates, size, conditions and end. Pure, and never raises for what
an object leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

KINDS = ("Job", "JobSet", "TrainJob", "PyTorchJob", "MPIJob")
REPLICAS = {"PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"  # label: which part of a TrainJob a replicated job is
_GPU = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi")
_PARTS = ("nvidia.com/mig-",)
_DONE = ("Complete", "Completed", "Succeeded")
# a reason that says no more than that it failed
GENERIC = ("BackoffLimitExceeded", "FailedJobs", "ReachedMaxRestarts", "FailJobSetFailurePolicyAction", "")


def mapping(value: object) -> Mapping:
    return value if isinstance(value, dict) else {}  # asking for a Mapping costs ten times as much


def listed(value: object) -> list[Mapping]:
    """The mappings of a list; none of what is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, (list, tuple)) else []


def metadata(raw: object) -> Mapping:
    return mapping(mapping(raw).get("metadata"))


def spec(raw: object) -> Mapping:
    return mapping(mapping(raw).get("spec"))


def status(raw: object) -> Mapping:
    return mapping(mapping(raw).get("status"))


def labels(raw: object) -> Mapping:
    return mapping(metadata(raw).get("labels"))


def notes(raw: object) -> Mapping:
    return mapping(metadata(raw).get("annotations"))


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object, default: int = 0) -> int:
    """A number that is none, or less than nothing, is the default."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 18:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def owner(raw: object) -> Mapping:
    """The reference to the controller that made it; {} for what a person made."""
    return next((each for each in listed(metadata(raw).get("ownerReferences")) if each.get("controller")), {})


def parts(job: Mapping) -> Iterator[tuple[str, int, int, Mapping]]:
    """(name, jobs, pods of each, pod template) of everything that runs; a TrainJob's are those of its JobSet."""
    body, kind = spec(job), job.get("kind")
    if kind == "JobSet":
        for each in listed(body.get("replicatedJobs")):
            inner = spec(each.get("template"))
            yield text(each.get("name")), count(each.get("replicas"), 1), _pods(inner), mapping(inner.get("template"))
    elif kind in REPLICAS:
        replicas = mapping(body.get(REPLICAS[kind]))
        for name in sorted(replicas, key=lambda each: (each not in ("Master", "Launcher"), str(each))):
            each = mapping(replicas[name])
            yield str(name), 1, count(each.get("replicas"), 1), mapping(each.get("template"))
    elif kind == "TrainJob":
        trainer = mapping(body.get("trainer"))
        told = {"name": "node", "image": trainer.get("image"), "resources": trainer.get("resourcesPerNode")}
        yield "node", 1, count(trainer.get("numNodes"), 1), {"spec": {"containers": [told]}}
    else:
        yield "", 1, _pods(body), mapping(body.get("template"))


def _pods(body: Mapping) -> int:
    parallel = count(body.get("parallelism"), 1)
    completions = body.get("completions")
    return min(parallel, count(completions, parallel)) if completions is not None else parallel


def is_trainer(name: str, template: Mapping, kind: str) -> bool:
    """Whether the pods are ranks. Those that only fetch a data set or start the others are none."""
    if kind == "MPIJob":
        return name != "Launcher"
    step = labels(template).get(STEP)
    return step == "trainer" if step else name not in ("dataset-initializer", "model-initializer")


def gpus(template: Mapping) -> int:
    """What one pod asks for, in whole GPUs or parts of them."""
    return sum(gpus_of(container) for container in listed(spec(template).get("containers")))


def gpus_of(container: Mapping) -> int:
    resources = mapping(container.get("resources"))
    asked = {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}
    return sum(count(n) for name, n in asked.items() if name in _GPU or str(name).startswith(_PARTS))


def image(template: Mapping) -> str:
    """Of the container that has the GPUs, else of the first."""
    containers = listed(spec(template).get("containers"))
    first = next((each for each in containers if gpus_of(each)), None)
    return text((first or (containers[0] if containers else {})).get("image"))


def condition(raw: object, kind: str) -> Mapping | None:
    """The condition of that type when it is True."""
    for each in listed(status(raw).get("conditions")):
        if each.get("type") == kind and each.get("status") == "True":
            return each
    return None


def end(job: Mapping) -> dict | None:
    """{state: failed | succeeded, reason, message, at} of a job that has ended, or whose end is settled."""
    for kind in _DONE:
        found = condition(job, kind)
        if found:
            return _told("succeeded", found)
    failed = condition(job, "Failed")
    # the target comes first, while the other pods still run and have their logs
    target = condition(job, "FailureTarget")
    if failed or target:
        told = _told("failed", failed or target)
        if failed and target:
            told["at"] = text(target.get("lastTransitionTime")) or told["at"]
        return told
    return None


def _told(state: str, found: Mapping) -> dict:
    said = {key: text(found.get(key)) for key in ("reason", "message")}
    return {"state": state, **said, "at": text(found.get("lastTransitionTime"))}


def suspended(job: Mapping) -> bool:
    body = spec(job)
    return body.get("suspend") is True or mapping(body.get("runPolicy")).get("suspend") is True
