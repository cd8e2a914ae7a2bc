# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The safety rules of the field, each by its number."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import memory

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

STUCK = {"firstStep": None, "lastStep": None, "advanced": False}


def test_1_a_retry_never_closes_a_node():
    """Else one bad job closes a node per retry."""
    past: list[dict] = []
    closed = set()
    for number in range(1, 9):
        given = attempt(number=number, signature=TIMEOUT, progress=STUCK)
        spec = one(given, past=past)
        closed |= {node for node, what in advice(spec).items() if what == "gate"}
        past.append({**remembered(given, past=past), "at": ago(5000 - number)})
    assert closed == set()
    assert spec["action"] == "giveBack"


def test_2_slurm_holds_a_job_after_a_failed_prolog_until_somebody_releases_it():
    held = attempt(state="suspended", reason="launch_failed_requeued_held")
    spec = one(held)
    assert (spec["action"], "safety-2" in spec["safety"]) == ("requeue", True)
    assert one(attempt(state="suspended", reason="JobHeldUser"))["action"] == "none"


def test_3_not_before_the_old_attempt_is_gone():
    given = attempt(signature=TIMEOUT, ended=0)
    given["ranks"][1].update(phase="Running", terminating=True)
    spec = one(given)
    assert "safety-3" in spec["safety"]
    assert spec["notBefore"] > ago(0)
    assert any("train-1-abcde" in why for why in spec["reasons"])


def test_4_a_clock_alone_closes_no_node():
    given = attempt(state="lost", reason="NodeLost")
    for rank in given["ranks"]:
        rank.update(phase="Running", exitCode=None)
    spec = one(given, fleet(nodes(gpu_1={"ready": "Unknown"})))
    assert advice(spec) == {"gpu-1": "diagnose"}


def test_5_a_reason_of_ours_is_never_the_bare_word_that_another_tool_acts_on():
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}))
    for why in [*spec["reasons"], *(each["why"] for each in spec["hardware"])]:
        assert why.split()[0].strip(":").upper() not in ("XID", "SDC", "PERFORMANCE")


def test_6_a_job_that_hangs_is_told_and_not_stopped_unless_the_policy_says_so():
    hung = attempt(state="hung", endedAt="", progress={"hung": True, "silenceSeconds": 1800})
    assert one(hung)["mode"] == "advise"
    assert one(hung, hang={"act": True})["mode"] == "act"
    assert one(attempt(signature=TIMEOUT), mode="observe")["mode"] == "advise"


def test_7_the_restart_does_not_wait_for_a_verdict():
    spec = one(attempt(hardware={"gpu-1": [xid()]}), fleet(nodes(gpu_1={"verdict": "unknown"})))
    assert (spec["action"], spec["notBefore"]) == ("restart", None)


def test_8_a_missing_health_service_is_no_sick_node():
    known = {name: {**facts, "verdict": "unknown"} for name, facts in nodes().items()}
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}), fleet(known))
    assert (spec["action"], excluded(spec)) == ("restart", ["gpu-1"])


@pytest.mark.parametrize("kind", ["named-rank", "emitter", "compute"])
def test_9_a_rank_that_waits_is_not_blamed(kind):
    waits = signature("hardware", "J045", "restart elsewhere", waiting=[0], blame={"kind": kind, "ranks": [0]})
    shape = {"pods": 4, "gpusPerPod": 1, "gang": True}
    spec = one(attempt(signature=waits, job={"shape": shape}))
    assert (spec["exclude"], spec["hardware"]) == ([], [])


def test_9_what_is_a_consequence_blames_nobody_and_neither_do_most_of_the_nodes():
    cascade = signature("network", "J012", cascade=True, blame={"kind": "pair", "hosts": ["gpu-1", "gpu-2"]})
    assert one(attempt(signature=cascade))["hardware"] == []
    everybody = signature("hardware", "J045", blame={"kind": "emitter", "hosts": ["gpu-0", "gpu-1", "gpu-2"]})
    assert one(attempt(signature=everybody))["exclude"] == []


def test_9_a_rank_of_which_nobody_knows_what_it_counts_is_not_taken_for_a_pod():
    """Rank 3 may be the fourth process of the first pod."""
    vague = signature("hardware", "J045", "restart elsewhere", lines=[], blame={"kind": "emitter", "ranks": [3]})
    assert one(attempt(signature=vague))["exclude"] == []
    clear = {**vague, "lines": [{"rank": 26, "pod": "train-3-abcde", "number": 1, "text": "x"}]}
    clear["blame"] = {"kind": "emitter", "ranks": [26]}
    assert excluded(one(attempt(signature={**clear, "confidence": 0.7}))) == ["gpu-3"]


