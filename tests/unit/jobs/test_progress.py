# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import progress
from ansible_collections.goodput.fleet.tests.unit.jobs import raw


def steps(count, seconds, first=0, begin=60.0, pauses=()):
    """Samples, one per step, and when the last was; pauses: {step: seconds} that it took longer."""
    found, when = [], begin
    for step in range(first, first + count):
        when += seconds + dict(pauses).get(step, 0)
        found.append({"at": raw.at(when), "step": step})
    return found, when


def judged(samples, when, **more):
    return progress.verdict(samples, raw.now(when), started=raw.at(0), **more)


def test_the_limit_is_learnt_from_the_jobs_own_steps():
    samples, last = steps(50, 120)
    told = judged(samples, last + 1199)
    assert (told["verdict"], told["hung"], told["limitSeconds"]) == ("stepping", False, 1200)
    told = judged(samples, last + 1201)
    assert (told["verdict"], told["hung"], told["lastStep"], told["lastStepAt"]) == ("hung", True, 49, raw.at(last))
    assert told["stepSeconds"] == 120 and told["silenceSeconds"] == 1201
    assert any("step 49" in reason for reason in told["reasons"])


@pytest.mark.parametrize(("seconds", "limit"), [(1, 600), (60, 600), (120, 1200), (5000, 7200)])
def test_the_limit_has_a_least_and_a_most(seconds, limit):
    samples, last = steps(20, seconds)
    assert judged(samples, last)["limitSeconds"] == limit


def test_the_limits_are_the_policys():
    samples, last = steps(50, 10)
    told = judged(samples, last + 100, limits={"factor": 5, "least": 30, "most": 90, "start": 60})
    assert (told["limitSeconds"], told["hung"]) == (50, True)


def test_slow_steps_at_the_start_and_pauses_do_not_move_the_usual_step():
    slow = {0: 300, 1: 200, 2: 100}
    samples, last = steps(60, 10, pauses=slow)
    assert judged(samples, last)["stepSeconds"] == 10
    samples, last = steps(60, 10, pauses={20: 400, 40: 400})
    assert judged(samples, last)["stepSeconds"] == 10


def test_steps_that_vary_make_the_limit_wider_but_not_the_usual_step():
    found, when = [], 60
    for step in range(60):
        when += (100, 140, 180)[step % 3]
        found.append({"at": raw.at(when), "step": step})
    told = judged(found, when)
    assert told["stepSeconds"] == 140 and 1400 < told["limitSeconds"] <= 10 * (140 + 3 * 40)


def test_a_pause_that_it_came_back_from_is_no_hang_the_next_time():
    samples, last = steps(60, 10, pauses={20: 900, 40: 900})
    assert judged(samples, last + 950)["hung"] is False
    assert judged(samples, last + 1400)["hung"] is True


@pytest.mark.parametrize("kind", ["checkpoint", "evaluation"])
def test_a_pause_that_its_log_tells_of(kind):
    samples, last = steps(50, 1)
    pause = {"kind": kind, "at": raw.at(last + 2)}
    assert judged(samples, last + 3000, pause=pause)["verdict"] == "paused"
    assert judged(samples, last + 7300, pause=pause)["verdict"] == "hung"
    old = {"kind": kind, "at": raw.at(last - 20)}
    assert judged(samples, last + 3000, pause=old)["verdict"] == "hung", "it has made steps since"


def test_a_log_that_goes_on_without_steps_gets_twice_the_time():
    samples, last = steps(50, 1)
    assert judged(samples, last + 1100, last_line_at=raw.at(last + 1090))["verdict"] == "paused"
    assert judged(samples, last + 1300, last_line_at=raw.at(last + 1290))["verdict"] == "hung"
    assert judged(samples, last + 1100, last_line_at=raw.at(last))["verdict"] == "hung"


def test_the_start_takes_its_time():
    assert judged([], 1700)["verdict"] == "starting"
    samples, last = steps(2, 100)
    told = judged(samples, last + 1500)
    assert (told["verdict"], told["limitSeconds"]) == ("starting", 1800)


def test_unknown_is_never_a_hang():
    assert judged([], 50000)["verdict"] == "unknown"
    assert judged([], 50000, last_line_at=raw.at(10))["hung"] is False
    told = progress.verdict([], raw.now(50000))
    assert (told["verdict"], told["hung"], told["advanced"], told["lastStep"]) == ("unknown", False, None, None)


