"""A driver update over two racks on a real API server: bounds, kills, bad drivers, nodes that go, and the way back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration import driver_site, fixtures_crds, modules
from tests.simfleet import EmbeddedCluster, gpuwork
from tests.simfleet.api import wait_until
from tests.standin import locks

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOK = ROOT / ".venv/bin/ansible-playbook"
RACK_LABEL = "goodput.fleet/rack"
OLD, NEW, NEXT = "570.172.08", "580.105.08", "590.44.01"
RACK, BOUND = 16, 8
GROUP = {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-22.04", "perRack": RACK}
PROFILE = {"nodes": 2 * RACK, "groups": [{**GROUP, "driver": OLD}]}
LEVEL_1 = {"domain": "diagnostics", "variant": "dcgm-level1"}
SHORT = {"silenceTimeout": "10s", "startTimeout": "20s"}
CHANGE = """\
- name: Put the driver on them
  ansible.builtin.command:
    argv: "{{ [site_python, '-m', 'tests.integration.driver_site', site_kubeconfig, driver_update_target, site_pause]
              + driver_update_nodes }}"
    chdir: "{{ site_root }}"
  changed_when: true
"""


class Site:
    """One fleet and what its operators keep: locks, the task file of the change, requests, evidence."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path):
        self.cluster, self.api, self.fleet, self.folder = cluster, cluster.api, cluster.fleet, folder
        self.account = account(cluster)
        (folder / "change.yml").write_text(CHANGE)
        for driver in (OLD, NEW, NEXT):
            pins = {"driver": {"valuesPath": "driver.version", "value": driver}}
            component = locks.component("driver", nodeFacts=pins)
            (folder / f"{driver}.yaml").write_text(yaml.safe_dump(locks.lock(component)))

    def variables(self, driver: str, **more) -> dict:
        return {
            "goodput_mode": "enforce",
            "driver_update_lock": str(self.folder / f"{driver}.yaml"),
            "driver_update_change": str(self.folder / "change.yml"),
            "driver_update_tests": [LEVEL_1],
            "driver_update_options": SHORT,
            "driver_update_wave": "50%",
            "driver_update_max_unavailable": "100%",
            "driver_update_max_unavailable_per_domain": "50%",
            "driver_update_change_timeout": 20,
            "driver_update_interval": 0.3,
            "driver_update_evidence_dir": str(self.folder / "evidence"),
            "driver_update_kubeconfig": str(self.account),
            "driver_update_retries": 0,
            "site_python": sys.executable,
            "site_root": str(ROOT),
            "site_kubeconfig": str(self.cluster.kubeconfig),
            "site_pause": "0",
            **more,
        }

    def start(self, driver: str, *arguments: str, **more) -> subprocess.Popen:
        variables = self.folder / "variables.json"
        variables.write_text(json.dumps(self.variables(driver, **more)))
        foreign = ("ANSIBLE_", "K8S_AUTH_", "KUBECONFIG")
        return subprocess.Popen(
            [
                str(ROOT / ".venv/bin/ansible-playbook"),
                "goodput.fleet.driver_update",
                "-e",
                f"@{variables}",
                *arguments,
            ],
            cwd=self.folder,
            stdout=(self.folder / "printed").open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
                "HOME": str(self.folder),
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
                "ANSIBLE_PIPELINING": "true",
                "PYTHONPATH": str(ROOT),
            },
        )

    def update(self, driver: str, *arguments: str, **more) -> tuple[int, str]:
        code = self.start(driver, *arguments, **more).wait(timeout=300)
        return code, (self.folder / "printed").read_text()

    def plan(self, driver: str, **more) -> dict:
        result = modules.run("node_rollout_info", self.access(driver=driver, **more))
        assert not result["failed"], result
        return result

    def access(self, **more) -> dict:
        return {
            "kubeconfig": str(self.account),
            "max_unavailable": "100%",
            "max_unavailable_per_domain": "50%",
            "wave": "50%",
            **more,
        }

    def nodes(self) -> list[dict]:
        return self.api.list("/api/v1/nodes")

    def drivers(self) -> Counter:
        return Counter(node["metadata"]["labels"]["nvidia.com/cuda.driver-version.full"] for node in self.nodes())

    def changes(self) -> dict[str, int]:
        told = {each["metadata"]["name"]: each["metadata"].get("annotations") or {} for each in self.nodes()}
        return {name: int(each.get(driver_site.CHANGES, "0")) for name, each in told.items()}

    def gates(self) -> dict[str, list[str]]:
        """Of the nodes that have some, the owners."""
        prefix, found = "gate.goodput.fleet/", {}
        for node in self.nodes():
            owners = [key[len(prefix) :] for key in node["metadata"].get("annotations") or {} if key.startswith(prefix)]
            if owners:
                found[node["metadata"]["name"]] = sorted(owners)
        return found

    def forget(self) -> None:
        for name in self.fleet.names():
            self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {driver_site.CHANGES: None}}})


def account(cluster: EmbeddedCluster) -> Path:
    """A kubeconfig with the rights that the collection's files give, and no others."""
    for name in ("reader", "drain", "revalidate", "driver_update"):
        for item in yaml.safe_load((ROOT / f"gitops/rbac/{name}.yaml").read_text())["items"]:
            metadata = item["metadata"]
            group = "api/v1" if item["apiVersion"] == "v1" else f"apis/{item['apiVersion']}"
            space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
            cluster.api.apply(f"/{group}{space}/{item['kind'].lower()}s/{metadata['name']}", item)
    path = "/api/v1/namespaces/goodput-fleet/serviceaccounts/goodput-fleet-driver-update/token"
    answer = cluster.api.create(path, {"spec": {"expirationSeconds": 3600}})
    return cluster.access.with_token("driver-update", answer["status"]["token"])


