"""Which pods stand in the way of a GPU's reset. In doubt, all that may use it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_gpus
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gates.drain_things import pod

A = "GPU-00000000-aaaa-4000-8000-000000000001"
B = "GPU-00000000-aaaa-4000-8000-000000000002"


def annotated(devices, **fields) -> dict:
    text = devices if isinstance(devices, str) else json.dumps({"devices": devices})
    return pod(annotations={drain_gpus.DEVICES_ANNOTATION: text}, **fields)


def other(name: str, value: str = "1", kind: str = "limits") -> dict:
    return pod(containers=[{"name": "main", "resources": {kind: {name: value}}}])


@pytest.mark.parametrize(
    ("raw", "told", "hit"),
    [
        (pod(), None, False),  # no GPU at all
        (annotated({"nvidia.com/gpu": [A]}, gpus=1), None, True),
        (annotated({"nvidia.com/gpu": [B]}, gpus=1), None, False),
        (annotated({"nvidia.com/gpu": [A.upper().replace("GPU", "GPU")]}, gpus=1), None, True),
        (annotated({"nvidia.com/gpu": [B, A]}, gpus=2), None, True),
        (annotated({"gpu.nvidia.com": [A]}), None, True),  # by DRA
        (annotated({"gpu.nvidia.com": [B]}, resourceClaims=[{"name": "x"}]), None, False),
        (annotated({"rdma/hca": ["mlx5_0"]}), None, False),
        (pod(gpus=1), None, True),  # no data
        (pod(gpus=1), [B], False),  # the kubelet says
        (annotated({"nvidia.com/gpu": [B]}, gpus=1), [A], True),  # a stale annotation loses against the kubelet
        (annotated({"nvidia.com/gpu": [A]}, gpus=1), [B], False),
        (pod(gpus=1), [], True),  # the kubelet knows of none, and yet it requests one
        (annotated({"nvidia.com/gpu": [B]}, gpus=8), None, True),  # names 1 of 8
        (annotated({"nvidia.com/gpu": [f"{B}::0", f"{B}::1"]}, gpus=2), None, False),  # a shared GPU's replicas
        (annotated({"nvidia.com/gpu": [f"{A}::0", f"{A}::1"]}, gpus=2), None, True),
        (annotated({"nvidia.com/mig-1g.10gb": [f"MIG-{B}/1/0"]}), None, False),  # old ids tell their GPU
        (annotated({"nvidia.com/mig-1g.10gb": ["MIG-0c1c4d8e-9a57-5d5f-b0f1-eee000000000"]}), None, True),
        (annotated("not json", gpus=1), None, True),
        (annotated("not json"), None, False),  # requests nothing: what it says of devices does not matter
        (annotated('{"devices": [1]}', gpus=1), None, True),
        (annotated("[" * 100_000, gpus=1), None, True),
        (annotated('{"devices": {"nvidia.com/gpu": "GPU-x"}}', gpus=1), None, True),
        (annotated('{"devices": {"nvidia.com/gpu": [null]}}', gpus=1), None, True),
        (annotated("[]", gpus=1), None, True),
        (annotated({}, gpus=1), None, True),
        (other("nvidia.com/mig-3g.40gb"), None, True),
        (other("nvidia.com/gpu.shared"), None, True),
        (other("nvidia.com/gpu", kind="requests"), None, True),
        (other("nvidia.com/GH100_H100_SXM5_80GB"), None, True),
        (other("nvidia.com/hostdev"), None, False),
        (other("rdma/hca"), None, False),
        (other("nvidia.com/gpu", "0"), None, False),
        (pod(resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "t"}]), None, True),
        (pod(initContainers=[{"name": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]), None, True),
    ],
)
def test_whether_a_pod_is_in_the_way(raw, told, hit):
    used = drain_gpus.usage(raw, told)
    assert drain_gpus.in_scope(used, [A]) is hit
    assert drain_gpus.in_scope(used, None)


def test_requests_are_summed_as_the_scheduler_does():
    def container(count, **more):
        return {"resources": {"limits": {"nvidia.com/gpu": str(count)}}, **more}

    spec = {
        "containers": [container(2), container(1)],
        "initContainers": [container(4), container(1, restartPolicy="Always")],
    }
    assert drain_gpus.requested(spec) == 4
    assert drain_gpus.requested({"containers": [container(2), container(3)]}) == 5


def test_why_it_counts_as_every_gpu():
    assert "no device data" in drain_gpus.usage(pod(gpus=1))["why"]
    assert "1 of the 8" in drain_gpus.usage(annotated({"nvidia.com/gpu": [A]}, gpus=8))["why"]
    assert "cannot be read" in drain_gpus.usage(annotated("x", gpus=1))["why"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["devices", "nvidia.com/gpu"]), inner),
    max_leaves=8,
)


@given(json_values.map(json.dumps) | st.text(max_size=30))
def test_any_annotation_on_a_pod_that_requests_gpus_is_in_the_way_unless_it_names_gpus(text):
    """Whatever stands there, nobody's GPU is reset under him for lack of data."""
    assert drain_gpus.in_scope(drain_gpus.usage(annotated(text, gpus=2)), [A])
