# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that keep killing jobs: a score per node that decays, from what is remembered of all jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.memory import Entry
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Lemon


def scores(policy: Lemon, entries: Iterable[Entry], nodes: Mapping[str, Mapping], now: float) -> dict[str, dict]:
    """{node: {score, jobs: [names], lemon: bool}} for every node that was ever blamed in the policy's window.

    A failure weighs 1, shared by the nodes it is blamed on, and half after each half-life. Failures of one job alone
    make no lemon: the job may be at fault. A certification that the node passed (`certifiedAt`) clears what was before.
    """
    found: dict[str, dict] = {}
    for entry in entries:
        age = now - entry.at
        if not 0 <= age <= policy.window:
            continue
        for node in entry.blamed:
            certified = moments.of((nodes.get(node) or {}).get("certifiedAt"))
            if certified is not None and certified >= entry.at:
                continue
            one = found.setdefault(node, {"score": 0.0, "jobs": set()})
            one["score"] += 0.5 ** (age / policy.half_life) / len(entry.blamed)
            one["jobs"].add(entry.job)
    return {
        node: {
            "score": round(one["score"], 3),
            "jobs": sorted(one["jobs"]),
            "lemon": one["score"] >= policy.score and len(one["jobs"]) >= policy.jobs,
        }
        for node, one in sorted(found.items())
    }


def names(policy: Lemon, entries: Iterable[Entry], nodes: Mapping[str, Mapping], now: float) -> dict[str, str]:
    """{node: why} of the lemons, among them nodes that the fleet's facts give such a score (`lemon`)."""
    found = {
        node: f"blamed for failures of {len(one['jobs'])} jobs (score {one['score']:.1f}): {', '.join(one['jobs'][:4])}"
        for node, one in scores(policy, entries, nodes, now).items()
        if one["lemon"]
    }
    for node, facts in nodes.items():
        if (facts.get("lemon") or 0) >= policy.score:
            found.setdefault(node, f"has a score of {facts['lemon']:.1f} as a node that kills jobs")
    return dict(sorted(found.items()))