class Watcher:
    """How many nodes of each rack are out at the same time, looked at all the while."""

    def __init__(self, site: Site):
        self.site, self.most, self.looks, self.over = site, Counter(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        while not self.over.wait(0.3):
            out = Counter(
                node["metadata"]["labels"]["goodput.fleet/rack"] for node in self.site.nodes() if is_out(node)
            )
            self.looks += 1
            for rack, number in out.items():
                self.most[rack] = max(self.most[rack], number)

    def __enter__(self) -> Watcher:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def is_out(node: dict) -> bool:
    gated = any(key.startswith("gate.goodput.fleet/") for key in node["metadata"].get("annotations") or {})
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
    return gated or not ready


@pytest.fixture(scope="module")
def site(show, tmp_path_factory) -> Iterator[Site]:
    with EmbeddedCluster(profile=PROFILE, say=show) as running:
        for namespace in ("goodput-fleet", "goodput-certify"):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        account = "/api/v1/namespaces/goodput-certify/serviceaccounts/default"
        wait_until(lambda: running.api.find(account), 20, account)
        fixtures_crds.install(running.api)
        gpuwork.seed(running, seconds=0.1)
        yield Site(running, tmp_path_factory.mktemp("site"))


def test_a_bad_driver_stops_at_the_canary_and_is_taken_back(site):
    code, printed = site.update(NEW, goodput_mode="observe")
    assert code == 0, printed[-3000:]
    assert "and then, if all of them pass:" in printed and site.gates() == {}
    [canary] = site.plan(NEW)["nodes"]
    gpuwork.seed(site.cluster, dict.fromkeys(site.fleet.names(), "missing-gpu"), seconds=0.1)
    code, printed = site.update(NEW)
    assert code != 0 and f"failed: {canary}: certification failed with {NEW}" in printed, printed[-3000:]
    assert site.drivers() == {OLD: 2 * RACK - 1, NEW: 1} and site.gates() == {canary: ["validation"]}
    assert sum(site.changes().values()) == 1
    plan = site.plan(NEW)
    assert plan["phase"] == "stopped" and not plan["gate"] and not plan["change"], plan["lines"]
    gpuwork.seed(site.cluster, seconds=0.1)
    back, printed = site.update(OLD)
    assert back == 0, printed[-3000:]
    assert site.drivers() == {OLD: 2 * RACK} and site.gates() == {} and site.changes()[canary] == 2


def test_killed_in_the_second_wave_and_run_again(site):
    """Meanwhile a node goes, and another one is made anew under its name."""
    site.forget()
    with Watcher(site) as watcher:
        running = site.start(NEXT, site_pause="0.3", driver_update_canary=0)
        wait_until(lambda: sum(site.changes().values()) >= RACK + 4, 250, "the second wave is under way", pause=0.1)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        left = site.gates()
        changed = [name for name, number in site.changes().items() if number and name in left]
        gone, renewed = changed[0], changed[1]
        made_anew = renew(site, renewed)
        site.fleet.delete([gone])
        code, printed = site.update(NEXT, driver_update_canary=0)
    assert code == 0, printed[-3000:]
    assert watcher.looks > 10 and max(watcher.most.values()) <= BOUND, watcher.most
    assert site.drivers() == {NEXT: 2 * RACK - 1} and site.gates() == {}
    assert set(site.changes().values()) == {1}
    assert site.fleet.get(renewed)["metadata"]["uid"] == made_anew


def renew(site: Site, name: str) -> str:
    """Another node under the same name, as it comes from its image; its uid."""
    node = site.fleet.get(name)
    labels = node["metadata"]["labels"] | driver_site.driver_labels(OLD)
    site.fleet.delete([name])
    fresh = {key: node[key] for key in ("apiVersion", "kind", "status") if key in node}
    fresh["metadata"] = {"name": name, "labels": labels}
    fresh["spec"] = {"providerID": node["spec"]["providerID"] + "-anew"}
    fresh["status"]["nodeInfo"]["bootID"] = f"another-{time.time_ns()}"
    return site.api.create("/api/v1/nodes", fresh)["metadata"]["uid"]


def test_a_driver_changed_behind_our_back_is_found_and_asked_for(site):
    """By the drift of nodes against the lock; nothing else in the fleet is asked for."""
    lock = max((OLD, NEXT), key=lambda driver: site.drivers()[driver])
    others = site.fleet.names()[3:5]
    for name in others:
        site.fleet.set_driver(name, "575.57.08")
    access = {"kubeconfig": str(site.account)}
    drift = modules.run("drift_info", {**access, "lock": str(site.folder / f"{lock}.yaml"), "fail_on": []})
    assert drift["recertify"] == others, drift["msg"]
    asked = {"reason": "changed", "tests": [LEVEL_1], "drift": drift["report"]}
    made = modules.run("validation_request", {**access, **asked, "catalog": [str(modules.CATALOG)]})
    assert not made["failed"] and [each["name"] for each in made["request"]["spec"]["nodes"]] == others, made
    plan = site.plan(lock)
    assert plan["nodes"] == others and plan["pending"] == 2, plan["lines"]
    for name in others:
        site.fleet.set_driver(name, lock)
