# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecoveryPolicy: which failed jobs are started again, how often, and when that stops."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts, quarantinepolicy

MODES = quarantinepolicy.MODES
JOB_MODES = ("off", "advise", "act")  # from the lowest to the highest
CLASSES = ("hardware", "network", "transient-software", "user-code", "storage", "unknown")

_DURATION = parts.text(r"([1-9][0-9]{0,5}[dhms])+", "a duration such as 90s, 10m, 1h or 1h30m, longer than nothing")
_DELAY = parts.text(r"0s|([1-9][0-9]{0,5}[dhms])+", "0s, or a duration such as 30s or 2m")
# YAML reads off as false
_JOB_MODE = {"enum": [*JOB_MODES, False], "description": "act, advise or off"}


def _count(description: str, least: int = 0) -> dict:
    return {"type": "integer", "minimum": least, "maximum": 100000, "description": description}


def _percent(description: str) -> dict:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": 100, "description": description}


def _within(what: str) -> dict:
    """So many in so long a time."""
    return parts.closed(
        ["max", "window"], {"max": _count(what, 1), "window": _DURATION}, f"max and window: {what} in that time"
    )


SPEC = parts.closed(
    ["mode"],
    {
        "mode": {
            "enum": list(MODES),
            "description": "observe or dry_run: every job is only advised; enforce: jobs that ask for it are acted on",
        },
        "undeclared": {
            "enum": ["off", "advise", False],
            "description": "jobs that say nothing and whose namespace is not named: advise or off",
        },
        "namespaces": parts.listed(
            parts.closed(
                ["names", "mode"],
                {
                    "names": {
                        **parts.listed(
                            parts.text(r"[A-Za-z0-9*?_.-]{1,253}", "a namespace or partition; * and ? stand for others")
                        ),
                        "minItems": 1,
                    },
                    "mode": _JOB_MODE,
                },
                "names and mode",
            ),
            "the first that fits holds for jobs that declare nothing themselves",
        ),
        "budgets": parts.closed(
            [],
            {
                "noProgress": _count("retries of a job without proven progress"),
                "sameFailure": _count("retries after the very same failure at the same step"),
                "classes": {
                    "type": "object",
                    "propertyNames": {"enum": list(CLASSES)},
                    "additionalProperties": _count("retries"),
                    "description": "CLASS: retries of a job without proven progress after failures of that class",
                },
                "job": parts.listed(_within("restarts of one job"), "all of these hold"),
                "requeues": _within("requeues of one job that do not count as restarts"),
                "global": _within("restarts of all jobs together"),
                "replayExitCodes": parts.listed(
                    {"type": "integer", "minimum": 1, "maximum": 255},
                    "exit codes with which a program asks for the same step again",
                ),
            },
            "noProgress, sameFailure, classes, job, requeues, global and replayExitCodes",
        ),
        "backoff": parts.closed(
            [],
            {
                "delays": {
                    **parts.listed(_DELAY, "before the first, second, … retry; the last for all later ones"),
                    "minItems": 1,
                },
                "jitterPercent": {"type": "integer", "minimum": 0, "maximum": 100, "description": "added at most"},
            },
            "delays and jitterPercent",
        ),
        "hang": parts.closed(
            [],
            {
                "act": {"type": "boolean", "description": "false: a job that hangs is only told, never stopped"},
                "factor": {"type": "number", "minimum": 2, "maximum": 1000, "description": "times the usual step"},
                "least": _DURATION,
                "most": _DURATION,
                "start": _DURATION,
            },
            "act, factor, least, most (silence that is a hang) and start (before the first step)",
        ),
        "suspects": parts.closed(
            [],
            {
                "window": _DURATION,
                "networkFailures": _count("network failures with one node in common", 2),
                "timeouts": _count("same time-outs with one node in common", 2),
                "exclude": _DURATION,
                "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "from 0 to 1"},
            },
            "window, networkFailures, timeouts, exclude (how long) and confidence (that blame needs)",
        ),
        "blastRadius": parts.closed(
            [],
            {
                "jobs": _count("jobs that fail in one domain", 2),
                "nodes": _count("nodes that fail in one domain", 2),
                "window": _DURATION,
                "gatesPercent": _percent("of the nodes may be closed"),
                "gatesPerDomain": _count("new gates per domain", 1),
                "unreadyPercent": _percent("of the nodes not ready: nothing is done"),
                "unreadyLeast": _count("as many nodes at least, for small clusters", 1),
            },
            "jobs, nodes, window, gatesPercent, gatesPerDomain, unreadyPercent and unreadyLeast",
        ),
        "lemon": parts.closed(
            [],
            {
                "window": _DURATION,
                "halfLife": _DURATION,
                "score": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000, "description": "from which"},
                "jobs": _count("distinct jobs", 2),
            },
            "window, halfLife, score and jobs",
        ),
        "data": parts.closed(
            [], {"maxAge": _DURATION, "skew": _DURATION}, "maxAge of what is known of the cluster, and clock skew"
        ),
    },
    "mode, namespaces, budgets, backoff, hang, suspects, blastRadius, lemon and data",
)

SCHEMA = parts.document("RecoveryPolicy", parts.METADATA, SPEC)
