"""Nodes come back only when proven, on a real API server with simulated nodes: what on-call has to rely on."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.module_utils.certification.evidence import Evidence
from ansible_collections.goodput.fleet.plugins.modules import (
    certification,
    node_gate,
    node_validation,
    validation_request,
)

from tests.integration import fixtures_crds, modules
from tests.simfleet import EmbeddedCluster, gpuwork, workloads
from tests.simfleet.api import MERGE_PATCH, ApiError, wait_until
from tests.simfleet.apiproxy import ApiProxy

pytestmark = pytest.mark.cluster

GROUP = {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-22.04", "driver": "580.105.08"}
REQUESTS = "/apis/goodput.fleet/v1alpha1/namespaces/goodput-fleet/validationrequests"
ADOPTED = "/api/v1/namespaces/goodput-fleet/configmaps/goodput-lifecycle"
GATE, CERTIFIED = "gate.goodput.fleet/validation", "goodput.fleet/certified"
TAINT = {"key": GATE, "value": "new-node", "effect": "NoSchedule"}  # as admission gives it to a node that joins
TESTS = [{"domain": "diagnostics", "variant": "dcgm-level1"}]
OTHERS = [{"domain": "communication", "variant": "nccl-all-reduce"}]
PASS = {"tests": TESTS, "settle": 0, "batch_seconds": 0, "max_out": "100%", "max_out_domain": "100%"}
_NUMBERS = itertools.count(1)


def run(module: Any, arguments: dict, check: bool = False) -> dict:
    """A module in this process, which spares a second each time."""
    out = io.StringIO()
    given = patch_module_args({**arguments, "_ansible_check_mode": check})
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit), given:
        module.main()
    return {"failed": False, **json.loads(out.getvalue())}


@pytest.fixture(scope="module")
def cluster(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=0, say=show) as running:
        for name in ("goodput-fleet", "goodput-certify"):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            wait_until(lambda account=account: running.api.find(account), 20, account)
        fixtures_crds.install(running.api)
        gpuwork.seed(running, seconds=0.1)
        running.fleet.create({"nodes": 2, "groups": [{**GROUP, "prefix": "old"}]})
        running.fleet.wait_ready(2)
        yield running


@pytest.fixture
def site(cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Site]:
    """Nodes of the test's own, which are gone afterwards, with all requests."""
    cluster.check()
    made = Site(cluster, tmp_path)
    yield made
    made.clear()


