"""A node is said to be off only with proof, and what was said is taken back when it has booted."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import model, outofservice

NOW = datetime(2026, 3, 6, 9, 41, tzinfo=UTC)
PROOF = {"source": "bmc", "at": "2026-03-06T09:40:30Z", "off": True}


def node(ready: str = "Unknown", boot: str = "b1", **more) -> dict:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": "2026-03-06T09:35:00Z"}
    status = {"conditions": [condition], "nodeInfo": {"bootID": boot}}
    taints = [{"key": "gate.goodput.fleet/quarantine", "effect": "NoSchedule"}]
    return {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {"taints": taints},
        "status": status,
        **more,
    }


def test_the_taint_comes_beside_others_with_what_proved_it():
    change = outofservice.marked(node(), {**PROOF, "uid": "u", "bootId": "b1"}, NOW)
    assert change.status == "held" and change.patch["metadata"]["resourceVersion"] == "7"
    assert [each["key"] for each in change.patch["spec"]["taints"]][1:] == ["node.kubernetes.io/out-of-service"]
    note = json.loads(change.patch["metadata"]["annotations"][outofservice.ANNOTATION])
    assert note == {"source": "bmc", "at": PROOF["at"], "bootId": "b1"}
    there = model.applied(node(), change.patch)
    assert outofservice.marked(there, PROOF, NOW).status == "unchanged"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"off": False}, "no proof"),
        ({"off": "true"}, "no proof"),
        ({"source": ""}, "no proof"),
        ({"at": ""}, "no time"),
        ({"at": "2026-03-06T09:40:30"}, "no time"),
        ({"at": "2026-03-06T09:20:00Z"}, "not now"),
        ({"at": "2026-03-06T09:50:00Z"}, "not now"),
        ({"at": "2026-03-06T09:34:00Z"}, "after the proof"),
        ({"uid": "other"}, "another node"),
        ({"bootId": "b0"}, "booted since"),
    ],
)
def test_what_is_no_proof(change, words):
    found = outofservice.marked(node(), {**PROOF, **change}, NOW)
    assert found.status == "refused" and words in found.reason and found.patch is None


def test_a_node_that_is_ready_is_not_off():
    assert outofservice.marked(node("True"), PROOF, NOW).reason == "it is Ready"


@pytest.mark.parametrize(
    ("ready", "boot", "status"),
    [("Unknown", "b1", "unchanged"), ("True", "b1", "refused"), ("True", "", "refused"), ("True", "b2", "released")],
)
def test_it_is_taken_back_when_the_node_has_booted(ready, boot, status):
    said = model.applied(node(), outofservice.marked(node(), PROOF, NOW).patch)
    now = {**node(ready, boot), "metadata": said["metadata"], "spec": said["spec"]}
    change = outofservice.cleared(now)
    assert change.status == status
    if status == "released":
        assert [each["key"] for each in change.patch["spec"]["taints"]] == ["gate.goodput.fleet/quarantine"]
        assert change.patch["metadata"]["annotations"] == {outofservice.ANNOTATION: None}


def test_what_somebody_else_said_stays():
    theirs = node("True", "b2", spec={"taints": [dict(outofservice.TAINT)]})
    assert outofservice.cleared(theirs).patch is None and outofservice.clear(None, {"n": theirs}) == []


def test_a_note_whose_taint_somebody_took_off_goes():
    said = model.applied(node(), outofservice.marked(node(), PROOF, NOW).patch)
    change = outofservice.cleared({**said, "spec": {}})
    assert change.status == "released" and change.patch["spec"] == {"taints": None}
