# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import declared, topology
from ansible_collections.goodput.fleet.tests.unit.jobs import raw


def space(**notes):
    return {"metadata": {"name": "ml", "annotations": {f"goodput.fleet/{key}": value for key, value in notes.items()}}}


def said(notes=None, namespace=None, **spec):
    job = raw.job(notes={f"goodput.fleet/{key}": value for key, value in (notes or {}).items()}, **spec)
    return declared.read(job, namespace)


@pytest.mark.parametrize(
    ("notes", "namespace", "mode", "where"),
    [
        ({"recovery": "act"}, None, "act", "goodput.fleet/recovery of the job"),
        ({"recovery": "off"}, space(recovery="act"), "off", "goodput.fleet/recovery of the job"),
        ({}, space(recovery="act"), "act", "goodput.fleet/recovery of the namespace"),
        ({"recovery": " Advise "}, None, "advise", "goodput.fleet/recovery of the job"),
        ({}, None, "off", "nothing declared; goodput.fleet/recovery: act on the job or its namespace would opt in"),
    ],
)
def test_the_jobs_word_goes_before_its_namespaces(notes, namespace, mode, where):
    told = said(notes, namespace)
    assert (told["mode"], told["modeFrom"], told["problems"]) == (mode, where, [])


def test_a_word_that_is_no_mode_never_acts_and_is_told():
    told = said({"recovery": "akt"}, space(recovery="act"))
    assert told["mode"] == "advise"
    assert told["problems"] == [told["modeFrom"]]
    assert "'akt'" in told["modeFrom"] and "act" in told["modeFrom"]


def test_everything_that_can_be_declared():
    notes = {
        "recovery": "act",
        "recovery-max-retries": "5",
        "recovery-elastic": "6-8",
        "checkpoint-path": "/ckpt/llm",
        "recovery-resume-env": "RESUME_FROM",
        "attempt": "3",
        "previous-attempt": "uid-before",
        "user": "ada",
    }
    told = said(notes)
    assert told["maxRetries"] == 5 and told["elastic"] == {"min": 6, "max": 8}
    assert told["checkpoint"] == {"path": "/ckpt/llm"} and told["resumeEnv"] == "RESUME_FROM"
    assert (told["number"], told["previous"], told["user"], told["problems"]) == (3, "uid-before", "ada", [])


def test_all_that_cannot_be_read_is_told_at_once_and_counts_for_nothing():
    notes = {
        "recovery-max-retries": "many",
        "recovery-elastic": "8-6",
        "recovery-resume-env": "RESUME FROM",
        "attempt": "0",
    }
    told = said(notes)
    assert (told["maxRetries"], told["elastic"], told["resumeEnv"], told["number"]) == (None, None, "", 1)
    assert len(told["problems"]) == 4
    assert "goodput.fleet/recovery-elastic is '8-6', not MIN-MAX such as 6-8" in told["problems"]


def test_a_pytorchjob_says_itself_that_it_is_elastic():
    job = raw.custom("PyTorchJob", "pt", {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 4}})
    assert declared.read(job, None)["elastic"] == {"min": 2, "max": 4}


def test_who_must_not_be_started_again():
    deleted = raw.job()
    deleted["metadata"]["deletionTimestamp"] = raw.at(5)
    made = raw.job()
    made["metadata"]["ownerReferences"] = raw.owned("CronJob", "nightly", "u1")
    whys = [declared.read(job, None)["neverTouchWhy"] for job in (deleted, made, raw.job())]
    assert whys == ["it is being deleted", "CronJob nightly made it, and would make it again", ""]
    assert said({"recovery": "off"})["neverTouch"] is True


def test_queues():
    kueue = raw.job()
    kueue["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    kai = raw.job(template=raw.template(labels={"kai.scheduler/queue": "team-a"}))
    bare = raw.template()
    bare["spec"]["schedulerName"] = "kai-scheduler"
    told = [declared.queue(job) for job in (kueue, kai, raw.job(template=bare), raw.job())]
    assert [(each["kind"], each["name"], each["managed"]) for each in told] == [
        ("kueue", "research", True),
        ("kai", "team-a", False),
        ("kai", "", False),
        ("none", "", False),
    ]


def test_only_jobs_that_are_opted_in_and_that_nothing_else_of_ours_made():
    child = raw.job("llm-part")
    child["metadata"]["ownerReferences"] = raw.owned("JobSet", "llm", "uid-gone")
    jobs = [raw.job(), raw.job("quiet", notes={}), child, {"kind": "Job"}, {"kind": "CronJob", "metadata": {}}]
    assert [job["metadata"]["name"] for job in declared.opted_in(jobs)] == ["llm"]
    assert len(declared.opted_in(jobs, [space(recovery="advise")])) == 2


def test_the_first_label_that_a_node_has_names_its_domain():
    assert topology.domain({"topology.kubernetes.io/rack": "r1", "nvidia.com/gpu.clique": "a.1"}) == (
        "nvidia.com/gpu.clique=a.1"
    )
    no_fabric = {"nvidia.com/gpu.clique": "00000000-0000-0000-0000-000000000000.0", "goodput.fleet/rack": "r2"}
    assert topology.domain(no_fabric) == "goodput.fleet/rack=r2"
    assert topology.domain({}) == topology.domain(None) == ""
    placed = {"b": "x", "a": "x", "c": ""}
    assert topology.domains(placed, placed) == {"x": ["a", "b"]}