class Site:
    def __init__(self, cluster: EmbeddedCluster, folder: Path):
        self.cluster, self.api, self.folder = cluster, cluster.api, folder
        self.options: dict[str, Any] = {}
        self.prefix = f"n{next(_NUMBERS)}"
        gpuwork.seed(cluster, seconds=0.1)
        if not self.api.find(ADOPTED):
            self.revalidate()  # the nodes of before are taken as they are

    def join(self, count: int, **group: Any) -> list[str]:
        names = self.cluster.fleet.create({"nodes": count, "groups": [{**GROUP, "prefix": self.prefix, **group}]})
        wait_until(lambda: set(names) <= set(self.cluster.fleet.ready()), 30, "the nodes are ready")
        return names

    def arguments(self, target: EmbeddedCluster | ApiProxy | None = None, **options: Any) -> dict:
        kubeconfig = str((target or self.cluster).kubeconfig)
        base = {
            "kubeconfig": kubeconfig,
            "catalog": [str(modules.CATALOG)],
            "mode": "enforce",
            "evidence_dir": str(self.folder / "evidence"),
        }
        return {**base, **PASS, **self.options, **options}

    def revalidate(self, target: ApiProxy | None = None, check: bool = False, **options: Any) -> dict:
        result = run(node_validation, self.arguments(target, **options), check)
        assert not result["failed"], result
        return result

    def certify(self, documents: list[dict]) -> None:
        for document in documents:
            arguments = {
                "kubeconfig": str(self.cluster.kubeconfig),
                "catalog": [str(modules.CATALOG)],
                "certification": document,
                "evidence_dir": str(self.folder / "evidence"),
                "interval": 0.2,
                "mode": "enforce",
                "fail_on": [],
            }
            result = run(certification, arguments)
            assert not result["failed"], result

    def certified(self, **options: Any) -> dict:
        """A pass, and what is to be run after it; the next pass may let nodes in."""
        result = self.revalidate(**options)
        assert result["certifications"], result["lines"]
        self.certify(result["certifications"])
        return result

    def ask(self, *names: str, reason: str = "changed", **options: Any) -> str:
        arguments = {
            "kubeconfig": str(self.cluster.kubeconfig),
            "catalog": [str(modules.CATALOG)],
            "reason": reason,
            "nodes": list(names),
            "tests": TESTS,
            "retries": 0,
            **options,
        }
        result = run(validation_request, arguments)
        assert not result["failed"], result
        return result["request"]["metadata"]["name"]

    def request(self, name: str) -> dict:
        return self.api.get(f"{REQUESTS}/{name}")

    def phases(self, name: str) -> dict[str, str]:
        return {node["name"]: node["phase"] for node in self.request(name)["status"]["nodes"]}

    def why(self, name: str, node: str) -> str:
        return next(each["why"] for each in self.request(name)["status"]["nodes"] if each["name"] == node)

    def gate(self, name: str) -> dict | None:
        text = self.cluster.fleet.get(name)["metadata"].get("annotations", {}).get(GATE)
        return json.loads(text) if text else None

    def open(self, *names: str) -> list[str]:
        """Those of the names that take pods as far as taints, gates and cordons say."""
        found = []
        for name in names:
            node = self.cluster.fleet.get(name)
            gates = [key for key in node["metadata"].get("annotations", {}) if key.startswith("gate.goodput.fleet/")]
            taints = [taint["key"] for taint in node["spec"].get("taints", [])]
            closed = gates or [key for key in taints if "goodput" in key] or node["spec"].get("unschedulable")
            found += [] if closed else [name]
        return found

    def hold(self, owner: str, *names: str) -> None:
        arguments = {
            "kubeconfig": str(self.cluster.kubeconfig),
            "owner": owner,
            "reason": "Xid 79",
            "nodes": list(names),
        }
        assert not modules.run("node_gate", arguments)["failed"]

    def clear(self) -> None:
        for item in self.api.list(REQUESTS):
            self.api.delete(f"{REQUESTS}/{item['metadata']['name']}")
        left = [name for name in self.cluster.fleet.names() if not name.startswith("old-")]
        self.cluster.fleet.delete(left)
        for name in self.cluster.fleet.names():
            marks = self.cluster.fleet.get(name)["metadata"].get("annotations", {})
            ours = {key: None for key in marks if "goodput.fleet/" in key and not key.startswith("sim.")}
            change = {"metadata": {"annotations": ours}, "spec": {"taints": None, "unschedulable": None}}
            self.api.patch(f"/api/v1/nodes/{name}", change, MERGE_PATCH)


def pod_on(site: Site, node: str) -> str:
    name = f"work-{node}"
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}}
    site.api.create("/api/v1/namespaces/default/pods", workloads.pod(name, gpus=8, spec=spec))
    return f"/api/v1/namespaces/default/pods/{name}"


