# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An attempt: one go of one job, with where it ran, how it stands, and what is known of the machines under it. Pure.

for attempt in build(Snapshot(jobs=jobs, pods=pods, nodes=nodes, namespaces=namespaces, gates=gates), now):
    print(attempt["key"], attempt["state"], attempt["reason"], attempt["firstFailure"])

Every list is raw objects as the API server gives them, jobs with those that jobs made, whole or as far as they are
there: what is missing is unknown, and never an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import (
    declared,
    hardware,
    history,
    members,
    moments,
    ranks,
    scheduled,
    shapes,
    topology,
)

NODE_LOST = "NodeLost"
PREEMPTED = "Preempted"
# a pod may come to a node that came after the nodes were read
SETTLED = 60.0
_NODE_ENDED = ("DeletionByTaintManager", "DeletionByPodGC")
_CULPRIT = re.compile(r"(?:pod|Pod) (?P<namespace>[^\s/]+)/(?P<pod>\S+) failed with exit code (?P<code>\d+)")
_INDEX = re.compile(r"-(\d+)-[a-z0-9]{5}$")


@dataclass(slots=True)
class Snapshot:
    """What was read in one pass. gates, events, node_events and known: as hardware.Evidence has them. earlier: what
    history.remember() kept of the attempts. pod_events: v1 Events that tell where pods went, see scheduled.py."""

    jobs: Iterable[Mapping]
    pods: Iterable[Mapping] = ()
    nodes: Iterable[Mapping] = ()
    namespaces: Iterable[Mapping] = ()
    gates: Mapping[str, list] = field(default_factory=dict)
    events: Iterable[Mapping] = ()
    node_events: Iterable[Mapping] = ()
    pod_events: Iterable[Mapping] = ()
    known: Mapping[str, Mapping] = field(default_factory=dict)
    earlier: Mapping[str, Mapping] = field(default_factory=dict)


def build(
    snapshot: Snapshot,
    now: float,
    default_mode: str = "off",
    grace: float = hardware.GRACE,
    domain_labels: Iterable[str] = topology.DOMAIN_LABELS,
) -> list[dict]:
    """The attempts of all jobs that are opted in, in the order of the jobs.

    An attempt is as the rooms that read it expect it: {key, job, number, previous, state, startedAt, endedAt, reason,
    message, ranks, nodes, lostNodes, domains, hardware, firstFailure, missing, problems, signature, progress,
    checkpoint}. signature, progress and checkpoint are None until somebody has looked. now: seconds since 1970.
    """
    jobs = [job for job in snapshot.jobs if isinstance(job, Mapping)]
    pods = members.of_jobs(jobs, (pod for pod in snapshot.pods if isinstance(pod, Mapping)))
    below = members.children(jobs)
    spaces = declared.by_name(snapshot.namespaces)
    evidence = hardware.Evidence(snapshot.gates, snapshot.events, snapshot.node_events, snapshot.known)
    fleet = _Fleet(declared.by_name(snapshot.nodes), tuple(domain_labels))
    went = scheduled.Scheduled(event for event in snapshot.pod_events if isinstance(event, Mapping))
    found = []
    for job in declared.opted_in(jobs, snapshot.namespaces, default_mode):
        meta = shapes.metadata(job)
        uid = shapes.text(meta.get("uid"))
        space = spaces.get(shapes.text(meta.get("namespace")))
        said = declared.read(job, space, default_mode)
        key = "/".join([*(shapes.text(meta.get(part)) for part in ("namespace", "name", "uid")), str(said["number"])])
        mine = (pods.get(uid, []), below.get(uid, []), snapshot.earlier.get(key), went)
        found.append({"key": key, **_attempt(job, said, mine, fleet, evidence, now, grace)})
    return found


