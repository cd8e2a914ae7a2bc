# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people and other versions leave in annotations, journals, policies and files: told or left out, never an end."""

from __future__ import annotations

import json
import math

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import (
    attempt as attempts,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import (
    declared,
    guards,
    history,
    memory,
    policy,
    progress,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.tests.unit.jobs import raw
from ansible_collections.goodput.fleet.tests.unit.jobs.attempts import (
    NOW,
    TIMEOUT,
    attempt,
    bug,
    decided,
    entry,
    excluded,
    fleet,
    nodes,
    one,
    rules,
    signature,
    xid,
)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": "12"},
        {"step": math.nan},
        {"step": True},
        {"nodes": 5},
        {"nodes": [["x"], None, "gpu-1"]},
        {"blamed": "gpu-1"},
        {"checkpointStep": "7"},
        {"advanced": "no"},
        {"id": 5},
        {"job": ["x"]},
        {"class": {}},
        {"image": 5},
        {"mode": ["act"]},
        {"outcome": {}},
        {"fault": []},
        {"key": 5},
        {"previous": 5},
    ],
)
def test_a_part_of_the_journal_that_is_none_of_its_kind_counts_as_not_known(wrong):
    whole = {"step": 100, "path": "/c", "complete": True, "torn": []}
    again = attempt(number=2, signature=TIMEOUT, progress={"lastStep": 100}, checkpoint=whole)
    assert one(again, past=[entry() | wrong])["action"] == "retry"


def test_an_entry_that_is_none_is_left_out():
    past = memory.History({"decisions": [None, "x", 5, {}, {"key": "a/b/c/1"}, entry()]}, NOW.timestamp())
    assert [each.key for each in past.entries] == [entry()["key"]]


def test_a_job_of_another_kind_with_the_same_name_uses_up_no_budget_and_hides_none():
    theirs = [entry(number=number, at=900 - number, key=f"research/train/set-{number}/{number}") for number in (1, 2)]
    ours = [
        entry(number=number, at=1000 - 100 * number, advanced=False, previous=f"train-{number - 1}")
        for number in (1, 2, 3)
    ]
    (given,) = [attempt(number=4, signature=TIMEOUT, progress={"advanced": False})]
    spec = one(given, past=[*ours, *theirs])
    assert (spec["rule"], spec["budget"]["noProgress"]["used"]) == ("row-16", 3)
    chain = memory.History({"decisions": [*ours, *theirs]}, NOW.timestamp()).chain(given)
    assert [each.number for each in chain] == [1, 2, 3]


def test_the_same_bug_is_known_again_by_an_image_that_is_longer_than_what_is_kept():
    image = {"image": "registry.example/" + "x" * 400 + "@sha256:1"}
    given = attempt(number=2, signature=bug(), job=image)
    kept = memory.image_of(given)
    assert len(kept) == memory.IMAGE and kept.endswith("@sha256:1")
    past = [entry(fault=memory.fault_of(given), image=kept)]
    assert one(given, past=past)["action"] == "giveBack"
    other = attempt(number=2, signature=bug(), job={"image": image["image"][:-1] + "2"})
    assert one(other, past=past)["action"] != "giveBack"


def test_what_lasts_for_ever_lasts_to_the_end_of_the_calendar():
    for_ever = "999999d999999d999999d"
    spec = one(attempt(hardware={"gpu-0": [xid()]}), suspects={"exclude": for_ever})
    assert spec["exclude"][0]["until"] == "9999-12-31T23:59:59Z"
    spec = one(attempt(signature=TIMEOUT), backoff={"delays": [for_ever]})
    assert spec["notBefore"] == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("section", "field"),
    [("hang", "factor"), ("lemon", "score"), ("suspects", "confidence"), ("blastRadius", "gatesPercent")],
)
def test_a_policy_with_a_number_that_is_none_is_told_by_its_place(section, field):
    with pytest.raises(InvalidDocument, match=rf"spec\.{section}\.{field}"):
        rules(**{section: {field: math.nan}})
    head = "apiVersion: goodput.fleet/v1alpha1\nkind: RecoveryPolicy\nmetadata: {name: a}\nspec:\n  mode: observe\n"
    text = f"{head}  {section}:\n    {field}: .nan\n"
    with pytest.raises(InvalidDocument, match=":7"):
        policy.load(text)


