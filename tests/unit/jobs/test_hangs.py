# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import attempt, hangs, history
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Unavailable
from ansible_collections.goodput.fleet.tests.unit.jobs import raw

NODES = [raw.node(f"gpu-{i}") for i in range(3)]


def running(when):
    snapshot = attempt.Snapshot(
        jobs=[raw.job(pods=3, status={"startTime": raw.at(0)})],
        pods=[raw.pod(i, f"gpu-{i}") for i in range(3)],
        nodes=NODES,
    )
    return attempt.build(snapshot, raw.now(when))[0]


def classify(sources, options):
    """Steps of lines "step N"."""
    found = re.findall(rb"step (\d+)", sources[0][2])
    steps = [int(each) for each in found]
    return {"progress": {"firstStep": steps[0], "lastStep": steps[-1], "lastStepAt": None} if steps else None}


class Passes:
    """Pass after pass, each with what the logs say then."""

    def __init__(self):
        self.seen, self.asked = {"attempts": {}, "nodes": {}}, []

    def look(self, when, logs, **more):
        told = running(when)

        def read(request):
            self.asked.append((request["name"], request["tail"]))
            text = logs.get(request["name"], b"")
            if isinstance(text, Exception):
                raise text
            return [text]

        hangs.look(told, read, classify, self.seen["attempts"].get(told["key"]), raw.now(when), **more)
        self.seen = history.remember(self.seen, [told], NODES, raw.now(when))
        return told


def test_a_job_that_makes_no_step_any_more_hangs():
    passes = Passes()
    for number in range(10):
        told = passes.look(60 + 60 * number, {"llm-2-00001": f"step {number}\n".encode()})
        assert told["state"] == "running"
    states = [passes.look(600 + more, {"llm-2-00001": b"step 9\n"})["state"] for more in (300, 599, 700)]
    assert states == ["running", "running", "hung"]
    assert set(passes.asked) == {("llm-0-00001", hangs.TAIL), ("llm-2-00001", hangs.TAIL)}, (
        "the first rank and the last"
    )


def test_a_log_that_cannot_be_read_is_no_hang():
    passes = Passes()
    for number in range(10):
        passes.look(60 + 60 * number, {"llm-0-00001": f"step {number}\n".encode()})
    down = Unavailable("the API server does not answer")
    told = passes.look(9000, {"llm-0-00001": down, "llm-2-00001": down})
    assert (told["state"], told["progress"]["verdict"], told["progress"]["hung"]) == ("running", "unknown", False)
    assert "the API server does not answer" in told["progress"]["reasons"][0]
    assert passes.look(9060, {"llm-0-00001": b"step 200\n"})["progress"]["verdict"] == "stepping", (
        "and nothing is forgotten"
    )


def test_a_checkpoint_that_takes_long_is_no_hang_until_it_takes_too_long():
    passes = Passes()
    for number in range(10):
        passes.look(60 + 60 * number, {"llm-0-00001": f"step {number}\n".encode()})
    saving = {"llm-0-00001": b"step 9\nSaving model checkpoint to /ckpt/9\n"}
    verdicts = [passes.look(when, saving)["progress"]["verdict"] for when in (660, 1500, 4000, 8000)]
    assert verdicts == ["stepping", "paused", "paused", "hung"]


def test_the_pause_of_the_checkpoint_before_is_another_one():
    passes = Passes()
    for number in range(9):
        passes.look(60 + 60 * number, {"llm-0-00001": f"step {number}\n".encode()})
    for when, step in ((600, 9), (4000, 20)):
        saving = {"llm-0-00001": f"step {step}\nSaving model checkpoint\n".encode()}
        passes.look(when, saving)
    assert passes.look(10000, saving)["progress"]["verdict"] == "paused", "since 4000, not since 600"


def test_one_that_tells_no_steps_is_never_called_hung():
    told = Passes().look(50000, {"llm-0-00001": b"hello\n"})
    assert (told["state"], told["progress"]["verdict"]) == ("running", "unknown")
    assert Passes().look(50000, {"llm-0-00001": b"hello\n"}, previous_step=12)["state"] == "hung"
