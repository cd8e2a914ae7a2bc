# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain Helm: folders in the order of installation and a plan that a program executes. No script is written."""

from __future__ import annotations

import json

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import yamltext
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.units import Unit


def render(units: list[Unit], options: Options) -> dict[str, bytes]:
    """`plan.json` and one numbered folder a release: values.yaml of a chart, or a local chart."""
    files, steps = {}, []
    for number, unit in enumerate(units, 1):
        folder = f"{number:03d}-{unit.folder}"
        if unit.chart:
            files[f"{folder}/values.yaml"] = (yamltext.NOTE + (unit.values_text or "{}\n")).encode()
        else:
            files.update({f"{folder}/{path}": text.encode() for path, text in unit.files.items()})
        steps.append(_step(unit, folder, options.seconds(unit.component)))
    files["plan.json"] = (json.dumps({"steps": steps}, indent=2, ensure_ascii=False) + "\n").encode()
    return files


def _step(unit: Unit, folder: str, seconds: int) -> dict:
    chart = unit.chart or {}
    return {
        "component": unit.component,
        "release": unit.release,
        "namespace": unit.namespace,
        "chart": chart.get("name"),
        "repository": chart.get("repository"),
        "oci": unit.oci,
        "version": chart.get("version"),
        "digest": chart.get("digest"),
        "values": f"{folder}/values.yaml" if chart else None,
        "path": None if chart else folder,
        "timeout": f"{seconds}s",
        "tier": unit.tier,
        # Helm itself never upgrades what is in crds/
        "crdsFirst": unit.brings_crds,
        # once the last release of a component is in, the component must be healthy before the next step
        "gate": {"component": unit.component, "seconds": seconds} if unit.last else None,
    }
