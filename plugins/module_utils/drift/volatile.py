# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes on a node while nobody changes it. It never enters a snapshot.

Timestamps, heartbeats, resourceVersion, bootID, images, addresses and annotations are left out by not being read at
all (facts.py); here are the labels and taints that controllers write as state, known by key.
"""

from __future__ import annotations

import functools

STATE_LABELS = frozenset(
    (
        "nvidia.com/gfd.timestamp",
        "nvidia.com/gpu-driver-upgrade-state",
        "nvidia.com/mig.config.state",
        "nvidia.com/vgpu.config.state",
        "nvidia.com/cc.mode.state",
        "nvidia.com/vfio-manager.state",
        "dgxc.nvidia.com/nvsentinel-state",
        "karpenter.sh/initialized",
        "karpenter.sh/registered",
        "karpenter.k8s.aws/instance-state",
        "node.kubernetes.io/exclude-from-external-load-balancers",
        "scheduler.alpha.kubernetes.io/taints",
    )
)
STATE_LABEL_PREFIXES = (
    "nvidia.com/gpu.deploy.",  # the GPU operator pauses its operands through these during an upgrade
    "skyhook.nvidia.com/status_",
    "nodewright.nvidia.com/status_",
    "gate.goodput.fleet/",
    "state.goodput.fleet/",
)
STATE_TAINTS = frozenset(
    (
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "karpenter.sh/unregistered",
    )
)


# labels that only repeat a fact which has a field of its own: one change is to be one difference
FACT_LABEL_PREFIXES = (
    "nvidia.com/cuda.driver",
    "nvidia.com/cuda.runtime",  # follows from the driver
    "nvidia.com/gpu.product",
    "feature.node.kubernetes.io/kernel-version.",
    "feature.node.kubernetes.io/system-os_release.",
)
_LEFT_OUT = STATE_LABEL_PREFIXES + FACT_LABEL_PREFIXES


@functools.lru_cache(maxsize=4096)
def is_left_out(key: str) -> bool:
    """Whether a node's label stays out of snapshots."""
    return key in STATE_LABELS or key.startswith(_LEFT_OUT)


def is_state_taint(key: str) -> bool:
    return key in STATE_TAINTS
