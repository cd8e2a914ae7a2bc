"""What is suggested, and what may be done about it now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import maintenance
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.maintenance import Bounds
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.maintenance_window import is_open
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

ALL = Bounds(percent=None, domain_percent=None)


def node(number: int, **more: object) -> dict:
    return {
        "uid": f"uid-{number}",
        "bootId": f"boot-{number}",
        "ready": True,
        "gates": [],
        "external": [],
        "domain": f"rack-{number // 4}",
        "pods": [],
        **more,
    }


def fleet(count: int = 16, **changed: dict) -> dict[str, dict]:
    return {f"n{number}": node(number, **changed.get(f"n{number}", {})) for number in range(count)}


def finding(name: str, suggestion: str = "certify", metric: str = "bandwidth", entity: str = "") -> dict:
    return {
        "node": name,
        "entity": entity,
        "workload": "",
        "metric": metric,
        "suggestion": suggestion,
        "evidence": f"{metric} is worse",
    }


def plan(names: list, nodes: dict, bounds: Bounds = ALL, unknown: tuple = (), **how: bool) -> dict:
    findings = [each if isinstance(each, dict) else finding(each) for each in names]
    decision = {
        "findings": findings,
        "stale": [],
        "shifts": [],
        "unknown": [{"node": name, "why": ""} for name in unknown],
    }
    return maintenance.plan(decision, nodes, bounds, **how)


def acted(planned: dict) -> list[str]:
    return [one["node"] for one in planned["suggestions"] if one["act"]]


def why(planned: dict, name: str) -> str:
    return next(one["why"] for one in planned["suggestions"] if one["node"] == name)


HINDERED = [
    ({"gates": [{"owner": "quarantine", "evidence": "e"}]}, "the gate quarantine"),
    ({"external": ["a cordon set by kubectl"]}, "a cordon set by kubectl"),
    ({"ready": False}, "not ready"),
    ({"pods": ["train/job-0"]}, "in use by train/job-0"),
]


@pytest.mark.parametrize(("state", "words"), HINDERED)
def test_a_node_that_is_held_sick_or_busy_is_suggested_but_left_alone(state, words):
    planned = plan(["n1", "n2"], fleet(n1=state))
    assert acted(planned) == ["n2"] and words in why(planned, "n1")


def test_policy_may_allow_nodes_with_jobs():
    assert acted(plan(["n1"], fleet(n1={"pods": ["train/job-0"]}), busy=True)) == ["n1"]


def test_outside_a_window_nothing_is_done():
    planned = plan(["n1"], fleet(), in_window=False)
    assert not acted(planned) and "no maintenance window is open" in why(planned, "n1")


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (Bounds(nodes=2, percent=None, domain_percent=None), ["n0", "n1"]),
        (Bounds(nodes=0, percent=None, domain_percent=None), []),
        (Bounds(percent=25, domain_percent=None), ["n0", "n1", "n2", "n3"]),
        (Bounds(percent=5, domain_percent=None), ["n0"]),  # less than one node is one
        (Bounds(percent=0, domain_percent=None), []),
        (Bounds(percent=None, domain_percent=25), ["n0", "n4"]),
        (Bounds(percent=None, domain_percent=None, domain_nodes=2), ["n0", "n1", "n4", "n5"]),
        (Bounds(nodes=3, percent=50, domain_percent=50), ["n0", "n1", "n4"]),
    ],
)
def test_bounds_hold_over_the_fleet_and_in_each_domain(bounds, expected):
    planned = plan([f"n{number}" for number in range(8)], fleet(), bounds)
    assert acted(planned) == expected
    assert all(one["act"] or "out of service" in one["why"] for one in planned["suggestions"])


@pytest.mark.parametrize(
    "state", [{"ready": False}, {"external": ["a cordon"]}, {"gates": [{"owner": "manual", "evidence": ""}]}]
)
def test_whoever_took_nodes_out_they_count(state):
    nodes = fleet(n9=state, n4=state)
    assert acted(plan(["n0", "n1"], nodes, Bounds(nodes=2, percent=None, domain_percent=None))) == []
    assert acted(plan(["n0", "n5"], nodes, Bounds(percent=None, domain_nodes=1, domain_percent=None))) == ["n0"]


def test_the_strongest_suggestion_of_a_node_counts_and_watching_is_nothing_to_do():
    findings = [finding("n1", "watch"), finding("n1", "maintenance", "pcie_width", "GPU-1"), finding("n2", "watch")]
    planned = plan(findings, fleet())
    first, second = planned["suggestions"]
    assert first["suggestion"] == "maintenance" and "GPU-1: pcie_width is worse" in first["reason"]
    assert second["suggestion"] == "watch" and acted(planned) == ["n1"]
    assert [(gate["name"], gate["boot_id"]) for gate in planned["gates"]] == [("n1", "boot-1")]
    assert planned["gates"][0]["evidence"] == first["evidence"]


def test_evidence_is_of_the_machine_and_of_what_degrades():
    one = plan(["n1"], fleet())["suggestions"][0]
    again = plan([{**finding("n1"), "evidence": "bandwidth is still worse"}], fleet())["suggestions"][0]
    other = plan(["n1"], fleet(n1={"uid": "another"}))["suggestions"][0]
    assert one["evidence"] == again["evidence"] != other["evidence"]
    assert one["cause"] == again["cause"] == f"{one['evidence']}: bandwidth"
    assert one["bootId"] == "boot-1" and one["uid"] == "uid-1"


def test_a_gate_of_what_is_over_can_be_released_but_not_of_what_is_unknown():
    ours = {"gates": [{"owner": "maintenance", "evidence": "degradation-0123"}]}
    theirs = {"gates": [{"owner": "maintenance", "evidence": "du-0123"}]}
    planned = plan(["n1"], fleet(n1=ours, n2=ours, n3=ours, n4=theirs), unknown=("n3",))
    assert planned["cleared"] == [{"node": "n2", "evidence": "degradation-0123"}]


def test_a_node_that_is_gone_is_no_suggestion():
    assert plan(["n99"], fleet())["suggestions"] == []


@pytest.mark.parametrize("given", [{"percent": 101}, {"nodes": -1}, {"domain_percent": float("nan")}])
def test_bounds_that_are_none_are_refused(given):
    with pytest.raises(InvalidDocument) as raised:
        Bounds(**given)
    assert raised.value.problems[0].path == f"max_out.{next(iter(given))}"


@pytest.mark.parametrize(
    ("text", "open_at", "shut_at"),
    [
        ("22:00-05:00 UTC", "2026-11-29T23:00", "2026-11-29T05:00"),
        ("22:00-05:00", "2026-11-29T04:59", "2026-11-29T21:59"),
        ("9:00 - 17:00 UTC", "2026-11-29T09:00", "2026-11-29T17:00"),
        ("Sat,Sun 08:00-20:00 Europe/Berlin", "2026-11-29T07:00", "2026-11-29T06:59"),  # a Sunday, UTC+1
        ("Fri-Mon 00:00-24:00 UTC", "2026-11-30T12:00", "2026-12-01T12:00"),
        ("Sat 22:00-05:00 UTC", "2026-11-29T04:00", "2026-11-30T04:00"),  # the night that began on Saturday
        ("sun 00:00-24:00 UTC", "2026-11-29T00:00", "2026-11-30T00:00"),
    ],
)
def test_windows_open_and_shut(text, open_at, shut_at):
    at = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (open_at, shut_at)]
    assert [is_open([text], each) for each in at] == [True, False]
    assert is_open([text, "Always"], at[1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "at night",
        "25:00-26:00",
        "22:00-22:00",
        "22:00-05:61",
        "Foo 22:00-05:00",
        "22:00-05:00 Mars/Base",
        "22:00-05:00 ../etc",
    ],
)
def test_what_is_no_window_is_refused(text):
    with pytest.raises(InvalidDocument) as raised:
        is_open(["always", text], datetime.now(UTC))
    assert raised.value.problems[0].path == "window[1]" and raised.value.problems[0].hint
    assert len(raised.value.problems) == 1


def test_no_window_at_all_is_refused():
    with pytest.raises(InvalidDocument):
        is_open([], datetime.now(UTC))