def test_new_nodes_are_gated_before_they_work_and_take_it_once_certified_together(site):
    new = site.join(2, taints=[TAINT])
    pending = pod_on(site, new[0])
    plan = site.revalidate(check=True)
    assert plan["changed"] and plan["gated"] == new and site.api.list(REQUESTS) == []
    first = site.revalidate()
    assert first["gated"] == new and site.open(*new) == []
    assert [each["spec"]["target"]["nodeNames"] for each in first["certifications"]] == [new]
    assert first["made"] == [item["metadata"]["name"] for item in site.api.list(REQUESTS)]
    assert set(site.phases(first["made"][0]).values()) == {"Running"}
    assert not site.api.get(pending)["spec"].get("nodeName")
    site.certify(first["certifications"])
    done = site.revalidate()
    assert done["opened"] == new and site.open(*new) == new
    assert site.request(first["made"][0])["status"]["phase"] == "Succeeded"
    wait_until(lambda: site.api.get(pending)["spec"].get("nodeName") == new[0], 30, "the pod lands on the node")
    record = json.loads(site.cluster.fleet.get(new[1])["metadata"]["annotations"][CERTIFIED])
    assert record["bootId"] == site.cluster.fleet.get(new[1])["status"]["nodeInfo"]["bootID"]
    assert record["request"] == first["made"][0] and record["evidence"].startswith("sha256:")
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        again = site.revalidate(proxy)
        assert (again["changed"], proxy.writes, len(proxy.requests)) == (False, 0, 3)
    site.api.delete(pending, gracePeriodSeconds=0)


def test_whoever_comes_between_certification_and_release_keeps_the_node_closed(site):
    faulty, cordoned, rebooted, changed, deleted, replaced, good = names = site.join(7)
    request = site.ask(*names)
    site.certified()
    fleet = site.cluster.fleet
    site.hold("quarantine", faulty)
    site.api.patch(f"/api/v1/nodes/{cordoned}", {"spec": {"unschedulable": True}})
    fleet.reboot(rebooted)
    fleet.set_driver(changed, "590.48.01")
    fleet.delete([deleted, replaced])
    again = site.api.create("/api/v1/nodes", {**_shape(site, good), "metadata": {"name": replaced}})
    assert again["metadata"]["uid"]
    result = site.revalidate(new_nodes=False)
    assert result["opened"] == [good] and result["passed"] == [faulty, cordoned]
    phases = {faulty: "Passed", cordoned: "Passed", deleted: "Gone", replaced: "Gone", good: "Opened"}
    assert {name: phase for name, phase in site.phases(request).items() if name in phases} == phases
    assert (
        "gate quarantine" in site.why(request, faulty)
        and "unschedulable" in site.why(request, cordoned) + "unschedulable"
    )
    closed = [name for name in names if name not in (deleted, replaced, good)]
    assert site.open(*closed) == []
    assert site.gate(faulty) is None and site.gate(rebooted) and site.gate(changed)
    # what was certified with another boot or driver is certified anew, and is no failed attempt
    wait_until(lambda: rebooted in fleet.ready(), 30, "the node has booted")
    site.certified(new_nodes=False)
    assert site.revalidate(new_nodes=False)["opened"] == [rebooted, changed]
    assert site.request(request)["status"]["phase"] == "Succeeded"


def _shape(site: Site, like: str) -> dict:
    node = copy.deepcopy(site.cluster.fleet.get(like))
    return {"apiVersion": "v1", "kind": "Node", "spec": {}, "status": node["status"]}


def test_what_changes_in_the_very_moment_of_the_release_is_seen(site):
    driver, fault, deleted = names = site.join(3)
    request = site.ask(*names)
    site.certified()
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        fleet = site.cluster.fleet
        proxy.rule("PATCH", f"/nodes/{driver}", times=1, before=lambda _request: fleet.set_driver(driver, "590.48.01"))
        proxy.rule("PATCH", f"/nodes/{fault}", times=1, before=lambda _request: site.hold("quarantine", fault))
        proxy.rule("PATCH", f"/nodes/{deleted}", times=1, before=lambda _request: fleet.delete([deleted]))
        result = site.revalidate(proxy, fail_on=[])
    assert result["opened"] == [] and site.open(driver, fault) == []
    assert site.gate(driver) and "not what was certified" in site.why(request, driver)
    assert result["passed"] == [fault]
    assert site.revalidate()["gone"][0]["node"] == deleted


