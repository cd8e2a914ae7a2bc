"""What holding and releasing change on a node, case by case."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import model

from tests.unit.gates.nodes import BOOT, FATAL, NEXT_BOOT, annotation, apply, gate, node, set_unschedulable

FOREIGN = {
    "key": "team.example.com/reserved",
    "value": "a",
    "effect": "NoSchedule",
    "timeAdded": "2026-01-01T00:00:00Z",
}
DEFAULT = {"key": "gate.goodput.fleet/quarantine", "value": "gpu-fell-off", "effect": "NoSchedule"}


def held(raw: dict, *gates: dict, **options) -> dict:
    for each in gates:
        raw = apply(raw, model.hold(raw, each, **options).patch)
    return raw


def released(raw: dict, *owners: str, **expect) -> dict:
    for owner in owners:
        raw = apply(raw, model.release(raw, owner, expect).patch)
    return raw


def taints(raw: dict) -> list[dict]:
    return raw["spec"].get("taints", [])


def test_one_patch_closes_a_node_and_one_opens_it():
    before = node(taints=[FOREIGN])
    change = model.hold(before, gate())
    assert change.status == "held"
    assert change.patch["metadata"]["resourceVersion"] == "1"
    assert change.patch["spec"] == {"taints": [FOREIGN, DEFAULT]}  # theirs byte for byte, no cordon
    after = apply(before, change.patch)
    assert annotation(after, "quarantine") == {
        "reason": "gpu fell off",
        "rule": "",
        "ruleDigest": "",
        "evidence": "",
        "since": "2026-11-29T12:00:00Z",
        "bootId": BOOT,
        "cordon": False,
        "cordonOurs": False,
        "taint": DEFAULT,
        "taintOurs": True,
    }
    change = model.release(after, "quarantine")
    assert change.status == "released"
    assert change.patch == {
        "metadata": {"resourceVersion": "2", "annotations": {"gate.goodput.fleet/quarantine": None}},
        "spec": {"taints": [FOREIGN]},
    }


def test_holding_twice_is_one_gate_and_releasing_none_is_nothing():
    raw = held(node(), gate(evidence="e1", cordon=True))
    again = model.hold(raw, gate(evidence="e1", cordon=True, since="2026-12-01T00:00:00Z"))
    assert (again.status, again.patch, again.reason) == ("unchanged", None, "")
    assert (again.before, again.after) == (again.after, again.before)
    nothing = model.release(node(), "quarantine")
    assert (nothing.status, nothing.patch) == ("unchanged", None)


def test_the_last_taint_leaves_no_empty_list():
    raw = held(node(), gate())
    assert model.release(raw, "quarantine").patch["spec"] == {"taints": None}


def test_new_evidence_brings_a_gate_up_to_date_and_keeps_what_is_not_said():
    raw = held(node(), gate(rule="fatal", ruleDigest="sha256:1", evidence="e1", taint=FATAL))
    change = model.hold(raw, {"owner": "quarantine", "evidence": "e2", "since": "2026-12-24T00:00:00Z"})
    assert change.status == "held" and "spec" not in change.patch
    body = annotation(apply(raw, change.patch), "quarantine")
    assert (body["evidence"], body["since"], body["rule"], body["reason"], body["taint"]) == (
        "e2",
        "2026-11-29T12:00:00Z",
        "fatal",
        "gpu fell off",
        FATAL,
    )


def test_another_rule_never_keeps_the_first_ones_digest():
    raw = held(node(), gate(rule="fatal", ruleDigest="sha256:1"), gate(rule="other"))
    assert (annotation(raw, "quarantine")["rule"], annotation(raw, "quarantine")["ruleDigest"]) == ("other", "")


def test_a_changed_taint_replaces_the_old_one():
    raw = held(node(taints=[FOREIGN]), gate(), gate(taint=FATAL))
    assert taints(raw) == [FOREIGN, FATAL]
    assert taints(released(raw, "quarantine")) == [FOREIGN]


def test_a_taint_that_was_there_before_stays():
    raw = held(node(taints=[FATAL]), gate(taint=FATAL))
    assert annotation(raw, "quarantine")["taintOurs"] is False
    assert taints(released(raw, "quarantine")) == [FATAL]
    # and a second gate with the same one does not make it ours
    both = held(raw, gate("manual", taint=FATAL))
    assert taints(released(both, "quarantine", "manual")) == [FATAL]


def test_a_foreign_taint_of_the_same_key_is_left_and_said():
    theirs = {**FATAL, "value": "theirs"}
    change = model.hold(node(taints=[theirs]), gate(taint=FATAL))
    assert change.status == "held" and "spec" not in change.patch
    assert change.reason == "taint nvidia.com/gpu-error=fatal:NoSchedule is not set: " + (
        "nvidia.com/gpu-error=theirs:NoSchedule is there"
    )
    raw = apply(node(taints=[theirs]), change.patch)
    assert taints(released(raw, "quarantine")) == [theirs]
    del raw["spec"]["taints"]  # they took it off: ours goes in
    raw = held(raw, gate(taint=FATAL))
    assert taints(raw) == [FATAL]
    assert taints(released(raw, "quarantine")) == []


def test_what_becomes_ours_is_every_gates_that_wants_it():
    """The first gate came to a taint and a cordon of somebody's, who took both off; the second put in ours."""
    raw = held(node(taints=[FATAL], unschedulable=True), gate(taint=FATAL, cordon=True))
    del raw["spec"]["taints"]
    set_unschedulable(raw, False, "kubectl-uncordon")
    raw = held(raw, gate("manual", taint=FATAL, cordon=True))
    raw = released(raw, "manual")
    assert taints(raw) == [FATAL] and raw["spec"]["unschedulable"] is True
    raw = released(raw, "quarantine")
    assert taints(raw) == [] and "unschedulable" not in raw["spec"]


