# ruff: noqa: E501
"""What holds for whatever is given as conditions, notices or events: whole events or a reason, never a traceback."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import cloud, conditions, dates, given
from hypothesis import example, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from tests.unit.signals.shipped import TABLES

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
PARSERS = [conditions.parse, cloud.parse, given.parse]
WORDS = [
    "apiVersion",
    "goodput.fleet/v1alpha1",
    "v1",
    "kind",
    "Node",
    "NodeList",
    "HealthEvent",
    "metadata",
    "name",
    "items",
    "status",
    "conditions",
    "type",
    "reason",
    "message",
    "nodeInfo",
    "bootID",
    "lastTransitionTime",
    "lastHeartbeatTime",
    "True",
    "False",
    "Unknown",
    "Ready",
    "XidCriticalError",
    "XIDError",
    "GpuMemWatch",
    "GpuMemWatchIsNotHealthy",
    "SysLogsXIDError",
    "Code",
    "EventId",
    "NotBefore",
    "State",
    "completed",
    "Events",
    "DocumentIncarnation",
    "EventType",
    "Resources",
    "Preempt",
    "detail",
    "detail-type",
    "eventTypeCode",
    "affectedEntities",
    "entityValue",
    "InstanceStatuses",
    "InstanceId",
    "resourceStatus",
    "upcomingMaintenance",
    "upcoming_maintenance",
    "maintenanceReasons",
    "windowStartTime",
    "protoPayload",
    "methodName",
    "agent",
    "checkName",
    "nodeName",
    "isFatal",
    "isHealthy",
    "errorCode",
    "entitiesImpacted",
    "entityType",
    "recommendedAction",
    "generatedTimestamp",
    "seconds",
    "nanos",
    "$date",
    "processingStrategy",
    "spec",
    "events",
    "healthevent",
    "instance-id",
    "action",
    "terminate",
    "time",
]
TEXTS = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(['{"79":true}', "ErrorCode:79 PCI:0:1:0 Recommended Action=NONE;", "Xid: 79", "2026-03-06T09:34:56Z", "NONE", "\ud800"]),
    st.text(max_size=20),
)  # fmt: skip
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=6)),
    max_leaves=25,
)
LINES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        JSON.map(lambda data: json.dumps(data).encode()),
        st.sampled_from(
            [
                b"Name:  gpu-1",
                b"Conditions:",
                b"  Type  Status  LastHeartbeatTime  Reason",
                b"  KernelDeadlock  True  Thu, 30 Oct 2025 19:26:44 -0400  Hung  x",
                b"Type:XIDError Status:True Reason:x Message:y",
                b"Type:XIDError Status:True",
                b"GpuMemWatch = True reason=x",
                b'Conditions: [{"type":"Ready","status":"True"}]',
                b"  Boot ID:  abc",
                b"maintenance_status PENDING",
                b"window_start_time 2024-07-29T14:19:57+00:00",
                b'"Upcoming maintenance": {',
                b"---",
                b"- a: &x 1",
                b"- *x",
                b"kind: Node",
                b"conditions:",
            ]
        ),
    ),
    max_size=12,
)


def check(result: dict) -> None:
    assert all(GOOD(event) for event in result["events"])
    assert len(result["unparsed"]) <= result["unparsedTotal"]
    for event in result["events"]:
        spec = event["spec"]
        assert not (spec["isFatal"] and (spec["isHealthy"] or spec["state"] != "sick"))
    json.dumps(result)


@pytest.mark.parametrize("parser", PARSERS)
@settings(max_examples=150)
@drawn(JSON)
def test_no_data_raises_but_for_what_is_neither_text_nor_data(parser, value):
    try:
        result = parser(value, tables=TABLES, node="here", received="2026-11-29T18:00:00Z")
    except FleetError:
        assert not isinstance(value, (str, dict, list))
        return
    check(result)


@pytest.mark.parametrize("parser", PARSERS)
@settings(max_examples=150)
@drawn(LINES)
def test_no_bytes_raise(parser, lines):
    check(parser(b"\n".join(lines), tables=TABLES, node="here"))


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "value",
    ["[" * 50_000, "{" * 50_000, "- " * 5_000, '{"a":' * 50_000, "9" * 10_000, '{"a":' + "9" * 10_000 + "}", "\ud800", "a: 1e999"],
)  # fmt: skip
def test_texts_made_to_hurt(parser, value):
    check(parser(value, tables=TABLES, node="here"))


@drawn(st.one_of(TEXTS, JSON))
@example(10**30)
@example(float("inf"))
@example({"seconds": 10**40})
@example({"$date": {"$date": {"$date": 1}}})
@example("9999-12-31T23:59:59-23:59")
@example("9" * 18)
def test_no_time_raises(value):
    found = dates.utc(value)
    assert found is None or found.endswith("Z")


@settings(max_examples=100)
@drawn(st.dictionaries(TEXTS, JSON, max_size=4), st.sampled_from(["True", "False", "Unknown"]), TEXTS, TEXTS, TEXTS)
def test_no_condition_with_a_type_is_dropped(extra, status, kind, reason, message):
    kind = kind.strip() or "Odd"
    node = {"metadata": {"name": "n"}, "status": {"capacity": {}, "conditions": [{**extra, "type": kind, "status": status, "reason": reason, "message": message}]}}  # fmt: skip
    result = conditions.parse(node, tables=TABLES)
    check(result)
    assert result["events"] and not result["unparsed"]
