# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on the nodes of a real API server, among people and tools that write the same nodes."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes

from tests.integration import modules
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH, ApiError
from tests.simfleet.apiproxy import ApiProxy

pytestmark = pytest.mark.cluster

RBAC = Path(__file__).parents[2] / "gitops/rbac/gates.yaml"
NODES = "/api/v1/nodes"
COUNT = 50
FATAL = {"key": "nvidia.com/gpu-error", "value": "fatal", "effect": "NoSchedule"}
FOREIGN = {
    "key": "team.example.com/reserved",
    "value": "a",
    "effect": "NoExecute",
    "timeAdded": "2026-11-01T00:00:00Z",
}
OTHER = {"key": "other", "effect": "NoSchedule"}
SHADOW = "node.kubernetes.io/unschedulable"


class Site:
    """A cluster and what people and tools do to its nodes."""

    def __init__(self, cluster: EmbeddedCluster):
        self.cluster, self.api, self.names = cluster, cluster.api, cluster.fleet.names()

    def gate(self, kubeconfig: Path | None = None, check: bool = False, diff: bool = False, **options) -> dict:
        options = {"owner": "quarantine", **options}
        if options.get("state") != "released":
            options = {"reason": "Xid 79", **options}
        access = {"kubeconfig": str(kubeconfig or self.cluster.kubeconfig)}
        return modules.run("node_gate", {**access, **options}, check=check, diff=diff)

    def info(self, **options) -> dict:
        return modules.run("node_gate_info", {"kubeconfig": str(self.cluster.kubeconfig), **options})

    def about(self, name: str) -> dict:
        return self.info(nodes=[name])["nodes"][0]

    def node(self, name: str) -> dict:
        return self.cluster.fleet.get(name)

    def taints(self, name: str) -> list[dict]:
        """Without the one that the node controller sets and takes off in the cordon's wake."""
        return [each for each in self.node(name)["spec"].get("taints", []) if each["key"] != SHADOW]

    def is_cordoned(self, name: str) -> bool:
        return bool(self.node(name)["spec"].get("unschedulable"))

    def cordon(self, name: str, on: bool = True) -> None:
        """As kubectl does it: a strategic patch by a manager of its own, and nothing where it is so already."""
        if self.is_cordoned(name) != on:
            manager = "kubectl-cordon" if on else "kubectl-uncordon"
            body = {"spec": {"unschedulable": on or None}}
            self.api.patch(f"{NODES}/{name}?fieldManager={manager}", body)

    def taint(self, name: str, *wanted: dict) -> None:
        """Read, and write the whole list; again when somebody else was quicker."""
        while True:
            node = self.node(name)
            mine = {each["key"] for each in (FOREIGN, OTHER)}
            others = [each for each in node["spec"].get("taints", []) if each["key"] not in mine]
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            body = {"metadata": version, "spec": {"taints": [*others, *wanted]}}
            try:
                self.api.patch(f"{NODES}/{name}", body, MERGE_PATCH)
                return
            except ApiError as error:
                if error.status != 409:
                    raise

    def annotate(self, name: str, **annotations: str | None) -> None:
        self.api.patch(f"{NODES}/{name}", {"metadata": {"annotations": annotations}})

    def label(self, name: str, **labels: str | None) -> None:
        self.cluster.fleet.set_labels(name, labels)


@pytest.fixture(scope="module")
def cluster_of_50(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=COUNT, profile="demo", say=show) as cluster:
        yield cluster


@pytest.fixture
def site(cluster_of_50) -> Iterator[Site]:
    """Every test finds the nodes as they were made."""
    made = Site(cluster_of_50)
    yield made
    for node in made.api.list(NODES):
        name, metadata = node["metadata"]["name"], node["metadata"]
        extra = {key: None for key in metadata.get("annotations", {}) if "goodput.fleet/" in key or "quarantine" in key}
        labels = {key: None for key in metadata["labels"] if key.startswith(("test-", "dgxc."))}
        body: dict = {"metadata": {"annotations": extra, "labels": labels}}
        if extra or labels or node["spec"].get("taints") or node["spec"].get("unschedulable"):
            body["spec"] = {"taints": [], "unschedulable": None}
            made.api.patch(f"{NODES}/{name}", body, MERGE_PATCH)


