# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Argo CD and Flux were told to install, in the same form as Helm's own records.

Both are optional: where their API is not served, there is nothing, and that is no fault.
`values` is None where they lie in a file or object that the resource only refers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import Client, api_path
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound

ARGO = "argoproj.io/v1alpha1"
FLUX = ("helm.toolkit.fluxcd.io/v2", "helm.toolkit.fluxcd.io/v2beta2")


def argo_applications(client: Client, namespaces: Iterable[str] = ()) -> Iterator[dict]:
    """Argo CD's Applications that install into the namespaces (none named: all).

    `status` is deployed (Synced and Healthy), or out-of-sync, failed, pending, unknown.
    """
    wanted = set(namespaces)
    try:
        for item in client.list(api_path(ARGO, "applications"), page=100):
            app = _application(item)
            if app and (not wanted or app["namespace"] in wanted):
                yield app
    except NotFound:
        return


def _application(item: dict) -> dict | None:
    spec, metadata = item.get("spec") or {}, item["metadata"]
    sources = spec.get("sources") or [spec.get("source") or {}]
    # the chart is the one that matters; the others of a multi-source Application carry its value files
    source = next((entry for entry in sources if entry.get("chart")), sources[0])
    helm = source.get("helm") or {}
    return {
        "source": "argocd",
        "name": helm.get("releaseName") or metadata["name"],
        "namespace": (spec.get("destination") or {}).get("namespace") or metadata.get("namespace") or "",
        "status": _argo_status(item.get("status") or {}),
        "chart": source.get("chart") or "",
        "version": str(source.get("targetRevision") or ""),
        "values": _argo_values(helm),
        "manifest": "",
        "crds": [],
    }


def _argo_status(status: dict) -> str:
    sync = (status.get("sync") or {}).get("status")
    health = (status.get("health") or {}).get("status")
    if health in ("Degraded", "Missing"):
        return "failed"
    if sync == "OutOfSync":
        return "out-of-sync"
    if health in ("Progressing", "Suspended"):
        return "pending"
    return "deployed" if sync == "Synced" and health == "Healthy" else "unknown"


def _argo_values(helm: dict) -> dict | None:
    if helm.get("valueFiles") or helm.get("fileParameters"):
        return None
    if helm.get("parameters"):
        return None  # name=value strings, typed by Helm's own rules: not worth guessing
    if isinstance(helm.get("valuesObject"), dict):
        return helm["valuesObject"]
    return _yaml(helm.get("values"))


def _yaml(text) -> dict | None:
    import yaml

    if not text:
        return {}
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return data if isinstance(data, dict) else None


def flux_releases(client: Client, namespaces: Iterable[str] = ()) -> Iterator[dict]:
    """Flux's HelmReleases that install into the namespaces (none named: all).

    `status` is deployed (Ready), failed, pending, suspended or unknown. `version` is the one that was asked for.
    """
    wanted = set(namespaces)
    for api_version in FLUX:
        try:
            for item in client.list(api_path(api_version, "helmreleases"), page=100):
                release = _helm_release(item)
                if not wanted or release["namespace"] in wanted:
                    yield release
            return
        except NotFound:
            continue


def _helm_release(item: dict) -> dict:
    spec, metadata = item.get("spec") or {}, item["metadata"]
    namespace = spec.get("targetNamespace") or metadata["namespace"]
    prefix = f"{spec['targetNamespace']}-" if spec.get("targetNamespace") else ""
    chart = (spec.get("chart") or {}).get("spec") or {}
    history = ((item.get("status") or {}).get("history") or [{}])[0]
    return {
        "source": "flux",
        "name": spec.get("releaseName") or f"{prefix}{metadata['name']}",
        "namespace": namespace,
        "status": _flux_status(spec, metadata, item.get("status") or {}),
        "chart": chart.get("chart") or history.get("chartName") or "",
        "version": str(chart.get("version") or history.get("chartVersion") or ""),
        "values": None if spec.get("valuesFrom") else spec.get("values") or {},
        "manifest": "",
        "crds": [],
    }


def _flux_status(spec: dict, metadata: dict, status: dict) -> str:
    if spec.get("suspend"):
        return "suspended"
    ready = next((entry for entry in status.get("conditions") or () if entry.get("type") == "Ready"), {})
    if ready.get("status") == "True":
        current = ready.get("observedGeneration", status.get("observedGeneration"))
        return "deployed" if current in (None, metadata.get("generation")) else "pending"
    return {"False": "failed", "Unknown": "pending"}.get(ready.get("status"), "unknown")
