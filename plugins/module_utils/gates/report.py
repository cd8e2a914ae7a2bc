# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_gate_info says about nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.gates import model
from ansible_collections.goodput.fleet.plugins.module_utils.gates.external import is_cordoned
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import boot_id, name_of, ready


def describe(nodes: Iterable[Mapping], pool_taints: Iterable[str] = ()) -> list[dict]:
    """Raw nodes as {name, open, ready, unschedulable, bootId, gates, external}, by name."""
    pools = tuple(pool_taints)
    found = [
        {
            "name": name_of(node),
            "ready": ready(node),
            "unschedulable": is_cordoned(node),
            "bootId": boot_id(node),
            **model.state(node, pools),
        }
        for node in nodes
    ]
    return sorted(found, key=lambda each: each["name"])


def counts(found: Iterable[Mapping]) -> dict[str, int]:
    found = list(found)
    return {
        "nodes": len(found),
        "open": sum(each["open"] for each in found),
        "gated": sum(bool(each["gates"]) for each in found),
        "external": sum(any(entry["holds"] for entry in each["external"]) for each in found),
        "notReady": sum(each["ready"] != "True" for each in found),
    }


def owners(found: Iterable[Mapping]) -> dict[str, int]:
    return dict(sorted(Counter(gate["owner"] for each in found for gate in each["gates"]).items()))


def only(found: Iterable[Mapping], which: str = "all", owner: str | None = None) -> list[Mapping]:
    """`which`: all, gated, closed or open."""
    kept = {
        "all": lambda each: True,
        "gated": lambda each: bool(each["gates"]),
        "closed": lambda each: not each["open"],
        "open": lambda each: each["open"],
    }[which]
    return [
        each for each in found if kept(each) and (not owner or any(gate["owner"] == owner for gate in each["gates"]))
    ]
