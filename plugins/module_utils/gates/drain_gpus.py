# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs a pod uses. Pure.

A pod's devices are told by what the kubelet said (given by the caller), else by the pod's annotation. A pod that
requests GPUs without data that can be trusted counts as using every GPU of its node: a GPU is reset under it otherwise.
"""

from __future__ import annotations

import json
import re

DEVICES_ANNOTATION = "dgxc.nvidia.com/devices"
DRA_DRIVER = "gpu.nvidia.com"
# gpu, gpu.shared, mig-1g.10gb, pgpu, and KubeVirt's names of models, such as GH100_H100_SXM5_80GB
GPU_RESOURCE = re.compile(r"^nvidia\.com/(gpu|mig-|pgpu|vgpu|[A-Z])")
GPU_UUID = re.compile(r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_MIG_OF_GPU = re.compile(r"^mig-(gpu-[0-9a-f-]{36})/")


def normal(uuid: str) -> str:
    """'gpu-AB..' as 'GPU-ab..'; other texts stripped."""
    text = uuid.strip()
    return "GPU-" + text[4:].lower() if text[:4].lower() == "gpu-" else text


def requested(spec: dict) -> int:
    """How many GPUs (whole, shared or slices) a pod's spec asks of the device plugin."""
    running = sum(map(_of_container, spec.get("containers") or []))
    first = 0
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            running += _of_container(container)
        else:
            first = max(first, _of_container(container))  # its devices are handed on to the main containers
    return max(running, first)


def _of_container(container: dict) -> int:
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    total = 0
    for name, quantity in asked.items():
        if GPU_RESOURCE.match(name):
            text = str(quantity)
            total += int(text) if text.isdigit() else 1
    return total


def usage(pod: dict, told: list[str] | None = None) -> dict:
    """{"uses": bool, "uuids": [..] or None, "why": text}; None means every GPU of the node.

    `pod` is the raw object, `told` the device ids that the kubelet's pod-resources give for it.
    """
    asked, claims = requested(pod.get("spec") or {}), bool((pod.get("spec") or {}).get("resourceClaims"))
    if told is None:
        told, origin = _annotated(pod), f"its annotation {DEVICES_ANNOTATION}"
        if told is None:
            origin = f"{origin} cannot be read"
    else:
        origin = "the given device data"
    if not told:
        if not asked and not claims:
            return {"uses": False, "uuids": [], "why": ""}
        why = origin if told is None else "it has no device data"
        return {"uses": True, "uuids": None, "why": f"it requests GPUs and {why}"}
    if len(told) < asked:
        return {"uses": True, "uuids": None, "why": f"{origin} names {len(told)} of the {asked} GPUs it requests"}
    uuids = [_gpu_of(device) for device in told]
    if None in uuids:
        return {"uses": True, "uuids": None, "why": f"{origin} names a device whose GPU is not known"}
    return {"uses": True, "uuids": sorted(set(uuids)), "why": ""}


def _gpu_of(device: str) -> str | None:
    """The GPU that a device plugin's id stands for. A new-style MIG id ('MIG-<uuid>') does not tell its GPU."""
    plain = device.strip().partition("::")[0].lower()  # a shared GPU's replica is GPU-...::3
    if match := _MIG_OF_GPU.match(plain):
        plain = match[1]
    uuid = normal(plain)
    return uuid if GPU_UUID.match(uuid) else None


def _annotated(pod: dict) -> list[str] | None:
    """Device ids of the annotation, [] without one, None when it cannot be read."""
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(DEVICES_ANNOTATION)
    if text is None:
        return []
    try:
        devices = json.loads(text)["devices"]
        lists = [ids for name, ids in devices.items() if GPU_RESOURCE.match(name) or name == DRA_DRIVER]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    found = [entry for ids in lists if isinstance(ids, list) for entry in ids]
    if len(lists) != sum(isinstance(ids, list) for ids in lists) or not all(isinstance(entry, str) for entry in found):
        return None
    return found


def in_scope(used: dict, gpus: list[str] | None) -> bool:
    """Whether a pod is in the way of work on these GPUs; None is the whole node."""
    if gpus is None:
        return True
    return used["uses"] and (used["uuids"] is None or bool(set(used["uuids"]) & set(gpus)))
