# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certification for a part of its nodes, as those are that a change touches. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

GATE = "validation"  # what nodes are certified behind once they have been changed


def of(certification: Mapping, names: Iterable[str]) -> dict | None:
    """The certification (of `documents.load`) for those of its nodes that are named; None where it names none of them.

    The other parts of its target still hold.
    """
    spec = certification["spec"]
    target = spec["target"]
    wanted = sorted(set(names) & set(target.get("nodeNames") or names))
    if not wanted:
        return None
    gates = list(dict.fromkeys([*spec.get("tolerateGates", ()), GATE]))
    return {**certification, "spec": {**spec, "target": {**target, "nodeNames": wanted}, "tolerateGates": gates}}
