# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FailureSignatures: what lines of a job's log mean, and how such logs are to be read."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

CLASSES = ("hardware", "network", "transient-software", "user-code", "storage", "preemption", "unknown")
ACTIONS = (
    "retry in place",
    "restart elsewhere",
    "requeue",
    "fail to user",
    "hold / fail to user",
    "retry from older checkpoint",
    "none (observe)",
)
# what a line says about who is to blame; what it comes to is computed from all lines
BLAMES = (
    "none",
    "unknown",
    "emitter",  # who wrote the line
    "peer",  # the other end of a connection, never who wrote the line
    "pair",  # both ends
    "named-node",
    "named-rank",
    "store-host",  # where rank 0 keeps the rendezvous store
    "clique",  # an NVLink domain
    "compute",  # the rank that is behind the others
    "see-block",  # the launcher's list of failures
    "absent-node",
)
CASCADES = ("never", "maybe", "always")

_TEXT = {"type": "string", "minLength": 1, "description": "a text"}
_ID = parts.text(r"[A-Z][A-Za-z0-9-]{0,31}", "a capital letter, then letters, digits and -, such as J043")
_PATTERN = {
    "type": "string",
    "minLength": 3,
    "description": "a regular expression of Python's; groups host, peer, rank, ranks, local, device and code name them",
}
_LITERALS = parts.listed(_TEXT, "texts one of which is in every line that matches, where the pattern does not tell")
_VERDICT = {
    "class": {"enum": list(CLASSES)},
    "action": {"enum": list(ACTIONS)},
    "blame": {"enum": list(BLAMES)},
}

_SIGNATURE = parts.closed(
    ["id", "component", "match", "class", "action", "blame", "cascade"],
    {
        "id": _ID,
        "component": {**_TEXT, "description": "who writes the line"},
        "match": _PATTERN,
        "literals": _LITERALS,
        "example": {**_TEXT, "description": "a line that matches"},
        **_VERDICT,
        "cascade": {
            "enum": list(CASCADES),
            "description": "whether the line follows from another failure",
        },
        "strength": {
            "enum": ["weak", "normal", "strong"],
            "description": "strong is believed before earlier lines, weak (normal is the default) after later ones",
        },
        "generic": {"const": True, "description": "holds only for lines that no other signature fits"},
        "waiting": {"const": True, "description": "who writes it waits for others"},
        "died": {"const": True, "description": "a process died without a word; connections to it break after that"},
        "collateralAfter": parts.listed(_ID, "signatures after which this one is a consequence"),
        "source": {**_TEXT, "description": "where such a line was seen"},
        "note": {**_TEXT, "description": "what a person should know"},
    },
    "a signature",
)
_MATCHED = {"match": _PATTERN, "literals": _LITERALS, "note": _TEXT}
_EXIT = parts.closed(
    ["codes", "class", "action", "blame"],
    {
        "codes": {
            **parts.listed({"type": "integer", "minimum": -64, "maximum": 255}, "exit codes; -9 is signal 9"),
            "minItems": 1,
        },
        **_VERDICT,
        "title": _TEXT,
        "cascade": {"enum": list(CASCADES)},
        "note": _TEXT,
    },
    "an exit code",
)

SCHEMA = parts.document(
    "FailureSignatures",
    parts.METADATA,
    parts.closed(
        [],
        {
            "drop": parts.listed(
                parts.closed(["match"], _MATCHED), "lines that only give advice and are never looked at"
            ),
            "prefixes": parts.listed(
                parts.closed(["match"], {"match": _PATTERN, "note": _TEXT}),
                "written by launchers before a line; groups rank, task, member, local, host and time tell of it",
            ),
            "starts": parts.listed(
                parts.closed(["match"], _MATCHED),
                "lines with which an attempt begins; the group attempt is its number",
            ),
            "ends": parts.listed(parts.closed(["match"], _MATCHED), "lines with which an attempt ends"),
            "progress": parts.listed(
                parts.closed(["match"], _MATCHED),
                "lines of a step that is done; groups step, seconds, milliseconds and rate",
            ),
            "exitCodes": parts.listed(_EXIT),
            "signatures": parts.listed(_SIGNATURE),
        },
        "signatures, and how logs are read",
    ),
)
