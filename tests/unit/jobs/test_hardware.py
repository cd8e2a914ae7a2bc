# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import attempt, hardware
from ansible_collections.goodput.fleet.tests.unit.jobs import raw


def told(*, nodes=None, status=None, when=200, started=0, **evidence):
    """What is known of gpu-0, under a job of 2 pods that began at `started`."""
    job = raw.job(pods=2, status=status or {"startTime": raw.at(started)})
    pods = [raw.pod(i, f"gpu-{i}", made=started + 1) for i in range(2)]
    nodes = [raw.node("gpu-0"), raw.node("gpu-1")] if nodes is None else nodes
    snapshot = attempt.Snapshot(jobs=[job], pods=pods, nodes=nodes, **evidence)
    hardware_ = attempt.build(snapshot, raw.now(when))[0]["hardware"]
    assert set(hardware_) <= {"gpu-0"}, "the other node is well"
    return hardware_.get("gpu-0", [])


def briefly(entries):
    return [(each["source"], each["at"], each["fatal"], each.get("before", False)) for each in entries]


def test_a_report_during_the_attempt():
    entry = told(events=[raw.event("gpu-0", 50)])
    assert entry == [
        {
            "source": "event",
            "at": raw.at(50),
            "what": "SysLogsXIDError 79 (PCI 0000:1b:00): GPU has fallen off the bus.",
            "fatal": True,
            "evidence": "gpu-0-79-50",
        }
    ]


TIMES = {
    "during": (50, [False]),
    "at its very start": (0, [False]),
    "within the grace": (100 + 119, [False]),
    "after it": (100 + 121, []),
    "before": (-60, [True]),
    "long before": (-90000, []),
}


@pytest.mark.parametrize("case", TIMES)
def test_only_what_was_told_of_that_time(case):
    when, wanted = TIMES[case]
    nodes = [raw.node(f"gpu-{i}", made=-200000) for i in range(2)]
    found = told(events=[raw.event("gpu-0", when)], status=raw.failed("BackoffLimitExceeded"), when=9000, nodes=nodes)
    assert [each.get("before", False) for each in found] == wanted


def test_reports_of_other_nodes_are_none_of_its_business():
    assert told(events=[raw.event("gpu-7", 50)], gates={"gpu-7": [raw.gate(50)]}) == []


def test_what_was_taken_back_before_is_over_and_what_was_since_says_so():
    before = [raw.event("gpu-0", -60), raw.event("gpu-0", -30, healthy=True)]
    since = [raw.event("gpu-0", 40), raw.event("gpu-0", 80, healthy=True)]
    assert told(events=before) == []
    assert [(each["at"], each["over"], each["fatal"]) for each in told(events=since)] == [
        (raw.at(40), raw.at(80), True)
    ]


def test_another_gpu_that_is_well_takes_nothing_back():
    other = [{"entityType": "PCI", "entityValue": "0000:5d:00"}]
    events = [raw.event("gpu-0", -60), raw.event("gpu-0", -30, healthy=True, entitiesImpacted=other)]
    assert [each["before"] for each in told(events=events)] == [True]


def test_what_an_earlier_boot_left_is_over():
    assert told(events=[raw.event("gpu-0", -60, bootId="boot-0")]) == []


def test_a_report_without_a_time_is_of_no_time():
    assert told(events=[raw.event("gpu-0", 50, generatedTimestamp=None, receivedTimestamp=None)]) == []


def test_an_observer_whose_clock_is_ahead_is_not_believed():
    assert [each["at"] for each in told(events=[raw.event("gpu-0", 5000, receivedTimestamp=raw.at(60))])] == [
        raw.at(60)
    ]


def test_who_could_not_see_says_nothing():
    assert told(events=[raw.event("gpu-0", 50, state="unknown", fatal=False)]) == []


GATES = {
    "during": (raw.gate(50), ("gate", raw.at(50), True, False)),
    "before": (raw.gate(-50), ("gate", raw.at(-50), True, True)),
    "no time": (raw.gate(0, since=""), ("gate", "", True, True)),
    "maintenance": (
        raw.gate(50, "maintenance", reason="firmware", fault="", entity=""),
        ("gate", raw.at(50), False, False),
    ),
    "cannot be read": ({"owner": "quarantine", "readable": False}, ("gate", "", True, True)),
}