def test_what_is_asked_in_the_very_moment_of_the_release_is_seen(site):
    asked, deleted, other = names = site.join(3)
    requests = [site.ask(name, cause=name) for name in names]
    site.certified()
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        ask = {"tests": OTHERS, "cause": "the driver was changed"}
        proxy.rule("GET", f"/nodes/{asked}", times=1, before=lambda _request: site.ask(asked, **ask))
        gone = f"{REQUESTS}/{requests[1]}"
        proxy.rule("GET", f"/nodes/{deleted}", times=1, before=lambda _request: site.api.delete(gone))
        result = site.revalidate(proxy, fail_on=[])
    assert result["opened"] == [other] and site.open(*names) == [other]
    assert "what is asked of the node changed" in site.why(requests[0], asked)
    result = site.revalidate()
    assert result["opened"] == [] and [each["node"] for each in result["orphans"]] == [deleted]


def test_a_request_that_cannot_be_written_is_told_and_stops_no_other(site):
    names = site.join(2)
    bad, good = (site.ask(name, cause=name) for name in names)
    site.certified()
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("PUT", f"/validationrequests/{bad}/status", status=403)
        result = site.revalidate(proxy, fail_on=[])
        assert sorted(result["opened"]) == sorted(names) and site.request(good)["status"]["phase"] == "Succeeded"
        assert len(result["unwritten"]) == 1 and bad in result["unwritten"][0]
        assert run(node_validation, site.arguments(proxy))["failed"]
    new = site.join(1, prefix=f"{site.prefix}new")
    site.ask(names[0], cause="once more")
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/validationrequests", status=403)
        result = site.revalidate(proxy, fail_on=[])
        assert result["certifications"][0]["spec"]["target"]["nodeNames"] == [names[0]]
        assert len(result["unwritten"]) == 1 and not site.gate(new[0])
    assert new[0] in site.revalidate()["gated"]


def test_deleted_and_edited_requests_and_statuses_open_nothing(site):
    deleted, edited = site.join(2)
    gone, forged = site.ask(deleted), site.ask(edited, cause="another")
    site.certified()
    for spec in ({"nodes": []}, {"tests": []}, {"tests": OTHERS}, {"nodes": [{"name": deleted}]}):
        with pytest.raises(ApiError) as refused:
            site.api.patch(f"{REQUESTS}/{forged}", {"spec": spec}, MERGE_PATCH)
        assert refused.value.status == 422
    site.api.delete(f"{REQUESTS}/{gone}")
    nodes = [{**node, "phase": "Opened", "batch": ""} for node in site.request(forged)["status"]["nodes"]]
    for status in ({"nodes": nodes}, {"nodes": nodes, "phase": "Succeeded"}):
        site.api.patch(f"{REQUESTS}/{forged}/status", {"status": status}, MERGE_PATCH)
        result = site.revalidate()
        assert result["opened"] == [] and site.open(deleted, edited) == []
    assert [each["node"] for each in result["orphans"]] == [deleted, edited]
    assert run(node_validation, site.arguments(fail_on=["orphans"]))["failed"]
    # a person decides what becomes of them
    adopted = site.certified(adopt_orphans=True)
    assert len(adopted["made"]) == 1
    assert site.revalidate()["opened"] == [deleted, edited]


def test_requests_in_files_open_nothing_either_once_they_are_edited_or_emptied(site):
    names = site.join(3)
    records = site.folder / "records"
    made = [site.ask(name, records_dir=str(records), cause=name) for name in names]
    site.options = {"records_dir": str(records)}
    site.certified()
    edited, emptied, good = (records / "validationrequests" / f"{name}.yaml" for name in made)
    edited.write_text(edited.read_text().replace("dcgm-level1", "dcgm-level2"))
    empty = yaml.safe_load(emptied.read_text())
    empty["spec"]["nodes"] = []
    emptied.write_text(yaml.safe_dump(empty))
    result = site.revalidate(fail_on=[])
    assert result["opened"] == [names[2]] and site.open(*names) == [names[2]] and good.exists()
    assert len(result["unreadable"]) == 1 and made[1] in result["unreadable"][0]
    assert "was edited" in yaml.safe_load(edited.read_text())["status"]["message"]
    accepted = site.revalidate(fail_on=[], accept_changed=True)
    assert accepted["certifications"][0]["spec"]["categories"][0]["variant"] == "dcgm-level2"
    assert site.open(*names[:2]) == []


