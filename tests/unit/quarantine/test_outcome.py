"""What came of a decision, for the ledger and in words."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import outcome
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.active import NO_NODE


def gate(node: str, **fields) -> dict:
    return {"node": node, "owner": "quarantine", "rule": "r", "evidence": f"e-{node}", "reason": "Xid 79", **fields}


def decision(**parts) -> dict:
    keys = ("incidents", "gates", "held", "blocked", "observed", "released", "unknown", "ignored")
    found = {key: parts.get(key, []) for key in keys}
    found |= {"mode": "enforce", "breaker": {"tripped": bool(found["blocked"]), "scopes": parts.get("scopes", [])}}
    return {**found, "counts": {key: len(found[key]) for key in keys}}


def result(node: str, status: str = "held", **fields) -> dict:
    return {"node": node, "owner": "quarantine", "status": status, "reason": "", **fields}


def test_a_gate_that_another_run_was_quicker_for_is_blocked():
    found = decision(gates=[gate("a"), gate("b")])
    late = {**gate("b"), "scope": "fleet", "used": 4, "bound": 4, "window": "1h", "why": "full"}
    outcome.withdraw(found, [late])
    assert ([one["node"] for one in found["gates"]], found["blocked"][0]["why"]) == (["a"], "full")
    assert found["breaker"]["tripped"] and (found["counts"]["gates"], found["counts"]["blocked"]) == (1, 1)
    assert outcome.failures(found, [result("a")]) == ["tripped"]


def test_with_nobody_in_between_nothing_is_withdrawn():
    found = decision(gates=[gate("a")])
    outcome.withdraw(found, [])
    assert found == decision(gates=[gate("a")])


@pytest.mark.parametrize(
    ("status", "noted"), [("held", True), ("unchanged", True), ("refused", False), ("failed", False)]
)
def test_the_ledger_notes_what_was_written(status, noted):
    found = outcome.written(decision(gates=[gate("a")]), [result("a", status)], [])
    assert [one["node"] for one in found] == (["a"] if noted else [])


@pytest.mark.parametrize(("held", "noted"), [({}, True), ({"held": True}, False)])
def test_the_ledger_notes_what_a_killed_run_wrote(held, noted):
    stands = {**gate("a"), "last": "2026-11-29T18:00:00Z"}
    found = outcome.written(decision(held=[stands]), [], [{**gate("a"), "at": "2026-11-29T18:00:00Z", **held}])
    assert bool(found) is noted
    other = {**stands, "evidence": "e-worse"}  # what the gate stands for by now may be something else
    found = outcome.written(decision(held=[other]), [], [{**gate("a"), "at": "2026-11-29T18:00:00Z", **held}])
    assert [one["evidence"] for one in found] == (["e-a"] if noted else [])


@pytest.mark.parametrize(
    ("entry", "noted"),
    [({}, True), ({"seen": "2026-11-29T18:05:00Z"}, False), ({"node": "b"}, False), ({"owner": "manual"}, False)],
)
def test_the_ledger_notes_newer_faults_that_a_gate_stands_for(entry, noted):
    stands = {**gate("a"), "evidence": "e-new", "last": "2026-11-29T18:05:00Z"}
    ledger = [{**gate("a"), "at": "2026-11-29T18:00:00Z", "held": True, **entry}]
    assert bool(outcome.written(decision(held=[stands]), [], ledger)) is noted


def test_failures():
    assert outcome.failures(decision(gates=[gate("a")]), [result("a", "failed")]) == ["failed"]
    assert outcome.failures(decision(unknown=[{"node": "a", "event": "e", "rule": "r", "why": "x"}]), []) == [
        "unreadable"
    ]
    # a monitor that cannot see is no fault of a rule
    assert outcome.failures(decision(unknown=[{"node": "a", "event": "e", "rule": "", "why": "blind"}]), []) == []


def test_one_line():
    scopes = [{"scope": "fleet", "domain": "", "used": 2, "bound": 2, "window": "1h", "tripped": True}]
    blocked = [gate(f"n{number}", why="full") for number in range(12)]
    found = decision(gates=[gate("a"), gate("b")], blocked=blocked, scopes=scopes, incidents=[{}])
    line = outcome.line(found, [result("a"), result("b", "failed")], planned=False)
    assert line.startswith("enforce: 1 incident; gated a; could not gate b; BLOCKED by the breaker: n0, n1, n10, ")
    assert "and 4 more" in line and line.endswith("breaker of the fleet tripped at 2 of 2 in 1h")
    assert "would gate a" in outcome.line(found, [result("a")], planned=True)


def test_nodes_are_named_once_and_strangers_are_told():
    strangers = [{"event": "e", "node": node, "why": NO_NODE} for node in ("GPU-0001", "GPU-0001", "other")]
    found = decision(ignored=[*strangers, {"event": "f", "node": "a", "why": "history"}])
    results = [result("a"), {**result("a"), "owner": "maintenance"}]
    assert outcome.nodes_of(results, outcome.SHUT) == ["a"]
    line = outcome.line(found, results, False)
    assert line == "enforce: 0 incidents; gated a; ignored, for the fleet has no such nodes: GPU-0001, other"


def test_a_line_for_each_node():
    found = decision(
        gates=[gate("a"), gate("b")],
        observed=[gate("c", rule="first"), gate("c", rule="second")],
        blocked=[gate("d", why="full")],
    )
    results = [result("a"), result("b", "refused", reason="the node has booted since")]
    unparsed = [{"source": "events.jsonl", "line": 3, "reason": "is no JSON"}]
    assert outcome.lines(found, results, unparsed) == [
        "a: gate quarantine by r: Xid 79",
        "b: REFUSED, gate quarantine by r: Xid 79 (the node has booted since)",
        "d: BLOCKED r: Xid 79: full",
        "c: observed first: Xid 79 (also second)",
        "1 report could not be read, the first events.jsonl:3: is no JSON",
    ]
