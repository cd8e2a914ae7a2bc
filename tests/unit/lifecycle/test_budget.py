"""Rungs and budgets, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget, ladder
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.healthevent import ACTIONS

NOW = datetime(2026, 3, 6, 9, tzinfo=UTC)
ALL = dict.fromkeys(ladder.RUNGS, "x")


@pytest.mark.parametrize(
    ("actions", "rung"),
    [
        (("COMPONENT_RESET", "BUS_RESET", "DRAIN_RESET", "DRAIN_P2P"), "reset"),
        (("RESTART_VM", "RESTART_BM", "RECOVER_IMEX_DOMAIN"), "reboot"),
        (("REPLACE_VM",), "replace"),
        (("CONTACT_SUPPORT", "RUN_DCGMEUD", "RUN_FIELDDIAG", "UNKNOWN", "", "CUSTOM"), "ticket"),
        (("NONE", "RESTART_APP"), ladder.NOTHING),
    ],
)
def test_the_first_rung_follows_from_the_action(actions, rung):
    assert {ladder.first(action) for action in actions} == {rung}


def test_every_action_of_a_health_event_has_a_rung():
    assert set(ladder.FIRST) == set(ACTIONS)


@pytest.mark.parametrize(
    ("start", "tried", "executors", "spent", "rung"),
    [
        ("reset", [], ALL, (), "reset"),
        ("reset", ["reset"], ALL, (), "reset"),  # the budget says how often
        ("reset", ["reset"], ALL, ("reset",), "reboot"),
        ("reset", [], ALL, ("reset", "reboot"), "replace"),
        ("reset", ["reboot"], ALL, ("reboot",), "replace"),  # never back to a narrower one
        ("reset", [], {"reboot": "x"}, (), "reboot"),
        ("reboot", [], {"reset": "x"}, (), "ticket"),
        ("reset", ["replace"], ALL, ("replace",), "ticket"),
        ("replace", [], ALL, (), "replace"),
        ("ticket", [], ALL, (), "ticket"),
        ("", [], ALL, (), "ticket"),  # there was nothing to repair, and it did not help
    ],
)
def test_the_next_rung(start, tried, executors, spent, rung):
    found, skipped = ladder.choose(start, tried, executors, lambda each: "spent" if each in spent else "")
    assert found == rung
    assert all(each == "spent" or each.startswith("no executor") for each in skipped)


def request(name: str, *attempts: tuple, fault: str = "xid-79", uid: str = "u") -> dict:
    told = [
        {"rung": rung, "key": "k", "requestedAt": at if isinstance(at, str) else at.isoformat(), "verified": verified}
        for rung, at, verified in attempts
    ]
    spec = {"node": {"name": "gpu-1", "uid": uid}, "fault": {"code": fault}}
    return {"metadata": {"name": name}, "spec": spec, "status": {"attempts": told}}


def spent(docs: list, rung: str = "reset", fault: str = "xid-79", **bounds) -> str:
    return budget.spent(budget.Bounds(**bounds), budget.history(docs).get("u", []), rung, fault, NOW)


HOUR = NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("docs", "options", "why"),
    [
        ([], {}, ""),
        ([request("a", ("reset", HOUR, True))], {}, "reset of xid-79: 1 of 1 attempt used within 7d"),
        ([request("a", ("reset", HOUR, None))], {}, "reset of xid-79"),  # whatever came of it
        ([request("a", ("reboot", HOUR, False))], {}, ""),
        ([request("a", ("reset", HOUR, True), fault="xid-48")], {}, ""),
        ([request("a", ("reset", HOUR, True), uid="another")], {}, ""),
        ([request("a", ("reset", NOW - timedelta(days=7), True))], {}, ""),
        ([request("a", ("ticket", HOUR, True))], {"attempts": {"reset": 1}, "per_node": 1}, ""),
        ([request("a", ("reset", "soon", True))], {"window": 60}, "reset of xid-79"),  # edited: gives no attempt
        ([request("a", ("reboot", HOUR, True)), request("b", ("replace", HOUR, False))], {"per_fault": 2}, "2 of 2"),
        (
            [request("a", ("reset", HOUR, True), fault=f"xid-{each}") for each in range(5)],
            {},
            "repair of the node: 5 of 5",
        ),
        ([], {"attempts": {}}, "reset of xid-79: 0 of 0"),
    ],
)
def test_what_the_budget_has_left(docs, options, why):
    found = spent(docs, **options)
    assert why in found and bool(found) == bool(why)


def test_room_is_bounded_in_all_and_by_domain():
    room = budget.Room(budget.Bounds(parallel=2, per_domain=1))
    room.take("gpu-1", "rack=1")
    assert not room.full("gpu-1", "rack=1") and "rack=1" in room.full("gpu-2", "rack=1")
    room.take("gpu-3", "")
    assert not room.over and "2 of at most 2" in room.full("gpu-4", "rack=2")
    room.take("gpu-2", "rack=1")
    assert room.over


def test_too_soon():
    history = budget.history([request("a", ("reset", HOUR, False))])["u"]
    assert "1h1m later" in budget.too_soon(budget.Bounds(between=3660), history, NOW)
    assert not budget.too_soon(budget.Bounds(between=3600), history, NOW)
    assert not budget.too_soon(budget.Bounds(), [], NOW)
