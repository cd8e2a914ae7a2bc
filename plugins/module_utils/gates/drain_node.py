# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain asks of a node before it moves pods away: that it is closed, and since when. Pure."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_
from ansible_collections.goodput.fleet.plugins.module_utils.gates.external import is_cordoned


def _gates(node: dict) -> dict[str, dict]:
    return {gate["owner"]: gate for gate in gates_.read((node.get("metadata") or {}).get("annotations"))}


def is_open(node: dict, owner: str | None = None) -> str:
    """Why pods would come back to a raw node, or "" when nothing new is placed on it.

    With `owner`, that gate must be there: when somebody has lifted it, the drain has lost its ground. A gate counts
    only with its taint. Other tools' taints do not count: many reserve a pool for the very pods that are drained.
    """
    held = _gates(node)
    names = ", ".join(held)
    if owner is not None and owner not in held:
        return f"it has no gate of {owner}" + (f" (gates there: {names})" if held else "")
    if is_cordoned(node):
        return ""
    if not held:
        return "it has no gate and is not cordoned"
    there = {gates_.identity(taint) for taint in (node.get("spec") or {}).get("taints") or []}
    if any(gate["taint"] and gates_.identity(gate["taint"]) in there for gate in held.values()):
        return ""
    return f"the taint of its gate ({names}) is gone and it is not cordoned"


def since(node: dict, owner: str | None, began: float) -> float:
    """Unix time from which deadlines count: when the gate was set, `began` when no gate tells.

    Of several gates the newest counts, which gives the workloads the most time. A time that lies ahead is a clock
    that is wrong, and counts as `began`.
    """
    held = _gates(node)
    chosen = [held[owner]] if owner in held else list(held.values())
    times = [moment for gate in chosen if (moment := _unix(gate["since"])) is not None]
    return min(max(times), began) if times else began


def _unix(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


def identity(node: dict) -> str:
    return (node.get("metadata") or {}).get("uid") or ""


def is_ready(node: dict) -> bool:
    """Unknown, as of a node whose kubelet is dead, is not ready."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
