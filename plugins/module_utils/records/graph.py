# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dependency graph: name -> names that come before it. Pure, alphabetical where the graph leaves a choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Edges = Mapping[str, Iterable[str]]


def tiers(edges: Edges) -> dict[str, int]:
    """The longest chain below each name; names outside the graph do not count. Raises ValueError on a cycle."""
    found: dict[str, int] = {}
    waiting = {name: {before for before in edges[name] if before in edges} for name in edges}
    while waiting:
        ready = [name for name, before in waiting.items() if found.keys() >= before]
        if not ready:
            raise ValueError("cycle: " + " -> ".join(cycle(edges) or []))
        # decided together: a name of this round must not count as "before" for another one of it
        found.update({name: max((found[before] + 1 for before in waiting[name]), default=0) for name in ready})
        for name in ready:
            del waiting[name]
    return found


def order(edges: Edges) -> list[str]:
    """Every name after all it depends on: by tier, then alphabetical. Raises ValueError on a cycle."""
    level = tiers(edges)
    return sorted(level, key=lambda name: (level[name], name))


def cycle(edges: Edges) -> list[str] | None:
    """One cycle as a closed path, `[a, b, a]`, starting at its alphabetically first name; None where there is none."""
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        stack = [(start, iter(sorted(edges[start])))]
        while stack and start not in done:
            name, rest = stack[-1]
            if len(path) < len(stack):
                path.append(name)
            for before in rest:
                if before in path:
                    ring = path[path.index(before) :]
                    first = ring.index(min(ring))
                    return [*ring[first:], *ring[:first], ring[first]]
                if before in edges and before not in done:
                    stack.append((before, iter(sorted(edges[before]))))
                    break
            else:
                done.add(name)
                stack.pop()
                path.pop()
    return None
