# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver a roll-out is for, and the id that its gates and requests carry. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

_DRIVER = re.compile(r"[0-9][-+.0-9A-Za-z]{0,62}")
_HINT = "give the driver's version, as nodes tell it, such as 580.105.08"


def pinned(lock: Mapping) -> str:
    """The driver that a RecipeLock pins on nodes. Raises InvalidDocument when it pins none, or several."""
    found = {}
    for component in lock["spec"]["components"]:
        fact = (component.get("nodeFacts") or {}).get("driver")
        if fact:
            found[component["name"]] = str(fact["value"])
    if not found:
        what = f"{lock['metadata']['name']} pins no driver on nodes, so there is nothing to update to"
        raise InvalidDocument(Problem("no-driver", what, path="lock", hint=_HINT))
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} {driver}" for name, driver in sorted(found.items()))
        raise InvalidDocument(Problem("drivers", f"pins more than one driver: {said}", path="lock", hint=_HINT))
    return checked(next(iter(found.values())), "lock")


def checked(driver: str, where: str = "driver") -> str:
    """The same version. Raises InvalidDocument for what is none: no node would ever tell it."""
    if not _DRIVER.fullmatch(driver):
        raise InvalidDocument(Problem("driver", f"{driver!r} is no driver version", path=where, hint=_HINT))
    return driver


def rollout_id(driver: str, scope: object = "") -> str:
    """One per driver and per what selects the nodes (a selector, or names), so that a run finds its own gates."""
    return "du-" + digest.sha256({"driver": checked(driver), "scope": scope})[len("sha256:") :][:12]
