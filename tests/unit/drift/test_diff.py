"""Snapshot against snapshot."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.drift import facts
from ansible_collections.goodput.fleet.plugins.module_utils.drift.diff import compare
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, snapshots, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound

from tests.unit.drift.samples import codes, nodes, only, record, set_driver, snapshot, unknown


def diff(before: dict, after: dict, **options) -> dict:
    report = compare(before, after, **options)
    assert schema.validate(yamltree.Document(report, {}, "report"), "DriftReport") == []
    return report


def test_nothing_changed():
    first, second = snapshot(), snapshot()
    first["metadata"]["takenAt"], second["metadata"]["takenAt"] = "2026-11-29", "2026-11-30"
    report = diff(first, second)
    assert (report["spec"]["status"], codes(report)) == ("in_sync", [])
    assert "lock" not in report["metadata"]


def with_change(change) -> dict:
    shot = snapshot()
    change(shot["spec"])
    return shot


def drop(kind: str):
    return lambda spec: spec[kind].pop(0)


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        (lambda spec: spec["server"].update(version="v1.37.0"), "server-changed", "server/version"),
        (drop("nodes"), "node-removed", "nodes"),
        (lambda spec: spec["nodes"][0].update(ready=False), "node-state-changed", "nodes/ready"),
        (lambda spec: spec["nodes"][0].update(kubelet="v1"), "node-changed", "nodes/kubelet"),
        (lambda spec: spec["nodes"][0]["labels"].update({"a/b": "c"}), "node-changed", "nodes/labels['a/b']"),
        (lambda spec: spec["nodes"][0]["taints"].append("x:NoExecute"), "node-changed", "nodes/taints"),
        (lambda spec: spec["nodes"][0]["gpus"].update(allocatable=7), "node-changed", "nodes/gpus.allocatable"),
        (drop("releases"), "release-missing", "releases/gpu-operator/gpu-operator"),
        (
            lambda spec: spec["releases"][0].update(version="v2"),
            "release-changed",
            "releases/gpu-operator/gpu-operator/version",
        ),
        (
            lambda spec: spec["releases"][0]["values"]["driver"].update(version="1"),
            "value-differs",
            "releases/gpu-operator/gpu-operator/values/driver.version",
        ),
        (drop("workloads"), "workload-missing", "workloads/CronJob/other/sweep"),
        (
            lambda spec: spec["workloads"][0]["images"].update(sweep="x"),
            "image-differs",
            "workloads/CronJob/other/sweep/images/sweep",
        ),
        (
            lambda spec: spec["workloads"][0]["images"].update(more="x"),
            "container-added",
            "workloads/CronJob/other/sweep/images/more",
        ),
        (drop("crds"), "crd-missing", "crds/clusterpolicies.nvidia.com"),
        (lambda spec: spec["crds"][0].update(digest="sha256:x"), "crd-differs", "crds/clusterpolicies.nvidia.com"),
    ],
)
def test_one_change_is_one_finding(change, code, path):
    item = only(diff(snapshot(), with_change(change)))
    assert (item["code"], item["path"]) == (code, path)


def test_what_was_added():
    for part, code in (
        ("nodes", "node-added"),
        ("releases", "release-added"),
        ("workloads", "workload-added"),
        ("crds", "crd-added"),
    ):
        report = diff(with_change(drop(part)), snapshot())
        assert codes(report) == [code]
        assert report["spec"]["recertify"] == (["gpu-0000"] if part == "nodes" else [])


def test_one_change_of_many_nodes_is_one_finding():
    raw = nodes()
    for item in raw[:3]:
        set_driver(item, "575.57.08")
    report = diff(snapshot(), snapshot(raw))
    item = only(report)
    assert (item["path"], item["expected"], item["found"], item["nodes"]) == (
        "nodes/driver",
        "580.105.08",
        "575.57.08",
        ["gpu-0000", "gpu-0001", "gpu-0002"],
    )
    assert report["spec"]["recertify"] == ["gpu-0000", "gpu-0001", "gpu-0002"]


def test_a_part_that_one_side_lacks_is_unknown_and_gives_no_findings():
    blind = snapshot(workloads="forbidden: x")
    blind["spec"]["workloads"] = []
    for pair in ((blind, snapshot()), (snapshot(), blind)):
        report = diff(*pair)
        assert (report["spec"]["status"], codes(report)) == ("unknown", [])
        assert "forbidden: x" in unknown(report)["workloads"]


def test_snapshots_of_different_namespaces_are_not_compared_where_it_matters():
    narrow = snapshot()
    narrow["spec"]["namespaces"] = ["gpu-operator"]
    report = diff(snapshot(), narrow)
    assert set(unknown(report)) == {"releases", "workloads"}


def test_a_source_that_was_not_readable_once_is_left_out():
    flux = facts.release(record(source="flux", manifest="", crds=[]))
    before, after = snapshot(flux="forbidden: x"), snapshot()
    after["spec"]["releases"].append(copy.deepcopy(flux))
    report = diff(before, after)
    assert (codes(report), list(unknown(report))) == ([], ["flux"])


def test_a_snapshot_whose_name_has_a_nul_byte_is_not_found():
    with pytest.raises(NotFound, match="embedded null byte"):
        snapshots.load("a\0b")
