"""Who comes back, who waits, who stays out: the whole pass as a decision."""

from __future__ import annotations

import copy
import random
from datetime import timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import documents, nodefacts, requests, validation
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import Bound

from tests.unit.lifecycle.validating import BEGIN, GATE, LATER, OTHER_TESTS, TESTS, Fleet, Killed, raw


def fleet(count: int = 3, **policy) -> Fleet:
    return Fleet(*(raw(f"n{number}") for number in range(count)), **policy)


def join(world: Fleet, *names: str, **more) -> None:
    for name in names:
        world.nodes[name] = raw(name, created=LATER, **more)


def only_request(world: Fleet) -> dict:
    assert len(world.requests) == 1
    return next(iter(world.requests.values()))


def test_a_new_node_is_gated_certified_and_opened_with_a_record():
    world = fleet()
    join(world, "n7", "n8")
    plan = world.once()
    request = only_request(world)
    assert world.open() == ["n0", "n1", "n2"]
    assert [document["spec"]["target"]["nodeNames"] for document in plan.certifications] == [["n7", "n8"]]
    assert plan.certifications[0]["spec"]["tolerateGates"] == ["validation"]
    assert world.phases(request) == {"n7": "Running", "n8": "Running"}
    world.certify(plan.certifications[0])
    world.once()
    assert world.open() == ["n0", "n1", "n2", "n7", "n8"] and world.phase(request) == "Succeeded"
    node = world.facts()["n7"]
    assert node["certified"]["valid"]
    record = node["certified"]["record"]
    assert (record["uid"], record["request"]) == ("uid-n7", request["metadata"]["name"])
    assert record["certification"] == plan.certifications[0]["metadata"]["name"]
    quiet = world.once()
    assert not (quiet.create or quiet.holds or quiet.releases or quiet.statuses or quiet.certifications)
    assert quiet.conclude([]) == {}


def test_nodes_of_before_are_taken_as_they_are_and_others_without_gpus_left_alone():
    world = fleet()
    join(world, "n9", gpus=0)
    world.nodes["n9"]["metadata"]["labels"] = {}
    plan = world.once()
    assert not plan.create and len(world.open()) == 4


def test_a_node_that_admission_tainted_is_new_whenever_it_came():
    world = Fleet(
        raw("n0", taints=[{"key": "gate.goodput.fleet/validation", "value": "new-node", "effect": "NoSchedule"}])
    )
    world.once()
    assert world.gate("n0")["taint"]["value"] == "new-node" and world.phases(only_request(world)) == {"n0": "Running"}
    world.run()
    assert world.open() == ["n0"] and world.nodes["n0"]["spec"].get("taints") in (None, [])


def test_without_new_nodes_nothing_is_gated():
    world = fleet(new_nodes=False)
    join(world, "n7")
    assert not world.once().create and "n7" in world.open()


def test_company_is_waited_for_but_not_for_ever():
    world = fleet(settle=120, batch_seconds=300)
    join(world, "n7")
    plan = world.once()
    assert plan.certifications == [] and plan.due == 120
    assert [each["why"] for each in plan.waiting] == ["waits for company"]
    for number in (8, 9, 10):  # one after the other keeps them waiting
        world.now += timedelta(seconds=90)
        join(world, f"n{number}")
        plan = world.once()
        if number < 10:
            assert plan.certifications == []
    world.now += timedelta(seconds=30)
    plan = world.once()
    assert plan.certifications[0]["spec"]["target"]["nodeNames"] == ["n10", "n7", "n8", "n9"]


def test_nodes_whose_tests_need_partners_wait_for_them_and_do_not_fail_alone():
    world = fleet(max_out=Bound(1, False), together={requests.tests_key({"tests": TESTS}): 2})
    request = world.request("changed", "n0", "n1")
    for _pass in range(3):
        plan = world.once()
        assert plan.certifications == []
    assert "its tests need 2 nodes at a time, and 1 can be tested now" in [each["why"] for each in plan.waiting]
    status = world.requests[request["metadata"]["name"]]["status"]
    assert [node["attempts"] for node in status["nodes"]] == [0, 0]
    world.policy["max_out"] = Bound(2, False)
    assert world.once().certifications[0]["spec"]["target"]["nodeNames"] == ["n0", "n1"]


