"""Checks that users write: only true passes."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.health import checks
from ansible_collections.goodput.fleet.plugins.module_utils.health.evaluate import evaluate
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.health.things import component, objects


def policy(name="cluster-policy", **status) -> dict:
    return {"metadata": {"name": name}, "status": status}


def judge(answer: dict, expression="status.state == 'ready'", **more) -> tuple[str, list[dict]]:
    check = {
        "name": "policy-ready",
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "plural": "clusterpolicies",
        "namespaced": False,
        "expression": expression,
        **more,
    }
    judged = component(health={"workloads": [], "checks": [check]})
    result = evaluate([judged], objects(checks={checks.key(judged, check): answer}))[0]
    return result["status"], result["reasons"]


@pytest.mark.parametrize(
    ("status", "expression", "verdict", "words"),
    [
        ({"state": "ready"}, "status.state == 'ready'", "healthy", ""),
        ({"state": "notReady"}, "status.state == 'ready'", "unhealthy", "is false"),
        ({}, "status.ready", "unhealthy", "gives null"),
        ({"ready": 3}, "status.ready", "unhealthy", "gives 3"),
        ({"text": "x" * 500}, "status.text", "unhealthy", "..."),
        ({"ready": "3"}, "status.ready > `2`", "unhealthy", "not supported between"),
        (
            {"conditions": [{"type": "Ready", "status": "True"}]},
            "length(status.conditions[?type=='Ready' && status=='True']) == `1`",
            "healthy",
            "",
        ),
        ({}, "length(status.conditions) == `1`", "unhealthy", "cannot be evaluated"),
    ],
)
def test_only_true_passes(status, expression, verdict, words):
    found, reasons = judge({"items": [policy(**status)]}, expression)
    assert found == verdict
    assert all(words in reason["message"] for reason in reasons)


def test_all_objects_must_pass_or_any():
    items = {"items": [policy("a", state="ready"), policy("b", state="bad")]}
    found, reasons = judge(items)
    assert found == "unhealthy" and [r["object"] for r in reasons] == ["ClusterPolicy/b"]
    assert judge(items, match="any") == ("healthy", [])
    assert judge({"items": [policy("a", state="bad")]}, match="any")[0] == "unhealthy"


@pytest.mark.parametrize("answer", [{"items": []}, {"items": [], "absent": True}])
def test_no_object_fails_unless_optional(answer):
    found, reasons = judge(answer)
    assert found == "unhealthy" and reasons[0]["code"] == "check-no-object"
    assert judge(answer, optional=True) == ("healthy", [])


def test_denied_is_unknown():
    assert judge({"error": {"code": "denied", "message": "forbidden"}})[0] == "unknown"


def test_bad_expressions_are_all_named_with_their_place():
    bad = [
        {"name": "a", "apiVersion": "v1", "kind": "Node", "expression": "status.state =="},
        {"name": "b", "apiVersion": "v1", "kind": "Node", "expression": "status[?"},
        {"name": "c", "apiVersion": "v1", "kind": "Node", "expression": "status.ok"},
    ]
    with pytest.raises(InvalidDocument) as caught:
        checks.compile_all([component(health={"checks": bad})])
    assert [problem.path for problem in caught.value.problems] == [
        "gpu-operator.health.checks[0].expression",
        "gpu-operator.health.checks[1].expression",
    ]
    assert "at position" in str(caught.value)