def test_10_a_restart_avoids_nodes_that_keep_killing_jobs():
    past = [entry(f"job-{n}", at=86400 * n + 90000, blamed=["gpu-9"], nodes=["gpu-9"]) for n in range(2)]
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}), past=past)
    assert excluded(spec) == ["gpu-1", "gpu-9"]
    assert "safety-10" in spec["safety"]
    # rather on it than not at all
    tight = one(
        attempt(on=(8, 10, 11, 12), signature=TIMEOUT, hardware={"gpu-8": [xid()]}),
        fleet({name: facts for name, facts in nodes(13).items() if name[4:] in ("8", "9", "10", "11", "12")}),
        past=past,
    )
    assert (tight["action"], excluded(tight)) == ("restart", ["gpu-8"])


def test_11_requeues_do_not_go_on_for_ever():
    past = [entry(number=n, at=80000 - n, action="requeue", rule="row-3") for n in range(1, 21)]
    spec = one(attempt(number=21, reason="Preempted"), past=past)
    assert (spec["action"], "safety-11" in spec["safety"]) == ("escalate", True)


def test_12_a_gang_is_restarted_whole_or_not_at_all():
    spec = one(attempt(signature=TIMEOUT, hardware={"gpu-1": [xid()]}), fleet(nodes(free=0)))
    assert (spec["action"], spec["missing"]["pods"]) == ("hold", 4)


def test_13_a_program_that_asks_for_its_step_again_is_not_stuck():
    again = bug(exitCode=16)
    past = [remembered(attempt(signature=again))]
    spec = one(attempt(number=2, signature=again), past=past, budgets={"classes": {"user-code": 3}})
    assert (spec["action"], "safety-13" in spec["safety"]) == ("retry", True)


def test_14_storage_is_looked_at_before_nodes():
    lost = signature("storage", "J090", "retry in place")
    failed = [attempt(f"job-{n}", on=(n, n + 10), signature=lost) for n in range(4)]
    named = signature(
        "transient-software", "J007", "restart elsewhere", blame={"kind": "named-rank", "pods": ["train-2-abcde"]}
    )
    specs = decided([*failed, attempt(on=(17, 18, 19, 20), signature=named)])
    (train,) = [spec for spec in specs if spec["job"]["name"] == "train"]
    assert (train["action"], train["exclude"], train["hardware"]) == ("retry", [], [])
    assert "safety-14" in train["safety"]


def test_15_a_driver_that_was_updated_closes_no_node():
    text = "Failed to initialize NVML: Driver/library version mismatch"
    lines = [{"rank": 1, "pod": "train-1-abcde", "number": 3, "text": text}]
    mismatch = signature(
        "hardware",
        "J057",
        "restart elsewhere",
        confidence=0.99,
        lines=lines,
        blame={"kind": "emitter", "pods": ["train-1-abcde"]},
    )
    spec = one(attempt(signature=mismatch))
    assert (advice(spec), "safety-15" in spec["safety"]) == ({"gpu-1": "diagnose"}, True)


@pytest.mark.parametrize("job_id", ["123_4", "123+0", "123_[0-9]", "123/2026-03-06T11:00:00"])
def test_16_job_ids_of_arrays_and_other_schedulers_are_not_guessed(job_id):
    assert memory.number_of(f"gpu/llm/{job_id}/2") == 2
    given = attempt(number=2, signature=PAIR)
    given["key"] = f"gpu/llm/{job_id}/2"
    assert one(given)["attempt"] == given["key"]


def strong(**changed) -> dict:
    """A line that closes a node, if it is known which."""
    blame = {"kind": "emitter", **changed.pop("blame")}
    return attempt(
        signature=signature("hardware", "J018", "restart elsewhere", confidence=0.95, blame=blame, **changed)
    )


def test_9_lines_that_a_launcher_collects_do_not_blame_the_launchers_node():
    told = [{"rank": 12, "pod": "train-0-abcde", "number": 1, "text": "x"}]
    given = strong(lines=told, blame={"ranks": [12], "pods": ["train-0-abcde"]})
    assert excluded(one(given)) == ["gpu-1"], "rank 12 of 8 per pod runs in the second pod"
    given = strong(lines=told, blame={"ranks": [12], "pods": ["train-0-abcde"], "hosts": ["elsewhere-7"]})
    assert (one(given)["exclude"], one(given)["hardware"]) == ([], [])
    given = strong(lines=[], blame={"pods": ["train-0-abcde"]})
    given["ranks"][0].update(role="launcher", index=None)
    assert one(given)["exclude"] == []


@pytest.mark.parametrize("name", ["gpu-2", "gpu-2.cluster.local", "train-2", "train-2.train.research.svc"])
def test_9_a_host_is_found_by_any_name_that_it_has(name):
    assert excluded(one(strong(blame={"hosts": [name]}))) == ["gpu-2"]
