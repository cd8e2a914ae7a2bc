# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every row of the table of decisions."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import rows

from tests.unit.jobs.attempts import (
    PAIR,
    TIMEOUT,
    advice,
    ago,
    attempt,
    bug,
    decided,
    entry,
    excluded,
    fleet,
    nodes,
    one,
    remembered,
    signature,
    xid,
)

ADVANCED = {"firstStep": 1, "lastStep": 700, "advanced": True}
STUCK = {"firstStep": None, "lastStep": None, "advanced": False}
HANG = {"lastStep": 700, "silenceSeconds": 1800, "limitSeconds": 600, "hung": True, "advanced": True}
OOM = signature(
    "user-code",
    "J052",
    "fail to user",
    exception={
        "type": "torch.OutOfMemoryError",
        "message": "CUDA out of memory.",
        "file": "t.py",
        "line": 5,
        "step": 9,
    },
)


def hung(**changed) -> dict:
    given = attempt(state="hung", endedAt="", reason="", progress=HANG, **changed)
    for rank in given["ranks"]:
        rank.update(phase="Running", exitCode=None)
    return given


def test_the_table_has_every_row_or_a_guard_for_it():
    told = [line for line in rows.__doc__.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [int(line.split("|")[1]) for line in told] == list(range(19))
    judged = {name for name, _row in rows.ROWS}
    assert judged == {f"row-{number}" for number in range(19)} - {"row-16", "row-18"}


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (fleet(ok=False, why="connection refused"), "connection refused"),
        (fleet(age=900.0), "15m old"),
        (
            fleet(nodes(gpu_0={"ready": "Unknown"}, **{f"gpu_{n}": {"ready": "Unknown"} for n in range(1, 6)})),
            "6 of 24",
        ),
    ],
)
def test_row_0_nothing_is_done_with_bad_eyes(known, said):
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}), known)
    assert (spec["action"], spec["rule"], spec["hardware"]) == ("hold", "row-0", [])
    assert said in spec["reasons"][0]


def test_row_0_clocks_that_are_apart():
    spec = one(attempt(ended=-300))
    assert (spec["action"], spec["rule"]) == ("hold", "row-0")
    assert "ahead of our clock" in spec["reasons"][0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"job": {"mode": "off"}}, "not opted in"),
        ({"job": {"neverTouch": True}}, "never be touched"),
        ({"state": "succeeded"}, "done"),
        ({"state": "pending"}, "pending"),
        ({"state": "suspended"}, "suspended"),
        ({"reason": "Cancelled"}, "cancelled"),
    ],
)
def test_row_1_not_ours(changed, said):
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}, **changed))
    assert (spec["action"], spec["rule"], spec["exclude"], spec["hardware"]) == ("none", "row-1", [], [])
    assert said in spec["reasons"][0]


def test_row_1_only_the_newest_attempt_of_a_job():
    old, new = decided([attempt(number=1, signature=TIMEOUT), attempt(number=2, signature=TIMEOUT)])
    assert (old["action"], old["rule"]) == ("none", "row-1")
    assert new["action"] == "retry"


def test_row_2_time_limit_only_as_declared_and_not_counted():
    over = {"reason": "DeadlineExceeded"}
    assert (one(attempt(**over))["action"], one(attempt(**over))["rule"]) == ("none", "row-2")
    spec = one(attempt(job={"requeue": True}, **over), past=[entry(number=0)] * 1)
    assert (spec["action"], spec["rule"]) == ("requeue", "row-2")
    assert "noProgress" not in spec["budget"]


@pytest.mark.parametrize(
    "disruption", ["PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager", "DeletionByPodGC"]
)
def test_row_3_taken_away_by_others_is_no_failure(disruption):
    given = attempt(number=9)
    given["ranks"][2]["disruption"] = disruption
    past = [entry(number=number, at=3000 - number, advanced=False) for number in range(1, 9)]
    spec = one(given, past=past)
    assert (spec["action"], spec["rule"], spec["hardware"]) == ("requeue", "row-3", [])


