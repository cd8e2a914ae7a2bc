# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overlay: what a set of criteria adds to a recipe, changes in it, or takes away."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

_SEVERITY = {"enum": ["error", "warning"]}
_MANIFEST = parts.strict(
    {"name": parts.NAME, "file": parts.FILE, "content": parts.TEXT, "phase": parts.PHASE, "remove": {"const": True}},
    ("name",),
    oneOf=[{"required": ["file"]}, {"required": ["content"]}, {"required": ["remove"]}],
    description="a name and one of file, content or remove: true",
)
_COMPONENT = parts.strict(
    {
        "name": parts.NAME,
        "remove": {"const": True},
        "version": parts.VERSION,
        "chart": parts.strict({"name": parts.CHART_NAME, "repository": parts.REPOSITORY, "version": parts.VERSION}),
        "namespace": parts.NAME,
        "release": parts.RELEASE,
        "valuesFiles": {"type": "array", "items": parts.FILE},
        "values": parts.VALUES,
        "dependsOn": parts.NAMES,
        "dependsOnOptional": parts.NAMES,
        "manifests": {"type": "array", "items": _MANIFEST},
        "images": parts.IMAGES,
        "nodeFacts": {
            "type": "object",
            "propertyNames": {"enum": ["driver"]},
            "additionalProperties": parts.VALUES_PATH,
        },
        "health": parts.HEALTH,
    },
    ("name",),
)
_CONSTRAINT = parts.strict(
    {
        "name": parts.WORD,
        "value": parts.TEXT,
        "severity": _SEVERITY,
        "remediation": parts.TEXT,
        "loosen": {"const": True},
        "remove": {"const": True},
        "reason": parts.TEXT,
    },
    ("name",),
    oneOf=[{"required": ["value"]}, {"required": ["remove", "reason"]}],
    description="a name and either a value, or remove: true with a reason",
)
_CHECK = parts.strict(
    {
        "name": parts.NAME,
        "domain": parts.NAME,
        "expression": parts.TEXT,
        "unit": parts.TEXT,
        "severity": _SEVERITY,
        "remove": {"const": True},
    },
    ("name",),
)

SCHEMA = parts.header(
    "Overlay",
    parts.strict(
        {
            "mixin": {"type": "boolean"},
            "recipe": {"type": "boolean"},
            "criteria": parts.CRITERIA,
            "include": parts.NAMES,
            "components": {"type": "array", "items": _COMPONENT},
            "constraints": {"type": "array", "items": _CONSTRAINT},
            "checks": {"type": "array", "items": _CHECK},
        }
    ),
)
