# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployment order of a recipe's components: the graph of their `dependsOn`."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records import graph
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest


def deployment_order(components: list[dict]) -> list[str]:
    """Names, each after all it depends on; alphabetical within a tier. Raises InvalidDocument (cycle, unknown name)."""
    return graph.order(_edges(components))


def tiers(components: list[dict]) -> dict[str, int]:
    """Name -> length of the longest chain below it. Raises InvalidDocument (cycle, unknown name)."""
    return graph.tiers(_edges(components))


def _edges(components: list[dict]) -> dict[str, list[str]]:
    edges: dict[str, list[str]] = {}
    problems = []
    for component in components:
        if component["name"] in edges:
            problems.append(Problem("duplicate-name", f"component {component['name']!r} is there twice"))
        edges[component["name"]] = list(component.get("dependsOn") or [])
    for name, before in edges.items():
        for other in before:
            if other not in edges:
                problems.append(
                    Problem(
                        "unknown-dependency",
                        f"{name} depends on {other!r}, which is not there",
                        hint=nearest(other, edges),
                    )
                )
    ring = graph.cycle(edges)
    if ring:
        problems.append(Problem("cycle", "the dependencies form a cycle: " + " -> ".join(ring)))
    if problems:
        raise InvalidDocument(problems)
    return edges