def statuses(result: dict) -> dict[str, str]:
    return {each["node"]: each["status"] for each in result["results"]}


def of(result: dict, name: str) -> dict:
    return next(each for each in result["results"] if each["node"] == name)


# ---- one call, many nodes ----


def test_a_fleet_is_closed_and_opened_in_one_call_each(site):
    names = site.names
    held = site.gate(selector="kubernetes.io/hostname")
    assert (held["failed"], held["changed"], held["counts"]["held"]) == (False, True, COUNT)
    assert held["msg"] == "50 nodes held"
    node = site.node(names[0])
    body = json.loads(node["metadata"]["annotations"]["gate.goodput.fleet/quarantine"])
    assert body["bootId"] == node["status"]["nodeInfo"]["bootID"] and body["reason"] == "Xid 79"
    assert "unschedulable" not in node["spec"]
    assert site.taints(names[0]) == [
        {"key": "gate.goodput.fleet/quarantine", "value": "xid-79", "effect": "NoSchedule"}
    ]
    managers = {each["manager"] for each in node["metadata"]["managedFields"]}
    assert gates.MANAGER in managers

    versions = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in site.api.list(NODES)}
    again = site.gate(nodes=names)
    assert (again["changed"], again["counts"]["unchanged"]) == (False, COUNT)
    assert {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in site.api.list(NODES)} == versions

    opened = site.gate(state="released", selector="kubernetes.io/hostname")
    assert opened["counts"]["released"] == COUNT and all(each["open"] for each in opened["results"])
    assert site.taints(names[0]) == []
    assert site.gate(state="released", nodes=names)["changed"] is False
    assert site.info()["counts"] == {"nodes": COUNT, "open": COUNT, "gated": 0, "external": 0, "notReady": 0}


def test_check_mode_writes_nothing_and_tells_what_would_be(site):
    names = site.names[:3]
    site.gate(nodes=names[:1])
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        plan = site.gate(proxy.kubeconfig, nodes=names, cordon=True, check=True, diff=True)
        assert proxy.writes == 0
    assert plan["changed"] is True and set(statuses(plan).values()) == {"held"}
    assert "3 nodes would be held" in plan["msg"]
    assert [each["after_header"] for each in plan["diff"]] == names
    assert plan["diff"][0]["after"]["unschedulable"] is True
    done = site.gate(nodes=names, cordon=True, diff=True)
    assert statuses(done) == statuses(plan)
    strip = [[each["before"], each["after"]["taints"], each["after"]["unschedulable"]] for each in plan["diff"]]
    assert strip == [[each["before"], each["after"]["taints"], each["after"]["unschedulable"]] for each in done["diff"]]
    assert site.gate(nodes=names, cordon=True, check=True)["changed"] is False


def test_a_node_that_is_not_there_fails_and_the_others_go_on(site):
    result = site.gate(nodes=[site.names[0], "gpu-9999", {"name": site.names[1], "reason": "another"}])
    assert result["failed"] is True and result["changed"] is True
    assert statuses(result) == {site.names[0]: "held", "gpu-9999": "failed", site.names[1]: "held"}
    assert of(result, "gpu-9999")["code"] == "not-found"
    assert result["msg"] == "2 nodes held, 1 node failed: gpu-9999 (there is no such node)"
    many = site.gate(nodes=[*site.names, "gpu-9999"])  # by listing rather than one by one
    assert of(many, "gpu-9999")["reason"] == "there is no such node"
    assert site.info(nodes=["gpu-9999", site.names[1]])["missing"] == ["gpu-9999"]


def test_bad_input_is_told_before_anything_is_written(site):
    for options, says in (
        ({"owner": "Ops Team"}, "owner: 'Ops Team' is not the name of an owner"),
        ({"taint": {"key": "a b"}}, "taint.key: 'a b' is not the key of a taint"),
        ({"nodes": [{"name": site.names[0], "evidense": "x"}]}, "did you mean 'evidence'"),
        ({"nodes": None}, "which nodes?"),
        ({"selector": ""}, "selector is empty"),
        ({"selector": "a in (b"}, "unable to parse"),
        ({"concurrency": 0}, "concurrency has to be from 1 to 64"),
    ):
        nodes = {} if "selector" in options else {"nodes": site.names}
        result = site.gate(**{**nodes, **options})
        assert result["failed"] is True and says in result["msg"], result["msg"]
    assert site.info()["counts"]["gated"] == 0


