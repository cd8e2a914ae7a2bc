"""Whatever a HealthEvent or a node may say by its schema, a decision comes out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.backtest import backtest, summary
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.decide import decide
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import made

WORD = st.sampled_from(
    ["79", "45", "DCGM_FR_XID_ERROR", "x", "0", "é" * 30, "-1", "1e3", " ", "*", "PCI", "kernel-log"]
)
TIME = st.sampled_from(
    [
        None,
        made.at(1),
        made.at(100),
        "2026-02-31T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:60.999999999Z",
        "2026-11-29T17:59:60Z",
    ]
)
KEYS = ("class", "consequenceOf", "within", "causeCode", "overrides", "clears", "kernelTime", "lastKernelTime", "count")
TEXTS = ("application", "recovery", "*", "48,94", ",", "gpu", "domain", "true", "1.5", "1e999", "-5", "nan", "", "x")
SPEC = st.fixed_dictionaries(
    {
        "nodeName": st.sampled_from(["n0", "n1", "elsewhere"]),
        "agent": WORD,
        "componentClass": st.sampled_from(["GPU", "NODE"]),
        "checkName": WORD,
        "isFatal": st.booleans(),
        "isHealthy": st.booleans(),
    },
    optional={
        "state": st.sampled_from(healthevent.STATES),
        "severity": st.sampled_from(healthevent.SEVERITIES),
        "errorCode": st.lists(WORD, max_size=3),
        "codeSpace": st.sampled_from(healthevent.CODE_SPACES),
        "entitiesImpacted": st.lists(st.fixed_dictionaries({"entityType": WORD, "entityValue": WORD}), max_size=3),
        "recommendedAction": st.sampled_from(healthevent.ACTIONS),
        "message": st.text(max_size=20),
        "generatedTimestamp": TIME,
        "receivedTimestamp": TIME,
        "bootId": st.sampled_from([None, "boot-1", "before:boot-1", "x"]),
        "source": st.sampled_from([{"name": "a"}, {"name": "a", "line": None, "text": "b"}]),
        "cause": st.sampled_from([None, "e"]),
        "metadata": st.dictionaries(st.sampled_from(KEYS), st.sampled_from(TEXTS), max_size=5),
    },
)
NODES = [{"name": "n0"}, {"name": "n1", "labels": {made.CLIQUE: "a"}, "bootId": None, "gates": None, "taints": None}]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(SPEC, max_size=8))
def test_any_event(specs):
    head = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "HealthEvent"}
    events = [{**head, "metadata": {"name": f"e{number}"}, "spec": spec} for number, spec in enumerate(specs)]
    for event in events:
        assert schema.validate(yamltree.Document(event, {}, "e"), "HealthEvent") == []
    policy = made.policy(
        made.rule(expression="event.isFatal || event.errorCode.size() > 1 || now < event.receivedTimestamp")
    )
    decision = decide(policy, events, NODES, [], made.NOW)
    json.dumps(decision)
    told = {name for incident in decision["incidents"] for name in (incident["cause"], *incident["attached"])}
    told |= {one["event"] for part in ("ignored", "unknown") for one in decision[part]}
    sick = {event["metadata"]["name"] for event in events if not event["spec"]["isHealthy"]}
    sick -= {event["metadata"]["name"] for event in events if event["spec"].get("state") == "healthy"}
    assert sick <= told  # nothing is dropped without a word
    assert summary(backtest(policy, events, NODES))


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456),
        ("1970-01-01T00:00:60Z", 60_000_000),
        ("2026-02-30T00:00:00Z", None),
        ("9999-01-01T00:00:00Z", None),
        ("1970-01-01T00:00:01+00:00", None),
        ("", None),
        (None, None),
    ],
)
def test_times(text, micros):
    assert moments.micros(text) == micros


def test_durations():
    assert [moments.seconds(text) for text in ("90s", "10m", "1h30m", "2d")] == [90, 600, 5400, 172800]
    assert [moments.spell(count) for count in (90, 600, 5400, 172800, 0)] == ["1m30s", "10m", "1h30m", "2d", "0s"]
