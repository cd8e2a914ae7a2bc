# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a failure points at. A rank that waited for others is never blamed, whatever it printed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.attempt_log import Hit

NAMED = 64  # ranks, hosts, pods or devices named at most
# who did not come to a collective, by those that did
REPORTS = ("J007", "N001", "N003", "N004", "N005", "N006", "N008", "N017", "N050", "N051")
JOINED = "N002"  # who came, and waits
LOOPBACK = ("localhost", "127.", "::1", "0.0.0.0")


@dataclass(slots=True)
class Scene:
    """What is known of a job's ranks: those that exist, where they run, who failed how, and how far each came."""

    ranks: set[int] = field(default_factory=set)
    world: int = 0
    hosts: dict[int, str] = field(default_factory=dict)
    pods: dict[int, str] = field(default_factory=dict)
    logs: int = 0  # of pods
    hits: list[Hit] = field(default_factory=list)
    sequences: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)

    @property
    def known(self) -> set[int]:
        return self.ranks | set(range(self.world)) if self.world <= 1 << 16 else self.ranks

    @property
    def waiters(self) -> set[int]:
        return {hit.rank for hit in self.hits if hit.signature.waiting and hit.rank is not None}


@dataclass(slots=True)
class Culprits:
    """Ranks that the others waited for, how that is known, and how sure it is."""

    ranks: set[int] = field(default_factory=set)
    how: str = ""  # report | sequence | missing | ""
    confidence: float = 0.0
    missing: set[int] = field(default_factory=set)