# ---- people ----


@pytest.mark.parametrize("when", ["before", "between", "after"])
@pytest.mark.parametrize("cordon", [False, True])
def test_a_persons_cordon_is_never_lifted(site, when, cordon):
    name = site.names[0]
    if when == "before":
        site.cordon(name)
    site.gate(nodes=[name], cordon=cordon)
    if when == "between":
        site.cordon(name, False)  # ours, if there is one
        site.cordon(name)
    site.gate(nodes=[name], owner="manual", cordon=cordon)
    site.gate(nodes=[name], owner="quarantine", state="released")
    if when == "after":
        # with a cordon of ours there, a person's would change nothing: this one takes it over, as kubectl edit does
        site.cordon(name, False)
        site.cordon(name)
    result = site.gate(nodes=[name], owner="manual", state="released")
    assert site.is_cordoned(name)
    assert of(result, name)["open"] is False
    external = site.about(name)["external"]
    assert [each["key"] for each in external] == ["spec.unschedulable"]
    assert external[0]["detail"].startswith("set by kubectl-cordon at 20")


def test_our_cordon_goes_with_the_last_gate_that_wants_it(site):
    name = site.names[0]
    for owner in ("quarantine", "manual"):
        site.gate(nodes=[name], owner=owner, cordon=True)
    site.gate(nodes=[name], owner="validation")
    assert site.is_cordoned(name)
    first = site.gate(nodes=[name], owner="manual", state="released")
    assert of(first, name)["reason"] == "the cordon stays for quarantine" and site.is_cordoned(name)
    site.gate(nodes=[name], owner="quarantine", state="released")
    assert not site.is_cordoned(name)
    assert [each["owner"] for each in site.about(name)["gates"]] == ["validation"]


def test_a_person_who_opens_a_node_is_respected_and_reported(site):
    name = site.names[0]
    site.gate(nodes=[name], cordon=True)
    site.cordon(name, False)
    site.annotate(name, **{"gate.goodput.fleet/manual": "hands off, Jo"})
    site.api.patch(f"{NODES}/{name}", {"spec": {"taints": []}}, MERGE_PATCH)
    about = site.about(name)
    assert about["open"] is False
    assert {each["owner"]: each["missing"] for each in about["gates"]} == {
        "quarantine": ["taint", "cordon"],
        "manual": [],
    }
    again = site.gate(nodes=[name], cordon=True)
    assert "somebody lifted the cordon" in of(again, name)["reason"]
    assert site.taints(name) and not site.is_cordoned(name)
    site.gate(nodes=[name], cordon=True, reclose=True)
    assert site.is_cordoned(name)

    refused = site.gate(nodes=[name], owner="manual", state="released")
    assert refused["failed"] is True and statuses(refused)[name] == "refused"
    assert "cannot be read" in refused["msg"] and "force" in refused["msg"]
    tolerated = site.gate(nodes=[name], owner="manual", state="released", fail_on_refused=False)
    assert (tolerated["failed"], tolerated["changed"]) == (False, False)
    assert site.gate(nodes=[name], owner="manual", state="released", force=True)["changed"] is True


# ---- tools ----


def test_foreign_taints_stay_byte_for_byte(site):
    name = site.names[0]
    site.taint(name, FOREIGN, OTHER)
    before = site.node(name)["spec"]["taints"]
    assert before == [FOREIGN, OTHER]
    site.gate(nodes=[name], taint=FATAL)
    site.gate(nodes=[name], owner="manual", taint=FATAL)
    site.gate(nodes=[name], state="released")
    assert site.node(name)["spec"]["taints"] == [*before, FATAL]
    site.gate(nodes=[name], owner="manual", state="released")
    assert site.node(name)["spec"]["taints"] == before


def test_a_taint_that_was_there_before_stays(site):
    name = site.names[0]
    site.taint(name, FATAL)  # NVSentinel's example, set by it
    site.gate(nodes=[name], taint=FATAL)
    assert site.about(name)["gates"][0]["taintOurs"] is False
    site.gate(nodes=[name], state="released")
    assert site.taints(name) == [FATAL]


