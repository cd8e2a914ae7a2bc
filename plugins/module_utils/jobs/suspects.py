# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that failures have in common although no log and no sensor names it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.memory import Entry


def common(
    attempt: Mapping, blamed: Collection[str], before: Iterable[Entry], least: int, only_blamed: bool = False
) -> str:
    """The one node that at least `least` failures share, this attempt's among them; empty where it is none or several.

    Of a failure that blames nodes only these count; of others all its nodes, or none with `only_blamed`. A job that
    fails again on the same nodes says nothing about any of them.
    """
    here = set(blamed) or (set() if only_blamed else set(attempt.get("nodes") or ()))
    counts = dict.fromkeys(here, 1)
    for entry in before:
        there = entry.blamed if entry.blamed or only_blamed else entry.nodes
        for node in there & here:
            counts[node] += 1
    most = max(counts.values(), default=0)
    top = [node for node, count in counts.items() if count == most]
    return top[0] if most >= least and len(top) == 1 else ""
