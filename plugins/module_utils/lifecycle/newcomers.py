# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are new and have to be proven before they take work. Pure.

Nodes that were there when the fleet began to be watched are taken as they are. That time is kept in a ConfigMap; it
is the creation of the newest node then, so that only the API server's clock counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import GATE, VALIDATION, gate

NAMESPACE, NAME, KEY = "goodput-fleet", "goodput-lifecycle", "adopted"
_BEFORE_ALL = "1970-01-01T00:00:00Z"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def adoption(nodes: Iterable[Mapping]) -> str:
    """The time to be kept, of all raw nodes: those made later are new."""
    return (
        max(((node.get("metadata") or {}).get("creationTimestamp") or "" for node in nodes), default="") or _BEFORE_ALL
    )


def is_time(text: object) -> bool:
    """Whether it is written as the API server writes times, and so can be compared with them."""
    return isinstance(text, str) and bool(_TIME.fullmatch(text))


def newcomers(nodes: Iterable[Mapping], adopted: str, known: set[tuple[str, str]]) -> list[dict]:
    """Facts of the nodes that are new and in no request yet, by name.

    known: (name, uid) of every node that a request names, whatever became of it: one that a person let in although it
    failed stays in. A node that joined with the taint of the gate, before anybody could write the gate itself, is new
    whenever that was.
    """
    return [
        node
        for node in sorted(nodes, key=lambda each: each["name"])
        if not node["deleted"] and (node["name"], node["uid"]) not in known and _comes(node, adopted)
    ]


def _comes(node: dict, adopted: str) -> bool:
    there = gate(node, VALIDATION)
    if there and there["readable"]:  # it stands for something already, even if that was deleted since
        return False
    return marked(node) or _new(node, adopted)


def marked(node: Mapping) -> bool:
    """Whether it carries the gate's taint and no gate that can be read: admission put it there."""
    there = gate(node, VALIDATION)
    return GATE in node["taints"] and not (there and there["readable"])


def _new(node: Mapping, adopted: str) -> bool:
    return node["gpu"] and node["created"] > adopted and node["certified"]["record"].get("uid") != node["uid"]
