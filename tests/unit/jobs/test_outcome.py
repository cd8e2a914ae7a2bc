"""A pass of job recovery in words: who reads it has to know what happened without the data."""

from __future__ import annotations

from typing import Any

from ansible_collections.goodput.fleet.plugins.action.job_recovery import joined
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import outcome


def decided(name: str = "train", action: str = "restart", hardware: tuple = (), **more: Any) -> dict:
    spec = {
        "attempt": f"ml/{name}/u1/2",
        "job": {"namespace": "ml", "name": name},
        "action": action,
        "rule": "row-5",
        "reasons": ["GPU has fallen off the bus"],
        "exclude": [{"node": "gpu-3"}] if action == "restart" else [],
        "hardware": [{"node": node, "advice": advice, "why": f"{advice} of {name}"} for node, advice in hardware],
        "escalate": False,
        "mode": "act",
    }
    return {"spec": {**spec, **more}}


def test_a_line_tells_what_was_decided_why_and_what_came_of_it():
    done = {"status": "done", "detail": "made", "outcome": "running"}
    assert outcome.line(decided(), done) == (
        "ml/train attempt 2: restart (row-5): GPU has fallen off the bus; without gpu-3 -> running"
    )
    waits = {"status": "waiting", "detail": "2 pods are not gone"}
    assert outcome.line(decided(), waits).endswith(" -> waiting: 2 pods are not gone")
    assert outcome.line(decided(mode="advise"), None).endswith("[advice only]")
    assert "[advice only]" not in outcome.line(decided(action="giveBack", mode="advise"), None)


def test_a_node_is_advised_about_once_by_the_most_pressing_word():
    told = outcome.advice(
        [
            decided("a", hardware=(("gpu-1", "diagnose"), ("gpu-2", "none"))),
            decided("b", hardware=(("gpu-1", "gate"),)),
            decided("c", hardware=(("gpu-1", "observe"), ("gpu-4", "observe"))),
        ]
    )
    assert told == {
        "gate": [{"node": "gpu-1", "why": "gate of b", "jobs": ["ml/a", "ml/b", "ml/c"]}],
        "diagnose": [],
        "observe": [{"node": "gpu-4", "why": "observe of c", "jobs": ["ml/c"]}],
    }


def test_counts_failures_and_the_message():
    decisions = [decided("a"), decided("b", action="hold", escalate=True)]
    actions = [{"status": "done", "outcome": "running", "onExcluded": [{"pod": "p", "node": "gpu-3"}]}]
    assert outcome.counts(decisions, actions) == {
        "decisions": {"hold": 1, "restart": 1},
        "actions": {"done": 1},
        "running": 1,
    }
    assert outcome.failures(decisions, actions) == ["escalated", "excluded"]
    assert outcome.failures([], [{"status": "failed"}]) == ["failed"]
    assert outcome.message(decisions, actions, "enforce", False) == (
        "enforce: 2 failed attempts, decided 1 hold, 1 restart; actions: 1 done"
    )
    assert "no job failed" in outcome.message([], [], "observe", True)


def test_slices_of_a_watching_run_are_told_as_one():
    first = {
        "decisions": [decided("a")],
        "actions": [{"attempt": "ml/a/u1/2", "status": "waiting"}],
        "job_attempts": [{"key": "ml/a/u1/2"}],
        "lines": ["a waits"],
        "changed": True,
        "passes": 2,
    }
    second = {
        "decisions": [],
        "actions": [{"attempt": "ml/a/u1/2", "status": "done"}],
        "job_attempts": [],
        "lines": [],
        "changed": False,
        "passes": 3,
        "msg": "quiet",
    }
    told = joined([first, second])
    assert told["actions"] == [{"attempt": "ml/a/u1/2", "status": "done"}]
    assert (told["decisions"], told["job_attempts"]) == (first["decisions"], first["job_attempts"])
    assert (told["lines"], told["changed"], told["passes"], told["msg"]) == (["a waits"], True, 5, "quiet")
