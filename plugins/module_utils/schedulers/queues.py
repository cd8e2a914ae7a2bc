# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queues in front of jobs: Kueue, and KAI or Run:ai. Pure, but for the one list that Kueue's workloads are read by.

A job of a queue is made anew as its user wrote it: with the queue's labels, without what its admission put in, and
suspended where Kueue is the one to start it. A gang is only ever ended whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import kinds

KUEUE = "kueue.x-k8s.io/queue-name"
KAI = ("kai.scheduler/queue", "runai/queue")
POD_GROUP = "pod-group-name"
_KUEUE_UID = "kueue.x-k8s.io/job-uid"
_KUEUE_VERSIONS = ("v1beta2", "v1beta1")
_ADMISSION_LABELS = ("kueue.x-k8s.io/podset", "kueue.x-k8s.io/tas", "kueue.x-k8s.io/managed")
_ADMISSION_NOTES = ("kueue.x-k8s.io/workload",)
_ADMISSION_GATES = ("kueue.x-k8s.io/topology", "kueue.x-k8s.io/admission")
_IN_PART = "kueue.x-k8s.io/job-min-parallelism"
_COMPLETIONS = "kueue.x-k8s.io/job-completions-equal-parallelism"
_GENERATED_GROUP = re.compile(r"pg-.*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-.*)?")


def queue_of(job: Mapping) -> dict:
    """{kind: kueue | kai | none, name, managed}. managed: the queue's controller decides on suspend."""
    metadata = job.get("metadata") or {}
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    name = labels.get(KUEUE) or notes.get(KUEUE)  # an annotation in its first releases
    if name:
        return {"kind": "kueue", "name": name, "managed": True}
    templates = [template for _path, template in kinds.templates(job)]
    places = [labels, *((each.get("metadata") or {}).get("labels") or {} for each in templates)]
    for place in places:
        for key in KAI:
            if place.get(key):
                return {"kind": "kai", "name": place[key], "managed": False}
    return {"kind": "none", "name": "", "managed": False}


def workload_templates(client, job: Mapping) -> dict[str, Mapping]:
    """{name: {template, count}} of the pod sets as they were before Kueue admitted the job; {} where it keeps none."""
    metadata = job["metadata"]
    for version in _KUEUE_VERSIONS:
        path = f"/apis/kueue.x-k8s.io/{version}/namespaces/{metadata['namespace']}/workloads"
        try:
            for workload in client.list(path, labelSelector=f"{_KUEUE_UID}={metadata['uid']}"):
                sets = (workload.get("spec") or {}).get("podSets") or ()
                return {each.get("name") or "main": each for each in sets}
            return {}
        except NotFound:
            continue
    return {}


def undo_admission(manifest: dict, originals: Mapping[str, Mapping]) -> None:
    """Take out of the manifest what a queue's admission put in. `originals`: as workload_templates() gives them."""
    queue = queue_of(manifest)
    for name, template in kinds.templates(manifest):
        metadata, spec = template.setdefault("metadata", {}) or {}, template.setdefault("spec", {})
        notes = metadata.get("annotations") or {}
        if _GENERATED_GROUP.fullmatch(notes.get(POD_GROUP) or ""):  # of the attempt that is over
            _drop(metadata, "annotations", (POD_GROUP,))
        if queue["kind"] != "kueue":
            continue
        _drop(metadata, "labels", _ADMISSION_LABELS)
        _drop(metadata, "annotations", _ADMISSION_NOTES)
        gates = [each for each in spec.get("schedulingGates") or () if each.get("name") not in _ADMISSION_GATES]
        spec["schedulingGates"] = gates
        before = originals.get(name or "main") or originals.get(name.lower())
        if before:
            for field in ("nodeSelector", "tolerations"):
                spec[field] = ((before.get("template") or {}).get("spec") or {}).get(field)
            _whole(manifest, before.get("count"))
        for field in ("schedulingGates", "nodeSelector", "tolerations"):
            if not spec.get(field):
                spec.pop(field, None)


def _whole(manifest: dict, count: object) -> None:
    """A job that was admitted in part asks for all of its pods again."""
    notes = manifest["metadata"].get("annotations") or {}
    if manifest["kind"] == "Job" and notes.get(_IN_PART) and isinstance(count, int):
        manifest["spec"]["parallelism"] = count
        if notes.get(_COMPLETIONS) == "true":
            manifest["spec"]["completions"] = count


def _drop(place: dict, field: str, keys) -> None:
    if place.get(field):
        place[field] = {key: value for key, value in place[field].items() if key not in keys}
        if not place[field]:
            del place[field]
