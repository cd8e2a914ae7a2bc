# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overlay: what a recipe gains, changes and loses where its criteria match; or a mixin that overlays include."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

_MANIFEST = parts.closed(
    ["name"],
    {
        "name": parts.LABEL,
        "file": parts.MANIFEST_FILE,
        "content": parts.SENTENCE,
        "phase": parts.PHASE,
        "remove": parts.MARK,
    },
    "name and one of file, content and remove",
)

_COMPONENT = parts.closed(
    ["name"],
    {
        "name": parts.LABEL,
        "remove": parts.MARK,
        "version": parts.VERSION,
        "chart": parts.closed(
            [],
            {"name": parts.WORD, "repository": parts.REPOSITORY, "version": parts.VERSION},
            "what changes of the chart",
        ),
        "namespace": parts.LABEL,
        "release": parts.RELEASE,
        "valuesFiles": parts.listed(parts.VALUES_FILE),
        "values": parts.VALUES,
        "dependsOn": parts.listed(parts.LABEL),
        "dependsOnOptional": parts.listed(parts.LABEL),
        "manifests": parts.listed(_MANIFEST),
        "crds": parts.listed(parts.CRD),
        "images": parts.listed(parts.IMAGE),
        "nodeFacts": {
            "type": "object",
            "propertyNames": parts.WORD,
            "description": "NODE FACT: VALUES PATH that fixes it, or null",
            "additionalProperties": {**parts.VALUES_PATH, "type": ["string", "null"]},
        },
        "health": parts.health(partial=True),
    },
)

_CONSTRAINT = parts.closed(
    ["name"],
    {
        "name": parts.FACT,
        "value": parts.CONSTRAINT,
        "severity": parts.SEVERITY,
        "remediation": parts.SENTENCE,
        "loosen": parts.MARK,
        "remove": parts.MARK,
        "reason": parts.SENTENCE,
    },
    "name and value, or name, remove and reason",
)

SCHEMA = parts.document(
    "Overlay",
    parts.METADATA,
    parts.closed(
        [],
        {
            "mixin": {"type": "boolean", "description": "true: has no criteria, is only included"},
            "recipe": {"type": "boolean", "description": "true: the criteria are a supported recipe"},
            "criteria": parts.CRITERIA,
            "include": parts.listed(parts.NAME, "names of mixins, applied just before this overlay"),
            "components": parts.listed(_COMPONENT),
            "constraints": parts.listed(_CONSTRAINT),
            "checks": parts.listed(
                parts.closed(["name"], {**parts.CERTIFICATION_CHECK, "remove": parts.MARK}),
                "what certification must prove later",
            ),
        },
        "criteria, include, components, constraints and checks",
    ),
)
