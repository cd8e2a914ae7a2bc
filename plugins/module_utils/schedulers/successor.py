# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of a job's next attempt, out of the live job and what was decided. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotCovered
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import affinity, kinds, queues

ATTEMPT, PREVIOUS = "goodput.fleet/attempt", "goodput.fleet/previous-attempt"
INTENT = "goodput.fleet/recovery-intent"  # on the successor: whose it is
MARK = "goodput.fleet/recovering"  # on the job whose next attempt is being made
FINALIZER = "goodput.fleet/recovery"
RESUME_ENV = "goodput.fleet/recovery-resume-env"
PATCHES = "goodput.fleet/recovery"  # the manager of our entry among a TrainJob's runtimePatches
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Placement:
    """`excluded`: [{node, hostname, uid, why, until}], all that hold from now on. `preferred`: terms."""

    excluded: list[dict] = field(default_factory=list)
    preferred: list[dict] = field(default_factory=list)


def number_of(job: Mapping) -> int:
    """The attempt that the job says it is; 1 where it says nothing that can be read."""
    metadata = job.get("metadata") or {}
    told = ((metadata.get(place) or {}).get(ATTEMPT) for place in ("annotations", "labels"))
    text = next((each for each in told if isinstance(each, str)), "")
    return max(1, int(text[:9])) if text.isdecimal() else 1


def build(
    job: Mapping,
    number: int,
    placement: Placement,
    *,
    intent: str,
    env: Mapping[str, str] | None = None,
    originals: Mapping[str, Mapping] | None = None,
    job_set: Mapping | None = None,
    pods: int | None = None,
) -> dict:
    """The body to create. `number`: of the attempt that is over. `env`: set in every container. `originals`: as
    queues.workload_templates(). `job_set`: what a TrainJob's pods are made from (a JobSet, or its runtime's template).
    `pods`: how many are to train, where that is another number than before.

    Raises InvalidDocument where the job insists on an excluded node, or env has a name that is none; NotCovered for a
    TrainJob whose pods cannot be told, and for a job whose size is fixed.
    """
    manifest = kinds.next_manifest(job)
    queues.undo_admission(manifest, originals or {})
    if pods is not None:
        kinds.resize(manifest, pods)
    replace(manifest, job, number, placement, intent=intent, env=env, job_set=job_set)
    metadata = manifest["metadata"]
    metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != FINALIZER] + [FINALIZER]
    if queues.queue_of(manifest)["managed"]:
        kinds.set_suspended(manifest, True)
    return manifest


def replace(
    manifest: dict,
    job: Mapping,
    number: int,
    placement: Placement,
    *,
    intent: str,
    env: Mapping[str, str] | None = None,
    job_set: Mapping | None = None,
) -> None:
    """Turn `manifest`, a copy of `job`, into its next attempt: placement, env, and the annotations that say so."""
    wrong = [name for name in env or () if not _ENV_NAME.fullmatch(name)]
    if wrong:
        hint = "letters, digits and '_', not beginning with a digit"
        raise InvalidDocument(f"{wrong[0]!r} is not the name of a variable", path=RESUME_ENV, hint=hint)
    before = affinity.remembered(job)
    if manifest["kind"] == "TrainJob":
        _train_job(manifest, placement, before, env or {}, job_set)
    for _name, template in kinds.templates(manifest):
        insists = affinity.pinned(template, {each["node"]: each["hostname"] for each in placement.excluded})
        if insists:
            hint = "its nodeName or nodeSelector has to go first"
            raise InvalidDocument(f"{kinds.name_of(job)} insists on node {insists}", code="job-pinned", hint=hint)
        spec = template.setdefault("spec", {})
        _set(spec, _placed(spec.get("affinity"), placement, before))
        for container in spec.get("containers") or ():
            container["env"] = _with_env(container.get("env"), env or {})
            if not container["env"]:
                del container["env"]
    notes = manifest["metadata"]["annotations"] = manifest["metadata"].get("annotations") or {}
    for key, value in affinity.annotations(placement.excluded, placement.preferred).items():
        notes.pop(key, None)
        if value:
            notes[key] = value
    notes.pop(MARK, None)
    notes |= {ATTEMPT: str(number + 1), PREVIOUS: job["metadata"]["uid"], INTENT: intent}


