"""Lock against snapshot: one cause gives one finding, and what is not known never passes."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.drift.codes import CODES
from ansible_collections.goodput.fleet.plugins.module_utils.drift.compare import compare
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.drift import samples
from tests.unit.drift.samples import codes, component, lock, nodes, only, record, set_driver, snapshot, unknown


def checked(report: dict) -> dict:
    """The report, which has to be a valid DriftReport."""
    assert schema.validate(yamltree.Document(report, {}, "report"), "DriftReport") == []
    return report


def drift(the_lock: dict | None = None, the_snapshot: dict | None = None, **options) -> dict:
    return checked(compare(the_lock or lock(), the_snapshot or snapshot(), **options))


def test_a_cluster_that_is_what_its_lock_says():
    spec = drift()["spec"]
    assert (spec["status"], spec["exitCode"], spec["findings"], spec["recertify"]) == ("in_sync", 0, [], [])


def image_of(shot: dict, kind: str, container: str, image: str | None) -> None:
    live = next(item for item in shot["spec"]["workloads"] if item["kind"] == kind)
    if image is None:
        del live["images"][container]
    else:
        live["images"][container] = image


def test_four_changes_are_four_findings():
    raw = nodes()
    set_driver(raw[3], "575.57.08")
    changed = copy.deepcopy(samples.VALUES)
    changed["driver"]["enabled"] = False
    shot = snapshot(raw, [record(values=changed)])
    image_of(shot, "Deployment", "gpu-operator", "nvcr.io/nvidia/gpu-operator:debug")
    shot["spec"]["crds"][0]["digest"] = "sha256:" + "1" * 64
    spec = drift(None, shot)["spec"]
    assert sorted(item["code"] for item in spec["findings"]) == [
        "crd-differs",
        "image-differs",
        "node-not-as-locked",
        "value-differs",
    ]
    assert (spec["status"], spec["exitCode"], spec["recertify"]) == ("drifted", 3, ["gpu-0003"])
    assert spec["counts"] == {"error": 4, "warning": 0, "info": 0}
    by_code = {item["code"]: item for item in spec["findings"]}
    assert by_code["value-differs"]["path"] == "releases/gpu-operator/gpu-operator/values/driver.enabled"
    assert (by_code["value-differs"]["expected"], by_code["value-differs"]["found"]) == (True, False)
    assert by_code["image-differs"]["path"] == "workloads/Deployment/gpu-operator/gpu-operator/images/gpu-operator"
    assert by_code["crd-differs"]["path"] == "crds/clusterpolicies.nvidia.com"
    driver = by_code["node-not-as-locked"]
    assert (driver["expected"], driver["found"], driver["nodes"]) == ("580.105.08", "575.57.08", ["gpu-0003"])


@pytest.mark.parametrize(
    ("changes", "code", "expected", "found"),
    [
        ({"version": "v25.10.1"}, "chart-version", "v26.7.0", "v25.10.1"),
        ({"chart": "other"}, "chart-name", "gpu-operator", "other"),
        ({"status": "failed"}, "release-failed", "deployed", "failed"),
        ({"status": "pending-upgrade"}, "release-pending", "deployed", "pending-upgrade"),
    ],
)
def test_releases(changes, code, expected, found):
    item = only(drift(None, snapshot(None, [record(**changes)])))
    assert (item["code"], item["expected"], item["found"]) == (code, expected, found)
    assert item["component"] == "gpu-operator"


def test_a_v_before_the_version_is_no_difference():
    assert drift(None, snapshot(None, [record(version="26.7.0")]))["spec"]["status"] == "in_sync"


def test_no_release_at_all():
    report = drift(lock(component(crds=[])), snapshot(None, []))
    assert only(report)["code"] == "release-missing"
    assert "no release gpu-operator/gpu-operator is installed" in only(report)["message"]


@pytest.mark.parametrize(
    ("want", "have", "kinds"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("value-differs", "a")]),
        ({"a": "1"}, {"a": 1}, [("value-differs", "a")]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {}}}, [("value-missing", "a.b.c")]),
        ({}, {"a": {"b": 1}}, [("value-added", "a")]),
        ({"a": None}, {}, [("value-missing", "a")]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [("value-differs", "a[1]")]),
        ({"a": [1, 2]}, {"a": [1]}, [("value-differs", "a")]),
        ({"s": {"x.y/z": "1"}}, {"s": {"x.y/z": "2"}}, [("value-differs", "s['x.y/z']")]),
        ({"a": 1, "b": 2}, {"a": 2, "c": 3}, [("value-differs", "a"), ("value-missing", "b"), ("value-added", "c")]),
    ],
)
def test_values_are_compared_deeply_and_both_ways(want, have, kinds):
    report = drift(lock(component(values=want)), snapshot(None, [record(values=have)]))
    prefix = "releases/gpu-operator/gpu-operator/values/"
    assert [(item["code"], item["path"].removeprefix(prefix)) for item in report["spec"]["findings"]] == kinds


def test_a_changed_secret_is_seen_and_not_shown():
    want, have = {"auth": {"password": "hunter2"}}, {"auth": {"password": "hunter3"}}
    report = drift(lock(component(values=want)), snapshot(None, [record(values=have)]))
    assert (only(report)["expected"], only(report)["found"]) == ("(redacted)", "(redacted)")
    assert "hunter" not in str(report)
    assert drift(lock(component(values=want)), snapshot(None, [record(values=want)]))["spec"]["status"] == "in_sync"


@pytest.mark.parametrize(
    ("image", "code"),
    [
        ("nvcr.io/nvidia/gpu-operator:v26.7.1", "image-differs"),
        ("evil.example.com/nvidia/gpu-operator:v26.7.0", "image-differs"),
        ("nvcr.io/nvidia/gpu-operator:v26.7.0@sha256:" + "a" * 64, None),
        ("nvcr.io/nvidia/gpu-operator@sha256:" + "a" * 64, "image-unverifiable"),
        (None, "container-missing"),
    ],
)
def test_images(image, code):
    shot = snapshot()
    image_of(shot, "Deployment", "gpu-operator", image)
    report = drift(None, shot)
    assert codes(report) == ([code] if code else [])


def test_init_containers_and_cron_jobs_count():
    shot = snapshot()
    image_of(shot, "Deployment", "setup", "nvcr.io/nvidia/cuda:12.0")
    image_of(shot, "CronJob", "sweep", "busybox:1.37")
    assert codes(drift(None, shot)) == ["image-differs", "image-differs"]


def test_an_injected_sidecar_is_told_and_leaves_the_cluster_in_sync():
    shot = snapshot()
    image_of(shot, "Deployment", "istio-proxy", "istio/proxyv2:1.29")
    report = drift(None, shot)
    assert (only(report)["code"], only(report)["severity"]) == ("container-added", "info")
    assert report["spec"]["status"] == "in_sync"


def test_what_a_release_rendered_and_is_gone():
    shot = snapshot()
    shot["spec"]["workloads"] = [item for item in shot["spec"]["workloads"] if item["kind"] != "CronJob"]
    shot["spec"]["crds"] = []
    assert codes(drift(None, shot)) == ["crd-missing", "workload-missing"]


def test_workloads_of_nobody_are_nobodys_drift():
    shot = snapshot()
    extra = {"kind": "Deployment", "namespace": "gpu-operator", "name": "made-by-operator", "images": {"x": "y"}}
    shot["spec"]["workloads"].append(extra)
    assert drift(None, shot)["spec"]["status"] == "in_sync"


def test_a_value_that_moves_an_image_is_one_finding():
    values = {**samples.VALUES, "operator": {"version": "v26.7.1"}}
    rendered = samples.MANIFEST.replace("gpu-operator:v26.7.0", "gpu-operator:v26.7.1")
    assert codes(drift(None, snapshot(None, [record(values=values, manifest=rendered)]))) == ["value-added"]


def test_manifests_of_a_component_are_expected_too():
    manifest = {"name": "extra", "phase": "post", "content": samples.MANIFEST}
    alone = component(chart=None, values={}, manifests=[manifest], crds=[], nodeFacts={})
    shot = snapshot(None, [record()])
    shot["spec"]["releases"] = []
    assert drift(lock(alone), shot)["spec"]["status"] == "in_sync"
    image_of(shot, "Deployment", "gpu-operator", "nvcr.io/nvidia/gpu-operator:x")
    assert only(drift(lock(alone), shot))["code"] == "image-differs"


def test_a_crd_that_two_charts_bring_may_be_either_ones():
    newer = samples.CRD.replace("served: true", "served: false")
    other = record(name="nfd", namespace="nfd", chart="nfd", values={}, manifest="", crds=[newer])
    both = lock(
        component(),
        component(
            name="nfd",
            namespace="nfd",
            release="nfd",
            values={},
            nodeFacts={},
            crds=[],
            chart={"name": "nfd", "repository": "https://x.example.com", "version": "v26.7.0"},
        ),
    )
    shot = snapshot(None, [record(), other])
    for live in (shot["spec"]["releases"][0]["crds"], shot["spec"]["releases"][1]["crds"]):
        shot["spec"]["crds"] = copy.deepcopy(live)
        assert drift(both, shot)["spec"]["status"] == "in_sync"
    shot["spec"]["crds"][0]["digest"] = "sha256:" + "1" * 64
    assert only(drift(both, shot))["code"] == "crd-differs"


def test_a_releases_own_crds_outrank_what_the_lock_recorded_and_subcharts_crds_are_added():
    stale = rendered_component()
    stale["rendered"]["crds"][0]["digest"] = "sha256:" + "1" * 64
    stale["rendered"]["crds"].append({"name": "nodefeatures.nfd.k8s-sigs.io", "digest": "sha256:" + "2" * 64})
    item = only(drift(lock(stale)))
    assert (item["code"], item["path"]) == ("crd-missing", "crds/nodefeatures.nfd.k8s-sigs.io")


ARGO = {"source": "argocd", "manifest": "", "crds": []}


def with_live(shot: dict) -> dict:
    shot["spec"]["workloads"], shot["spec"]["crds"] = snapshot()["spec"]["workloads"], snapshot()["spec"]["crds"]
    return shot


def rendered_component(**changes) -> dict:
    shot = snapshot()["spec"]
    crds = [{"name": item["name"], "digest": item["digest"]} for item in shot["crds"]]
    return component(rendered={"workloads": shot["workloads"], "crds": crds}, **changes)


def test_argo_cd_with_what_the_lock_recorded():
    shot = with_live(snapshot(None, [record(**ARGO)]))
    assert drift(lock(rendered_component()), shot)["spec"]["status"] == "in_sync"
    image_of(shot, "Deployment", "gpu-operator", "nvcr.io/nvidia/gpu-operator:x")
    shot["spec"]["crds"][0]["digest"] = "sha256:" + "1" * 64
    assert codes(drift(lock(rendered_component()), shot)) == ["crd-differs", "image-differs"]


@pytest.mark.parametrize(
    ("changes", "status", "code", "part"),
    [
        ({}, "in_sync", None, None),  # Argo CD compares what runs with what it rendered
        ({"status": "out-of-sync"}, "drifted", "release-out-of-sync", None),
        ({"version": "v1.0.0"}, "drifted", "chart-version", None),
        ({"values": None}, "unknown", None, "components/gpu-operator"),
        ({"chart": "", "version": "main"}, "unknown", None, "components/gpu-operator"),
        ({"source": "flux"}, "unknown", None, "components/gpu-operator"),
        ({"source": "flux", "status": "suspended"}, "drifted", "release-suspended", "components/gpu-operator"),
        ({"status": "odd"}, "unknown", None, "components/gpu-operator"),
    ],
)
def test_gitops_without_helms_records(changes, status, code, part):
    report = drift(None, with_live(snapshot(None, [record(**{**ARGO, **changes})])))
    assert report["spec"]["status"] == status
    assert codes(report) == ([code] if code else [])
    assert list(unknown(report)) == ([part] if part else [])


def test_helms_record_says_more_than_fluxs_and_both_speak():
    flux = record(source="flux", version="v1", manifest="", crds=[], status="failed", values={})
    report = drift(None, snapshot(None, [record(), flux]))
    assert codes(report) == ["release-failed"]
    assert "Flux says" in only(report)["message"]


# nodes


def test_each_wrong_driver_is_a_finding_that_names_all_its_nodes():
    raw = nodes()
    for index, version in ((1, "575.57.08"), (2, "575.57.08"), (6, "570.1.1")):
        set_driver(raw[index], version)
    spec = drift(None, snapshot(raw))["spec"]
    assert [(item["found"], item["nodes"]) for item in spec["findings"]] == [
        ("575.57.08", ["gpu-0001", "gpu-0002"]),
        ("570.1.1", ["gpu-0006"]),
    ]
    assert spec["recertify"] == ["gpu-0001", "gpu-0002", "gpu-0006"]


def without_pin() -> dict:
    return lock(component(nodeFacts={}))


def info(item: dict) -> dict:
    return item["status"]["nodeInfo"]


@pytest.mark.parametrize(
    ("change", "path", "recertify"),
    [
        (lambda item: set_driver(item, "575.57.08"), "nodes/driver", True),
        (lambda item: info(item).update(kernelVersion="6.8.0-1040-nvidia"), "nodes/kernel", True),
        (lambda item: info(item).update(kubeletVersion="v1.36.4"), "nodes/kubelet", False),
        (lambda item: info(item).update(containerRuntimeVersion="containerd://2.2.0"), "nodes/containerRuntime", True),
        (lambda item: info(item).update(osImage="Ubuntu 24.04.3 LTS", kernelVersion="6.14"), "nodes/osImage", True),
    ],
)
def test_the_odd_one_out_of_a_group(change, path, recertify):
    raw = nodes()
    change(raw[5])
    report = drift(without_pin(), snapshot(raw))
    item = only(report)
    assert (item["code"], item["severity"], item["path"], item["nodes"]) == (
        "node-odd-one-out",
        "warning",
        path,
        ["gpu-0005"],
    )
    assert report["spec"]["recertify"] == (["gpu-0005"] if recertify else [])


def test_a_group_without_majority_names_both_sides():
    raw = nodes()
    for item in raw[:4]:
        set_driver(item, "575.57.08")
    item = only(drift(without_pin(), snapshot(raw)))
    assert (item["code"], len(item["nodes"])) == ("node-group-split", 8)
    assert "575.57.08 on gpu-0000" in item["message"] and "580.105.08 on gpu-0004" in item["message"]


def test_groups_may_differ_from_each_other():
    raw = nodes() + nodes(4, "nvl72", driver="575.57.08")
    report = drift(without_pin(), snapshot(raw))
    assert report["spec"]["status"] == "in_sync"
    for item in raw:  # one accelerator, but two pools
        item["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = (
            "a" if item["metadata"]["name"] < "gpu-0004" else "b"
        )
        set_driver(item, "575.57.08" if item["metadata"]["name"] < "gpu-0004" else samples.DRIVER)
    assert drift(without_pin(), snapshot(raw))["spec"]["status"] == "in_sync"


def test_nodes_that_nothing_tells_apart_are_no_group():
    raw = nodes(3)
    for index, item in enumerate(raw):
        item["metadata"]["labels"] = {}
        item["status"]["capacity"] = item["status"]["allocatable"] = {"cpu": "8"}
        info(item)["kernelVersion"] = f"6.{index}"
    assert drift(lock(component(nodeFacts={})), snapshot(raw))["spec"]["status"] == "in_sync"


def test_a_gpu_node_that_does_not_tell_its_driver_is_unknown():
    raw = nodes()
    for key in [key for key in raw[2]["metadata"]["labels"] if "driver" in key]:
        del raw[2]["metadata"]["labels"][key]
    for the_lock in (lock(), without_pin()):
        report = drift(the_lock, snapshot(raw))
        assert (report["spec"]["status"], report["spec"]["exitCode"]) == ("unknown", 4)
        assert unknown(report) == {"nodes/driver": "no driver version on gpu-0002; is GPU feature discovery running?"}


def test_gpus_that_cannot_be_allocated():
    raw = nodes()
    raw[4]["status"]["allocatable"] = {**raw[4]["status"]["allocatable"], "nvidia.com/gpu": "7"}
    item = only(drift(None, snapshot(raw)))
    assert (item["code"], item["expected"], item["found"], item["nodes"]) == (
        "gpus-not-allocatable",
        8,
        7,
        ["gpu-0004"],
    )


def test_a_node_with_fewer_gpus_than_its_group():
    raw = nodes()
    for key in ("allocatable", "capacity"):
        raw[4]["status"][key] = {**raw[4]["status"][key], "nvidia.com/gpu": "7"}
    item = only(drift(None, snapshot(raw)))
    assert (item["code"], item["path"], item["expected"], item["found"]) == ("node-odd-one-out", "nodes/gpus", "8", "7")


def test_labels_and_taints_count_only_where_the_site_says_so():
    raw = nodes()
    raw[1]["metadata"]["labels"]["site/tuned"] = "no"
    raw[2]["spec"]["taints"] = [{"key": "site/gpu", "effect": "NoSchedule"}]
    assert drift(None, snapshot(raw))["spec"]["status"] == "in_sync"
    paths = {
        item["path"]: item["nodes"] for item in drift(None, snapshot(raw), node_keys=["site/*"])["spec"]["findings"]
    }
    assert paths == {"nodes/labels/site/tuned": ["gpu-0001"], "nodes/taints/site/gpu:NoSchedule": ["gpu-0002"]}


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("K8s.server.version", ">= 1.34", "in_sync"),
        ("K8s.server.version", ">= 1.37", "drifted"),
        ("K8s.node.kubelet", "~ 1.36", "in_sync"),
        ("OS.release.ID", "ubuntu", "in_sync"),
        ("OS.release.ID", "in (rhel, amzn)", "drifted"),
        ("OS.release.VERSION_ID", "== 22.04", "in_sync"),
        ("OS.kernel", ">= 6.8", "in_sync"),
        ("OS.kernel", ">= 6.9", "drifted"),
        ("GPU.driver.version", ">= 580", "in_sync"),
        ("GPU.count", ">= 8", "in_sync"),
        ("GPU.count", "> 8", "drifted"),
    ],
)
def test_constraints(name, value, verdict):
    report = drift(lock(constraints=[{"name": name, "value": value}]))
    assert report["spec"]["status"] == verdict
    if verdict == "drifted":
        item = only(report)
        assert (item["code"], item["path"], item["expected"]) == ("constraint-violated", f"constraints/{name}", value)
        assert len(item["nodes"]) == (0 if name.startswith("K8s.server") else 8)


def test_a_constraint_names_every_violating_node_with_its_severity_and_remedy():
    raw = nodes()
    for index in (0, 7):
        info(raw[index])["kernelVersion"] = "5.15.0-1"
    entry = {"name": "OS.kernel", "value": ">= 6.8", "severity": "warning", "remediation": "boot the new kernel"}
    item = only(drift(lock(constraints=[entry]), snapshot(raw)))
    assert (item["severity"], item["hint"], item["nodes"]) == (
        "warning",
        "boot the new kernel",
        ["gpu-0000", "gpu-0007"],
    )


def test_a_wrong_driver_is_not_told_twice():
    raw = nodes()
    set_driver(raw[3], "570.1.1")
    report = drift(lock(constraints=[{"name": "GPU.driver.version", "value": ">= 580"}]), snapshot(raw))
    assert codes(report) == ["node-not-as-locked"]


# unknown


@pytest.mark.parametrize("part", ["nodes", "releases", "workloads", "crds"])
def test_what_may_not_be_read_is_unknown_and_the_rest_is_judged(part):
    shot = snapshot(**{part: "forbidden: cannot list x"})
    shot["spec"][part] = []
    report = drift(None, shot)
    assert (report["spec"]["status"], report["spec"]["exitCode"], codes(report)) == ("unknown", 4, [])
    assert unknown(report)[part] == "forbidden: cannot list x"
    if part != "nodes":
        set_driver(raw := nodes()[0], "570.1.1")
        shot["spec"]["nodes"][0] = samples.facts.node(raw)
        worse = drift(None, shot)
        assert (worse["spec"]["status"], worse["spec"]["exitCode"]) == ("drifted", 3)
        assert part in unknown(worse)


def test_what_is_not_needed_may_be_unknown():
    report = drift(None, snapshot(argocd="forbidden: x", flux="forbidden: y", server="forbidden: z"))
    assert report["spec"]["status"] == "in_sync"
    assert report["spec"]["parts"]["argocd"] == {"status": "ok", "reason": "not needed (forbidden: x)"}
    needy = drift(lock(constraints=[{"name": "K8s.server.version", "value": ">= 1"}]), snapshot(server="forbidden: z"))
    assert unknown(needy) == {"constraints/K8s.server.version": "forbidden: z"}


def test_an_unreadable_version_is_unknown():
    raw = nodes()
    info(raw[1])["kernelVersion"] = "custom-kernel"
    report = drift(lock(component(nodeFacts={}), constraints=[{"name": "OS.kernel", "value": ">= 6.8"}]), snapshot(raw))
    assert "constraints/OS.kernel" in unknown(report)
    assert "gpu-0001" in unknown(report)["constraints/OS.kernel"]


def test_a_cluster_without_nodes_is_not_in_sync():
    report = drift(None, snapshot([]))
    assert (report["spec"]["status"], unknown(report)) == ("unknown", {"nodes": "there is no node"})


def test_a_snapshot_of_other_namespaces_is_unknown():
    shot = snapshot()
    shot["spec"]["namespaces"] = ["monitoring"]
    assert unknown(drift(None, shot)) == {"components/gpu-operator": "namespace gpu-operator was not read"}


def test_a_workload_in_a_namespace_that_was_not_read_is_unknown_not_missing():
    shot = snapshot()
    shot["spec"]["namespaces"] = ["gpu-operator"]
    shot["spec"]["workloads"] = [item for item in shot["spec"]["workloads"] if item["namespace"] != "other"]
    assert unknown(drift(None, shot)) == {"components/gpu-operator": "namespace other was not read"}
    shot["spec"]["workloadNamespaces"] = ["other"]
    assert codes(drift(None, shot)) == ["workload-missing"]


def test_a_fact_that_no_node_tells():
    the_lock = lock(component(nodeFacts={"firmware": {"valuesPath": "a", "value": "1"}}))
    assert "nodes/firmware" in unknown(drift(the_lock))


# ignore rules


def test_ignore_rules_count_what_they_accept_and_tell_when_they_accept_nothing():
    shot = snapshot()
    image_of(shot, "Deployment", "gpu-operator", "x/gpu-operator:debug")
    rules = ["code == 'image-differs' && ends_with(found, 'debug')", "component == 'nobody'"]
    report = drift(None, shot, ignore=rules)
    assert report["spec"]["ignored"] == [{"rule": rules[0], "count": 1}, {"rule": rules[1], "count": 0}]
    assert (only(report)["code"], report["spec"]["status"]) == ("ignore-rule-unused", "in_sync")


def test_an_accepted_node_needs_no_certification():
    raw = nodes()
    set_driver(raw[0], "1.1.1")
    set_driver(raw[1], "2.2.2")
    report = drift(None, snapshot(raw), ignore=["contains(nodes, 'gpu-0000')"])
    assert report["spec"]["recertify"] == ["gpu-0001"]


def test_an_unknown_part_can_be_accepted():
    shot = snapshot(crds="forbidden: x")
    shot["spec"]["crds"] = []
    report = drift(None, shot, ignore=["code == 'unknown' && path == 'crds'"])
    assert (report["spec"]["status"], report["spec"]["ignored"][0]["count"]) == ("in_sync", 1)


@pytest.mark.parametrize("rule", ["code ==", "nope(code)", "contains(component)", 7, "length(severity, 'x')"])
def test_a_rule_that_cannot_be_used_is_bad_input(rule):
    shot = snapshot()
    image_of(shot, "Deployment", "gpu-operator", "x:y")
    with pytest.raises(InvalidDocument, match=r"ignore\[0\]"):
        compare(lock(), shot, [rule])


# the table


def test_findings_are_stable_and_sorted():
    raw = nodes()
    set_driver(raw[3], "1.1.1")
    info(raw[4])["kubeletVersion"] = "v1.0.0"
    shot = snapshot(raw, [record(values={}, version="v1")])
    first, again = drift(None, shot), drift(None, copy.deepcopy(shot))
    assert first == again
    severities = [item["severity"] for item in first["spec"]["findings"]]
    assert severities == sorted(severities)


def test_every_code_is_documented():
    from ansible_collections.goodput.fleet.plugins.modules import drift_info

    for code, row in CODES.items():
        assert row.severity in ("error", "warning", "info") and row.meaning and row.hint
        assert f"V({code})" in drift_info.DOCUMENTATION, f"{code} is not in drift_info's table"
