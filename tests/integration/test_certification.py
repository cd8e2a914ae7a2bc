"""Certifications on a real API server, with nodes whose faults are known: what a delivery team has to rely on."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.certification import evidence
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates.kubernetes import hold_many, release_many

from tests.integration import modules
from tests.simfleet import EmbeddedCluster, gpuwork
from tests.simfleet.api import ApiError, wait_until
from tests.simfleet.apiproxy import ApiProxy, Request

pytestmark = pytest.mark.cluster

SIZES = [64, 20, 12, 12, 10, 9, 9, 8, 8, 8, 8, 7, 6, 6, 6, 5, 5, 5, 4, 4]
RACK = 8
PROFILE = {
    "nodes": sum(SIZES),
    "groups": [
        {
            "prefix": "gpu",
            "accelerator": "h100",
            "service": "baremetal",
            "os": "ubuntu-22.04",
            "driver": "580.105.08",
            "perRack": RACK,
        }
    ],
}
NAMESPACE = "goodput-certify"
JOBS, SERVICES = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"/api/v1/namespaces/{NAMESPACE}/services"
SECRETS, PODS = f"/api/v1/namespaces/{NAMESPACE}/secrets", f"/api/v1/namespaces/{NAMESPACE}/pods"
ALL_REDUCE = {
    "domain": "communication",
    "variant": "nccl-all-reduce",
    "options": {"thresholds": {"busBandwidthGBps": "value >= 300"}},
}
LEVEL_1 = {"domain": "diagnostics", "variant": "dcgm-level1"}
SHORT = {"silenceTimeout": "4s", "startTimeout": "6s"}


@pytest.fixture(scope="module")
def fleet(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(profile=PROFILE, say=show) as running:
        running.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        wait_until(lambda: running.api.find(account), 20, account)
        yield running


@pytest.fixture
def cluster(fleet: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """The fleet in good health; what a test leaves behind in it is a fault of what it tested."""
    fleet.check()
    gpuwork.seed(fleet, seconds=0.1)
    before = untouched(fleet)
    yield fleet
    left = leftovers(fleet)
    for path in (JOBS, SERVICES, SECRETS):
        for item in fleet.api.list(path):
            fleet.api.delete(f"{path}/{item['metadata']['name']}", propagationPolicy="Background")
    wait_until(lambda: not fleet.api.list(PODS), 60, "pods of the tests have gone")
    assert left == [] and untouched(fleet) == before


def name(number: int) -> str:
    return f"gpu-{number:04d}"


def document(nodes: list[str], *categories: dict, called: str = "accept", **spec: Any) -> dict:
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Certification",
        "metadata": {"name": called},
        "spec": {"target": {"nodeNames": nodes}, "categories": list(categories) or [ALL_REDUCE], **spec},
    }


def arguments(target: EmbeddedCluster | ApiProxy, certification: dict, folder: Path, **options: Any) -> dict:
    return {
        "kubeconfig": str(target.kubeconfig),
        "catalog": [str(modules.CATALOG)],
        "certification": certification,
        "evidence_dir": str(folder),
        "interval": 0.2,
        "mode": "enforce",
        "fail_on": [],
        **options,
    }


def certify(target: EmbeddedCluster | ApiProxy, certification: dict, folder: Path, **options: Any) -> dict:
    result = modules.run("certification", arguments(target, certification, folder, **options))
    assert not result["failed"], result
    return result


def untouched(cluster: EmbeddedCluster) -> dict:
    """All of the nodes that a certification has no business with."""
    return {
        node["metadata"]["name"]: (
            node["metadata"].get("annotations") or {},
            node["metadata"]["labels"],
            node["spec"].get("taints") or [],
            bool(node["spec"].get("unschedulable")),
        )
        for node in cluster.api.list("/api/v1/nodes")
    }


def leftovers(cluster: EmbeddedCluster) -> list[str]:
    return [
        f"{path.rpartition('/')[2]}/{item['metadata']['name']}"
        for path in (JOBS, SERVICES, SECRETS, PODS)
        for item in cluster.api.list(path)
    ]


def verdicts(result: dict) -> dict[str, str]:
    return {node["node"]: node["verdict"] for node in result["report"]["nodes"]}


def reasons(result: dict, node: str) -> str:
    return "\n".join(next(each["reasons"] for each in result["report"]["nodes"] if each["node"] == node))


# ---------------------------------------------------------------- seeded fleets


@dataclass
class Seeded:
    """A fleet with faults: `certain` ones must be found, `flaky` ones may or may not show."""

    number: int
    nodes: list[str]
    certain: dict[str, str] = field(default_factory=dict)
    flaky: dict[str, dict] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def suspects(self) -> set[str]:
        return {*self.certain, *self.flaky, *itertools.chain(*self.pairs)}


LOUD = ("slow-nic", "slow-gpu", "wrong-values", "crash", "no-sshd", "tcp-fallback", "missing-gpu")
SLOW = ("hang", "image-pull")  # cost a limit each time


def seeded_fleets() -> list[Seeded]:
    fleets, first = [], 0
    for number, size in enumerate(SIZES):
        dice = random.Random(number)
        nodes = [name(first + index) for index in range(size)]
        first += size
        most = min(5, (size - 2) // 3)  # somebody must be left to compare with
        large = size > 2 * RACK  # every test of a large fleet takes a while
        bad = {0: 1, 1: 5, 2: 3}.get(number, dice.randint(0, most))
        chosen = dice.sample(nodes, min(size, bad + 5))
        kinds = [dice.choice(LOUD) for _each in range(bad)]
        if bad and not large and number % 4 == 1:
            kinds[0] = SLOW[number // 4 % 2]
        fleet = Seeded(number, nodes, dict(zip(chosen, kinds, strict=False)))
        rest = chosen[bad:]
        if size >= 8 and not large:
            for _each in range(dice.randint(0, 2)):
                fleet.pairs.append((rest.pop(), rest.pop()))
            if number % 3 == 0 and rest:
                fleet.flaky[rest.pop()] = {"fault": "slow-nic", "chance": 0.6}
        fleets.append(fleet)
    return fleets


def found(result: dict) -> tuple[set[str], set[frozenset[str]]]:
    """Nodes and pairs that the searches name, and the nodes whose own rows tell."""
    nodes, pairs = set(), set()
    for search in result["report"]["isolation"].values():
        nodes |= {item["node"] for item in search["bad"]}
        nodes |= {item["node"] for item in search["flaky"] if "node" in item}
        pairs |= {frozenset((item["a"], item["b"])) for item in search["badPairs"]}
    nodes |= {
        row["node"]
        for row in result["report"]["rows"]
        if row["outcome"] in ("fail", "hang", "error") and row["attribution"] not in ("group", None)
    }
    return nodes, pairs


def test_every_seeded_fault_is_found_and_no_good_node_is_blamed(cluster, tmp_path, show):
    fleets = seeded_fleets()
    faults: dict[str, Any] = {}
    for fleet in fleets:
        faults |= {**fleet.certain, **fleet.flaky}
    gpuwork.seed(cluster, faults, pairs=[pair for fleet in fleets for pair in fleet.pairs], seconds=0.1)

    def one(fleet: Seeded) -> str:
        begin = time.monotonic()
        groups = {"nodesPerJob": RACK} if len(fleet.nodes) > 2 * RACK else {}
        category = {**ALL_REDUCE, "options": {**ALL_REDUCE["options"], **SHORT, **groups}}
        result = certify(cluster, document(fleet.nodes, category, called=f"fleet-{fleet.number}"), tmp_path)
        nodes, pairs = found(result)
        seen = verdicts(result)
        missed = [f"{node}: {kind}" for node, kind in fleet.certain.items() if node not in nodes]
        passed = [node for node in fleet.certain if seen[node] == "pass"]
        # what comes and goes may leave a whole group under suspicion, which is then said so
        told = {node["node"]: node["attribution"] for node in result["report"]["nodes"]}
        blamed = [
            f"{node}: {word}"
            for node, word in seen.items()
            if word == "fail" and node not in fleet.suspects and not (fleet.flaky and told[node] == "group")
        ]
        blamed += sorted(nodes - fleet.suspects)
        links = [
            sorted(pair)
            for pair in map(frozenset, fleet.pairs)
            if pair not in pairs and not pair & nodes and not pair & set(fleet.certain)
        ]
        # two nodes of which one is flaky may fail at every repeat, as a bad link does
        true = {*map(frozenset, fleet.pairs)}
        wrong = [sorted(pair) for pair in pairs - true if not pair & {*fleet.flaky}]
        tests = len(list((Path(result["evidence"]["path"]) / "runs").iterdir()))
        show(
            f"fleet {fleet.number}: {len(fleet.nodes)} nodes, {len(fleet.certain)} bad, {len(fleet.pairs)} pairs, "
            f"{len(fleet.flaky)} flaky: {tests} tests, {time.monotonic() - begin:.1f} s"
        )
        faulty = {"missed": missed, "passed": passed, "blamed": blamed, "links": links, "wrong pairs": wrong}
        faulty = {key: value for key, value in faulty.items() if value}
        # what never ran is no proof against a node
        silent = ("image-pull", "no-sshd", "missing-gpu")
        proven = fleet.pairs or [kind for kind in fleet.certain.values() if kind not in silent]
        expected = "fail" if proven else "incomplete" if fleet.certain else "pass"
        if not fleet.flaky and result["status"] != expected:
            faulty["status"] = result["status"]
        if evidence.verify(result["evidence"]["path"]):
            faulty["evidence"] = "does not verify"
        return f"{fleet}: {faulty}" if faulty else ""

    with ThreadPoolExecutor(3) as pool:  # some only wait for a limit
        problems = [text for text in pool.map(one, fleets) if text]
    assert not problems, "\n".join(problems)


# ---------------------------------------------------------------- killed


def creations(proxy: ApiProxy) -> Counter:
    """Job -> how often it was made."""
    made = [request for request in proxy.requests if request.method == "POST" and request.path.startswith(JOBS)]
    return Counter(json.loads(request.body)["metadata"]["name"] for request in made if request.status == 201)


def kill_at(proxy: ApiProxy, pid: int, number: int, before: bool) -> list[Request]:
    met: list[Request] = []

    def kill(request: Request) -> None:
        if proxy.writes == number and not met:
            met.append(request)
            os.kill(pid, signal.SIGKILL)

    proxy.rule("write", "", **{"before" if before else "after": kill})
    return met


def test_killed_at_any_write_it_goes_on_and_runs_nothing_twice(cluster, tmp_path):
    """A group of two: service, secret and job are made, and removed."""

    def killed(number: int, before: bool) -> bool:
        """Whether there was such a write."""
        nodes = [name(4 * number + 2 * before), name(4 * number + 2 * before + 1)]
        with ApiProxy(cluster.kubeconfig) as proxy:
            options = arguments(proxy, document(nodes, called=f"killed-{number}-{before:d}"), tmp_path)
            process = modules.start("certification", options)
            met = kill_at(proxy, process.pid, number, before)
            first = modules.finish(process)
            again = modules.run("certification", options)
            assert (first == {}) is bool(met), (number, before)
            assert set(creations(proxy).values()) == {1}, (number, before, creations(proxy))
        assert not again["failed"] and again["status"] == "pass" and again["done"], again
        assert verdicts(again) == dict.fromkeys(nodes, "pass") and not evidence.verify(again["evidence"]["path"])
        return bool(met)

    with ThreadPoolExecutor(2) as pool:
        moments = [(number, before) for number in range(1, 8) for before in (True, False)]
        met = list(pool.map(lambda moment: killed(*moment), moments))
    assert met == [True] * 12 + [False] * 2


def test_killed_again_and_again_it_comes_to_the_same_end(cluster, tmp_path):
    gpuwork.seed(cluster, {name(1): "slow-nic", name(101): "slow-nic"}, seconds=0.1)
    want = certify(cluster, document([name(index) for index in range(100, 105)]), tmp_path)
    dice, kills = random.Random(5), 0
    nodes = [name(index) for index in range(5)]
    with ApiProxy(cluster.kubeconfig) as proxy:
        options = arguments(proxy, document(nodes, ALL_REDUCE, called="patient"), tmp_path)
        while True:
            process = modules.start("certification", options)
            timer = threading.Timer(dice.uniform(1.2, 3.0), os.kill, (process.pid, signal.SIGKILL))
            timer.start()
            result = modules.finish(process)
            timer.cancel()
            if result:
                break
            kills += 1
        assert set(creations(proxy).values()) == {1}
        assert len(creations(proxy)) == len(list((Path(result["evidence"]["path"]) / "runs").iterdir()))
    assert kills >= 2 and not evidence.verify(result["evidence"]["path"])
    assert found(result)[0] == {name(1)} and found(want)[0] == {name(101)}
    assert list(verdicts(result).values()) == list(verdicts(want).values()) == ["pass", "fail", "pass", "pass", "pass"]
    assert certify(cluster, options["certification"], tmp_path)["changed"] is False


# ---------------------------------------------------------------- results


def test_categories_that_differ_in_bounds_are_results_of_the_same_runs(cluster, tmp_path):
    gpuwork.seed(cluster, {name(2): "slow-nic"}, seconds=0.1)
    bounds = {"strict": 300, "mild": 200, "none": 100}
    categories = [
        {**ALL_REDUCE, "name": key, "options": {"thresholds": {"busBandwidthGBps": f"value >= {least}"}}}
        for key, least in bounds.items()
    ]
    nodes = [name(index) for index in range(5)]
    with ApiProxy(cluster.kubeconfig) as proxy:
        result = certify(proxy, document(nodes, *categories), tmp_path)
        assert set(creations(proxy).values()) == {1}
    outcomes = {(row["category"], row["node"]): row["outcome"] for row in result["report"]["rows"]}
    for node in nodes:
        assert outcomes["none", node] == "pass"
        assert outcomes["strict", node] == outcomes["mild", node] == ("fail" if node == name(2) else "pass")
    for key in ("strict", "mild"):
        assert [item["node"] for item in result["report"]["isolation"][key]["bad"]] == [name(2)]
    assert "none" not in result["report"]["isolation"]
    shared = [set(row["runs"]) for row in result["report"]["rows"] if row["node"] == name(2)]
    assert shared[0] & shared[1] & shared[2]


def test_an_object_that_is_deleted_changes_no_node_and_no_evidence(cluster, tmp_path):
    crd = yaml.safe_load((modules.ROOT / "gitops/crds/certifications.yaml").read_text())
    cluster.api.apply(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}", crd)
    path = f"/apis/goodput.fleet/v1alpha1/namespaces/{NAMESPACE}/certifications"

    def create() -> dict | None:
        try:
            return cluster.api.create(path, document([name(0), name(1)], LEVEL_1))
        except ApiError:  # it takes a moment until the kind is served
            return None

    made = wait_until(create, 30, path)
    result = certify(cluster, made, tmp_path)
    status = cluster.api.get(f"{path}/accept")["status"]
    assert status["phase"] == "Succeeded" and status["evidence"]["digest"] == result["evidence"]["digest"]
    before = untouched(cluster)
    cluster.api.delete(f"{path}/accept")
    wait_until(lambda: not cluster.api.find(f"{path}/accept"), 20, "the object is gone")
    assert untouched(cluster) == before and not evidence.verify(result["evidence"]["path"])


# ---------------------------------------------------------------- an API server that has a bad day


def test_what_the_api_server_refuses_is_no_pass_and_harms_no_other(cluster, tmp_path):
    nodes = [name(index) for index in range(6)]
    wanted = document(nodes, LEVEL_1)
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/jobs", status=403, times=1)
        result = certify(proxy, wanted, tmp_path)
    words = Counter(verdicts(result).values())
    assert words == {"pass": 5, "not_run": 1} and result["status"] == "incomplete"
    node = next(node for node, word in verdicts(result).items() if word == "not_run")
    assert "could not be started" in reasons(result, node) and "jobs.batch" in reasons(result, node)
    with ApiProxy(cluster.kubeconfig) as proxy:
        healed = certify(proxy, wanted, tmp_path)
        assert len(creations(proxy)) == 1  # only what had no result
    assert healed["status"] == "pass" and not evidence.verify(healed["evidence"]["path"])


@pytest.mark.parametrize(
    "what",
    [
        {"status": 429, "headers": {"Retry-After": "1"}, "times": 2},
        {"status": 500, "times": 2},
        {"status": 409, "times": 2},
        {"lose_answer": True, "times": 2},
    ],
    ids=["429", "500", "409", "lost"],
)
def test_a_bad_day_that_ends_costs_nothing(cluster, tmp_path, what):
    with ApiProxy(cluster.kubeconfig) as proxy:
        for kind in ("/services", "/secrets", "/jobs"):
            proxy.rule("POST", kind, **what)
        if what.get("status") != 409:
            proxy.rule("GET", "/jobs", **what)
            proxy.rule("GET", "/log", **what)
            proxy.rule("DELETE", "/jobs", **what)
        result = certify(proxy, document([name(0), name(1)]), tmp_path)
        assert set(creations(proxy).values()) == {1}
    assert result["status"] == "pass", result["report"]["nodes"]


def test_a_log_that_cannot_be_read_is_an_error_of_its_test_only(cluster, tmp_path):
    with ApiProxy(cluster.kubeconfig) as proxy:

        def lose_its_log(request: Request) -> None:
            run = json.loads(request.body)["metadata"]["name"]
            proxy.rule("GET", f"/{run}-[^/]*/log", status=500)

        proxy.rule("POST", "/jobs", times=1, after=lose_its_log)
        result = certify(proxy, document([name(index) for index in range(4)], LEVEL_1), tmp_path)
    words = verdicts(result)
    assert Counter(words.values()) == {"pass": 3, "error": 1} and result["status"] == "incomplete"
    node = next(node for node, word in words.items() if word == "error")
    assert "cannot be read" in reasons(result, node)


def test_a_cluster_without_its_namespace_is_one_clear_error(cluster, tmp_path):
    options = arguments(cluster, document([name(0)], LEVEL_1), tmp_path, namespace="not-there", fail_on=["incomplete"])
    result = modules.run("certification", options)
    assert result["failed"] and "there is no namespace not-there" in result["msg"]
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- nodes that somebody holds


def cordon(cluster: EmbeddedCluster, node: str, wanted: bool) -> None:
    """And wait for the taint that the control plane adds, or takes off."""
    cluster.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": wanted or None}})
    wait_until(lambda: bool(cluster.fleet.get(node)["spec"].get("taints")) is wanted, 30, f"taint of {node}")


def test_gates_and_cordons_are_passed_only_when_named(cluster, tmp_path):
    client = connect({"kubeconfig": str(cluster.kubeconfig)})
    gate = {"node": name(0), "owner": "burn-in", "reason": "new"}
    assert hold_many(client, [gate])[0]["status"] == "held"
    cordon(cluster, name(1), True)
    before = untouched(cluster)
    nodes = [name(0), name(1), name(2)]
    try:
        shut = certify(cluster, document(nodes, LEVEL_1), tmp_path)
        assert verdicts(shut) == {name(0): "blocked", name(1): "blocked", name(2): "pass"}
        assert "burn-in" in reasons(shut, name(0)) and "cordoned" in reasons(shut, name(1))
        other = certify(cluster, document(nodes[:1], LEVEL_1, called="other", tolerateGates=["repair"]), tmp_path)
        assert verdicts(other) == {name(0): "blocked"}
        wanted = document(nodes, LEVEL_1, called="named", tolerateGates=["burn-in"])
        opened = certify(cluster, wanted, tmp_path, include_cordoned=True)
        assert verdicts(opened) == dict.fromkeys(nodes, "pass")
        assert untouched(cluster) == before
    finally:
        release_many(client, [{**gate, "force": True}])
        cordon(cluster, name(1), False)


def test_a_node_that_goes_away_in_the_middle_is_no_pass(cluster, tmp_path):
    gone = name(3)
    with ApiProxy(cluster.kubeconfig) as proxy:

        def away(request: Request) -> None:
            cluster.fleet.set_not_ready(gone)

        proxy.rule("POST", "/jobs", times=1, before=away)
        category = {**LEVEL_1, "options": SHORT}
        try:
            result = certify(proxy, document([name(index) for index in range(2, 6)], category), tmp_path)
        finally:
            cluster.fleet.set_ready(gone)
            wait_until(lambda: not cluster.fleet.get(gone)["spec"].get("taints"), 60, f"{gone} takes pods again")
    words = verdicts(result)
    assert words.pop(gone) in ("not_run", "error") and set(words.values()) == {"pass"}
    assert reasons(result, gone)


# ---------------------------------------------------------------- as a user runs it


def playbook(folder: Path, variables: dict, *options: str, fails: bool = False) -> str:
    (folder / "site.yml").write_text(yaml.safe_dump(variables))
    command = ["-m", "ansible", "playbook", "goodput.fleet.certify", "-e", "@site.yml", *options]
    bare = {key: value for key, value in os.environ.items() if not key.startswith(modules.FOREIGN)}
    env = {**bare, "ANSIBLE_COLLECTIONS_PATH": str(modules.ROOT / ".build/collections"), "ANSIBLE_NOCOLOR": "1"}
    env |= {"ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False"}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True)
    assert (done.returncode != 0) is fails and "WARNING" not in done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr * fails


def test_the_playbook_plans_runs_and_reports(cluster, tmp_path):
    gpuwork.seed(cluster, {name(1): "slow-nic"}, seconds=0.1)
    folder = tmp_path / "certifications"
    folder.mkdir()
    (folder / "accept.yaml").write_text(yaml.safe_dump(document([name(index) for index in range(4)])))
    site = {
        "certify_certification": "certifications/accept.yaml",
        "certify_evidence_dir": "evidence",
        "certify_report_dir": "reports",
        "certify_interval": 0.2,
        "certify_kubeconfig": str(cluster.kubeconfig),
    }
    out = playbook(tmp_path, site)
    assert "1 job" in out and "changed=0" in out and not (tmp_path / "evidence").exists()
    enforce = ["-e", "goodput_mode=enforce"]
    out = playbook(tmp_path, site, *enforce, "--check")
    assert "1 job" in out and "changed=0" in out and not (tmp_path / "evidence").exists()
    out = playbook(tmp_path, {**site, "certify_fail_on": []}, *enforce)
    assert "tests done" in out and "created communication/nccl-all-reduce" in out
    assert f"1 fail ({name(1)})" in out and "changed=0" not in out
    written = {path.suffix for path in (tmp_path / "reports").iterdir()}
    assert {".html", ".md", ".json", ".xml"} <= written
    assert name(1) in next((tmp_path / "reports").glob("*.md")).read_text()
    assert not evidence.verify(str(next((tmp_path / "evidence").iterdir())))
    assert "changed=0" in playbook(tmp_path, {**site, "certify_fail_on": []}, *enforce)
    out = playbook(tmp_path, site, *enforce, fails=True)
    assert name(1) in out


def test_a_workload_of_the_site_with_a_bound(cluster, tmp_path):
    def workload(least: int, called: str) -> dict:
        return {
            "apiVersion": "goodput.fleet/v1alpha1",
            "kind": "WorkloadRun",
            "metadata": {"name": called},
            "spec": {
                "target": {"nodeNames": [name(0), name(1)]},
                "image": "registry.example.com/site/bench:3",
                "exec": {"command": ["/opt/bench", "tokens/s:", "4200.5"]},
                "parser": {"tool": "regex", "pattern": "tokens/s: ([0-9.]+)", "metric": "tokensPerSecond"},
                "thresholds": {"tokensPerSecond": f"value >= {least}"},
            },
        }

    good = certify(cluster, workload(4000, "bench"), tmp_path)
    assert set(verdicts(good).values()) == {"pass"}
    assert good["report"]["rows"][0]["metrics"]["tokensPerSecond"]["value"] == 4200.5
    slow = certify(cluster, workload(5000, "bench-high"), tmp_path)
    assert "fail" in verdicts(slow).values() and "4200.5" in str(slow["report"]["rows"])
