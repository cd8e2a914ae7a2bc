"""A GPU fleet on loopback: a real control plane, simulated nodes, and a kubelet that runs scripts as containers.

    from tests.simfleet import EmbeddedCluster
    with EmbeddedCluster(nodes=8) as cluster:
        cluster.kubeconfig, cluster.api, cluster.fleet ...

or `python -m tests.simfleet up --name demo --detach`.
"""

from __future__ import annotations

from tests.simfleet.cluster import ClusterFailed, EmbeddedCluster

__all__ = ["ClusterFailed", "EmbeddedCluster"]
