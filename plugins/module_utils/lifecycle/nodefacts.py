# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as its way back into service sees it: which one it is, what runs on it, who holds it. Pure.

node = facts(raw, hosts.host(raw)["facts"])          # what the room of gates reads out of the raw Node
basis(node)                                           # what a certification proves something about
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

CERTIFIED = "goodput.fleet/certified"  # annotation: the record of a node's last certification
VALIDATION = "validation"  # owner of the gate that stands until a node is proven
GATE = f"gate.goodput.fleet/{VALIDATION}"  # its annotation, and the key of its taint
DOMAIN_LABELS = (
    "nvidia.com/gpu.clique",
    "goodput.fleet/rack",
    "topology.kubernetes.io/rack",
    "cloud.google.com/gce-topology-subblock",
    "topology.k8s.aws/network-node-layer-3",
    "oci.oraclecloud.com/rdma.local_block_id",
)
_NO_FABRIC = ("00000000-0000-0000-0000-000000000000", ".")  # what GPUs without a fabric tell


def facts(raw: Mapping, seen: Mapping, gpu: bool | None = None, domain_labels: Iterable[str] = DOMAIN_LABELS) -> dict:
    """{name, uid, bootId, created, ready (bool; where nobody knows it is not), deleted (bool: it is being deleted),
    gpu (bool), gpus {capacity, allocatable}, driver, kernel, osImage, containerRuntime, product, domain (LABEL=VALUE
    of the first label that it has, or ""), gates [as a node carries them], open, external [who else holds it],
    taints [keys], certified {valid, why, record}}.

    seen: facts of the gates' room for the same node ({open, gates, external, ready, boot_id, driver, gpus, certified,
    certification, accelerator}). gpu: whether the node is one with GPUs; without it, whether it has any.
    """
    metadata, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    info = status.get("nodeInfo") or {}
    return {
        "name": metadata.get("name") or "",
        "uid": metadata.get("uid") or "",
        "bootId": seen["boot_id"],
        "created": metadata.get("creationTimestamp") or "",
        "ready": seen["ready"] == "True",
        "deleted": bool(metadata.get("deletionTimestamp")),
        "gpu": bool(seen["gpus"]["capacity"]) if gpu is None else gpu,
        "gpus": dict(seen["gpus"]),
        "driver": seen["driver"],
        "kernel": info.get("kernelVersion") or "",
        "osImage": info.get("osImage") or "",
        "containerRuntime": info.get("containerRuntimeVersion") or "",
        "product": seen["accelerator"],
        "domain": _domain(metadata.get("labels") or {}, domain_labels),
        "gates": seen["gates"],
        "open": seen["open"],
        "external": seen["external"],
        "taints": [taint.get("key") or "" for taint in spec.get("taints") or ()],
        "certified": {
            "valid": seen["certified"],
            "why": seen["certification"],
            "record": record((metadata.get("annotations") or {}).get(CERTIFIED)),
        },
    }


class Fleet(Mapping):
    """Facts of nodes by name, each read out of the raw node when it is first asked for: most are never looked at."""

    def __init__(self, raw: Mapping[str, Mapping], read: Callable[[Mapping], dict]):
        self._raw, self._read, self._facts = raw, read, {}

    def __getitem__(self, name: str) -> dict:
        if name not in self._facts:
            self._facts[name] = self._read(self._raw[name])
        return self._facts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def noted(self, since: str) -> list[dict]:
        """Those that carry something of the gate, or were made after that time, by name."""
        return [self[name] for name in sorted(self._raw) if _is_noted(self._raw[name], since)]


def _is_noted(raw: Mapping, since: str) -> bool:
    metadata = raw.get("metadata") or {}
    if GATE in (metadata.get("annotations") or ()) or (metadata.get("creationTimestamp") or "") > since:
        return True
    return any(taint.get("key") == GATE for taint in (raw.get("spec") or {}).get("taints") or ())


def basis(node: Mapping) -> dict:
    """{uid, bootId, driver, kernel, osImage, containerRuntime, gpus}: what was certified is this and nothing else."""
    parts = ("uid", "bootId", "driver", "kernel", "osImage", "containerRuntime")
    return {**{part: node[part] for part in parts}, "gpus": node["gpus"]["capacity"]}


def is_whole(node: Mapping) -> bool:
    """Whether all the GPUs that it has can be used: kubelet takes those that are sick off what is allocatable."""
    return node["gpus"]["allocatable"] >= node["gpus"]["capacity"]


def record(text: object) -> dict:
    """The record of certification that a node carries; {} where there is none that can be read."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def gate(node: Mapping, owner: str) -> dict | None:
    """The node's gate of that owner."""
    return next((each for each in node["gates"] if each["owner"] == owner), None)


def holders(node: Mapping, but: Iterable[str] = ()) -> list[str]:
    """Who holds the node, beside the owners in `but`: 'gate quarantine (Xid 79)', 'cordon'."""
    owners = set(but)
    gates = [each for each in node["gates"] if each["owner"] not in owners]
    named = [f"gate {each['owner']}" + (f" ({each['reason']})" if each["reason"] else "") for each in gates]
    others = [each for each in node["external"] if each["holds"]]
    return named + [each["kind"] if each["kind"] == "cordon" else f"{each['kind']} {each['key']}" for each in others]


def _domain(labels: Mapping[str, str], wanted: Iterable[str]) -> str:
    for label in wanted:
        value = labels.get(label)
        if value and not value.startswith(_NO_FABRIC):
            return f"{label}={value}"
    return ""
