# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argo CD with Helm: the bundle is a chart that renders the Applications, so that a site sets them at install time.

The template is the same for every recipe and reads the Applications as data: nothing of a recipe is ever template
text, so braces in values are safe.
"""

from __future__ import annotations

import hashlib
import json

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import argocd, yamltext
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options, need_repository
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.units import Unit
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree

FOLDER = "manifests"  # charts/ would make the local charts parts of this one
_TEMPLATE = """\
{{- $values := .Values }}
{{- $namespace := .Release.Namespace }}
{{- range $entry := .Files.Get "applications.yaml" | fromYamlArray }}
{{- $app := $entry.application }}
{{- $source := $app.spec.source }}
{{- $own := (get $values.components $entry.unit | default dict).values }}
{{- $_ := set $app.metadata "name" (printf "%s%s" $values.namePrefix $entry.unit) }}
{{- $_ := set $app.metadata "namespace" $namespace }}
{{- $_ := set $app.spec "project" $values.project }}
{{- $_ := set $app.spec.destination "server" $values.destination.server }}
{{- $_ := set $app.spec.syncPolicy "automated" $values.automated }}
{{- if $source.path }}
{{- $url := required "set repoURL: the manifests of this recipe are read from the Git repository" $values.repoURL }}
{{- $_ := set $source "repoURL" $url }}
{{- $_ := set $source "targetRevision" $values.targetRevision }}
{{- $path := required "set path: the folder of this bundle in the Git repository, . is its root" $values.path }}
{{- $_ := set $source "path" (clean (printf "%s/%s" $path $source.path)) }}
{{- else if and $own $source.helm.values }}
{{- $_ := set $source.helm "values" (toYaml (mustMergeOverwrite (fromYaml $source.helm.values) $own)) }}
{{- else if $own }}
{{- $_ := set $source.helm "valuesObject" $own }}
{{- end }}
---
{{ toYaml $app }}
{{- end }}
"""
# What the bundle holds besides the chart.
_IGNORED = ("README.md", "application.yaml", "argocd-cm.yaml", "bundle.json", "bundle.sha256*", "recipe.lock.yaml",
            f"{FOLDER}/", "mirror/", ".git/")  # fmt: skip


def render(units: list[Unit], options: Options) -> dict[str, bytes]:
    """A chart at the bundle's root, and the Application that installs it where the repository is known."""
    local = [f"{FOLDER}/{unit.name}" for unit in units if not unit.chart]
    if options.repo_url:
        need_repository(options, ["the chart", *local], url=True)
    anywhere = Options(cascade=options.cascade)  # what the chart's values decide later
    entries = []
    for unit in units:
        found = argocd.application(unit, anywhere, FOLDER)
        if not unit.chart:
            for key in ("repoURL", "targetRevision"):
                del found["spec"]["source"][key]
        entries.append({"unit": unit.name, "application": found})
    files = {
        ".helmignore": ("\n".join(_IGNORED) + "\n").encode(),
        "applications.yaml": yamltext.document(entries),
        "templates/applications.yaml": _TEMPLATE.encode(),
        "values.yaml": _values(units, options),
        "values.schema.json": _schema(units),
        "argocd-cm.yaml": argocd.health_patch(options),
    }
    if options.repo_url:
        root = argocd.app_of_apps(options, {"path": options.path.removeprefix("./").rstrip("/")})
        files["application.yaml"] = yamltext.document(root)
    for unit in units:
        files.update({f"{FOLDER}/{unit.name}/{path}": text.encode() for path, text in unit.files.items()})
    files["Chart.yaml"] = yamltext.document(
        {
            "apiVersion": "v2",
            "name": argocd.ROOT,
            "description": "Argo CD Applications of a recipe",
            "type": "application",
            "version": f"1.0.0+{_content(files)}",
        }
    )
    return files


def _values(units: list[Unit], options: Options) -> bytes:
    head = {
        "repoURL": options.repo_url,
        "targetRevision": options.revision,
        "path": options.path.removeprefix("./").rstrip("/"),
        "project": options.project,
        "namePrefix": options.name_prefix,
        "destination": {"server": options.destination_server},
        "automated": {"prune": options.prune, "selfHeal": options.self_heal},
    }
    components = []
    for unit in (unit for unit in units if unit.chart):
        text, _place = argocd.values(unit)
        values = f"values:\n{yamltext.indent(text, 2)}" if text else "values: {}\n"
        key = yamltree.dump({unit.name: None}).removesuffix(" null\n")  # quoted where it must be
        components.append(f"{key}\n{yamltext.indent(values, 2)}")
    if not components:
        head["components"] = {}
    return yamltext.document(head, "".join(components), (0, "components"))


def _schema(units: list[Unit]) -> bytes:
    """Refuses what the chart would not read: a misspelt component would keep its values without a word."""
    text, flag = {"type": "string"}, {"type": "boolean"}
    one = _closed({"values": {"type": "object"}})
    schema = _closed(
        {
            "global": {"type": "object"},
            "repoURL": text,
            "targetRevision": text,
            "path": text,
            "project": text,
            "namePrefix": text,
            "destination": _closed({"server": text}),
            "automated": _closed({"prune": flag, "selfHeal": flag}),
            "components": _closed({unit.name: one for unit in units if unit.chart}),
        }
    )
    return (json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, indent=2) + "\n").encode()


def _closed(properties: dict) -> dict:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _content(files: dict[str, bytes]) -> str:
    content = hashlib.sha256()
    for path in sorted(files):
        content.update(path.encode() + b"\0" + files[path] + b"\0")
    return content.hexdigest()[:12]
