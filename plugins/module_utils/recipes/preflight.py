# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock against a cluster's snapshot, before anything is installed: all that is violated, at once."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records import constraints
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Problem


class Violated(FleetError):
    """The cluster does not meet the recipe's constraints, or it is not known whether it does."""

    code = "constraint-violated"


def judge(lock: dict, snapshot: dict) -> list[dict]:
    """Each constraint of the lock with its status; see `constraints.evaluate`."""
    return constraints.evaluate(lock["spec"]["constraints"], snapshot)


def violations(results: list[dict], fail_on_unknown: bool = True) -> tuple[list[Problem], list[Problem]]:
    """(errors, warnings) of judged constraints. Unknown counts as a violation unless told otherwise."""
    errors, warnings = [], []
    for result in results:
        if result["status"] == "pass":
            continue
        severe = result["severity"] == "error" and (result["status"] == "fail" or fail_on_unknown)
        problem = Problem(
            f"constraint-{result['status']}",
            f"{result['value']}: {result['reason']}" + _others(result),
            path=f"constraints.{result['name']}",
            hint=result.get("remediation", ""),
            severity="error" if severe else "warning",
        )
        (errors if severe else warnings).append(problem)
    return errors, warnings


def _others(result: dict) -> str:
    count = len(result["nodes"])
    return f" ({count} nodes: {', '.join(result['nodes'][:10])}{', ...' if count > 10 else ''})" if count > 1 else ""
