# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import threading

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import attempt, collect, history
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Unavailable
from ansible_collections.goodput.fleet.tests.unit.jobs import raw


def attempt_of(pods, status=None, count=2, **more):
    job = raw.job(pods=count, status=status or raw.failed("BackoffLimitExceeded"))
    snapshot = attempt.Snapshot(jobs=[job], pods=pods, nodes=[raw.node(f"gpu-{i}") for i in range(8)], **more)
    return attempt.build(snapshot, raw.now(200))[0]


def broken(count=2):
    return [raw.pod(i, f"gpu-{i}", phase="Failed", state=raw.ended(1 + i)) for i in range(count)]


class Logs:
    """What is asked for, and how many at a time."""

    def __init__(self, texts=None, fail=()):
        self.texts, self.fail, self.asked, self.open, self.most = texts or {}, fail, [], 0, 0
        self._lock = threading.Lock()

    def __call__(self, request):
        with self._lock:
            self.asked.append((request["name"], request["previous"]))
            self.open += 1
            self.most = max(self.most, self.open)
        try:
            if request["name"] in self.fail:
                raise Unavailable("the kubelet of gpu-1 does not answer", code="unavailable")
            yield from self.texts.get(request["name"], [b"step 1\n", b"Traceback\n"])
        finally:
            with self._lock:
                self.open -= 1


def classify(sources, options):
    return {"lines": [(rank, pod, b"".join(lines()).decode()) for rank, pod, lines in sources], **options}


def test_the_logs_of_all_pods_are_kept_and_classified(tmp_path):
    told = attempt_of(broken())
    logs = Logs()
    kept = collect.collect(told, logs, classify, str(tmp_path), raw={"job": raw.job()})
    # ranks of a log are processes, of which each pod has 8
    assert [line[:2] for line in kept["signature"]["lines"]] == [(0, "llm-0-00001"), (8, "llm-1-00001")]
    assert [(one["rank"], one["exitCode"]) for one in kept["signature"]["exits"]] == [(0, 1), (8, 2)]
    assert told["signature"] == kept["signature"]
    assert kept["partial"] == [] and kept["reused"] is False
    assert sorted(os.listdir(kept["dir"])) == ["attempt.json", "evidence.json", "logs", "objects.json"]
    assert (tmp_path / kept["dir"] / kept["logs"][0]["file"]).read_text() == "step 1\nTraceback\n"
    assert json.loads((tmp_path / kept["dir"] / "attempt.json").read_text())["key"] == told["key"]
    assert os.stat(kept["dir"]).st_mode & 0o77 == 0, "environments of pods hold secrets"


def test_a_second_run_reads_nothing_again(tmp_path):
    first = collect.collect(attempt_of(broken()), Logs(), classify, str(tmp_path))
    logs, told = Logs(), attempt_of([])
    second = collect.collect(told, logs, classify, str(tmp_path))
    assert logs.asked == [] and second["reused"] is True
    assert second["signature"] == json.loads(json.dumps(first["signature"]))
    collect.collect(attempt_of(broken()), logs, classify, str(tmp_path), refresh=True)
    assert len(logs.asked) == 2


def test_a_log_that_cannot_be_read_is_told_and_read_the_next_time(tmp_path):
    logs = Logs(fail=["llm-1-00001"])
    kept = collect.collect(attempt_of(broken()), logs, classify, str(tmp_path))
    assert kept["partial"] == ["ml/llm-1-00001: its log cannot be read: the kubelet of gpu-1 does not answer"]
    assert [line[1] for line in kept["signature"]["lines"]] == ["llm-0-00001"]
    logs = Logs()
    kept = collect.collect(attempt_of(broken()), logs, classify, str(tmp_path))
    assert logs.asked == [("llm-1-00001", False)], "only what was missing"
    assert kept["partial"] == [] and len(kept["logs"]) == 2