def test_evidence_that_was_changed_opens_nothing(site):
    [node] = site.join(1)
    gpuwork.seed(site.cluster, {node: "crash"}, seconds=0.1)
    request = site.ask(node)
    site.certified()
    [folder] = (site.folder / "evidence").iterdir()
    results = folder / "results.json"
    found = json.loads(results.read_text())
    found["nodes"][0] |= {"verdict": "pass", "mayOpenGate": True}
    results.write_text(json.dumps(found))
    result = site.revalidate()
    assert result["opened"] == [] and site.open(node) == []
    assert "proves nothing" in site.why(request, node) and result["certifications"] == []


def test_evidence_of_somebody_else_is_told_and_breaks_nothing(site):
    [node] = site.join(1)
    request = site.ask(node)
    document = site.revalidate()["certifications"][0]
    name = document["metadata"]["name"]
    for about, results in (({}, {}), ({"certification": document}, {"nodes": [{}]})):
        with Evidence.open(str(site.folder / "evidence"), document, [], [node]) as evidence:
            evidence.write("results.json", results)
        folder = evidence.path
        Path(folder, "certification.json").write_text(json.dumps(about))
        evidence.seal()
        assert site.revalidate()["opened"] == [] and name in site.why(request, node)
        shutil.rmtree(folder)
    # what is lost is proven anew
    site.certify(site.revalidate()["certifications"])
    assert site.revalidate()["opened"] == [node]


def test_a_node_that_fails_again_stays_gated(site):
    bad, good = site.join(2)
    gpuwork.seed(site.cluster, {bad: "crash"}, seconds=0.1)
    request = site.ask(bad, good, retries=1)
    site.certified()
    again = site.certified()
    assert again["opened"] == [good] and again["certifications"][0]["spec"]["target"]["nodeNames"] == [bad]
    last = site.revalidate()
    assert [each["node"] for each in last["failing"]] == [bad] and last["certifications"] == []
    assert site.phases(request) == {bad: "Failed", good: "Opened"} and site.open(bad, good) == [good]
    assert site.request(request)["status"]["phase"] == "Failed"
    later = site.revalidate()
    assert not later["changed"] and later["failing"][0]["node"] == bad
    # a person lets it in: nobody closes it again
    release = {"kubeconfig": str(site.cluster.kubeconfig), "owner": "validation", "state": "released", "nodes": [bad]}
    assert not run(node_gate, release)["failed"]
    assert not site.revalidate()["changed"] and site.open(bad) == [bad]


def test_nodes_in_service_are_taken_out_within_the_bound(site):
    names = site.join(4)
    request = site.ask(*names)
    site.hold("quarantine", "old-0000")
    first = site.certified(max_out="2")
    assert len(first["gated"]) == 1 and len(site.open(*names)) == 3
    assert any("2 may be" in each["why"] for each in first["waiting"])
    site.revalidate(max_out="2")
    assert len(site.open(*names)) >= 3 and site.request(request)["status"]["phase"] == "Running"


# ---------------------------------------------------------------- killed anywhere


def state(site: Site, names: list[str]) -> dict:
    """All that a pass writes, without times and names that come of times."""
    nodes = {}
    for name in names:
        node = site.cluster.fleet.get(name)
        notes = node["metadata"].get("annotations", {})
        gate = {**json.loads(notes[GATE]), "since": ""} if GATE in notes else None
        record = {**json.loads(notes[CERTIFIED]), "at": ""} if CERTIFIED in notes else None
        nodes[name] = [gate, record, node["spec"].get("taints")]
    requests = {}
    for item in site.api.list(REQUESTS):
        status = item.get("status", {})
        entries = [{**node, "batch": bool(node["batch"])} for node in status.get("nodes", [])]
        requests[item["metadata"]["name"]] = [status.get("phase"), status.get("digest"), entries]
    return {"nodes": nodes, "requests": requests}


