"""validation_request: which nodes it asks for, and that nothing is asked for twice."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.modules import validation_request

from tests.integration import modules

pytestmark = pytest.mark.cluster

BASE = "/apis/goodput.fleet/v1alpha1/namespaces"
TESTS = [
    {"domain": "communication", "variant": "nccl-loopback-nvswitch"},
    {"domain": "diagnostics", "variant": "dcgm-level2"},
]


@pytest.fixture
def ask(cluster, certification_crds, namespace):
    def run(check: bool = False, kubeconfig: Path | None = None, apart: bool = False, **options) -> dict:
        """`apart`: in a process of its own, which takes a second."""
        access = {
            "kubeconfig": str(kubeconfig or cluster.kubeconfig),
            "namespace": namespace,
            "catalog": [str(modules.CATALOG)],
        }
        given = {} if "request" in options else {"reason": "manual", "tests": TESTS}
        arguments = {**access, **given, **options}
        if apart:
            return modules.run("validation_request", arguments, check=check)
        out = io.StringIO()
        given = patch_module_args({**arguments, "_ansible_check_mode": check})
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit), given:
            validation_request.main()
        return {"failed": False, **json.loads(out.getvalue())}

    return run


@pytest.fixture
def stored(cluster, namespace):
    return lambda: cluster.api.list(f"{BASE}/{namespace}/validationrequests")


def identity(cluster, name: str) -> dict:
    node = cluster.fleet.get(name)
    return {"name": name, "uid": node["metadata"]["uid"], "bootId": node["status"]["nodeInfo"]["bootID"]}


def drift_report(**spec) -> dict:
    whole = {
        "status": "drifted",
        "exitCode": 3,
        "findings": [],
        "parts": {},
        "counts": {"error": 1, "warning": 0, "info": 0},
    }
    about = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "DriftReport", "metadata": {"name": "prod"}}
    return {**about, "spec": {**whole, **spec}}


def test_named_nodes_are_asked_for_once_with_uid_and_boot(cluster, ask, stored):
    first, second = cluster.fleet.names()[:2]
    would = ask(check=True, nodes=[second, first])
    assert would["changed"] and would["msg"].startswith("would ask for: manual-") and stored() == []
    done = ask(nodes=[second, first], cause="INC-1")
    assert done["changed"] and done["created"] and not done["failed"]
    [there] = stored()
    assert there["spec"]["nodes"] == [identity(cluster, name) for name in sorted((first, second))]
    assert there["spec"] == done["request"]["spec"] and there["spec"]["cause"] == "INC-1"
    assert [each["why"] for each in done["nodes"]] == ["named", "named"]
    again = ask(nodes=[first, second], cause="INC-1")
    assert not again["changed"] and again["request"] is None
    assert again["covered"] == dict.fromkeys((first, second), there["metadata"]["name"])
    third = cluster.fleet.names()[2]
    more = ask(nodes=[first, third], reason="changed")
    assert more["covered"] == {first: there["metadata"]["name"]}
    assert [each["name"] for each in more["request"]["spec"]["nodes"]] == [third]
    assert len(stored()) == 2


def test_one_that_is_over_is_asked_for_again_only_where_that_is_said(cluster, ask, stored, namespace):
    name = cluster.fleet.names()[0]
    made = ask(nodes=[name])["request"]["metadata"]["name"]
    path = f"{BASE}/{namespace}/validationrequests/{made}/status"
    cluster.api.patch(path, {"status": {"phase": "Failed"}}, "application/merge-patch+json")
    same = ask(nodes=[name])
    assert not same["changed"] and "is over (again: true asks anew)" in same["msg"]
    anew = ask(nodes=[name], again=True)
    assert anew["changed"] and anew["request"]["metadata"]["name"] != made and len(stored()) == 2
    assert not ask(nodes=[name], again=True)["changed"]


def test_a_driver_that_changed_within_the_boot_is_asked_for_anew(cluster, ask, stored, namespace):
    name = cluster.fleet.names()[0]
    drift = drift_report(recertify=[name])
    made = ask(reason="changed", drift=drift)["request"]["metadata"]["name"]
    basis = validation_request.basis_of(cluster.fleet.get(name))
    entry = {"name": name, "uid": basis["uid"], "phase": "Opened", "attempts": 1, "basis": basis}
    path = f"{BASE}/{namespace}/validationrequests/{made}/status"
    status = {"phase": "Succeeded", "nodes": [entry]}
    cluster.api.patch(path, {"status": status}, "application/merge-patch+json")
    assert not ask(reason="changed", drift=drift)["changed"]
    driver = basis["driver"]
    cluster.fleet.set_driver(name, "590.48.01")
    anew = ask(reason="changed", drift=drift)
    assert anew["changed"] and anew["request"]["spec"]["nodes"] == [identity(cluster, name)] and len(stored()) == 2
    assert not ask(reason="changed", drift=drift)["changed"]
    cluster.fleet.set_driver(name, driver)


def test_the_nodes_of_a_change_are_found(cluster, ask, stored):
    names = cluster.fleet.names()
    rack = cluster.fleet.get(names[0])["metadata"]["labels"]["goodput.fleet/rack"]
    behind = [name for name in names if cluster.fleet.get(name)["metadata"]["labels"]["goodput.fleet/rack"] == rack]
    found = ask(check=True, topology={"goodput.fleet/rack": rack})
    assert [each["name"] for each in found["nodes"]] == sorted(behind) != sorted(names)
    assert found["request"]["spec"]["cause"] == f"goodput.fleet/rack={rack}"
    selected = ask(check=True, selector=f"goodput.fleet/rack in ({rack})")
    assert [each["name"] for each in selected["nodes"]] == sorted(behind)
    none = ask(selector="goodput.fleet/rack=none")
    assert not none["changed"] and none["msg"] == "nothing to ask for: no GPU node is affected"
    assert stored() == []


def test_drift_and_the_pods_of_a_component_name_nodes(cluster, ask, namespace, tmp_path):
    first, second, third = cluster.fleet.names()[:3]
    pod = {
        "metadata": {"name": "driver", "labels": {"app": "driver"}},
        "spec": {"nodeName": third, "containers": [{"name": "c", "image": "registry.example.com/driver:1"}]},
    }
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    findings = [
        {"code": "node-driver", "severity": "error", "path": "nodes/driver", "message": "m", "nodes": [first, "away"]},
        {
            "code": "chart-version",
            "severity": "error",
            "path": "releases/x",
            "message": "m",
            "component": "gpu-operator",
        },
        {"code": "chart-version", "severity": "error", "path": "releases/y", "message": "m", "component": "kueue"},
    ]
    report = drift_report(findings=findings, recertify=[first, "away"])
    components = [{"name": "gpu-operator", "namespace": namespace, "selector": {"app": "driver"}}]
    found = ask(check=True, reason="changed", drift=report, components=components)
    assert {each["name"]: each["why"] for each in found["nodes"]} == {
        first: "drift: nodes/driver",
        third: "pods of gpu-operator",
    }
    assert found["gone"] == ["away"] and found["unplaced"] == ["kueue"]
    path = tmp_path / "drift.yaml"
    path.write_text(yaml.safe_dump(drift_report(findings=[], status="in_sync", exitCode=0)))
    calm = ask(reason="changed", drift=str(path))
    assert not calm["changed"] and calm["nodes"] == []
    path.write_text(yaml.safe_dump(drift_report(parts={"nodes": {"status": "unknown", "reason": "forbidden"}})))
    assert "does not know nodes: forbidden" in ask(drift=str(path))["msg"]
    assert second not in json.dumps(found["nodes"])


def test_a_node_that_booted_or_was_replaced_is_another_one(cluster, ask, stored):
    name = cluster.fleet.names()[0]
    ask(nodes=[name])
    cluster.fleet.reboot(name)
    after = ask(nodes=[name])
    assert after["changed"] and after["request"]["spec"]["nodes"] == [identity(cluster, name)]
    assert len(stored()) == 2


def test_requests_may_be_files(cluster, ask, stored, tmp_path):
    name, records = cluster.fleet.names()[0], tmp_path / "records"
    assert ask(check=True, nodes=[name], records_dir=str(records))["changed"] and not records.exists()
    made = ask(nodes=[name], records_dir=str(records))
    file = records / "validationrequests" / f"{made['request']['metadata']['name']}.yaml"
    assert yaml.safe_load(file.read_text()) == made["request"] and stored() == []
    assert not ask(nodes=[name], records_dir=str(records))["changed"]
    (file.parent / "broken.yaml").write_text("a: [")
    warned = ask(apart=True, nodes=[name], records_dir=str(records))
    assert not warned["changed"] and "broken.yaml" in json.dumps(warned["warnings"])


def test_a_request_that_somebody_wrote_is_kept_as_it_is(cluster, ask, stored, tmp_path):
    path = tmp_path / "mine.yaml"
    doc = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "ValidationRequest", "metadata": {"name": "mine"}}
    doc["spec"] = {"reason": "manual", "nodes": [{"name": "gpu-x"}], "tests": TESTS}
    path.write_text(yaml.safe_dump(doc))
    assert ask(check=True, request=str(path))["changed"] and stored() == []
    assert ask(request=str(path))["request"] == doc
    assert [each["spec"] for each in stored()] == [doc["spec"]]
    same = ask(request=doc)
    assert not same["changed"] and same["covered"] == {"gpu-x": "mine"}
    doc["spec"]["nodes"].append({"name": "gpu-y"})
    for check in (True, False):
        other = ask(check=check, request=doc)
        assert other["failed"] and "asks for something else" in other["msg"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "which nodes?"),
        ({"nodes": []}, "nodes is empty"),
        ({"nodes": ["gpu-9999"]}, "there is no GPU node gpu-9999"),
        ({"selector": ""}, "selector is empty"),
        ({"selector": "a=b=c"}, "selector: cannot read"),
        ({"topology": {"goodput.fleet/rack": 7}}, "is not a value of the label"),
        ({"drift": {}}, "a DriftReport belongs here"),
        ({"selector": "a=b", "tests": []}, "tests is empty"),
        ({"selector": "a=b", "tests": [{"domain": "training"}]}, "tests[0]"),
        (
            {"selector": "a=b", "tests": [{**TESTS[0], "options": {"timeoutPerJob": "0s"}}]},
            "tests[0].options.timeoutPerJob",
        ),
        ({"nodes": ["{first}"], "retries": 9}, "spec.retries: 9 is larger than 5"),
        ({"request": {"kind": "ValidationRequest"}}, "apiVersion"),
        ({"request": "nowhere.yaml"}, "nowhere.yaml: no such file"),
        ({"namespace": "nowhere", "nodes": ["{first}"]}, "there is no namespace nowhere"),
    ],
)
def test_what_makes_no_sense_is_one_clear_error(cluster, ask, stored, options, words):
    if "nodes" in options:
        first = cluster.fleet.names()[0]
        options = {**options, "nodes": [name.format(first=first) for name in options["nodes"]]}
    answer = ask(**options)
    assert answer["failed"] and words in answer["msg"], answer["msg"]
    assert stored() == []


def test_rights_that_are_missing_are_named(cluster, ask):
    nodes = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    account = cluster.access.service_account("asks", cluster_rules=nodes)
    answer = ask(kubeconfig=account, nodes=cluster.fleet.names()[:1])
    assert answer["failed"] and "cannot list validationrequests" in answer["msg"]