def test_nodes_that_need_other_tests_are_another_batch():
    world = fleet()
    world.request("changed", "n0")
    world.request("changed", "n1", tests=OTHER_TESTS)
    world.request("repaired", "n2")
    plan = world.once()
    assert sorted(tuple(each["spec"]["target"]["nodeNames"]) for each in plan.certifications) == [("n0", "n2"), ("n1",)]


@pytest.mark.parametrize("who", ["gate", "cordon", "not-ready", "no-driver", "no-gpu"])
def test_no_test_is_run_on_a_node_that_others_hold_or_that_is_not_there_yet(who):
    world = fleet()
    request = world.request("changed", "n0", "n1")
    if who == "gate":
        world.hold("quarantine", "n0")
    elif who == "cordon":
        world.nodes["n0"]["spec"]["unschedulable"] = True
    elif who == "not-ready":
        world.nodes["n0"]["status"]["conditions"][0]["status"] = "Unknown"
    elif who == "no-driver":
        world.nodes["n0"]["metadata"]["labels"].pop("nvidia.com/cuda.driver-version.full")
    else:
        world.nodes["n0"]["status"]["capacity"]["nvidia.com/gpu"] = "0"
    plan = world.once()
    assert plan.certifications[0]["spec"]["target"]["nodeNames"] == ["n1"]
    assert world.phases(request) == {"n0": "Pending", "n1": "Running"}
    words = {
        "gate": "gate quarantine",
        "cordon": "cordon",
        "not-ready": "not ready",
        "no-driver": "driver",
        "no-gpu": "GPU",
    }
    assert words[who] in world.why(request, "n0")
    assert world.gate("n0") is not None


@pytest.mark.parametrize("who", ["gate", "cordon", "taint"])
def test_who_comes_between_certification_and_release_keeps_the_node_closed(who):
    world = fleet()
    request = world.request("changed", "n0")
    world.certify(world.once().certifications[0])
    if who == "gate":
        world.hold("quarantine", "n0")
    elif who == "cordon":
        world.nodes["n0"]["spec"]["unschedulable"] = True
    else:
        world.nodes["n0"]["spec"]["taints"].append({"key": "example.com/sick", "effect": "NoSchedule"})
    world.once()
    assert "n0" not in world.open() and world.gate("n0") is None
    assert world.phases(request) == {"n0": "Passed"} and world.why(request, "n0").startswith("stays closed for ")


@pytest.mark.parametrize("what", ["boot", "driver", "kernel", "gpus"])
def test_a_pass_on_what_the_node_no_longer_is_opens_nothing(what):
    world = fleet()
    request = world.request("changed", "n0")
    first = world.once().certifications[0]
    world.certify(first)
    if what == "boot":
        world.reboot("n0")
    elif what == "driver":
        world.set_driver("n0", "590.1")
    elif what == "kernel":
        world.nodes["n0"]["status"]["nodeInfo"]["kernelVersion"] = "6.9"
    else:
        world.nodes["n0"]["status"]["capacity"]["nvidia.com/gpu"] = "7"
    plan = world.once()
    assert "n0" not in world.open() and plan.releases == []
    # it is no failed attempt: with no retries at all it is certified anew, under another name
    assert plan.certifications[0]["metadata"]["name"] != first["metadata"]["name"]
    world.run()
    assert "n0" in world.open() and world.phase(request) == "Succeeded"


def test_what_changes_right_before_the_release_is_refused_by_the_gate():
    world = fleet()
    request = world.request("changed", "n0")
    world.certify(world.once().certifications[0])
    plan = world.decide()
    world.reboot("n0")
    result = world._release(plan.releases[0])
    assert result["status"] == "refused" and "n0" not in world.open()
    statuses = plan.conclude([result])
    assert statuses[request["metadata"]["name"]]["nodes"][0]["phase"] == "Running"