def test_another_owners_annotation_is_not_touched_for_its_looks():
    raw = held(node(), gate("manual"))
    pretty = raw["metadata"]["annotations"]["gate.goodput.fleet/manual"].replace(":", ": ")
    raw["metadata"]["annotations"]["gate.goodput.fleet/manual"] = pretty
    assert list(model.hold(raw, gate()).patch["metadata"]["annotations"]) == ["gate.goodput.fleet/quarantine"]


def test_gates_with_one_taint_share_it():
    raw = held(node(), gate(taint=FATAL), gate("manual", taint=FATAL))
    assert taints(raw) == [FATAL]
    raw = released(raw, "quarantine")
    assert taints(raw) == [FATAL]
    assert taints(released(raw, "manual")) == []


def test_gates_with_one_key_and_two_values_follow_each_other():
    warn = {**FATAL, "value": "warn"}
    raw = held(node(), gate(taint=FATAL), gate("manual", taint=warn))
    assert taints(raw) == [FATAL]
    raw = released(raw, "quarantine")
    assert taints(raw) == [warn]
    assert taints(released(raw, "manual")) == []


def test_our_cordon_is_lifted_with_the_last_gate_that_wants_it():
    raw = held(node(), gate(cordon=True), gate("manual", cordon=True), gate("validation"))
    assert raw["spec"]["unschedulable"] is True
    change = model.release(raw, "quarantine")
    assert change.reason == "the cordon stays for manual"
    raw = apply(raw, change.patch)
    assert raw["spec"]["unschedulable"] is True
    raw = released(raw, "manual")
    assert "unschedulable" not in raw["spec"]
    assert [each["owner"] for each in model.state(raw)["gates"]] == ["validation"]


def test_a_gate_that_wants_the_cordon_no_longer_lifts_it():
    raw = held(node(), gate(cordon=True), gate(cordon=False))
    assert "unschedulable" not in raw["spec"]


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_a_persons_cordon_is_never_lifted(when):
    raw = node()
    if when == "before":
        set_unschedulable(raw, True, "kubectl-cordon")
    raw = held(raw, gate(cordon=when != "after"))
    if when == "between":
        set_unschedulable(raw, False, "kubectl-uncordon")
        set_unschedulable(raw, True, "kubectl-cordon")
    raw = held(raw, gate("manual", cordon=when != "after"))
    if when == "after":
        set_unschedulable(raw, True, "kubectl-cordon")
    raw = released(raw, "quarantine", "manual")
    assert raw["spec"]["unschedulable"] is True
    seen = model.state(raw)
    assert seen["open"] is False and seen["gates"] == []
    assert [(each["kind"], each["detail"]) for each in seen["external"]] == [
        ("cordon", "set by kubectl-cordon at 2026-11-29T12:00:00Z")
    ]


def test_a_person_who_lifts_our_cordon_is_respected_unless_told_otherwise():
    raw = held(node(), gate(cordon=True))
    set_unschedulable(raw, False, "kubectl-uncordon")
    assert model.state(raw)["gates"][0]["missing"] == ["cordon"]
    assert model.state(raw)["open"] is False
    change = model.hold(raw, gate(cordon=True))
    assert (change.status, change.patch) == ("unchanged", None)
    assert "somebody lifted the cordon" in change.reason
    change = model.hold(raw, gate(cordon=True), reclose=True)
    assert change.patch["spec"] == {"unschedulable": True}
    assert "unschedulable" not in released(apply(raw, change.patch), "quarantine")["spec"]


