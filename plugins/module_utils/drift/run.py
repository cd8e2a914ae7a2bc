# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a user names (files, data, a cluster) to a DriftReport."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.drift import compare, diff, expected, observe
from ansible_collections.goodput.fleet.plugins.module_utils.drift.ignore import Rules
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, snapshots

SHOWN = 10  # findings in a task's message; the report has them all


def report(
    connect: Callable,
    readers: dict[str, Callable],
    *,
    lock=None,
    snapshot=None,
    baseline=None,
    namespaces: Iterable[str] = (),
    ignore: Iterable[str] = (),
    node_keys: Iterable[str] = (),
    name: str | None = None,
) -> dict:
    """The DriftReport of `lock` or `baseline` against `snapshot`, or against the live cluster that `connect` reaches.

    Raises FleetError for bad input and for a cluster that cannot be reached.
    """
    Rules(list(ignore))  # a malformed rule is told before anything is read
    recipe = lockfile.load_lock(lock) if lock is not None else None
    before = snapshots.load(baseline) if baseline is not None else None
    if snapshot is not None:
        now = snapshots.load(snapshot)
        if name:
            now = {**now, "metadata": {**now["metadata"], "name": name}}
    else:
        spaces = list(namespaces) or _covered(recipe, before)
        wanted = (lambda releases: expected.wanted(recipe, releases)) if recipe else None
        now = observe.take(connect(), readers, spaces, wanted, name)
    if recipe:
        return compare.compare(recipe, now, ignore, node_keys)
    return diff.compare(before, now, ignore)


def _covered(lock: dict | None, baseline: dict | None) -> list[str]:
    if lock:
        return sorted({component["namespace"] for component in lock["spec"]["components"]})
    return list((baseline or {}).get("spec", {}).get("namespaces") or ())


def summary(document: dict) -> str:
    """A few lines for people: the status, the worst findings, what is unknown."""
    spec, name = document["spec"], document["metadata"]["name"]
    counts = ", ".join(
        f"{number} {severity}{'s' if number > 1 and severity != 'info' else ''}"
        for severity, number in spec["counts"].items()
        if number
    )
    lines = [f"{name}: {spec['status'].replace('_', ' ')}{f' ({counts})' if counts else ''}"]
    lines += [f"{item['severity']}: {item['message']}" for item in spec["findings"][:SHOWN]]
    if len(spec["findings"]) > SHOWN:
        lines.append(f"and {len(spec['findings']) - SHOWN} more")
    unknown = [(part, state["reason"]) for part, state in spec["parts"].items() if state["status"] == "unknown"]
    lines += [f"unknown: {part}: {reason}" for part, reason in unknown]
    return "\n".join(lines)
