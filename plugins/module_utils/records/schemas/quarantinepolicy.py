# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QuarantinePolicy: which signals take a node out, how, and how many nodes at most."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts, signaltable

MODES = ("observe", "dry_run", "enforce")  # from the lowest to the highest
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_DURATION = parts.text(r"([1-9][0-9]{0,5}[dhms])+", "a duration such as 90s, 10m, 1h or 1h30m, longer than nothing")
_LABEL_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
_KEY = parts.text(rf"({_PREFIX}/)?{_LABEL_NAME}", "NAME or PREFIX/NAME, as of a label or taint")
_MODE = {"enum": list(MODES), "description": "observe, dry_run or enforce"}
_LABELS = {
    "anyOf": [_KEY, {"type": "array", "minItems": 1, "items": _KEY}],
    "description": "a node label, or a list of them of which the first that a node has counts",
}
_BOUND = {
    "max": {"type": "integer", "minimum": 1, "description": "nodes"},
    "percent": {"type": "number", "exclusiveMinimum": 0, "maximum": 100, "description": "of the inventory's nodes"},
}
_TAINT = parts.closed(
    ["key", "effect"],
    {
        "key": _KEY,
        "value": parts.text(rf"({_LABEL_NAME})?", "at most 63 letters, digits, ., _ and -"),
        "effect": {"enum": list(EFFECTS)},
    },
    "key, value and effect",
)
_GATE = parts.closed(
    [],
    {
        "owner": {**parts.LABEL, "description": "who holds the gate: lower-case letters, digits and -"},
        "reason": {**parts.text(r"[^\r\n]{1,200}", "one line for people, at most 200 characters")},
        "taint": {**_TAINT, "description": "key, value and effect; left out: one named after the owner"},
        "cordon": {"type": "boolean", "description": "whether the node is marked unschedulable too"},
        "reclose": {
            "type": "boolean",
            "description": "true: close again on the same evidence a gate that somebody opened",
        },
    },
    "owner, reason, taint and cordon",
)
_RULE = parts.closed(
    ["name", "expression"],
    {
        "name": parts.LABEL,
        "description": parts.SENTENCE,
        "expression": {"type": "string", "minLength": 1, "description": "a CEL expression that is true or false"},
        "mode": _MODE,
        "priority": {"type": "integer", "minimum": -1000, "maximum": 1000},
        "classes": parts.listed(
            {"enum": list(signaltable.CLASSES)},
            "classes of events the rule may act on although they are not the node's fault by themselves",
        ),
        "gate": _GATE,
    },
    "name, expression and gate",
)

SPEC = parts.closed(
    ["rules"],
    {
        "mode": {**_MODE, "description": "the highest mode of any rule: observe, dry_run or enforce"},
        "maxAge": _DURATION,
        "breaker": parts.closed(
            [],
            {
                "window": _DURATION,
                "fleet": parts.closed([], _BOUND, "max and percent"),
                "domain": parts.closed([], {"label": _LABELS, **_BOUND}, "label, max and percent"),
            },
            "window, fleet and domain",
        ),
        "correlation": parts.closed(
            [],
            {"window": _DURATION, "domain": parts.closed(["label"], {"label": _LABELS}, "label")},
            "window and domain",
        ),
        "rules": {**parts.listed(_RULE), "minItems": 1, "description": "at least one rule"},
    },
)

SCHEMA = parts.document("QuarantinePolicy", parts.METADATA, SPEC)
