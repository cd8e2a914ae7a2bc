# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster's objects tell of a run, and whether that has lasted too long. Pure.

An observation is {phase, pods, createdAt, startedAt, endedAt, lastLogAt, why}; times as Kubernetes writes them, or
None. Phases: queued (not all pods have a node), starting, running, succeeded, failed, gone (not there, or about to be
deleted; `pods` are those that are left). A pod is {name, uid, role, index, node, host (as its processes print it),
phase, exitCode, reason, message, restarts, startedAt, finishedAt, scheduled, scheduledAt, deleted}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.launchers import manifests, names

ENDED = ("Succeeded", "Failed")
# waiting does not cure these
HOPELESS = ("InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError")
HOPELESS_SECONDS = 30
# the kubelet tries again, and may be right to: registries have bad minutes
PULLING = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError")
PULLING_SECONDS = 300
# those that wait for a failed one hang until a timeout of their own
SURVIVORS_SECONDS = 60
TEXT = 500


def look(run: Mapping, main: Mapping | None, pods: Iterable[Mapping]) -> dict:
    """The observation of a run. main: its Job, MPIJob or TrainJob, raw; pods: its pods, raw."""
    seen = sorted((_pod(pod) for pod in pods), key=lambda pod: (pod["role"], pod["index"] or 0, pod["name"]))
    metadata = (main or {}).get("metadata") or {}
    result = {
        "phase": "gone",
        "pods": seen,
        "createdAt": metadata.get("creationTimestamp"),
        "startedAt": _started(run, seen),
        "endedAt": None,
        "lastLogAt": None,
        "why": "",
    }
    if main is None:
        return {**result, "why": "there is no such run in the cluster"}
    if metadata.get("deletionTimestamp"):
        return {**result, "why": "it is being deleted"}
    result["phase"], result["why"] = _phase(run, main, seen, bool(result["startedAt"]))
    if result["phase"] in ("succeeded", "failed"):
        ends = [pod["finishedAt"] for pod in seen if pod["finishedAt"]]
        result["endedAt"] = max(ends) if ends else _ended_at(main)
    return result


def _phase(run: Mapping, main: Mapping, pods: list[dict], started: bool) -> tuple[str, str]:
    verdict = _condition(main)
    leader = _leader(run, pods)
    if leader and leader["phase"] in ENDED:
        return ("succeeded", "") if leader["phase"] == "Succeeded" else ("failed", _text(leader))
    failed = [pod for pod in pods if pod["phase"] == "Failed"]
    if verdict:
        return verdict[0], verdict[1] if not failed else _text(failed[0])
    workers = [pod for pod in pods if pod["role"] == names.WORKER]
    if len(workers) >= len(run["nodes"]) and all(pod["phase"] in ENDED for pod in pods):
        return ("failed", _text(failed[0])) if failed else ("succeeded", "")
    if failed:
        return "running", _text(failed[0])
    if started:
        return "running", ""
    if (main.get("spec") or {}).get("suspend"):
        return "queued", "it is suspended: it waits in its queue"
    waiting = [pod for pod in pods if not pod["scheduled"]]
    if waiting:
        return "queued", f"{waiting[0]['name']}: {waiting[0]['message'] or 'it has no node'}"
    if len(workers) < len(run["nodes"]):
        return "queued", f"{len(workers)} of {len(run['nodes'])} pods are there"
    slow = next((pod for pod in pods if not pod["startedAt"]), None)
    return "starting", _text(slow) if slow else ""


def _leader(run: Mapping, pods: list[dict]) -> dict | None:
    """The pod whose end is the end of the run, where the others only wait for it."""
    if not manifests.leads(run):
        return None
    launchers = [pod for pod in pods if pod["role"] == names.LAUNCHER]
    return next(iter(launchers), None) or next((pod for pod in pods if pod["index"] == 0), None)


