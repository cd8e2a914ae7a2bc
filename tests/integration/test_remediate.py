"""From a fault to a node that takes work again, or to a ticket: the playbooks, on a real API server.

Simulated is what lies below the interface of a node: nvidia-smi and systemctl are scripts, and a `systemctl reboot`
makes the node of the cluster go and come back in another boot. GPU tests print what the real tools would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

from tests.integration import fixtures_crds, modules
from tests.simfleet import EmbeddedCluster, gpuwork
from tests.simfleet.api import wait_until
from tests.standin.nodetools import NodeTools
from tests.standin.tickets import Answer, TicketDesk
from tests.unit.signals import smi

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
H100 = {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-22.04", "driver": "580.105.08"}
PROFILE = {"nodes": 6, "groups": [{**H100, "perRack": 2}]}
SYSTEM = "/apis/goodput.fleet/v1alpha1/namespaces/goodput-fleet"
WELL, SICK, GONE, CUT = "gpu-0000", "gpu-0002", "gpu-0004", "gpu-0005"
QUARANTINE, VALIDATION = "gate.goodput.fleet/quarantine", "gate.goodput.fleet/validation"
SECRET = "a-secret-of-the-site"
DEAF = "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n"  # a process that no signal ends
TABLES = tables.load_catalog([str(modules.CATALOG)])
ASKS = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"


class Site:
    """A cluster, the machines below its nodes, a service desk, and a folder from which playbooks are run."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path, desk: TicketDesk):
        self.cluster, self.api, self.folder, self.desk = cluster, cluster.api, folder, desk
        self.machines: dict[str, NodeTools] = {}
        self.over = threading.Event()
        self.access = {"kubeconfig": str(cluster.kubeconfig), "catalog": [str(modules.CATALOG)]}
        for number, name in enumerate((WELL, SICK, GONE, CUT)):
            gpu = smi.gpu(0, changes={"serial": f"16500000000{number}", "gpu_recovery_action": "Reset"})
            self.machines[name] = NodeTools(
                folder / name,
                shows=smi.log(gpu),
                reset_code=1,
                reset_says="Unable to reset this GPU because it is being used by some other process",
                boot_id=self.boot(name),
                on_reboot=f"touch {folder / name / 'rebooting'}",
            )
        hosts = {
            name: {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **tools.variables()}
            for name, tools in self.machines.items()
        }
        (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        self.variables = {
            "goodput_mode": "enforce",
            "remediate_tests": [{"domain": "diagnostics", "variant": "dcgm-level2"}],
            "remediate_executors": {"reset": "reset_ssh", "reboot": "reboot_ssh"},
            "remediate_ticket_url": desk.url,
            "remediate_ticket_secret": SECRET,
            "remediate_drain_policies": [{"namespaces": ["work"], "action": "evict", "unmanaged": True}],
            "remediate_drain_interval": 0.2,
            "remediate_min_between": 0,
            "remediate_wait": 60,
            "remediate_poll": 1,
            "remediate_become": False,
            "remediate_reset_services": [],
            "remediate_kubeconfig": str(self.account("remediate")),
            "revalidate_kubeconfig": str(cluster.kubeconfig),
            "revalidate_evidence_dir": str(folder / "evidence"),
            "revalidate_until_done": True,
            "revalidate_settle": 0,
            "revalidate_interval": 0.2,
            "revalidate_new_nodes": False,
            "revalidate_fail_on": [],
        }

    def account(self, name: str) -> Path:
        """A kubeconfig with the rights that gitops/rbac grants to this playbook, and no others."""
        access = self.cluster.access
        rules: dict[str, list] = {"Role": [], "ClusterRole": []}
        for item in yaml.safe_load((ROOT / f"gitops/rbac/{name}.yaml").read_text())["items"]:
            if item["kind"] in rules:
                rules[item["kind"]] += item["rules"]
        return access.service_account(name, "goodput-fleet", rules["Role"], rules["ClusterRole"])

    def hardware(self) -> None:
        """Reboots the nodes whose machines were told to."""
        while not self.over.wait(0.1):
            for name, tools in self.machines.items():
                told = tools.folder / "rebooting"
                if told.exists():
                    told.unlink()
                    tools.set_boot_id(self.cluster.fleet.reboot(name))

    def start(self, book: str, **variables: Any) -> subprocess.Popen:
        (self.folder / "vars.yml").write_text(yaml.safe_dump({**self.variables, **variables}))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "GOODPUT_", "K"))}
        return subprocess.Popen(
            [str(ROOT / ".venv/bin/ansible-playbook"), "-i", "hosts.yml", f"goodput.fleet.{book}", "-e", "@vars.yml"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**kept, "HOME": str(self.folder), "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections")},
        )

    def play(self, book: str, fails: bool = False, **variables: Any) -> str:
        with self.start(book, **variables) as process:
            printed, _none = process.communicate(timeout=300)
        assert SECRET not in printed
        assert bool(process.returncode) == fails, printed
        return printed

    def boot(self, name: str) -> str:
        return self.cluster.fleet.get(name)["status"]["nodeInfo"]["bootID"]

    def gates(self, name: str) -> list[str]:
        node = self.cluster.fleet.get(name)
        return sorted(key for key in node["metadata"].get("annotations") or {} if key.startswith("gate.goodput.fleet/"))

    def closed(self, name: str) -> bool:
        return any(taint["key"].startswith("gate.") for taint in self.cluster.fleet.get(name)["spec"].get("taints", []))

    def repair(self, name: str) -> dict:
        (found,) = [one for one in self.api.list(f"{SYSTEM}/repairrequests") if one["spec"]["node"]["name"] == name]
        return found

    def attempts(self, name: str) -> list[tuple]:
        found = self.repair(name)["status"]["attempts"]
        return [(one["rung"], one["executed"], one["verified"], one["validated"]) for one in found]

    def pod(self, called: str, node: str, script: str = "", **more: Any) -> None:
        notes = {"sim.goodput.fleet/script": script} if script else {}
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "c", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
            **more,
        }
        self.api.create(
            "/api/v1/namespaces/work/pods", {"metadata": {"name": called, "annotations": notes}, "spec": spec}
        )

    def node_of(self, pod: str) -> str | None:
        found = self.api.find(f"/api/v1/namespaces/work/pods/{pod}")
        return found and found["spec"].get("nodeName")

    def quarantine(self, *names: str) -> None:
        """The kernels of these nodes say that a GPU needs a reset."""
        now, events = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), []
        for name in names:
            context = kernel.Context(node=name, boot_id=self.boot(name), received=now)
            line = f"{now} {name} kernel: NVRM: Xid (PCI:0000:10:00): 154, {ASKS}"
            events += kernel.parse(line, TABLES, context)["events"]
        policy = yaml.safe_load((modules.CATALOG / "policies/default.yaml").read_text())
        wide = {"max": 100, "percent": 100}
        policy["spec"] |= {"mode": "enforce", "breaker": {"window": "1h", "fleet": wide, "domain": wide}}
        done = modules.run("node_quarantine", {**self.access, "policy": policy, "mode": "enforce", "events": events})
        assert sorted(done["gated"]) == sorted(names), done


