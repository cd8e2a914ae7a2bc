# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has this cluster left its recipe? A pure function of a RecipeLock and a Snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.drift import components, nodes, verdict
from ansible_collections.goodput.fleet.plugins.module_utils.drift.ignore import Rules


def compare(lock: dict, snapshot: dict, ignore: Iterable[str] = (), node_keys: Iterable[str] = ()) -> dict:
    """The DriftReport of checked documents.

    `ignore`: JMESPath rules over a finding. `node_keys`: globs of the labels and taints that nodes of one group share.
    What could not be read or told makes a part `unknown`; it is never taken for a match. Raises InvalidDocument for a
    malformed rule or manifest.
    """
    rules = Rules(list(ignore))
    outcome = verdict.Outcome()
    for part, state in snapshot["spec"]["parts"].items():
        # only what the comparison turns out to need makes the result unknown
        note = state.get("reason", "")
        if state["status"] != "ok":
            note = f"not needed ({note})" if note else "not needed"
        outcome.parts[part] = {"status": "ok", **({"reason": note} if note else {})}
    components.compare(lock, components.Cluster(snapshot), outcome)
    nodes.compare(lock, snapshot, outcome, node_keys)
    return verdict.document(snapshot["metadata"]["name"], outcome, rules, lock["metadata"].get("digest"))