def test_evidence_of_another_node_attempt_or_test_is_none():
    world = fleet()
    request = world.request("changed", "n0")
    batch = world.once().certifications[0]
    world.certify(batch)
    good = world.evidence[batch["metadata"]["name"]]
    mine = good["members"]["n0"]
    for wrong in (
        {"tests": "0" * 16},
        {"members": {"n0": ["0" * 16, *mine[1:]]}},
        {"members": {"n0": [*mine[:2], ["vr-0"]]}},
        {"members": {"n1": mine}},
    ):
        trial = copy.deepcopy(world)
        trial.evidence = {batch["metadata"]["name"]: {**good, **wrong}}
        plan = trial.once()
        assert plan.releases == [] and "n0" not in trial.open()
    world.evidence[batch["metadata"]["name"]] = {"problem": "results.json was changed after it was recorded"}
    plan = world.once()
    assert plan.releases == [] and plan.certifications == [] and "was changed" in world.why(request, "n0")


def test_failed_after_its_retries_a_node_stays_gated():
    world = fleet()
    request = world.request("changed", "n0", "n1", retries=1)
    world.bad["n0"] = "fail"
    plan = world.run()
    assert world.phases(request) == {"n0": "Failed", "n1": "Opened"} and world.phase(request) == "Failed"
    assert len(world.certified) == 2 and "n0" not in world.open() and "attempt 2: fail" in world.why(request, "n0")
    assert [each["node"] for each in plan.failed] == ["n0"]
    assert world.once().failed[0]["node"] == "n0" and not world.once().orphans
    # repaired, and asked for anew: what it failed for is proven by equal tests, not by others
    other = world.request("repaired", "n0", tests=OTHER_TESTS)
    world.bad.clear()
    world.run()
    assert "n0" not in world.open() and "nothing has proven since" in world.why(other, "n0")
    world.request("repaired", "n0")
    world.run()
    assert "n0" in world.open()


def test_a_person_who_lets_a_failed_node_in_is_not_overruled():
    world = fleet()
    join(world, "n7")
    world.bad["n7"] = "fail"
    world.run(retries=0)
    assert world.phase(only_request(world)) == "Failed"
    world.release("validation", "n7")
    plan = world.once()
    assert "n7" in world.open() and not (plan.holds or plan.create)


def test_what_is_not_known_costs_no_attempt_while_others_hold_the_node():
    world = fleet()
    request = world.request("changed", "n0")
    world.bad["n0"] = "incomplete"
    world.certify(world.once().certifications[0])
    world.hold("quarantine", "n0")
    world.once()
    assert world.phases(request) == {"n0": "Pending"}
    world.release("quarantine", "n0")
    world.bad.clear()
    world.run()
    assert "n0" in world.open()


def test_without_a_result_it_is_a_failed_attempt():
    world = fleet()
    request = world.request("changed", "n0")
    world.bad["n0"] = "incomplete"
    world.run()
    assert world.phase(request) == "Failed" and "n0" not in world.open()


@pytest.mark.parametrize("verdict", ["pass", "fail", "unknown"])
def test_a_node_that_boots_whenever_it_is_tested_is_not_tested_for_ever(verdict):
    world = fleet()
    request = world.request("changed", "n0", retries=1)
    world.bad["n0"] = verdict
    for _round in range(20):
        for document in world.once().certifications:
            world.certify(document)
            world.reboot("n0")
    assert world.phases(request) == {"n0": "Failed"} and "n0" not in world.open()
    assert "in vain" in world.why(request, "n0") and len(world.certified) == validation.EXCUSES + 1


def test_a_node_that_is_silent_whenever_its_test_ends_is_not_tested_for_ever():
    world = fleet()
    request = world.request("changed", "n0")
    world.bad["n0"] = "unknown"
    ready = world.nodes["n0"]["status"]["conditions"][0]
    for _round in range(20):
        for document in world.once().certifications:
            world.certify(document)
            ready["status"] = "False"
            world.once()
            ready["status"] = "True"
    assert world.phases(request) == {"n0": "Failed"} and "n0" not in world.open()


