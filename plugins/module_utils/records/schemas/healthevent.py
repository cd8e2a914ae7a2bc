# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HealthEvent: one thing that one observer says about one node. Every parser of signals writes these."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

ACTIONS = (
    "NONE",
    "RESTART_APP",
    "COMPONENT_RESET",
    "BUS_RESET",
    "DRAIN_P2P",
    "DRAIN_RESET",
    "RECOVER_IMEX_DOMAIN",
    "RESTART_VM",
    "RESTART_BM",
    "REPLACE_VM",
    "RUN_DCGMEUD",
    "RUN_FIELDDIAG",
    "CONTACT_SUPPORT",
    "UNKNOWN",
)
SEVERITIES = ("info", "warning", "error", "fatal")
STATES = ("sick", "healthy", "unknown")
CODE_SPACES = ("xid", "sxid", "dcgm", "nvml", "condition", "cloud", "nic", "scheduler", "other")
MESSAGE_LIMIT = 1024  # characters; a node condition holds no more
SOURCE_LIMIT = 512

TIME = {
    **parts.text(
        r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?Z",
        "a time in UTC, such as 2026-03-06T09:34:56Z",
    ),
    "type": ["string", "null"],
}
# lengths as patterns: quickcheck judges those, and events come by the hundred thousand
_WORD = parts.text(r"[\s\S]{1,253}", "a text of 1 to 253 characters")
_LINE = parts.text(rf"[\s\S]{{0,{SOURCE_LIMIT}}}", f"at most {SOURCE_LIMIT} characters")

SPEC = parts.closed(
    ["nodeName", "agent", "componentClass", "checkName", "isFatal", "isHealthy"],
    {
        "nodeName": {**_WORD, "description": "the node as its cluster names it"},
        "agent": {**_WORD, "description": "who says so: kernel-log, dcgm, nvml, node-condition, cloud-aws, ..."},
        "componentClass": {**_WORD, "description": "GPU, NVSWITCH, NVLINK, NIC, NODE, ..."},
        "checkName": {**_WORD, "description": "what was looked at, such as SysLogsXIDError"},
        "isFatal": {"type": "boolean", "description": "whether the component must not be used any more"},
        "isHealthy": {"type": "boolean", "description": "true takes earlier reports of the same check back"},
        "state": {"enum": list(STATES), "description": "unknown: the observer could not see"},
        "severity": {"enum": list(SEVERITIES)},
        "errorCode": parts.listed(_WORD, "codes as text, such as '79' or DCGM_FR_NVLINK_DOWN"),
        "codeSpace": {"enum": list(CODE_SPACES)},
        "entitiesImpacted": parts.listed(
            parts.closed(
                ["entityType", "entityValue"],
                {
                    "entityType": {**_WORD, "description": "GPU, GPU_UUID, PCI, NVLINK, NVSWITCH, NIC, GPC, ..."},
                    "entityValue": _WORD,
                },
                "entityType and entityValue",
            ),
            "what of the node is concerned; empty: all the check looks at",
        ),
        "recommendedAction": {"enum": list(ACTIONS)},
        "message": parts.text(rf"[\s\S]{{0,{MESSAGE_LIMIT}}}", f"for people, at most {MESSAGE_LIMIT} characters"),
        "generatedTimestamp": {**TIME, "description": "when it happened, by the observer's clock; null: not told"},
        "receivedTimestamp": {**TIME, "description": "when it came in, by our clock; age counts from it"},
        "bootId": {
            **parts.text(r"\S{1,128}", ""),
            "type": ["string", "null"],
            "description": "the node's boot id; before:ID for what an earlier boot left in the log; null: not told",
        },
        "source": parts.closed(
            ["name"],
            {
                "name": {**_LINE, "description": "file or stream"},
                "line": {"type": ["integer", "null"], "minimum": 1},
                "text": _LINE,
            },
            "name, line and text",
        ),
        "cause": {"type": ["string", "null"], "description": "name of the event that brought this one about"},
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}, "description": "KEY: TEXT"},
    },
)

SCHEMA = parts.document(
    "HealthEvent",
    parts.closed(
        ["name"],
        {"name": {**_WORD, "description": "the same for the same report, whenever it is read"}},
        "name",
    ),
    SPEC,
)