def test_a_person_who_takes_our_taint_off_is_reported_and_it_is_put_back():
    raw = held(node(), gate(), gate("manual"))
    raw["spec"]["taints"] = [each for each in taints(raw) if each != DEFAULT]
    assert [each["missing"] for each in model.state(raw)["gates"]] == [[], ["taint"]]
    change = model.hold(raw, gate())
    assert change.reason == "somebody took the taint off; it is back"
    assert DEFAULT in taints(apply(raw, change.patch))
    # a release of another owner's gate does not
    assert taints(released(raw, "manual")) == []


@pytest.mark.parametrize(
    "text",
    ["", "held by ops", "[]", "null", "{", '{"taint": "x"}', '{"reason": 7}', '{"taint":{"key":"a b","effect":"No"}}'],
)
def test_an_annotation_that_cannot_be_read_still_holds(text):
    raw = held(node(), gate())
    raw["metadata"]["annotations"]["gate.goodput.fleet/quarantine"] = text
    seen = model.state(raw)
    assert seen["open"] is False and seen["external"] == []
    assert seen["gates"][0]["readable"] is False
    assert "gate.goodput.fleet/quarantine cannot be read" in seen["gates"][0]["problem"]
    change = model.release(raw, "quarantine", {"ruleDigest": "sha256:1"})
    assert (change.status, change.patch) == ("refused", None) and "release with force" in change.reason
    forced = released(raw, "quarantine", force=True)
    assert model.state(forced) == {"open": True, "gates": [], "external": []}
    mended = held(raw, gate(evidence="e9"))
    assert annotation(mended, "quarantine")["evidence"] == "e9"
    assert taints(mended) == [DEFAULT]


def test_a_gate_that_cannot_be_read_keeps_what_it_may_want():
    raw = held(node(), gate(taint=FATAL, cordon=True), gate("manual", taint=FATAL, cordon=True))
    raw["metadata"]["annotations"]["gate.goodput.fleet/manual"] += "oops"
    raw = released(raw, "quarantine")
    assert taints(raw) == [FATAL] and raw["spec"]["unschedulable"] is True
    raw = released(raw, "manual", force=True)  # managedFields says that the cordon is ours
    assert "unschedulable" not in raw["spec"]
    assert taints(raw) == [FATAL]  # whose this is nobody can tell any more


def test_what_is_left_when_somebody_removes_the_annotation():
    raw = held(node(taints=[FOREIGN]), gate(cordon=True))
    raw["metadata"]["annotations"] = {}
    seen = model.state(raw)
    assert [each["detail"] for each in seen["external"]] == [
        "set by goodput-fleet, but no gate says so any more",
        "not set by this collection",
        "of this collection's, but its gate's annotation is gone",
    ]
    assert model.release(raw, "quarantine").status == "unchanged"
    assert model.release(raw, "quarantine", {"force": True}).status == "released"
    assert model.state(released(raw, "quarantine", force=True))["external"][0]["key"] == FOREIGN["key"]
    # holding again takes it over
    again = released(held(raw, gate(cordon=True)), "quarantine")
    assert taints(again) == [FOREIGN] and "unschedulable" not in again["spec"]


@pytest.mark.parametrize(
    ("expect", "status", "says"),
    [
        ({"bootId": BOOT}, "released", ""),
        ({"bootId": NEXT_BOOT}, "refused", "stale: the node has booted since"),
        ({"evidence": "e1"}, "released", ""),
        ({"evidence": "e0"}, "refused", "stale: the gate is held on e1, not on e0"),
        ({"rule": "fatal", "ruleDigest": "sha256:1"}, "released", ""),
        ({"rule": "other"}, "unchanged", "another rule set this gate (fatal sha256:1)"),
        ({"ruleDigest": "sha256:2"}, "unchanged", "another rule set this gate"),
        ({"evidence": "e0", "force": True}, "refused", "stale"),
        (
            {"uid": "u-1", "labels": {"driver": "580.1", "mig": ""}, "nodeInfo": {"kernelVersion": "6.8"}},
            "released",
            "",
        ),
        ({"uid": "u-2"}, "refused", "stale: another node has this name now"),
        ({"labels": {"driver": "580.2"}}, "refused", "stale: driver of the node is 580.1 now, not 580.2"),
        ({"labels": {"driver": ""}}, "refused", "stale: driver of the node is 580.1 now, not absent"),
        ({"nodeInfo": {"kernelVersion": "6.9"}}, "refused", "stale: kernelVersion of the node is 6.8 now"),
        ({"nodeInfo": {"osImage": "Ubuntu"}}, "refused", "stale: osImage of the node is not told now"),
    ],
)
def test_a_release_names_what_it_is_for(expect, status, says):
    raw = held(node(labels={"driver": "580.1"}), gate(evidence="e1", rule="fatal", ruleDigest="sha256:1"))
    raw["metadata"]["uid"], raw["status"]["nodeInfo"]["kernelVersion"] = "u-1", "6.8"
    change = model.release(raw, "quarantine", expect)
    assert change.status == status and says in change.reason
    assert (change.patch is None) == (status != "released")


