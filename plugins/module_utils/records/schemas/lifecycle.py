# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pieces that ValidationRequest and RepairRequest share: nodes as they were when the request was made, and statuses."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

NODE_NAME = {**parts.NAME, "maxLength": 253}
UID = parts.text(r"[A-Za-z0-9][-A-Za-z0-9_.:]{0,127}", "metadata.uid of the node")
BOOT_ID = parts.text(r"[A-Za-z0-9][-A-Za-z0-9_.:]{0,127}", "status.nodeInfo.bootID of the node")
TIME = parts.text(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?Z",
    "a time in UTC, such as 2026-03-06T09:34:56Z",
)


def upto(length: int, description: str = "") -> dict:
    """A text of at most so many characters, which may be empty."""
    return {"type": "string", "maxLength": length, "description": description or f"at most {length} characters"}


def or_null(schema: dict) -> dict:
    """What is not known yet is null."""
    return {**schema, "type": [schema["type"], "null"]}


CONDITIONS = {
    **parts.listed(
        parts.closed(
            ["type", "status"],
            {
                "type": upto(316),
                "status": {"enum": ["True", "False", "Unknown"]},
                "reason": upto(1024),
                "message": upto(1024),
                "lastTransitionTime": TIME,
                "observedGeneration": {"type": "integer"},
            },
            "type, status, reason, message and lastTransitionTime",
        )
    ),
    "maxItems": 16,
}