class _Fleet:
    """Raw nodes by name, and the domain of each, looked up when it is first asked for."""

    def __init__(self, raw: Mapping[str, Mapping], labels: tuple[str, ...]):
        self.raw, self._labels, self._domains = raw, labels, {}

    def domain(self, name: str) -> str:
        if name not in self._domains:
            self._domains[name] = topology.domain(shapes.labels(self.raw.get(name)), self._labels)
        return self._domains[name]


def _attempt(job: Mapping, said: dict, mine: tuple, fleet: _Fleet, evidence, now: float, grace: float) -> dict:
    pods, below, earlier, went = mine
    meta, status = shapes.metadata(job), shapes.status(job)
    layout = members.Layout(job, below)
    current, older = _newest(pods, layout, shapes.count(status.get("restarts")))
    end = shapes.end(job)
    found = [ranks.read(pod, layout.index(pod), layout.place(pod)[0]) for pod in current]
    missing = _missing(layout, found)
    if end and end["state"] == "failed":
        # that its other pods are deleted is part of that end
        found += history.missing_ranks(earlier, found, _counted_restarts(job, below))
        found += went.ranks(job, below, layout, set(missing) - {rank["index"] for rank in found})
    found.sort(key=lambda rank: (rank["index"] is None, rank["index"] or 0, rank["role"], rank["pod"]))
    nodes = _nodes(found, fleet, now)
    for rank in found:
        if rank["node"] in nodes:
            _settle(rank, nodes[rank["node"]], now)
    state, reason, message = _state(job, below, found, end)
    started = shapes.text(status.get("startTime")) or min(
        (rank["startedAt"] for rank in found if rank["startedAt"]), default=""
    )
    began = moments.of(started) or moments.of(meta.get("creationTimestamp")) or 0.0
    ended_at = end["at"] if end else ""
    until = (moments.of(ended_at) or now) + grace if end else now + grace
    told = {name: evidence.of(node, began, until, now) for name, node in nodes.items()}
    lost = sorted({rank["node"] for rank in found if rank["lost"]})
    return {
        "job": _job(job, below, said, layout, found, older),
        "number": said["number"],
        "previous": said["previous"],
        "state": state,
        "startedAt": started,
        "endedAt": ended_at,
        "reason": reason,
        "message": message,
        "ranks": found,
        "nodes": sorted(nodes),
        "lostNodes": lost,
        "domains": topology.domains(nodes, {name: fleet.domain(name) for name in nodes}),
        "hardware": {name: entries for name, entries in sorted(told.items()) if entries},
        "firstFailure": _first_failure(found, nodes, message, meta) if state in ("failed", "lost", "running") else None,
        "missing": missing,
        "problems": said["problems"],
        "signature": None,
        "progress": None,
        "checkpoint": None,
    }


