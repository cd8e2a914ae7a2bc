"""What would this policy have done last month?"""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.backtest import backtest, summary
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from . import made

DAY = 24 * 60


def test_a_month_of_events():
    events = [
        made.event("n0", minutes=30 * DAY, bootId="boot-of-then"),
        made.event("n0", minutes=20 * DAY, bootId="another"),
        made.event("n1", minutes=10 * DAY),
        made.event("n2", "13", minutes=5 * DAY),
        made.event("n3", minutes=0),
        made.event("elsewhere", minutes=DAY),
    ]
    result = backtest(made.policy(mode="observe"), events, made.nodes(4))
    assert [(gate["node"], gate["rule"], gate["code"]) for gate in result["timeline"]] == [
        ("n0", "fatal", "Xid 79"),
        ("n0", "fatal", "Xid 79"),
        ("n1", "fatal", "Xid 79"),
        ("n3", "fatal", "Xid 79"),
    ]
    assert (result["wouldGate"], result["gatedNodes"], result["days"]) == (4, 3, 30.0)
    assert result["byRule"] == {"fatal": {"gates": 4, "nodes": 3}} and result["trips"] == []
    assert result["ignored"] == {"the inventory has no node of this name: another cluster's, or gone": 1}
    text = summary(result)
    assert "6 events over 30 days, 4 nodes: 4 gates on 3 nodes, 0.13 a day" in text
    assert "the breaker would not have tripped" in text


def test_a_node_under_repair_is_not_gated_again():
    events = [made.event("n0", minutes=minutes) for minutes in (300, 200, 100, 0)]
    assert backtest(made.policy(), events, made.nodes(1))["wouldGate"] == 2
    assert backtest(made.policy(), events, made.nodes(1), repair=60)["wouldGate"] == 4


def test_the_same_evidence_gates_once_however_quick_the_repair():
    assert (
        backtest(made.policy(), [made.event(minutes=5), made.event("n1", minutes=0)], made.nodes(2), repair=60)[
            "wouldGate"
        ]
        == 2
    )


def storm(count: int) -> list[dict]:
    return [made.event(f"n{number}", name=f"e{number:03}", minutes=DAY) for number in range(count)]


def test_when_the_breaker_would_have_tripped():
    policy = made.policy(maxAge="30m", breaker={"fleet": {"max": 14}, "domain": {"max": 18}})
    result = backtest(policy, [*storm(288), made.event("n5", minutes=0)], made.nodes(288))
    (trip,) = result["trips"]
    assert (trip["scope"], trip["used"], trip["bound"], len(trip["nodes"])) == ("fleet", 14, 14, 274)
    assert result["wouldGate"] == 14 + 1  # what was kept back is history when the window moves on
    assert "the breaker would have tripped 1 time" in summary(result)
    assert len(result["blockedNodes"]) == 274


def test_nodes_that_wait_are_gated_when_the_window_moves_on():
    policy = made.policy(breaker={"window": "10m", "fleet": {"max": 1}, "domain": {"max": 1}})
    result = backtest(policy, [*storm(3), made.event("n9", minutes=0)], made.nodes(3))
    assert [(gate["at"], gate["node"]) for gate in result["timeline"]] == [
        ("2026-11-28T18:00:00Z", "n0"),
        ("2026-11-28T18:10:00Z", "n1"),
        ("2026-11-28T18:20:00Z", "n2"),
    ]
    assert [(trip["at"], trip["until"]) for trip in result["trips"]] == [
        ("2026-11-28T18:00:00Z", "2026-11-28T18:10:00Z")
    ]


def test_what_could_not_be_decided_is_counted_once_per_event():
    policy = made.policy(made.rule(expression="event.metadata.slot == '1'"))
    events = [made.event("n0", minutes=minutes) for minutes in (20, 10, 0)]
    blind = made.event("n0", None, state="unknown", minutes=3)
    result = backtest(policy, [*events, blind], made.nodes(1))
    assert [(one["rule"], one["events"]) for one in result["unknown"]] == [("fatal", 3), (None, 1)]
    assert "not decided: fatal: the key 'slot' is not there" in summary(result)


def test_rules_that_count_see_the_day_before():
    policy = made.policy(made.rule(expression="history.sameCode24h >= 3"))
    events = [made.event("n0", minutes=minutes) for minutes in (1200, 600, 0)]
    assert [gate["at"] for gate in backtest(policy, events, made.nodes(1))["timeline"]] == ["2026-11-29T18:00:00Z"]


def test_a_recording_of_years_is_looked_at_before_it_is_history():
    events = [made.event("n0", minutes=1000 * DAY), made.event("n1", minutes=500 * DAY), made.event("n2", minutes=0)]
    result = backtest(made.policy(), events, made.nodes(3))
    assert result["wouldGate"] == 3 and result["step"] == "15m"
    with pytest.raises(InvalidDocument, match="which passes over events"):
        backtest(made.policy(), events, made.nodes(3), step=3600)


def test_nothing_recorded():
    result = backtest(made.policy(), [], made.nodes(1))
    assert result["wouldGate"] == 0 and result["from"] is None and "0 events, 1 nodes" in summary(result)


def test_events_without_a_time_are_told():
    undated = made.event(receivedTimestamp=None)
    result = backtest(made.policy(), [undated, made.event("n1")], made.nodes(2))
    assert result["undated"] == 1 and [gate["node"] for gate in result["timeline"]] == ["n1"]
    assert "left out: 1 event without a time" in summary(result)
