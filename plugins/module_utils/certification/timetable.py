# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a plan may take: its runs, each as long as its limit, begun as soon as their nodes are free. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from math import ceil


def minutes(runs: list[dict], concurrent: Mapping[str, int], most_nodes: int | None = None) -> int:
    """Until the last run has ended. `concurrent`: category -> runs at once; `most_nodes`: in all runs together."""
    waiting: dict[str, list[dict]] = {}
    for run in runs:
        waiting.setdefault(run["category"], []).append(run)
    running: list[tuple[int, int, dict]] = []  # a heap of (end, number, run)
    busy: set[str] = set()
    active: Counter[str] = Counter()
    now = number = 0
    while running or any(waiting.values()):
        for category, runs_ in waiting.items():
            room, left = concurrent.get(category, len(runs_) + active[category]) - active[category], []
            for index, run in enumerate(runs_):
                if room < 1 or (most_nodes is not None and len(busy) >= most_nodes):
                    left += runs_[index:]
                    break
                # a run that waits does not keep a later one from free nodes
                fits = most_nodes is None or len(busy) + len(run["nodes"]) <= most_nodes or not running
                if not fits or not busy.isdisjoint(run["nodes"]):
                    left.append(run)
                    continue
                busy.update(run["nodes"])
                active[category] += 1
                room, number = room - 1, number + 1
                heapq.heappush(running, (now + run["limits"]["run"], number, run))
            waiting[category] = left
        now = running[0][0]
        while running and running[0][0] == now:
            _end, _number, ended = heapq.heappop(running)
            busy.difference_update(ended["nodes"])
            active[ended["category"]] -= 1
    return ceil(now / 60)
