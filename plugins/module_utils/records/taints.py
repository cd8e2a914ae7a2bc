# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Kubernetes takes as a taint of a node. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem, nearest

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def problems(taint: object, where: str = "taint") -> list[Problem]:
    """What Kubernetes would refuse in a taint."""

    def problem(part: str, message: str, hint: str) -> Problem:
        return Problem("gate-taint", message, path=f"{where}.{part}" if part else where, hint=hint)

    if not isinstance(taint, Mapping):
        return [problem("", f"a taint is a map, not {taint!r}", "key, value and effect")]
    found = [
        problem(str(name), "is not part of a taint", nearest(name, ("key", "value", "effect")))
        for name in taint
        if name not in ("key", "value", "effect")
    ]
    key, value, effect = taint.get("key"), taint.get("value"), taint.get("effect")
    prefix, slash, name = str(key or "").rpartition("/")
    prefix_good = not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix))
    if not isinstance(key, str) or not prefix_good or not NAME.fullmatch(name):
        hint = "[prefix/]name; the prefix a DNS name, the name letters, digits, '-', '_', '.', at most 63"
        found.append(problem("key", f"{key!r} is not the key of a taint", hint))
    if value not in (None, "") and not (isinstance(value, str) and NAME.fullmatch(value)):
        hint = "letters, digits, '-', '_', '.', at most 63, beginning and ending with a letter or digit"
        found.append(problem("value", f"{value!r} is not the value of a taint", hint))
    if effect not in EFFECTS:
        found.append(problem("effect", f"{effect!r} is not the effect of a taint", nearest(effect, EFFECTS)))
    if not found and key == UNSCHEDULABLE:
        found.append(Problem("gate-taint", "is the node controller's own taint", path=where, hint="cordon: true"))
    return found
