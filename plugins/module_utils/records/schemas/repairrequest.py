# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RepairRequest: a fault of one node, what has been tried against it, and what came of it."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent, parts, testing
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.lifecycle import (
    BOOT_ID,
    CONDITIONS,
    NODE_NAME,
    TIME,
    UID,
    or_null,
    upto,
)

PHASES = ("Open", "Repairing", "Validating", "Closed", "Exhausted", "Withdrawn")
RUNGS = ("reset", "reboot", "replace", "ticket")
MAX_ATTEMPTS = 100
MAX_DETAIL = 512

SPEC = parts.closed(
    ["node", "fault"],
    {
        "node": parts.closed(
            ["name", "uid"], {"name": NODE_NAME, "uid": UID, "bootId": BOOT_ID}, "name, uid and bootId"
        ),
        "gate": {**parts.LABEL, "description": "owner of the gate that the fault closed the node with; quarantine"},
        "evidence": upto(253, "what that gate is founded on"),
        "fault": parts.closed(
            ["code"],
            {
                "code": {
                    **parts.text(r"[!-~]([ -~]{0,252})", "a code such as xid-79 or dcgm-DCGM_FR_X"),
                    "maxLength": 253,
                },
                "action": {
                    "enum": ["", *healthevent.ACTIONS],
                    "description": "recommendedAction of the HealthEvent; empty where none is known",
                },
                "entity": upto(253, "GPU-UUID or PCI address; empty: the whole node"),
                "reason": upto(512, "for people"),
                "rule": upto(253, "the rule that closed the gate"),
                "since": TIME,
            },
            "code, action, entity, reason, rule and since",
        ),
    },
    "node, gate, evidence and fault",
)

_ATTEMPT = parts.closed(
    ["rung", "key"],
    {
        "rung": {"enum": list(RUNGS)},
        "key": upto(253, "the same for all that is done in this attempt, so that nothing is done twice"),
        "executor": upto(253),
        "requestedAt": TIME,
        "bootBefore": upto(128),
        "uidBefore": upto(128),
        "executedAt": or_null(TIME),
        "executed": {"type": ["boolean", "null"], "description": "null: not known"},
        "verifiedAt": or_null(TIME),
        "verified": {"type": ["boolean", "null"], "description": "null: not known yet"},
        "validation": upto(253, "name of the ValidationRequest, empty before there is one"),
        "validated": {"type": ["boolean", "null"], "description": "null: not known yet"},
        "detail": upto(MAX_DETAIL),
        "evidence": upto(512),
    },
    "rung, key, what was requested, executed, verified and validated, and when",
)

STATUS = parts.closed(
    [],
    {
        "phase": {"enum": list(PHASES)},
        "rung": {"enum": ["", *RUNGS]},
        "message": upto(1024),
        "attempts": {**parts.listed(_ATTEMPT), "maxItems": MAX_ATTEMPTS},
        "serials": {**parts.listed(upto(253), "serial numbers"), "maxItems": 256},
        "ticket": parts.closed(
            [],
            {"key": upto(253), "reference": upto(1024), "at": TIME, "by": upto(253)},
            "key, reference, at and by",
        ),
        "validation": upto(253, "name of the ValidationRequest"),
        "startedAt": TIME,
        "finishedAt": TIME,
        "conditions": CONDITIONS,
    },
    "written by the repair steps",
)

SCHEMA = parts.document("RepairRequest", testing.METADATA, SPEC)
SCHEMA["properties"]["status"] = STATUS
