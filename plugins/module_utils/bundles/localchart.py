# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests as a small Helm chart that renders them exactly as they are.

CRDs go to the chart's crds/ folder, which Helm installs before it looks at anything else, so a custom resource may
stand in the same chart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import yamltext

SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*[^\s#]", re.MULTILINE)
_CRD = re.compile(r"""^(?:kind|"kind"|'kind')\s*:\s*["']?CustomResourceDefinition["']?\s*(?:#.*)?$""", re.MULTILINE)


def split(manifests: Iterable[dict], has_chart: bool) -> tuple[dict[str, str], dict[str, str]]:
    """(before, after): the files of the charts before and after the component's own one.

    With a chart, CRDs always come before it: it may hold objects of that kind. Without one they are with the rest.
    """
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for manifest in manifests:
        crds, others = _documents(manifest["content"])
        side = before if manifest["phase"] == "pre" else after
        if others:
            side[f"templates/{manifest['name']}.yaml"] = literal("---\n".join(others))
        if crds:
            (before if has_chart else side)[f"crds/{manifest['name']}.yaml"] = "---\n".join(crds)
    if not has_chart and before and after:  # a CRD of the later part may be what the earlier part needs
        before.update({path: after.pop(path) for path in [*after] if path.startswith("crds/")})
    return before, after


def _documents(text: str) -> tuple[list[str], list[str]]:
    """The CRDs and the other documents of a manifest, each ending with a line break."""
    crds, others = [], []
    for part in SEPARATOR.split(text):
        if _CONTENT.search(part):
            part = part.lstrip("\r\n")
            (crds if is_crd(part) else others).append(part if part.endswith("\n") else part + "\n")
    return crds, others


def is_crd(part: str) -> bool:
    """Whether the document is a CustomResourceDefinition."""
    if "CustomResourceDefinition" not in part:
        return False
    if not part.lstrip().startswith("{"):
        return bool(_CRD.search(part))
    import yaml  # a document in JSON's form is rare: parse it

    try:
        data = yaml.safe_load(part)
    except yaml.YAMLError:
        return False
    return isinstance(data, dict) and data.get("kind") == "CustomResourceDefinition"


def literal(text: str) -> str:
    """A template that renders as the text: Helm must not read the braces of alerts and dashboards as its own."""
    return text.replace("{{", '{{ "{{" }}')


def has_crds(files: dict[str, str]) -> bool:
    return any(path.startswith("crds/") for path in files)


def chart(name: str, files: dict[str, str]) -> dict[str, str]:
    """The files with their Chart.yaml. Its version follows from the content: Flux upgrades only on a new version."""
    content = hashlib.sha256()
    for path in sorted(files):
        content.update(f"{path}\0{files[path]}\0".encode())
    head = {
        "apiVersion": "v2",
        "name": name,
        "description": f"Manifests of {name}",
        "type": "application",
        "version": f"1.0.0+{content.hexdigest()[:12]}",
    }
    return {"Chart.yaml": yamltext.document(head).decode(), **dict(sorted(files.items()))}
