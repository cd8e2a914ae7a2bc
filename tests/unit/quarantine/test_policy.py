"""Policies: what is refused, where the error is said to be, and what is filled in."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import policy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

from . import made

SHIPPED = sorted((Path(__file__).parents[3] / "gitops/catalog/policies").glob("*.yaml"))
TAINT, UNSCHEDULABLE = "gate: {{taint: {{key: {}, effect: NoSchedule}}}}", "node.kubernetes.io/unschedulable"
HEAD = """\
apiVersion: goodput.fleet/v1alpha1
kind: QuarantinePolicy
metadata: {name: x}
spec:
"""


def refused(text: str) -> str:
    with pytest.raises(InvalidDocument) as caught:
        policy.load(text, "p.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("event.isFatall", "column 1: event has no field 'isFatall' (did you mean 'isFatal'?"),
        ("event.isFatal && evnt.isFatal", "column 18: there is no variable 'evnt.isFatal' (did you mean 'event'?"),
        ("true && node.label['a'] == 'b'", "column 9: node has no field 'label' (did you mean 'labels'?"),
        ("event.isFatal &&", "column 17: ends too early"),
        ("(event.isFatal", "ends too early"),
        ("event.errorCode == '79'", "column 17: == does not work on (list(string), string)"),
        ("event.isFatal == 'true'", "== does not work on (bool, string)"),
        ("history.sameCode24h > '3'", "> does not work on (int, string)"),
        ("event.agent", "gives string, not true or false"),
        ("event", "event can be used by its fields only"),
        ("event.agent.startWith('gpu')", "column 13: there is no function 'startWith'"),
        ("fatal(event.isFatal)", "column 1: there is no function 'fatal'"),
        ("event.isFatal and true", "syntax error"),
        ("'79' in event.errorCode)", "column 24: syntax error"),
        ("event.agent == 'kernel", "syntax error"),
        ("now > 5", "does not work on (google.protobuf.Timestamp, int)"),
    ],
)
def test_a_broken_rule_is_refused_with_its_place(expression, words):
    quoted = expression.replace('"', '\\"')
    error = refused(f'{HEAD}  rules:\n    - name: a\n      expression: "{quoted}"\n')
    assert error.startswith("p.yaml:7: spec.rules[0].expression: rule a: ")
    assert words in error


def test_every_broken_rule_is_told_at_once_with_line_and_column():
    error = refused(
        f"{HEAD}  rules:\n"
        "    - name: a\n      expression: |\n        event.isFatal\n        && event.isFatl\n"
        "    - name: a\n      expression: 'true &&'\n"
    )
    first, second, third = error.splitlines()
    assert "p.yaml:7" in first and "rule a: line 2, column 4: event has no field 'isFatl'" in first
    assert "p.yaml:10" in second and "there are two rules 'a' (first on line 6)" in second
    assert "p.yaml:11" in third and "ends too early" in third


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("  rules: []\n", "must not be empty"),
        ("  rulez: []\n", "unknown key 'rulez' (did you mean 'rules'?"),
        ("  mode: enforced\n  rules: [{name: a, expression: 'true'}]\n", "did you mean 'enforce'?"),
        ("  maxAge: 0h\n  rules: [{name: a, expression: 'true'}]\n", "maxAge"),
        ("  maxAge: 60\n  rules: [{name: a, expression: 'true'}]\n", "60 is an integer, not a string"),
        ("  breaker: {fleet: {max: 0}}\n  rules: [{name: a, expression: 'true'}]\n", "spec.breaker.fleet.max"),
        ("  breaker: {fleet: {percent: 101}}\n  rules: [{name: a, expression: 'true'}]\n", "breaker.fleet.percent"),
        ("  breaker: {domain: {label: a b}}\n  rules: [{name: a, expression: 'true'}]\n", "breaker.domain.label"),
        ("  rules: [{name: a, expression: ''}]\n", "spec.rules[0].expression"),
        ("  rules: [{name: a, expression: true}]\n", "put it in quotes"),
        ("  rules: [{name: a}]\n", "'expression' is missing"),
        ("  rules: [{name: a, expression: 'true', gate: {taint: {key: a, effect: NoRun}}}]\n", "NoExecute"),
        ("  rules: [{name: a, expression: 'true', gate: {taint: null}}]\n", "spec.rules[0].gate.taint"),
        (
            f"  rules: [{{name: a, expression: 'true', {TAINT.format('a..b/c')}}}]\n",
            "'a..b/c' is not the key of a taint",
        ),
        (f"  rules: [{{name: a, expression: 'true', {TAINT.format('a.-b/c')}}}]\n", "spec.rules[0].gate.taint.key"),
        (f"  rules: [{{name: a, expression: 'true', {TAINT.format(UNSCHEDULABLE)}}}]\n", "node controller's own taint"),
        ("  rules: [{name: a, expression: 'true', gate: {owner: A_b}}]\n", "spec.rules[0].gate.owner"),
        ("  rules: [{name: a, expression: 'true', classes: [applications]}]\n", "did you mean 'application'?"),
    ],
)
def test_bad_fields(spec, words):
    assert words in refused(HEAD + spec)


def test_what_is_no_policy():
    with pytest.raises(NotFound, match="no such file"):
        policy.load("/nowhere/policy.yaml")
    with pytest.raises(InvalidDocument, match="a path or a map, not a list"):
        policy.load([])
    with pytest.raises(InvalidDocument, match="malformed YAML"):
        policy.load("a: [\n", "p.yaml")
    assert "a QuarantinePolicy belongs here" in refused("apiVersion: goodput.fleet/v1alpha1\nkind: Overlay\n")


def test_defaults_are_safe():
    document = made.document()
    del document["spec"]["mode"]
    found = policy.load(document)
    assert found.mode == "observe"
    assert (found.max_age, found.breaker.window) == (3600, 3600)
    assert found.breaker.fleet == policy.Bound(20, 5) and found.breaker.domain == policy.Bound(2, 50)
    rule = found.rules[0]
    assert rule.owner == "quarantine" and rule.cordon is False
    assert rule.taint == {"key": "gate.goodput.fleet/quarantine", "value": "fatal", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("bound", "nodes", "most"),
    [
        (policy.Bound(20, 5), 8, 1),
        (policy.Bound(20, 5), 100, 5),
        (policy.Bound(20, 5), 5000, 20),
        (policy.Bound(None, 10), 39, 3),
        (policy.Bound(None, 0.1), 3, 1),
        (policy.Bound(None, 29), 100, 29),
        (policy.Bound(7, None), 3, 3),
        (policy.Bound(2, 50), 1, 1),
    ],
)
def test_bounds(bound, nodes, most):
    assert bound.of(nodes) == most


def test_rules_are_asked_by_priority_and_digests_follow_the_content():
    low, high = made.rule("low", priority=1), made.rule("high", priority=9)
    found = made.policy(low, high)
    assert [rule.name for rule in found.rules] == ["high", "low"]
    again = made.policy(high, {**low, "expression": "event.isFatal || false"})
    assert again.rules[0].digest == found.rules[0].digest
    assert again.rules[1].digest != found.rules[1].digest and again.digest != found.digest


def test_a_cap_lowers_and_never_raises():
    assert made.policy(mode="enforce").capped("dry_run").mode == "dry_run"
    assert made.policy(mode="observe").capped("enforce").mode == "observe"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_policies_load_and_only_watch(path):
    found = policy.load(str(path))
    assert found.name == path.stem and found.mode == "observe"