def sweep(site: Site, names: list[str], reset, want: dict) -> int:
    """Kill the pass before and after each of its writes; the next one ends in the same state. How many writes."""
    number = 0
    while True:
        number += 1
        for before in (True, False):
            reset()
            with ApiProxy(site.cluster.kubeconfig) as proxy:
                process = modules.start("node_validation", site.arguments(proxy, concurrency=1))
                met = kill_at(proxy, process.pid, number, before)
                modules.finish(process)
            if not met:
                assert state(site, names) == want
                return number - 1
            site.revalidate(concurrency=1)
            assert state(site, names) == want, f"killed {'before' if before else 'after'} write {number}"


def kill_at(proxy: ApiProxy, pid: int, number: int, before: bool) -> list:
    met: list = []

    def kill(request) -> None:
        if proxy.writes == number and not met:
            met.append(request)
            os.kill(pid, signal.SIGKILL)

    proxy.rule("write", "", **{"before" if before else "after": kill})
    return met


@pytest.mark.slow
def test_killed_at_any_write_the_next_pass_ends_in_the_same_state(site):
    names = site.join(1, taints=[TAINT])
    fresh = {name: site.cluster.fleet.get(name) for name in names}

    def restore(nodes: dict[str, dict], requests: list[dict]) -> None:
        for name, node in nodes.items():
            kept = node["metadata"].get("annotations", {})
            notes = {key: kept.get(key) for key in (GATE, CERTIFIED)}
            change = {"metadata": {"annotations": notes}, "spec": {"taints": node["spec"].get("taints")}}
            site.api.patch(f"/api/v1/nodes/{name}", change, MERGE_PATCH)
        for item in site.api.list(REQUESTS):
            if not requests:
                site.api.delete(f"{REQUESTS}/{item['metadata']['name']}")
        for item in requests:
            now = site.request(item["metadata"]["name"])
            path = f"{REQUESTS}/{item['metadata']['name']}/status"
            site.api.request("PUT", path, {**now, "status": item["status"]})

    site.revalidate(concurrency=1)
    assert sweep(site, names, lambda: restore(fresh, []), state(site, names)) == 3  # request, gate, status
    site.certify(site.revalidate()["certifications"])
    gated, requests = {name: site.cluster.fleet.get(name) for name in names}, site.api.list(REQUESTS)
    assert site.revalidate(concurrency=1)["opened"] == names
    assert sweep(site, names, lambda: restore(gated, requests), state(site, names)) == 2  # gate, status


# ---------------------------------------------------------------- as it is installed


def account(cluster: EmbeddedCluster) -> Path:
    for item in yaml.safe_load((modules.ROOT / "gitops/rbac/revalidate.yaml").read_text())["items"]:
        metadata = item["metadata"]
        group = "api/v1" if item["apiVersion"] == "v1" else f"apis/{item['apiVersion']}"
        space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        cluster.api.apply(f"/{group}{space}/{item['kind'].lower()}s/{metadata['name']}", item)
    path = "/api/v1/namespaces/goodput-fleet/serviceaccounts/goodput-fleet-revalidate/token"
    answer = cluster.api.create(path, {"spec": {"expirationSeconds": 600}})
    return cluster.access.with_token("revalidate", answer["status"]["token"])


