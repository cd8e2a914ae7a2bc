# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SignalTable: what the codes of one code space mean and what to do about them."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent, parts

SPACES = ("xid", "nvlink5", "sxid", "dcgm", "nvml", "condition", "cloud")
CLASSES = (
    "application",  # user code is the likely cause; the component is fine
    "configuration",  # a setting or a version, not a defect
    "consequence",  # follows another fault, which is the one to look at
    "driver",  # driver or firmware
    "hardware",
    "link",  # NVLink, C2C, PCIe and their switches
    "maintenance",  # announced by the operator or the cloud
    "memory",
    "monitor",  # the observer itself could not see
    "node",  # the machine around the component
    "notice",  # says something, asks for nothing
    "power",  # power and temperature
    "recovery",  # the driver's own verdict on what the component needs
    "unused",  # documented as never printed
)

_TEXT = {"type": "string", "minLength": 1, "description": "a text"}
_CODE = {"type": "string", "pattern": r"^\S(.*\S)?$", "description": "the code as text, in quotes where it is a number"}
_ACTION = {"enum": list(healthevent.ACTIONS)}
_SEVERITY = {"enum": list(healthevent.SEVERITIES)}
_CODES = parts.listed(_CODE, "codes of the same space; '*' is any")
_BITS = parts.text(r"[01]{1,26}", "bits, such as 0111000110")
_WORDS = {"type": "object", "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}}}

# what a code means, in every space
_MEANING = {
    "name": {**_TEXT, "description": "the vendor's name of the code"},
    "title": {**_TEXT, "description": "what it means, in a few words"},
    "class": {"enum": list(CLASSES)},
    "action": _ACTION,
    "fatal": {"type": "boolean"},
    "severity": _SEVERITY,
    "state": {"enum": list(healthevent.STATES)},
    "deferred": {**_ACTION, "description": "what will be needed at the next occasion, not now"},
    "consequenceOf": {**_CODES, "description": "codes that bring this one about; '*' is any"},
    "within": {
        "enum": ["gpu", "node", "domain"],
        "description": "where the cause is found: on the same GPU, the same node, or in its NVLink domain or rack",
    },
    "clears": {**_CODES, "description": "codes that this one takes back"},
    "note": {**_TEXT, "description": "what a person should know"},
}
_COMMON = {"code": _CODE, **_MEANING}

_NVLINK5_ROW = parts.closed(
    ["action", "fatal"],
    {
        "status": {
            "type": "array",
            "minItems": 1,
            "items": parts.text(r"0x[0-9a-f]{8}", "8 hexadecimal digits after 0x, lower case"),
            "description": "values of the second word; absent: any",
        },
        "cause": {**_BITS, "description": "bits 25 to 20 of the first word; absent: all 0"},
        "v1": {**_BITS, "description": "lowest bits of the first word, instead of the unit's"},
        "v2": {**_BITS, "description": "lowest bits of the first word, instead of the unit's"},
        "action": _ACTION,
        "fatal": {"type": "boolean"},
        "severity": _SEVERITY,
        "awaits154": {"const": True, "description": "the recovery action (Xid 154) decides"},
        "look": {**_TEXT, "description": "where to look, in the vendor's words"},
        "note": _TEXT,
    },
    "one meaning of the unit's error",
)

ENTRY = {
    "xid": parts.closed(["code", "name", "class", "action", "fatal"], _COMMON, "an Xid"),
    "nvlink5": parts.closed(
        ["code", "units", "v1", "v2", "rows"],
        {
            "code": _CODE,
            "units": {**parts.listed(_TEXT, "names of the unit in the log"), "minItems": 1},
            "v1": {**_BITS, "description": "lowest bits of the first word, drivers before R575"},
            "v2": {**_BITS, "description": "lowest bits of the first word, drivers from R575 on"},
            "rows": {**parts.listed(_NVLINK5_ROW), "minItems": 1},
        },
        "a unit of an NVLink 5 Xid",
    ),
    "sxid": parts.closed(["code", "name", "class", "action", "fatal"], _COMMON, "an SXid"),
    "dcgm": parts.closed(
        ["code", "class", "action", "fatal"],
        {
            **_COMMON,
            "number": {
                "type": "integer",
                "minimum": 0,
                "description": "its number in DCGM; none: an older name",
            },
            "dcgmSeverity": {**_TEXT, "description": "DCGM's own severity"},
            "watch": {**_TEXT, "description": "the health watches that report it"},
            "result": {"enum": ["WARN", "FAIL"], "description": "what the watch says"},
            "messages": parts.listed(_TEXT, "how its texts begin; * stands for what varies"),
        },
        "a DCGM error",
    ),
    "nvml": parts.closed(
        ["code", "title", "class", "action", "fatal"],
        {
            **_COMMON,
            "watch": {**_TEXT, "description": "the DCGM health watch that looks at the same"},
            "sameAs": {**_TEXT, "description": "DCGM's name for the same"},
        },
        "a state of a GPU as NVML and nvidia-smi show it",
    ),
    "condition": parts.closed(
        ["code", "class", "action", "fatal"],
        {
            **_COMMON,
            "family": {**_TEXT, "description": "who sets the condition"},
            "sickWhen": parts.listed({"enum": ["True", "False", "Unknown"]}, "statuses that mean sick"),
            "match": {**_WORDS, "description": "FIELD: PATTERN of the condition"},
            "xids": {"const": True, "description": "its reason or message names the Xids it is about"},
            "componentClass": _TEXT,
        },
        "a node condition",
    ),
    "cloud": parts.closed(
        ["code", "class", "action", "fatal"],
        {
            **_COMMON,
            "family": {**_TEXT, "description": "the cloud"},
            "match": {**_WORDS, "description": "FIELD: PATTERN of the notice"},
            "componentClass": _TEXT,
        },
        "a cloud notice",
    ),
}

_WATCH = parts.closed(
    ["name", "bit", "checkName"],
    {"name": _TEXT, "bit": {"type": "integer", "minimum": 1}, "checkName": _TEXT},
    "a health watch",
)
_RECOVERY = parts.closed(
    ["code", "title", "action", "fatal", "words"],
    {
        "code": {"type": "integer", "minimum": 0},
        "title": _TEXT,
        "action": _ACTION,
        "fatal": {"type": "boolean"},
        "severity": _SEVERITY,
        "state": {"enum": list(healthevent.STATES)},
        "words": parts.listed(_TEXT, "what drivers print for it, lower case"),
        "note": _TEXT,
    },
    "a recovery action of driver and NVML",
)


def _spec(entries: dict) -> dict:
    return parts.closed(
        ["codeSpace", "entries"],
        {
            "codeSpace": {"enum": list(SPACES)},
            "unknown": {
                **parts.closed(["class", "action", "fatal", "severity"], _MEANING),
                "description": "what holds for a code that is not in the table",
            },
            "entries": entries,
            "recoveryActions": parts.listed(_RECOVERY),
            "watches": parts.listed(_WATCH),
        },
        "codeSpace, unknown and entries",
    )


def of_space(space: str) -> dict:
    """The schema of the tables of one code space, without conditions, for quickcheck."""
    return parts.document("SignalTable", parts.METADATA, _spec(parts.listed(ENTRY[space])))


SCHEMA = parts.document(
    "SignalTable",
    parts.METADATA,
    {
        **_spec({"type": "array"}),
        "allOf": [
            {
                "if": {"properties": {"codeSpace": {"const": space}}, "required": ["codeSpace"]},
                "then": {"properties": {"entries": parts.listed(entry)}},
            }
            for space, entry in ENTRY.items()
        ],
    },
)
