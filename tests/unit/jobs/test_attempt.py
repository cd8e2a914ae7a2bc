# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import random
import time

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import attempt, history, scheduled
from ansible_collections.goodput.fleet.tests.unit.jobs import raw

NODES = [raw.node(f"gpu-{i}", clique=1 + i // 2) for i in range(4)]


def build(jobs, pods=(), nodes=NODES, when=200, **more):
    default = more.pop("default_mode", "off")
    snapshot = attempt.Snapshot(jobs=jobs, pods=pods, nodes=nodes, **more)
    return attempt.build(snapshot, raw.now(when), default_mode=default)


def one(jobs, pods=(), **more):
    found = build(jobs, pods, **more)
    assert len(found) == 1
    return found[0]


def running(**more):
    return [raw.pod(i, f"gpu-{i}", **more) for i in range(4)]


def test_a_running_job_with_where_it_runs():
    told = one([raw.job()], running())
    assert told["key"] == "ml/llm/uid-llm/1"
    assert (told["state"], told["reason"], told["firstFailure"], told["missing"]) == ("running", "", None, [])
    assert [(rank["index"], rank["node"], rank["nodeUid"]) for rank in told["ranks"]] == [
        (i, f"gpu-{i}", f"node-gpu-{i}") for i in range(4)
    ]
    first = f"nvidia.com/gpu.clique={raw.CLIQUE.format(1)}"
    assert told["domains"][first] == ["gpu-0", "gpu-1"] and told["ranks"][1]["domain"] == first
    assert told["job"]["shape"] == {
        "pods": 4,
        "ranks": 4,
        "gpusPerPod": 8,
        "gang": True,
        "elastic": None,
        "completionMode": "Indexed",
    }
    assert told["job"]["image"] == "registry.example/llm:7", "of the container with the GPUs, not of the proxy"
    assert told["hardware"] == {} and told["signature"] is None


FAILURES = {
    "OOMKilled": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": raw.ended(137, "OOMKilled")},
        ("BackoffLimitExceeded", 137, 9, "OOMKilled", ""),
    ),
    "evicted by the kubelet": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": raw.ended(137), "reason": "Evicted", "disruption": "TerminationByKubelet"},
        ("BackoffLimitExceeded", 137, 9, "Evicted", "TerminationByKubelet"),
    ),
    "preempted": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": raw.ended(143), "disruption": "PreemptionByScheduler"},
        ("Preempted", 143, 15, "Error", "PreemptionByScheduler"),
    ),
    "node gone": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": {"running": {}}, "disruption": "DeletionByPodGC"},
        ("NodeLost", None, None, "", "DeletionByPodGC"),
    ),
    "drained": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": raw.ended(143), "disruption": "EvictionByEvictionAPI"},
        ("BackoffLimitExceeded", 143, 15, "Error", "EvictionByEvictionAPI"),
    ),
    "deadline": (
        raw.failed("DeadlineExceeded", "Job was active longer than specified deadline"),
        {"phase": "Failed", "state": raw.ended(137)},
        ("DeadlineExceeded", 137, 9, "Error", ""),
    ),
    "segfault": (
        raw.failed("PodFailurePolicy"),
        {"phase": "Failed", "state": raw.ended(139)},
        ("PodFailurePolicy", 139, 11, "Error", ""),
    ),
    "user error": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": raw.ended(1)},
        ("BackoffLimitExceeded", 1, None, "Error", ""),
    ),
    "never started": (
        raw.failed("BackoffLimitExceeded"),
        {"phase": "Failed", "state": {"waiting": {}}, "reason": "UnexpectedAdmissionError"},
        ("BackoffLimitExceeded", None, None, "UnexpectedAdmissionError", ""),
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_ends_of_a_pod(case):
    status, how, (reason, code, signal, pod_reason, disruption) = FAILURES[case]
    # the others were killed because of it, and are told later
    pods = [raw.pod(i, f"gpu-{i}", phase="Failed", state=raw.ended(137, when=97), deleted=96) for i in (0, 1, 3)]
    pods.append(raw.pod(2, "gpu-2", **how))
    told = one([raw.job(status=status)], pods)
    assert (told["state"], told["reason"], told["endedAt"]) == ("failed", reason, raw.at(100))
    rank = told["ranks"][2]
    assert (rank["exitCode"], rank["signal"], rank["reason"], rank["disruption"]) == (
        code,
        signal,
        pod_reason,
        disruption,
    )
    assert told["firstFailure"]["index"] == 2 and told["firstFailure"]["node"] == "gpu-2"


def test_who_was_killed_with_the_job_is_not_the_first_even_where_it_ended_earlier():
    pods = [raw.pod(0, "gpu-0", phase="Failed", state=raw.ended(137, when=90), deleted=89)]
    pods.append(raw.pod(1, "gpu-1", phase="Failed", state=raw.ended(1, when=95)))
    assert one([raw.job(pods=2, status=raw.failed("BackoffLimitExceeded"))], pods)["firstFailure"]["index"] == 1


def test_two_that_ended_in_the_same_second_are_a_tie():
    pods = [raw.pod(i, f"gpu-{i}", phase="Failed", state=raw.ended(1, when=95)) for i in range(3)]
    first = one([raw.job(pods=3, status=raw.failed("BackoffLimitExceeded"))], pods)["firstFailure"]
    assert (first["index"], first["ties"]) == (0, [1, 2])


def test_the_schedulers_words_name_the_pod_where_it_is_gone():
    words = "Container train for pod ml/llm-3-x8d2k failed with exit code 134 matching FailJob rule at index 0"
    told = one([raw.job(status=raw.failed("PodFailurePolicy", words))], [raw.pod(0, "gpu-0")])
    assert told["firstFailure"] == {
        "index": 3,
        "node": "",
        "pod": "llm-3-x8d2k",
        "at": "",
        "exitCode": 134,
        "signal": 6,
        "ties": [],
    }
    assert told["missing"] == [1, 2, 3]


def test_the_schedulers_words_go_before_the_order_in_time():
    words = "Container train for pod ml/llm-1-00001 failed with exit code 7 matching FailJob rule at index 0"
    pods = [raw.pod(i, f"gpu-{i}", phase="Failed", state=raw.ended(7, when=90 + i)) for i in range(2)]
    first = one([raw.job(pods=2, status=raw.failed("PodFailurePolicy", words))], pods)["firstFailure"]
    assert (first["index"], first["node"], first["ties"]) == (1, "gpu-1", [])


def test_the_end_is_settled_while_other_pods_still_run():
    status = {"startTime": raw.at(0), "conditions": [raw.condition("FailureTarget", "PodFailurePolicy", when=100)]}
    told = one([raw.job(status=status)], running())
    assert (told["state"], told["reason"], told["endedAt"]) == ("failed", "PodFailurePolicy", raw.at(100))


@pytest.mark.parametrize(
    ("nodes", "deleted", "lost"),
    [
        ([raw.node("gpu-0", ready="Unknown", since=60)], 80, True),
        ([raw.node("gpu-0", ready="False", since=60)], 80, True),
        ([], 80, True),
        ([], None, True),
        ([raw.node("gpu-0", uid="other", made=150)], 80, True),
        ([raw.node("gpu-0", uid="other", made=150)], None, False),
        ([raw.node("gpu-0", ready="Unknown", since=60)], None, False),
        ([raw.node("gpu-0")], 80, False),
    ],
    ids=["unknown", "not ready", "gone", "gone unmarked", "replaced", "made anew only", "silent only", "only deleted"],
)
def test_a_pod_is_lost_only_with_its_node(nodes, deleted, lost):
    pods = [raw.pod(0, "gpu-0", deleted=deleted, disruption="DeletionByTaintManager"), raw.pod(1, "gpu-1")]
    told = one([raw.job(pods=2)], pods, nodes=[*nodes, NODES[1]])
    assert told["state"] == ("lost" if lost else "running")
    assert told["lostNodes"] == (["gpu-0"] if lost else [])
    if lost:
        assert told["reason"] == "NodeLost" and told["firstFailure"]["node"] == "gpu-0"


def test_a_node_that_came_after_the_nodes_were_read_is_not_gone():
    told = one([raw.job(pods=1)], [raw.pod(0, "gpu-new", made=180)], nodes=NODES, when=200)
    assert told["state"] == "running" and told["hardware"] == {}


def test_the_newest_pod_of_an_index_counts_and_older_ones_are_restarts():
    pods = [raw.pod(0, f"gpu-{n}", made=10 * n, phase="Failed", state=raw.ended(1)) for n in range(3)]
    pods.append(raw.pod(0, "gpu-3", made=40))
    random.Random(1).shuffle(pods)
    told = one([raw.job(pods=1)], pods)
    assert [rank["node"] for rank in told["ranks"]] == ["gpu-3"]
    assert told["job"]["restarts"] == 3 and told["nodes"] == ["gpu-3"]


def test_of_two_pods_of_the_same_second_the_one_that_lives_counts():
    pods = [raw.pod(0, "gpu-0", name="z", deleted=50), raw.pod(0, "gpu-1", name="a")]
    assert [rank["pod"] for rank in one([raw.job(pods=1)], pods)["ranks"]] == ["a"]


def test_pods_without_an_index_work_off_a_queue_each_for_itself():
    pods = [raw.pod(None, f"gpu-{n}", name=f"p{n}", made=n) for n in range(4)]
    told = one([raw.job(pods=2, completionMode="NonIndexed")], pods)
    assert [rank["pod"] for rank in told["ranks"]] == ["p2", "p3"]
    assert told["job"]["shape"]["gang"] is False and told["missing"] == [] and told["job"]["restarts"] == 1


def test_one_index_that_may_fail_for_itself_makes_no_gang():
    job = raw.job(pods=2, backoffLimitPerIndex=0, status={"startTime": raw.at(0), "failedIndexes": "0"})
    pods = [raw.pod(0, "gpu-0", phase="Failed", state=raw.ended(1)), raw.pod(1, "gpu-1")]
    told = one([job], pods)
    assert (told["state"], told["job"]["shape"]["gang"], told["firstFailure"]["index"]) == ("running", False, 0)


def test_a_container_in_a_crash_loop_tells_its_last_end():
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    rank = one([raw.job(pods=1)], [raw.pod(0, "gpu-0", state=state, last=raw.ended(134), restarts=3)])["ranks"][0]
    assert (rank["exitCode"], rank["signal"], rank["restarts"], rank["previousLog"]) == (134, 6, 3, False)


def test_a_container_that_was_started_again_has_an_earlier_log():
    rank = one([raw.job(pods=1)], [raw.pod(0, "gpu-0", last=raw.ended(1), restarts=1)])["ranks"][0]
    assert (rank["exitCode"], rank["previousLog"], rank["restarts"]) == (None, True, 1)


def test_pending_says_why():
    cannot = raw.condition("PodScheduled", "Unschedulable", "0/4 nodes are available", status="False")
    pods = [raw.pod(i, phase="Pending", conditions=[cannot]) for i in range(4)]
    told = one([raw.job()], pods)
    assert (told["state"], told["reason"], told["nodes"]) == ("pending", "Unschedulable", [])


def test_suspended_and_succeeded():
    assert one([raw.job(suspend=True)])["state"] == "suspended"
    done = {"conditions": [raw.condition("Complete")]}
    assert (
        one([raw.job(status=done)], running(phase="Succeeded", state=raw.ended(0, "Completed")))["state"] == "succeeded"
    )


def test_nobody_said_anything_so_nobody_looks():
    assert build([raw.job(notes={})], running()) == []
    assert [each["job"]["mode"] for each in build([raw.job(notes={})], running(), default_mode="advise")] == ["advise"]


def jobset(status=None, notes=None, name="big"):
    parts = [
        {"name": "leader", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": raw.template(0)}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": raw.template(8)}}},
    ]
    return raw.custom("JobSet", name, {"replicatedJobs": parts}, status, notes)