def test_row_3_by_the_log_or_the_scheduler():
    assert one(attempt(reason="Preempted"))["rule"] == "row-3"
    assert one(attempt(signature=signature("preemption", "J130", "requeue")))["rule"] == "row-3"


def test_row_4_a_bug_before_any_progress():
    spec = one(attempt(signature=bug(step=None), progress=STUCK))
    assert (spec["action"], spec["rule"]) == ("giveBack", "row-4")
    assert any("train.py:42" in why for why in spec["reasons"])
    # unknown is not "no progress"
    assert one(attempt(signature=bug(step=None)))["action"] == "retry"


def test_row_5_evidence_on_its_own_nodes_in_its_own_time():
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-2": [xid()]}))
    assert (spec["action"], spec["rule"]) == ("restart", "row-5")
    assert excluded(spec) == ["gpu-2"]
    assert advice(spec) == {"gpu-2": "gate"}
    assert spec["notBefore"] is None
    assert spec["exclude"][0]["uid"] == "uid-2"


@pytest.mark.parametrize(
    "hardware",
    [
        {"gpu-9": [xid()]},
        {"gpu-2": [xid(at=7200)]},
        {"gpu-2": [xid(before=True)]},
        {"gpu-2": [xid(fatal=False)]},
    ],
)
def test_row_5_evidence_of_others_or_of_earlier_does_not_count(hardware):
    spec = one(attempt(signature=TIMEOUT, hardware=hardware))
    assert (spec["action"], spec["rule"], spec["exclude"], spec["hardware"]) == ("retry", "row-10", [], [])


def test_row_5_a_strong_line_that_names_its_own_node():
    strong = signature(
        "hardware",
        "J041",
        "restart elsewhere",
        confidence=0.95,
        blame={"kind": "emitter", "pods": ["train-1-abcde"], "ranks": [1]},
    )
    spec = one(attempt(signature=strong))
    assert (spec["rule"], excluded(spec), advice(spec)) == ("row-5", ["gpu-1"], {"gpu-1": "gate"})


def test_row_5_a_job_whose_log_accuses_node_after_node_closes_none():
    strong = signature(
        "hardware", "J041", "restart elsewhere", confidence=0.95, blame={"kind": "emitter", "pods": ["train-1-abcde"]}
    )
    past = [remembered(attempt(signature=strong, on=(8, 9, 10, 11)))]
    spec = one(attempt(number=2, signature=strong), past=past)
    assert spec["rule"] == "row-6"
    assert advice(spec) == {"gpu-1": "diagnose"}


def test_row_5_a_node_that_is_gone_for_good():
    given = attempt(
        state="lost",
        reason="NodeLost",
        lostNodes=["gpu-3"],
        hardware={"gpu-3": [{"source": "gone", "at": "", "what": "no such node", "fatal": True}]},
    )
    given["ranks"][3].update(phase="Running", lost=True, terminating=True, exitCode=None)
    known = nodes()
    del known["gpu-3"]
    spec = one(given, fleet(known))
    assert (spec["action"], spec["rule"], excluded(spec)) == ("restart", "row-5", ["gpu-3"])
    assert advice(spec) == {"gpu-3": "observe"}, "there is nothing left to close"


def test_row_5_not_for_a_node_that_went_after_the_program_had_failed():
    gone = {"gpu-3": [{"source": "gone", "at": "", "what": "no such node", "fatal": True}]}
    known = nodes()
    del known["gpu-3"]
    spec = one(attempt(signature=bug(), progress=ADVANCED, hardware=gone, lostNodes=[]), fleet(known))
    assert (spec["action"], spec["exclude"]) == ("retry", [])


def test_row_6_a_node_that_does_not_answer_is_not_proven_to_be_off():
    given = attempt(state="lost", reason="NodeLost")
    given["ranks"][3].update(phase="Running", terminating=True, exitCode=None)
    spec = one(given, fleet(nodes(gpu_3={"ready": "Unknown"})))
    assert (spec["action"], spec["rule"], excluded(spec)) == ("restart", "row-6", ["gpu-3"])
    assert advice(spec) == {"gpu-3": "diagnose"}
    assert {"safety-3", "safety-4"} <= set(spec["safety"])


