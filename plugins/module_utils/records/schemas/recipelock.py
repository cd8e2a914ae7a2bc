# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecipeLock: one resolved recipe, with everything a bundle needs inside."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

_CHART = parts.strict(
    {"name": parts.CHART_NAME, "repository": parts.REPOSITORY, "version": parts.VERSION, "digest": parts.DIGEST},
    ("name", "repository", "version"),
)
_MANIFEST = parts.strict(
    {"name": parts.NAME, "phase": parts.PHASE, "content": parts.TEXT, "digest": parts.DIGEST},
    ("name", "phase", "content", "digest"),
)
_WORKLOAD = parts.strict(
    {
        "kind": parts.TEXT,
        "namespace": parts.TEXT,
        "name": parts.TEXT,
        "images": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    ("kind", "namespace", "name", "images"),
)
_CRD = parts.strict(
    {
        "name": parts.LONG_NAME,
        "digest": parts.DIGEST,
        "versions": {"type": "object", "additionalProperties": parts.DIGEST},
    },
    ("name", "digest"),
)
_COMPONENT = parts.strict(
    {
        "name": parts.NAME,
        "namespace": parts.NAME,
        "release": parts.RELEASE,
        "tier": {"type": "integer", "minimum": 0},
        "dependsOn": parts.NAMES,
        "chart": _CHART,
        "values": parts.VALUES,
        "valuesDigest": parts.DIGEST,
        "manifests": {"type": "array", "items": _MANIFEST},
        "crds": parts.CRDS,
        "images": parts.IMAGES,
        "nodeFacts": {
            "type": "object",
            "additionalProperties": parts.strict(
                {"valuesPath": parts.VALUES_PATH, "value": {"type": ["string", "number"]}}, ("valuesPath", "value")
            ),
        },
        "health": parts.HEALTH,
        "rendered": parts.strict(
            {"workloads": {"type": "array", "items": _WORKLOAD}, "crds": {"type": "array", "items": _CRD}}
        ),
    },
    ("name", "namespace", "release", "tier", "dependsOn", "values", "valuesDigest", "manifests"),
)
_APPLIED = parts.strict(
    {"name": parts.NAME, "criteria": parts.CRITERIA, "includedBy": parts.NAMES}, ("name", "criteria")
)
_CONSTRAINT = parts.strict(
    {
        "name": parts.WORD,
        "value": parts.TEXT,
        "severity": {"enum": ["error", "warning"]},
        "remediation": {"type": "string"},
        "from": parts.NAME,
    },
    ("name", "value", "severity"),
)
_CHECK = parts.strict(
    {
        "name": parts.NAME,
        "domain": parts.NAME,
        "expression": parts.TEXT,
        "unit": parts.TEXT,
        "severity": {"enum": ["error", "warning"]},
        "from": parts.NAME,
    },
    ("name",),
)

SCHEMA = parts.header(
    "RecipeLock",
    parts.strict(
        {
            "criteria": parts.CRITERIA,
            "catalog": parts.strict({"digest": parts.DIGEST, "version": parts.TEXT}, ("digest",)),
            "overlays": {"type": "array", "items": _APPLIED},
            "components": {"type": "array", "items": _COMPONENT, "minItems": 1},
            "constraints": {"type": "array", "items": _CONSTRAINT},
            "checks": {"type": "array", "items": _CHECK},
            "order": parts.NAMES,
        },
        ("criteria", "catalog", "overlays", "components", "constraints", "checks", "order"),
    ),
    parts.strict({"name": parts.LONG_NAME, "digest": parts.DIGEST}, ("name", "digest")),
)
