# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry: the criteria that exist, and the components that recipes are made of."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

_MANIFEST = parts.strict(
    {"name": parts.NAME, "file": parts.FILE, "content": parts.TEXT, "phase": parts.PHASE},
    ("name",),
    oneOf=[{"required": ["file"]}, {"required": ["content"]}],
    description="a name and either file or content",
)
_CHART = parts.strict(
    {"name": parts.CHART_NAME, "repository": parts.REPOSITORY, "version": parts.VERSION},
    ("name", "repository", "version"),
)
_COMPONENT = parts.strict(
    {
        "name": parts.NAME,
        "description": {"type": "string"},
        "namespace": parts.NAME,
        "release": parts.RELEASE,
        "chart": _CHART,
        "valuesFiles": {"type": "array", "items": parts.FILE},
        "values": parts.VALUES,
        "dependsOn": parts.NAMES,
        "dependsOnOptional": parts.NAMES,
        "mergeKeys": {
            "type": "object",
            "propertyNames": parts.VALUES_PATH,
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "manifests": {"type": "array", "items": _MANIFEST},
        "crds": parts.CRDS,
        "images": parts.IMAGES,
        "nodeFacts": {
            "type": "object",
            "propertyNames": {"enum": ["driver"]},
            "additionalProperties": parts.VALUES_PATH,
        },
        "health": parts.HEALTH,
    },
    ("name", "namespace"),
)
_DIMENSION = parts.strict(
    {
        "description": {"type": "string"},
        "values": {"type": "array", "items": parts.WORD, "minItems": 1},
        "aliases": {"type": "object", "propertyNames": parts.WORD, "additionalProperties": parts.WORD},
    }
)

SCHEMA = parts.header(
    "Registry",
    parts.strict(
        {
            "criteria": {"type": "object", "propertyNames": parts.WORD, "additionalProperties": _DIMENSION},
            "components": {"type": "array", "items": _COMPONENT},
        }
    ),
)
