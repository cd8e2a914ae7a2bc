"""Whether a job gets on, by the end of a log."""

from __future__ import annotations

import re

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, pulse
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Hang

NOW = moments.of("2026-03-06T10:00:00Z")
ATTEMPT = {"startedAt": "2026-03-06T08:00:00Z"}
HANG = Hang(factor=10, least=600, most=7200, start=1800)


def steps(lines: list[str]) -> dict:
    found = [int(match[1]) for line in lines if (match := re.search(r"step (\d+)", line))]
    return {"lastStep": found[-1] if found else None, "stepSeconds": 2.0}


def feel(tail: bytes, kept: tuple = ()) -> dict:
    return pulse.feel(ATTEMPT, tail, steps, kept, NOW, HANG)


def test_times_of_kubelet_are_taken_off_and_other_first_words_are_not():
    tail = b"2026-03-06T09:59:58.123456789Z step 7\nstep 8 of the same line\n2026-03-06T09:59:59Z \n\xff broken\n"
    lines, spoke = pulse.stamped(tail)
    assert lines == ["step 7", "step 8 of the same line", "", "\ufffd broken"] and spoke == "2026-03-06T09:59:59Z"
    assert pulse.stamped(b"") == ([], None)


def test_a_step_that_is_new_is_no_hang_and_one_that_stays_is():
    tail = b"2026-03-06T09:30:00Z step 7\n"
    assert feel(tail)["hung"] is False  # seen for the first time: when it was reached is not known
    seen = ({"at": "2026-03-06T09:30:00Z", "step": 7},)
    told = feel(tail, seen)
    assert (told["hung"], told["lastStep"], told["silenceSeconds"]) == (True, 7, 1800.0)
    assert feel(b"2026-03-06T09:59:59Z step 8\n", seen)["hung"] is False


def test_a_job_that_saves_a_checkpoint_is_let_be():
    seen = ({"at": "2026-03-06T09:40:00Z", "step": 7},)
    tail = b"2026-03-06T09:40:00Z step 7\n2026-03-06T09:41:00Z saving checkpoint at iteration 7\n"
    assert feel(tail, seen)["verdict"] == "paused"


def test_the_first_rank_that_runs_is_listened_to():
    ranks = [
        {"index": 2, "phase": "Running"},
        {"index": 0, "phase": "Failed"},
        {"index": 1, "phase": "Running"},
        {"index": None, "phase": "Running"},
    ]
    assert pulse.listened_to({"ranks": ranks}) is ranks[2] and pulse.listened_to({"ranks": []}) is None


@pytest.mark.parametrize("hours", [-8, 0, 5])
@pytest.mark.parametrize(("minutes", "hung"), [(1, False), (45, True)])
def test_a_log_in_the_time_of_another_zone_is_read_by_kubelets_clock(hours, minutes, hung):
    """Eight hours behind it would hang from the first look on, five ahead never."""

    def own(lines: list[str]) -> dict:
        found = [match for line in lines if (match := re.match(r"(\S+) step (\d+)", line))]
        return {"lastStep": int(found[-1][2]), "lastStepAt": found[-1][1], "stepSeconds": 2.0} if found else {}

    told = NOW - 60 * minutes
    tail = f"{moments.text(told - 60)} {moments.text(told - 60 + 3600 * hours)} step 6\n"
    tail += f"{moments.text(told)} {moments.text(told + 3600 * hours)} step 7\n{moments.text(NOW)} warning\n"
    found = pulse.feel(ATTEMPT, tail.encode(), own, (), NOW, HANG)
    assert (found["lastStep"], found["silenceSeconds"], found["hung"]) == (7, 60.0 * minutes, hung)


def test_steps_of_a_run_that_its_scheduler_has_ended_say_nothing_of_the_one_that_starts():
    seen = ({"at": "2026-03-06T08:10:00Z", "step": 700},)
    started = {"startedAt": "2026-03-06T09:50:00Z"}
    found = pulse.feel(started, b"2026-03-06T09:51:00Z loading\n", steps, seen, NOW, HANG)
    assert (found["verdict"], found["hung"], found["lastStep"]) == ("starting", False, None)
