# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pieces that the schemas of Registry, Overlay and RecipeLock share.

Names, versions and addresses end up in file names, command lines and manifests: their patterns leave no room for a
shell metacharacter, a path or a line break.
"""

from __future__ import annotations


def strict(properties: dict, required: tuple = (), **more) -> dict:
    """A map with exactly these keys."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(required),
        **more,
    }


def header(kind: str, spec: dict, metadata: dict | None = None) -> dict:
    """The whole schema of a kind."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **strict(
            {
                "apiVersion": {"const": "goodput.fleet/v1alpha1"},
                "kind": {"const": kind},
                "metadata": metadata or strict({"name": NAME, "description": {"type": "string"}}, ("name",)),
                "spec": spec,
            },
            ("apiVersion", "kind", "metadata", "spec"),
        ),
    }


_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
NAME = {
    "type": "string",
    "pattern": rf"^{_LABEL}\Z",
    "description": "lower-case letters, digits and dashes, at most 63",
}
LONG_NAME = {
    "type": "string",
    "maxLength": 253,
    "pattern": rf"^{_LABEL}(\.{_LABEL})*\Z",
    "description": "lower-case letters, digits, dashes and dots",
}
WORD = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z",
    "description": "letters, digits, dots, dashes",
}
RELEASE = {
    "type": "string",
    "maxLength": 53,
    "pattern": rf"^{_LABEL}\Z",
    "description": "lower-case letters, digits and dashes, at most 53",
}
VERSION = {
    "type": "string",
    "maxLength": 64,
    "pattern": r"^v?[0-9]+(\.[0-9]+){1,3}([-+][0-9A-Za-z.+-]+)?\Z",
    "description": "one exact version such as v1.2.3: no range, no latest, no x",
}
REPOSITORY = {
    "type": "string",
    "maxLength": 512,
    "pattern": r"^(https?|oci)://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?\Z",
    "description": "https://HOST/PATH, http://HOST/PATH or oci://HOST/PATH, without user, query or fragment",
}
CHART_NAME = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,127})\Z",
    "description": "letters, digits, dots, dashes",
}
DIGEST = {"type": "string", "pattern": r"^sha256:[0-9a-f]{64}\Z", "description": "sha256: and 64 hexadecimal digits"}
FILE = {
    "type": "string",
    "maxLength": 255,
    "pattern": r"^(?!/)(?!.*(^|/)\.\.?(/|$))[A-Za-z0-9._/-]+\Z",
    "description": "a path inside the catalogue layer, relative, without ..",
}
IMAGE = {
    "type": "string",
    "maxLength": 512,
    "pattern": r"^[A-Za-z0-9][A-Za-z0-9._/:@-]+\Z",
    "description": "REGISTRY/NAME:TAG or @sha256:...",
}
VALUES_PATH = {
    "type": "string",
    "pattern": r"^[^\s.]+(\.[^\s.]+)*\Z",
    "description": "dotted path into the values, such as driver.version",
}
TEXT = {"type": "string", "minLength": 1}
VALUES = {"type": "object", "description": "a map of Helm values"}
NAMES = {"type": "array", "items": NAME}
CRDS = {"type": "array", "items": LONG_NAME}
IMAGES = {"type": "array", "items": IMAGE}
PHASE = {"enum": ["pre", "post"]}
CRITERIA = {
    "type": "object",
    "propertyNames": WORD,
    "additionalProperties": {"type": "string", "minLength": 1, "description": "a value as text"},
    "description": "a map of dimension to value",
}

WORKLOAD = strict(
    {
        "kind": {"enum": ["Deployment", "DaemonSet", "StatefulSet", "Job"]},
        "name": LONG_NAME,
        "optional": {"type": "boolean"},
    },
    ("kind", "name"),
)
HEALTH_CHECK = strict(
    {
        "name": NAME,
        "apiVersion": {"type": "string", "pattern": r"^([a-z0-9.-]+/)?v[a-z0-9]+\Z", "description": "GROUP/VERSION"},
        "kind": {"type": "string", "pattern": r"^[A-Z][A-Za-z0-9]+\Z", "description": "the kind, capitalised"},
        "plural": {"type": "string", "pattern": r"^[a-z0-9]+\Z", "description": "the resource's plural name"},
        "namespaced": {"type": "boolean"},
        "expression": TEXT,
        "match": {"enum": ["all", "any"]},
        "optional": {"type": "boolean"},
    },
    ("name", "apiVersion", "kind", "expression"),
)
HEALTH = strict(
    {
        "workloads": {"type": "array", "items": WORKLOAD},
        "selector": {"type": "object", "additionalProperties": {"type": "string"}},
        "checks": {"type": "array", "items": HEALTH_CHECK},
    }
)