@pytest.mark.parametrize("case", GATES)
def test_gates(case):
    gate, wanted = GATES[case]
    assert briefly(told(gates={"gpu-0": [gate]})) == [wanted]


def test_a_gate_that_came_later_says_nothing_of_the_attempt():
    status = raw.failed("BackoffLimitExceeded")
    assert told(gates={"gpu-0": [raw.gate(900)]}, status=status, when=1000) == []


def test_a_node_that_does_not_answer_is_evidence_but_no_proof():
    nodes = [raw.node("gpu-0", ready="Unknown", since=60), raw.node("gpu-1")]
    assert briefly(told(nodes=nodes)) == [("condition", raw.at(60), False, False)]
    nodes = [raw.node("gpu-0", ready="Unknown", since=-60), raw.node("gpu-1")]
    assert briefly(told(nodes=nodes)) == [("condition", raw.at(-60), False, True)]


def test_a_node_that_is_gone():
    assert briefly(told(nodes=[raw.node("gpu-1")])) == [("gone", "", True, False)]


def test_a_node_made_anew_is_another_one():
    nodes = [raw.node("gpu-0", uid="second", made=150, boot="boot-9"), raw.node("gpu-1")]
    events = [raw.event("gpu-0", 50), raw.event("gpu-0", -50)]
    found = told(nodes=nodes, events=events, gates={"gpu-0": [raw.gate(160)]})
    # the new node's gate is not the old one's
    assert [(each["source"], each["what"]) for each in found] == [
        ("event", "SysLogsXIDError 79 (PCI 0000:1b:00): GPU has fallen off the bus."),
        ("gone", "another node has this name now"),
    ]


REBOOTS = {
    "seen by an earlier pass": {"known": {"gpu-0": {"uid": "node-gpu-0", "boots": [{"bootId": "boot-0", "at": 20}]}}},
    "told by a report": {"events": [raw.event("gpu-0", 20, fatal=False, bootId="boot-0")]},
    "told by a gate": {"gates": {"gpu-0": [raw.gate(20, bootId="boot-0")]}},
}


@pytest.mark.parametrize("case", REBOOTS)
def test_a_reboot_during_the_attempt(case):
    evidence = dict(REBOOTS[case])
    if "known" in evidence:
        evidence["known"]["gpu-0"]["boots"][0]["at"] = raw.at(20)
    found = [each for each in told(**evidence) if "Rebooted" in each["what"]]
    assert [(each["source"], each["fatal"]) for each in found] == [("event", False)]


def test_no_reboot_where_the_other_boot_was_before_the_attempt_or_of_another_node():
    for uid, when in (("node-gpu-0", -20), ("older", 20)):
        known = {"gpu-0": {"uid": uid, "boots": [{"bootId": "boot-0", "at": raw.at(when)}]}}
        assert told(known=known) == []


def test_a_reboot_long_after_the_end_says_nothing():
    known = {"gpu-0": {"uid": "node-gpu-0", "boots": [{"bootId": "boot-0", "at": raw.at(50)}]}}
    status = raw.failed("BackoffLimitExceeded")
    assert [bool(told(known=known, status=status, when=when)) for when in (150, 5000)] == [True, False]


def test_the_kubelet_tells_of_a_reboot():
    about = {"kind": "Node", "name": "gpu-0"}
    events = [
        {"reason": "Rebooted", "message": "booted", "lastTimestamp": raw.at(50), "involvedObject": about},
        {"reason": "Rebooted", "message": "booted", "eventTime": raw.at(-50), "involvedObject": about},
        {"reason": "Pulled", "message": "image", "eventTime": raw.at(50), "involvedObject": about},
    ]
    assert briefly(told(node_events=events)) == [("event", raw.at(50), False, False)]


def test_a_storm_of_reports_is_bounded_and_keeps_what_is_fatal():
    events = [raw.event("gpu-0", 10 + i / 10, "94", fatal=False) for i in range(500)] + [raw.event("gpu-0", 70)]
    found = told(events=events)
    assert len(found) == hardware.LIMIT + 1
    assert [each["at"] for each in found if each["fatal"]] == [raw.at(70)]
    assert found[-1]["what"] == f"and {501 - hardware.LIMIT} more reports"