@pytest.mark.parametrize("told", [math.nan, math.inf, -1, -math.inf, 0, "3"])
def test_a_usual_step_that_is_no_time_teaches_nothing(told):
    samples = [{"at": raw.at(0), "step": 5}]
    found = progress.verdict(samples, raw.now(60), raw.at(0), step_seconds=told)
    assert (found["stepSeconds"], found["hung"]) == (None, False)


@pytest.mark.parametrize("silence", [math.nan, math.inf, -5, None])
def test_a_silence_that_is_no_time_is_said_to_be_unknown(silence):
    told = {"hung": True, "silenceSeconds": silence, "limitSeconds": silence}
    assert one(attempt(state="hung", progress=told), hang={"act": True})["rule"] == "row-12"


def test_annotations_of_any_length_and_with_any_signs_stay_what_they_are():
    notes = {
        "goodput.fleet/recovery": "act",
        "goodput.fleet/user": "ada\n'\"}{{ 1 }}" + "x" * 200_000,
        "goodput.fleet/checkpoint-path": "/" + "c" * 5000,
        "goodput.fleet/recovery-max-retries": "9" * 5000,
        "goodput.fleet/attempt": "9" * 5000,
        "batch.kubernetes.io/job-completion-index": "9" * 5000,
    }
    said = declared.read({"metadata": {"annotations": notes, "namespace": "ml"}}, None)
    assert len(said["user"]) == 253 and said["user"].startswith("ada\n'\"}{{ 1 }}")
    assert said["checkpoint"] is None and said["maxRetries"] is None
    assert len(said["problems"]) == 2 and all(len(each) < 200 for each in said["problems"])
    pod = raw.pod(0, "gpu-1", labels={})
    pod["metadata"]["annotations"] = notes
    (built,) = attempts.build(attempts.Snapshot(jobs=[raw.job(notes=notes)], pods=[pod]), raw.now(50))
    assert [rank["index"] for rank in built["ranks"]] == [0]
    assert decided(attempt(job={"user": notes["goodput.fleet/user"], "image": "i" * 5000}))[0]["action"] == "retry"


@pytest.mark.parametrize(
    "seen",
    [
        {"attempts": {"k": None}, "nodes": {"gpu-1": 5}},
        {"attempts": {"k": {"ranks": [[0, "a"]], "samples": 5, "pause": []}}},
        {"attempts": {"k": {"ranks": 5}}, "nodes": {"gpu-1": {"uid": [], "boots": [5, {"at": 5}]}}},
        {"attempts": {"k": {"ranks": [[{}, "", "p", "u", "ml", "gpu-1", ""], [0, "", "p", "u", "ml", ["x"], ""]]}}},
        [],
    ],
)
def test_what_another_version_kept_of_earlier_passes_is_as_if_it_were_not_there(tmp_path, seen):
    job = raw.job(status=raw.failed("BackoffLimitExceeded"))
    key = "ml/llm/uid-llm/1"
    text = json.dumps(seen).replace('"k"', f'"{key}"')
    (tmp_path / history.FILE).write_text(text)
    before = history.load(str(tmp_path))
    snapshot = attempts.Snapshot(
        jobs=[job], nodes=[raw.node("gpu-1")], earlier=before["attempts"], known=before["nodes"]
    )
    (built,) = attempts.build(snapshot, raw.now(200))
    assert built["ranks"] == []
    after = history.remember(before, [built], [raw.node("gpu-1")], raw.now(200))
    assert list(after["attempts"]) == [key]


def test_a_thousand_failures_at_once_look_for_room_only_as_long_as_the_budget_of_all_lasts(monkeypatch):
    looked = []
    real = guards.placement.place
    monkeypatch.setattr(guards.placement, "place", lambda *args: looked.append(1) or real(*args))
    many = [attempt(name=f"train-{number}", on=(number,), signature=TIMEOUT, ended=300) for number in range(1000)]
    found = decided(many, fleet(nodes(1000)), blastRadius={"jobs": 1000})
    actions = [spec["action"] for spec in found]
    assert (actions.count("retry"), actions.count("hold"), len(looked)) == (20, 980, 20)
    assert all(
        spec["notBefore"] and spec["budget"]["global"]["used"] == 20 for spec in found if spec["action"] == "hold"
    )


