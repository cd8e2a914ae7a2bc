# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshot: a cluster's stable facts. Two taken of an untouched cluster differ in nothing but metadata.takenAt."""

from __future__ import annotations

_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": "sha256: and 64 hexadecimal digits"}
_NUMBER = {"type": "integer", "minimum": 0}
PARTS = ("server", "nodes", "releases", "argocd", "flux", "workloads", "crds")


def _object(required: tuple[str, ...], **properties) -> dict:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def _list(items: dict) -> dict:
    return {"type": "array", "items": items}


_PART = _object(
    ("status",),
    status={"enum": ["ok", "unknown"]},
    reason={"type": "string", "description": "why the part is unknown, or what is not there"},
)
_NODE = _object(
    ("name", "labels"),
    name=_NAME,
    ready={"type": "boolean"},
    labels={"type": "object", "additionalProperties": _TEXT},
    taints=_list({"type": "string", "description": "key=value:Effect"}),
    unschedulable={"type": "boolean"},
    kernel=_TEXT,
    osImage=_TEXT,
    osId={"type": "string", "description": "os-release's ID"},
    osVersion={"type": "string", "description": "os-release's VERSION_ID"},
    kubelet=_TEXT,
    containerRuntime=_TEXT,
    driver={"type": "string", "description": "GPU driver's version, empty where the node does not tell"},
    accelerator={"type": "string", "description": "GPU product, as GPU feature discovery names it"},
    gpus=_object(
        ("capacity", "allocatable"),
        capacity=_NUMBER,
        allocatable=_NUMBER,
        count={"type": ["integer", "null"], "minimum": 0, "description": "boards in the node, null where not told"},
    ),
    group={"type": "string", "description": "the pool's name"},
)
_WORKLOAD = _object(
    ("kind", "namespace", "name", "images"),
    kind={"enum": ["CronJob", "DaemonSet", "Deployment", "StatefulSet"]},
    namespace=_NAME,
    name=_NAME,
    images={"type": "object", "additionalProperties": _TEXT, "description": "image of each container, by its name"},
)
_CRD = _object(
    ("name", "digest"),
    name=_NAME,
    digest=_DIGEST,
    versions={"type": "object", "additionalProperties": _DIGEST, "description": "digest of each version's definition"},
)
_RELEASE = _object(
    ("name", "namespace", "source", "chart", "version", "status"),
    name=_NAME,
    namespace=_TEXT,
    source={"enum": ["helm", "argocd", "flux"]},
    chart=_TEXT,
    version=_TEXT,
    status={"type": "string", "description": "deployed, failed, pending..., out-of-sync, suspended, unknown"},
    values={"type": ["object", "null"], "description": "the user's values without secrets; null where not visible"},
    valuesDigest={**_DIGEST, "type": ["string", "null"]},
    rendered={"type": "boolean", "description": "whether workloads and crds are what the release rendered"},
    workloads=_list(_WORKLOAD),
    crds=_list(_CRD),
)

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "goodput.fleet/v1alpha1"},
        "kind": {"const": "Snapshot"},
        "metadata": _object(
            ("name",),
            name={"type": "string", "minLength": 1, "description": "the cluster's name"},
            takenAt={"type": "string", "description": "when, for people; never compared"},
            description=_TEXT,
        ),
        "spec": _object(
            ("parts", "server", "nodes", "releases", "workloads", "crds"),
            parts={
                "type": "object",
                "required": list(PARTS),
                "additionalProperties": False,
                "properties": dict.fromkeys(PARTS, _PART),
                "description": f"one status for each of {', '.join(PARTS)}",
            },
            namespaces={**_list(_NAME), "description": "where releases and workloads were read; none: everywhere"},
            workloadNamespaces={**_list(_NAME), "description": "where else workloads were read"},
            server=_object((), version=_TEXT, platform=_TEXT),
            nodes=_list(_NODE),
            releases=_list(_RELEASE),
            workloads=_list(_WORKLOAD),
            crds=_list(_CRD),
        ),
    },
}