def _started(run: Mapping, pods: list[dict]) -> str | None:
    """When the last one began to run: the clock of a test starts when all its processes run."""
    needed = len(run["nodes"])
    times = [pod["startedAt"] for pod in pods if pod["role"] == names.WORKER]
    if len(times) < needed or not all(times):
        return None
    if manifests.leads(run):
        leader = _leader(run, pods)
        times.append(leader["startedAt"] if leader else None)
    return max(times) if all(times) else None


def _condition(main: Mapping) -> tuple[str, str] | None:
    """(phase, why) by the conditions of a Job, MPIJob or TrainJob."""
    for condition in (main.get("status") or {}).get("conditions") or []:
        if condition.get("status") == "True":
            said = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
            if condition.get("type") in ("Failed", "FailureTarget"):
                return "failed", said[:TEXT]
            if condition.get("type") in ("Complete", "Succeeded", "SuccessCriteriaMet"):
                return "succeeded", ""
    return None


def _ended_at(main: Mapping) -> str | None:
    conditions = (main.get("status") or {}).get("conditions") or []
    return max((each.get("lastTransitionTime") or "" for each in conditions), default="") or None


def _pod(pod: Mapping) -> dict:
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    index = notes.get("batch.kubernetes.io/job-completion-index", labels.get("training.kubeflow.org/replica-index"))
    statuses = status.get("containerStatuses") or []
    container = next((each for each in statuses if each["name"] == names.CONTAINER), statuses[0] if statuses else {})
    state = container.get("state") or {}
    ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    running = state.get("running") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    scheduled = conditions.get("PodScheduled") or {}
    reason, message = _reason(status, ended, waiting, conditions)
    return {
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "role": labels.get(names.ROLE) or names.WORKER,
        "index": int(index) if str(index or "").isdigit() else None,
        "node": (pod.get("spec") or {}).get("nodeName") or "",
        "host": _host(pod),
        "phase": status.get("phase") or "Unknown",
        "scheduled": bool((pod.get("spec") or {}).get("nodeName")),
        "scheduledAt": scheduled.get("lastTransitionTime") if scheduled.get("status") == "True" else None,
        "exitCode": ended.get("exitCode"),
        "reason": reason,
        "message": message[:TEXT],
        "restarts": container.get("restartCount", 0),
        "startedAt": running.get("startedAt") or ended.get("startedAt"),
        "finishedAt": ended.get("finishedAt"),
        "deleted": bool(metadata.get("deletionTimestamp")),
    }


def _host(pod: Mapping) -> str:
    """What its processes call their host, and print."""
    spec = pod.get("spec") or {}
    if spec.get("hostNetwork"):
        return spec.get("nodeName") or ""
    return spec.get("hostname") or pod["metadata"]["name"]


def _reason(status: Mapping, ended: Mapping, waiting: Mapping, conditions: Mapping) -> tuple[str, str]:
    """The most telling of what Kubernetes says: of the pod (Evicted, NodeLost…), of its container, of the scheduler."""
    if status.get("reason"):
        return status["reason"], status.get("message") or ""
    target = conditions.get("DisruptionTarget") or {}
    if target.get("status") == "True":
        return target.get("reason") or "DisruptionTarget", target.get("message") or ""
    if ended and ended.get("exitCode") != 0:
        return ended.get("reason") or "Error", ended.get("message") or ""
    if waiting:
        return waiting.get("reason") or "", waiting.get("message") or ""
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return scheduled.get("reason") or "Unschedulable", scheduled.get("message") or ""
    return ended.get("reason") or "", ended.get("message") or ""


def _text(pod: Mapping) -> str:
    """One line on a pod."""
    place = f"{pod['name']} on {pod['node']}" if pod["node"] else pod["name"]
    code = f"exit code {pod['exitCode']}" if pod["exitCode"] is not None else ""
    message = " ".join(pod["message"].split()) if pod["exitCode"] is None else ""
    return f"{place}: " + (", ".join(part for part in (pod["reason"], code, message) if part) or pod["phase"])


