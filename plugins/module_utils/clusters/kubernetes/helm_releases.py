# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm's own records: which chart, which version, which values are installed.

Helm (3 and 4) keeps each revision of a release in a Secret of type helm.sh/release.v1, the data being JSON, gzipped,
base64-encoded, and base64-encoded once more by Kubernetes. A Secret can be 1 MiB and a release has up to ten
revisions, so only metadata is listed, and only the newest revision is fetched and decoded, one at a time.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import Client, api_path
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

MAX_BYTES = 64 * 1024 * 1024  # what a release may unpack to


def read(client: Client, namespaces: Iterable[str] = ()) -> Iterator[dict]:
    """The newest revision of each release in the namespaces (none named: in the whole cluster).

    Yields {source, name, namespace, status, revision, chart, version, values, manifest, crds}: `values` are the
    user's, `manifest` is the rendered text, `crds` the texts of the chart's crds/ folder, `status` Helm's word
    (deployed, failed, pending-upgrade...). Raises Denied, Unavailable, or InvalidDocument for a damaged record.
    """
    for scope in sorted(set(namespaces)) or [None]:
        newest: dict[tuple[str, str], tuple[int, str, str]] = {}
        secrets = client.list(api_path("v1", "secrets", scope), metadata_only=True, labelSelector="owner=helm")
        for item in secrets:
            metadata = item["metadata"]
            labels = metadata.get("labels") or {}
            key = (metadata["namespace"], labels.get("name") or "")
            revision = int(labels["version"]) if str(labels.get("version", "")).isdigit() else -1
            if key[1] and revision > newest.get(key, (-1, "", ""))[0]:
                newest[key] = (revision, metadata["name"], labels.get("status") or "")
        for (namespace, name), (revision, secret, status) in sorted(newest.items()):
            if status == "uninstalled":  # kept by --keep-history: the release is gone
                continue
            try:
                found = client.get(api_path("v1", "secrets", namespace, secret))
            except NotFound:  # uninstalled since it was listed
                continue
            payload = (found.get("data") or {}).get("release") or ""
            yield release(decode(payload, f"release {namespace}/{name} revision {revision}"), namespace)


def decode(payload: str, source: str) -> dict:
    """A Secret's data.release as Helm's release JSON. Raises InvalidDocument."""
    try:
        packed = base64.b64decode(base64.b64decode(payload, validate=True), validate=True)
        if packed[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
                packed = stream.read(MAX_BYTES + 1)
            if len(packed) > MAX_BYTES:
                raise InvalidDocument(f"unpacks to more than {MAX_BYTES >> 20} MiB", file=source)
        data = json.loads(packed)
    except (binascii.Error, ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
        raise InvalidDocument(f"Helm's record is damaged: {error}", file=source, hint="see helm history") from error
    if not isinstance(data, dict) or not data.get("name"):
        raise InvalidDocument("Helm's record is damaged: it holds no release", file=source, hint="see helm history")
    return data


def release(data: dict, namespace: str) -> dict:
    """What drift needs of Helm's release JSON."""
    chart = data.get("chart") or {}
    metadata = chart.get("metadata") or {}
    crds = [_text(entry) for entry in chart.get("files") or () if _is_crd(entry.get("name", ""))]
    return {
        "source": "helm",
        "name": data["name"],
        "namespace": data.get("namespace") or namespace,
        "status": (data.get("info") or {}).get("status") or "unknown",
        "revision": data.get("version") or 0,
        "chart": metadata.get("name") or "",
        "version": metadata.get("version") or "",
        "values": data.get("config") or {},
        "manifest": data.get("manifest") or "",
        "crds": crds,
    }


def _is_crd(name: str) -> bool:
    return name.startswith("crds/") and name.endswith((".yaml", ".yml", ".json"))


def _text(entry: dict) -> str:
    return base64.b64decode(entry.get("data") or "").decode(errors="replace")