def test_nvsentinels_quarantine_is_external(site):
    name = site.names[0]
    site.annotate(name, quarantineHealthEvent='[{"checkName":"GpuMemWatch"}]', quarantineHealthEventIsCordoned="True")
    site.label(name, **{"dgxc.nvidia.com/nvsentinel-state": "quarantined"})
    stale = site.about(name)
    assert stale["open"] is True and all(each["detail"].startswith("stale") for each in stale["external"])

    site.gate(nodes=[name], cordon=True)  # ours comes first, and NVSentinel finds the node cordoned
    assert [each["key"] for each in site.about(name)["external"] if each["holds"]] == [
        "quarantineHealthEvent",
        "quarantineHealthEventIsCordoned",
        "dgxc.nvidia.com/nvsentinel-state",
    ]
    result = site.gate(nodes=[name], state="released")
    assert "quarantineHealthEvent" in of(result, name)["reason"]
    assert site.is_cordoned(name)
    assert site.node(name)["metadata"]["annotations"]["quarantineHealthEventIsCordoned"] == "True"


# ---- stale releases, rules ----


def test_a_stale_release_is_refused(site):
    name = site.names[0]
    first = site.node(name)["status"]["nodeInfo"]["bootID"]
    site.gate(nodes=[name], evidence="e1", boot_id=first)
    current = site.cluster.fleet.reboot(name)
    for options, says in (
        ({"boot_id": first}, "the node has booted since"),
        ({"boot_id": current, "evidence": "e0"}, "the gate is held on e1, not on e0"),
    ):
        result = site.gate(nodes=[name], state="released", **options)
        assert statuses(result)[name] == "refused" and says in result["msg"]
    assert "is over" in site.gate(nodes=[name], owner="manual", boot_id=first)["msg"]
    assert site.gate(nodes=[name], state="released", boot_id=current, evidence="e1")["counts"]["released"] == 1


def test_a_rollback_opens_exactly_what_the_rule_closed(site):
    bad, good = site.names[:30], site.names[30:40]
    site.gate(nodes=bad, rule="nvlink-down", rule_digest="sha256:bad")
    site.gate(nodes=good, rule="nvlink-down", rule_digest="sha256:good")
    site.gate(nodes=bad[:5], owner="manual")
    result = site.gate(state="released", rule_digest="sha256:bad")
    assert sorted(name for name, status in statuses(result).items() if status == "released") == bad
    assert result["counts"] == {"held": 0, "released": 30, "unchanged": 10, "refused": 0, "failed": 0}
    left = site.info(only="gated")
    assert [each["name"] for each in left["nodes"]] == [*bad[:5], *good]
    assert left["owners"] == {"manual": 5, "quarantine": 10}
    assert [each["name"] for each in site.info(owner="manual")["nodes"]] == bad[:5]


# ---- an API server that has bad days ----


def test_faults_are_tried_again_within_bounds_and_stay_on_their_node(site):
    names = site.names[:10]
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("PATCH", f"/nodes/{names[0]}[?]", status=403)
        proxy.rule("PATCH", f"/nodes/{names[1]}[?]", status=409, times=3)
        proxy.rule("PATCH", f"/nodes/{names[2]}[?]", status=429, headers={"Retry-After": "1"}, times=2)
        proxy.rule("PATCH", f"/nodes/{names[3]}[?]", status=500, times=2)
        proxy.rule("PATCH", f"/nodes/{names[4]}[?]", drop=True, times=1)
        proxy.rule("PATCH", f"/nodes/{names[5]}[?]", lose_answer=True, times=1)
        proxy.rule("PATCH", f"/nodes/{names[6]}[?]", delay=3)
        proxy.rule("PATCH", f"/nodes/{names[7]}[?]", status=409)
        proxy.rule("GET", f"/nodes/{names[8]}$", status=404)
        began = time.monotonic()
        result = site.gate(proxy.kubeconfig, nodes=names, request_timeout=1)
        took = time.monotonic() - began
        tried = [proxy.count("PATCH", f"/nodes/{name}[?]") for name in names]
    assert result["failed"] is True
    assert {name: of(result, name).get("code", of(result, name)["status"]) for name in names} == {
        names[0]: "denied",
        names[1]: "held",
        names[2]: "held",
        names[3]: "held",
        names[4]: "held",
        names[5]: "held",
        names[6]: "unavailable",
        names[7]: "conflict",
        names[8]: "not-found",
        names[9]: "held",
    }
    assert f"forbidden: cannot patch nodes {names[0]}" in result["msg"]
    assert of(result, names[5])["changed"] is True  # its answer was lost; it was written all the same
    assert tried[:4] == [1, 4, 3, 3] and tried[7] == kubernetes.CONFLICTS + 1 and max(tried) <= 11
    assert took < 40


