# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes get through a changed Certification more easily, and what a stored snapshot tells a plan."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    changes,
    documents,
    nodes,
    stored,
    subset,
)

NCCL = {
    "domain": "communication",
    "variant": "nccl-all-reduce",
    "options": {"thresholds": {"busBandwidthGBps": "value >= 300"}},
}


def document(*categories: dict, **spec) -> dict:
    given = {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Certification",
        "metadata": {"name": "driver"},
        "spec": {"target": {"nodeSelector": {"pool": "a"}}, "categories": list(categories or [NCCL]), **spec},
    }
    return documents.load(copy.deepcopy(given))["certification"]


def options(**given) -> dict:
    return {**NCCL, "options": {**NCCL["options"], **given}}


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ("value >= 300", "value >= 250", "loosened"),
        ("value >= 300", "value >= 300.5", "tightened"),
        ("value >= 300", "value > 300", "tightened"),
        ("value <= 5", "value <= 6", "loosened"),
        ("value <= 5", "5.0 >= value", ""),
        ("value >= 300", "300.0 <= value", ""),
        ("value >= 300", "value >= 300 && value <= 900", "tightened"),
        ("value >= 300 && value <= 900", "value >= 200 && value <= 800", "changed"),
        ("value >= 300", "value <= 300", "changed"),
        ("value == 0", "value <= 1 && value >= 0", "loosened"),
        ("value >= 300 || value < 0", "value >= 300", "tightened"),
        ("value >= fleet.median - 4 * fleet.mad", "value >= fleet.median - 6 * fleet.mad", "loosened"),
        ("value >= fleet.median - 4 * fleet.mad", "value >= fleet.median - 3.9 * fleet.mad", "tightened"),
        ("value >= fleet.median - 4 * fleet.mad", "value >= fleet.median - (4 * fleet.mad)", ""),
        ("value >= 300", None, "loosened"),
        (None, "value >= 300", "tightened"),
        ("value >= 300", "value >=", "changed"),
    ],
)
def test_what_another_bound_does(before, after, effect):
    assert changes.effect(before, after) == effect


@pytest.mark.parametrize(
    ("old", "new", "path", "effect"),
    [
        (options(), options(thresholds={"busBandwidthGBps": "value >= 1"}), "thresholds.busBandwidthGBps", "loosened"),
        (options(), options(thresholds={}), "thresholds.busBandwidthGBps", "loosened"),
        (options(), options(allowUnbounded=True), "options.allowUnbounded", "loosened"),
        (options(repeatCount=3), options(), "options.repeatCount", "loosened"),
        (options(), options(repeatCount=3), "options.repeatCount", "tightened"),
        (options(), options(isolate=False), "options.isolate", "loosened"),
        (options(), options(timeoutPerJob="1h"), "options.timeoutPerJob", "changed"),
        (
            options(bounds=[{"metric": "busBandwidthGBps", "size": "1G", "expression": "value >= 300"}]),
            options(bounds=[{"metric": "busBandwidthGBps", "size": "1G", "expression": "value >= 280"}]),
            "bounds.busBandwidthGBps (size 1G)",
            "loosened",
        ),
        ({**options(), "name": "x"}, {**options(), "name": "x", "variant": "nccl-all-gather"}, "test", "changed"),
    ],
)
def test_one_change_of_a_category(old, new, path, effect):
    (found,) = changes.diff(document(old), document(new))
    assert (found["path"], found["effect"]) == (path, effect)


def test_a_category_that_goes_takes_its_bounds_along():
    level = {"domain": "diagnostics", "variant": "dcgm-level1"}
    found = changes.diff(document(NCCL, level), document(level))
    assert [(each["category"], each["path"], each["effect"]) for each in found] == [
        ("nccl-all-reduce", "", "loosened"),
        ("nccl-all-reduce", "thresholds.busBandwidthGBps", "loosened"),
    ]


def test_what_only_moves_does_not_change():
    bare = {key: NCCL[key] for key in ("domain", "variant")}
    assert changes.diff(document(NCCL), document(bare, options=NCCL["options"])) == []
    assert changes.diff(document(), document()) == []


def test_what_holds_for_all_categories():
    found = changes.diff(document(), document(limits={"maxTests": 3}, tolerateGates=["quarantine"]))
    assert [(each["path"], each["after"]) for each in found] == [
        ("tolerateGates", ["quarantine"]),
        ("limits.maxTests", 3),
    ]


def test_a_certification_without_one_before_is_new():
    assert {each["effect"] for each in changes.diff(None, document())} == {"new"}


@pytest.mark.parametrize(
    ("change", "path", "before", "after", "effect"),
    [
        ("differs", "checks.nccl.expression", "value >= 300", "value >= 250", "loosened"),
        ("differs", "checks.nccl.expression", "value >= 300", "300 <= value", "none"),
        ("differs", "checks.nccl.unit", "GB/s", "Gb/s", "changed"),
        ("missing", "checks.nccl", {"expression": "value >= 300"}, None, "loosened"),
        ("added", "checks.nccl", None, {"expression": "value >= 300"}, "tightened"),
    ],
)
def test_a_check_of_the_recipe(change, path, before, after, effect):
    row = {"change": change, "path": path, "before": before, "after": after}
    assert changes.effect_of_check(row) == effect


def test_a_part_of_the_nodes_keeps_the_target():
    part = subset.of(document(), ["gpu-2", "gpu-1"])
    assert part["spec"]["target"] == {"nodeSelector": {"pool": "a"}, "nodeNames": ["gpu-1", "gpu-2"]}
    assert part["spec"]["tolerateGates"] == ["validation"]
    named = document(target={"nodeNames": ["gpu-2", "gpu-9"]})
    assert subset.of(named, ["gpu-1", "gpu-2"])["spec"]["target"] == {"nodeNames": ["gpu-2"]}
    assert subset.of(named, ["gpu-1"]) is None


def test_nodes_of_a_snapshot():
    shot = {
        "spec": {
            "nodes": [
                {
                    "name": "gpu-1",
                    "ready": True,
                    "labels": {"pool": "a"},
                    "taints": ["nvidia.com/gpu=present:NoSchedule", "gate.goodput.fleet/quarantine=xid-79:NoSchedule"],
                    "accelerator": "NVIDIA-H100-80GB-HBM3",
                    "gpus": {"capacity": 8, "allocatable": 7, "count": 8},
                },
                {"name": "cpu-1", "labels": {}},
            ]
        }
    }
    cpu, gpu = nodes.read(stored.facts(shot))
    assert (gpu.accelerator, gpu.ready, list(gpu.gates), gpu.allocatable["nvidia.com/gpu"]) == (
        "h100",
        "True",
        ["quarantine"],
        7,
    )
    assert gpu.taints[0] == {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert (cpu.ready, cpu.capacity["nvidia.com/gpu"]) == ("False", 0)