def test_without_room_a_lemon_is_used_before_a_node_that_was_left_out_for_a_reason():
    past = [
        entry(number=1, at=500, exclude=["gpu-4"], blamed=["gpu-4"], nodes=["gpu-4"], **{"class": "hardware"}),
        *(entry(name=f"other-{n}", at=9000 + n, blamed=["gpu-5"], nodes=["gpu-5"]) for n in range(3)),
    ]
    given = attempt(number=2, signature=TIMEOUT, hardware={"gpu-3": [xid()]})
    enough = one(given, fleet(nodes(9)), past=past)
    assert excluded(enough) == ["gpu-3", "gpu-4", "gpu-5"]
    scarce = one(given, fleet(nodes(6)), past=past)
    assert (scarce["action"], excluded(scarce)) == ("restart", ["gpu-3", "gpu-4"])
    tight = one(given, fleet(nodes(5)), past=past)
    assert (tight["action"], excluded(tight)) == ("restart", ["gpu-3"])


def test_who_made_a_job_again_is_told_where_nobody_else_may():
    given = attempt(job={"neverTouch": True, "neverTouchWhy": "CronJob nightly made it, and would make it again"})
    spec = one(given)
    assert (spec["action"], spec["rule"]) == ("none", "row-1") and "CronJob nightly" in spec["reasons"][0]


def test_that_work_which_is_done_is_done_again_is_said():
    status = {**raw.failed("BackoffLimitExceeded"), "succeeded": 90}
    (built,) = attempts.build(attempts.Snapshot(jobs=[raw.job(pods=100, status=status)]), raw.now(200))
    assert built["job"]["succeeded"] == 90
    spec = one(attempt(signature=TIMEOUT, job={"succeeded": 90}))
    assert any("90 pods that succeeded" in why for why in spec["reasons"])


@pytest.mark.parametrize(
    ("reason", "rule"), [("Terminated", "row-3"), ("NodeShutdown", "row-3"), ("Evicted", "row-17")]
)
def test_a_node_that_was_told_to_go_is_no_failure_of_the_job(reason, rule):
    given = attempt()
    given["ranks"][1] |= {"disruption": "TerminationByKubelet", "reason": reason}
    assert one(given)["rule"] == rule


def test_of_a_lost_node_only_those_that_its_pods_were_taken_from_are_in_question():
    given = attempt(on=(0, 1, 2), reason="NodeLost")
    given["ranks"][0]["node"], given["nodes"][0] = "cpu-1", "cpu-1"  # of a launcher; only nodes with GPUs are known
    given["ranks"][2] |= {"disruption": "DeletionByTaintManager", "exitCode": None}
    known = nodes(gpu_2={"ready": "Unknown", "readySince": NOW.strftime("%Y-%m-%dT%H:%M:%SZ")})
    spec = one(given, fleet(known))
    assert (spec["rule"], spec["blamed"]) == ("row-6", ["gpu-2"])


def test_a_line_with_any_signs_is_told_as_it_is():
    text = "]}\x1b[31m'\"; {{ lookup('env') }} <script>" + "x" * 400
    given = attempt(
        signature=signature("transient-software", lines=[{"rank": 0, "pod": "p", "number": 1, "text": text}])
    )
    assert one(given)["action"] == "retry"


def test_a_job_that_goes_back_to_its_queue_still_keeps_away_from_what_was_left_out():
    past = [entry(number=1, at=500, exclude=["gpu-4"], blamed=["gpu-4"], nodes=["gpu-4"], **{"class": "hardware"})]
    given = attempt(number=2)
    given["ranks"][1] |= {"disruption": "PreemptionByScheduler"}
    spec = one(given, past=past)
    assert (spec["action"], excluded(spec)) == ("requeue", ["gpu-4"])
    without_room = one(given, fleet(nodes(4, gpu_3={"open": False}) | {"gpu-4": nodes(5)["gpu-4"]}), past=past)
    assert (without_room["action"], excluded(without_room)) == ("requeue", [])


@pytest.mark.parametrize("wrong", [[], {}, 5, None])
def test_names_and_uids_that_are_none_belong_to_nobody(wrong):
    pod, stray = raw.pod(0, "gpu-0"), raw.pod(1, "gpu-1")
    stray["metadata"]["ownerReferences"][0]["uid"] = wrong
    odd = raw.job("odd")
    odd["metadata"] |= {"name": wrong, "namespace": wrong}
    built = attempts.build(attempts.Snapshot(jobs=[raw.job(), odd], pods=[pod, stray]), raw.now(50))
    assert [[rank["index"] for rank in each["ranks"]] for each in built] == [[0], []]
