"""What people may write in node_gate's options, and what they are told."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates import report, request
from ansible_collections.goodput.fleet.plugins.module_utils.records import taints
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.gates.nodes import FATAL, gate, node
from tests.unit.gates.test_model import held

SHARED = {"owner": "manual", "reason": "why"}


def test_names_and_maps_become_wants():
    entries = ["a", {"name": "b", "boot_id": "x", "rule_digest": "sha256:1", "cordon": True}, "a"]
    assert request.for_entries(entries, SHARED, "held") == [
        {**SHARED, "node": "a"},
        {**SHARED, "node": "b", "bootId": "x", "ruleDigest": "sha256:1", "cordon": True},
    ]
    assert request.common({"owner": "manual", "rule_digest": "d", "reason": None, "force": True, "nodes": []}) == {
        "owner": "manual",
        "ruleDigest": "d",
        "force": True,
    }


@pytest.mark.parametrize(
    ("entries", "shared", "says"),
    [
        (["a"], {**SHARED, "owner": "Ops Team"}, r"^owner: 'Ops Team' is not the name of an owner"),
        (["a"], {**SHARED, "owner": "x" * 64}, "is not the name of an owner"),
        (["a", "b"], {"owner": "manual"}, r"^reason: a gate needs a reason \([^\n]*$"),
        (["a"], {"owner": "manual", "reason": " \n\t\x00"}, r"^reason: a gate needs a reason \([^\n]*$"),
        ([7], SHARED, r"nodes\[0\]: 7 is neither a name nor a map"),
        ([""], SHARED, r"nodes\[0\].name: '' is not the name of a node"),
        (["../secrets"], SHARED, "is not the name of a node"),
        ([{"name": "a", "nmae": 1}], SHARED, r"nodes\[0\].nmae: is not known here \(did you mean 'name'"),
        ([{"name": "a", "reason": 7}], SHARED, r"nodes\[0\].reason: is 7, not a text"),
        ([{"name": "a", "boot_id": "x" * 300}], SHARED, r"nodes\[0\].boot_id: is too long"),
        (["a", {"name": "a", "cordon": True}], SHARED, r"nodes\[1\]: node a is there before, with other values"),
        ([{"name": "a", "cordon": "maybe"}], SHARED, r"nodes\[0\].cordon: is 'maybe' \(true or false\)"),
        (["a"], {**SHARED, "taint": {"key": "a b", "effect": "NoSchedule"}}, r"^taint.key: 'a b' is not the key"),
        (["a"], {**SHARED, "taint": {"key": "Ex.com/a", "effect": "NoSchedule"}}, "is not the key of a taint"),
        (["a"], {**SHARED, "taint": {"key": "x/" + "a" * 64, "effect": "NoSchedule"}}, "is not the key of a taint"),
        (["a"], {**SHARED, "taint": {"key": "a", "value": "b c", "effect": "NoSchedule"}}, r"^taint.value: 'b c'"),
        (["a"], {**SHARED, "taint": {"key": "a", "effect": "NoSchedul"}}, "did you mean 'NoSchedule'"),
        (["a"], {**SHARED, "taint": {"key": "a", "effekt": "NoSchedule"}}, r"^taint.effekt: is not part of a taint"),
        (
            ["a"],
            {**SHARED, "taint": {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}},
            "is the node controller's own taint",
        ),
    ],
)
def test_what_is_wrong_is_said_once_and_where(entries, shared, says):
    with pytest.raises(InvalidDocument, match=says):
        request.for_entries(entries, shared, "held")


def test_everything_that_is_wrong_is_said_at_once():
    with pytest.raises(InvalidDocument) as caught:
        request.for_entries([1, {"name": "b", "x": 1}, ""], {"owner": "?"}, "held")
    assert len(caught.value.problems) == 3


def test_a_release_needs_no_reason_and_takes_odd_owners():
    assert request.for_entries(["a"], {"owner": "Made_by.hand"}, "released")[0]["owner"] == "Made_by.hand"
    with pytest.raises(InvalidDocument, match=r"^owner: "):
        request.for_entries(["a"], {"owner": "no/such"}, "released")


def test_by_selector_a_release_is_for_nodes_that_have_the_gate():
    nodes = [held(node("a"), gate("manual")), held(node("b"), gate("other")), node("c")]
    assert [want["node"] for want in request.for_nodes(nodes, SHARED, "held")] == ["a", "b", "c"]
    assert [want["node"] for want in request.for_nodes(nodes, SHARED, "released")] == ["a"]
    with pytest.raises(InvalidDocument, match=r"^owner: "):
        request.for_nodes([], {"owner": "", "reason": "x"}, "held")


@pytest.mark.parametrize(
    "good",
    [
        FATAL,
        {"key": "dedicated", "effect": "NoExecute"},
        {"key": "a.b-c.io/X_y.z", "value": "1", "effect": "PreferNoSchedule"},
    ],
)
def test_taints_that_kubernetes_takes(good):
    assert taints.problems(good) == []


def test_a_default_taint_is_always_valid():
    for reason in ("", "Xid 79: the GPU fell off the bus!", "ü" * 200, "-" * 100, "a" * 63 + " b", "9" * 200):
        assert taints.problems(gates.default_taint("x" * 63, reason)) == []


def result(name: str, status: str, reason: str = "") -> dict:
    return {"node": name, "status": status, "reason": reason}


def test_the_message_counts_and_names_what_went_wrong():
    results = [result("a", "held"), result("b", "held"), result("c", "failed", "there is no such node")]
    assert request.summary(results, False) == "2 nodes held, 1 node failed: c (there is no such node)"
    assert request.summary(results[:1], True) == "1 node would be held"
    assert request.summary([], False) == "no node to work on"
    many = [result(f"n{index}", "failed", "no") for index in range(7)]
    assert request.summary(many, False).endswith("n4 (no); and 2 more")


def test_a_report_counts_and_picks():
    nodes = [held(node("b"), gate("manual"), gate()), node("a"), node("c", unschedulable=True)]
    found = report.describe(nodes)
    assert [each["name"] for each in found] == ["a", "b", "c"]
    assert report.counts(found) == {"nodes": 3, "open": 1, "gated": 1, "external": 1, "notReady": 0}
    assert report.owners(found) == {"manual": 1, "quarantine": 1}
    picked = {
        which: [each["name"] for each in report.only(found, which)] for which in ("all", "gated", "closed", "open")
    }
    assert picked == {"all": ["a", "b", "c"], "gated": ["b"], "closed": ["b", "c"], "open": ["a"]}
    assert [each["name"] for each in report.only(found, owner="manual")] == ["b"]
