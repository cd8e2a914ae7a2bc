# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecoveryDecision: what is to be done about one attempt of a job, by which rule, and why."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import lifecycle, parts
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.lifecycle import TIME, upto

ACTIONS = ("none", "hold", "retry", "restart", "requeue", "giveBack", "escalate")
ADVICE = ("none", "observe", "diagnose", "gate")  # from the lowest to the highest
RULE = parts.text(r"row-(1?\d)", "row-0 to row-18 of the table")
_NODE = {"type": "string", "minLength": 1, "maxLength": 253, "description": "a node's name"}
_MAYBE_TIME = {**TIME, "type": ["string", "null"]}
_MAYBE_STEP = {"type": ["integer", "null"], "description": "a training step; null: not known"}
_COUNT = {"type": "integer", "minimum": 0}
_USE = parts.closed(["used", "max"], {"used": _COUNT, "max": _COUNT}, "used and max")

SPEC = parts.closed(
    ["attempt", "job", "action", "rule", "safety", "reasons", "exclude", "hardware", "mode"],
    {
        "attempt": upto(1024, "the attempt's key: NAMESPACE/NAME/UID/NUMBER"),
        "job": parts.closed(
            ["kind", "namespace", "name", "uid"],
            {
                "apiVersion": upto(253),
                "kind": upto(63),
                "namespace": upto(253),
                "name": upto(253),
                "uid": upto(253),
                "resourceVersion": upto(253),
                "user": upto(253),
                "image": upto(1024),
            },
            "which job",
        ),
        "action": {"enum": list(ACTIONS)},
        "escalate": {"type": "boolean", "description": "whether a person has to look"},
        "rule": RULE,
        "safety": parts.listed(parts.text(r"safety-\d{1,2}", "safety-1 to safety-16"), "safety rules that had a say"),
        "reasons": {**parts.listed(upto(1024)), "minItems": 1},
        "class": upto(63, "class of the failure"),
        "signature": upto(63, "what the log showed; empty: nothing known"),
        "blamed": parts.listed(_NODE, "nodes that the failure points at, whatever is done about them"),
        "advanced": {
            "type": ["boolean", "null"],
            "description": "whether it got further than the attempts before; null: not known",
        },
        "exclude": parts.listed(
            parts.closed(
                ["node", "uid", "why", "until"],
                {"node": _NODE, "uid": upto(253), "why": upto(512), "until": TIME},
                "node, uid, why and until",
            ),
            "nodes the next attempt must not run on",
        ),
        "prefer": parts.listed(upto(253), "topology domains, the best first"),
        "hardware": parts.listed(
            parts.closed(
                ["node", "advice", "why"],
                {"node": _NODE, "uid": upto(253), "advice": {"enum": list(ADVICE)}, "why": upto(512)},
                "node, uid, advice and why",
            ),
            "for those who look after nodes; the job does not wait for it",
        ),
        "resume": {
            **parts.closed(
                ["path", "step", "note"], {"path": upto(4096), "step": _MAYBE_STEP, "note": upto(1024)}, "path and step"
            ),
            "type": ["object", "null"],
        },
        "resize": {
            **parts.closed(["pods", "was"], {"pods": _COUNT, "was": _COUNT}, "pods and was"),
            "type": ["object", "null"],
            "description": "fewer pods, only for a job that declares itself elastic",
        },
        "missing": {
            **parts.closed(["pods", "gpus", "why"], {"pods": _COUNT, "gpus": _COUNT, "why": upto(1024)}),
            "type": ["object", "null"],
            "description": "the capacity that is missing",
        },
        "notBefore": _MAYBE_TIME,
        "budget": {
            "type": "object",
            "propertyNames": parts.text(r"[a-zA-Z0-9-]{1,63}", "a budget's name"),
            "additionalProperties": _USE,
            "description": "NAME: used and max",
        },
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "mode": {"enum": ["act", "advise"]},
        "decidedAt": lifecycle.TIME,
        "policy": parts.closed(
            ["name", "digest"], {"name": parts.NAME, "digest": parts.DIGEST}, "name and digest of the policy"
        ),
    },
    "what is to be done, and why",
)

SCHEMA = parts.document("RecoveryDecision", parts.METADATA, SPEC)
