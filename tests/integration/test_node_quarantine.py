"""Signals to gates on a real API server: what an SRE has to be able to rely on at night."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.signals import event as events
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

from tests.integration import modules
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH
from tests.simfleet.apiproxy import ApiProxy, Request

pytestmark = pytest.mark.cluster

NODES, RACK = 288, 18
GB200 = {"prefix": "gb200", "accelerator": "gb200", "service": "baremetal", "os": "ubuntu-24.04"}
PROFILE = {"nodes": NODES, "groups": [{**GB200, "driver": "580.105.08", "perRack": RACK}]}
LEDGER = "/api/v1/namespaces/goodput-fleet/configmaps/goodput-quarantine"
GATE = "gate.goodput.fleet/quarantine"
TABLES = tables.load_catalog([str(modules.CATALOG)])


@pytest.fixture(scope="module")
def fleet(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(profile=PROFILE, say=show) as running:
        running.api.create("/api/v1/namespaces", {"metadata": {"name": "goodput-fleet"}})
        yield running


@pytest.fixture
def cluster(fleet: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """The fleet, with every mark that a test left on it taken off again."""
    yield fleet
    fleet.api.delete(LEDGER)
    for node in fleet.api.list("/api/v1/nodes"):
        marks = [key for key in node["metadata"].get("annotations", {}) if "goodput" in key or "quarantine" in key]
        if marks or node["spec"].get("taints") or node["spec"].get("unschedulable"):
            change = {
                "metadata": {"annotations": dict.fromkeys(marks)},
                "spec": {"taints": None, "unschedulable": None},
            }
            fleet.api.patch(f"/api/v1/nodes/{node['metadata']['name']}", change, MERGE_PATCH)


def policy(**spec: Any) -> dict:
    shipped = yaml.safe_load((modules.CATALOG / "policies/default.yaml").read_text())
    shipped["spec"] |= {"mode": "enforce", **spec}
    return shipped


def arguments(cluster: EmbeddedCluster | ApiProxy, **options: Any) -> dict:
    return {
        "kubeconfig": str(cluster.kubeconfig),
        "catalog": [str(modules.CATALOG)],
        "policy": policy(),
        "mode": "enforce",
        **options,
    }


def quarantine(cluster: EmbeddedCluster | ApiProxy, check: bool = False, **options: Any) -> dict:
    return modules.run("node_quarantine", arguments(cluster, **options), check=check, diff=check)


def name(number: int) -> str:
    return f"gb200-{number:04d}"


def boot(cluster: EmbeddedCluster, node: str) -> str:
    return cluster.fleet.get(node)["status"]["nodeInfo"]["bootID"]


def from_kernel(cluster: EmbeddedCluster, node: str, *lines: str) -> list[dict]:
    """What the kernel log's parser makes of these lines of the node's current boot, seen now."""
    stamped = "\n".join(f"{utc()} {node} kernel: {line}" for line in lines)
    context = kernel.Context(node=node, boot_id=boot(cluster, node), received=utc())
    parsed = kernel.parse(stamped, TABLES, context)
    assert not parsed["unparsed"]
    return parsed["events"]


def utc() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fell_off(cluster: EmbeddedCluster, *numbers: int) -> list[dict]:
    line = "NVRM: Xid (PCI:0008:01:00): 79, pid=4242, name=python, GPU has fallen off the bus."
    return [event for number in numbers for event in from_kernel(cluster, name(number), line)]


def link_down(cluster: EmbeddedCluster, number: int) -> dict:
    """What a health monitor says of every NVLink at boot, falsely."""
    node = name(number)
    return events.make(
        node=node,
        agent="gpu-health-monitor",
        check="GpuNvlinkWatch",
        component="GPU",
        codes=["DCGM_FR_NVLINK_DOWN"],
        space="dcgm",
        entities=[("GPU", "0")],
        action="RESTART_VM",
        fatal=True,
        message="GPU 0's NvLink link 3 is currently down",
        received=utc(),
        boot_id=None,
        position=number,
    )


def gated(cluster: EmbeddedCluster) -> dict[str, dict]:
    found = {}
    for node in cluster.api.list("/api/v1/nodes"):
        text = node["metadata"].get("annotations", {}).get(GATE)
        if text:
            found[node["metadata"]["name"]] = json.loads(text)
            assert any(taint["key"] == GATE for taint in node["spec"]["taints"])
    return found


def state(cluster: EmbeddedCluster) -> dict:
    """Everything a run may write, without what differs from run to run (times)."""
    nodes = {}
    for node in cluster.api.list("/api/v1/nodes"):
        notes = node["metadata"].get("annotations", {})
        gates = {key: {**json.loads(notes[key]), "since": ""} for key in notes if key.startswith("gate.goodput")}
        taints = [
            {key: taint.get(key) for key in ("key", "value", "effect")} for taint in node["spec"].get("taints", [])
        ]
        if gates or taints or node["spec"].get("unschedulable"):
            nodes[node["metadata"]["name"]] = (gates, taints, node["spec"].get("unschedulable"))
    ledger = cluster.api.find(LEDGER)
    entries = json.loads(ledger["data"]["ledger"]) if ledger else []
    return {"nodes": nodes, "ledger": sorted(({**entry, "at": ""} for entry in entries), key=lambda one: one["node"])}


def test_one_sick_gpu_is_gated_once_with_its_reasons(cluster):
    found = fell_off(cluster, 7)
    plan = quarantine(cluster, check=True, events=found)
    assert (plan["changed"], plan["gated"], gated(cluster)) == (True, [name(7)], {})
    assert cluster.api.find(LEDGER) is None
    assert "+++" in plan["diff"][0].get("prepared", "") or plan["diff"][0]["after"] != plan["diff"][0]["before"]
    done = quarantine(cluster, events=found)
    assert (done["changed"], done["gated"], done["tripped"]) == (True, [name(7)], False)
    gate = gated(cluster)[name(7)]
    assert gate["rule"] == "gpu-off-the-bus" and gate["evidence"] == found[0]["metadata"]["name"]
    assert gate["bootId"] == boot(cluster, name(7)) and "fallen off the bus" in gate["reason"]
    before = state(cluster)
    again = quarantine(cluster, events=found)
    assert (again["changed"], again["failed"], state(cluster)) == (False, False, before)
    assert [each["node"] for each in again["decision"]["held"]] == [name(7)]


def test_without_a_mode_nothing_is_written(cluster, tmp_path):
    found = fell_off(cluster, 7)
    with ApiProxy(cluster.kubeconfig) as proxy:
        seen = quarantine(proxy, mode="observe", events=found, record_dir=str(tmp_path / "record"))
        dry = quarantine(proxy, mode="dry_run", events=found, record_dir=str(tmp_path / "record"))
        quiet = quarantine(proxy, policy=policy(mode="observe"), events=found)
        planned = quarantine(proxy, events=found, check=True, record_dir=str(tmp_path / "none"))
        assert proxy.writes == 0
    for result in (seen, dry, quiet):
        assert (result["changed"], {each["node"] for each in result["decision"]["observed"]}) == (False, {name(7)})
    assert planned["changed"] and not (tmp_path / "none").exists()
    assert (seen["recorded"], dry["recorded"]) == (1, 0)  # the same event is kept once
    record = json.loads((tmp_path / "record/quarantine.json").read_text())
    assert record["decision"]["mode"] == "dry_run"
    assert {each["node"] for each in record["decision"]["observed"]} == {name(7)}


def test_a_rack_with_one_origin_is_one_sick_node(cluster):
    """149 on one GPU, 145 on all the others of its NVLink domain."""
    origin = (
        "NVRM: Xid (PCI:0012:06:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021169c6 0x00000000 0x00000000)"
    )
    echo = "NVRM: Xid (PCI:{bus}): 145, RLW_REMAP  Nonfatal   XC0 i0 Link 03 (0x00000004 0x00000000 0x00000000)"
    found = from_kernel(cluster, name(3), origin)
    assert found[0]["spec"]["isFatal"]
    for number in range(RACK):
        for bus in ("0008:01:00", "0009:01:00", "0018:01:00", "0019:01:00"):
            if (number, bus) != (3, "0008:01:00"):
                found += from_kernel(cluster, name(number), echo.format(bus=bus))
    result = quarantine(cluster, events=found)
    assert list(gated(cluster)) == [name(3)]
    assert (result["failed"], result["gated"]) == (False, [name(3)])


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["Out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:1kB"], id="out-of-memory"),
        pytest.param(
            ["NVRM: Xid (PCI:0008:01:00): 13, pid=7, name=python, Graphics Exception: ESR 0x505648=0x1001e"], id="13"
        ),
        pytest.param(
            ["NVRM: Xid (PCI:0008:01:00): 31, pid=7, name=python, Ch 00000010, intr 00000000. MMU Fault: FAULT_PDE"],
            id="31",
        ),
        pytest.param(
            [
                "NVRM: Xid (PCI:0008:01:00): 31, pid=7, name=python, Ch 00000010, intr 00000000. MMU Fault: FAULT_PDE",
                "NVRM: Xid (PCI:0008:01:00): 43, pid=7, name=python, Ch 00000010",
                "NVRM: Xid (PCI:0008:01:00): 45, pid=7, name=python, Ch 00000010",
            ],
            id="31-43-45",
        ),
    ],
)
def test_what_an_application_did_wrong_costs_no_node(cluster, lines):
    result = quarantine(cluster, events=from_kernel(cluster, name(5), *lines))
    assert (result["failed"], result["changed"], gated(cluster)) == (False, False, {})


def test_a_monitor_that_sees_nothing_gates_nothing(cluster):
    blind = [
        events.make(
            node=name(number),
            agent="dcgm",
            check="GpuDcgmConnectivityFailure",
            component="GPU",
            codes=["DCGM_CONNECTIVITY_ERROR"],
            space="dcgm",
            state="unknown",
            fatal=True,
            received=utc(),
            position=number,
        )
        for number in range(20)
    ]
    result = quarantine(cluster, events=blind)
    assert (result["changed"], gated(cluster)) == (False, {})
    assert len(result["decision"]["unknown"]) == 20 and result["failures"] == []


def test_a_false_alarm_on_all_nodes_trips_the_breaker_and_is_rolled_back(cluster):
    """288 nodes say NVLINK_DOWN at boot. A truly sick one was gated before, by another rule."""
    quarantine(cluster, events=fell_off(cluster, 100))
    alarm = [link_down(cluster, number) for number in range(NODES)]
    bound = NODES * 5 // 100  # percent of the fleet, which is less than its absolute bound
    result = quarantine(cluster, events=alarm)
    assert (result["failed"], result["tripped"], result["failures"]) == (True, True, ["tripped"])
    closed = gated(cluster)
    assert len(closed) == bound and result["changed"]
    assert len(result["decision"]["blocked"]) == NODES - bound
    assert "tripped" in result["msg"]
    more = quarantine(cluster, events=alarm)
    assert (more["tripped"], more["changed"], gated(cluster)) == (True, False, closed)
    options = {"kubeconfig": str(cluster.kubeconfig), "state": "released", "owner": "quarantine", "rule": "dcgm-fatal"}
    back = modules.run("node_gate", options)
    assert sorted(each["node"] for each in back["results"] if each["changed"]) == sorted({*closed} - {name(100)})
    assert list(gated(cluster)) == [name(100)]
    # what a rollback opened is not closed again by the same reports
    after = quarantine(cluster, events=alarm, fail_on=[])
    assert list(gated(cluster)) == [name(100)] and len(after["decision"]["released"]) == bound - 1


@pytest.mark.parametrize("harm", [{"spec": {"taints": None}}, {"metadata": {"annotations": {GATE: "by hand"}}}])
def test_a_gate_that_lost_its_taint_or_its_text_is_closed_anew(cluster, harm):
    events = fell_off(cluster, 3)
    quarantine(cluster, events=events)
    cluster.api.patch(f"/api/v1/nodes/{name(3)}", {"spec": {"taints": None}}, MERGE_PATCH)
    cluster.api.patch(f"/api/v1/nodes/{name(3)}", harm, MERGE_PATCH)
    again = quarantine(cluster, events=events)
    assert again["gated"] == [name(3)] and again["changed"] is True
    node = cluster.fleet.get(name(3))
    assert [taint["key"] for taint in node["spec"]["taints"]] == [GATE]
    assert json.loads(node["metadata"]["annotations"][GATE])["rule"] == "gpu-off-the-bus"
    assert quarantine(cluster, events=events)["changed"] is False


def test_a_lifted_cordon_is_put_back_only_where_the_rule_says_so(cluster):
    def rules(reclose: bool) -> dict:
        gate = {"cordon": True, "reclose": reclose}
        return policy(rules=[{"name": "fatal", "expression": "event.isFatal", "gate": gate}])

    events = fell_off(cluster, 3)
    quarantine(cluster, events=events, policy=rules(False))
    cluster.api.patch(f"/api/v1/nodes/{name(3)}", {"spec": {"unschedulable": None}}, MERGE_PATCH)
    left = quarantine(cluster, events=events, policy=rules(False))
    assert left["changed"] is False and "somebody lifted its cordon" in left["decision"]["held"][0]["why"]
    assert quarantine(cluster, events=events, policy=rules(True))["gated"] == [name(3)]
    assert cluster.fleet.get(name(3))["spec"]["unschedulable"] is True


def test_humans_and_other_tools_are_left_alone(cluster):
    def edit(node: str, spec: dict, **annotations: str) -> None:
        cluster.api.patch(
            f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}, "spec": spec}, MERGE_PATCH
        )

    taint = {"key": "example.com/mine", "value": "x", "effect": "NoSchedule"}
    edit(name(1), {"unschedulable": True, "taints": [taint]})
    marks = {"quarantineHealthEvent": '[{"checkName": "GpuPcieWatch"}]', "quarantineHealthEventIsCordoned": "True"}
    edit(name(20), {"unschedulable": True}, **marks)
    quarantine(cluster, events=fell_off(cluster, 1, 20, 40))
    edit(name(40), {"unschedulable": True})
    quarantine(cluster, events=fell_off(cluster, 1, 20, 40))
    options = {"kubeconfig": str(cluster.kubeconfig), "state": "released", "owner": "quarantine"}
    back = modules.run("node_gate", {**options, "nodes": [name(1), name(20), name(40)]})
    assert [(each["status"], each["open"]) for each in back["results"]] == [("released", False)] * 3
    for number in (1, 20, 40):
        assert cluster.fleet.get(name(number))["spec"]["unschedulable"] is True
    assert taint in cluster.fleet.get(name(1))["spec"]["taints"]
    assert "quarantineHealthEvent" in cluster.fleet.get(name(20))["metadata"]["annotations"]


def test_bad_input_is_one_clear_error(cluster, tmp_path):
    def message(**options: Any) -> str:
        result = quarantine(cluster, **options)
        assert result["failed"] and "\n" not in result["msg"].strip(), result
        return result["msg"]

    broken = policy()
    broken["spec"]["rules"][0]["expression"] = "event.isFatal && (event.codeSpace == 'xid'"
    assert "spec.rules[0].expression" in message(policy=broken)
    unknown = policy()
    unknown["spec"]["rules"][1]["gate"]["tain"] = {}
    assert "tain" in message(policy=unknown)
    typo = policy()
    typo["spec"]["rules"][1]["expression"] = "event.isFatall"
    assert "isFatall" in message(policy=typo)
    path = tmp_path / "gone.yaml"
    assert str(path) in message(policy=str(path))
    assert str(path) in message(event_files=[str(path)])
    assert "concurrency" in message(concurrency=0)


def test_a_selector_of_no_node_is_told(cluster):
    found = quarantine(cluster, events=fell_off(cluster, 3), selector="pool=misspelt")
    assert "no node of the cluster has the labels pool=misspelt, so that nothing can be gated" in str(found["warnings"])
    assert f"the fleet has no such node: {name(3)}" in found["msg"]


def test_what_cannot_be_read_is_kept(cluster, tmp_path):
    good = fell_off(cluster, 7)[0]
    stranger = copy.deepcopy(good)
    stranger["spec"]["nodeName"] = "node-of-another-cluster"
    stranger["metadata"]["name"] = "f" * 16
    lines = [json.dumps(good), "{half", "\x00\x01\xfe", json.dumps(stranger), json.dumps(good)[:40]]
    log = tmp_path / "events.jsonl"
    log.write_text("\n".join(lines))
    result = quarantine(cluster, event_files=[str(log)])
    assert list(gated(cluster)) == [name(7)]
    assert [item["line"] for item in result["unparsed"]] == [2, 3, 5]
    assert all(item["source"] == str(log) for item in result["unparsed"])
    assert [each["node"] for each in result["decision"]["ignored"]] == ["node-of-another-cluster"]


def test_ten_thousand_events_in_one_file(cluster, tmp_path):
    log = tmp_path / "events.jsonl"
    with log.open("w") as out:
        for number in range(10_000):
            node = f"elsewhere-{number % 500}"
            event = events.make(node=node, agent="x", check="y", component="GPU", received=utc(), position=number)
            out.write(json.dumps(event) + "\n")
    result = quarantine(cluster, event_files=[str(log)])
    assert (result["failed"], result["changed"]) == (False, False)
    assert result["decision"]["counts"]["events"] >= 10_000


def test_an_api_server_that_has_a_bad_day(cluster):
    numbers = range(0, 60, 10)
    found = fell_off(cluster, *numbers)
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("PATCH", f"/nodes/{name(10)}", status=403)
        proxy.rule("PATCH", f"/nodes/{name(20)}", status=429, headers={"Retry-After": "1"}, times=2)
        proxy.rule("PATCH", f"/nodes/{name(30)}", status=500, times=1)
        proxy.rule("PATCH", f"/nodes/{name(40)}", status=409, times=3)
        proxy.rule("PATCH", f"/nodes/{name(50)}", lose_answer=True, times=1)
        result = quarantine(proxy, events=found)
        assert proxy.writes < 30
    by_node = {each["node"]: each for each in result["results"]}
    assert (result["failed"], result["failures"]) == (True, ["failed"])
    assert (by_node[name(10)]["status"], by_node[name(10)]["code"]) == ("failed", "denied")
    assert {node for node, each in by_node.items() if each["status"] == "held"} == {name(n) for n in numbers if n != 10}
    assert sorted(gated(cluster)) == [name(n) for n in numbers if n != 10]
    healed = quarantine(cluster, events=found)
    assert (healed["failed"], sorted(gated(cluster))) == (False, [name(n) for n in numbers])


def sweep(cluster: EmbeddedCluster, run: Callable[[ApiProxy], dict], want: dict, reset: Callable[[], None]) -> int:
    """Kill the run before and after its first write, its second, ... until it gets through; run again each time."""
    number = 0
    while True:
        number += 1
        for before in (True, False):
            reset()
            with ApiProxy(cluster.kubeconfig) as proxy:
                process = modules.start("node_quarantine", run(proxy))
                met = kill_at(proxy, process.pid, number, before)
                modules.finish(process)
            if not met:
                assert state(cluster) == want
                return number - 1
            modules.finish(modules.start("node_quarantine", run(cluster)))
            assert state(cluster) == want, f"killed {'before' if before else 'after'} write {number}"


def kill_at(proxy: ApiProxy, pid: int, number: int, before: bool) -> list[Request]:
    met: list[Request] = []

    def kill(request: Request) -> None:
        if proxy.writes == number and not met:
            met.append(request)
            os.kill(pid, signal.SIGKILL)

    proxy.rule("write", "", **{"before" if before else "after": kill})
    return met


@pytest.mark.slow
def test_killed_after_any_write_the_next_run_ends_in_the_same_state(cluster):
    found = fell_off(cluster, 0, 20, 40)

    def reset() -> None:
        cluster.api.delete(LEDGER)
        for node in gated(cluster):
            change = {"metadata": {"annotations": {GATE: None}}, "spec": {"taints": None}}
            cluster.api.patch(f"/api/v1/nodes/{node}", change, MERGE_PATCH)

    def run(target: EmbeddedCluster | ApiProxy) -> dict:
        return arguments(target, events=found, concurrency=1)

    modules.run("node_quarantine", run(cluster))
    want = state(cluster)
    assert len(want["nodes"]) == 3 and all(entry["held"] for entry in want["ledger"])
    assert sweep(cluster, run, want, reset) == 5  # the ledger, three nodes, the ledger


def test_two_runs_at_once_stay_within_the_bound(cluster):
    tight = policy(breaker={"window": "1h", "fleet": {"max": 4}})
    halves = [fell_off(cluster, *range(0, 100, 20)), fell_off(cluster, *range(110, 210, 20))]
    processes = [
        modules.start("node_quarantine", arguments(cluster, policy=tight, events=found, fail_on=[])) for found in halves
    ]
    results = [modules.finish(process) for process in processes]
    assert len(gated(cluster)) == 4
    assert sum(len(result["decision"]["blocked"]) for result in results) == 6


def test_a_ledger_that_cannot_be_read_stops_everything(cluster):
    cluster.api.create(
        LEDGER.rpartition("/")[0], {"metadata": {"name": "goodput-quarantine"}, "data": {"ledger": "[{broken"}}
    )
    result = quarantine(cluster, events=fell_off(cluster, 7))
    assert result["failed"] and "goodput-quarantine" in result["msg"] and gated(cluster) == {}


def test_the_account_of_the_rbac_folder_is_enough(cluster):
    for item in yaml.safe_load((modules.ROOT / "gitops/rbac/quarantine.yaml").read_text())["items"]:
        metadata = item["metadata"]
        group = "api/v1" if item["apiVersion"] == "v1" else f"apis/{item['apiVersion']}"
        space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        cluster.api.apply(f"/{group}{space}/{item['kind'].lower()}s/{metadata['name']}", item)
    path = "/api/v1/namespaces/goodput-fleet/serviceaccounts/goodput-fleet-quarantine/token"
    answer = cluster.api.create(path, {"spec": {"expirationSeconds": 600}})
    account = cluster.access.with_token("quarantine", answer["status"]["token"])
    options = {**arguments(cluster, events=fell_off(cluster, 7)), "kubeconfig": str(account)}
    first, second = modules.run("node_quarantine", options), modules.run("node_quarantine", options)
    assert (first["failed"], first["changed"], second["failed"], second["changed"]) == (False, True, False, False)


def test_conditions_of_nodes_are_signals(cluster):
    """As NVSentinel's connectors set them."""
    condition = {
        "type": "GpuMemWatch",
        "status": "True",
        "reason": "GpuMemWatchIsNotHealthy",
        "message": "ErrorCode:DCGM_FR_VOLATILE_DBE_DETECTED GPU:3 GPU had uncorrectable memory errors "
        "Recommended Action=COMPONENT_RESET;",
        "lastTransitionTime": utc(),
        "lastHeartbeatTime": utc(),
    }
    path = f"/api/v1/nodes/{name(9)}/status"
    cluster.api.patch(path, {"status": {"conditions": [condition]}})
    try:
        assert quarantine(cluster)["gated"] == [name(9)]
        assert quarantine(cluster, node_conditions=False)["decision"]["counts"]["events"] == 0
    finally:
        cluster.api.patch(path, {"status": {"conditions": [{"$patch": "delete", "type": "GpuMemWatch"}]}})