def jobset_pod(part, job, index, node, *, name="big", restart=0, owner=True, **more):
    labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": part,
        "jobset.sigs.k8s.io/job-index": str(job),
        "jobset.sigs.k8s.io/restart-attempt": str(restart),
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    child = f"{name}-{part}-{job}"
    made_by = raw.owned("Job", child, f"uid-{child}-{restart}") if owner else []
    return raw.pod(index, node, job=child, labels=labels, owner=made_by, **more)


def jobset_children(name="big", restart=0, kind="JobSet", parent="big"):
    found = []
    for part, jobs in (("leader", 1), ("workers", 2)):
        for index in range(jobs):
            child = raw.job(f"{name}-{part}-{index}", uid=f"uid-{name}-{part}-{index}-{restart}", notes={})
            child["metadata"]["ownerReferences"] = raw.owned(kind, parent, f"uid-{parent}")
            found.append(child)
    return found


def jobset_pods(**more):
    places = [("leader", 0, 0), ("workers", 0, 0), ("workers", 0, 1), ("workers", 1, 0), ("workers", 1, 1)]
    return [jobset_pod(*place, f"gpu-{number % 4}", **more) for number, place in enumerate(places)]


@pytest.mark.parametrize("children", [True, False], ids=["with its jobs", "its jobs are gone"])
def test_ranks_of_a_jobset_count_over_all_its_jobs(children):
    told = one([jobset(), *(jobset_children() if children else [])], jobset_pods())
    assert [(rank["index"], rank["role"]) for rank in told["ranks"]] == [
        (0, "leader"),
        (1, "workers"),
        (2, "workers"),
        (3, "workers"),
        (4, "workers"),
    ]
    assert told["job"]["shape"]["pods"] == 5 and told["job"]["shape"]["gpusPerPod"] == 8


