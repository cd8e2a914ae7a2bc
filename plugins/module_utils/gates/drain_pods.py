# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few facts of a pod that a drain decides by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_gpus

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
LOCAL_VOLUMES = ("emptyDir", "ephemeral")  # their content goes with the pod
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Pod:
    namespace: str
    name: str
    uid: str
    version: str  # resourceVersion
    node: str
    labels: dict
    phase: str
    ready: bool
    owner: tuple[str, str, str]  # kind, name, uid of its controller; all "" for a naked pod
    mirror: bool
    endless: bool  # its containers are started again whenever they end
    begins: float | None  # Unix times: its deletion was asked for, and its grace is over; None while nobody has
    ends: float | None
    local: tuple[str, ...]  # names of its volumes with local data
    gpus: dict  # as drain_gpus.usage

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        return self.phase in FINISHED


def read(raw: dict, devices: dict[str, list[str]] | None = None) -> Pod:
    """A raw pod as a Pod. `devices`: what the kubelets' pod-resources say, {"namespace/name": [device ids]}."""
    meta, spec, status = raw.get("metadata") or {}, raw.get("spec") or {}, raw.get("status") or {}
    key = f"{meta.get('namespace')}/{meta.get('name')}"
    owner = next((item for item in meta.get("ownerReferences") or [] if item.get("controller")), {})
    ends = _unix(meta.get("deletionTimestamp"))
    return Pod(
        namespace=meta.get("namespace") or "",
        name=meta.get("name") or "",
        uid=meta.get("uid") or "",
        version=meta.get("resourceVersion") or "",
        node=spec.get("nodeName") or "",
        labels=meta.get("labels") or {},
        phase=status.get("phase") or "",
        ready=any(
            item.get("type") == "Ready" and item.get("status") == "True" for item in status.get("conditions") or []
        ),
        owner=(owner.get("kind") or "", owner.get("name") or "", owner.get("uid") or ""),
        mirror=MIRROR_ANNOTATION in (meta.get("annotations") or {}) or owner.get("kind") == "Node",
        endless=spec.get("restartPolicy", "Always") == "Always",
        begins=None if ends is None else ends - (meta.get("deletionGracePeriodSeconds") or 0),
        ends=ends,
        local=tuple(
            volume.get("name") or "?"
            for volume in spec.get("volumes") or []
            if any(kind in volume for kind in LOCAL_VOLUMES)
        ),
        gpus=drain_gpus.usage(raw, (devices or {}).get(key)),
    )


def _unix(text: str | None) -> float | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None