def test_a_log_that_breaks_off_is_kept_as_far_as_it_came(tmp_path):
    def read(request):
        yield b"step 1\n"
        raise ConnectionResetError("reset")

    kept = collect.collect(attempt_of(broken(1), count=1), read, classify, str(tmp_path))
    assert kept["partial"] == ["ml/llm-0-00001: its log broke off after 7 bytes: reset"]
    assert kept["signature"]["lines"] == [(0, "llm-0-00001", "step 1\n")]


def test_no_log_at_all_is_no_signature(tmp_path):
    told = attempt_of([])
    kept = collect.collect(told, Logs(), classify, str(tmp_path))
    assert told["signature"] is None
    assert kept["partial"] == [f"rank {i}: its pod is gone, and its log with it" for i in range(2)]


def test_the_log_before_a_restart_of_the_container_is_read_first(tmp_path):
    pods = [raw.pod(0, "gpu-0", last=raw.ended(1), restarts=1), raw.pod(1, phase="Pending")]
    logs = Logs()
    kept = collect.collect(attempt_of(pods), logs, classify, str(tmp_path), workers=1)
    assert logs.asked == [("llm-0-00001", True), ("llm-0-00001", False)], "a pod that never ran has none"
    assert [one["file"] for one in kept["logs"]] == [
        "logs/00000-llm-0-00001.log",
        "logs/00000-llm-0-00001.previous.log",
    ]


def test_a_long_log_keeps_its_start_and_its_end(tmp_path):
    lines = [f"line {i:06d}\n".encode() for i in range(10000)]
    logs = Logs({"llm-0-00001": lines, "llm-1-00001": [b"".join(lines)]})
    kept = collect.collect(attempt_of(broken()), logs, classify, str(tmp_path), bytes_per_log=8000)
    for one, (_rank, _pod, text) in zip(kept["logs"], kept["signature"]["lines"], strict=True):
        assert text.startswith("line 000000\n") and text.endswith("line 009999\n")
        assert (one["bytes"], one["cut"]) == (120000, 112000)
        assert "\n[112000 bytes left out here]\n" in text and len(text) < 8100


def test_many_logs_share_the_room(tmp_path):
    big = [b"x" * 99 + b"\n"] * 2000
    logs = Logs({f"llm-{i}-00001": big for i in range(8)})
    told = attempt_of(broken(8), count=8)
    kept = collect.collect(told, logs, classify, str(tmp_path), total=8 * collect.LEAST, workers=3)
    sizes = [os.path.getsize(os.path.join(kept["dir"], one["file"])) for one in kept["logs"]]
    assert len(sizes) == 8 and max(sizes) < collect.LEAST + 100
    assert 1 <= logs.most <= 3


def test_what_hung_and_what_failed_then_are_two_evidences(tmp_path):
    hung = attempt_of([raw.pod(0, "gpu-0")], status={"active": 2})
    hung["state"] = "hung"
    first = collect.collect(hung, Logs(), classify, str(tmp_path))
    second = collect.collect(attempt_of(broken()), Logs(), classify, str(tmp_path))
    assert first["dir"] != second["dir"] and second["reused"] is False