def excluded_in(manifest: Mapping) -> set[str]:
    """Names of the nodes that the job's annotations say are excluded."""
    return {each.get("node") or each["hostname"] for each in affinity.remembered(manifest)[0]}


def _placed(old: Mapping | None, placement: Placement, before: tuple[list[dict], list[dict]]) -> dict | None:
    result = affinity.including(old, (each["hostname"] for each in before[0]))
    result = affinity.not_preferring(result, before[1])
    result = affinity.excluding(result, (each["hostname"] for each in placement.excluded))
    return affinity.preferring(result, placement.preferred)


def _set(spec: dict, value: dict | None) -> None:
    spec.pop("affinity", None)
    if value:
        spec["affinity"] = value


def _with_env(old: Iterable[Mapping] | None, env: Mapping[str, str]) -> list[dict]:
    kept = [dict(each) for each in old or () if each.get("name") not in env]
    return kept + [{"name": name, "value": value} for name, value in env.items()]


def _train_job(
    manifest: dict, placement: Placement, before: tuple, env: Mapping[str, str], job_set: Mapping | None
) -> None:
    """A TrainJob says what its pods have beyond their runtime's; an affinity there takes the place of the runtime's."""
    spec = manifest["spec"]
    if env:
        trainer = spec.setdefault("trainer", {})
        trainer["env"] = _with_env(trainer.get("env"), env)
    if not (placement.excluded or placement.preferred or before[0] or before[1]):
        return
    if not job_set:
        hint = "neither the JobSet of its name nor its runtime can be read"
        raise NotCovered(f"the pods of {kinds.name_of(manifest)} are not known", code="trainjob-pods", hint=hint)
    placed = {}
    for name, template in kinds.templates({**job_set, "kind": "JobSet"}):
        old = _said(spec, name) or (template.get("spec") or {}).get("affinity")
        placed[name] = _placed(old, placement, before)
    if "runtimePatches" in spec or not manifest["apiVersion"].endswith("/v1alpha1"):
        others = [each for each in spec.get("runtimePatches") or () if each.get("manager") != PATCHES]
        jobs = [
            {"name": name, "template": {"spec": {"template": {"spec": {"affinity": value}}}}}
            for name, value in placed.items()
            if value
        ]
        ours = {"manager": PATCHES, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        spec["runtimePatches"] = others + ([ours] if jobs else [])
        return
    # later ones win over earlier ones; what one says about affinity alone is in what follows
    kept = [each for each in spec.get("podTemplateOverrides") or () if not _only_affinity(each, placed)]
    ours = [{"targetJobs": [{"name": name}], "spec": {"affinity": value}} for name, value in placed.items() if value]
    spec["podTemplateOverrides"] = kept + ours


def _said(spec: Mapping, name: str) -> dict | None:
    """The affinity that the TrainJob itself asks for in the pods of that name, ours included."""
    found = None
    for each in spec.get("podTemplateOverrides") or ():
        if name in _targets(each):
            found = (each.get("spec") or {}).get("affinity") or found
    for each in spec.get("runtimePatches") or ():
        template = (each.get("trainingRuntimeSpec") or {}).get("template")
        for patched, pod in kinds.templates({**copy.deepcopy(template or {}), "kind": "JobSet"}):
            if patched == name:
                found = (pod.get("spec") or {}).get("affinity") or found
    return found


def _targets(override: Mapping) -> list[str]:
    return [each.get("name") or "" for each in override.get("targetJobs") or ()]


def _only_affinity(override: Mapping, placed: Mapping) -> bool:
    return list(override.get("spec") or ()) == ["affinity"] and set(_targets(override)) <= set(placed)