def test_row_6_likely_hardware_is_left_out_for_this_job_only():
    likely = signature(
        "hardware", "J045", "restart elsewhere", confidence=0.7, blame={"kind": "emitter", "pods": ["train-1-abcde"]}
    )
    spec = one(attempt(signature=likely))
    assert (spec["action"], spec["rule"]) == ("restart", "row-6")
    assert (excluded(spec), advice(spec)) == (["gpu-1"], {"gpu-1": "diagnose"})


def test_row_6_links_of_a_domain_send_the_job_to_another():
    spec = one(attempt(signature=signature("hardware", "J060", "restart elsewhere", blame={"kind": "clique"})))
    assert (spec["rule"], spec["exclude"]) == ("row-6", [])
    assert spec["prefer"][0] != "rack-0"
    assert spec["prefer"][-1] == "rack-0"


def test_row_7_a_network_error_the_first_time():
    spec = one(attempt(signature=PAIR))
    assert (spec["action"], spec["rule"], spec["exclude"]) == ("retry", "row-7", [])
    assert advice(spec) == {"gpu-1": "observe", "gpu-2": "observe"}


def test_row_8_again_with_one_node_in_common():
    past = [remembered(attempt(signature=PAIR))]
    again = copy.deepcopy(PAIR)
    again["blame"]["hosts"] = ["gpu-2", "gpu-3"]
    spec = one(attempt(number=2, signature=again), past=past)
    assert (spec["action"], spec["rule"], excluded(spec)) == ("restart", "row-8", ["gpu-2"])
    assert advice(spec) == {"gpu-2": "diagnose"}
    # the same pair again: which of the two is not known
    assert one(attempt(number=2, signature=PAIR), past=past)["rule"] == "row-7"


def test_row_9_several_jobs_of_one_domain():
    failed = [attempt(f"job-{n}", on=(n * 2, n * 2 + 1), signature=TIMEOUT) for n in range(3)]
    specs = decided(failed)
    assert {(spec["action"], spec["rule"], spec["escalate"]) for spec in specs} == {("hold", "row-9", True)}
    assert all(not spec["hardware"] and spec["notBefore"] > ago(0) for spec in specs)


def test_row_9_several_nodes_of_one_domain():
    spec = one(attempt(on=(0, 1, 2, 3), hardware={f"gpu-{n}": [xid()] for n in range(3)}))
    assert (spec["action"], spec["rule"], spec["hardware"]) == ("hold", "row-9", [])


def test_row_9_not_for_jobs_that_one_node_explains_and_not_for_bugs():
    shared = [attempt(f"job-{n}", on=(0, n + 1), hardware={"gpu-0": [xid()]}) for n in range(3)]
    assert {spec["rule"] for spec in decided(shared)} == {"row-5"}
    bugs = [attempt(f"job-{n}", on=(n * 2, n * 2 + 1), signature=bug(), progress=ADVANCED) for n in range(3)]
    assert "row-9" not in {spec["rule"] for spec in decided(bugs)}


def test_row_10_a_time_out_without_evidence_touches_no_node():
    spec = one(attempt(signature=TIMEOUT))
    assert (spec["action"], spec["rule"]) == ("retry", "row-10")
    assert (spec["exclude"], spec["prefer"], spec["hardware"]) == ([], [], [])


def test_row_10_the_same_three_times_with_one_node_in_common():
    past = [
        entry("other", at=5000, nodes=["gpu-2", "gpu-20", "gpu-21"]),
        entry("third", at=4000, nodes=["gpu-2", "gpu-18", "gpu-19"]),
    ]
    spec = one(attempt(signature=TIMEOUT), past=past)
    assert (excluded(spec), advice(spec)) == (["gpu-2"], {"gpu-2": "diagnose"})
    assert any("offered for certification" in why for why in spec["reasons"])
    assert one(attempt(signature=TIMEOUT), past=past[1:])["exclude"] == []


