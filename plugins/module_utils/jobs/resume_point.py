# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From which checkpoint a job can go on, where this host can see its checkpoints. Nothing is loaded or changed."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import survey
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def here(path: str, roots: Mapping[str, str]) -> str | None:
    """A path of the job's as this host has it; None where no root covers it. The longest root counts."""
    path = posixpath.normpath(path)
    for root in sorted(roots, key=len, reverse=True):
        inside = posixpath.normpath(root)
        if path == inside or path.startswith(inside.rstrip("/") + "/"):
            return posixpath.normpath(f"{roots[root]}/{posixpath.relpath(path, inside)}")
    return None


def look(path: str, roots: Mapping[str, str], settle: float = survey.SETTLE) -> tuple[dict | None, str]:
    """(an attempt's `checkpoint`: {step, path, complete, torn: [{path, why}]}, what is not known).

    Paths are the job's own. None where nothing can be said: no root covers it, or it cannot be read.
    """
    local = here(path, roots)
    if local is None:
        return None, f"checkpoints in {path}: no root of checkpoint_roots covers it, so they were not looked at"
    try:
        found = survey.survey(local, settle=settle)
    except FleetError as error:
        return None, f"checkpoints in {path} cannot be read: {error}"

    def theirs(place: str) -> str:
        return posixpath.normpath(f"{path}/{posixpath.relpath(place, local)}")

    newest = found["newest"]
    torn = [{"path": theirs(one["path"]), "why": one["why"]} for one in found["torn"]]
    if newest is None and not torn:
        return None, "" if not found["unread"] else f"checkpoints in {path}: {'; '.join(found['unread'][:3])}"
    return {
        "step": newest["step"] if newest else None,
        "path": theirs(newest["path"]) if newest else "",
        "complete": newest is not None,
        "torn": torn,
    }, ""
