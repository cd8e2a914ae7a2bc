# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pieces that the schemas of recipes share. Every description is the hint a person reads."""

from __future__ import annotations

# `$` alone also matches before a newline at the end, which would let a second line through
_END = r"$(?!\n)"
_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]*"


def text(pattern: str, description: str) -> dict:
    """A string that is matched as a whole."""
    return {"type": "string", "pattern": f"^(?:{pattern}){_END}", "description": description}


def closed(required: list[str], properties: dict, description: str = "") -> dict:
    """A map with these keys and no other."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
        **({"description": description} if description else {}),
    }


def listed(items: dict, description: str = "") -> dict:
    """A list of such items."""
    return {"type": "array", "items": items, **({"description": description} if description else {})}


LABEL = text(
    r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "a DNS-1123 label: lower-case letters, digits and -, at most 63 characters"
)
NAME = text(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", "lower-case letters, digits, - and .")
WORD = text(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", "letters, digits, ., _ and -")
RELEASE = text(
    r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?", "a Helm release: lower-case letters, digits, - and ., at most 53 characters"
)
VERSION = text(
    r"[vV]?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?",
    "a pinned version is three numbers and an optional suffix, such as v1.2.3 or 1.2.3-rc.1; "
    "latest, ranges, branches and short versions float",
)
REPOSITORY = text(
    rf"(https?|oci)://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{{1,5}})?(/{_SEGMENT})*/?",
    "https://HOST/PATH, http://HOST/PATH or oci://HOST/PATH, without credentials",
)
CRD = text(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+",
    "PLURAL.GROUP, such as clusterpolicies.nvidia.com",
)
IMAGE = text(
    r"[a-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5}/)?[A-Za-z0-9._/-]*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?",
    "REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST",
)
VALUES_FILE = text(
    rf"values/(?:{_SEGMENT}/)*{_SEGMENT}\.ya?ml", "a YAML file below values/ of the same layer, without .."
)
MANIFEST_FILE = text(
    rf"manifests/(?:{_SEGMENT}/)*{_SEGMENT}\.ya?ml", "a YAML file below manifests/ of the same layer, without .."
)
DIMENSION = text(r"[a-z][A-Za-z0-9_-]{0,62}", "a criteria dimension: a letter, then letters, digits, - and _")
CRITERION = text(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", "a criteria value: lower-case letters, digits, - and .")
CRITERIA = {
    "type": "object",
    "propertyNames": DIMENSION,
    "additionalProperties": CRITERION,
    "description": "DIMENSION: VALUE",
}
DIGEST = text(r"sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits")
SENTENCE = {"type": "string", "minLength": 1, "description": "a text"}
VALUES = {"type": "object", "description": "Helm values"}
PHASE = {"enum": ["pre", "post"], "description": "applied before (pre) or after (post) the chart"}
SEVERITY = {"enum": ["error", "warning"]}
MARK = {"const": True, "description": "true, or leave the key out"}
FACT = {
    "enum": [
        "K8s.server.version",
        "K8s.node.kubelet",
        "OS.release.ID",
        "OS.release.VERSION_ID",
        "OS.kernel",
        "GPU.driver.version",
        "GPU.count",
    ],
    "description": "the fact that is constrained",
}
CONSTRAINT = {
    "type": "string",
    "minLength": 1,
    "description": "such as '>= 1.34, < 1.36', '== 1.34.2', 'in (ubuntu, rhel)', '~ 1.34' or plain text",
}
VALUES_PATH = text(r"[^.\s]+(\.[^.\s]+)*", "a dotted path into the values, such as driver.version")
SELECTOR = {"type": "object", "additionalProperties": {"type": "string"}, "description": "LABEL: VALUE"}

_WORKLOAD = {
    "kind": {"enum": ["Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "ReplicaSet"]},
    "name": NAME,
    "namespace": LABEL,
    "optional": {"type": "boolean", "description": "true where it may be absent or want no pod"},
}
_CHECK = {
    "name": LABEL,
    "description": SENTENCE,
    "apiVersion": text(r"([a-z0-9.-]+/)?v[0-9][a-z0-9]*", "GROUP/VERSION, such as nvidia.com/v1"),
    "kind": text(r"[A-Z][A-Za-z0-9]*", "a Kubernetes kind"),
    "plural": text(r"[a-z][a-z0-9]*", "the kind's plural in API paths"),
    "namespaced": {"type": "boolean"},
    "namespace": LABEL,
    "selector": SELECTOR,
    "expression": {"type": "string", "minLength": 1, "description": "a JMESPath expression over one object"},
    "match": {"enum": ["all", "any"], "description": "must every object satisfy the expression, or one"},
    "optional": {"type": "boolean", "description": "true where no object is no fault"},
}


def health(partial: bool) -> dict:
    """A component's health; an overlay states parts of it and may take items away by name."""
    mark = {"remove": MARK} if partial else {}
    return closed(
        [],
        {
            "workloads": listed(closed(["kind", "name"], {**_WORKLOAD, **mark})),
            "selector": {**SELECTOR, "additionalProperties": {"type": ["string", "null"]}} if partial else SELECTOR,
            "checks": listed(
                closed(
                    ["name"] if partial else ["name", "apiVersion", "kind", "plural", "expression"], {**_CHECK, **mark}
                )
            ),
        },
        "workloads, selector and checks",
    )


CERTIFICATION_CHECK = {
    "name": LABEL,
    "description": SENTENCE,
    "domain": LABEL,
    "variant": NAME,
    "expression": SENTENCE,
    "unit": SENTENCE,
    "options": {"type": "object"},
}


def document(kind: str, metadata: dict, spec: dict) -> dict:
    """A whole document of that kind."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **closed(
            ["apiVersion", "kind", "metadata", "spec"],
            {
                "apiVersion": {"const": "goodput.fleet/v1alpha1"},
                "kind": {"const": kind},
                "metadata": metadata,
                "spec": spec,
            },
        ),
    }


METADATA = closed(
    ["name"],
    {
        "name": {**NAME, "description": "the document's name: lower-case letters, digits, - and ."},
        "description": SENTENCE,
    },
)
