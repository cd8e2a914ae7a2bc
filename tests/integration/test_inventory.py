# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a real API server, through ansible-inventory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes as gates

from tests.simfleet import EmbeddedCluster

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
GATE = {"owner": "quarantine", "reason": "Xid 79 of GPU 3", "evidence": "0123456789abcdef"}


@pytest.fixture(scope="module")
def fleet(show: Callable[[str], None]) -> Iterator[EmbeddedCluster]:
    """Two nodes of each accelerator, and two without any."""
    with EmbeddedCluster(nodes=16, profile="mixed", say=show) as running:
        yield running


@pytest.fixture
def inventory(fleet: EmbeddedCluster, tmp_path: Path):
    """inventory(**options) -> what ansible-inventory --list gives; `fails=True`: what it prints instead."""

    def run(fails: bool = False, graph: bool = False, name: str = "fleet.gpu_nodes.yml", **options):
        source = tmp_path / name
        options = {"plugin": "goodput.fleet.gpu_nodes", "kubeconfig": str(fleet.kubeconfig), **options}
        source.write_text(json.dumps({key: value for key, value in options.items() if value is not None}))
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "KUBECONFIG"))},
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1",
            "ANSIBLE_NOCOLOR": "1",
        }
        command = [sys.executable, "-m", "ansible", "inventory", "-i", str(source), "--graph" if graph else "--list"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        if fails:
            assert done.returncode != 0, text
            return " ".join(text.split())
        assert done.returncode == 0, text
        return done.stdout if graph else json.loads(done.stdout)

    return run


def hosts(listed: dict, group: str) -> list[str]:
    return sorted(listed.get(group, {}).get("hosts", []))


def test_groups_follow_what_is_true_of_the_nodes(fleet, inventory):
    client = connect({"kubeconfig": str(fleet.kubeconfig)})
    held = gates.hold_many(client, [{"node": "h100-0000", **GATE}, {"node": "h100-0000", **GATE, "owner": "manual"}])
    assert {each["status"] for each in held} == {"held"}
    fleet.api.patch("/api/v1/nodes/h100-0001", {"spec": {"unschedulable": True}})
    fleet.fleet.set_not_ready("h200-0000")
    fleet.fleet.set_gpus("b200-0000", 7)
    boot = fleet.fleet.get("h200-0001")["status"]["nodeInfo"]["bootID"]
    record = json.dumps({"bootId": boot, "driver": "580.105.08", "at": "2026-11-29T18:00:00Z"})
    for name in ("h200-0001", "b200-0001"):  # b200-0001 has another boot id
        fleet.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {"goodput.fleet/certified": record}}})

    listed = inventory(
        groups={"reduced": "gpu_node.gpus.allocatable < gpu_node.gpus.capacity"},
        keyed_groups=[{"prefix": "driver", "key": "gpu_node.driver"}],
        compose={"rack": "gpu_node.rack"},
    )
    everything = [name for name in fleet.fleet.names() if not name.startswith("cpu-")]
    assert hosts(listed, "gpu_nodes") == sorted(everything)
    assert len(everything) == 14
    assert hosts(listed, "gated") == hosts(listed, "gate_quarantine") == hosts(listed, "gate_manual") == ["h100-0000"]
    assert hosts(listed, "external_hold") == ["h100-0001", "h200-0000"]  # a person's cordon, Kubernetes' own taint
    assert hosts(listed, "not_ready") == ["h200-0000"]
    assert hosts(listed, "open") == sorted(set(everything) - {"h100-0000", "h100-0001", "h200-0000"})
    assert hosts(listed, "accelerator_NVIDIA_H100_80GB_HBM3") == ["h100-0000", "h100-0001"]
    assert hosts(listed, "rack_gb200_rack_00") == ["gb200-0000", "gb200-0001"]
    (domain,) = {name for name in listed if name.startswith("nvlink_domain_") and "gb200-0000" in hosts(listed, name)}
    assert hosts(listed, domain) == ["gb200-0000", "gb200-0001"]
    assert hosts(listed, "certified") == ["h200-0001"]
    assert len(hosts(listed, "uncertified")) == 13
    assert hosts(listed, "reduced") == ["b200-0000"]
    assert hosts(listed, "driver_570_172_08") == ["a100-0000", "a100-0001", "l40s-0000", "l40s-0001"]

    known = listed["_meta"]["hostvars"]
    assert known["b200-0000"]["ansible_host"] == "127.0.0.1"
    assert known["b200-0000"]["rack"] == "b200-rack-00"
    node = known["h100-0000"]["gpu_node"]
    assert [gate["owner"] for gate in node["gates"]] == ["manual", "quarantine"]
    assert (node["open"], node["driver"], node["gpus"]) == (False, "580.105.08", {"capacity": 8, "allocatable": 8})
    assert node["boot_id"] == fleet.fleet.get("h100-0000")["status"]["nodeInfo"]["bootID"]
    assert known["h200-0001"]["gpu_node"]["certification"] == "certified at 2026-11-29T18:00:00Z"
    assert "certified with another boot" in known["b200-0001"]["gpu_node"]["certification"]
    assert "|--@gate_quarantine:" in inventory(graph=True)

    fleet.fleet.reboot("h200-0001")
    assert hosts(inventory(), "certified") == []


