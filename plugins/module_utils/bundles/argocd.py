# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argo CD: one Application a release, in sync waves, and an Application that holds them all."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import yamltext
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options, need_repository
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.units import Unit

ROOT = "goodput-fleet"
_WAVE = "argocd.argoproj.io/sync-wave"
_FINALIZER = "resources-finalizer.argocd.argoproj.io"
# Values are the last key of an Application: (depth, key)
VALUES = (6, "valuesObject")
_HEALTH = """\
hs = {}
hs.status = "Progressing"
hs.message = ""
if obj.status ~= nil then
  if obj.status.health ~= nil then
    hs.status = obj.status.health.status
    if obj.status.health.message ~= nil then
      hs.message = obj.status.health.message
    end
  end
end
return hs
"""


def render(units: list[Unit], options: Options) -> dict[str, bytes]:
    """`app-of-apps.yaml`, `apps/NAME.yaml`, `charts/NAME/` for manifests, and a patch that makes waves wait."""
    local = [f"charts/{unit.name}" for unit in units if not unit.chart]
    need_repository(options, ["apps", *local], url=True)
    files = {"app-of-apps.yaml": yamltext.document(app_of_apps(options, {"path": options.folder("apps")}))}
    for unit in units:
        files[f"apps/{unit.name}.yaml"] = yamltext.document(application(unit, options), *values(unit))
        files.update({f"charts/{unit.name}/{path}": text.encode() for path, text in unit.files.items()})
    files["argocd-cm.yaml"] = health_patch(options)
    return files


def values(unit: Unit) -> tuple[str, tuple[int, str]]:
    """The unit's values and where they stand in an Application."""
    if not _has_null(unit.values):
        return unit.values_text, VALUES
    # Helm needs nulls to take a chart's default away, and a client-side apply drops them from an object
    return "", VALUES


def application(unit: Unit, options: Options, folder: str = "charts") -> dict:
    """The Application of a unit, without values that follow as YAML text."""
    helm: dict = {"releaseName": unit.release}
    if _has_null(unit.values):
        helm["values"] = unit.values_text
    if unit.chart:
        source = {
            # Argo CD takes a repository without a scheme for an OCI registry, and oci:// for something else
            "repoURL": unit.chart["repository"].removeprefix("oci://"),
            "chart": unit.chart["name"],
            "targetRevision": unit.chart["version"],
            "helm": helm,
        }
    else:
        source = {
            "repoURL": options.repo_url,
            "path": options.folder(f"{folder}/{unit.name}"),
            "targetRevision": options.revision,
            "helm": helm,
        }
    # a kind that an operator brings is not known yet when its objects are looked at for the first time
    sync = ["CreateNamespace=true", "SkipDryRunOnMissingResource=true"]
    if unit.brings_crds:  # too large for the annotation of a client-side apply
        sync.append("ServerSideApply=true")
    return {
        **_frame(options.name_prefix + unit.name, options, {_WAVE: str(unit.wave)}),
        "spec": {
            "project": options.project,
            "destination": {"server": options.destination_server, "namespace": unit.namespace},
            "syncPolicy": {**_sync(options), "syncOptions": sync},
            "source": source,
        },
    }


def app_of_apps(options: Options, source: dict) -> dict:
    """The Application that syncs the others from the Git repository."""
    return {
        **_frame(options.name_prefix + ROOT, options, {}),
        "spec": {
            "project": options.project,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": options.argocd_namespace},
            "syncPolicy": _sync(options),
            "source": {"repoURL": options.repo_url, "targetRevision": options.revision, **source},
        },
    }


def health_patch(options: Options) -> bytes:
    """The part of argocd-cm that gives Applications a health: without it a wave does not wait for the one before."""
    return yamltext.document(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "argocd-cm", "namespace": options.argocd_namespace},
            "data": {"resource.customizations.health.argoproj.io_Application": _HEALTH},
        }
    )


def _frame(name: str, options: Options, annotations: dict) -> dict:
    metadata = {"name": name, "namespace": options.argocd_namespace, "labels": {"app.kubernetes.io/part-of": ROOT}}
    if annotations:
        metadata["annotations"] = annotations
    if options.cascade:
        metadata["finalizers"] = [_FINALIZER]
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata}


def _sync(options: Options) -> dict:
    return {
        "automated": {"prune": options.prune, "selfHeal": options.self_heal},
        "retry": {"limit": 10, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "5m"}},
    }


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    if isinstance(value, list):
        return any(map(_has_null, value))
    return value is None