@pytest.fixture(scope="module")
def site(show, tmp_path_factory) -> Iterator[Site]:
    with EmbeddedCluster(profile=PROFILE, say=show) as cluster, TicketDesk(SECRET) as desk:
        for called in ("goodput-fleet", "goodput-certify", "work"):
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": called}})
            account = f"/api/v1/namespaces/{called}/serviceaccounts/default"
            wait_until(lambda path=account: cluster.api.find(path), 20, account)
        fixtures_crds.install(cluster.api)
        made = Site(cluster, tmp_path_factory.mktemp("site"), desk)
        machines = threading.Thread(target=made.hardware, daemon=True)
        machines.start()
        yield made
        made.over.set()
        machines.join(10)


def test_a_fault_is_repaired_and_proven_or_handed_over(site):
    """Both nodes have the same fault, and no reset helps. One is well after a reboot, the other fails its certification
    twice."""
    gpuwork.seed(site.cluster, {SICK: "missing-gpu"}, seconds=0.1)
    boots = {name: site.boot(name) for name in (WELL, SICK)}
    site.pod("running", WELL)
    wait_until(lambda: site.node_of("running"), 30, "the pod runs")
    site.quarantine(WELL, SICK)
    site.pod("pending", WELL)

    looked = site.play("remediate", goodput_mode="observe")
    assert f"{WELL}: to be drained for reset" in looked and site.api.list(f"{SYSTEM}/repairrequests") == []
    assert all(tools.calls() == [] for tools in site.machines.values()) and site.node_of("running") == WELL

    site.play("remediate")
    for name in (WELL, SICK):
        assert site.attempts(name) == [("reset", False, False, None)]
        asked = [call[1:] for call in site.machines[name].calls("nvidia-smi") if "--gpu-reset" in call]
        assert asked == [["--gpu-reset", "-i", "00000000:10:00.0"]]
        assert site.gates(name) == [QUARANTINE] and site.boot(name) == boots[name]
    assert site.node_of("running") is None  # drained

    site.play("remediate")
    for name in (WELL, SICK):
        assert site.attempts(name)[1:] == [("reboot", True, True, None)]
        assert site.machines[name].calls("systemctl") == [["systemctl", "reboot"]]
        assert site.boot(name) != boots[name]
        assert site.gates(name) == [VALIDATION] and site.closed(name)  # never open in between, and not yet
    assert site.node_of("pending") is None

    site.play("revalidate")
    assert (site.gates(WELL), site.closed(WELL), site.gates(SICK), site.closed(SICK)) == ([], False, [VALIDATION], True)
    wait_until(lambda: site.node_of("pending") == WELL, 60, "the pending pod lands on the node that came back")

    site.play("remediate")
    assert site.repair(WELL)["status"]["phase"] == "Closed"
    assert site.attempts(WELL)[1:] == [("reboot", True, True, True)]
    sick = site.repair(SICK)["status"]
    assert sick["phase"] == "Exhausted" and site.gates(SICK) == [VALIDATION] and site.closed(SICK)
    assert [one[0] for one in site.attempts(SICK)] == ["reset", "reboot", "ticket"]
    (ticket,) = site.desk.tickets.values()
    assert (ticket["node"], ticket["serials"]) == (SICK, ["165000000001"])
    assert ticket["evidence"] and ticket["why"] and ticket["fault"]["code"] == "xid-154"
    assert [(one["rung"], one["verified"], one["validated"]) for one in ticket["attempts"]][:2] == [
        ("reset", False, None),
        ("reboot", True, False),
    ]
    assert sick["ticket"]["reference"] == "OPS-1"

    options = {"tests": site.variables["remediate_tests"], "executors": ["reboot", "ticket"], "mode": "enforce"}
    again = modules.run("node_repair", {"kubeconfig": str(site.cluster.kubeconfig), **options})
    assert (again["changed"], again["execute"], again["tickets"]) == (False, [], [])