def _newest(pods: list, layout: members.Layout, restart: int) -> tuple[list, int]:
    """The pods that count, and how often the busiest place was filled before."""
    fresh = [pod for pod in pods if (made_by := members.restart_of(pod)) is None or made_by >= restart]
    fresh.sort(key=_age, reverse=True)
    current, before, alike = [], Counter(), []
    taken = set()
    for pod in fresh:
        place = layout.place(pod)
        if place[2] is None:
            alike.append(pod)
        elif place in taken:
            before[place] += 1
        else:
            taken.add(place)
            current.append(pod)
    # of pods without a place as many count as the job wants at a time
    wanted = max(layout.pods, 1)
    older = max(before.values(), default=0) + -(-max(len(alike) - wanted, 0) // wanted)
    return current + alike[:wanted], older


def _age(pod: Mapping) -> tuple[str, bool, str]:
    """Of two of the same second the one that is not on its way out is the newer."""
    meta = shapes.metadata(pod)
    ends = bool(meta.get("deletionTimestamp")) or shapes.status(pod).get("phase") in ("Failed", "Succeeded")
    return shapes.text(meta.get("creationTimestamp")), not ends, shapes.text(meta.get("name"))


def _nodes(found: list[dict], fleet: _Fleet, now: float) -> dict[str, dict]:
    since: dict[str, float | None] = {}
    for rank in found:
        if rank["node"]:
            at = moments.of(rank["startedAt"] or rank["created"])
            since[rank["node"]] = min(
                (each for each in (since.get(rank["node"]), at) if each is not None), default=None
            )
    nodes = {}
    for name, at in since.items():
        raw = fleet.raw.get(name)
        if raw is None and (not fleet.raw or at is None or now - at < SETTLED):
            raw = {}  # no nodes were read, or it may have come after they were: unknown, not gone
        nodes[name] = hardware.node(name, raw, at, fleet.domain(name))
    return nodes


def _settle(rank: dict, node: dict, now: float) -> None:
    """What the rank's node adds: which one it is, and whether the rank is lost with it."""
    rank["domain"] = node["domain"]
    rank["nodeUid"] = "" if node["replaced"] else node["uid"]
    if rank["phase"] in ("Succeeded", "Failed", history.GONE):
        return
    away = node["replaced"] or (node["ready"] != "True" and bool(node["uid"]))
    rank["lost"] = node["gone"] or (rank["terminating"] and away)
    if rank["lost"] and not rank["finishedAt"]:
        rank["finishedAt"] = node["readySince"] if node["ready"] != "True" and not node["replaced"] else ""


def _state(job: Mapping, below: list, found: list[dict], end: dict | None) -> tuple[str, str, str]:
    """(state, reason, message)."""
    if end:
        reason, message = _why(below, end) if end["state"] == "failed" else (end["reason"], end["message"])
        disruptions = _first_disruptions(found)
        if end["state"] == "failed" and reason in shapes.GENERIC and disruptions:
            if disruptions <= {"PreemptionByScheduler"}:
                reason = PREEMPTED
            elif disruptions <= set(_NODE_ENDED):
                reason = NODE_LOST
        return end["state"], reason, message
    if shapes.suspended(job):
        told = shapes.condition(job, "Suspended") or {}
        return "suspended", shapes.text(told.get("reason")), shapes.text(told.get("message"))
    lost = [rank for rank in found if rank["lost"]]
    if lost:
        names = sorted({rank["node"] for rank in lost})
        return "lost", NODE_LOST, f"pods of {', '.join(names[:8])} cannot end: the node is gone or does not answer"
    if any(rank["phase"] == "Running" for rank in found):
        failed = next((rank for rank in found if ranks.failed(rank) and rank["index"] is not None), None)
        return "running", failed["reason"] if failed else "", failed["message"] if failed else ""
    if not found and shapes.count(shapes.status(job).get("ready")):
        return "running", "", ""  # its pods are not known, but it says so itself
    waiting = next((rank for rank in found if rank["phase"] == "Pending" and rank["reason"]), None)
    return "pending", waiting["reason"] if waiting else "", waiting["message"] if waiting else ""


def _why(below: list, end: dict) -> tuple[str, str]:
    """The reason, from the job below that failed where the job's own says no more than that one did."""
    if end["reason"] in shapes.GENERIC:
        ends = [found for each in below if (found := shapes.end(each)) and found["state"] == "failed"]
        telling = [each for each in ends if each["reason"] not in shapes.GENERIC] or ends
        if telling:
            first = min(telling, key=lambda each: each["at"])
            return first["reason"] or end["reason"], f"{end['message']}: {first['message']}".strip(": ")
    return end["reason"], end["message"]


def _first_disruptions(found: list[dict]) -> set[str]:
    """Of the ranks that did not end because the job did; {""} where one of them ended of itself."""
    return {rank["disruption"] for rank in found if ranks.failed(rank) and not ranks.was_killed(rank)}


def _first_failure(found: list[dict], nodes: Mapping, message: str, meta: Mapping) -> dict | None:
    """{index, node, pod, at, exitCode, signal, ties: [other indexes of the same second]}: what left first, which need
    not be what was to blame. From the scheduler's words where the pod is gone."""
    said = _CULPRIT.search(message)
    named = said["pod"] if said and said["namespace"] == meta.get("namespace") else ""
    failed = [rank for rank in found if ranks.failed(rank)]
    own = [rank for rank in failed if not ranks.was_killed(rank)] or failed
    # one without a time is not first for that
    own.sort(key=lambda rank: (rank["pod"] != named, not rank["finishedAt"], rank["finishedAt"]))
    if own and (not named or own[0]["pod"] == named):
        first = own[0]
        same = [rank["index"] for rank in own[1:] if rank["finishedAt"] == first["finishedAt"] and not named]
        told = {key: first[key] for key in ("index", "node", "pod", "exitCode", "signal")}
        return {**told, "at": first["finishedAt"], "ties": [index for index in same if index is not None]}
    if not named:
        return None
    index, code = _INDEX.search(named), int(said["code"])
    return {
        "index": int(index[1]) if index else None,
        "node": "",
        "pod": named,
        "at": "",
        "exitCode": code,
        "signal": code - 128 if 128 < code <= 192 else None,
        "ties": [],
    }


def _missing(layout: members.Layout, found: list[dict]) -> list[int]:
    """Ranks of which there is no pod, or none any more."""
    if not layout.indexed:
        return []
    there = {rank["index"] for rank in found}
    return [index for index in range(layout.ranks) if index not in there]


def _job(job: Mapping, below: list, said: dict, layout: members.Layout, found: list[dict], older: int) -> dict:
    meta = shapes.metadata(job)
    kind = job.get("kind")
    templates = [part for part in layout.parts if shapes.is_trainer(part[0], part[3], kind)] or layout.parts
    widest = max((template for _name, _jobs, _pods, template in templates), key=shapes.gpus, default={})
    return {
        "apiVersion": shapes.text(job.get("apiVersion")),
        "kind": kind,
        **{key: shapes.text(meta.get(key)) for key in ("namespace", "name", "uid", "resourceVersion")},
        "created": shapes.text(meta.get("creationTimestamp")),
        **{key: said[key] for key in ("queue", "user", "mode", "modeFrom", "maxRetries", "checkpoint", "resumeEnv")},
        "image": shapes.image(widest),
        "shape": {
            "pods": layout.pods,
            "ranks": layout.ranks,
            "gpusPerPod": shapes.gpus(widest),
            "gang": _gang(job, said, layout),
            "elastic": said["elastic"],
            "completionMode": shapes.text(shapes.spec(job).get("completionMode")) if kind == "Job" else "",
        },
        "suspended": shapes.suspended(job),
        # those of its pods whose work is done: another attempt does it again
        "succeeded": shapes.count(shapes.status(job).get("succeeded")) if kind == "Job" else 0,
        "restarts": _restarts(job, below, found, older, layout),
        "neverTouch": said["neverTouch"],
        "neverTouchWhy": said["neverTouchWhy"],
    }


def _gang(job: Mapping, said: dict, layout: members.Layout) -> bool:
    """Whether its pods are only of use together. Pods without an index work off a queue, each for itself; where one
    index may fail for itself, so do they all."""
    if layout.pods <= 1:
        return False
    if job.get("kind") != "Job" or said["queue"]["kind"] == "kai":
        return True
    return layout.indexed and shapes.spec(job).get("backoffLimitPerIndex") is None


def _counted_restarts(job: Mapping, below: list) -> int | None:
    """As its scheduler counts them; None where it does not."""
    told = [value for each in (job, *below) if isinstance(value := shapes.status(each).get("restarts"), int)]
    return max(told, default=None)


def _restarts(job: Mapping, below: list, found: list[dict], older: int, layout: members.Layout) -> int:
    """The scheduler's own: as it counts them itself, or else as the pods tell."""
    told = _counted_restarts(job, below)
    if told is not None:
        return told
    within = max((rank["restarts"] for rank in found), default=0)
    failed = shapes.count(shapes.status(job).get("failed")) if job.get("kind") == "Job" and not shapes.end(job) else 0
    return max(older, within, failed // max(layout.pods, 1))
