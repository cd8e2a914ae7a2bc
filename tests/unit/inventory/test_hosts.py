# ruff: noqa: E501
"""Nodes as hosts: groups, certification, places, and what odd nodes come to."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import hosts, model

BOOT = "6e43a052-e544-467b-a972-63d7cd2ce80a"
DRIVER = "580.105.08"
RECORD = {"bootId": BOOT, "driver": DRIVER, "at": "2026-11-29T18:00:00Z"}


def a_node(labels=None, annotations=None, taints=(), ready="True", unschedulable=False, **status) -> dict:
    return {
        "metadata": {
            "name": "gpu-7",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/cuda.driver-version.full": DRIVER, **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
        "status": {
            "nodeInfo": {"bootID": BOOT},
            "conditions": [{"type": "Ready", "status": ready}] if ready else [],
            "capacity": {"nvidia.com/gpu": "8", "cpu": "96"},
            "allocatable": {"nvidia.com/gpu": "7"},
            "addresses": [
                {"type": "ExternalIP", "address": "203.0.113.7"},
                {"type": "InternalIP", "address": "10.0.0.7"},
                {"type": "InternalIP", "address": "fd00::7"},
            ],
            **status,
        },
    }  # fmt: skip


def groups(node: dict, **options) -> set[str]:
    return set(hosts.host(node, **options)["groups"])


def gated(node: dict, owner: str) -> dict:
    patch = model.hold(node, {"owner": owner, "reason": "x"}).patch
    node["metadata"]["annotations"] = {**node["metadata"]["annotations"], **patch["metadata"]["annotations"]}
    node["spec"]["taints"] = patch["spec"]["taints"]
    return node


def test_an_open_node():
    found = hosts.host(a_node())
    assert set(found["groups"]) == {"open", "uncertified", "accelerator_NVIDIA-H200"}
    assert found["address"] == "10.0.0.7"
    facts = found["facts"]
    assert (facts["open"], facts["gates"], facts["external"], facts["ready"]) == (True, [], [], "True")
    assert facts["gpus"] == {"capacity": 8, "allocatable": 7}
    assert (facts["driver"], facts["boot_id"], facts["certification"]) == (DRIVER, BOOT, "never certified")


def test_gates_of_several_owners():
    node = gated(gated(a_node(), "quarantine"), "validation")
    assert groups(node) == {"gated", "gate_quarantine", "gate_validation", "uncertified", "accelerator_NVIDIA-H200"}


@pytest.mark.parametrize(
    "node, held",
    [
        (a_node(unschedulable=True), True),
        (a_node(taints=[{"key": "example.com/broken", "effect": "NoSchedule"}]), True),
        (
            a_node(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]),
            False,
        ),  # is for GPU pods
        (a_node(taints=[{"key": "example.com/slow", "effect": "PreferNoSchedule"}]), False),
    ],
)
def test_who_else_holds_a_node(node, held):
    assert ("external_hold" in groups(node)) == held
    assert ("open" in groups(node)) != held


def test_a_sites_own_pool_taints_close_nothing():
    node = a_node(taints=[{"key": "example.com/pool-a", "effect": "NoSchedule"}])
    assert "external_hold" in groups(node)
    assert "open" in groups(node, pool_taints=["example.com/pool-*"])


def test_a_gate_and_a_persons_cordon_are_both_shown():
    assert {"gated", "gate_quarantine", "external_hold"} <= groups(gated(a_node(unschedulable=True), "quarantine"))


@pytest.mark.parametrize("ready", ["False", "Unknown", None])
def test_what_is_not_known_to_be_ready_is_not_ready(ready):
    assert "not_ready" in groups(a_node(ready=ready))


@pytest.mark.parametrize(
    "record, certified, words",
    [
        (json.dumps(RECORD), True, "certified at 2026-11-29T18:00:00Z"),
        (json.dumps({**RECORD, "at": None}), True, "a time not told"),
        (json.dumps({**RECORD, "bootId": "other"}), False, f"certified with another boot: other, now {BOOT}"),
        (json.dumps({**RECORD, "driver": "570.1"}), False, f"certified with another driver: 570.1, now {DRIVER}"),
        (json.dumps({"at": RECORD["at"]}), False, "another boot"),
        ("true", False, "no JSON object"),
        ("{", False, "no JSON object"),
        ("[" * 100_000, False, "no JSON object"),
        ("", False, "never certified"),
    ],
)
def test_certified_is_this_boot_with_this_driver(record, certified, words):
    found = hosts.host(a_node(annotations={hosts.CERTIFIED: record}))
    assert found["facts"]["certified"] is certified
    assert words in found["facts"]["certification"]
    assert ("certified" in found["groups"]) == certified
    assert ("uncertified" in found["groups"]) != certified


def test_a_node_that_does_not_tell_its_boot_or_driver_is_not_certified():
    silent = {"driver": a_node({"nvidia.com/cuda.driver-version.full": ""}), "boot": a_node(nodeInfo={})}
    for word, node in silent.items():
        for record in (RECORD, {**RECORD, "bootId": "", "driver": ""}, {**RECORD, "driver": ""}):
            node["metadata"]["annotations"] = {hosts.CERTIFIED: json.dumps(record)}
            assert not hosts.host(node)["facts"]["certified"]
        node["metadata"]["annotations"] = {hosts.CERTIFIED: json.dumps(RECORD)}
        assert hosts.host(node)["facts"]["certification"] == f"the node does not tell its {word}"


def test_the_first_label_that_a_node_has_names_the_place():
    options = {
        "rack_labels": ["a/rack", "b/rack"],
        "nvlink_domain_labels": ["nvidia.com/gpu.clique"],
        "zone_labels": ["z"],
    }
    labels = {"b/rack": "r-2", "nvidia.com/gpu.clique": "uuid.0", "z": ""}
    assert {"rack_r-2", "nvlink_domain_uuid.0"} <= groups(a_node(labels), **options)
    assert "rack_r-1" in groups(a_node({**labels, "a/rack": "r-1"}), **options)
    assert not [name for name in groups(a_node(labels), **options) if name.startswith("zone_")]
    assert not [name for name in groups(a_node(labels)) if name.startswith(("rack_", "nvlink_domain_"))]


@pytest.mark.parametrize(
    "labels, driver",
    [
        ({"nvidia.com/cuda.driver-version.full": "580.105.08"}, "580.105.08"),
        ({f"nvidia.com/cuda.driver-version.{key}": value for key, value in (("major", "580"), ("minor", "65"), ("revision", "06"))}, "580.65.06"),
        ({f"nvidia.com/cuda.driver.{key}": value for key, value in (("major", "570"), ("minor", "1"), ("rev", ""))}, "570.1"),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_driver_under_all_its_names(labels, driver):
    assert hosts.driver_of(labels) == driver


def test_addresses_and_gpus():
    assert hosts.host(a_node(), address_types=["Hostname", "ExternalIP"])["address"] == "203.0.113.7"
    assert hosts.host(a_node(), address_types=[])["address"] == ""
    assert hosts.host(a_node(addresses=None))["address"] == ""
    assert hosts.gpus({"nvidia.com/mig-1g.10gb": "14", "nvidia.com/gpu": "1", "memory": "7Ti"}) == 15
    assert hosts.gpus({"nvidia.com/gpu": "8k"}) == hosts.gpus(None) == hosts.gpus({}) == 0


@pytest.mark.parametrize(
    "node", [{}, {"metadata": {"name": "x"}}, {"metadata": {"name": "x"}, "status": None, "spec": None}]
)
def test_a_node_that_has_just_joined(node):
    found = hosts.host(node)
    assert set(found["groups"]) == {"uncertified", "open", "not_ready"}
