# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DriftReport: how a cluster differs from its recipe, or one snapshot from another."""

from __future__ import annotations

_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": "sha256: and 64 hexadecimal digits"}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}}
_COUNT = {"type": "integer", "minimum": 0}

_FINDING = {
    "type": "object",
    "additionalProperties": False,
    "required": ["code", "severity", "path", "message"],
    "properties": {
        "code": {
            "type": "string",
            "pattern": "^[a-z][a-z0-9-]*$",
            "description": "the kind of difference, as chart-version",
        },
        "severity": {"enum": ["error", "warning", "info"]},
        "component": {"type": ["string", "null"], "description": "the recipe's component, where one is concerned"},
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "the fact, as releases/NAMESPACE/NAME/values/KEY",
        },
        "expected": {"description": "any value; absent where the fact should not be there"},
        "found": {"description": "any value; absent where the fact is not there"},
        "nodes": _NAMES,
        "message": {"type": "string", "minLength": 1},
        "hint": {"type": "string", "description": "what to do next"},
    },
}

_PART = {
    "type": "object",
    "additionalProperties": False,
    "required": ["status"],
    "properties": {
        "status": {"enum": ["ok", "unknown"]},
        "reason": {"type": "string", "description": "why the part is unknown"},
    },
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "goodput.fleet/v1alpha1"},
        "kind": {"const": "DriftReport"},
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "the cluster's name"},
                "lock": {
                    **_DIGEST,
                    "description": "digest of the lock that was compared; absent between snapshots",
                },
                "description": {"type": "string"},
            },
        },
        "spec": {
            "type": "object",
            "additionalProperties": False,
            "required": ["status", "exitCode", "findings", "parts", "counts"],
            "properties": {
                "status": {"enum": ["in_sync", "drifted", "unknown"]},
                "exitCode": {"enum": [0, 3, 4], "description": "0 in_sync, 3 drifted, 4 unknown"},
                "findings": {"type": "array", "items": _FINDING},
                "parts": {"type": "object", "additionalProperties": _PART},
                "ignored": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["rule", "count"],
                        "properties": {"rule": {"type": "string"}, "count": _COUNT},
                    },
                },
                "recertify": {**_NAMES, "description": "nodes to certify again"},
                "counts": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["error", "warning", "info"],
                    "properties": {"error": _COUNT, "warning": _COUNT, "info": _COUNT},
                },
            },
        },
    },
}