def test_row_10_three_times_on_the_same_nodes_says_nothing_about_one():
    past = [entry(number=1, at=5000), entry(number=2, at=4000)]
    spec = one(attempt(number=3, signature=TIMEOUT), past=past)
    assert (spec["action"], spec["exclude"], spec["hardware"]) == ("retry", [], [])


def test_row_11_a_hang_with_a_rank_that_is_named():
    named = signature(
        "transient-software",
        "J007",
        "restart elsewhere",
        blame={"kind": "named-rank", "ranks": [2], "pods": ["train-2-abcde"]},
        cascade=True,
    )
    spec = one(hung(signature=named))
    assert (spec["action"], spec["rule"], excluded(spec)) == ("restart", "row-11", ["gpu-2"])
    assert advice(spec) == {"gpu-2": "diagnose"}


def test_row_12_a_hang_that_nothing_explains():
    first = hung()
    spec = one(first)
    assert (spec["action"], spec["rule"], spec["exclude"], spec["hardware"]) == ("retry", "row-12", [], [])
    again = hung(number=2)
    again["progress"] = {**HANG, "advanced": None}
    spec = one(again, past=[remembered(first)])
    assert (spec["action"], spec["rule"]) == ("restart", "row-12")
    assert excluded(spec) == ["gpu-0", "gpu-1"]


def test_row_13_from_an_older_checkpoint():
    saved = {"step": 600, "path": "/ckpt/600", "complete": True, "torn": [{"path": "/ckpt/700", "why": "no .metadata"}]}
    broken = signature("storage", "J095", "retry from older checkpoint")
    spec = one(attempt(signature=broken, checkpoint=saved))
    assert (spec["action"], spec["rule"]) == ("restart", "row-13")
    assert (spec["resume"]["path"], spec["resume"]["step"]) == ("/ckpt/600", 600)
    assert "/ckpt/700 (no .metadata)" in spec["resume"]["note"]
    assert any("/ckpt/700" in why for why in spec["reasons"])


def test_a_torn_newest_checkpoint_is_told_whatever_ended_the_job():
    saved = {
        "step": 600,
        "path": "/ckpt/600",
        "complete": True,
        "torn": [{"path": "/ckpt/700", "why": "shard missing"}],
    }
    spec = one(attempt(signature=TIMEOUT, checkpoint=saved, hardware={"gpu-1": [xid()]}))
    assert (spec["rule"], spec["resume"]["step"]) == ("row-5", 600)
    assert "shard missing" in spec["resume"]["note"]


def test_row_14_no_checkpoint_where_there_was_one():
    none = {"step": None, "path": "", "complete": False, "torn": [{"path": "/ckpt/700", "why": "empty"}]}
    past = [entry(checkpointStep=600)]
    spec = one(attempt(number=2, signature=TIMEOUT, checkpoint=none), past=past)
    assert (spec["action"], spec["rule"], spec["escalate"]) == ("hold", "row-14", True)
    assert "600" in " ".join(spec["reasons"])
    # a first attempt has none, and one that nobody looked at is not known to be lost
    assert one(attempt(signature=TIMEOUT, checkpoint=none))["action"] == "retry"
    assert one(attempt(number=2, signature=TIMEOUT), past=past)["action"] == "retry"


def test_row_14_storage_full_or_away():
    full = one(attempt(signature=signature("storage", "J093", "hold / fail to user")))
    assert (full["action"], full["rule"], full["escalate"]) == ("hold", "row-14", True)
    away = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}), fleet(storage=False))
    assert (away["action"], away["rule"]) == ("hold", "row-14")
    assert advice(away) == {"gpu-1": "gate"}, "the node does not wait for storage"


