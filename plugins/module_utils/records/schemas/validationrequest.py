# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ValidationRequest: which nodes have to pass which tests before they may take work."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import certification, parts, testing
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.lifecycle import (
    BOOT_ID,
    CONDITIONS,
    NODE_NAME,
    TIME,
    UID,
    or_null,
    upto,
)

REASONS = ("new-node", "repaired", "changed", "manual")
PHASES = ("Pending", "Running", "Succeeded", "Failed")
NODE_PHASES = ("Pending", "Running", "Passed", "Failed", "Opened", "Gone")
# with what is known of each of them, the status of so many fits into an object of the cluster (about 1 MiB)
MAX_NODES = 1000
MAX_CAUSE = 512

SPEC = parts.closed(
    ["reason", "nodes", "tests"],
    {
        "reason": {"enum": list(REASONS), "description": "why they have to be validated"},
        "cause": upto(MAX_CAUSE, f"for people, at most {MAX_CAUSE} characters: what happened to the nodes"),
        "nodes": {
            **parts.listed(
                parts.closed(["name"], {"name": NODE_NAME, "uid": UID, "bootId": BOOT_ID}, "name, uid and bootId"),
                "the nodes, at least one",
            ),
            "minItems": 1,
            "maxItems": MAX_NODES,
        },
        "tests": {
            **parts.listed(certification.CATEGORY, "the tests, at least one, as categories of a Certification"),
            "minItems": 1,
            "maxItems": testing.MAX_CATEGORIES,
        },
        "options": {**testing.OPTIONS, "description": "of every test; what a test sets itself wins"},
        "retries": {
            "type": "integer",
            "minimum": 0,
            "maximum": 5,
            "description": "further certifications after a failed one, 0 to 5; 1 without it",
        },
    },
    "reason, cause, nodes, tests, options and retries",
)

STATUS = parts.closed(
    [],
    {
        "phase": {"enum": list(PHASES)},
        "digest": upto(64, "of the spec that the rest is about"),
        "message": upto(1024),
        "startedAt": TIME,
        "finishedAt": TIME,
        "counts": {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
            "description": "nodes by phase",
        },
        "nodes": {
            **parts.listed(
                parts.closed(
                    ["name", "phase"],
                    {
                        "name": NODE_NAME,
                        "uid": upto(128),
                        "phase": {"enum": list(NODE_PHASES)},
                        "attempts": {"type": "integer", "minimum": 0, "description": "certifications begun"},
                        "excused": {"type": "integer", "minimum": 0, "description": "of these, in vain"},
                        "batch": upto(64, "the certification that it takes part in, or took part in last"),
                        "basis": or_null({"type": "object", "description": "what the node was when it began"}),
                        "why": upto(200),
                        "evidence": upto(512, "digest of the evidence"),
                    },
                    "name, uid, phase, attempts, excused, batch, basis, why and evidence",
                )
            ),
            "maxItems": MAX_NODES,
        },
        "conditions": CONDITIONS,
    },
    "written by the validation pass",
)

SCHEMA = parts.document("ValidationRequest", testing.METADATA, SPEC)
SCHEMA["properties"]["status"] = STATUS
