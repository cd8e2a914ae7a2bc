# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry: the components a catalogue knows, and the dimensions and values that criteria may use."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

_DIMENSION = parts.closed(
    ["values"],
    {
        "description": parts.SENTENCE,
        "values": parts.listed(parts.CRITERION, "the values that overlays and queries may state"),
        "aliases": {
            "type": "object",
            "propertyNames": parts.CRITERION,
            "additionalProperties": parts.CRITERION,
            "description": "ALIAS: VALUE, where the value may be any",
        },
    },
    "values and aliases of one dimension",
)

_CHART = parts.closed(
    ["name", "repository"],
    {"name": parts.WORD, "repository": parts.REPOSITORY, "version": parts.VERSION},
    "name, repository and version of the Helm chart",
)

_MANIFEST = parts.closed(
    ["name"],
    {
        "name": parts.LABEL,
        "file": parts.MANIFEST_FILE,
        "content": parts.SENTENCE,
        "phase": parts.PHASE,
    },
    "name, one of file and content, and phase",
)

_COMPONENT = parts.closed(
    ["name", "namespace"],
    {
        "name": {**parts.LABEL, "description": "the component's name, " + parts.LABEL["description"]},
        "description": parts.SENTENCE,
        "namespace": parts.LABEL,
        "release": parts.RELEASE,
        "chart": _CHART,
        "valuesFiles": parts.listed(parts.VALUES_FILE),
        "values": parts.VALUES,
        "dependsOn": parts.listed(parts.LABEL, "names of components that must be installed before"),
        "dependsOnOptional": parts.listed(
            parts.LABEL, "names of components that come before where the recipe has them"
        ),
        "mergeKeys": {
            "type": "object",
            "propertyNames": parts.VALUES_PATH,
            "additionalProperties": parts.WORD,
            "description": "VALUES PATH OF A LIST: KEY of its items",
        },
        "manifests": parts.listed(_MANIFEST),
        "crds": parts.listed(parts.CRD),
        "images": parts.listed(parts.IMAGE),
        "nodeFacts": {
            "type": "object",
            "propertyNames": parts.WORD,
            "additionalProperties": parts.VALUES_PATH,
            "description": "NODE FACT: VALUES PATH that fixes it",
        },
        "health": parts.health(partial=False),
    },
)

SCHEMA = parts.document(
    "Registry",
    parts.METADATA,
    parts.closed(
        [],
        {
            "criteria": {
                "type": "object",
                "propertyNames": parts.DIMENSION,
                "additionalProperties": _DIMENSION,
                "description": "DIMENSION: {values: [...]}",
            },
            "components": parts.listed(_COMPONENT),
        },
        "criteria and components",
    ),
)
