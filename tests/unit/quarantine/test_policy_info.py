"""quarantine_policy_info: from files to an answer, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import scope
from ansible_collections.goodput.fleet.plugins.modules import quarantine_policy_info

from . import made

ROOT = Path(__file__).parents[3]
CATALOG = ROOT / "gitops/catalog"
XID = {
    "version": 1,
    "agent": "gpu-health-monitor",
    "componentClass": "GPU",
    "checkName": "GpuXidError",
    "isFatal": True,
    "errorCode": ["DCGM_FR_FALLEN_OFF_BUS"],
    "entitiesImpacted": [{"entityType": "GPU", "entityValue": "0"}],
    "recommendedAction": 15,
    "nodeName": "gpu-7",
    "generatedTimestamp": {"seconds": 1772789696, "nanos": 0},
}


def ask(capsys, **given) -> dict:
    arguments = {"policy": made.document(), "catalog": [str(CATALOG)], **given}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        quarantine_policy_info.main()
    return json.loads(capsys.readouterr().out)


def test_a_good_policy_is_described(capsys):
    answer = ask(capsys, policy=str(CATALOG / "policies/default.yaml"))
    assert (answer["name"], answer["mode"], answer["changed"]) == ("default", "observe", False)
    assert answer["rules"][0]["name"] == "gpu-off-the-bus" and answer["rules"][0]["mode"] == "observe"
    assert answer["breaker"]["fleet"] == {"max": 20, "percent": 5} and answer["breaker"]["window"] == 3600
    assert "backtest" not in answer


def test_the_documentation_names_what_rules_see():
    notes = " ".join(yaml.safe_load(quarantine_policy_info.DOCUMENTATION)["notes"])
    for root, fields in scope.VARIABLES.items():
        assert f"C({root})" in notes
        for field in fields if isinstance(fields, dict) else ():
            assert re.search(rf"\b{field}\b", notes), f"{root}.{field}"


def test_a_broken_policy_fails_with_the_place(capsys, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(made.document(made.rule(expression="event.isFatall"))))
    answer = ask(capsys, policy=str(path))
    assert (
        answer["failed"] and f"{path}:" in answer["msg"] and "column 1: event has no field 'isFatall'" in answer["msg"]
    )
    assert answer["problems"][0]["code"] == "bad-expression" and answer["problems"][0]["line"] > 1


def record(folder: Path) -> Path:
    lines = [json.dumps(made.event(f"n{number}")) for number in range(3)]
    (folder / "events-2026-11-28.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "events-2026-11-29.jsonl").write_text(json.dumps({"HealthEvent": XID}) + '\n{"half": ')
    (folder / "quarantine.json").write_text(json.dumps({"decision": {"gates": [{"node": "n0"}]}}))
    return folder


def test_a_record_is_tried(capsys, tmp_path):
    names = ["n0", "n1", "n2", "gpu-7"]
    answer = ask(capsys, events=str(record(tmp_path)), nodes=names)
    tried = answer["backtest"]
    assert sorted(gate["node"] for gate in tried["timeline"]) == ["gpu-7", "n0"]
    assert [(trip["scope"], trip["bound"]) for trip in tried["trips"]] == [("fleet", 1)]
    assert [Path(one["source"]).name for one in answer["unparsed"]] == ["events-2026-11-29.jsonl"]
    assert any("would have tripped 1 time" in line for line in tried["summary"])


@pytest.mark.parametrize("kind", ["names", "facts", "kubectl", "snapshot"])
def test_inventories(capsys, tmp_path, kind):
    labels = {made.CLIQUE: "rack-1"}
    given = {
        "names": ["n0", "n1"],
        "facts": made.nodes(2, "rack-1"),
        "kubectl": {"kind": "List", "items": [{"metadata": {"name": f"n{n}", "labels": labels}} for n in range(2)]},
        "snapshot": {
            "apiVersion": "goodput.fleet/v1alpha1",
            "kind": "Snapshot",
            "metadata": {"name": "prod"},
            "spec": {
                "parts": {
                    part: {"status": "ok"}
                    for part in ("server", "nodes", "releases", "argocd", "flux", "workloads", "crds")
                },
                "server": {},
                "nodes": [{"name": f"n{n}", "labels": labels, "taints": ["a=b:NoSchedule"]} for n in range(2)],
                "releases": [],
                "workloads": [],
                "crds": [],
            },
        },
    }[kind]
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(given))
    policy = made.document(made.rule(expression="event.isFatal && node.unschedulable == false"))
    for nodes in (given, str(path)):
        tried = ask(capsys, policy=policy, events=[made.event("n1")], nodes=nodes)["backtest"]
        domain = "node=n1" if kind == "names" else f"{made.CLIQUE}=rack-1"
        assert [(gate["node"], gate["domain"]) for gate in tried["timeline"]] == [("n1", domain)]
        assert tried["nodes"] == 2


def test_without_an_inventory_it_says_what_it_took(capsys):
    answer = ask(capsys, events=[made.event("n1")])
    assert any("no inventory was given" in line for line in answer["backtest"]["summary"])
    assert answer["backtest"]["nodes"] == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "/nowhere.yaml"}, "/nowhere.yaml: no such file"),
        ({"policy": 5}, "a policy is a path or a map, not a int"),
        ({"events": "/nowhere"}, "/nowhere: cannot be read"),
        ({"events": [5]}, "events: '5' is no path and no event"),
        ({"events": [], "nodes": 7}, "nodes: '7' is no inventory"),
        ({"events": [], "nodes": [{"a": 1}]}, "nodes[0]: is no node"),
        ({"events": [], "nodes": [{"name": "a", "labels": "x"}]}, "nodes[0].labels: 'x' does not belong here (a map)"),
        ({"events": [], "nodes": [{"name": "a", "labels": {"x": 5}}]}, "nodes[0].labels.x: '5'"),
        ({"events": [], "nodes": [{"name": "a", "taints": [5]}]}, "nodes[0].taints[0]: '5'"),
        ({"events": [], "nodes": [{"name": "a", "taints": [None]}]}, "nodes[0].taints[0]: 'nothing'"),
        ({"events": [], "nodes": [{"name": "a", "gates": [{"rule": "x"}]}]}, "nodes[0].gates[0].owner: is missing"),
        ({"events": [], "nodes": [{"name": "a", "conditions": ["x"]}]}, "nodes[0].conditions: "),
        ({"events": [], "nodes": [{"metadata": {"name": "a", "labels": 5}}]}, "nodes[0].metadata.labels: '5'"),
        ({"events": [], "nodes": [{"metadata": {"name": "a"}, "spec": 5}]}, "nodes[0].spec: '5'"),
        (
            {"events": [], "nodes": [{"metadata": {"name": "a"}, "status": {"conditions": [5]}}]},
            "nodes[0].status.conditions[0]: '5'",
        ),
        ({"events": [], "nodes": "/nowhere"}, "/nowhere: cannot be read"),
        ({"events": [], "step": "soon"}, "step: is 'soon', which is no duration"),
        ({"events": [], "repair": "0h"}, "repair: is '0h', which is no duration"),
        ({"events": [], "step": "1d"}, "step: is 1d, which passes over events"),
        ({"events": [], "catalog": ["/nowhere"]}, "no signal tables"),
    ],
)
def test_bad_input_is_one_clear_error(capsys, given, words):
    answer = ask(capsys, **given)
    assert answer["failed"] and words in answer["msg"]


def test_nested_nonsense_is_one_clear_error(capsys, tmp_path):
    path = tmp_path / "nodes.json"
    path.write_text("[" * 100_000)
    assert "malformed JSON" in ask(capsys, events=[], nodes=str(path))["msg"]


def test_a_directory_without_events(capsys, tmp_path):
    assert "is a directory without events" in ask(capsys, events=str(tmp_path))["msg"]


def test_in_a_play_shipped_policies_go_by_name(tmp_path):
    command = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-m", "goodput.fleet.quarantine_policy_info"]
    command += ["-a", "policy=gpu-health-monitor"]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"), "ANSIBLE_HOME": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **paths}, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    assert '"key": "nvidia.com/gpu-error"' in run.stdout