@pytest.mark.parametrize(("restarts", "nodes"), [(2, ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]), (3, [])])
def test_where_an_earlier_restart_of_a_jobset_ran_is_not_where_the_last_one_did(restarts, nodes):
    running = one([jobset({"restarts": 2}), *jobset_children(restart=2)], jobset_pods(restart=2))
    seen = history.remember(None, [running], [], raw.now(50))
    end = {"restarts": restarts, "conditions": [raw.condition("Failed", "ReachedMaxRestarts")]}
    (told,) = build([jobset(end), *jobset_children(restart=restarts)], [], earlier=seen["attempts"])
    assert told["state"] == "failed" and told["nodes"] == nodes


def test_pods_of_an_earlier_restart_of_a_jobset_do_not_count():
    pods = [*jobset_pods(restart=0, deleted=50), jobset_pod("workers", 1, 0, "gpu-3", restart=1, made=60)]
    told = one([jobset({"restarts": 1}), *jobset_children(restart=1)], pods)
    assert [(rank["index"], rank["node"]) for rank in told["ranks"]] == [(3, "gpu-3")]
    assert told["job"]["restarts"] == 1 and told["missing"] == [0, 1, 2, 4]


def test_pods_of_an_earlier_jobset_of_the_same_name_do_not_count():
    again = jobset()
    again["metadata"]["creationTimestamp"] = raw.at(50)
    again["metadata"]["uid"] = "uid-again"
    told = one([again], jobset_pods(made=1) + [jobset_pod("leader", 0, 0, "gpu-0", made=51, restart=0)])
    assert [rank["index"] for rank in told["ranks"]] == [0]


