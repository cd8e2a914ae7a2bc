# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes to certify again: all that a change of the lock touches, and those that left it by themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DRIFTED = "it has drifted from the lock"


def affected(
    changes: Iterable[Mapping], report: Mapping | None, nodes: Iterable[str], selector: str = ""
) -> tuple[list[dict], str]:
    """([{node, why: [texts]}] by name, what is odd about it or "").

    changes: of `lockdiff.diff`; report: the DriftReport against the lock before the change; nodes: names of the GPU
    nodes that the change is for, which `selector` has found.
    """
    why, nodes = list(dict.fromkeys(each["why"] for each in changes if each["recertify"])), list(nodes)
    found = {name: list(why) for name in nodes} if why else {}
    for name in report["spec"]["recertify"] if report else ():
        found.setdefault(name, []).append(DRIFTED)
    odd = ""
    if why and not nodes:
        where = f"the selector {selector} fits none" if selector else "the cluster has none"
        odd = f"the change calls for certifying GPU nodes again, and {where}"
    return [{"node": name, "why": found[name]} for name in sorted(found)], odd