@pytest.mark.parametrize(
    ("progress", "action"), [(ADVANCED, "retry"), (None, "retry"), (STUCK, "giveBack")], ids=["yes", "unknown", "no"]
)
def test_row_15_memory_that_ran_out(progress, action):
    spec = one(attempt(signature=OOM, progress=progress))
    assert (spec["action"], spec["rule"], advice(spec)) == (action, "row-15", {"gpu-0": "observe"})


def test_row_15_only_once_and_also_by_the_kernel():
    past = [remembered(attempt(signature=OOM, progress=ADVANCED))]
    assert one(attempt(number=2, signature=OOM, progress=ADVANCED), past=past)["action"] == "giveBack"
    killed = attempt(progress=STUCK)
    killed["ranks"][1].update(reason="OOMKilled", exitCode=137)
    assert one(killed)["rule"] == "row-15"


def test_row_16_the_same_exception_at_the_same_step_is_given_back_with_its_line():
    first = attempt(signature=bug(), progress=ADVANCED)
    assert one(first)["action"] == "retry"
    spec = one(attempt(number=2, signature=bug(), progress=ADVANCED), past=[remembered(first)])
    assert (spec["action"], spec["rule"]) == ("giveBack", "row-16")
    assert "KeyError in train.py:42 at step 700" in spec["reasons"][-1]


@pytest.mark.parametrize("other", [bug(step=900), bug(line=43)], ids=["step", "line"])
def test_row_16_not_another_step_or_line(other):
    past = [remembered(attempt(signature=bug(), progress=ADVANCED))]
    assert one(attempt(number=2, signature=other, progress=ADVANCED), past=past)["action"] == "retry"


def test_row_16_who_submits_it_again_unmended_gets_it_back_too():
    past = [remembered(attempt(signature=bug(), progress=ADVANCED))]
    again = attempt(number=1, signature=bug(), progress=ADVANCED, job={"uid": "new"})
    assert one(again, past=past)["action"] == "giveBack"
    mended = attempt(number=1, signature=bug(), progress=ADVANCED, job={"uid": "new", "image": "trainer:2"})
    assert one(mended, past=past)["action"] == "retry"


def test_row_16_a_time_out_at_the_same_line_is_no_bug():
    raised = {"type": "DistBackendError", "message": "x", "file": "nccl.py", "line": 1, "step": 700}
    timeout = {**TIMEOUT, "exception": raised}
    past = [remembered(attempt(signature=timeout, progress=ADVANCED))]
    assert one(attempt(number=2, signature=timeout, progress=ADVANCED), past=past)["action"] == "retry"


def test_row_16_three_restarts_without_progress():
    past = [entry(number=number, at=4000 - number, advanced=False) for number in (1, 2, 3)]
    spec = one(attempt(number=4, signature=TIMEOUT, progress=STUCK), past=past)
    assert (spec["action"], spec["rule"]) == ("giveBack", "row-16")
    assert spec["budget"]["noProgress"] == {"used": 3, "max": 3}


def test_row_17_unknown_is_tried_again_while_the_budget_lasts():
    spec = one(attempt())
    assert (spec["action"], spec["rule"]) == ("retry", "row-17")
    past = [entry(number=number, at=4000 - number, advanced=False, **{"class": "unknown"}) for number in (1, 2)]
    spec = one(attempt(number=3, progress=STUCK), past=past)
    assert (spec["action"], spec["escalate"]) == ("escalate", True)


def test_row_18_no_room_is_said_and_a_gang_is_not_made_smaller():
    known = nodes(count=4)
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-2": [xid()]}), fleet(known))
    assert (spec["action"], spec["rule"], spec["resize"]) == ("hold", "row-18", None)
    assert (spec["missing"]["pods"], spec["missing"]["gpus"]) == (1, 8)
    assert any("8 GPUs are missing" in why for why in spec["reasons"])
    assert advice(spec) == {"gpu-2": "gate"}, "the hardware does not wait for the job"


def test_row_18_smaller_where_it_is_declared():
    shape = {"pods": 4, "gpusPerPod": 8, "gang": True, "elastic": {"min": 2, "max": 4}}
    given = attempt(signature=TIMEOUT, hardware={"gpu-2": [xid()]}, job={"shape": shape})
    spec = one(given, fleet(nodes(count=4)))
    assert (spec["action"], spec["rule"], spec["resize"]) == ("restart", "row-18", {"pods": 3, "was": 4})


