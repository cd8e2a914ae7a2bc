"""What a driver update does next, by where its nodes stand."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import bound
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_target import pinned, rollout_id
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.lifecycle.rollouts import (
    ID,
    NEW,
    OLD,
    cordon,
    gate,
    maintenance,
    names,
    node,
    plan,
    request,
)

VALIDATION = gate("validation", "vr-0123456789abcdef")
OTHER = rollout_id("570.1", "")
DONE = [node(f"d{number}", NEW, certified=True, domain="rack=d") for number in range(20)]  # so that waves have room
STEPS = ("release", "gate", "change", "wait", "validate")


def steps(made: dict) -> dict:
    return {step: names(made[step]) for step in STEPS if made[step]}


# name -> (a node besides DONE, requests that name it, phase, what is to be done with it)
CASES = {
    "pending": (node("n"), [], "wave", {"gate": ["n"]}),
    "gated": (node("n", OLD, maintenance()), [], "wave", {"change": ["n"]}),
    "taken over from a roll-out of another driver": (
        node("n", OLD, maintenance("/changing", roll_out=OTHER)),
        [],
        "wave",
        {"gate": ["n"]},
    ),
    "changing": (node("n", OLD, maintenance("/changing")), [], "wave", {"wait": ["n"]}),
    "changing, down": (node("n", OLD, maintenance("/changing"), ready=False), [], "wave", {"wait": ["n"]}),
    "changing, its labels are gone": (node("n", "", maintenance("/changing")), [], "wave", {"wait": ["n"]}),
    "changing, cordoned meanwhile": (
        node("n", OLD, maintenance("/changing"), external=[cordon()]),
        [],
        "wave",
        {"wait": ["n"]},
    ),
    "has it, not ready yet": (node("n", NEW, maintenance("/changing"), ready=False), [], "wave", {"wait": ["n"]}),
    "changed": (node("n", NEW, maintenance("/changing")), [], "wave", {"validate": ["n"]}),
    "changed, and the driver came late": (node("n", NEW, maintenance("/failed")), [], "wave", {"validate": ["n"]}),
    "requested, both gates": (
        node("n", NEW, maintenance("/changing"), VALIDATION),
        [request([node("n")])],
        "wave",
        {"validate": ["n"]},
    ),
    "requested, running": (
        node("n", NEW, VALIDATION),
        [request([node("n")], "Running")],
        "wave",
        {"validate": ["n"]},
    ),
    "certified, gate left over": (
        node("n", NEW, maintenance("/changing"), certified=True),
        [request([node("n")], "Opened")],
        "wave",
        {"release": ["n"]},
    ),
    "going back from a change that may go on": (
        node("n", NEW, maintenance("/changing", roll_out=OTHER), certified=True),
        [],
        "wave",
        {"validate": ["n"]},
    ),
    "going back before a change": (
        node("n", NEW, maintenance(roll_out=OTHER), certified=True),
        [],
        "wave",
        {"release": ["n"]},
    ),
    "validated": (node("n", NEW, certified=True), [request([node("n")], "Opened")], "done", {}),
    "passed, somebody else holds it": (
        node("n", NEW, VALIDATION, gate("quarantine")),
        [request([node("n")], "Passed", basis={"bootId": "boot-n", "driver": NEW})],
        "done",
        {},
    ),
    "current, never certified": (node("n", NEW), [], "done", {}),
    "current, in a validation of others": (
        node("n", NEW, VALIDATION),
        [{**request([node("n")]), "spec": {**request([node("n")])["spec"], "cause": "new node"}}],
        "done",
        {},
    ),
    "quarantined": (node("n", OLD, gate("quarantine", "xid")), [], "idle", {}),
    "cordoned": (node("n", OLD, external=[cordon()]), [], "idle", {}),
    "in a validation of others, old driver": (node("n", OLD, VALIDATION), [], "idle", {}),
    "not ready": (node("n", OLD, ready=False), [], "idle", {}),
    "tells no driver": (node("n", ""), [], "idle", {}),
    "somebody else's maintenance": (node("n", OLD, gate("maintenance", "CHG-1")), [], "idle", {}),
    "gated, quarantined before the change": (
        node("n", OLD, maintenance(), gate("quarantine", "xid")),
        [],
        "idle",
        {"release": ["n"]},
    ),
    "failed with the target": (
        node("n", NEW, VALIDATION),
        [request([node("n")], "Failed", basis={"driver": NEW})],
        "stopped",
        {},
    ),
    "quarantined with the new driver": (
        node("n", NEW, maintenance("/changing"), gate("quarantine", "xid")),
        [],
        "stopped",
        {},
    ),
    "did not come up": (node("n", OLD, maintenance("/failed")), [], "stopped", {}),
    "its request was deleted": (node("n", NEW, VALIDATION), [], "stopped", {}),
    "gated for validation by hand": (node("n", NEW, gate("validation", "CHG-7")), [], "done", {}),
    "failed, another attempt runs": (
        node("n", NEW, VALIDATION),
        [request([node("n")], "Failed", basis={"driver": NEW}), request([node("n")], "Running", attempt=2)],
        "wave",
        {"validate": ["n"]},
    ),
    "failed with the driver before, going back": (
        node("n", OLD, VALIDATION),
        [request([node("n")], "Failed", roll_out=OTHER, basis={"driver": "570.1"})],
        "wave",
        {"gate": ["n"]},
    ),
    "gone back, to be certified": (
        node("n", NEW, maintenance("/changing"), VALIDATION),
        [request([node("n")], "Failed", roll_out=OTHER, basis={"driver": "570.1"})],
        "wave",
        {"validate": ["n"]},
    ),
    "replaced under its name": (
        node("n", OLD, uid="uid-of-another"),
        [request([node("n")], "Running")],
        "wave",
        {"gate": ["n"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_next(case):
    one, requests, phase, expected = CASES[case]
    made = plan([*DONE, one], requests)
    assert (made["phase"], steps(made)) == (phase, expected)
    if phase == "stopped":
        assert names(made["failures"]) == ["n"] and any("driver_update_retry" in line for line in made["lines"])


def test_the_canary_is_one_node_per_model_and_comes_first():
    nodes = [node(f"a{number}") for number in range(20)]
    nodes += [node(f"b{number}", product="B200", domain="rack=b") for number in range(20)]
    made = plan(nodes)
    assert (made["phase"], made["wave"], names(made["gate"])) == ("canary", 0, ["a0", "b0"])
    assert made["reason"].endswith("canary") and ", wave 0, attempt 1" in made["cause"]
    first = plan([node("a0", NEW, certified=True), *nodes[1:]])
    assert (first["phase"], names(first["gate"])) == ("canary", ["b0"])


def test_no_wave_begins_while_one_is_under_way():
    nodes = [node(f"n{number:02}") for number in range(40)]
    nodes[0] = node("n00", NEW, certified=True)
    assert names(plan(nodes)["gate"]) == ["n01", "n02", "n03", "n04"]
    nodes[5] = node("n05", NEW, VALIDATION)
    made = plan(nodes, [request([nodes[5]], "Running", wave=3)])
    assert steps(made) == {"validate": ["n05"]} and made["wave"] == 3 and made["nodes"] == ["n05"]


def test_a_wave_is_validated_together():
    nodes = [*DONE, node("a", NEW, maintenance("/changing")), node("b", OLD, maintenance("/changing"))]
    made = plan(nodes)
    assert steps(made) == {"wait": ["b"]} and made["affected"] == []
    nodes[-1] = node("b", NEW, maintenance("/changing", wave=7))
    made = plan(nodes)
    assert made["affected"] == [{"name": name, "uid": f"uid-{name}", "bootId": f"boot-{name}"} for name in "ab"]
    assert made["wave"] == 7 and made["cause"] == f"{ID}: driver update to {NEW}, wave 7, attempt 1"


def test_a_change_that_got_its_time_is_made_again():
    changing = node("n", OLD, maintenance("/changing"))
    assert steps(plan([*DONE, changing], waited={"n"})) == {"change": ["n"]}
    sick = node("n", OLD, maintenance("/changing"), gate("quarantine", "xid"))
    assert steps(plan([*DONE, sick], waited={"n"})) == {} and steps(plan([*DONE, sick])) == {"wait": ["n"]}
    up = node("n", NEW, maintenance("/changing"), external=[cordon()])
    made = plan([*DONE, up], waited={"n"})
    assert made["phase"] == "stopped" and "cordon" in made["failures"][0]["why"]


def test_a_failed_change_says_why():
    failed = gate(
        "maintenance", f"{ID}/failed", f"driver update to {NEW}, wave 1: the change failed, kubectl: no route"
    )
    made = plan([*DONE, node("n", OLD, failed)])
    why = f"driver is {OLD} after the change, not {NEW} (the change failed, kubectl: no route)"
    assert made["failures"] == [{"node": "n", "why": why}]


def test_a_failure_stops_and_lets_go_what_was_not_touched():
    nodes = [
        *DONE,
        node("bad", OLD, maintenance("/failed")),
        node("begun", OLD, maintenance("/changing")),
        node("changed", NEW, maintenance("/changing")),
        node("gated", OLD, maintenance()),
        node("next"),
    ]
    made = plan(nodes)
    assert made["phase"] == "stopped" and made["waves"] == []
    assert steps(made) == {"release": ["gated"], "wait": ["begun"]}
    del nodes[-4]
    assert steps(plan(nodes)) == {"release": ["gated"], "validate": ["changed"]}


def test_failed_nodes_are_taken_up_again_by_name():
    bad = node("bad", OLD, maintenance("/failed"))
    assert steps(plan([*DONE, bad], retry={"bad"})) == {"change": ["bad"]}
    sick = node("sick", NEW, VALIDATION)
    requests = [request([sick], "Failed", basis={"driver": NEW})]
    made = plan([*DONE, sick], requests, retry={"sick"})
    assert steps(made) == {"validate": ["sick"]} and made["cause"].endswith("attempt 2")
    assert plan([*DONE, sick, bad], requests, retry={"sick"})["phase"] == "stopped"


def test_a_node_that_cannot_be_emptied_stops_and_is_let_go():
    stuck = node("stuck", OLD, maintenance())
    made = plan([*DONE, stuck], not_drained={"stuck": "blocked by PodDisruptionBudget web"})
    assert made["phase"] == "stopped" and steps(made) == {"release": ["stuck"]}
    assert made["failures"] == [{"node": "stuck", "why": "blocked by PodDisruptionBudget web"}]
    let_go = plan([*DONE, node("stuck")], not_drained={"stuck": "blocked by PodDisruptionBudget web"})
    assert let_go["phase"] == "stopped" and steps(let_go) == {} and let_go["failures"] == made["failures"]


def test_nodes_that_are_out_already_count():
    racks = [node(f"{rack}{number}", domain=f"rack={rack}") for rack in "ab" for number in range(8)]
    racks[0] = node("a0", OLD, gate("quarantine"), domain="rack=a")
    racks[1] = node("a1", OLD, ready=False, domain="rack=a")
    made = plan([*DONE, *racks], wave=bound("50%", ""), fleet=bound("90%", ""))
    assert names(made["gate"]) == ["b0", "b1"]  # 25% of 8 are two, and of rack a two are out
    assert {each["node"]: each["why"] for each in made["foreign"]} == {
        "a0": "held by others: gate of quarantine",
        "a1": "not ready",
    }
    everywhere = plan([*DONE, *racks], fleet=bound(2, ""))
    assert everywhere["phase"] == "idle" and everywhere["blocked"] == ["2 of 36 nodes are out, 2 may be"]


def test_only_selected_nodes_are_changed_but_all_count():
    nodes = [*DONE, node("a"), node("b"), node("c", OLD, gate("quarantine"))]
    made = plan(nodes, names={"b"}, domain=bound(2, ""))
    assert names(made["gate"]) == ["b"] and made["counts"]["selected"] == 1
    assert plan(nodes, names={"b"}, domain=bound(2, ""), fleet=bound(1, ""))["phase"] == "idle"


def test_all_waves_are_foreseen():
    nodes = [node(f"{rack}{number:02}", domain=f"rack={rack}") for rack in "ab" for number in range(16)]
    made = plan(nodes, wave=bound(6, ""), fleet=bound("50%", ""))
    assert made["nodes"] == ["a00"]
    assert made["waves"][0] == ["a01", "a02", "a03", "a04", "b00", "b01"]
    assert sorted(sum(made["waves"], made["nodes"])) == [each["name"] for each in nodes] and made["blocked"] == []


def test_who_is_affected_besides_the_wave():
    """Drift names what has the former driver too: that has its turn later."""
    nodes = [*DONE, node("changed", NEW, maintenance("/changing")), node("by-hand", NEW), node("later"), node("x", NEW)]
    made = plan(nodes, recertify={"changed", "by-hand", "later", "d1"})
    assert names(made["affected"]) == ["by-hand", "changed"]
    assert names(made["uncertified"]) == ["by-hand", "x"]


@pytest.mark.parametrize("given", [0, "0", "0%", "101%", "", "many", True, None, -1, 2.5, "10 %"])
def test_bounds_that_are_none(given):
    with pytest.raises(InvalidDocument, match="a number of nodes from 1, or a share such as 25%"):
        bound(given, "wave")


def test_a_share_lets_at_least_one_node_go():
    assert [bound(given, "").of(8) for given in ("10%", "25%", "99%", 3, "3")] == [1, 2, 7, 3, 3]


def test_an_id_is_of_the_driver_and_of_what_selects():
    assert rollout_id(NEW) == ID != rollout_id(OLD) != rollout_id(OLD, "rack=a")
    for wrong in ("", "latest driver", "../x", "5" * 64):
        with pytest.raises(InvalidDocument, match="no driver version"):
            rollout_id(wrong)


def lock(*drivers: str) -> dict:
    facts = [{"nodeFacts": {"driver": {"valuesPath": "driver.version", "value": each}}} for each in drivers]
    components = [{"name": f"operator-{number}", **each} for number, each in enumerate([{}, *facts])]
    return {"metadata": {"name": "h100-eks"}, "spec": {"components": components}}


def test_the_target_is_what_the_lock_pins():
    assert pinned(lock(NEW)) == pinned(lock(NEW, NEW)) == NEW
    with pytest.raises(InvalidDocument, match=r"h100-eks pins no driver on nodes.*such as 580"):
        pinned(lock())
    with pytest.raises(InvalidDocument, match=f"more than one driver: operator-1 {NEW}, operator-2 {OLD}"):
        pinned(lock(NEW, OLD))
    with pytest.raises(InvalidDocument, match="'latest' is no driver version"):
        pinned(lock("latest"))


def test_requests_that_are_under_way_are_not_made_again():
    one, two = node("a", NEW, VALIDATION), node("b", NEW, maintenance("/changing"))
    made = plan([*DONE, one, two], [request([one], "Running")])
    assert names(made["validate"]) == ["a", "b"] and names(made["affected"]) == ["b"]
    assert made["requests"] == [request([one])["metadata"]["name"]]
