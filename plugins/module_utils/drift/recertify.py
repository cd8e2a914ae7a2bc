# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes to certify again: all that a change of the lock touches, and those that left it by themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DRIFTED = "it has drifted from the lock"


def affected(
    changes: Iterable[Mapping], report: Mapping | None, nodes: Mapping[str, Mapping], selector: Mapping
) -> tuple[list[dict], str]:
    """([{node, why: [texts]}] by name, what is odd about it or "").

    changes: of `lockdiff.diff`; report: the DriftReport against the lock before the change; nodes: {name: labels} of
    the GPU nodes; selector: labels with their values that nodes of the change have.
    """
    why = list(dict.fromkeys(each["why"] for each in changes if each["recertify"]))
    wanted = {key: str(value) for key, value in selector.items()}
    fitting = [name for name, labels in nodes.items() if all(labels.get(key) == wanted[key] for key in wanted)]
    found = {name: list(why) for name in fitting} if why else {}
    for name in report["spec"]["recertify"] if report else ():
        found.setdefault(name, []).append(DRIFTED)
    odd = ""
    if why and not fitting:
        labels = ", ".join(f"{key}={value}" for key, value in wanted.items())
        odd = "the change calls for certifying GPU nodes again, and " + (
            f"none of {len(nodes)} has the labels {labels}" if wanted else "the cluster has none"
        )
    return [{"node": name, "why": found[name]} for name in sorted(found)], odd