def test_what_a_release_records_is_written_with_it_and_only_then():
    record = {"annotations": {"goodput.fleet/certified": "yes"}}
    raw = held(node(), gate())
    assert model.release(raw, "quarantine", record).patch["metadata"]["annotations"] == {
        "goodput.fleet/certified": "yes",
        "gate.goodput.fleet/quarantine": None,
    }
    assert model.release(raw, "quarantine", {**record, "bootId": NEXT_BOOT}).patch is None
    assert model.release(raw, "validation", record).patch is None


def test_a_hold_may_say_which_node_of_that_name_it_means():
    raw = node()
    raw["metadata"]["uid"] = "u-1"
    assert model.hold(raw, gate(uid="u-1")).status == "held"
    assert model.hold(raw, gate(uid="u-2")).reason == "another node has this name now"


def test_what_is_broken_goes_with_the_evidence_that_says_so():
    raw = held(node(), gate(evidence="e1", fault="xid-79", action="RESTART_BM", entity="GPU-1"))
    (seen,) = model.state(raw)["gates"]
    assert (seen["fault"], seen["action"], seen["entity"]) == ("xid-79", "RESTART_BM", "GPU-1")
    again = model.hold(raw, gate(evidence="e1", reason="said otherwise"))
    assert '"action":"RESTART_BM"' in again.patch["metadata"]["annotations"]["gate.goodput.fleet/quarantine"]
    (newer,) = model.state(held(raw, gate(evidence="e2", fault="xid-95")))["gates"]
    assert (newer["fault"], newer["action"], newer["entity"]) == ("xid-95", "", "")


def test_a_gate_of_the_last_boot_is_released_in_this_one():
    raw = held(node(), gate())
    raw["status"]["nodeInfo"]["bootID"] = NEXT_BOOT
    assert model.release(raw, "quarantine", {"bootId": NEXT_BOOT}).status == "released"
    assert model.release(raw, "quarantine", {"bootId": BOOT}).status == "refused"
    raw["status"]["nodeInfo"] = {}
    assert "tells no boot id" in model.release(raw, "quarantine", {"bootId": BOOT}).reason


def test_evidence_of_another_boot_holds_nothing():
    change = model.hold(node(), gate(bootId=NEXT_BOOT))
    assert (change.status, change.patch) == ("refused", None)
    assert "is over, it runs" in change.reason
    assert annotation(held(node(), gate(bootId=BOOT)), "quarantine")["bootId"] == BOOT


def test_reasons_are_one_bounded_line():
    raw = held(node(), gate(reason="a\nb\x00 " + "ü" * 9000))
    reason = annotation(raw, "quarantine")["reason"]
    assert reason.startswith("a b ü") and len(reason) == 512 and reason.endswith("…")
    assert len(raw["metadata"]["annotations"]["gate.goodput.fleet/quarantine"].encode()) < 4096
    assert taints(raw)[0]["value"] == "a-b"


def test_deciding_changes_nothing_that_it_was_given():
    raw = held(node(taints=[FOREIGN]), gate(cordon=True))
    copied = copy.deepcopy(raw)
    model.hold(raw, gate(taint=FATAL, cordon=False))
    model.release(raw, "quarantine")
    model.state(raw)
    assert raw == copied


def test_another_tools_quarantine_keeps_a_cordon_that_it_found():
    raw = held(node(), gate(cordon=True))
    raw["metadata"]["annotations"]["quarantineHealthEvent"] = '[{"checkName":"GpuMemWatch"}]'
    raw["metadata"]["annotations"]["quarantineHealthEventCordonPreExisting"] = "True"
    change = model.release(raw, "quarantine")
    assert change.status == "released" and "quarantineHealthEvent" in change.reason
    assert "unschedulable" not in change.patch["spec"]
    # a label that NVSentinel left behind keeps nothing
    raw = held(node(labels={"dgxc.nvidia.com/nvsentinel-state": "remediation-failed"}), gate(cordon=True))
    assert "unschedulable" not in released(raw, "quarantine")["spec"]