# ---------------------------------------------------------------- limits


def overdue(run: Mapping, observation: Mapping, now: datetime) -> dict | None:
    """{limit, seconds, why, nodes} of the limit that a run has passed, else None. The run is then to be stopped.

    limit: queue (its pods have no node), start (their images, their containers), run, silence (of all its pods), or
    survivors (one has failed, the others wait for it). nodes: those that it is about, where that can be told. now:
    with a time zone.
    """
    limits, phase = run["limits"], observation["phase"]
    if phase == "queued":
        return _queued(observation, limits["start"], now)
    if phase == "starting":
        return _starting(observation, limits["start"], now)
    if phase == "running":
        return _running(run, observation, now)
    return None


def _queued(observation: Mapping, limit: int, now: datetime) -> dict | None:
    stuck = _stuck(observation, limit, now)
    if stuck:
        return stuck
    waited = _since(observation["createdAt"], now)
    return _late("queue", limit, observation["why"], []) if waited > limit else None


def _starting(observation: Mapping, limit: int, now: datetime) -> dict | None:
    stuck = _stuck(observation, limit, now)
    if stuck:
        return stuck
    placed = [pod["scheduledAt"] for pod in observation["pods"] if pod["scheduledAt"]]
    waited = _since(max(placed, default=None) or observation["createdAt"], now)
    late = [pod["node"] for pod in observation["pods"] if not pod["startedAt"] and pod["node"]]
    return _late("start", limit, observation["why"], late) if waited > limit else None


def _stuck(observation: Mapping, limit: int, now: datetime) -> dict | None:
    """Pods that wait for what will not come, while their devices lie idle."""
    for reasons, seconds in ((HOPELESS, HOPELESS_SECONDS), (PULLING, PULLING_SECONDS)):
        most = min(seconds, limit)
        pods = [pod for pod in observation["pods"] if pod["reason"] in reasons and pod["exitCode"] is None]
        late = [pod for pod in pods if _since(pod["scheduledAt"] or observation["createdAt"], now) > most]
        if late:
            return _late("start", most, _text(late[0]), [pod["node"] for pod in late if pod["node"]])
    return None


def _running(run: Mapping, observation: Mapping, now: datetime) -> dict | None:
    limits, pods = run["limits"], observation["pods"]
    failed = [pod for pod in pods if pod["phase"] == "Failed"]
    ran = _since(observation["startedAt"], now)
    if ran > limits["run"]:
        why = f"it has run for {int(ran)} s, its limit is {limits['run']} s"
        return _late("run", limits["run"], why, [pod["node"] for pod in pods if pod["phase"] not in ENDED])
    if failed:
        ends = [pod["finishedAt"] for pod in failed if pod["finishedAt"]]
        if _since(min(ends, default=None) or observation["createdAt"], now) > SURVIVORS_SECONDS:
            why = f"{_text(failed[0])}; the others wait for it"
            return _late("survivors", SURVIVORS_SECONDS, why, [pod["node"] for pod in failed])
    quiet = _since(observation["lastLogAt"] or observation["startedAt"], now)
    if limits["silence"] < limits["run"] and quiet > limits["silence"]:
        why = f"no pod has printed anything for {int(quiet)} s, the limit is {limits['silence']} s"
        return _late("silence", limits["silence"], why, [])
    return None


def _late(limit: str, seconds: int, why: str, nodes: list[str]) -> dict:
    return {"limit": limit, "seconds": seconds, "why": why, "nodes": sorted(set(nodes))}


def _since(moment: str | None, now: datetime) -> float:
    """Seconds; 0 for a time that is not told or lies ahead, as with clocks that differ."""
    if not moment:
        return 0.0
    try:
        return max(0.0, (now - datetime.fromisoformat(moment)).total_seconds())
    except ValueError:
        return 0.0
