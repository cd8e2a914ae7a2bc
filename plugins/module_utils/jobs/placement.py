# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is there room for a job without certain nodes, and where best? A gang is never made smaller unless it says it may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Place:
    """`fits`: True, False, or None where what is free is not known. `pods`: as many as fit, where `fits` is False.
    `prefer`: domains, the best first. `take`: {node: pods} that the job will likely use. `stranded`: {excluded node:
    nodes of its domain that the job cannot use without it}.
    """

    fits: bool | None
    pods: int
    prefer: list[str] = field(default_factory=list)
    take: dict[str, int] = field(default_factory=dict)
    stranded: dict[str, int] = field(default_factory=dict)
    why: str = ""


def place(
    attempt: Mapping,
    nodes: Mapping[str, Mapping],
    without: Collection[str] = (),
    shun: Collection[str] = (),
    taken: Mapping[str, int] | None = None,
) -> Place:
    """Room for all pods of the attempt on open, ready nodes except `without`; domains in `shun` come last.
    `taken` are GPUs per node that jobs decided about just before will use.

    What the attempt's own pods still hold counts as free. A job that a queue manages waits for its turn in the queue,
    so for it only what exists counts, not what is free at the moment. A node whose health is unknown is no sick node.
    """
    shape = attempt["job"].get("shape") or {}
    wanted, per_pod = workers(attempt), shape.get("gpusPerPod") or 0
    own = Counter(
        rank.get("node") for rank in attempt.get("ranks") or () if rank.get("phase") in ("Running", "Pending")
    )
    slots = {
        name: _slots(attempt, own[name], facts, per_pod, (taken or {}).get(name, 0))
        for name, facts in nodes.items()
        if name not in without and usable(facts)
    }
    stranded = _stranded(nodes, slots, without, wanted, per_pod)
    unknown = sorted(name for name, room in slots.items() if room is None)
    known = {name: room for name, room in slots.items() if room}
    total = sum(known.values())
    if not wanted:
        return Place(None, 0, stranded=stranded, why="how many pods the job has is not known")
    if total < wanted and unknown:
        return Place(None, total, stranded=stranded, why=f"what is free is not known of {len(unknown)} nodes")
    if total < wanted:
        closed = sum(not usable(facts) for facts in nodes.values())
        left = f", {len(set(without) & nodes.keys())} are left out" if set(without) & nodes.keys() else ""
        why = (
            f"{wanted} pods with {per_pod} GPUs each are wanted, {total} fit: "
            f"of {len(nodes)} nodes {closed} are closed or not ready{left}"
        )
        return Place(False, total, stranded=stranded, why=why)
    prefer = _domains(attempt, nodes, known, wanted, shun)
    return Place(True, wanted, prefer, _take(attempt, nodes, known, wanted, prefer), stranded)


def workers(attempt: Mapping) -> int:
    """Pods that want the GPUs; a launcher beside them wants none. 0: not known."""
    shape = attempt["job"].get("shape") or {}
    return shape.get("ranks") or shape.get("pods") or 0


def usable(facts: Mapping) -> bool:
    return bool(facts.get("open", True)) and facts.get("ready", "True") == "True" and facts.get("verdict") != "faulty"


def _slots(attempt: Mapping, own: int, facts: Mapping, per_pod: int, taken: int) -> int | None:
    """Pods that fit on the node, of which `own` are there by now. None: not known."""
    if not per_pod:
        return workers(attempt)
    managed = ((attempt["job"].get("queue") or {}).get("managed")) or False
    free = facts.get("gpus") if managed else facts.get("freeGpus")
    if free is None:
        return None
    if not managed:
        free = min(free + own * per_pod, facts.get("gpus") or free + own * per_pod)
    return max(0, free - taken) // per_pod


def _domains(
    attempt: Mapping, nodes: Mapping[str, Mapping], slots: Mapping[str, int], wanted: int, shun: Collection[str]
) -> list[str]:
    """The tightest domain that holds the whole job, that of the last attempt first; else the fewest that do."""
    room: dict[str, int] = {}
    for name, count in slots.items():
        domain = nodes[name].get("domain") or ""
        if domain:
            room[domain] = room.get(domain, 0) + count
    before = set(attempt.get("domains") or ()) - set(shun)
    whole = [domain for domain, count in room.items() if count >= wanted]
    if whole:
        return sorted(whole, key=lambda one: (one in shun, one not in before, room[one], one))
    chosen: list[str] = []
    for domain in sorted(room, key=lambda one: (one in shun, -room[one], one not in before, one)):
        chosen.append(domain)
        wanted -= room[domain]
        if wanted <= 0:
            break
    return chosen


def _take(
    attempt: Mapping, nodes: Mapping[str, Mapping], slots: Mapping[str, int], wanted: int, prefer: list[str]
) -> dict[str, int]:
    rank = {domain: index for index, domain in enumerate(prefer)}
    own = set(attempt.get("nodes") or ())
    taken: dict[str, int] = {}
    for name in sorted(slots, key=lambda one: (rank.get(nodes[one].get("domain"), len(rank)), one not in own, one)):
        taken[name] = min(slots[name], wanted)
        wanted -= taken[name]
        if wanted <= 0:
            break
    return taken


def _stranded(
    nodes: Mapping[str, Mapping], slots: Mapping[str, int | None], without: Collection[str], wanted: int, per_pod: int
) -> dict[str, int]:
    """What leaving a node out costs: the rest of its domain, where the job fits into that domain only with the node."""
    wide = {node: nodes[node].get("domain") for node in without if node in nodes and nodes[node].get("domain")}
    if not wide or not per_pod:
        return {}
    room: dict[str, int] = {}
    count: dict[str, int] = {}
    for name in slots:
        domain = nodes[name].get("domain")
        room[domain] = room.get(domain, 0) + (nodes[name].get("gpus") or 0) // per_pod
        count[domain] = count.get(domain, 0) + 1
    return {
        node: count.get(domain, 0)
        for node, domain in sorted(wide.items())
        if room.get(domain, 0) < wanted <= room.get(domain, 0) + (nodes[node].get("gpus") or 0) // per_pod
    }
