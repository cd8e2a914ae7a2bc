# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecipeLock: a resolved recipe, self-contained. `metadata.digest` is the sha256 of the canonical spec."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

_IMAGES = {"type": "object", "additionalProperties": parts.IMAGE, "description": "CONTAINER: IMAGE"}

_RENDERED = parts.closed(
    ["workloads", "crds"],
    {
        "workloads": parts.listed(
            parts.closed(
                ["kind", "namespace", "name", "images"],
                {
                    "kind": {"type": "string", "minLength": 1},
                    "namespace": parts.LABEL,
                    "name": {"type": "string", "minLength": 1},
                    "images": _IMAGES,
                },
            )
        ),
        "crds": parts.listed(
            parts.closed(
                ["name", "digest"],
                {
                    "name": parts.CRD,
                    "digest": parts.DIGEST,
                    "versions": {"type": "object", "additionalProperties": parts.DIGEST},
                },
            )
        ),
    },
    "what the chart renders",
)

_COMPONENT = parts.closed(
    ["name", "namespace", "release", "tier", "dependsOn", "values", "valuesDigest"],
    {
        "name": parts.LABEL,
        "namespace": parts.LABEL,
        "release": parts.RELEASE,
        "tier": {"type": "integer", "minimum": 0},
        "dependsOn": parts.listed(parts.LABEL),
        "chart": parts.closed(
            ["name", "repository", "version"],
            {
                "name": parts.WORD,
                "repository": parts.REPOSITORY,
                "version": parts.VERSION,
                "digest": parts.DIGEST,
            },
        ),
        "values": parts.VALUES,
        "valuesDigest": parts.DIGEST,
        "manifests": parts.listed(
            parts.closed(
                ["name", "phase", "content", "digest"],
                {
                    "name": parts.LABEL,
                    "phase": parts.PHASE,
                    "content": parts.SENTENCE,
                    "digest": parts.DIGEST,
                },
            )
        ),
        "crds": parts.listed(parts.CRD),
        "images": parts.listed(parts.IMAGE),
        "nodeFacts": {
            "type": "object",
            "propertyNames": parts.WORD,
            "additionalProperties": parts.closed(
                ["valuesPath", "value"],
                {
                    "valuesPath": parts.VALUES_PATH,
                    "value": {"type": ["string", "number", "boolean"]},
                },
            ),
        },
        "health": parts.health(partial=False),
        "rendered": _RENDERED,
    },
)

_APPLIED = parts.closed(
    ["name", "criteria"],
    {
        "name": parts.NAME,
        "criteria": parts.CRITERIA,
        "includedBy": {**parts.NAME, "description": "the overlay that includes this mixin"},
    },
)

SCHEMA = parts.document(
    "RecipeLock",
    parts.closed(["name", "digest"], {"name": parts.NAME, "digest": parts.DIGEST}),
    parts.closed(
        ["criteria", "catalog", "overlays", "components", "constraints", "checks", "order"],
        {
            "criteria": {**parts.CRITERIA, "minProperties": 1},
            "catalog": parts.closed(["digest", "version"], {"digest": parts.DIGEST, "version": parts.VERSION}),
            "overlays": parts.listed(_APPLIED),
            "components": {**parts.listed(_COMPONENT), "minItems": 1},
            "constraints": parts.listed(
                parts.closed(
                    ["name", "value", "severity", "from"],
                    {
                        "name": parts.FACT,
                        "value": parts.CONSTRAINT,
                        "severity": parts.SEVERITY,
                        "remediation": parts.SENTENCE,
                        "from": parts.NAME,
                    },
                )
            ),
            "checks": parts.listed(parts.closed(["name", "from"], {**parts.CERTIFICATION_CHECK, "from": parts.NAME})),
            "order": parts.listed(parts.LABEL),
        },
    ),
)
