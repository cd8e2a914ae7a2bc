# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From findings and parts to a DriftReport."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.drift.ignore import Rules

SEVERITIES = ("error", "warning", "info")
EXIT_CODES = {"in_sync": 0, "drifted": 3, "unknown": 4}
# what a certification vouches for: a node where one of these changed is not the node that passed
CERTIFIED_FACTS = ("driver", "kernel", "osImage", "containerRuntime", "accelerator", "gpus")


class Outcome:
    """What a comparison collects: findings, what could not be determined, and nodes to certify again."""

    def __init__(self):
        self.findings: list[dict] = []
        self.parts: dict[str, dict] = {}
        self.recertify: list[tuple[dict, str]] = []  # (the finding that is why, node)

    def add(self, item: dict, recertify: bool = False) -> None:
        self.findings.append(item)
        if recertify:
            self.recertify.extend((item, name) for name in item["nodes"])

    def unknown(self, part: str, reason: str) -> None:
        """The part could not be determined. Reasons for one part add up."""
        known = self.parts.get(part, {})
        if known.get("status") == "unknown" and reason not in known["reason"]:
            reason = f"{known['reason']}; {reason}"
        self.parts[part] = {"status": "unknown", "reason": reason}


def document(name: str, outcome: Outcome, rules: Rules, lock_digest: str | None = None) -> dict:
    """The DriftReport. Drift that was found outranks what is unknown; unknown outranks in_sync."""
    ignored = {id(item) for item in outcome.findings if rules.match(item)}
    left = [item for item in outcome.findings if id(item) not in ignored]
    parts = {}
    for part, state in sorted(outcome.parts.items()):
        if state["status"] == "unknown" and rules.match(_as_finding(part, state)):
            state = {"status": "ok", "reason": f"ignored: {state['reason']}"}
        parts[part] = state
    left += rules.unused()
    left.sort(key=lambda item: (SEVERITIES.index(item["severity"]), item["path"], item["code"], item["nodes"]))
    counts = {severity: sum(item["severity"] == severity for item in left) for severity in SEVERITIES}
    if counts["error"] or counts["warning"]:
        status = "drifted"
    elif any(state["status"] == "unknown" for state in parts.values()):
        status = "unknown"
    else:
        status = "in_sync"
    recertify = {node for item, node in outcome.recertify if id(item) not in ignored}
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "DriftReport",
        "metadata": {"name": name, **({"lock": lock_digest} if lock_digest else {})},
        "spec": {
            "status": status,
            "exitCode": EXIT_CODES[status],
            "findings": left,
            "parts": parts,
            "ignored": rules.result(),
            "recertify": sorted(recertify),
            "counts": counts,
        },
    }


def _as_finding(part: str, state: dict) -> dict:
    """An unknown part as a finding, so that a rule may accept it: code == 'unknown' && path == 'nodes/driver'."""
    return {
        "code": "unknown",
        "severity": "unknown",
        "component": None,
        "path": part,
        "expected": None,
        "found": None,
        "nodes": [],
        "message": state["reason"],
        "hint": "",
    }