def test_a_jobset_fails_for_the_reason_of_its_job():
    status = {"conditions": [raw.condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")]}
    children = jobset_children()
    children[1]["status"] = raw.failed("DeadlineExceeded", "too long")
    told = one([jobset(status), *children], jobset_pods())
    assert (told["state"], told["reason"]) == ("failed", "DeadlineExceeded")
    assert "too long" in told["message"]


def test_a_trainjob_is_what_its_jobset_runs_and_only_trainers_are_ranks():
    train = raw.custom("TrainJob", "big", {"trainer": {"numNodes": 2, "image": "x"}})
    steps = [("dataset-initializer", 1, 0), ("node", 2, 8)]
    parts = [
        {
            "name": name,
            "replicas": 1,
            "template": {"spec": {"parallelism": pods, "template": raw.template(gpus)}},
        }
        for name, pods, gpus in steps
    ]
    below = raw.custom("JobSet", "big", {"replicatedJobs": parts}, notes={})
    below["metadata"].update(uid="uid-set", ownerReferences=raw.owned("TrainJob", "big", "uid-big"))
    pods = [jobset_pod("dataset-initializer", 0, 0, "gpu-3", phase="Succeeded", owner=False)]
    pods += [jobset_pod("node", 0, index, f"gpu-{index}", owner=False) for index in range(2)]
    told = one([train, below], pods)
    assert [(rank["index"], rank["role"]) for rank in told["ranks"]] == [
        (0, "node"),
        (1, "node"),
        (None, "dataset-initializer"),
    ]
    assert told["job"]["kind"] == "TrainJob" and told["job"]["shape"]["ranks"] == 2


@pytest.mark.parametrize("with_jobset", [True, False])
def test_a_trainjob_whose_jobset_is_not_listed(with_jobset):
    train = raw.custom(
        "TrainJob", "big", {"trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}}
    )
    told = one([train], [jobset_pod("node", 0, i, f"gpu-{i}") for i in range(2)] if with_jobset else [])
    assert told["job"]["shape"]["gpusPerPod"] == 4
    assert [rank["index"] for rank in told["ranks"]] == ([0, 1] if with_jobset else [])


def replica_pod(kind, name, role, index, node, **more):
    labels = {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": str(index),
    }
    owner = more.pop("owner", None) or raw.owned(kind, name, f"uid-{name}")
    return raw.pod(index, node, job=name, name=f"{name}-{role}-{index}", labels=labels, owner=owner, **more)


def test_the_master_of_a_pytorchjob_is_rank_0():
    replicas = {
        "Worker": {"replicas": 2, "template": raw.template(8)},
        "Master": {"replicas": 1, "template": raw.template(8)},
    }
    status = {"startTime": raw.at(0), "conditions": [raw.condition("Failed", "PyTorchJobFailed", "failed")]}
    pods = [
        replica_pod("PyTorchJob", "pt", "worker", 1, "gpu-2", phase="Failed", state=raw.ended(1)),
        replica_pod("PyTorchJob", "pt", "worker", 0, "gpu-1"),
        replica_pod("PyTorchJob", "pt", "master", 0, "gpu-0"),
    ]
    told = one([raw.custom("PyTorchJob", "pt", {"pytorchReplicaSpecs": replicas}, status)], pods)
    assert [(rank["index"], rank["role"], rank["node"]) for rank in told["ranks"]] == [
        (0, "master", "gpu-0"),
        (1, "worker", "gpu-1"),
        (2, "worker", "gpu-2"),
    ]
    assert (told["state"], told["firstFailure"]["index"], told["job"]["shape"]["pods"]) == ("failed", 2, 3)


def test_the_launcher_of_an_mpijob_is_no_rank():
    replicas = {
        "Launcher": {"replicas": 1, "template": raw.template(0)},
        "Worker": {"replicas": 2, "template": raw.template(8)},
    }
    launcher = raw.job("mpi-launcher", pods=1, notes={})
    launcher["metadata"]["ownerReferences"] = raw.owned("MPIJob", "mpi", "uid-mpi")
    starter = raw.pod(
        None,
        "gpu-3",
        job="mpi-launcher",
        name="mpi-launcher-abcde",
        labels={"training.kubeflow.org/job-name": "mpi", "training.kubeflow.org/job-role": "launcher"},
    )
    pods = [replica_pod("MPIJob", "mpi", "worker", i, f"gpu-{i}") for i in range(2)]
    told = one([raw.custom("MPIJob", "mpi", {"mpiReplicaSpecs": replicas}), launcher], [starter, *pods])
    assert [(rank["index"], rank["role"]) for rank in told["ranks"]] == [
        (0, "worker"),
        (1, "worker"),
        (None, "launcher"),
    ]
    assert (told["job"]["shape"]["pods"], told["job"]["shape"]["ranks"], told["missing"]) == (3, 2, [])


def test_a_launcher_that_works_too_is_rank_0():
    replicas = {
        "Launcher": {"replicas": 1, "template": raw.template(8)},
        "Worker": {"replicas": 2, "template": raw.template(8)},
    }
    spec = {"mpiReplicaSpecs": replicas, "runLauncherAsWorker": True}
    pods = [replica_pod("MPIJob", "mpi", "worker", i, f"gpu-{i}") for i in (1, 2)]
    pods.append(replica_pod("MPIJob", "mpi", "launcher", 0, "gpu-0"))
    told = one([raw.custom("MPIJob", "mpi", spec)], pods)
    assert [(rank["index"], rank["node"]) for rank in told["ranks"]] == [(i, f"gpu-{i}") for i in range(3)]
    assert (told["job"]["shape"]["ranks"], told["missing"]) == (3, [])


def test_where_no_nodes_were_read_none_is_gone():
    told = one([raw.job()], running(deleted=80), nodes=[])
    assert (told["state"], told["lostNodes"], told["hardware"]) == ("running", [], {})


def assigned(pod, node, when):
    return {
        "reason": "Scheduled",
        "message": f"Successfully assigned ml/{pod} to {node}",
        "eventTime": raw.at(when),
        "involvedObject": {"kind": "Pod", "name": pod, "uid": f"u-{pod}"},
    }


def test_where_a_pod_was_that_its_failed_job_has_deleted():
    events = [
        assigned("llm-1-aaaaa", "gpu-3", -50),  # of the job of that name before
        assigned("llm-1-bbbbb", "gpu-0", 5),
        assigned("llm-1-ccccc", "gpu-1", 9),
        assigned("llm-0-ddddd", "gpu-3", 9),
        assigned("other-1-eeeee", "gpu-3", 9),
        {"reason": "Scheduled", "message": "?"},
    ]
    pods = [raw.pod(0, "gpu-0", phase="Failed", state=raw.ended(1))]
    sick = [raw.event("gpu-1", 90)]
    told = one([raw.job(pods=2, status=raw.failed("BackoffLimitExceeded"))], pods, pod_events=events, events=sick)
    assert [(rank["index"], rank["node"], rank["phase"]) for rank in told["ranks"]] == [
        (0, "gpu-0", "Failed"),
        (1, "gpu-1", "Gone"),
    ]
    assert sorted(told["hardware"]) == ["gpu-1"] and told["missing"] == [1]
    assert scheduled.namespaces([told]) == []
    assert scheduled.namespaces([one([raw.job(pods=2, status=raw.failed("BackoffLimitExceeded"))], pods)]) == ["ml"]


def test_where_pods_of_a_jobset_were():
    status = {"conditions": [raw.condition("Failed", "FailedJobs")]}
    children = jobset_children()
    for child, (part, index) in zip(children, [("leader", "0"), ("workers", "0"), ("workers", "1")], strict=True):
        child["metadata"]["labels"] = {
            "jobset.sigs.k8s.io/replicatedjob-name": part,
            "jobset.sigs.k8s.io/job-index": index,
        }
    told = one([jobset(status), *children], pod_events=[assigned("big-workers-1-1-abcde", "gpu-2", 9)])
    assert [(rank["index"], rank["role"], rank["node"]) for rank in told["ranks"]] == [(4, "workers", "gpu-2")]


def fleet_of_jobs(count, pods, broken=0):
    jobs, found = [], []
    for number in range(count):
        name = f"j{number:04d}"
        bad = number < broken
        jobs.append(raw.job(name, pods, status=raw.failed("BackoffLimitExceeded") if bad else {"active": pods}))
        for index in range(pods):
            how = {"phase": "Failed", "state": raw.ended(1)} if bad and index == 3 else {}
            found.append(raw.pod(index, f"gpu-{(number * pods + index) % 5000}", job=name, **how))
    return jobs, found


def test_whatever_is_missing_nothing_raises_and_no_pod_goes_to_another_job():
    """Any part of any object may be missing, and of any list any member."""
    chance = random.Random(7)
    jobs, pods = fleet_of_jobs(6, 4, broken=3)
    jobs += [jobset(), *jobset_children()]
    pods += jobset_pods()
    owners = {pod["metadata"]["name"]: pod["metadata"]["ownerReferences"][0]["name"] for pod in pods}
    nodes = [raw.node(f"gpu-{i}") for i in range(24)]
    events = [raw.event(f"gpu-{i}", 50) for i in range(24)]
    went = [assigned(f"j000{i}-{i}-abcde", f"gpu-{i}", 5) for i in range(4)]
    owners.update((f"j000{i}-{i}-abcde", f"j000{i}") for i in range(4))
    for _run in range(300):
        some = [each for each in pods if chance.random() < 0.7]
        told = build(
            [holes(each, chance) for each in jobs if chance.random() < 0.8],
            [holes(each, chance) for each in some],
            [holes(each, chance) for each in nodes if chance.random() < 0.7],
            events=[holes(each, chance) for each in events],
            pod_events=[holes(each, chance) for each in went],
            gates={"gpu-1": [holes(raw.gate(40), chance)]},
        )
        json.dumps(told)
        for each in told:
            for rank in each["ranks"]:
                if rank["pod"]:
                    assert owners[rank["pod"]].startswith(each["job"]["name"])


def holes(value, chance):
    """The value with here and there something missing, null, or of another kind. Names and owners stay."""
    if isinstance(value, dict):
        kept = {}
        for key, each in value.items():
            dice = chance.random()
            if key in ("name", "uid", "ownerReferences", "labels", "metadata", "kind", "namespace") or dice > 0.04:
                whole = key in ("ownerReferences", "labels")
                kept[key] = each if whole else holes(each, chance)
            elif dice > 0.01:
                kept[key] = chance.choice([None, "?", [], {}, 3])
        return kept
    return [holes(each, chance) for each in value] if isinstance(value, list) else value


def test_the_time_goes_with_the_number_of_pods():
    """A thousand jobs of 16 pods, 10 of them failed, on 5000 nodes: 8 times the jobs in less than 20 times the time."""

    def seconds(count):
        jobs, pods = fleet_of_jobs(count, 16, broken=10)
        begun = time.process_time()
        told = build(jobs, pods, nodes)
        taken = time.process_time() - begun
        assert sum(each["state"] == "failed" for each in told) == 10
        assert {each["firstFailure"]["index"] for each in told if each["state"] == "failed"} == {3}
        assert len(told) == count and all(len(each["ranks"]) == 16 for each in told)
        return taken

    nodes = [raw.node(f"gpu-{i}") for i in range(5000)]
    small = min(seconds(125) for _ in range(2))
    large = seconds(1000)
    assert large < 20 * small, f"{small:.2f} s for 125 jobs, {large:.2f} s for 1000"