def test_the_playbook(cluster, tmp_path: Path):
    """As a user runs it: the shipped policy by its name, the plan, then the mode."""
    log = tmp_path / "events.json"
    log.write_text(json.dumps(fell_off(cluster, 7)))
    site = {
        "quarantine_policy": policy(),
        "quarantine_event_files": [str(log)],
        "quarantine_record_dir": str(tmp_path / "record"),
        "quarantine_kubeconfig": str(cluster.kubeconfig),
    }
    out = playbook(tmp_path, site)
    assert "observe: 1 incident" in out and name(7) in out and gated(cluster) == {}
    out = playbook(tmp_path, {**site, "quarantine_policy": "default"}, "-e", "goodput_mode=enforce")
    assert "only observed" in out and gated(cluster) == {}
    out = playbook(tmp_path, site, "-e", "goodput_mode=enforce", "--check", "--diff")
    assert "would gate" in out and gated(cluster) == {}
    out = playbook(tmp_path, site, "-e", "goodput_mode=enforce")
    assert "changed=1" in out and list(gated(cluster)) == [name(7)]
    assert "changed=0" in playbook(tmp_path, site, "-e", "goodput_mode=enforce")
    rollback = [{**site, "quarantine_rollback_rule": "gpu-off-the-bus"}, "-e", "goodput_mode=enforce"]
    out = playbook(tmp_path, *rollback)
    assert gated(cluster) == {} and "changed=1" in out
    assert "changed=0" in playbook(tmp_path, *rollback)