def test_a_server_that_fails_for_everybody_is_not_asked_for_ever(site):
    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("PATCH", "/nodes/", drop=True)
        result = site.gate(proxy.kubeconfig, nodes=site.names, concurrency=2)
        assert proxy.count("PATCH") < 60
    assert result["counts"]["failed"] == COUNT
    assert {each["code"] for each in result["results"]} == {"unavailable"}
    assert "not tried" in result["results"][-1]["reason"]


def test_a_change_in_between_is_decided_upon_again(site):
    name = site.names[0]

    def somebody(_request) -> None:
        site.cordon(name)
        site.taint(name, FOREIGN)
        site.label(name, **{"test-label": "theirs"})

    with ApiProxy(site.cluster.kubeconfig) as proxy:
        proxy.rule("PATCH", f"/nodes/{name}", before=somebody, times=1)
        site.gate(proxy.kubeconfig, nodes=[name], cordon=True)
        assert [each.status for each in proxy.requests if each.method == "PATCH"] == [409, 200]
    node = site.node(name)
    assert node["metadata"]["labels"]["test-label"] == "theirs" and FOREIGN["key"] in str(site.taints(name))
    site.gate(nodes=[name], state="released")
    assert site.is_cordoned(name) and [each["key"] for each in site.taints(name)] == [FOREIGN["key"]]


def end_state(site: Site, names: list[str]) -> list:
    found = []
    for name in names:
        node = site.node(name)
        annotations = {k: v for k, v in node["metadata"].get("annotations", {}).items() if k.startswith(gates.PREFIX)}
        held = {key: {**json.loads(value), "since": ""} for key, value in annotations.items()}
        found.append((name, held, site.taints(name), site.is_cordoned(name)))
    return found


def test_a_run_that_is_killed_after_any_write_and_run_again_ends_the_same(site):
    names = site.names[:3]
    options = {"nodes": names, "cordon": True, "taint": FATAL, "owner": "quarantine"}
    site.taint(names[1], FOREIGN)
    site.cordon(names[2])
    opened = end_state(site, names)
    site.gate(**options)
    closed = end_state(site, names)
    site.gate(**options, state="released")
    assert end_state(site, names) == opened
    for state, start, end in (("held", opened, closed), ("released", closed, opened)):
        for count in range(1, len(names) + 1):
            site.gate(**options, state="released" if state == "held" else "held")
            assert end_state(site, names) == start
            with ApiProxy(site.cluster.kubeconfig) as proxy:
                arguments = {"kubeconfig": str(proxy.kubeconfig), "reason": "Xid 79", "concurrency": 1, **options}
                process = modules.start("node_gate", {**arguments, "state": state})
                left = [count]

                def kill(_request, process=process, left=left) -> None:
                    left[0] -= 1
                    if not left[0]:
                        process.send_signal(signal.SIGKILL)
                        process.wait()

                proxy.rule("PATCH", "/nodes/", after=kill)
                assert modules.finish(process) == {}
            result = site.gate(**options, state=state)
            assert result["counts"]["unchanged"] == count
            assert end_state(site, names) == end
            assert site.gate(**options, state=state)["changed"] is False


# ---- others write the same nodes at the same time ----


