"""Which nodes count as the fleet's."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node


@pytest.mark.parametrize(
    ("labels", "capacity", "annotations", "expected"),
    [
        ({}, {}, {}, False),
        ({"kubernetes.io/os": "linux"}, {"cpu": "8"}, {}, False),
        ({"nvidia.com/gpu.present": "true"}, {}, {}, True),
        ({}, {"nvidia.com/gpu": "8"}, {}, True),
        ({}, {"nvidia.com/gpu": "0"}, {}, True),  # all of them have fallen off
        ({}, {"nvidia.com/mig-1g.10gb": "7"}, {}, True),
        ({"nvidia.com/gpu.clique": "x.0"}, {}, {}, True),  # the other labels are away while the driver restarts
        ({"cloud.google.com/gke-accelerator": "nvidia-h100"}, {}, {}, True),
        ({}, {}, {"gate.goodput.fleet/quarantine": "{}"}, True),
        ({"nvidia.com/gpu.present": "false"}, {"nvidia.com/gpu": "0"}, {}, False),
    ],
)
def test_a_node_with_gpus_stays_one(labels, capacity, annotations, expected):
    node = {"metadata": {"labels": labels, "annotations": annotations}, "status": {"capacity": capacity}}
    assert is_gpu_node(node) is expected


def test_an_empty_node():
    assert not is_gpu_node({}) and not is_gpu_node({"metadata": None, "status": None})