def test_a_rollback_by_the_playbook_is_of_every_owner_and_of_that_rule_only(cluster, tmp_path: Path):
    gates = {"fell": {"owner": "maintenance"}, "echo": {}}
    expressions = {"fell": "event.isFatal", "echo": "event.isFatal && event.nodeName.endsWith('8')"}
    rules = [{"name": each, "expression": expressions[each], "gate": gates[each]} for each in gates]
    found = quarantine(cluster, events=fell_off(cluster, 7, 8), policy=policy(rules=rules))
    assert found["gated"] == [name(7), name(8)]
    site = {"quarantine_kubeconfig": str(cluster.kubeconfig), "quarantine_rollback_rule": "fall"}
    out = playbook(tmp_path, site, "-e", "goodput_mode=enforce")
    assert "no gate is of rule fall; gates are of echo, fell" in out and "changed=0" in out
    site["quarantine_rollback_rule"] = "fell"
    out = playbook(tmp_path, site)
    assert "2 nodes would be released; goodput_mode is observe" in out
    out = playbook(tmp_path, site, "-e", "goodput_mode=enforce")
    assert "2 nodes released" in out
    left = {node["metadata"]["name"]: node["spec"].get("taints") for node in cluster.api.list("/api/v1/nodes")}
    assert [taint["key"] for taint in left[name(8)]] == [GATE] and not left[name(7)]