def test_no_step_at_all_is_a_hang_where_the_attempt_before_made_some():
    assert judged([], 1900, previous_step=300)["verdict"] == "hung"
    assert judged([], 1900, previous_step=300, last_line_at=raw.at(1800))["verdict"] == "starting"
    assert judged([], 1700, previous_step=300)["verdict"] == "starting"


@pytest.mark.parametrize(
    ("samples", "previous", "advanced"),
    [
        ([10, 11, 12], None, True),
        ([10], None, None),
        ([10, 11], 20, False),
        ([19, 20], 20, False),
        ([20, 21], 20, True),
        ([], 20, None),
    ],
)
def test_advanced(samples, previous, advanced):
    told = [{"at": raw.at(60 + i), "step": step} for i, step in enumerate(samples)]
    assert judged(told, 100, previous_step=previous)["advanced"] is advanced


def test_steps_that_begin_anew_count_from_there():
    before, last = steps(50, 10)
    after, last = steps(30, 10, first=20, begin=last + 100)
    told = judged(before + after, last)
    assert (told["firstStep"], told["lastStep"]) == (20, 49)


def test_what_a_log_tells_in_sum_is_enough():
    kept = progress.samples({"firstStep": 5, "lastStep": 90, "lastStepAt": raw.at(500), "stepSeconds": 20.0}, [], 0)
    told = judged(kept, 1200, step_seconds=20.0)
    assert (told["limitSeconds"], told["hung"], told["silenceSeconds"]) == (600, True, 700)


def test_a_log_without_times_counts_from_when_the_step_was_first_seen():
    kept: list = []
    for when, step in ((100, 7), (400, 7), (700, 7)):
        kept = progress.samples({"lastStep": step, "lastStepAt": None}, kept, raw.now(when))
    assert kept == [{"at": raw.at(100), "step": 7}]
    assert progress.samples(None, kept, raw.now(900)) == kept
    many = [{"at": raw.at(i), "step": i} for i in range(progress.KEEP + 50)]
    assert progress.samples({"lastStep": 9999}, many, raw.now(900))[-1]["step"] == 9999
    assert len(progress.samples(None, many, 0)) == progress.KEEP


LINES = {
    "saving": (["iteration 100 loss 2.1", "Saving model checkpoint to /ckpt/100"], "checkpoint"),
    "saving at": (["saving checkpoint at iteration     500 to /ckpt in torch_dist format"], "checkpoint"),
    "saved": (["saving checkpoint at step 5", "successfully saved checkpoint from iteration 500"], None),
    "steps since": (["Saving model checkpoint to /ckpt/100", "iteration 101 loss 2.0"], None),
    "evaluation": (["***** Running Evaluation *****"], "evaluation"),
    "validation": (["Starting validation"], "evaluation"),
    "loading": (["loading checkpoint from /ckpt at iteration 500"], "start"),
    "compiling": (["torch.compile: compiling graph 3"], "start"),
    "failed": (["Saving model checkpoint to /ckpt/100", "OSError: No space left on device (error 28)"], None),
    "nothing": (["loss 2.1", "lr 0.1"], None),
    "none": ([], None),
}


@pytest.mark.parametrize("case", LINES)
def test_pauses_that_lines_tell_of(case):
    lines, kind = LINES[case]
    assert progress.pause(lines, raw.at(9)) == ({"kind": kind, "at": raw.at(9)} if kind else None)


def test_a_hang_is_noted_in_a_running_attempt_only():
    told = {"hung": True, "verdict": "hung", "reasons": ["step 9 is 20m old"]}
    attempt = {"state": "running", "reason": "", "message": "", "progress": None}
    assert progress.apply(attempt, told)["state"] == "hung"
    assert (attempt["reason"], attempt["message"]) == ("NoProgress", "step 9 is 20m old")
    ended = progress.apply({"state": "failed", "reason": "x", "message": "", "progress": None}, told)
    assert (ended["state"], ended["progress"]["hung"]) == ("failed", False)


def test_junk_raises_nothing_and_order_does_not_matter():
    chance = random.Random(3)
    samples, last = steps(40, 10)
    shuffled = [
        *samples,
        None,
        {},
        {"at": "?", "step": 3},
        {"at": raw.at(1), "step": "x"},
        {"at": raw.at(1), "step": True},
    ]
    chance.shuffle(shuffled)
    assert judged(shuffled, last + 5) == judged(samples, last + 5)
