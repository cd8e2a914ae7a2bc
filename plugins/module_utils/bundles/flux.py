# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flux: a HelmRelease a release, `dependsOn` as in the recipe's graph, and the sources they need.

Everything lives in one namespace and is released into the component's own; no reference crosses namespaces, except
to the GitRepository where that is elsewhere.
"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import yamltext
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options, need_repository
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.repositories import aliases
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.units import Unit

# Values may hold ${...}: a Kustomization with postBuild must not replace it.
_VERBATIM = {"kustomize.toolkit.fluxcd.io/substitute": "disabled"}
_CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def render(units: list[Unit], options: Options) -> dict[str, bytes]:
    """`kustomization.yaml`, `sources/KIND-NAME.yaml`, `releases/NAME.yaml`, and `charts/NAME/` for manifests."""
    need_repository(options, [f"charts/{unit.name}" for unit in units if not unit.chart], url=False)
    names = aliases(unit.chart["repository"] for unit in units if unit.chart and not unit.oci)
    sources = {}
    for url, name in names.items():
        sources[f"sources/helmrepository-{name}.yaml"] = _helm_repository(name, url, options)
    releases, files = {}, {}
    for unit in units:
        if unit.oci:
            sources[f"sources/ocirepository-{unit.name}.yaml"] = _oci_repository(unit, options)
        releases[f"releases/{unit.name}.yaml"] = _release(unit, options, names)
        files.update({f"charts/{unit.name}/{path}": text.encode() for path, text in unit.files.items()})
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [*sorted(sources), *releases],
    }
    return {"kustomization.yaml": yamltext.document(kustomization), **sources, **releases, **files}


def _helm_repository(name: str, url: str, options: Options) -> bytes:
    spec = {"interval": options.interval, "url": url}
    return yamltext.document(_object("source.toolkit.fluxcd.io/v1", "HelmRepository", name, options, spec))


def _oci_repository(unit: Unit, options: Options) -> bytes:
    spec = {
        "interval": options.interval,
        "url": f"{unit.chart['repository']}/{unit.chart['name']}",
        # a tag has no +, Helm writes _ for it
        "ref": {"tag": unit.chart["version"].replace("+", "_")},
        "layerSelector": {"mediaType": _CHART_LAYER, "operation": "copy"},
    }
    return yamltext.document(_object("source.toolkit.fluxcd.io/v1", "OCIRepository", unit.name, options, spec))


def _release(unit: Unit, options: Options, names: dict[str, str]) -> bytes:
    retries = {"remediation": {"retries": options.retries}}
    spec = {
        "interval": options.interval,
        "timeout": f"{options.seconds(unit.component)}s",
        "releaseName": unit.release,
        "targetNamespace": unit.namespace,
        "storageNamespace": unit.namespace,
        **_chart(unit, options, names),
        **({"dependsOn": [{"name": name} for name in unit.needs]} if unit.needs else {}),
        "install": {"createNamespace": True, "crds": "CreateReplace", **retries},
        "upgrade": {"crds": "CreateReplace", **retries},
        "driftDetection": {"mode": options.drift_detection},
    }
    head = _object("helm.toolkit.fluxcd.io/v2", "HelmRelease", unit.name, options, spec)
    return yamltext.document(head, unit.values_text, (2, "values"))


def _chart(unit: Unit, options: Options, names: dict[str, str]) -> dict:
    if unit.oci:
        return {"chartRef": {"kind": "OCIRepository", "name": unit.name}}
    if unit.chart:
        source = {"kind": "HelmRepository", "name": names[unit.chart["repository"]]}
        chart = {"chart": unit.chart["name"], "version": unit.chart["version"], "sourceRef": source}
    else:
        source = {"kind": "GitRepository", "name": options.source_name}
        if options.source_namespace != options.flux_namespace:
            source["namespace"] = options.source_namespace
        chart = {"chart": "./" + options.folder(f"charts/{unit.name}"), "sourceRef": source}
    return {"chart": {"spec": chart}}


def _object(api_version: str, kind: str, name: str, options: Options, spec: dict) -> dict:
    metadata = {"name": name, "namespace": options.flux_namespace, "annotations": _VERBATIM}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
