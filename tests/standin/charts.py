# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small charts that stand in for a recipe's real ones, so that its bundle installs without the internet.

A stand-in has the real chart's name and version, brings the CRDs, workloads and custom resources that the recipe
expects of it, and shows what reached it: every values key stands in the ConfigMap RELEASE-values and in the custom
resources' spec, the values that fix node facts in the containers' environment (`driver.version` as DRIVER_VERSION),
and the usual keys do the usual thing (enabled, image, repository, version, replicas, nodeSelector, tolerations).
A change of any value rolls the pods out anew.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from pathlib import Path

import yaml

from tests.standin import kinds

TEMPLATES = Path(__file__).with_name("chart")
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}


def archives(lock: dict) -> dict[str, bytes]:
    """{NAME-VERSION.tgz: bytes} for every component of a RecipeLock that has a chart. Same lock, same bytes.

    Raises ValueError for what a stand-in cannot do.
    """
    made: dict[str, bytes] = {}
    known = kinds.Kinds(lock)
    for component in lock["spec"]["components"]:
        if "chart" not in component:
            continue
        name = f"{component['chart']['name']}-{component['chart']['version']}.tgz"
        if name in made:
            raise ValueError(f"two components use the chart {name}: one archive cannot stand in for both")
        made[name] = archive(component["chart"]["name"], files(component, known))
    return made


def files(component: dict, known: kinds.Kinds) -> dict[str, str]:
    """The chart's files by their path in it."""
    chart = component["chart"]
    head = {
        "apiVersion": "v2",
        "name": chart["name"],
        "version": chart["version"],
        "appVersion": chart["version"],
        "type": "application",
        "description": f"Stands in for {chart['name']} in tests and demonstrations",
    }
    return {
        "Chart.yaml": yaml.safe_dump(head, sort_keys=False),
        "values.yaml": "{}\n",
        "standin.yaml": yaml.safe_dump(contents(component, known), sort_keys=False),
        "templates/_helpers.tpl": (TEMPLATES / "helpers.tpl").read_text(),
        "templates/objects.yaml": (TEMPLATES / "objects.tpl").read_text(),
        **{f"crds/{crd['metadata']['name']}.yaml": json.dumps(crd, indent=1) for crd in known.brought_by(component)},
    }


def contents(component: dict, known: kinds.Kinds) -> dict:
    """What the templates make: workloads, labels of their pods, environment, custom resources."""
    health = component.get("health") or {}
    workloads = health.get("workloads") or []
    if not workloads and not component.get("crds"):
        workloads = [{"kind": "Deployment", "name": component["release"]}]
    facts = [fact["valuesPath"] for fact in (component.get("nodeFacts") or {}).values()]
    return {
        "workloads": [workload(item, component) for item in workloads],
        "labels": health.get("selector") or {},
        "environment": [{"name": re.sub(r"\W", "_", path).upper(), "path": path} for path in sorted(set(facts))],
        "objects": known.needed_by(component),
    }


def workload(wanted: dict, component: dict) -> dict:
    if wanted["kind"] not in WORKLOADS:
        raise ValueError(f"{component['name']}: a stand-in makes {', '.join(WORKLOADS)}, no {wanted['kind']}")
    # like the real ones: agents run on every node, the rest wherever there is room, on GPU nodes too if need be
    tolerations = [{"operator": "Exists"}] if wanted["kind"] == "DaemonSet" else [GPU_TAINT]
    return {**wanted, "image": default_image(wanted["name"], component), "tolerations": tolerations}


def default_image(name: str, component: dict) -> dict[str, str]:
    """The component's image whose name is closest to the workload's, else one made up from the chart's."""
    words, found = set(name.split("-")), []
    for image in component.get("images") or []:
        folder, _slash, last = image.partition("@")[0].rpartition("/")
        last, _colon, tag = last.partition(":")
        own = set(last.split("-"))
        if own <= words or words <= own:  # cert-manager runs cert-manager-controller
            rank = (len(own ^ words), "controller" not in own)
            found.append((rank, {"folder": folder, "name": last, "tag": tag or "pinned"}))
    if found:
        return min(found, key=lambda pair: pair[0])[1]
    chart = component["chart"]
    host = chart["repository"].split("://")[1].split("/")[0]
    return {"folder": host, "name": name, "tag": chart["version"].replace("+", "_")}


def archive(name: str, content: dict[str, str]) -> bytes:
    """A .tgz as `helm package` makes it, but with the same bytes each time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, text in sorted(content.items(), key=lambda item: (item[0] != "Chart.yaml", item[0])):
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size, member.mode = len(text.encode()), 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(raw.getvalue(), mtime=0)
