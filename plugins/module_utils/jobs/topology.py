# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are close to each other, and what of that a job's nodes share. Pure.

domain(node["metadata"]["labels"])     # "nvidia.com/gpu.clique=…", "" for a node that no label places
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# nodes that share NVLink, and where no label tells that, a rack or the switch above it
DOMAIN_LABELS = (
    "nvidia.com/gpu.clique",
    "network.topology.nvidia.com/accelerator",
    "goodput.fleet/rack",
    "topology.kubernetes.io/rack",
    "cloud.google.com/gce-topology-subblock",
    "topology.k8s.aws/network-node-layer-3",
    "oci.oraclecloud.com/rdma.local_block_id",
)
# the clique that GPUs without a fabric report
_NO_FABRIC = ("00000000-0000-0000-0000-000000000000", ".")


def domain(labels: Mapping | None, domain_labels: Iterable[str] = DOMAIN_LABELS) -> str:
    """LABEL=VALUE of the first of the labels that the node has; "" where it has none."""
    found = labels if isinstance(labels, Mapping) else {}
    for label in domain_labels:
        value = found.get(label)
        if isinstance(value, str) and value and not value.startswith(_NO_FABRIC):
            return f"{label}={value}"
    return ""


def domains(nodes: Iterable[str], placed: Mapping[str, str]) -> dict[str, list[str]]:
    """{domain: [nodes]} of those that have one; placed: {node: domain}."""
    found: dict[str, list[str]] = {}
    for node in sorted(set(nodes)):
        if placed.get(node):
            found.setdefault(placed[node], []).append(node)
    return dict(sorted(found.items()))
