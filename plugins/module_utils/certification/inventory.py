# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What certified nodes are made of: the software and firmware that a result holds for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DRIVER = "nvidia.com/cuda.driver-version.full"
_PARTS = (
    ("nvidia.com/cuda.driver-version.", ("major", "minor", "revision")),
    ("nvidia.com/cuda.driver.", ("major", "minor", "rev")),
)
# facts that another source may know: {name in `known`}
KNOWN = ("driver", "firmware", "vbios", "kernel", "bootId", "nccl", "cuda")


def build(
    nodes: Iterable[Mapping],
    runs: Iterable[tuple[Mapping, Mapping | None]] = (),
    known: Mapping[str, Mapping] | None = None,
) -> dict[str, dict]:
    """{node: {driver, kernel, bootId, osImage, kubelet, containerRuntime, nccl: [versions], product, firmware, …}}.

    nodes: raw Nodes. runs: (Run, what its parser read), which tell NCCL's version and DCGM's driver. known: {node:
    {driver, firmware, vbios, …}} from elsewhere, over all. What nobody told is absent.
    """
    found = {node["metadata"]["name"]: _of_node(node) for node in nodes}
    for run, parsed in runs:
        versions = _of_output(parsed or {})
        for name in run["nodes"]:
            facts = found.setdefault(name, {})
            if versions["nccl"]:
                facts["nccl"] = sorted({*facts.get("nccl", ()), *versions["nccl"]})
            if len(run["nodes"]) == 1 and versions["driver"]:
                facts.setdefault("driver", versions["driver"][-1])
    for name, facts in (known or {}).items():
        if name in found:
            found[name] |= {key: value for key, value in facts.items() if key in KNOWN and value not in (None, "")}
    return {name: found[name] for name in sorted(found)}


def _of_node(node: Mapping) -> dict:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    labels = node["metadata"].get("labels") or {}
    facts = {
        "driver": _driver(labels),
        "cuda": labels.get("nvidia.com/cuda.runtime-version.full"),
        "product": labels.get("nvidia.com/gpu.product"),
        "kernel": info.get("kernelVersion"),
        "bootId": info.get("bootID"),
        "machineId": info.get("machineID"),
        "osImage": info.get("osImage"),
        "kubelet": info.get("kubeletVersion"),
        "containerRuntime": info.get("containerRuntimeVersion"),
    }
    return {key: value for key, value in facts.items() if value}


def _driver(labels: Mapping) -> str:
    if labels.get(DRIVER):
        return labels[DRIVER]
    for prefix, names in _PARTS:
        parts = [labels[prefix + name] for name in names if labels.get(prefix + name)]
        if parts:
            return ".".join(parts)
    return ""


def _of_output(parsed: Mapping) -> dict[str, list[str]]:
    runs = parsed.get("runs") or ()
    return {
        "nccl": [str(run["ncclVersion"]) for run in runs if run.get("ncclVersion")],
        "driver": [str(run["driver"]) for run in runs if run.get("driver")],
    }
