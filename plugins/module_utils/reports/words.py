# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words that pages use for columns, documents and states."""

from __future__ import annotations

TITLES = {
    "drift": "Drift",
    "health": "Component health",
    "install": "Install",
    "certification": "Certification",
    "recovery": "Job recovery",
}
VERDICTS = {
    "pass": "All is as it should be",
    "fail": "Something is not as it should be",
    "unknown": "Not everything could be determined",
}
STATUS = {
    "in_sync": "in sync",
    "drifted": "drifted",
    "unknown": "unknown",
    "healthy": "healthy",
    "unhealthy": "unhealthy",
    "pass_unbounded": "passed, without a bound",
    "pass": "passed",
    "fail": "failed",
    "incomplete": "incomplete",
    "recovered": "recovered",
    "failed": "failed",
    "quiet": "no incident",
}
# per document: the fields worth a column, and what they are called
COLUMNS = {
    "drift": {
        "severity": "Severity",
        "code": "Code",
        "component": "Component",
        "path": "Where",
        "expected": "Expected",
        "found": "Found",
        "nodes": "Nodes",
        "hint": "What to do next",
    },
    "health": {
        "severity": "Severity",
        "component": "Component",
        "path": "Object",
        "code": "Code",
        "message": "What is wrong",
        "nodes": "Nodes",
        "hint": "What to do next",
    },
    "install": {"severity": "Status", "component": "Step", "message": "What happened", "hint": "What to do next"},
    "certification": {
        "severity": "Outcome",
        "component": "Node",
        "path": "Category",
        "expected": "Bound",
        "found": "Measured",
        "message": "Why",
        "hint": "Where to look",
    },
    "recovery": {
        "severity": "Outcome",
        "component": "Job",
        "path": "Attempt",
        "message": "What happened",
        "found": "Fault to running",
        "expected": "Its parts",
        "nodes": "Nodes excluded",
        "hint": "What to do next",
    },
    "part": {"path": "Part", "message": "Why", "hint": "What to do next"},
}


def tone(verdict: str, severity: str) -> str:
    """How loudly a row speaks: fail, warn, unknown, note or pass."""
    return "warn" if verdict == "fail" and severity == "warning" else verdict
