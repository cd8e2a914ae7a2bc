"""Repair on a real API server: nodes that reboot, do not come back, come back with the same fault, are other ones."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates import ledger
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import ClusterStore

from tests.integration import modules
from tests.integration.fixtures_crds import install
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import wait_until
from tests.simfleet.apiproxy import ApiProxy

pytestmark = pytest.mark.cluster

SPACE = "goodput-fleet"
LEDGER = f"/api/v1/namespaces/{SPACE}/configmaps/goodput-quarantine"
TESTS = [{"domain": "communication", "variant": "nccl-loopback-nvswitch"}]
RESET = {"fault": "xid-48", "action": "COMPONENT_RESET", "entity": "GPU-5f1c8a52-0c1c-4d8e-9a57-2d5f10b1f1ee"}
REBOOT = {"fault": "xid-79", "action": "RESTART_BM", "entity": ""}
EXECUTORS = {"reset": "ssh", "reboot": "ssh", "ticket": "webhook"}


@pytest.fixture(scope="module")
def running(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=8, say=show) as cluster:
        install(cluster.api)
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": SPACE}})
        yield cluster


@pytest.fixture
def fleet(running) -> Iterator[Fleet]:
    found = Fleet(running)
    yield found
    found.clean()


class Fleet:
    """One node of the cluster, under repair."""

    def __init__(self, cluster: EmbeddedCluster):
        self.cluster, self.api = cluster, cluster.api
        self.client = connect({"kubeconfig": str(cluster.kubeconfig)})
        self.store = ClusterStore(self.client, SPACE)
        self.node = cluster.fleet.names()[0]
        wait_until(lambda: self.node in cluster.fleet.ready(), 60, f"{self.node} is Ready")

    def clean(self) -> None:
        for plural in ("repairrequests", "validationrequests"):
            base = f"/apis/goodput.fleet/v1alpha1/namespaces/{SPACE}/{plural}"
            for item in self.api.list(base):
                self.api.delete(f"{base}/{item['metadata']['name']}")
        self.api.delete(LEDGER)
        if self.raw() is not None:
            owners = [each["owner"] for each in self.gates()]
            gates.release_many(self.client, [{"node": self.node, "owner": owner, "force": True} for owner in owners])
            self.cluster.fleet.set_ready(self.node)

    def raw(self) -> dict | None:
        return self.api.find(f"/api/v1/nodes/{self.node}")

    def boot(self) -> str:
        return self.cluster.fleet.get(self.node)["status"]["nodeInfo"]["bootID"]

    def gates(self) -> list[dict]:
        return gates_.read(self.cluster.fleet.get(self.node)["metadata"].get("annotations"))

    def owners(self) -> list[str]:
        return [each["owner"] for each in self.gates()]

    def close(self, evidence: str = "e1", **about: str) -> None:
        """As node_quarantine does."""
        entry = {"node": self.node, "domain": "", "owner": "quarantine", "rule": "fatal", "ruleDigest": "", "at": ""}
        entry["evidence"] = evidence
        now = datetime.now(UTC)
        ledger.reserve(self.client, SPACE, "goodput-quarantine", [entry], lambda _old, new: (new, []), now, window=3600)
        want = {"node": self.node, "owner": "quarantine", "reason": "Xid", "rule": "fatal", "evidence": evidence}
        (result,) = gates.hold_many(self.client, [{**want, **about}])
        assert result["status"] == "held"
        ledger.confirm(self.client, SPACE, "goodput-quarantine", [entry], now, window=3600)

    def again(self, seconds: int = 0) -> None:
        """The fault is seen again, so many seconds from now."""
        entry = {"node": self.node, "domain": "", "owner": "quarantine", "rule": "fatal", "ruleDigest": "", "at": ""}
        now = datetime.now(UTC)
        last = (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        entry |= {"evidence": "e1", "last": last}
        ledger.confirm(self.client, SPACE, "goodput-quarantine", [entry], now, window=3600)

    def open(self, owner: str) -> None:
        (result,) = gates.release_many(self.client, [{"node": self.node, "owner": owner}])
        assert result["status"] == "released"

    def arguments(self, kubeconfig: object = None, **options: Any) -> dict:
        return {
            "kubeconfig": str(kubeconfig or self.cluster.kubeconfig),
            "mode": "enforce",
            "tests": TESTS,
            "executors": EXECUTORS,
            "min_between": 0,
            **options,
        }

    def step(self, kubeconfig: object = None, check: bool = False, **options: Any) -> dict:
        return modules.run("node_repair", self.arguments(kubeconfig, **options), check=check)

    def requested(self) -> dict:
        """The next attempt, written down."""
        self.step()
        found = self.step(drained=[self.node])
        assert not found["failed"] and len(found["execute"]) == 1, found
        return found["execute"][0]

    def request(self) -> dict:
        docs, problems = self.store.list("RepairRequest")
        assert not problems
        return max(docs, key=lambda doc: doc["metadata"]["creationTimestamp"])

    def phase(self) -> str:
        return self.request()["status"]["phase"]

    def validated(self, phase: str) -> None:
        """The validation comes to its end."""
        (doc,) = [doc for doc in self.store.list("ValidationRequest")[0] if not doc.get("status")]
        node = {"name": self.node, "uid": self.raw()["metadata"]["uid"], "phase": phase, "why": "below its bound"}
        self.store.write_status(doc, {"phase": "Failed" if phase == "Failed" else "Succeeded", "nodes": [node]})
        if phase == "Opened":
            self.open("validation")


def said(entry: dict, executed: bool | None = True, **more: Any) -> dict:
    return {**{key: entry[key] for key in ("request", "key")}, "rung": entry.get("rung"), "executed": executed, **more}


def test_the_reset_fails_the_reboot_is_verified_and_the_node_waits_for_its_proof(fleet):
    fleet.close(**RESET)
    assert not fleet.step(check=True)["execute"] and not fleet.store.list("RepairRequest")[0]
    (due,) = fleet.step()["repairs"]
    assert (due["rung"], due["drain_scope"], due["entity"]) == ("reset", "gpu", RESET["entity"])
    planned = fleet.step(check=True, drained=[fleet.node])
    assert planned["planned"][0]["rung"] == "reset" and not planned["execute"]
    (reset,) = fleet.step(drained=[{"node": fleet.node, "scope": "gpu", "entity": RESET["entity"]}])["execute"]
    found = fleet.step(outcomes=[said(reset, True, verified=False, detail="Xid 48 again", serials=["SN-7"])])
    assert found["failed_attempts"][0]["rung"] == "reset"
    assert (found["repairs"][0]["rung"], found["repairs"][0]["drain_scope"]) == ("reboot", "node")
    (reboot,) = fleet.step(drained=[fleet.node])["execute"]
    assert reboot["bootBefore"] == fleet.boot() and reboot["serials"] == ["SN-7"]
    process = modules.start("node_repair", fleet.arguments(outcomes=[said(reboot)], wait=60, poll=1))
    wait_until(lambda: fleet.request()["status"]["attempts"][-1].get("executed"), 30, "the outcome is written down")
    boot = fleet.cluster.fleet.reboot(fleet.node)
    found = modules.finish(process)
    assert found["verified"][0]["key"] == reboot["key"] and not found["pending"]
    assert fleet.phase() == "Validating" and fleet.owners() == ["validation"]
    (validation,) = fleet.store.list("ValidationRequest")[0]
    assert validation["spec"]["nodes"][0]["bootId"] == boot and validation["spec"]["reason"] == "repaired"
    assert not fleet.step()["changed"]
    fleet.validated("Opened")
    assert fleet.step()["closed"] and fleet.phase() == "Closed"
    assert [each.get("verified") for each in fleet.request()["status"]["attempts"]] == [False, True]
    assert not fleet.step(drained=[fleet.node])["changed"]


def test_a_node_that_does_not_come_back_ends_in_a_ticket_and_stays_closed(fleet):
    fleet.close(**REBOOT)
    entry = fleet.requested()
    fleet.cluster.fleet.set_not_ready(fleet.node)
    found = fleet.step(outcomes=[said(entry, None, detail="no answer", serials=["SN-1"])], wait=2, poll=1)
    assert found["pending"] and not found["verified"]
    wait_until(lambda: fleet.step(timeouts={"reboot": 3})["tickets"], 20, "the time is up")
    (ticket,) = fleet.step(timeouts={"reboot": 3})["tickets"]
    info = fleet.raw()["status"]["nodeInfo"]
    assert (ticket["systemUUID"], ticket["machineId"]) == (info["systemUUID"], info["machineID"])
    assert ticket["serials"] == ["SN-1"] and ticket["fault"]["code"] == "xid-79" and ticket["evidence"] == ["e1"]
    found = fleet.step(outcomes=[{**said(ticket), "rung": "ticket", "reference": "OPS-12"}])
    assert "OPS-12" in found["exhausted"][0]["why"] and fleet.phase() == "Exhausted"
    fleet.cluster.fleet.reboot(fleet.node)  # comes back after all
    assert not fleet.step(drained=[fleet.node])["execute"] and fleet.owners() == ["quarantine"]
    fleet.open("quarantine")
    assert fleet.step()["closed"] and fleet.phase() == "Closed"


def test_a_node_that_boots_and_is_not_ready_is_not_back(fleet):
    fleet.close(**REBOOT)
    entry = fleet.requested()
    fleet.cluster.fleet.set_not_ready(fleet.node, status="False")
    fleet.cluster.fleet.reboot(fleet.node)
    found = fleet.step(outcomes=[said(entry)])
    assert "is not Ready" in found["pending"][0]["why"] and fleet.owners() == ["quarantine"]
    fleet.cluster.fleet.set_ready(fleet.node)
    wait_until(lambda: fleet.node in fleet.cluster.fleet.ready(), 30, "the node is back")
    assert fleet.step()["verified"] and fleet.owners() == ["validation"]


def test_a_node_that_comes_back_with_the_same_fault_is_not_repaired(fleet):
    fleet.close(**REBOOT)
    entry = fleet.requested()
    fleet.cluster.fleet.reboot(fleet.node)
    fleet.again(seconds=2)
    time.sleep(2)
    wait_until(lambda: fleet.node in fleet.cluster.fleet.ready(), 30, "the node is back")
    found = fleet.step(outcomes=[said(entry)])
    assert "the fault came again" in found["failed_attempts"][0]["why"]
    assert found["tickets"] and fleet.owners() == ["quarantine"] and not found["validations"]


def test_a_validation_that_fails_goes_one_rung_higher_with_the_node_closed(fleet, tmp_path):
    fleet.close(**RESET)
    entry = fleet.requested()
    found = fleet.step(outcomes=[said(entry, True, verified=True)])
    assert found["released"] and fleet.owners() == ["validation"]
    fleet.validated("Failed")
    found = fleet.step()
    assert "below its bound" in found["failed_attempts"][0]["why"] and found["repairs"][0]["rung"] == "reboot"
    assert fleet.owners() == ["validation"] and fleet.phase() == "Open"
    (reboot,) = fleet.step(drained=[fleet.node])["execute"]
    fleet.cluster.fleet.reboot(fleet.node)
    assert fleet.step(outcomes=[said(reboot)], wait=60, poll=1)["verified"]
    # validation takes the second request for the one that counts, and certifies the node for it
    options = {"kubeconfig": str(fleet.cluster.kubeconfig), "mode": "enforce", "evidence_dir": str(tmp_path)}
    found = modules.run(
        "node_validation",
        {**options, "catalog": [str(modules.CATALOG)], "settle": 0, "new_nodes": False, "tests": TESTS},
    )
    (certification,) = found["certifications"]
    assert certification["spec"]["target"]["nodeNames"] == [fleet.node] and not found["orphans"]


def test_a_person_who_opens_the_gate_has_the_last_word(fleet):
    fleet.close(**REBOOT)
    fleet.step()
    fleet.open("quarantine")
    found = fleet.step(drained=[fleet.node])
    assert found["withdrawn"] and not found["execute"] and fleet.phase() == "Withdrawn"


def test_a_node_that_was_replaced_under_its_name_is_another_one(fleet):
    fleet.close(**REBOOT)
    fleet.requested()
    raw = fleet.raw()
    fleet.cluster.fleet.delete([fleet.node])
    labels = raw["metadata"]["labels"]
    fleet.api.create("/api/v1/nodes", {"metadata": {"name": fleet.node, "labels": labels}, "spec": {}})
    fleet.api.patch(f"/api/v1/nodes/{fleet.node}/status", {"status": {"nodeInfo": raw["status"]["nodeInfo"]}})
    found = fleet.step(drained=[fleet.node])
    assert found["closed"][0]["why"].startswith("replaced") and not found["created"] and not found["execute"]


def test_of_two_runs_at_once_one_acts_and_the_other_says_so(fleet):
    fleet.close(**REBOOT)
    fleet.step()
    quicker: list[dict] = []
    with ApiProxy(fleet.cluster.kubeconfig) as proxy:
        proxy.rule("PUT", "/status", before=lambda _request: quicker.append(fleet.step(drained=[fleet.node])), times=1)
        late = fleet.step(proxy.kubeconfig, drained=[fleet.node])
    assert len(quicker[0]["execute"]) == 1 and not late["execute"]
    assert "another run was quicker" in late["conflicts"][0]["why"] and not late["failed"]
    assert len(fleet.request()["status"]["attempts"]) == 1


def test_killed_after_any_write_nothing_is_done_twice_and_the_rest_is_done(fleet):
    fleet.close(**REBOOT)
    entry = fleet.requested()
    assert not fleet.step(drained=[fleet.node])["execute"]  # who got the attempt died; nobody gets it again
    fleet.cluster.fleet.reboot(fleet.node)
    wait_until(lambda: fleet.node in fleet.cluster.fleet.ready(), 30, "the node is back")
    kills = 0
    for _run in range(8):  # after the status, the request, validation's gate, quarantine's gate
        with ApiProxy(fleet.cluster.kubeconfig) as proxy:
            process = modules.start("node_repair", fleet.arguments(proxy.kubeconfig))
            proxy.rule("write", "", after=lambda _request, pid=process.pid: os.kill(pid, signal.SIGKILL))
            killed = modules.finish(process) == {}
        kills += killed
        assert fleet.owners(), "open without a proof"
        if not killed:
            break
    assert kills == 4
    found = fleet.step()
    assert not found["failed"] and fleet.owners() == ["validation"] and fleet.phase() == "Validating"
    assert len(fleet.store.list("ValidationRequest")[0]) == 1
    attempts = fleet.request()["status"]["attempts"]
    assert [(each["key"], each["verified"]) for each in attempts] == [(entry["key"], True)]


def test_requests_may_be_files(fleet, tmp_path):
    fleet.close(**REBOOT)
    fleet.step(records_dir=str(tmp_path))
    (entry,) = fleet.step(records_dir=str(tmp_path), drained=[fleet.node])["execute"]
    fleet.cluster.fleet.reboot(fleet.node)
    found = fleet.step(records_dir=str(tmp_path), outcomes=[said(entry)], wait=60, poll=1)
    assert found["verified"] and fleet.owners() == ["validation"]
    assert {path.parent.name for path in tmp_path.glob("*/*.yaml")} == {"repairrequests", "validationrequests"}


def test_what_is_wrong_with_the_options_is_told_at_once(running):
    wrong = {"executors": ["rest"], "timeouts": {"reboot": "soon"}}
    found = modules.run("node_repair", {"kubeconfig": str(running.kubeconfig), "tests": TESTS, **wrong})
    assert found["failed"] and len(found["problems"]) == 2 and "did you mean 'reset'" in found["msg"]


def test_without_the_crds_the_hint_says_what_to_apply(running):
    with ApiProxy(running.kubeconfig) as proxy:
        proxy.rule("GET", "/repairrequests", status=404)
        found = modules.run("node_repair", {"kubeconfig": str(proxy.kubeconfig), "tests": TESTS})
    assert found["failed"] and "repairrequests" in found["msg"]