def test_row_1_and_2_by_what_slurm_writes_into_the_log():
    ended = signature("user-code", "J159", "none (observe)")
    assert (one(attempt(signature=ended))["action"], one(attempt(signature=ended))["rule"]) == ("none", "row-1")
    text = "slurmstepd: error: *** JOB 5 ON gpu1 CANCELLED AT 2026-03-06T11:00:00 DUE TO TIME LIMIT ***"
    limit = signature("preemption", "J116", "requeue", lines=[{"rank": None, "pod": "", "number": 9, "text": text}])
    assert (one(attempt(signature=limit))["action"], one(attempt(signature=limit))["rule"]) == ("none", "row-2")


def test_row_10_a_disk_of_one_node_is_left_out():
    disk = signature("storage", "D001", "restart elsewhere", blame={"kind": "emitter", "pods": ["train-1-abcde"]})
    spec = one(attempt(signature=disk))
    assert (spec["action"], spec["rule"], excluded(spec)) == ("restart", "row-10", ["gpu-1"])
    assert advice(spec) == {"gpu-1": "diagnose"}


def test_row_16_an_end_of_the_program_that_raised_nothing_is_recognised_too():
    usage = signature("user-code", "exit2", "fail to user", exitCode=2)
    past = [remembered(attempt(signature=usage))]
    assert one(attempt(number=2, signature=usage), past=past)["action"] == "giveBack"


def running(**changed) -> dict:
    given = attempt(state="running", endedAt="", reason="", hardware={"gpu-2": [xid()]}, **changed)
    for rank in given["ranks"]:
        rank.update(phase="Running", exitCode=None)
    return given


def test_row_5_a_gang_that_a_fault_has_stopped_does_not_have_to_fail_first():
    died = running()
    died["ranks"][2].update(phase="Failed", exitCode=137)
    spec = one(died)
    assert (spec["action"], spec["rule"], excluded(spec), spec["mode"]) == ("restart", "row-5", ["gpu-2"], "act")
    still = running(progress={"lastStep": 9, "stepSeconds": 10.0, "silenceSeconds": 90.0, "hung": False})
    assert one(still)["rule"] == "row-5"


def test_row_1_a_job_that_gets_on_is_left_alone_whatever_is_said_of_its_node():
    gets_on = running(progress={"lastStep": 9, "stepSeconds": 10.0, "silenceSeconds": 12.0, "hung": False})
    assert (one(gets_on)["action"], one(gets_on)["rule"]) == ("none", "row-1")
    assert one(running())["action"] == "none"
    queue = running(job={"shape": {"pods": 4, "gpusPerPod": 8, "gang": False}})
    queue["ranks"][2].update(phase="Failed", exitCode=137)
    assert one(queue)["action"] == "none", "its scheduler replaces that pod alone"


def test_row_5_a_hang_with_proof_is_acted_on():
    spec = one(hung(hardware={"gpu-1": [xid()]}))
    assert (spec["rule"], spec["mode"], excluded(spec)) == ("row-5", "act", ["gpu-1"])


def test_row_10_a_failure_that_names_another_node_each_time_makes_none_a_suspect():
    def killed(node: int) -> dict:
        return signature("transient-software", "J123", blame={"kind": "named-node", "hosts": [f"gpu-{node}"]})

    past = [
        {**remembered(attempt(number=number, signature=killed(number))), "at": ago(5000 - number)} for number in (1, 2)
    ]
    assert [each["blamed"] for each in past] == [["gpu-1"], ["gpu-2"]]
    assert one(attempt(number=3, signature=killed(3)), past=past)["exclude"] == []
    past = [{**each, "blamed": ["gpu-3"]} for each in past]
    assert excluded(one(attempt(number=3, signature=killed(3)), past=past)) == ["gpu-3"]
