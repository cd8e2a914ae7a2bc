# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many failures at once have one cause, and it is not many nodes: where nothing may be done to jobs or nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import memory, moments
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.evidence import Look
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.memory import Entry
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Blast

# what a switch, a power feed or a link domain that breaks looks like from within a job
FABRIC = ("hardware", "network", "transient-software", "unknown", "")


@dataclass(frozen=True, slots=True)
class Incident:
    """`until`: when the newest of its failures is old enough, in seconds since 1970."""

    domain: str
    why: str
    until: float


def incidents(
    policy: Blast,
    failed: Iterable[tuple[Mapping, Look]],
    entries: Iterable[Entry],
    nodes: Mapping[str, Mapping],
    now: float,
) -> dict[str, Incident]:
    """{domain: incident} of topology domains in which several jobs, or several nodes, failed within the window.

    Jobs whose failures one and the same node explains are no incident of the domain, nor are retries of one job.
    """
    jobs: dict[str, dict[str, frozenset[str]]] = {}
    sick: dict[str, set[str]] = {}
    newest: dict[str, float] = {}
    for job, at, cls, used, culprits, broken in _failures(failed, entries):
        if cls not in FABRIC or not now - policy.window < at <= now:
            continue
        for node in used | broken:
            domain = (nodes.get(node) or {}).get("domain")
            if domain:
                inside = culprits or used
                before = jobs.setdefault(domain, {}).get(job)
                jobs[domain][job] = inside if before is None else (before & inside) or inside
                newest[domain] = max(newest.get(domain, 0), at)
                if node in broken:
                    sick.setdefault(domain, set()).add(node)
    found = {}
    for domain in sorted(jobs):
        common = frozenset.intersection(*jobs[domain].values())
        broken = sorted(sick.get(domain, ()))
        if len(broken) >= policy.nodes:
            why = f"{len(broken)} nodes of {domain} failed"
        elif len(jobs[domain]) >= policy.jobs and len(common) != 1:
            why = f"{len(jobs[domain])} jobs failed in {domain}"
        else:
            continue
        why += f" within {moments.spell(policy.window)}: one cause for all, such as a switch or power, is likely"
        found[domain] = Incident(domain, why, newest[domain] + policy.window)
    return found


def unready(policy: Blast, nodes: Mapping[str, Mapping], now: float) -> str:
    """Why nothing is done where many nodes that nobody closed stopped being ready just now; else empty."""
    count = 0
    for facts in nodes.values():
        since = moments.of(facts.get("readySince"))
        fresh = since is None or since > now - policy.window
        count += facts.get("ready", "True") != "True" and bool(facts.get("open", True)) and fresh
    if count >= policy.unready_least and count > len(nodes) * policy.unready_percent / 100:
        return f"{count} of {len(nodes)} nodes are not ready: rather the network or the control plane than the nodes"
    return ""


class Gates:
    """How many nodes may be advised to be closed in one pass."""

    def __init__(self, policy: Blast, nodes: Mapping[str, Mapping]):
        self.policy, self.nodes = policy, nodes
        self.open = {name for name, facts in nodes.items() if facts.get("open", True)}
        self.bound = max(1, int(len(nodes) * policy.gates_percent / 100 + 1e-9))
        self.new: dict[str, str] = {}

    def admit(self, node: str) -> str:
        """Empty where the node may be closed, or is; else why not."""
        if node not in self.open or node in self.new:
            return ""
        domain = (self.nodes[node].get("domain")) or ""
        if len(self.nodes) - len(self.open) + len(self.new) >= self.bound:
            return f"{self.bound} of {len(self.nodes)} nodes may be closed at a time, and as many are"
        if domain and sum(one == domain for one in self.new.values()) >= self.policy.gates_per_domain:
            return f"another node of {domain} is closed in this pass"
        if len(self.open) - len(self.new) <= 1:
            return "it is the last node that is open"
        self.new[node] = domain
        return ""


def storage(policy: Blast, failed: Iterable[tuple[Mapping, Look]], facts: Mapping, now: float) -> str:
    """Why storage is to be looked at before nodes; empty where it is well or nothing is known."""
    if (facts or {}).get("ok") is False:
        return f"storage is not well{': ' + str(facts['why']) if facts.get('why') else ''}"
    hit = {
        memory.job_of(attempt)
        for attempt, look in failed
        if look.cls == "storage" and now - policy.window < (moments.of(attempt.get("endedAt")) or 0) <= now
    }
    return f"{len(hit)} jobs failed for storage" if len(hit) >= policy.jobs else ""


def _failures(failed: Iterable[tuple[Mapping, Look]], entries: Iterable[Entry]):
    seen = set()
    for attempt, look in failed:
        seen.add(attempt["key"])
        culprits = frozenset(look.sick) or frozenset(look.blamed)
        cls = "hardware" if look.sick else look.cls
        if not look.disruption or look.sick:
            at = moments.of(attempt.get("endedAt")) or 0
            yield memory.job_of(attempt), at, cls, frozenset(attempt.get("nodes") or ()), culprits, frozenset(look.sick)
    for entry in entries:
        if entry.key not in seen and entry.action not in ("none", "requeue"):
            yield entry.job, entry.at, entry.cls, entry.nodes, entry.blamed, frozenset()
