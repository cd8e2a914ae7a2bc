# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock without some of its components."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import sha256
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, Problem


def without(lock: dict, names: Iterable[str]) -> dict:
    """The lock less the components, with its own digest. Raises Conflict naming who still depends on them."""
    gone = set(names)
    if not gone:
        return lock
    kept = [component for component in lock["spec"]["components"] if component["name"] not in gone]
    problems = []
    for name in sorted(gone):
        users = sorted(component["name"] for component in kept if name in component["dependsOn"])
        if users:
            problems.append(
                Problem(
                    "needed",
                    f"{name} cannot be left out: {', '.join(users)} depend{'s' if len(users) == 1 else ''} on it",
                    path="exclude",
                    hint="leave those out as well, or change dependsOn in an overlay",
                )
            )
    if not kept:
        problems.append(Problem("nothing-left", "every component is left out", path="exclude"))
    if problems:
        raise Conflict(problems)
    order = [name for name in lock["spec"]["order"] if name not in gone]
    return sealed(lock, {"components": kept, "order": order})


def sealed(lock: dict, changes: dict) -> dict:
    """The lock with other parts in its spec and the digest that belongs to them."""
    spec = {**lock["spec"], **changes}
    return {**lock, "metadata": {**lock["metadata"], "digest": sha256(spec)}, "spec": spec}