def test_a_run_that_is_killed_while_a_node_reboots_is_gone_on_with(site):
    """It is never told to reboot twice. Whether it did is seen by its boot id, though nobody heard its answer."""
    options = {"remediate_executors": {"reboot": "reboot_ssh"}, "remediate_only": [CUT], "remediate_wait": 2}
    began, slow = site.folder / "began", site.folder / "slow"
    slow.write_text(f"#!/bin/sh\ntouch {began}\nexec sleep 10\n")
    slow.chmod(0o755)
    site.quarantine(CUT)
    with site.start("remediate", **options, remediate_reboot_command=[str(slow)]) as process:
        wait_until(began.exists, 120, "the node is told to reboot")
        os.killpg(process.pid, signal.SIGKILL)
    assert site.attempts(CUT) == [("reboot", None, None, None)]
    site.play("remediate", **options)
    assert site.machines[CUT].calls("systemctl") == [] and site.gates(CUT) == [QUARANTINE]
    site.machines[CUT].set_boot_id(site.cluster.fleet.reboot(CUT))
    wait_until(lambda: CUT in site.cluster.fleet.ready(), 60, "the node is back")
    site.play("remediate", **options)
    assert site.attempts(CUT) == [("reboot", True, True, None)] and site.gates(CUT) == [VALIDATION]
    assert site.machines[CUT].calls("systemctl") == []


def test_a_dead_node_is_rebooted_past_pods_that_nobody_confirms_and_handed_over_when_it_stays_away(site):
    """A pod on it is told to end and stays. While the node lives that keeps it from being rebooted."""
    site.pod("stuck", GONE, DEAF, terminationGracePeriodSeconds=3600)
    wait_until(lambda: site.node_of("stuck"), 30, "the pod runs")
    site.quarantine(GONE)
    options = {
        "remediate_executors": {"reboot": "reboot_ssh"},
        "remediate_reboot_command": ["true"],
        "remediate_timeouts": {"reboot": 2},
        "remediate_wait": 4,
        "remediate_only": [GONE],
        "remediate_drain_timeout": 2,
    }
    assert f"{GONE}: draining" in site.play("remediate", **options)
    assert site.repair(GONE)["status"].get("attempts", []) == []

    site.cluster.fleet.set_not_ready(GONE)
    site.desk.answers, before = [Answer(503)], len(site.desk.requests)
    told = site.play("remediate", fails=True, **options, remediate_ticket_retries=0)
    assert "tried once; last, it answered 503" in told and site.repair(GONE)["status"]["phase"] != "Exhausted"

    site.play("remediate", **options)
    assert site.repair(GONE)["status"]["phase"] == "Exhausted"
    assert [one[:3] for one in site.attempts(GONE)] == [("reboot", True, False), ("ticket", True, True)]
    first, second = (one.headers["idempotency-key"] for one in site.desk.requests[before:])
    assert first == second and site.desk.tickets[first]["node"] == GONE
    assert site.gates(GONE) == [QUARANTINE] and site.closed(GONE)
