# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helmfile: one helmfile.yaml whose releases need each other as in the recipe's graph."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import yamltext
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.repositories import aliases
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.units import Unit


def render(units: list[Unit], options: Options) -> dict[str, bytes]:
    """`helmfile.yaml`, `values/NAME.yaml`, and `charts/NAME/` for manifests."""
    names = aliases(unit.chart["repository"] for unit in units if unit.chart)
    keys = {unit.name: f"{unit.namespace}/{unit.release}" for unit in units}
    files = {}
    releases = []
    for unit in units:
        release: dict = {"name": unit.release, "namespace": unit.namespace}
        if unit.chart:
            release["chart"] = f"{names[unit.chart['repository']]}/{unit.chart['name']}"
            release["version"] = unit.chart["version"]
        else:
            release["chart"] = f"./charts/{unit.name}"
            release["skipDeps"] = True
            files.update({f"charts/{unit.name}/{path}": text.encode() for path, text in unit.files.items()})
        if unit.needs:
            release["needs"] = [keys[name] for name in unit.needs]
        if unit.values_text:
            release["values"] = [f"values/{unit.name}.yaml"]
            files[f"values/{unit.name}.yaml"] = (yamltext.NOTE + unit.values_text).encode()
        if options.seconds(unit.component) != options.timeout:
            release["timeout"] = options.seconds(unit.component)
        # the diff before a first installation would look up kinds whose CRDs an earlier release brings
        release["disableValidationOnInstall"] = True
        release["labels"] = {"component": unit.component, "tier": str(unit.tier)}
        releases.append(release)
    state = {
        "helmDefaults": {"createNamespace": True, "wait": True, "timeout": options.timeout},
        "repositories": [_repository(name, url) for url, name in names.items()],
        "releases": releases,
    }
    return {"helmfile.yaml": yamltext.document({key: value for key, value in state.items() if value}), **files}


def _repository(name: str, url: str) -> dict:
    if url.startswith("oci://"):
        return {"name": name, "url": url.removeprefix("oci://"), "oci": True}
    return {"name": name, "url": url}
