# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are the fleet's. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_

# Labels that come and go with a driver's restart are one sign of several: the inventory must not shrink meanwhile.
LABELS = ("nvidia.com/gpu.", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator")
RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/shared-gpu")


def is_gpu_node(node: Mapping) -> bool:
    """Whether a raw Node has GPUs, or had: kubelet keeps a resource at 0, and a gate of ours was set for a reason."""
    metadata, status = node.get("metadata") or {}, node.get("status") or {}
    labels = metadata.get("labels") or {}
    if labels.get("nvidia.com/gpu.present") == "false":
        return False
    return (
        any(key.startswith(LABELS) for key in labels)
        or any(key.startswith(RESOURCES) for key in status.get("capacity") or {})
        or any(key.startswith(gates_.PREFIX) for key in metadata.get("annotations") or {})
    )