def test_excused_attempts_cost_no_retry():
    world = fleet()
    request = world.request("changed", "n0", retries=1)
    world.certify(world.once().certifications[0])
    world.reboot("n0")
    world.bad["n0"] = "fail"
    world.run()
    assert world.phases(request) == {"n0": "Failed"} and len(world.certified) == 3


def test_a_clock_that_was_wrong_keeps_nobody_waiting():
    world = fleet(settle=120, batch_seconds=600)
    world.request("changed", "n0")
    world.now += timedelta(days=400)
    world.once()
    assert world.gate("n0")["since"].startswith("2027")
    world.now = BEGIN
    assert world.decide().certifications


def test_a_node_whose_gpu_is_gone_sick_since_its_pass_stays_closed():
    world = fleet()
    request = world.request("changed", "n0")
    world.certify(world.once().certifications[0])
    world.nodes["n0"]["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    plan = world.once()
    assert plan.releases == [] and "fewer of its GPUs" in world.why(request, "n0")
    world.nodes["n0"]["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    world.run()
    assert "n0" in world.open() and world.phase(request) == "Succeeded"


def test_nodes_without_gpus_are_not_taken_out_of_service():
    world = Fleet(*(raw(f"cpu-{number}", gpus=0) for number in range(5)), raw("n0"))
    request = world.request("changed", "n0", *(f"cpu-{number}" for number in range(5)))
    world.run()
    assert world.open() == sorted(world.nodes) and world.phases(request)["n0"] == "Opened"
    assert world.phases(request)["cpu-3"] == "Pending" and "no node with GPUs" in world.why(request, "cpu-3")


# ---------------------------------------------------------------- requests that are not what they were


def test_a_deleted_request_opens_nothing():
    world = fleet()
    request = world.request("changed", "n0")
    world.certify(world.once().certifications[0])
    world.requests.clear()
    plan = world.run()
    assert plan.releases == [] and "n0" not in world.open()
    assert plan.orphans[0]["node"] == "n0" and request["metadata"]["name"]
    # somebody asks for it again, and says that the old one does not count
    again = world.request("manual", "n0", tests=OTHER_TESTS)
    world.run()
    assert "n0" not in world.open() and "which no request is (any more)" in world.why(again, "n0")
    world.run(accept_changed=True)
    assert "n0" in world.open()


def test_deleting_the_request_of_a_new_node_does_not_make_it_a_new_one_with_other_tests():
    world = fleet()
    join(world, "n7")
    world.once()
    world.requests.clear()
    plan = world.once()
    assert not plan.create and [each["node"] for each in plan.orphans] == ["n7"] and "n7" not in world.open()


def test_an_edited_request_opens_nothing_until_it_is_accepted():
    world = fleet()
    request = world.request("changed", "n0", "n1")
    world.certify(world.once().certifications[0])
    name = request["metadata"]["name"]
    world.requests[name]["spec"] = {**world.requests[name]["spec"], "tests": OTHER_TESTS}
    plan = world.run()
    assert plan.releases == [] and world.open() == ["n2"]
    assert any("was edited" in line for line in plan.lines)
    assert "was edited" in world.requests[name]["status"]["message"]
    assert not world.once().statuses
    world.run(accept_changed=True)
    assert world.open() == ["n0", "n1", "n2"] and len(world.certified) == 2


def test_an_edited_request_without_its_status_opens_nothing_either():
    world = fleet()
    request = world.request("changed", "n0", "n1")
    world.certify(world.once().certifications[0])
    name = request["metadata"]["name"]
    world.requests[name] = {**request, "spec": {**request["spec"], "tests": OTHER_TESTS}}
    world.run()
    assert world.open() == ["n2"]


@pytest.mark.parametrize(
    "edit",
    [
        {"phase": "Passed"},
        {"phase": "Opened"},
        {"phase": "Running", "batch": "vr-0123456789abcdef", "attempts": 1, "evidence": "sha256:00"},
        {"phase": "Running", "batch": ""},
        {"phase": "Gone"},
    ],
)
def test_an_edited_status_opens_nothing(edit):
    world = fleet()
    request = world.request("changed", "n0")
    world.bad["n0"] = "fail"
    world.once()
    status = world.requests[request["metadata"]["name"]]["status"]
    status["nodes"][0].update(edit)
    for phase in ("Running", "Succeeded"):
        status["phase"] = phase
        trial = copy.deepcopy(world)
        trial.run()
        assert "n0" not in trial.open()


def test_all_nodes_gone_is_failed_never_succeeded():
    world = fleet()
    request = world.request("changed", "n0", "n1")
    world.certify(world.once().certifications[0])
    del world.nodes["n0"]
    world.nodes["n1"] = raw("n1", uid="another")
    world.once()
    assert world.phases(request) == {"n0": "Gone", "n1": "Gone"} and world.phase(request) == "Failed"


def test_a_node_replaced_under_its_name_is_a_new_node():
    world = fleet()
    request = world.request("changed", "n0", "n1")
    world.certify(world.once().certifications[0])
    world.nodes["n0"] = raw("n0", uid="another", created=LATER)
    world.once()
    assert world.phases(request)["n0"] == "Gone" and world.phase(request) == "Succeeded"
    assert world.open() == ["n1", "n2"]
    new = next(each for each in world.requests.values() if each["spec"]["reason"] == "new-node")
    assert new["spec"]["nodes"][0]["uid"] == "another"
    world.run()
    assert world.open() == ["n0", "n1", "n2"]


def test_a_node_that_is_replaced_before_it_is_gated_is_not_gated_for_the_other():
    world = fleet()
    world.request("changed", "n0")
    (want,) = world.decide().holds
    world.nodes["n0"] = raw("n0", uid="another", created=LATER)
    world._hold(want)
    assert world.gate("n0") is None
    world.run()
    (new,) = [name for name, request in world.requests.items() if request["spec"]["reason"] == "new-node"]
    assert world.phases(new) == {"n0": "Opened"}


def test_a_request_written_by_hand_means_the_node_that_is_there_first():
    world = fleet()
    document = {"reason": "manual", "nodes": [{"name": "n0"}, {"name": "n9"}], "tests": TESTS}
    world.requests["by-hand"] = {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "ValidationRequest",
        "metadata": {"name": "by-hand"},
        "spec": document,
    }
    world.once()
    assert world.phases("by-hand") == {"n0": "Running", "n9": "Gone"}
    world.nodes["n0"] = raw("n0", uid="another")
    world.run()
    assert world.phases("by-hand")["n0"] == "Gone"


def test_two_requests_for_a_node_have_both_to_be_proven():
    world = fleet()
    first, second = world.request("changed", "n0"), world.request("repaired", "n0", tests=OTHER_TESTS)
    plan = world.once()
    assert len(world.gate("n0")["evidence"].split("+")) == 2
    world.certify(plan.certifications[0])
    world.once()
    assert "n0" not in world.open()
    world.reboot("n0")  # so what was proven before is not proven any more
    world.certify(plan.certifications[1])
    world.once()
    assert "n0" not in world.open()
    world.run()
    assert "n0" in world.open() and {world.phase(first), world.phase(second)} == {"Succeeded"}


def test_a_request_that_comes_while_another_is_proven_keeps_the_node_closed():
    world = fleet()
    world.request("changed", "n0")
    world.certify(world.once().certifications[0])
    world.request("repaired", "n0", tests=OTHER_TESTS)
    plan = world.once()
    assert "n0" not in world.open() and len(plan.certifications) == 1
    world.run()
    assert "n0" in world.open()


def test_more_requests_than_a_gate_can_tell():
    world = fleet()
    for number in range(15):
        tests = [{"domain": "diagnostics", "variant": f"test-{number}"}]
        world.request("changed", "n0", tests=tests)
    world.once()
    assert world.gate("n0")["evidence"].startswith("vrs-")
    deleted = copy.deepcopy(world)
    deleted.requests.popitem()
    deleted.run()
    assert "n0" not in deleted.open()
    world.run()
    assert "n0" in world.open()


def test_a_gate_without_a_request_is_told_and_adopted_only_when_asked():
    world = fleet()
    world.hold("validation", "n0", evidence="ticket-12")
    plan = world.once()
    assert [each["node"] for each in plan.orphans] == ["n0"] and not plan.holds and "n0" not in world.open()
    assert any("n0: closed" in line and "adopt_orphans" in line for line in plan.lines)
    world.run(adopt_orphans=True)
    assert "n0" in world.open()
    assert only_request(world)["spec"]["reason"] == "manual"


def test_a_gate_that_a_person_holds_without_evidence_is_taken_up_by_a_request():
    world = fleet()
    world.hold("validation", "n0")
    world.request("manual", "n0")
    world.run()
    assert "n0" in world.open()


@pytest.mark.parametrize("harm", ["text", "taint", "preference"])
def test_a_gate_that_somebody_spoiled_is_closed_anew(harm):
    world = fleet()
    request = world.request("changed", "n0")
    world.once()
    annotations, spec = world.nodes["n0"]["metadata"]["annotations"], world.nodes["n0"]["spec"]
    if harm == "text":
        annotations[GATE] = "{broken"
    elif harm == "taint":
        spec["taints"] = []
    else:
        annotations[GATE] = annotations[GATE].replace("NoSchedule", "PreferNoSchedule")
        spec["taints"][0]["effect"] = "PreferNoSchedule"
    assert world.decide().holds
    world.once()
    (taint,) = world.nodes["n0"]["spec"]["taints"]
    assert (taint["key"], taint["effect"]) == (GATE, "NoSchedule")
    assert world.once().holds == [] and world.gate("n0")["readable"] and not world.gate("n0")["missing"]
    world.run()
    assert world.phase(request) == "Succeeded" and "n0" in world.open()


# ---------------------------------------------------------------- bounds


def test_nodes_in_service_are_taken_out_within_bounds():
    world = fleet(10, max_out=Bound(3, False))
    request = world.request("changed", *(f"n{number}" for number in range(8)))
    world.hold("quarantine", "n9")
    world.once()
    assert len(world.open()) == 7  # the sick one counts
    assert sum("there is room" in world.why(request, f"n{number}") for number in range(8)) == 6
    seen = set()
    for _round in range(6):
        plan = world.once()
        for document in plan.certifications:
            world.certify(document)
        seen.add(len(world.open()))
        assert len(world.open()) >= 7
    world.run()
    assert world.phase(request) == "Succeeded" and len(world.open()) == 9


def test_new_nodes_and_nodes_that_are_out_cost_no_room():
    world = fleet(4, max_out=Bound(1, False))
    world.hold("quarantine", "n0")
    request = world.request("repaired", "n0", "n1")
    join(world, "n5", "n6", "n7")
    world.once()
    assert world.open() == ["n1", "n2", "n3"] and world.gate("n0") and world.gate("n5")
    assert "there is room" in world.why(request, "n1")


def test_a_domain_has_a_bound_of_its_own():
    nodes = [raw(f"n{number}{rack}") for rack in "ab" for number in range(4)]
    world = Fleet(*nodes, max_out_domain=Bound(1, False))
    world.request("changed", *(node["metadata"]["name"] for node in nodes))
    world.once()
    out = sorted(set(world.nodes) - set(world.open()))
    assert [name[-1] for name in out] == ["a", "b"]


def test_only_what_is_asked_for_is_worked_on():
    world = fleet()
    first, second = world.request("changed", "n0"), world.request("changed", "n1")
    world.run(only=frozenset([second["metadata"]["name"]]), new_nodes=False)
    assert "status" not in world.requests[first["metadata"]["name"]] and world.gate("n0") is None
    assert world.phase(second) == "Succeeded"


# ---------------------------------------------------------------- killed anywhere


def scene() -> Fleet:
    world = fleet(4)
    join(world, "n7", "n8")
    world.bad["n1"] = "fail"
    world.request("changed", "n0", "n1", retries=1)
    world.request("repaired", "n0", tests=OTHER_TESTS)
    return world


def test_killed_before_or_after_any_write_the_next_passes_end_in_the_same_state():
    whole = scene()
    whole.run()
    want = whole.state()
    assert whole.writes > 30 and whole.open() == ["n0", "n2", "n3", "n7", "n8"]
    for number in range(1, whole.writes + 1):
        world = scene()
        world.killed_at = number
        with pytest.raises(Killed):
            world.run()
        world.run()
        assert world.open() == whole.open(), number
        assert {name: each["phase"] for name, each in world.state()["requests"].items()} == {
            name: each["phase"] for name, each in want["requests"].items()
        }


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_only_what_is_proven_opens(seed):
    """Random events between passes that are killed at random: a node that had to be validated is opened by us only on
    what a certification has proven it to be, with no evidence of ours undone, and all comes to an end."""
    dice = random.Random(seed)
    world = fleet(6, max_out=Bound(dice.randint(1, 4), False))
    released = set()
    for step in range(30):
        _event(world, dice, step)
        before = set(world.open())
        world.killed_at = world.writes + dice.randint(1, 25)
        try:
            plan = world.once()
            for document in plan.certifications:
                if document["metadata"]["name"] not in world.evidence and dice.random() < 0.8:
                    world.certify(document)
        except Killed:
            pass
        for name in set(world.open()) - before:
            released.add(name)
            facts = world.facts()[name]
            record = facts["certified"]["record"]
            assert facts["certified"]["valid"], (name, facts["certified"])
            for batch in record["certification"].split(","):
                proof = world.evidence[batch]
                assert proof["nodes"][name]["passed"]
                assert proof["members"][name][0] == nodefacts_mark(facts)
        for document in world.requests.values():
            documents.load(copy.deepcopy(document), "ValidationRequest")
    world.killed_at = 0
    for name in world.nodes:
        for owner in ("quarantine",):
            if nodefacts.gate(world.facts()[name], owner):
                world.release(owner, name)
        world.nodes[name]["spec"].pop("unschedulable", None)
    world.bad.clear()
    plan = world.run(rounds=60)
    assert not plan.certifications and not world.once().statuses


def nodefacts_mark(facts: dict) -> str:
    return validation.batches.mark(nodefacts.basis(facts))


def _event(world: Fleet, dice: random.Random, step: int) -> None:
    names = sorted(world.nodes)
    name = dice.choice(names)
    what = dice.choice(
        [
            "join",
            "request",
            "request",
            "reboot",
            "driver",
            "gate",
            "cordon",
            "delete",
            "replace",
            "edit",
            "forget",
            "bad",
            "nothing",
            "nothing",
            "release",
        ]
    )
    if what == "join" and len(names) < 12:
        join(world, f"new{step}", uid=f"uid-{step}")
    elif what == "request":
        chosen = dice.sample(names, min(len(names), dice.randint(1, 4)))
        world.request(
            dice.choice(["changed", "repaired"]),
            *chosen,
            tests=dice.choice([TESTS, OTHER_TESTS]),
            retries=dice.randint(0, 2),
        )
    elif what == "reboot":
        world.reboot(name)
    elif what == "driver":
        world.set_driver(name, f"580.{step}")
    elif what == "gate":
        world.hold("quarantine", name)
    elif what == "release" and nodefacts.gate(world.facts()[name], "quarantine") and world.gate(name):
        world.release("quarantine", name)
    elif what == "cordon":
        world.nodes[name]["spec"]["unschedulable"] = True
    elif what == "delete" and len(names) > 3:
        del world.nodes[name]
    elif what == "replace":
        world.nodes[name] = raw(name, uid=f"uid-{step}", created=LATER)
    elif what == "edit" and world.requests:
        chosen = dice.choice(sorted(world.requests))
        spec = world.requests[chosen]["spec"]
        world.requests[chosen] = {**world.requests[chosen], "spec": {**spec, "cause": f"edited {step}"}}
    elif what == "forget" and world.requests:
        del world.requests[dice.choice(sorted(world.requests))]
    elif what == "bad":
        world.bad = {name: dice.choice(["fail", "incomplete"])}