class Others:
    """Somebody who labels, somebody who taints and somebody who cordons, until stopped. Knows what has to be left."""

    def __init__(self, site: Site):
        self.site, self.stop, self.failures = site, threading.Event(), []
        self.labels: dict[str, dict] = {name: {} for name in site.names}
        self.taints: dict[str, list] = {name: [] for name in site.names}
        self.cordons: dict[str, bool] = dict.fromkeys(site.names, False)  # theirs, seen as theirs by the server
        self.writes = 0
        self._threads = [
            threading.Thread(target=self._run, args=(each,)) for each in (self.label, self.taint, self.cordon)
        ]

    def __enter__(self) -> Others:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, act) -> None:
        dice = random.Random(act.__name__)
        try:
            while not self.stop.is_set():
                act(dice.choice(self.site.names), dice)
                self.writes += 1
        except Exception as error:  # shown by the test, in its own thread
            self.failures.append(error)

    def label(self, name: str, dice: random.Random) -> None:
        key, value = f"test-{dice.randrange(3)}", str(dice.randrange(1000))
        self.site.label(name, **{key: value})
        self.labels[name][key] = value

    def taint(self, name: str, dice: random.Random) -> None:
        wanted = [FOREIGN] if dice.random() < 0.5 else []
        self.site.taint(name, *wanted)
        self.taints[name] = wanted

    def cordon(self, name: str, dice: random.Random) -> None:
        on = dice.random() < 0.5
        manager = "kubectl-cordon" if on else "kubectl-uncordon"
        node = self.site.api.patch(f"{NODES}/{name}?fieldManager={manager}", {"spec": {"unschedulable": on or None}})
        setters = [
            each["manager"]
            for each in node["metadata"]["managedFields"]
            if "f:unschedulable" in each.get("fieldsV1", {}).get("f:spec", {})
        ]
        # cordoning what we have cordoned changes nothing that anybody could see
        self.cordons[name] = on and setters == ["kubectl-cordon"]


def test_nothing_of_others_is_lost_and_no_gate_of_ours(site):
    clients = {owner: connect({"kubeconfig": str(site.cluster.kubeconfig)}) for owner in ("quarantine", "manual")}
    problems: list = []

    def work(owner: str, rounds: int) -> None:
        """Hold and release everywhere, and look each time whether it is so. `quarantine` ends held."""
        for number in range(rounds):
            wants = [
                {"node": name, "owner": owner, "reason": f"round {number}", "cordon": index % 2 == 0}
                for index, name in enumerate(site.names)
            ]
            results = kubernetes.hold_many(clients[owner], wants)
            problems.extend(each for each in results if each["status"] not in ("held", "unchanged"))
            there = kubernetes.read_nodes(clients[owner])
            key = f"gate.goodput.fleet/{owner}"
            problems.extend(name for name in site.names if key not in there[name]["metadata"].get("annotations", {}))
            if owner == "manual" or number < rounds - 1:
                results = kubernetes.release_many(clients[owner], wants)
                problems.extend(each for each in results if each["status"] != "released")

    with Others(site) as others:
        threads = [threading.Thread(target=work, args=(owner, 6)) for owner in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (problems, others.failures) == ([], [])
    assert others.writes > 100
    everything = {each["metadata"]["name"]: each for each in site.api.list(NODES)}
    for name, node in everything.items():
        assert {k: v for k, v in node["metadata"]["labels"].items() if k.startswith("test-")} == others.labels[name]
        assert [each for each in site.taints(name) if each["key"] == FOREIGN["key"]] == others.taints[name]
        found = [each["key"] for each in site.taints(name) if each["key"].startswith(gates.PREFIX)]
        assert found == ["gate.goodput.fleet/quarantine"]
        assert [each["owner"] for each in gates.read(node["metadata"]["annotations"])] == ["quarantine"]
    site.gate(nodes=site.names, state="released")
    left = {name: site.is_cordoned(name) for name in site.names}
    assert left == others.cordons


# ---- rights ----


def the_role() -> list[dict]:
    items = yaml.safe_load(RBAC.read_text())["items"]
    return next(each["rules"] for each in items if each["kind"] == "ClusterRole")


def test_the_shipped_role_is_enough_and_no_more(site):
    assert the_role() == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]}]
    access = site.cluster.access.service_account("gates", cluster_rules=the_role())
    assert site.gate(access, nodes=site.names, cordon=True)["counts"]["held"] == COUNT
    assert modules.run("node_gate_info", {"kubeconfig": str(access)})["counts"]["gated"] == COUNT
    assert site.gate(access, state="released", selector="kubernetes.io/hostname")["counts"]["released"] == COUNT
    for verb, says in (("patch", "forbidden: cannot patch nodes"), ("list", "forbidden: cannot list nodes")):
        rules = [{**the_role()[0], "verbs": [each for each in the_role()[0]["verbs"] if each != verb]}]
        less = site.cluster.access.service_account(f"without-{verb}", cluster_rules=rules)
        result = site.gate(less, selector="kubernetes.io/hostname")
        assert result["failed"] is True and says in result["msg"]