def culprits(scene: Scene) -> Culprits:
    """Who was waited for: by a desync report, else by the lowest sequence number, else who alone did not report."""
    waiters, known = scene.waiters, scene.known
    spoke = {hit.rank for hit in scene.hits if hit.signature.cascade != "always"}
    missing = known - waiters - spoke if waiters else set()
    reported = {rank for hit in scene.hits if hit.signature.id in REPORTS for rank in hit.ranks}
    if not reported:
        joined = {rank for hit in scene.hits if hit.signature.id == JOINED for rank in hit.ranks}
        reported = joined if known and len(joined) * 2 <= len(known) else set()
    # nearly all ranks cannot be what nearly all ranks wait for
    if reported and not (len(known | reported) > 2 and len(reported) * 2 > len(known | reported)):
        return Culprits(reported, "report", 0.9, missing)
    behind = _behind(scene.sequences)
    if behind:
        return Culprits(behind, "sequence", 0.7, missing)
    # ranks count from 0: those of which nothing is known did not report either
    unseen = max(known, default=0) + 1 - len(known)
    if missing and not unseen and len(waiters) >= len(missing) and len(missing) <= max(1, len(known) // 8):
        return Culprits(missing, "missing", 0.5, missing)
    return Culprits(missing=missing)


def _behind(sequences: dict[tuple[str, int], tuple[int, int]]) -> set[int]:
    """Ranks whose group's others came further, where they are the fewer; of the group that shows it best."""
    groups: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for (group, rank), came in sequences.items():
        groups[group][rank] = came
    best: set[int] = set()
    # what a status line says comes before the number of what a rank waited for
    for group in sorted(groups, key=lambda name: (name == "waits", -len(groups[name]), name)):
        came = groups[group]
        lowest = min(came.values())
        ranks = {rank for rank, value in came.items() if value == lowest}
        if len(ranks) * 2 < len(came) or (len(came) == 2 and len(ranks) == 1):
            best = ranks
            break
    return best


def of(root: Hit, scene: Scene, found: Culprits) -> dict:
    """The signature's `blame`: {kind, ranks, hosts, pods, devices}. `pods` are where the named ranks wrote."""
    same = [hit for hit in scene.hits if hit.signature.id == root.signature.id and not hit.collateral]
    word = root.signature.blame
    if root.signature.id in REPORTS or word in ("compute", "unknown", "see-block", "absent-node"):
        return _ranks(found, scene)
    if word == "none":
        return _ranks(found, scene) if root.signature.waiting else nobody()
    if word == "peer":
        hosts = _far({name for hit in same for name in hit.peers})
        # survivors of one death name many
        if found.ranks and (not hosts or root.signature.cascade != "never"):
            return _ranks(found, scene)
        return named("peer", set(), hosts, scene) if hosts else nobody()
    if word == "pair":
        ends = _ends(same)
        return named("pair", set(), ends, scene) if ends else nobody()
    if word in ("named-node", "store-host"):
        own = [hit for hit in scene.hits if hit.signature.component == root.signature.component]
        if word == "store-host":
            own = [hit for hit in scene.hits if hit.signature.blame == word]
        hosts = {name for hit in same for name in hit.hosts} or {name for hit in own for name in hit.hosts}
        if word == "store-host":
            hosts = _far(hosts)
        ranks = {rank for hit in same for rank in hit.ranks or {hit.rank} if rank is not None}
        if not hosts and not ranks:
            return nobody()
        return named(word, ranks if word == "named-node" else set(), hosts, scene)
    if word == "named-rank":
        ranks = {rank for hit in same for rank in hit.ranks}
        return named("named-rank", ranks, set(), scene) if ranks else _ranks(found, scene)
    return _emitters(root, same, scene, word)


def _ends(same: list[Hit]) -> set[str]:
    """The ends of a connection that failed: of several, the end that all have in common, else of the first."""
    ends = [(_far(hit.hosts), _far(hit.peers)) for hit in same]
    ends = [(near, far) for near, far in ends if near | far]
    if not ends:
        return set()
    common = set.intersection(*(near | far for near, far in ends))
    if len(ends) > 1 and len(common) == 1:
        return common
    near, far = ends[0]
    if len(near) < 2 and len(far) < 2:
        return near | far
    # several that lost one name the one; several that lost several, or whom none names, name nobody
    if len(far) == 1:
        return far
    return near if len(near) == 1 and far else set()


def _emitters(root: Hit, same: list[Hit], scene: Scene, kind: str) -> dict:
    ranks = {hit.rank for hit in same if hit.rank is not None}
    hosts = {name for hit in same for name in hit.hosts}
    everywhere = len(ranks) >= 2 and len(ranks) * 2 > len(scene.known)
    one_node = root.signature.cls in ("hardware", "network") and len(hosts | _places(ranks, scene)) == 1
    if everywhere and not one_node:
        return nobody()  # what all ranks print is of no node
    if not ranks and not hosts and not root.pod:
        failed = [hit for hit in scene.hits if hit.signature.component == "slurm" and hit.hosts and not hit.collateral]
        # where each printed it, the first to end is any
        each = sum(hit.count for hit in same) >= len({name for hit in failed for name in hit.hosts}) > 1
        hosts = set(failed[0].hosts) if failed and not each else set()
    found = named(kind, ranks, hosts, scene)
    found["devices"] = sorted({name for hit in same for name in hit.devices})[:NAMED]
    if not ranks:
        pods = {hit.pod for hit in same if hit.pod}
        if len(pods) >= 2 and len(pods) * 2 > scene.logs:
            return nobody()
        found["pods"] = sorted(pods)[:NAMED]
    return found


def _places(ranks: set[int], scene: Scene) -> set[str]:
    return {scene.hosts[rank] for rank in ranks if rank in scene.hosts}


def _ranks(found: Culprits, scene: Scene) -> dict:
    return named("named-rank", found.ranks, set(), scene) if found.ranks else nobody()


def named(kind: str, ranks: set[int], hosts: set[str], scene: Scene) -> dict:
    """Blame of these; the hosts of the ranks where none is given."""
    first = sorted(ranks)[:NAMED]
    hosts = hosts or _far(_places(ranks, scene))
    pods = sorted({scene.pods[rank] for rank in first if scene.pods.get(rank)})
    return {"kind": kind, "ranks": first, "hosts": sorted(hosts)[:NAMED], "pods": pods[:NAMED], "devices": []}


def nobody() -> dict:
    """Blame of none."""
    return {"kind": "none", "ranks": [], "hosts": [], "pods": [], "devices": []}


def _far(hosts: set[str]) -> set[str]:
    """Without names that every host has for itself."""
    return {name for name in hosts if not name.startswith(LOOPBACK)}