def test_a_selector_names_the_nodes(inventory):
    listed = inventory(selector="nvidia.com/gpu.product=NVIDIA-L40S", rack_labels=["no.such/label"], address_types=[])
    assert hosts(listed, "gpu_nodes") == ["l40s-0000", "l40s-0001"]
    assert not [name for name in listed if name.startswith("rack_")]
    assert "ansible_host" not in listed["_meta"]["hostvars"]["l40s-0000"]
    assert hosts(inventory(selector="kubernetes.io/hostname=cpu-0000"), "gpu_nodes") == ["cpu-0000"]


def test_the_cache_serves_while_it_is_asked_to_and_only_for_the_same_options(fleet, inventory, tmp_path):
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    first = inventory(**cached)
    fleet.fleet.set_labels("l40s-0001", {"goodput.fleet/rack": "moved"})
    assert (
        hosts(inventory(**cached), "rack_l40s_rack_00")
        == hosts(first, "rack_l40s_rack_00")
        == ["l40s-0000", "l40s-0001"]
    )
    assert hosts(inventory(), "rack_moved") == ["l40s-0001"]
    assert hosts(inventory(**cached, selector="nvidia.com/gpu.present=true"), "rack_moved") == ["l40s-0001"]
    fleet.fleet.set_labels("l40s-0001", {"goodput.fleet/rack": "l40s-rack-00"})


def test_a_reader_needs_to_list_nodes_and_nothing_else(fleet, inventory):
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    reader = fleet.access.service_account("inventory-reader", cluster_rules=rules)
    assert len(hosts(inventory(kubeconfig=str(reader)), "gpu_nodes")) == 14


@pytest.mark.parametrize(
    "options, words",
    [
        ({"kubeconfig": "unreachable"}, "cannot reach the API server 127.0.0.1:1: Connection refused"),
        ({"kubeconfig": "nobody"}, "forbidden: cannot list nodes at cluster scope"),
        ({"kubeconfig": "wrong_token"}, "does not accept the credential (401 Unauthorized)"),
        ({"kubeconfig": "/nowhere/config"}, "no such file"),
        ({"context": "nowhere"}, "there is no context 'nowhere'"),
        ({"selector": "a=b=c"}, "selector"),
        ({"selektor": "a=b"}, "selektor"),
        ({"strict": True, "compose": {"x": "gpu_node.nothing.here"}}, "nothing"),
    ],
)
def test_what_is_wrong_is_said_once_and_clearly(fleet, inventory, options, words):
    if options.get("kubeconfig") in ("unreachable", "wrong_token"):
        options = {"kubeconfig": str(getattr(fleet.access, options["kubeconfig"])())}
    elif options.get("kubeconfig") == "nobody":
        options = {"kubeconfig": str(fleet.access.service_account("nobody"))}
    said = inventory(fails=True, **options)
    assert words in said, said


def test_another_name_is_another_plugins_file(inventory):
    assert "gpu_nodes" in inventory(fails=True, name="fleet.yml")