def test_without_evidence_nobody_may_act(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot keep"):
        collect.collect(attempt_of(broken()), Logs(), classify, str(tmp_path / "file"))


def test_a_run_that_was_killed_before_the_end_is_done_again(tmp_path):
    kept = collect.collect(attempt_of(broken()), Logs(), classify, str(tmp_path))
    with open(os.path.join(kept["dir"], "evidence.json"), "w", encoding="utf-8") as stream:
        stream.write('{"sig')
    logs = Logs()
    collect.collect(attempt_of(broken()), logs, classify, str(tmp_path))
    assert len(logs.asked) == 2


def test_two_runs_at_once_read_once(tmp_path):
    logs = Logs()
    runs = [
        threading.Thread(target=collect.collect, args=(attempt_of(broken()), logs, classify, str(tmp_path)))
        for _ in range(3)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(30)
    assert len(logs.asked) == 2


def test_only_what_went_wrong_is_worth_its_logs():
    told = []
    for state, mode in (("failed", "act"), ("hung", "advise"), ("lost", "act"), ("running", "act"), ("failed", "off")):
        told.append({"state": state, "job": {"mode": mode}})
    assert collect.wanted(told) == told[:3]


def test_pods_that_were_deleted_with_their_job_keep_their_place(tmp_path):
    running = attempt_of([raw.pod(i, f"gpu-{i}") for i in range(2)], status={"startTime": raw.at(0)})
    nodes = [raw.node(f"gpu-{i}", boot="boot-0") for i in range(3)]
    history.save(str(tmp_path), history.remember(None, [running], nodes, raw.now(50)))
    seen = history.load(str(tmp_path))
    assert sorted(seen["nodes"]) == ["gpu-0", "gpu-1"], "only nodes that an attempt runs on"
    left = [raw.pod(0, "gpu-0", phase="Failed", state=raw.ended(1))]
    told = attempt_of(left, earlier=seen["attempts"], known=seen["nodes"], events=[raw.event("gpu-1", 90)])
    assert [(rank["index"], rank["node"], rank["phase"]) for rank in told["ranks"]] == [
        (0, "gpu-0", "Failed"),
        (1, "gpu-1", "Gone"),
    ]
    assert told["missing"] == [1] and told["firstFailure"]["index"] == 0
    assert any(each["fatal"] for each in told["hardware"]["gpu-1"])
    assert any("Rebooted" in each["what"] for each in told["hardware"]["gpu-0"]), "boot-1 runs by now"
    assert [one["name"] for one in collect.requests(told)] == ["llm-0-00001"]


def test_what_was_seen_is_forgotten_in_time_and_never_in_the_way(tmp_path):
    assert history.load(str(tmp_path)) == {"attempts": {}, "nodes": {}}
    (tmp_path / history.FILE).write_text("no json")
    assert history.load(str(tmp_path)) == {"attempts": {}, "nodes": {}}
    running = attempt_of([raw.pod(0, "gpu-0")], status={"startTime": raw.at(0)})
    seen = history.remember(None, [running], [raw.node("gpu-0")], raw.now(50))
    later = history.remember(seen, [], [], raw.now(50 + history.KEEP - 1))
    assert sorted(later["attempts"]) == [running["key"]] and sorted(later["nodes"]) == ["gpu-0"]
    assert history.remember(seen, [], [], raw.now(51 + history.KEEP)) == {"attempts": {}, "nodes": {}}


def test_steps_are_kept_from_pass_to_pass():
    running = attempt_of([raw.pod(0, "gpu-0")], status={"startTime": raw.at(0)})
    seen = None
    for when, step in ((50, 1), (60, 1), (70, 2)):
        running["progress"] = {"lastStep": step, "lastStepAt": raw.at(when)}
        seen = history.remember(seen, [running], [], raw.now(when))
    assert seen["attempts"][running["key"]]["samples"] == [
        {"at": raw.at(50), "step": 1},
        {"at": raw.at(70), "step": 2},
    ]


@pytest.mark.parametrize("name", ["../../../etc/passwd", "..", "a/b", "/x", "ü" * 200, "p" * 253, "a\nb", "."])
def test_whatever_a_pod_is_called_its_log_stays_in_the_folder_of_its_attempt(tmp_path, name):
    pod = raw.pod(0, "gpu-0", name=name, phase="Failed", state=raw.ended(1))
    told = attempt_of([pod])
    told["key"] = f"../../{name}/1"
    kept = collect.collect(told, Logs(), classify, str(tmp_path / "records"))
    (log,) = kept["logs"]
    where = tmp_path / "records" / kept["dir"] / "logs"
    assert log["pod"] == name and [path.resolve().parent for path in where.iterdir()] == [where]
    assert [path.name for path in tmp_path.iterdir()] == ["records"]
