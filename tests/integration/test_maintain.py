"""Degradation on a real cluster: who is suggested, who is left alone, and what the role does about it."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.certification.evidence import Evidence

from tests.integration import modules
from tests.integration.fixtures_crds import install
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
PROFILE = {
    "nodes": 12,
    "groups": [
        {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-24.04"}
        | {"driver": "580.105.08", "perRack": 4}
    ],
}
LAME, SLOW = "gpu-0001", "gpu-0006"  # half its PCIe lanes are gone; its bandwidth went down
GATE = "gate.goodput.fleet/maintenance"
REQUESTS = "/apis/goodput.fleet/v1alpha1/namespaces/goodput-fleet/validationrequests"
TESTS = [{"domain": "diagnostics", "variant": "dcgm-level2"}]
WINDOW = 6 * 3600
RBAC = yaml.safe_load((ROOT / "gitops/rbac/maintain.yaml").read_text())


@pytest.fixture(scope="module")
def fleet(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(profile=PROFILE, say=show) as running:
        running.api.create("/api/v1/namespaces", {"metadata": {"name": "goodput-fleet"}})
        install(running.api)
        yield running


@pytest.fixture
def cluster(fleet: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """The fleet, with what a test left on it taken off again."""
    yield fleet
    for request in fleet.api.list(REQUESTS):
        fleet.api.delete(f"{REQUESTS}/{request['metadata']['name']}")
    for pod in fleet.api.list("/api/v1/namespaces/default/pods"):
        fleet.api.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}", gracePeriodSeconds=0)
    for node in fleet.api.list("/api/v1/nodes"):
        if GATE in node["metadata"].get("annotations", {}) or node["spec"].get("unschedulable"):
            change = {"metadata": {"annotations": {GATE: None}}, "spec": {"taints": None, "unschedulable": None}}
            fleet.api.patch(f"/api/v1/nodes/{node['metadata']['name']}", change, MERGE_PATCH)


@pytest.fixture
def history(cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    """Two weeks, every three hours; two nodes have been getting worse for the last two days."""
    folder, dice = tmp_path / "history", random.Random(7)
    folder.mkdir()
    end = time.time() // WINDOW * WINDOW
    with (folder / "made.jsonl").open("w") as file:
        for node in cluster.api.list("/api/v1/nodes"):
            name, uid = node["metadata"]["name"], node["metadata"]["uid"]
            for index in range(14 * 8):
                at = end - 14 * 86400 + index * 3 * 3600 + 60
                late = at > end - 2 * 86400
                about = {"node": name, "uid": uid, "bootId": node["status"]["nodeInfo"]["bootID"], "at": utc(at)}
                lanes = 8 if name == LAME and late else 16
                bandwidth = 480 + dice.gauss(0, 3) - (90 if name == SLOW and late else 0)
                file.write(json.dumps({**about, "entity": "GPU-0", "values": {"pcie_width": lanes}}) + "\n")
                file.write(json.dumps({**about, "values": {"bandwidth": bandwidth}}) + "\n")
    return folder


def utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def look(cluster: EmbeddedCluster, history: Path, **options: Any) -> dict:
    given = {"kubeconfig": str(cluster.kubeconfig), "history": [str(history)], "max_out": {"percent": 50.0}}
    return modules.run("node_degradation_info", {**given, **options})


def by_node(result: dict) -> dict[str, dict]:
    return {one["node"]: one for one in result["suggestions"]}


def gates(cluster: EmbeddedCluster) -> dict[str, dict]:
    nodes = cluster.api.list("/api/v1/nodes")
    notes = {node["metadata"]["name"]: node["metadata"].get("annotations", {}) for node in nodes}
    return {name: json.loads(found[GATE]) for name, found in notes.items() if GATE in found}


def test_who_gets_worse_is_suggested_with_what_and_why(cluster, history):
    result = look(cluster, history)
    assert not result["failed"] and not result["changed"] and result["counts"]["nodes"] == 12
    found = by_node(result)
    assert set(found) == {LAME, SLOW} and not result["shifts"] and not result["unknown"]
    assert (found[LAME]["suggestion"], found[SLOW]["suggestion"]) == ("maintenance", "certify")
    assert all(one["act"] for one in found.values())
    assert "PCIe lanes 8 lanes, usual for it 16" in found[LAME]["reason"]
    [gate] = result["gates"]
    node = cluster.fleet.get(LAME)
    assert gate["name"] == LAME and gate["boot_id"] == node["status"]["nodeInfo"]["bootID"]
    assert look(cluster, history)["suggestions"] == result["suggestions"]


def test_a_node_whose_gpus_are_in_use_or_that_people_hold_is_left_alone(cluster, history):
    container = {"name": "train", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    pod = {"metadata": {"name": "llm-0"}, "spec": {"nodeName": LAME, "containers": [container]}}
    cluster.api.create("/api/v1/namespaces/default/pods", pod)
    cluster.api.patch(f"/api/v1/nodes/{SLOW}", {"spec": {"unschedulable": True}}, MERGE_PATCH)
    result = look(cluster, history)
    found = by_node(result)
    assert found[LAME]["why"] == "its GPUs are in use by default/llm-0" and result["gates"] == []
    assert "already held by cordon" in found[SLOW]["why"]
    assert by_node(look(cluster, history, busy=True))[LAME]["act"]


def test_bounds_count_whoever_is_out(cluster, history):
    cluster.api.patch("/api/v1/nodes/gpu-0011", {"spec": {"unschedulable": True}}, MERGE_PATCH)
    found = by_node(look(cluster, history, max_out={"nodes": 2, "percent": 100.0}))
    assert sum(one["act"] for one in found.values()) == 1
    assert "2 of 12 nodes are out of service, and 2 may be" in {one["why"] for one in found.values()}


def test_a_new_machine_under_an_old_name_has_no_history(cluster, history):
    for line in (lines := [json.loads(text) for text in (history / "made.jsonl").read_text().splitlines()]):
        if line["node"] == LAME:
            line["uid"] = "another-machine"
    (history / "made.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = look(cluster, history)
    assert set(by_node(result)) == {SLOW}
    assert [one["node"] for one in result["unknown"]] == [LAME] and result["counts"]["otherMachine"] == 224


def test_bad_input_is_one_message_and_bad_lines_are_told(cluster, history):
    given = {"window": ["at night"], "max_out": {"percent": 500.0}, "metrics": {"bandwith": {"effect": 1}}}
    for option, words in (
        ("window", "no window of time"),
        ("max_out", "from 0 to 100"),
        ("metrics", "did you mean 'bandwidth'"),
    ):
        refused = look(cluster, history, **{option: given[option]})
        assert refused["failed"] and words in refused["msg"], refused
    missing = look(cluster, history / "nowhere")
    assert missing["failed"] and "no such file or directory" in missing["msg"]
    (history / "torn.jsonl").write_text('{"node": "gpu-0001", "at"')
    torn = look(cluster, history)
    assert not torn["failed"] and torn["unreadable"][0]["line"] == 1 and "torn.jsonl" in str(torn["warnings"])


def certified(cluster: EmbeddedCluster, folder: Path) -> None:
    """Seven weekly certifications; on SLOW, the bandwidth was lower in the last two."""
    test = {"digest": "sha256:abc", "metrics": {"host_to_device": {"direction": "higher"}}}
    category = {"name": "memory", "test": "bandwidth/nvbandwidth", "resolved": {"h100": test}}
    inventory = {
        node["metadata"]["name"]: {"machineId": node["status"]["nodeInfo"]["machineID"]}
        for node in cluster.api.list("/api/v1/nodes")
    }
    for week in range(7):
        about = {"metadata": {"name": f"week-{week}"}, "spec": {"target": {}}}
        with Evidence.open(str(folder), about, [category], inventory) as evidence:
            rows = []
            for number, node in enumerate(inventory):
                run = {"id": f"{number:012x}", "nodes": [node], "accelerator": "h100"}
                evidence.record(run, {}, {}, {}, {})
                value = 41.0 if node == SLOW and week < 2 else 55.0 + number / 100
                metrics = {"host_to_device": {"value": value, "unit": "GB/s"}}
                rows.append({"node": node, "category": "memory", "runs": [run["id"]], "metrics": metrics})
            evidence.write("results.json", {"finished": utc(time.time() - week * 7 * 86400), "rows": rows})
            evidence.write("inventory.json", inventory)
            evidence.seal()


def test_certifications_are_a_history_as_far_as_they_verify(cluster, tmp_path):
    base = tmp_path / "evidence"
    certified(cluster, base)
    given = {"kubeconfig": str(cluster.kubeconfig), "evidence_dirs": [str(base)]}
    result = modules.run("node_degradation_info", given)
    [one] = result["findings"]
    assert (one["node"], one["metric"], one["value"]) == (SLOW, "certification:memory/host_to_device", 41)
    assert one["suggestion"] == "certify" and result["counts"]["samples"] == 7 * 12
    [sealed] = base.glob("week-0-*")
    (sealed / "results.json").write_text("{}")
    result = modules.run("node_degradation_info", given)
    assert result["counts"]["samples"] == 6 * 12 and not result["findings"]
    assert "evidence that is left out" in str(result["warnings"])


class Site:
    def __init__(self, folder: Path, kubeconfig: Path):
        self.folder, self.kubeconfig = folder, kubeconfig

    def play(self, *arguments: str, **variables: Any) -> dict:
        """What playbooks/maintain.yml hands on, and its exit status."""
        (self.folder / "report").mkdir(exist_ok=True)
        given = {
            "maintain_kubeconfig": str(self.kubeconfig),
            "maintain_history_dir": str(self.folder / "history"),
            "maintain_report_dir": str(self.folder / "report"),
            "maintain_tests": TESTS,
            "maintain_max_out": {"percent": 50},
            "ansible_python_interpreter": sys.executable,
            **variables,
        }
        (self.folder / "vars.json").write_text(json.dumps(given))
        foreign = ("ANSIBLE_", "GOODPUT_", "K8S_AUTH_", "KUBECONFIG")
        done = subprocess.run(
            [str(ROOT / ".venv/bin/ansible-playbook"), "-i", "localhost,", str(ROOT / "playbooks/maintain.yml")]
            + ["-c", "local", "-e", "@vars.json", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
                "HOME": str(self.folder),
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
            },
        )
        self.printed = done.stdout + done.stderr
        assert done.returncode == 0, self.printed
        report = self.folder / "report/maintain.json"
        return json.loads(report.read_text()) if report.exists() else {}


@pytest.fixture
def site(cluster: EmbeddedCluster, history: Path) -> Site:
    """As the account of gitops/rbac/maintain.yaml."""
    rules = {item["kind"]: item["rules"] for item in RBAC["items"] if "rules" in item}
    account = cluster.access.service_account(
        "maintain", "goodput-fleet", rules=rules["Role"], cluster_rules=rules["ClusterRole"]
    )
    return Site(history.parent, account)


def tool(folder: Path) -> dict[str, Any]:
    """Variables by which this machine is gpu-0002, with an nvidia-smi that knows one GPU and no NVLink errors."""
    path = folder / "nvidia-smi"
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if sys.argv[1:] == ['-q', '-x']:\n"
        '    print(\'<?xml version="1.0" ?><nvidia_smi_log><gpu id="1"><uuid>GPU-1</uuid><pci><replay_counter>5\'\n'
        "          '</replay_counter></pci></gpu></nvidia_smi_log>')\n"
        "elif sys.argv[1:] == ['nvlink', '-s']:\n"
        "    print('GPU 0: NVIDIA H100 (UUID: GPU-1)\\n\\t Link 0: 26.562 GB/s\\n\\t Link 1: <inactive>')\n"
        "else:\n    sys.exit('not supported')\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"maintain_hosts": "localhost", "maintain_nvidia_smi": [str(path)], "maintain_node_name": "gpu-0002"}


def test_the_role_measures_and_observes_then_acts_and_then_has_nothing_to_do(cluster, site, tmp_path):
    before = set((tmp_path / "history").iterdir())
    assert site.play(**tool(tmp_path))["counts"]["act"] == 2
    assert not gates(cluster) and not cluster.api.list(REQUESTS)
    [made] = set((tmp_path / "history").iterdir()) - before
    found = {line["entity"]: line for line in map(json.loads, made.read_text().splitlines())}
    assert found["GPU-1"]["values"] == {"pcie_replays": 5, "nvlinks_up": 1}
    assert found["GPU-1"]["node"] == "gpu-0002"
    assert found["GPU-1"]["bootId"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()

    site.play(goodput_mode="enforce")
    held = gates(cluster)
    assert set(held) == {LAME} and held[LAME]["evidence"].startswith("degradation-")
    [request] = cluster.api.list(REQUESTS)
    assert [node["name"] for node in request["spec"]["nodes"]] == [SLOW] and request["spec"]["reason"] == "manual"
    assert request["spec"]["cause"].startswith("degradation-") and "bandwidth" in request["spec"]["cause"]

    again = site.play(goodput_mode="enforce")
    assert "already held by the gate maintenance" in by_node(again)[LAME]["why"]
    assert gates(cluster) == held and [each["metadata"] for each in cluster.api.list(REQUESTS)] == [request["metadata"]]


def test_outside_its_window_nothing_is_to_be_done(cluster, history):
    later = datetime.now(UTC) + timedelta(hours=2)
    shut = look(cluster, history, window=[f"{later:%H:%M}-{later + timedelta(hours=1):%H:%M} UTC"])
    assert shut["counts"]["suggestions"] == 2 and shut["counts"]["act"] == 0 and shut["gates"] == []


def test_a_misspelt_variable_is_refused(site):
    with pytest.raises(AssertionError, match="maintain_max_outt: no variable of this role"):
        site.play(maintain_max_outt={})
