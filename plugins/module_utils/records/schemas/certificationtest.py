# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CertificationTest: a test of the catalogue, what it needs, what it prints."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts, testing

SCOPES = ("node", "pair", "group")
LAUNCHERS = ("job", "indexed-job", "mpijob", "trainjob")
SEARCHES = ("communication", "training", "diagnostics")
DIRECTIONS = ("higher", "lower")

_VARIABLES = {
    "type": "object",
    "propertyNames": parts.text(r"[A-Za-z][A-Za-z0-9]{0,63}", "letters and digits"),
    "additionalProperties": {"type": ["string", "integer", "number", "null"]},
    "description": "VARIABLE: DEFAULT; null where a value must be given",
}
_LIMITS = parts.closed(
    [],
    dict.fromkeys(("start", "run", "silence"), testing.DURATION),
    "start, run and silence",
)
_ENV = {
    "type": "object",
    "propertyNames": parts.text(r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _"),
    "additionalProperties": {"type": "string", "description": "a text, with {variables}"},
    "description": "NAME: VALUE",
}
_OVERRIDE = parts.closed(
    [],
    {"image": testing.IMAGE, "variables": _VARIABLES, "env": _ENV, "limits": _LIMITS},
    "image, variables, env and limits",
)

SPEC = parts.closed(
    ["domain", "variant", "scope", "launcher", "command", "limits", "parser", "metrics", "isolation"],
    {
        "domain": parts.LABEL,
        "variant": parts.LABEL,
        "description": parts.SENTENCE,
        "scope": {"enum": list(SCOPES), "description": "each node alone, pairs of nodes, or groups of any size"},
        "launcher": {"enum": list(LAUNCHERS)},
        "image": {**testing.IMAGE, "description": "left out where the site must name one in options.image"},
        "command": {**testing.ARGUMENTS, "minItems": 1, "description": "a list of arguments with {variables}"},
        "env": _ENV,
        "variables": _VARIABLES,
        "gpus": {
            "anyOf": [{"const": "all"}, testing.count(1, "GPUs")],
            "description": "all, or how many GPUs of each node",
        },
        "resources": testing.RESOURCES,
        "sharedMemory": {
            "anyOf": [{"const": "unlimited"}, testing.QUANTITY],
            "description": "the size of /dev/shm: unlimited, or a quantity such as 64Gi",
        },
        "capabilities": parts.listed(
            parts.text(r"[A-Z][A-Z_]*", "a Linux capability, such as IPC_LOCK"), "a list of capabilities"
        ),
        "privileged": {"type": "boolean"},
        "hostNetwork": {"type": "boolean"},
        "limits": {**_LIMITS, "required": ["start", "run", "silence"]},
        "usesNetwork": {"type": "boolean", "description": "whether one node alone sends through its network devices"},
        "minNodes": testing.count(1, "nodes in the smallest group that says anything"),
        "requirements": parts.closed(
            [],
            {
                "minGpus": testing.count(1, "GPUs of a group in all"),
                "minGpusPerNode": testing.count(1, "GPUs of a node"),
                "multipleOf": parts.listed(
                    parts.text(r"[A-Za-z][A-Za-z0-9]{0,63}", "a variable"),
                    "variables whose product must divide the GPUs of a group",
                ),
                "accelerators": parts.listed(testing.KEY, "the accelerators that it is for, such as h100"),
                "mig": {"type": "boolean", "description": "whether it runs where GPUs are partitioned"},
            },
            "minGpus, minGpusPerNode, multipleOf, accelerators and mig",
        ),
        "metrics": {
            "type": "object",
            "propertyNames": testing.METRIC,
            "additionalProperties": parts.closed(
                ["unit", "direction"],
                {
                    "unit": {"type": "string"},
                    "direction": {"enum": list(DIRECTIONS), "description": "what is better: higher or lower"},
                    "field": {**testing.METRIC, "description": "as the parser names it, where that differs"},
                    "description": parts.SENTENCE,
                },
                "unit, direction and field",
            ),
            "description": "METRIC: unit and direction",
        },
        "parser": {
            **testing.PARSER,
            "properties": {
                **testing.PARSER["properties"],
                "expects": {"type": "object", "description": "arguments of the parser, such as expected_tests"},
            },
        },
        "isolation": {"enum": list(SEARCHES), "description": "how the bad node of a failing group is searched for"},
        "boundsFrom": {**parts.SENTENCE, "description": "where a bound usually comes from"},
        "accelerators": {
            "type": "object",
            "propertyNames": testing.KEY,
            "additionalProperties": _OVERRIDE,
            "description": "ACCELERATOR: what is different there",
        },
        "scales": {
            "type": "object",
            "propertyNames": {"enum": list(testing.SCALES)},
            "additionalProperties": _OVERRIDE,
            "description": "SCALE: what is different there",
        },
    },
    "a test",
)

SCHEMA = parts.document("CertificationTest", parts.METADATA, SPEC)
