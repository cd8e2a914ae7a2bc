# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From raw API objects to the small, stable facts that a Snapshot holds. Pure, one object at a time.

Called for every object of the largest clusters: what is read is read once, and equal texts are kept once.
"""

from __future__ import annotations

import re
from sys import intern

from ansible_collections.goodput.fleet.plugins.module_utils.drift.redact import redact
from ansible_collections.goodput.fleet.plugins.module_utils.drift.volatile import is_left_out, is_state_taint
from ansible_collections.goodput.fleet.plugins.module_utils.records import manifests
from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import sha256

# a node's pool, in the words of each cloud and provisioner
POOL_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "oci.oraclecloud.com/node-pool-id",
    "karpenter.sh/nodepool",
    "node.cluster.x-k8s.io/pool",
    "goodput.fleet/pool",
)
INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
OS_IMAGES = (  # what a kubelet reports as osImage -> /etc/os-release's ID; group 1 is VERSION_ID
    ("ubuntu", re.compile(r"^Ubuntu (\d+\.\d+)")),
    ("rhel", re.compile(r"^Red Hat Enterprise Linux (?:Server )?(\d+(?:\.\d+)?)")),
    ("rhcos", re.compile(r"^Red Hat Enterprise Linux CoreOS (\d[\d.-]*)")),
    ("amzn", re.compile(r"^Amazon Linux (\d+)")),
    ("cos", re.compile(r"^Container-Optimized OS from Google ?(\d*)")),
    ("debian", re.compile(r"^Debian GNU/Linux (\d+)")),
    ("rocky", re.compile(r"^Rocky Linux (\d+(?:\.\d+)?)")),
    ("almalinux", re.compile(r"^AlmaLinux (\d+(?:\.\d+)?)")),
    ("ol", re.compile(r"^Oracle Linux (?:Server )?(\d+(?:\.\d+)?)")),
    ("azurelinux", re.compile(r"^(?:Microsoft )?Azure Linux (\d+(?:\.\d+)?)")),
    ("bottlerocket", re.compile(r"^Bottlerocket OS (\d[\d.]*)")),
    ("talos", re.compile(r"^Talos \(?v?(\d[\w.-]*)")),
    ("flatcar", re.compile(r"^Flatcar Container Linux.*?(\d[\d.]*)")),
    ("sles", re.compile(r"^SUSE Linux Enterprise Server (\d+(?: SP\d+)?)")),
)


def server(version: dict) -> dict:
    """The facts in what /version serves."""
    release = version.get("gitVersion", "")
    if release.startswith("v0.0.0"):  # built from source without a version; major and minor are compiled in
        minor = "".join(filter(str.isdigit, version.get("minor", "")))
        release = f"v{version.get('major')}.{minor}.0"
    return {"version": release, "platform": version.get("platform", "")}


def node(item: dict) -> dict:
    """The facts of one Node. A fact that the node does not tell is empty, never guessed."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    info = status.get("nodeInfo") or {}
    labels = item["metadata"].get("labels") or {}
    kept = {intern(key): intern(value) for key, value in labels.items() if not is_left_out(key)}
    os_image = intern(info.get("osImage", ""))
    os_id, os_version = _os(labels, os_image)
    return {
        "name": item["metadata"]["name"],
        "ready": any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in status.get("conditions") or ()
        ),
        "labels": dict(sorted(kept.items())),
        "taints": sorted(_taint(entry) for entry in spec.get("taints") or () if not is_state_taint(entry["key"])),
        "unschedulable": bool(spec.get("unschedulable")),
        "kernel": intern(info.get("kernelVersion", "")),
        "osImage": os_image,
        "osId": intern(os_id),
        "osVersion": intern(os_version),
        "kubelet": intern(info.get("kubeletVersion", "")),
        "containerRuntime": intern(info.get("containerRuntimeVersion", "")),
        "driver": intern(_driver(labels)),
        "accelerator": intern(labels.get("nvidia.com/gpu.product", "")),
        "gpus": _gpus(labels, status),
        "group": intern(_first(labels, POOL_LABELS)),
    }


def _first(labels: dict, keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")


def _taint(entry: dict) -> str:
    value = f"={entry['value']}" if entry.get("value") else ""
    return f"{entry['key']}{value}:{entry.get('effect', '')}"


def _driver(labels: dict) -> str:
    """GPU feature discovery's labels, newer ones first."""
    full = labels.get("nvidia.com/cuda.driver-version.full")
    if full:
        return full
    for prefix, last in (("nvidia.com/cuda.driver-version.", "revision"), ("nvidia.com/cuda.driver.", "rev")):
        parts = [labels.get(prefix + part, "") for part in ("major", "minor", last)]
        if parts[0] and parts[1]:
            return ".".join(part for part in parts if part)
    return ""


def _gpus(labels: dict, status: dict) -> dict:
    """GPU resources of the node, whole ones and slices; `count` is the number of boards, None if not told."""
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    names = [name for name in capacity if name.startswith(("nvidia.com/gpu", "nvidia.com/mig-"))]
    whole = _number(capacity.get("nvidia.com/gpu")) if names == ["nvidia.com/gpu"] else None
    told = labels.get("nvidia.com/gpu.count", "")
    return {
        "capacity": sum(_number(capacity[name]) for name in names),
        "allocatable": sum(_number(allocatable.get(name)) for name in names),
        "count": int(told) if told.isdigit() else whole,
    }


def _number(quantity) -> int:
    text = str(quantity or 0)
    return int(text) if text.isdigit() else 0


def _os(labels: dict, image: str) -> tuple[str, str]:
    """os-release's ID and VERSION_ID: from node feature discovery where it runs, else read off the image's name."""
    name = labels.get("feature.node.kubernetes.io/system-os_release.ID", "")
    version = labels.get("feature.node.kubernetes.io/system-os_release.VERSION_ID", "")
    if name and version:
        return name, version
    for known, pattern in OS_IMAGES:
        match = pattern.match(image)
        if match:
            return name or known, version or match[1].replace(" SP", ".")
    return name, version


def is_gpu(facts: dict) -> bool:
    """Whether a node (its facts) carries GPUs."""
    labels = facts["labels"]
    present = labels.get("nvidia.com/gpu.present") == "true"
    return bool(facts["gpus"]["capacity"] or facts["accelerator"] or present)


def instance_type(facts: dict) -> str:
    return _first(facts["labels"], INSTANCE_LABELS)


def workload(item: dict, kind: str) -> dict:
    """The facts of one Deployment, DaemonSet, StatefulSet or CronJob."""
    found = manifests.workload(item, kind)
    found["namespace"] = intern(found["namespace"])
    found["images"] = {intern(name): intern(image) for name, image in found["images"].items()}
    return found


def crd(item: dict) -> dict:
    return manifests.crd(item)


def release(record: dict) -> dict:
    """The facts of one release, from a reader of Helm's, Argo CD's or Flux's records.

    `values` are None where the record does not hold them. Raises InvalidDocument when what it rendered is malformed.
    """
    place = f"{record['namespace']}/{record['name']}"
    texts = [text for text in (record["manifest"], *record["crds"]) if text]
    rendered = manifests.from_texts(texts, record["namespace"], f"release {place}")
    values = record["values"]
    facts = {key: record[key] for key in ("name", "namespace", "source", "chart", "version", "status")}
    facts["values"] = None if values is None else redact(values, place)
    facts["valuesDigest"] = None if values is None else sha256(facts["values"])
    facts["rendered"] = record["source"] == "helm"  # only Helm's own record tells what was rendered
    return {**facts, **rendered}