def playbook(folder: Path, variables: dict, *options: str, fails: bool = False) -> str:
    command = [str(modules.ROOT / ".venv/bin/ansible-playbook"), str(modules.ROOT / "playbooks/revalidate.yml")]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(modules.FOREIGN)},
        "ANSIBLE_COLLECTIONS_PATH": str(modules.ROOT / ".build/collections"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_SHOW_CUSTOM_STATS": "True",
    }
    path = folder / "vars.yml"
    path.write_text(yaml.safe_dump(variables))
    done = subprocess.run(
        [*command, "-e", f"@{path}", *options], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert (done.returncode != 0) == fails, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_the_playbook_under_the_account_of_the_rbac_folder(site, tmp_path):
    """A node that is sound and one that is not, from joining to their ends, with the rights of the folder alone."""
    good, bad = site.join(2, taints=[TAINT])
    gpuwork.seed(site.cluster, {bad: "crash"}, seconds=0.1)
    variables = {
        "revalidate_kubeconfig": str(account(site.cluster)),
        "revalidate_evidence_dir": str(tmp_path / "evidence"),
        "revalidate_tests": TESTS,
        "revalidate_retries": 1,
        "revalidate_settle": 1,
        "revalidate_batch_seconds": 2,
        "revalidate_interval": 0.2,
        "revalidate_until_done": True,
    }
    out = playbook(tmp_path, variables)
    assert "would be gated" in out and site.gate(good) is None and site.api.list(REQUESTS) == []
    out = playbook(tmp_path, variables, "-e", "goodput_mode=enforce", fails=True)
    assert site.open(good, bad) == [good] and f"{bad}: failed" in out
    [request] = site.api.list(REQUESTS)
    assert request["status"]["phase"] == "Failed" and site.phases(request["metadata"]["name"])[good] == "Opened"
    assert len(list((tmp_path / "evidence").iterdir())) == 2
    out = playbook(tmp_path, {**variables, "revalidate_fail_on": ["unwritten"]}, "-e", "goodput_mode=enforce")
    assert "changed=0" in out
    out = playbook(tmp_path, {**variables, "revalidate_test": []}, fails=True)
    assert "revalidate_test: no variable of this role" in out


def test_bad_input_is_one_clear_error(site):
    def message(**options: Any) -> str:
        result = run(node_validation, site.arguments(**options))
        assert result["failed"] and "\n" not in result["msg"].strip(), result
        return result["msg"]

    assert "max_out" in message(max_out="none")
    assert "tests" in message(tests=[])
    assert message(tests=[{"domain": "diagnostics"}]).startswith("tests[0]: has no variant")
    assert message(tests=[TESTS[0], TESTS[0]]).startswith("tests[1]: asks for the same")
    assert "there is no request no-such" in message(only=["no-such"])
    assert "evidence_dir" in message(evidence_dir="")
    assert "there is no namespace elsewhere" in message(namespace="elsewhere")
    body = {"data": {"adopted": "yesterday"}}
    before = site.api.get(ADOPTED)["data"]
    site.api.patch(ADOPTED, body, MERGE_PATCH)
    try:
        assert "goodput-lifecycle" in message() and "yesterday" in message()
    finally:
        site.api.patch(ADOPTED, {"data": before}, MERGE_PATCH)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ({"domain": "diagnostics", "variant": "dcgm-level9"}, "no test 'diagnostics/dcgm-level9'"),
        (
            {
                "domain": "communication",
                "variant": "nccl-all-reduce",
                "options": {"thresholds": {"busBandwidthGBps": "value => 300"}},
            },
            "value => 300",
        ),
    ],
    ids=["no-such-test", "no-bound"],
)
def test_no_node_is_closed_for_tests_that_cannot_be_run(site, test, words):
    (name,) = site.join(1)
    asked = {"reason": "changed", "nodes": [{"name": name}], "tests": [test]}
    document = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "ValidationRequest", "metadata": {"name": "odd"}}
    site.api.create(REQUESTS, {**document, "spec": asked})
    result = site.revalidate(new_nodes=False, fail_on=[])
    assert words in "\n".join(result["unreadable"]) and site.open(name) == [name] and site.gate(name) is None
    refused = run(node_validation, site.arguments(tests=[test]))
    assert refused["failed"] and words in refused["msg"] and refused["msg"].startswith("tests"), refused["msg"]