def test_a_variable_that_the_role_does_not_know_stops_it(cluster, tmp_path: Path):
    site = {"quarantine_kubeconfig": str(cluster.kubeconfig), "quarantine_selektor": "pool=a"}
    out = playbook(tmp_path, site, fails=True)
    assert "quarantine_selektor" in out and "quarantine_selector" in out


def test_the_playbook_collects_on_nodes(cluster, tmp_path: Path):
    """Hosts that are this machine; their journal is a script's. The GPUs of one cannot be seen, one is not there."""
    tools = tmp_path / "bin"
    tools.mkdir()
    journal = tools / "journalctl"
    message = "NVRM: Xid (PCI:0008:01:00): 79, pid=4242, name=python, GPU has fallen off the bus."
    line = json.dumps({"__REALTIME_TIMESTAMP": str(int(time.time() * 1e6)), "MESSAGE": message, "PRIORITY": "4"})
    journal.write_text(f"#!/bin/sh\ncat <<'EOF'\n{line}\nEOF\n")
    journal.chmod(0o755)
    hosts = {
        name(7): {},
        name(8): {"quarantine_collect": ["gpu"], "quarantine_collect_library": "/nowhere/libnvidia-ml.so.1"},
        name(9): {"ansible_connection": "ssh", "ansible_ssh_executable": str(tools / "ssh")},
    }
    (tools / "ssh").write_text("#!/bin/sh\necho no route to host >&2\nexit 255\n")
    (tools / "ssh").chmod(0o755)
    here = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "quarantine_collect": ["kernel_log"],
    }
    inventory = {"all": {"hosts": hosts, "vars": {**here, "quarantine_collect_become": False}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
    for number in (7, 8):  # the boot id that is read is this machine's, so the nodes have to run it
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        cluster.fleet.set_node_info(name(number), bootID=boot_id)
    site = {"quarantine_policy": policy(), "quarantine_kubeconfig": str(cluster.kubeconfig), "quarantine_hosts": "all"}
    options = ["-i", "hosts.yml", "-e", "goodput_mode=enforce"]
    out = playbook(tmp_path, site, *options, PATH=f"{tools}:{os.environ['PATH']}")
    assert list(gated(cluster)) == [name(7)]
    assert f"{name(8)}: unknown: " in out  # what cannot be seen gates nothing
    assert f"{name(9)}: nothing known: " in out and out.count("no route to host") <= 3  # told, not tried again


def playbook(folder: Path, variables: dict, *options: str, fails: bool = False, **environment: str) -> str:
    (folder / "site.yml").write_text(yaml.safe_dump(variables))
    command = ["-m", "ansible", "playbook", "goodput.fleet.quarantine", "-e", "@site.yml", *options]
    bare = {key: value for key, value in os.environ.items() if not key.startswith(modules.FOREIGN)}
    env = {**bare, "ANSIBLE_COLLECTIONS_PATH": str(modules.ROOT / ".build/collections"), "ANSIBLE_NOCOLOR": "1"}
    env |= {"ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False", **environment}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True)
    assert (done.returncode != 0) is fails and "WARNING" not in done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr * fails
