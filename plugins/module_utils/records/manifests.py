# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Kubernetes manifests ask for, in the compact form that locks and snapshots keep.

A workload is {kind, namespace, name, images: {container: image}}, a CRD {name, digest, versions: {version: digest}}.
The digest is over the spec as the API server would store it: with its defaults, without what it drops. So a CRD
from a chart and the same CRD read back from a cluster have one digest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import sha256
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

WORKLOADS = ("CronJob", "DaemonSet", "Deployment", "StatefulSet")
INTERESTING = re.compile(
    rf"""^(?:\{{|["']?kind["']?:\s*["']?(?:{"|".join(WORKLOADS)}|CustomResourceDefinition|List)\b)""", re.M
)
SEPARATOR = re.compile(r"^---(?:\s.*)?$", re.M)


def from_texts(texts: Iterable[str], namespace: str, source: str) -> dict[str, list[dict]]:
    """{workloads, crds} of manifest texts, each sorted. Helm's hooks are left out: they come and go.

    `namespace` is where objects without one end up. Raises InvalidDocument naming `source`.
    """
    workloads, crds = {}, {}
    for item in _objects(texts, source):
        kind, metadata = item.get("kind"), item.get("metadata") or {}
        if "helm.sh/hook" in (metadata.get("annotations") or {}):
            continue
        if kind == "CustomResourceDefinition":
            crds[metadata.get("name")] = crd(item)
        elif kind in WORKLOADS:
            found = workload(item, kind, namespace)
            workloads[found["kind"], found["namespace"], found["name"]] = found
    return {"workloads": [workloads[key] for key in sorted(workloads)], "crds": [crds[key] for key in sorted(crds)]}


def _objects(texts: Iterable[str], source: str) -> Iterator[dict]:
    import yaml

    for text in texts:
        for part in SEPARATOR.split(text):
            if not INTERESTING.search(part):  # most of a chart is neither: do not pay for parsing it
                continue
            try:
                data = yaml.load(part, Loader=_loader())
            except yaml.YAMLError as error:
                what = " ".join(str(getattr(error, "problem", None) or error).split())
                raise InvalidDocument(f"malformed manifest: {what}", file=source) from error
            items = data.get("items") or [] if isinstance(data, dict) and data.get("kind") == "List" else [data]
            yield from (item for item in items if isinstance(item, dict))


@functools.lru_cache(maxsize=1)
def _loader():
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        """As Go's parser: a date is text."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    return Loader


def workload(item: dict, kind: str, namespace: str = "") -> dict:
    """The compact form of a Deployment, DaemonSet, StatefulSet or CronJob."""
    metadata = item["metadata"]
    spec = item.get("spec") or {}
    if kind == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    images = {entry["name"]: entry.get("image") or "" for entry in pod.get("containers") or ()}
    for entry in pod.get("initContainers") or ():
        images[entry["name"]] = entry.get("image") or ""
    return {
        "kind": kind,
        "namespace": metadata.get("namespace") or namespace,
        "name": metadata["name"],
        "images": images if len(images) < 2 else dict(sorted(images.items())),
    }


def crd(item: dict) -> dict:
    """The compact form of a CustomResourceDefinition (apiextensions.k8s.io/v1)."""
    spec = normal_crd_spec(item.get("spec") or {})
    return {
        "name": item["metadata"]["name"],
        "digest": sha256(spec),
        "versions": {version["name"]: sha256(version) for version in spec["versions"]},
    }


def normal_crd_spec(spec: dict) -> dict:
    """A CRD's spec as the API server stores it, less what others fill in by right (a webhook's CA bundle)."""
    names = spec.get("names") or {}
    kind = str(names.get("kind", ""))
    conversion = dict(_kept(spec.get("conversion") or {"strategy": "None"}))
    if conversion.get("webhook"):
        client = dict((conversion["webhook"] or {}).get("clientConfig") or {})
        client.pop("caBundle", None)
        if client.get("service"):
            client["service"] = {"port": 443, **_kept(client["service"])}
        conversion["webhook"] = {**_kept(conversion["webhook"]), "clientConfig": client}
    return _numbers(
        {
            "group": spec.get("group"),
            "scope": spec.get("scope"),
            "names": {"singular": kind.lower(), "listKind": f"{kind}List", **_kept(names)},
            "conversion": conversion,
            "preserveUnknownFields": bool(spec.get("preserveUnknownFields")),
            "versions": sorted(
                (_version(version) for version in spec.get("versions") or ()), key=lambda version: version["name"]
            ),
        }
    )


def _version(version: dict) -> dict:
    result = {
        "name": str(version.get("name")),
        "served": bool(version.get("served")),
        "storage": bool(version.get("storage")),
    }
    for key in ("deprecated", "deprecationWarning", "selectableFields"):
        if version.get(key):
            result[key] = version[key]
    if version.get("additionalPrinterColumns"):
        result["additionalPrinterColumns"] = [_kept(column) for column in version["additionalPrinterColumns"]]
    subresources = {
        key: _kept(value) for key, value in (version.get("subresources") or {}).items() if value is not None
    }
    if subresources:
        result["subresources"] = subresources
    result["schema"] = _schema((version.get("schema") or {}).get("openAPIV3Schema") or {})
    return result


def _kept(fields: dict) -> dict:
    """Go's omitempty, for fields whose zero means absent."""
    return {key: value for key, value in fields.items() if value not in (None, "", False, 0, [], {})}


# JSONSchemaProps of apiextensions/v1, by how Go reads and writes each field.
_ZERO_IS_ABSENT = frozenset(
    (
        "id",
        "$schema",
        "$ref",
        "description",
        "type",
        "format",
        "title",
        "pattern",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "uniqueItems",
        "nullable",
        "enum",
        "required",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
    )
)
_POINTERS = frozenset(
    (
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "maxProperties",
        "minProperties",
        "default",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    )
)
_FLOATS = frozenset(("maximum", "minimum", "multipleOf"))
_SCHEMAS = frozenset(("allOf", "oneOf", "anyOf"))
_SCHEMA_MAPS = frozenset(("properties", "patternProperties", "definitions", "dependencies"))
_SCHEMA_OR_ELSE = frozenset(("not", "items", "additionalProperties", "additionalItems"))


def _schema(schema: dict) -> dict:
    """One level of a schema, recursively. Fields that the API server does not know are dropped, as it does."""
    result: dict = {}
    for key, value in schema.items():
        if value is None:
            continue
        if key in _ZERO_IS_ABSENT:
            if value not in ("", False, []):
                result[key] = value
        elif key in _POINTERS:
            result[key] = value
        elif key in _FLOATS:
            result[key] = float(value)
        elif key in _SCHEMAS:
            if value:
                result[key] = [_schema(item) for item in value]
        elif key in _SCHEMA_MAPS:
            if value:
                result[key] = {
                    str(name): _schema(item) if isinstance(item, dict) else item for name, item in value.items()
                }
        elif key in _SCHEMA_OR_ELSE:
            result[key] = _schema(value) if isinstance(value, dict) else value
        elif key == "x-kubernetes-validations":
            if value:
                result[key] = [_kept(rule) for rule in value]
        elif key == "externalDocs":
            result[key] = _kept(value)
    return result


def _numbers(value):
    """1.0 and 1 are one JSON number."""
    if isinstance(value, dict):
        return {str(key): _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
