"""The simulated fleet does what the other integration tests rely on."""

from __future__ import annotations

import pytest

from tests.simfleet import EmbeddedCluster

pytestmark = pytest.mark.cluster


def test_nodes_are_ready_and_look_like_gpu_nodes(cluster: EmbeddedCluster, namespace):
    assert cluster.fleet.ready() == [f"gpu-{number:04d}" for number in range(8)]
