# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A raw pod as a rank of its job: how it stands, and how it ended. Pure, and never raises for what a pod leaves out."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, shapes

_BACKOFF = "CrashLoopBackOff"


def read(pod: Mapping, index: int | None, role: str = "") -> dict:
    """{index, role, pod, uid, namespace, container, node, nodeUid, domain, phase, exitCode, signal, reason, message,
    disruption, created, startedAt, finishedAt, terminating, restarts, previousLog, lost}. nodeUid, domain and lost are
    the caller's to fill in. previousLog: an earlier run of the container has left a log."""
    meta, status = shapes.metadata(pod), shapes.status(pod)
    container, found = _main(pod)
    state, last = shapes.mapping(found.get("state")), shapes.mapping(found.get("lastState"))
    ended = shapes.mapping(state.get("terminated"))
    waiting = shapes.text(shapes.mapping(state.get("waiting")).get("reason"))
    if not ended and waiting == _BACKOFF:
        ended = shapes.mapping(last.get("terminated"))
    begun = _failed_init(pod) if not ended else {}
    ended = begun or ended
    disrupted = shapes.condition(pod, "DisruptionTarget") or {}
    code, signal = _exit(ended)
    reason = shapes.text(status.get("reason")) or shapes.text(ended.get("reason")) or waiting or _unscheduled(pod)
    running = shapes.mapping(state.get("running"))
    phase = shapes.text(status.get("phase")) or "Unknown"
    finished = shapes.text(ended.get("finishedAt"))
    if phase == "Failed" and moments.of(finished) is None:
        finished = shapes.text(disrupted.get("lastTransitionTime")) or _not_ready(pod)
    return {
        "index": index,
        "role": role,
        "pod": shapes.text(meta.get("name")),
        "uid": shapes.text(meta.get("uid")),
        "namespace": shapes.text(meta.get("namespace")),
        "container": container,
        "node": shapes.text(shapes.spec(pod).get("nodeName")),
        "nodeUid": "",
        "domain": "",
        "phase": phase,
        "exitCode": code,
        "signal": signal,
        "reason": f"Init:{reason}" if begun else reason,
        "message": shapes.text(status.get("message")) or shapes.text(ended.get("message")),
        "disruption": shapes.text(disrupted.get("reason")),
        "created": shapes.text(meta.get("creationTimestamp")),
        "startedAt": shapes.text(running.get("startedAt"))
        or shapes.text(ended.get("startedAt"))
        or shapes.text(status.get("startTime")),
        "finishedAt": finished,
        "terminating": bool(meta.get("deletionTimestamp")),
        "restarts": shapes.count(found.get("restartCount")),
        "previousLog": bool(shapes.mapping(last.get("terminated"))) and waiting != _BACKOFF,
        "lost": False,
    }


def failed(rank: Mapping) -> bool:
    """Whether it has ended badly, of itself or by somebody."""
    return rank["phase"] == "Failed" or bool(rank["exitCode"]) or rank["lost"]


def was_killed(rank: Mapping) -> bool:
    """Whether it ended because the job was ended, as far as that can be told: it was deleted, and died of a signal that
    goes with that. A disruption, or too little memory, is an end of its own."""
    killed = rank["exitCode"] in (137, 143, None) and rank["reason"] not in ("OOMKilled", "Evicted")
    return rank["terminating"] and killed and not rank["disruption"] and not rank["lost"]


def _main(pod: Mapping) -> tuple[str, Mapping]:
    """(name, status) of the container that trains: the one with the GPUs, else the first that failed, or the first."""
    containers = shapes.listed(shapes.spec(pod).get("containers"))
    statuses = shapes.listed(shapes.status(pod).get("containerStatuses"))
    names = [shapes.text(each.get("name")) for each in containers if shapes.gpus_of(each)]
    chosen = [each for each in statuses if each.get("name") in names] or statuses
    if not chosen:
        first = names or [shapes.text(each.get("name")) for each in containers]
        return (first[0] if first else ""), {}
    found = min(chosen, key=_first_failed)
    return shapes.text(found.get("name")), found


def _first_failed(status: Mapping) -> tuple:
    ended = shapes.mapping(shapes.mapping(status.get("state")).get("terminated"))
    return not ended.get("exitCode"), shapes.text(ended.get("finishedAt"))


def _failed_init(pod: Mapping) -> Mapping:
    if shapes.listed(shapes.status(pod).get("containerStatuses")) and shapes.condition(pod, "Initialized"):
        return {}
    for each in shapes.listed(shapes.status(pod).get("initContainerStatuses")):
        for state in (shapes.mapping(each.get("state")), shapes.mapping(each.get("lastState"))):
            ended = shapes.mapping(state.get("terminated"))
            if ended.get("exitCode"):
                return ended
    return {}


def _exit(ended: Mapping) -> tuple[int | None, int | None]:
    code = ended.get("exitCode")
    if not isinstance(code, int) or isinstance(code, bool):
        return None, None
    signal = shapes.count(ended.get("signal")) or (code - 128 if 128 < code <= 192 else 0)
    return code, signal or None


def _unscheduled(pod: Mapping) -> str:
    for each in shapes.listed(shapes.status(pod).get("conditions")):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return shapes.text(each.get("reason"))
    return ""


def _not_ready(pod: Mapping) -> str:
    for each in shapes.listed(shapes.status(pod).get("conditions")):
        if each.get("type") == "Ready" and each.get("status") == "False":
            return shapes.text(each.get("lastTransitionTime"))
    return ""
