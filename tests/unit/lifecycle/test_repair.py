"""Repair, step by step: every way from a gate to a proven node, or to people."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget, requests
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, Denied, Unavailable

from tests.unit.lifecycle.repairing import TESTS, World, outcome

RESET, REBOOT = {"action": "COMPONENT_RESET", "entity": "GPU-7f3a"}, {"action": "RESTART_BM"}


def closed(about: dict = REBOOT, **policy) -> World:
    world = World("gpu-1", "gpu-2", **policy)
    world.close("gpu-1", **about)
    world.later(5)
    return world


def requested(world: World, node: str = "gpu-1") -> dict:
    """The attempt that the next steps make."""
    world.step()
    found = world.step(drained=[node])
    assert len(found["execute"]) == 1, found
    return found["execute"][0]


def validating(world: World) -> None:
    """A reboot is verified, and the node handed over to validation."""
    entry = requested(world)
    world.boot("gpu-1")
    world.step(outcomes=[outcome(entry)])
    assert world.phase() == "Validating"


def test_a_gate_becomes_a_request_that_is_drained_first_and_then_made_once():
    world = closed()
    found = world.step()
    (name,) = found["created"]
    assert found["repairs"] == [
        {
            "request": name,
            "node": "gpu-1",
            "uid": world.nodes["gpu-1"]["uid"],
            "rung": "reboot",
            "entity": "",
            "fault": "xid-79",
            "domain": "rack=1",
            "held_by": [],
            "drain_scope": "node",
        }
    ]
    assert not found["execute"] and world.request()["spec"]["fault"]["code"] == "xid-79"
    boot = world.nodes["gpu-1"]["bootId"]
    (entry,) = world.step(drained=["gpu-1"])["execute"]
    assert (entry["rung"], entry["key"], entry["attempt"]) == ("reboot", f"{name}/reboot/1", 1)
    assert (entry["executor"], entry["bootBefore"], entry["providerId"]) == ("ssh", boot, "metal://gpu-1")
    assert world.phase() == "Repairing"
    for _run in range(3):  # whoever calls again, with whatever it drained
        again = world.step(drained=["gpu-1"])
        assert not again["execute"] and not again["repairs"] and again["pending"][0]["key"] == entry["key"]


def test_a_step_with_nothing_new_writes_nothing():
    world = closed()
    requested(world)
    world.step()
    before = world.store.writes
    found = world.step()
    assert world.store.writes == before and not found["changed"]


def test_a_reboot_is_verified_by_the_boot_id_and_nothing_else():
    world = closed()
    entry = requested(world)
    assert world.step(outcomes=[outcome(entry, True, verified=True)])["pending"]
    world.boot("gpu-1", ready=False)
    assert "not Ready" in world.step()["pending"][0]["why"]
    world.nodes["gpu-1"]["ready"] = True
    found = world.step()
    (verified,) = found["verified"]
    assert verified["validation"] == found["validations"][0]["name"] == world.request()["status"]["validation"]
    assert world.released == ["gpu-1"] and world.gate("gpu-1", "quarantine") is None
    (validation,) = world.store.of("ValidationRequest")
    node = {part: world.nodes["gpu-1"][part] for part in ("name", "uid", "bootId")}
    assert validation["spec"]["nodes"] == [node] and validation["spec"]["tests"] == TESTS
    assert validation["spec"]["reason"] == "repaired" and world.gate("gpu-1", "validation")["evidence"].startswith(
        "vr-"
    )
    world.validated("gpu-1", "Opened")
    assert world.step()["closed"][0]["why"] == "validated"
    attempt = world.request()["status"]["attempts"][0]
    assert (attempt["executed"], attempt["verified"], attempt["validated"]) == (True, True, True)
    assert not world.step()["changed"]


@pytest.mark.parametrize(
    ("said", "state", "why"),
    [
        ({"executed": True, "verified": True}, "verified", "in the same boot"),
        ({"executed": True, "verified": False, "detail": "Xid 48"}, "failed", "Xid 48"),
        ({"executed": False, "detail": "no such GPU"}, "failed", "no such GPU"),
        ({"executed": True}, "pending", "nothing was read"),
        ({"executed": None, "verified": True}, "pending", "nothing was read"),
        ({"executed": None}, "pending", "nothing was read"),
    ],
)
def test_what_a_reset_comes_to(said, state, why):
    world = closed(RESET)
    first = world.step()["repairs"][0]
    assert (first["drain_scope"], first["entity"]) == ("gpu", "GPU-7f3a")
    (entry,) = world.step(drained=[{"node": "gpu-1", "scope": "gpu", "entity": "GPU-7f3a"}])["execute"]
    found = world.step(outcomes=[outcome(entry, **said)])
    name = {"failed": "failed_attempts"}.get(state, state)
    assert why in found[name][0]["why"]
    if state == "failed":  # the drain is widened
        assert (found["repairs"][0]["rung"], found["repairs"][0]["drain_scope"]) == ("reboot", "node")
        assert not world.step(drained=[{"node": "gpu-1", "scope": "gpu"}])["execute"]
        assert world.step(drained=[{"node": "gpu-1", "scope": "node"}])["execute"][0]["rung"] == "reboot"


def test_a_reset_proves_nothing_once_the_node_booted():
    world = closed(RESET)
    entry = requested(world)
    world.boot("gpu-1")
    found = world.step(outcomes=[outcome(entry, True, verified=True)])
    assert "booted meanwhile" in found["failed_attempts"][0]["why"] and found["repairs"][0]["rung"] == "reboot"


def test_a_reboot_is_seen_even_when_the_executor_says_that_it_did_not_happen():
    world = closed()
    entry = requested(world)
    world.boot("gpu-1")
    assert world.step(outcomes=[outcome(entry, False, detail="connection lost")])["verified"]
    assert world.request()["status"]["attempts"][0]["executed"] is True


@pytest.mark.parametrize(
    ("action", "rung", "limit"), [("RESTART_BM", "reboot", 3600), ("COMPONENT_RESET", "reset", 900)]
)
def test_what_is_not_verified_in_time_failed(action, rung, limit):
    world = closed({"action": action})
    entry = requested(world)
    world.later(limit - 3)
    assert not world.step(outcomes=[outcome(entry)])["failed_attempts"]
    world.later(3)
    found = world.step()
    assert "not verified within" in found["failed_attempts"][0]["why"]
    assert found["repairs"][0]["rung"] == {"reboot": "replace", "reset": "reboot"}[rung]


@pytest.mark.parametrize("sign", ["ledger", "evidence"])
def test_the_same_fault_after_the_reboot_is_no_repair(sign):
    world = closed()
    entry = requested(world)
    world.later(60)
    world.boot("gpu-1")
    if sign == "ledger":
        world.again("gpu-1")
    else:
        world.nodes["gpu-1"]["gates"][0]["evidence"] = "another"
    found = world.step(outcomes=[outcome(entry)])
    assert "the fault came again" in found["failed_attempts"][0]["why"]
    assert found["repairs"][0]["rung"] == "replace" and not world.released


def test_a_fault_of_before_the_command_does_not_count_against_it():
    world = closed()
    entry = requested(world)
    world.later(60)
    world.again("gpu-1")
    world.later(60)
    at = world.stamp()
    world.boot("gpu-1")
    assert world.step(outcomes=[outcome(entry, True, at=at)])["verified"]
    assert world.request()["status"]["attempts"][0]["executedAt"] == at


def test_a_fault_between_the_decision_and_the_release_keeps_the_gate():
    world = closed()
    entry = requested(world)
    world.boot("gpu-1")
    decision = world.decide(outcomes=[outcome(entry)])
    world.later(2)
    world.again("gpu-1")
    world.later(-2)
    found = world.carry_out(decision)
    assert "the gate stays" in found["waiting"][0]["why"] and not world.released
    world.later(5)
    found = world.step()
    assert "the fault came again" in found["failed_attempts"][0]["why"] and found["repairs"][0]["rung"] == "replace"


def test_a_validation_that_failed_leads_to_the_next_rung_under_validations_gate():
    world = closed()
    validating(world)
    first = world.request()["status"]["validation"]
    world.validated("gpu-1", "Failed")
    found = world.step()
    assert "did not pass" in found["failed_attempts"][0]["why"] and found["repairs"][0]["rung"] == "replace"
    assert not found["created"]  # the one at work sees to it
    entry = world.step(drained=["gpu-1"])["execute"][0]
    before = world.gate("gpu-1", "validation")["evidence"]
    world.step(outcomes=[outcome(entry, False)])
    assert world.gate("gpu-1", "validation")["evidence"] == before
    assert world.phase() == "Repairing" and world.request()["status"]["rung"] == "ticket"
    assert world.request()["status"]["attempts"][0]["validation"] == first


def test_a_later_validation_takes_the_failed_ones_place():
    world = closed(RESET)
    entry = requested(world)
    world.step(outcomes=[outcome(entry, True, verified=True)])
    old = world.gate("gpu-1", "validation")["evidence"]
    world.validated("gpu-1", "Failed")
    world.step()
    (entry,) = world.step(drained=["gpu-1"])["execute"]
    world.boot("gpu-1")
    world.step(outcomes=[outcome(entry)])
    new = world.gate("gpu-1", "validation")["evidence"]
    assert new != old and "+" not in new
    world.validated("gpu-1", "Opened")
    assert world.step()["closed"]
    assert [each["validated"] for each in world.request()["status"]["attempts"]] == [False, True]


def test_a_fault_that_closes_the_node_while_it_is_validated_goes_on_one_rung_higher():
    world = closed(RESET)
    entry = requested(world)
    world.step(outcomes=[outcome(entry, True, verified=True)])
    world.close("gpu-1", **RESET)
    found = world.step()
    assert "did not last" in found["closed"][0]["why"] and found["created"]
    assert found["repairs"][0]["rung"] == "reboot"  # the one reset of this fault is spent


def test_nothing_left_is_for_people():
    world = closed(executors={"reboot": "ssh", "ticket": "webhook"})
    entry = requested(world)
    found = world.step(outcomes=[outcome(entry, False, detail="BMC is silent", serials=["SN-1"])])
    (ticket,) = found["tickets"]
    assert (ticket["node"], ticket["serials"], ticket["fault"]["code"]) == ("gpu-1", ["SN-1"], "xid-79")
    assert ticket["attempts"][0]["detail"] == "was not executed (BMC is silent)" and "BMC is silent" in ticket["why"]
    assert ticket["systemUUID"] == "s-gpu-1" and ticket["evidence"] and "stays closed" in ticket["who"]
    (again,) = world.step()["tickets"]
    (failed,) = world.step(outcomes=[outcome({**again, "rung": "ticket"}, False, detail="503")])["tickets"]
    assert ticket["key"] == again["key"] == failed["key"] and failed["why"] == ticket["why"]
    found = world.step(outcomes=[outcome({**ticket, "rung": "ticket"}, True, reference="OPS-12")])
    assert "OPS-12" in found["exhausted"][0]["why"] and found["exhausted"][0]["ticket"]["serials"] == ["SN-1"]
    status = world.request()["status"]
    assert status["phase"] == "Exhausted" and status["ticket"]["reference"] == "OPS-12"
    assert world.gate("gpu-1", "quarantine") and not world.step()["changed"]
    world.open("gpu-1", "quarantine")
    assert "opened" in world.step()["closed"][0]["why"]


def test_without_a_receiver_of_tickets_it_is_exhausted_at_once():
    world = closed({"action": "CONTACT_SUPPORT"}, executors={})
    world.step()
    (entry,) = world.step()["exhausted"]
    assert "no reset, reboot" in entry["why"] and "support case" in entry["ticket"]["who"]
    assert world.phase() == "Exhausted"


@pytest.mark.parametrize("action", ["NONE", "RESTART_APP"])
def test_where_nothing_is_broken_the_node_only_has_to_prove_it(action):
    world = closed({"action": action})
    assert world.step()["created"]
    found = world.step()
    assert found["validations"] and world.released == ["gpu-1"] and not found["execute"]
    world.validated("gpu-1", "Failed")
    (ticket,) = world.step()["tickets"]
    assert ticket["attempts"] == [] and world.gate("gpu-1", "validation")


@pytest.mark.parametrize("when", ["open", "repairing", "validating"])
def test_whoever_opens_the_node_has_the_last_word(when):
    world = closed()
    world.step()
    if when == "repairing":
        requested(world)
    elif when == "validating":
        validating(world)
        for name in [name for name, doc in world.store.docs.items() if doc["kind"] == "ValidationRequest"]:
            del world.store.docs[name]
        world.open("gpu-1", "validation")
    world.open("gpu-1", "quarantine")
    found = world.step(drained=["gpu-1"])
    assert "opened" in found["withdrawn"][0]["why"] and not found["execute"]
    assert not world.step(drained=["gpu-1"])["execute"] and world.phase() == "Withdrawn"


def test_a_gate_closed_anew_is_a_new_request_that_waits_for_what_may_still_be_at_work():
    world = closed()
    requested(world)
    world.open("gpu-1", "quarantine")
    world.step()
    world.close("gpu-1")
    assert world.step()["created"]
    assert "may still be at work" in world.step(drained=["gpu-1"])["waiting"][0]["why"]


@pytest.mark.parametrize("when", ["open", "repairing", "validating"])
def test_another_node_of_the_name_is_another_node(when):
    world = closed({"action": "REPLACE_VM"} if when == "repairing" else REBOOT)
    if when == "validating":
        validating(world)
    elif when == "repairing":
        requested(world)
    else:
        world.step()
    world.join("gpu-1")
    found = world.step()
    assert found["closed"][0]["why"].startswith("replaced") and not found["created"]
    assert [each["rung"] for each in found["verified"]] == (["replace"] if when == "repairing" else [])


def test_a_node_that_is_gone_is_not_repaired_any_more():
    world = closed()
    requested(world)
    del world.nodes["gpu-1"]
    assert "gone" in world.step()["withdrawn"][0]["why"]


def test_a_machine_that_was_given_back_and_not_replaced_is_for_people():
    world = closed({"action": "REPLACE_VM"})
    entry = requested(world)
    node = world.nodes.pop("gpu-1")
    assert world.step(outcomes=[outcome(entry)])["pending"]
    world.later(7200)
    (ticket,) = world.step()["tickets"]
    assert "no other has come" in ticket["why"]
    assert world.step()["tickets"]  # for as long as nobody has taken it
    world.nodes["gpu-1"] = {**node, "uid": "another"}
    assert "replaced" in world.step()["closed"][0]["why"]


def test_hands_off_means_hands_off():
    world = closed()
    world.nodes["gpu-1"]["noRepair"] = True
    assert "no-repair" in world.step(drained=["gpu-1"])["waiting"][0]["why"] and not world.store.docs
    world.nodes["gpu-1"]["noRepair"] = False
    world.step()
    world.nodes["gpu-1"]["noRepair"] = True
    found = world.step(drained=["gpu-1"])
    assert "no-repair" in found["waiting"][0]["why"] and not found["execute"]


def test_a_human_cordon_is_told_and_does_not_stop_repair():
    world = closed()
    world.nodes["gpu-1"]["external"] = [{"kind": "cordon", "key": "x", "holds": True, "detail": "set by kubectl"}]
    assert world.step()["repairs"][0]["held_by"] == ["set by kubectl"]
    assert world.step(drained=["gpu-1"])["execute"][0]["held_by"] == ["set by kubectl"]


def test_a_gate_that_cannot_be_read_is_left_to_people():
    world = closed()
    world.nodes["gpu-1"]["gates"][0].update(readable=False, problem="annotation cannot be read", since="")
    found = world.step(drained=["gpu-1"])
    assert not world.store.docs and "cannot be read" in found["waiting"][0]["why"]


def test_nodes_wait_for_room_in_the_fleet_and_in_their_domain():
    bounds = budget.Bounds(between=0, parallel=2, per_domain=1)
    world = World("gpu-1", "gpu-2", bounds=bounds)
    world.join("gpu-3", "rack=2")
    world.join("gpu-4", "rack=3")
    for name in ("gpu-1", "gpu-2", "gpu-3", "gpu-4"):
        world.close(name)
        world.later(1)
    found = world.step()
    assert [each["node"] for each in found["repairs"]] == ["gpu-1", "gpu-3"]
    assert {each["node"]: each["why"] for each in found["waiting"]} == {
        "gpu-2": "1 of at most 1 nodes of rack=1 are under repair",
        "gpu-4": "2 of at most 2 nodes are under repair",
    }
    found = world.step(drained=["gpu-2"])  # whoever is drained goes first
    assert [each["node"] for each in found["execute"]] == ["gpu-2"]
    assert [each["node"] for each in found["repairs"]] == ["gpu-3"]


def test_two_runs_at_once_act_once():
    world = closed()
    world.step()
    first, second = world.decide(drained=["gpu-1"]), world.decide(drained=["gpu-1"])
    assert len(world.carry_out(first)["execute"]) == 1
    late = world.carry_out(second)
    assert not late["execute"] and "another run was quicker" in late["conflicts"][0]["why"]


def test_two_runs_at_once_do_not_fill_the_room_twice():
    world = World("gpu-1", "gpu-2", bounds=budget.Bounds(between=0, parallel=1, per_domain=1))
    for name in ("gpu-1", "gpu-2"):
        world.close(name)
    world.step()
    world.step()
    first, second = world.decide(drained=["gpu-1"]), world.decide(drained=["gpu-2"])
    assert [each["node"] for each in world.carry_out(first)["execute"]] == ["gpu-1"]
    late = world.carry_out(second)
    assert not late["execute"] and "filled the room" in late["conflicts"][0]["why"]
    assert not world.request("gpu-2")["status"]["attempts"] and world.request("gpu-2")["status"]["phase"] == "Open"


def test_what_was_requested_is_told_even_when_another_node_cannot_be_handed_over(monkeypatch):
    world = closed()
    entry = requested(world)
    world.close("gpu-2")
    world.step()
    world.boot("gpu-1")

    def broken(_wants: list[dict]) -> list[dict]:
        raise Unavailable("the API server is gone")

    monkeypatch.setattr(world, "_hold", broken)
    found = world.step(drained=["gpu-2"], outcomes=[outcome(entry)])
    assert [each["node"] for each in found["execute"]] == ["gpu-2"]
    assert "the API server is gone" in found["failures"][0]["why"] and world.gate("gpu-1", "quarantine")
    monkeypatch.undo()
    assert world.step()["released"]


@pytest.mark.parametrize(("error", "told"), [(Denied, "failures"), (Conflict, "conflicts")])
def test_a_request_that_cannot_be_made_stops_no_other_and_drains_nobody(monkeypatch, error, told):
    world = closed()
    entry = requested(world)
    world.boot("gpu-1")
    world.close("gpu-2")

    def refused(doc: dict) -> bool:
        if doc["kind"] == "RepairRequest":
            raise error("not for you")
        return create(doc)

    create = world.store.create
    monkeypatch.setattr(world.store, "create", refused)
    found = world.step(outcomes=[outcome(entry)])
    assert found["verified"] and found["released"] and not found["repairs"]
    assert [(each["node"], each["why"]) for each in found[told]] == [("gpu-2", "not for you")]


def test_the_budget_counts_over_requests_of_the_same_machine():
    world = closed(RESET)
    rungs = []
    for _time in range(2):
        entry = requested(world)
        rungs.append(entry["rung"])
        if entry["rung"] == "reboot":
            world.boot("gpu-1")
        world.step(outcomes=[outcome(entry, True, verified=True)])
        world.validated("gpu-1", "Opened")
        assert world.step()["closed"]
        world.later(3600)
        world.close("gpu-1", **RESET)
    assert rungs == ["reset", "reboot"] and world.step()["repairs"][0]["rung"] == "replace"
    world.later(7 * 86400)
    assert world.step()["repairs"][0]["rung"] == "reset"  # last week's are forgotten


def test_a_fault_that_comes_again_after_each_proof_is_for_people():
    world = closed({"action": "RESTART_APP"}, bounds=budget.Bounds(per_fault=2))
    for _time in range(2):
        world.step()
        assert world.step()["validations"] or world.phase() == "Validating"
        world.validated("gpu-1", "Opened")
        assert world.step()["closed"]
        world.close("gpu-1", action="RESTART_APP")
    world.step()
    (ticket,) = world.step()["tickets"]
    assert "passed validation for it 2 times" in ticket["why"] and world.gate("gpu-1", "quarantine")
    world.later(8 * 86400)
    world.open("gpu-1", "quarantine")
    world.step()
    world.close("gpu-1", action="RESTART_APP")  # last week's are forgotten
    world.step()
    world.step()
    assert world.phase() == "Validating"


@pytest.mark.parametrize(("machine", "expected"), [("s-gpu-1", ["reboot", "replace"]), ("s-2", ["reboot"] * 4)])
def test_a_machine_that_joins_anew_under_any_name_brings_its_budget(machine, expected):
    world, name, rungs = closed(), "gpu-1", []
    for number in range(4):
        for _step in range(2):
            found = world.step(drained=[name])
        rungs += [each["rung"] for each in found["execute"]]
        del world.nodes[name]
        world.step()
        world.step(outcomes=[outcome(each) for each in found["execute"]])
        name = f"other-{number}"
        world.join(name)
        world.nodes[name]["systemUUID"] = machine if machine == "s-gpu-1" else f"{machine}-{number}"
        world.close(name, **REBOOT)
        world.later(8000)
    assert rungs == expected
    assert bool(world.step(drained=[name])["tickets"]) == (machine == "s-gpu-1")


def test_boards_that_all_tell_the_same_are_no_machine():
    nodes = [{"uid": "1", "systemUUID": "0300"}, {"uid": "2", "systemUUID": "0300"}, {"uid": "3", "systemUUID": ""}]
    assert budget.machines([*nodes, {"uid": "4", "systemUUID": "4c4c"}]) == {"4": "4c4c"}


def test_a_clock_that_was_wrong_keeps_nobody_waiting():
    world = closed(bounds=budget.Bounds())
    world.later(400 * 86400)
    requested(world)
    world.now -= timedelta(days=400)
    assert "not verified within" in world.step()["failed_attempts"][0]["why"]
    assert world.step(drained=["gpu-1"])["execute"][0]["rung"] == "replace"


def test_faults_of_all_kinds_use_the_nodes_budget():
    world = closed(bounds=budget.Bounds(between=0, per_node=1))
    entry = requested(world)
    world.step(outcomes=[outcome(entry, False)])
    world.open("gpu-1", "quarantine")
    world.step()
    world.close("gpu-1", fault="xid-48", action="COMPONENT_RESET")
    world.step()
    (ticket,) = [each for each in world.step()["tickets"] if each["fault"]["code"] == "xid-48"]
    assert "1 of 1 attempt used" in ticket["why"]


def test_time_between_two_attempts():
    world = closed(RESET, bounds=budget.Bounds(between=600))
    entry = requested(world)
    found = world.step(outcomes=[outcome(entry, False)], drained=["gpu-1"])
    assert "10m later" in found["waiting"][0]["why"] and not found["execute"]
    world.later(600)
    assert world.step(drained=["gpu-1"])["execute"][0]["rung"] == "reboot"


@pytest.mark.parametrize(("option", "rung"), [("reboot", "reboot"), ("ticket", "ticket")])
def test_a_node_that_failed_its_validation_gets_a_request_of_its_own(option, rung):
    world = World("gpu-1", on_validation_failure=option)
    validation = failed_validation(world)
    (name,) = world.step()["created"]
    request = world.request()
    assert request["spec"]["fault"] == {
        "code": "certification",
        "action": "",
        "entity": "",
        "reason": f"did not pass {validation}: busBandwidthGBps",
        "rule": validation,
        "since": world.gate("gpu-1", "validation")["since"],
    }
    assert request["spec"]["gate"] == "validation"
    found = world.step(drained=["gpu-1"])
    assert not found["created"]
    if rung == "ticket":
        assert found["tickets"][0]["fault"]["code"] == "certification" and validation in found["tickets"][0]["why"]
        return
    world.boot("gpu-1")
    world.step(outcomes=[outcome(found["execute"][0])])
    assert not world.released and world.phase() == "Validating"
    evidence = world.gate("gpu-1", "validation")["evidence"]
    before = world.store.writes
    assert not world.step()["changed"] and world.store.writes == before  # handed over, once
    assert "+" not in evidence
    world.validated("gpu-1", "Opened")
    assert world.step()["closed"][0]["request"] == name


def failed_validation(world: World) -> str:
    node = {part: world.nodes["gpu-1"][part] for part in ("name", "uid", "bootId")}
    doc = requests.make("new-node", [node], TESTS)
    world.store.create(doc)
    world.close("gpu-1", "validation", requests.digest_of(doc["spec"]), fault="", action="")
    world.validated("gpu-1", "Failed")
    return doc["metadata"]["name"]


@pytest.mark.parametrize("why", ["opened", "quarantined", "another gate", "replaced"])
def test_no_request_for_a_failed_validation_that_holds_nobody(why):
    world = World("gpu-1")
    failed_validation(world)
    if why == "opened":
        world.open("gpu-1", "validation")
    elif why == "quarantined":
        world.close("gpu-1")
    elif why == "another gate":
        world.gate("gpu-1", "validation")["evidence"] = "vr-0123456789abcdef"
    else:
        world.join("gpu-1")
    world.step()
    assert [doc["spec"]["gate"] for doc in world.store.of("RepairRequest")] == (
        ["quarantine"] if why == "quarantined" else []
    )


def test_a_fault_goes_before_a_failed_validation_and_its_repair_serves_both():
    world = World("gpu-1", on_validation_failure="reboot")
    failed_validation(world)
    world.step()
    world.close("gpu-1")
    found = world.step(drained=["gpu-1"])
    assert "goes first" in found["waiting"][0]["why"] and not found["execute"]
    (entry,) = world.step(drained=["gpu-1"])["execute"]
    assert entry["fault"] == "xid-79"
    world.boot("gpu-1")
    world.step(outcomes=[outcome(entry)])
    assert "+" not in world.gate("gpu-1", "validation")["evidence"]  # the same tests, passed after the repair
    world.validated("gpu-1", "Opened")
    found = world.step()
    assert found["closed"] and found["withdrawn"] and not world.nodes["gpu-1"]["gates"]


@pytest.mark.parametrize("mode", ["observe", "dry_run"])
def test_watching_requests_nothing(mode):
    world = closed()
    found = world.step(mode=mode)
    assert found["repairs"] and found["changed"] and len(world.store.docs) == (mode == "dry_run")
    world.step()
    before = world.store.writes
    found = world.step(drained=["gpu-1"], mode=mode)
    assert found["planned"][0]["rung"] == "reboot" and "key" not in found["planned"][0] and not found["execute"]
    assert world.store.writes == before


def test_an_outcome_of_nothing_is_told():
    world = closed()
    world.step()
    stray = {"request": "other", "rung": "reset", "key": "other/reset/1", "executed": True}
    assert world.step(outcomes=[stray])["unknown_outcomes"] == [{"request": "other", "key": "other/reset/1"}]


def test_requests_by_hand_are_about_the_gate_that_there_is_and_never_two_at_once():
    world = closed()
    node = {part: world.nodes["gpu-1"][part] for part in ("name", "uid")}
    for name in ("by-hand", "by-hand-too"):
        spec = {"node": node, "fault": {"code": "xid-48", "action": "COMPONENT_RESET"}}
        world.store.create(
            {"apiVersion": "goodput.fleet/v1alpha1", "kind": "RepairRequest", "metadata": {"name": name}, "spec": spec}
        )
    found = world.step(drained=["gpu-1"])
    assert not found["created"] and [each["request"] for each in found["execute"]] == ["by-hand"]
    assert "goes first" in found["waiting"][0]["why"]


def test_an_edited_status_gives_no_attempts_and_breaks_nothing():
    world = closed()
    requested(world)
    (doc,) = [doc for doc in world.store.docs.values() if doc["kind"] == "RepairRequest"]
    del doc["status"]["attempts"][0]["requestedAt"]
    found = world.step(drained=["gpu-1"])
    assert "not verified" in found["failed_attempts"][0]["why"] and found["execute"][0]["rung"] == "replace"
    world.open("gpu-1", "quarantine")
    world.step()
    world.later(30 * 86400)
    world.close("gpu-1")
    assert world.step()["repairs"][0]["rung"] == "replace"  # that reboot is never forgotten


def test_a_request_that_is_over_is_not_begun_anew_in_silence():
    world = closed()
    world.step()
    world.store.docs[world.request()["metadata"]["name"]]["status"] = {"phase": "Withdrawn"}
    found = world.step(drained=["gpu-1"])
    assert "delete it to begin anew" in found["waiting"][0]["why"] and not found["execute"]
