"""What objects tell of a run, and which limit it has passed."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.launchers import names, observation
from ansible_collections.goodput.fleet.plugins.module_utils.launchers.ends import HEAD, both_ends

BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
RUN = {
    "id": "0123456789ab",
    "nodes": ["a", "b"],
    "launcher": "indexed-job",
    "limits": {"start": 600, "run": 3600, "silence": 300},
}
MPI = {**RUN, "launcher": "mpijob"}
ALONE = {**RUN, "nodes": ["a"], "launcher": "job"}


def at(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def after(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def job(*conditions: dict, **fields) -> dict:
    metadata = {"name": "gp-0123456789ab", "creationTimestamp": at(0), **fields.pop("metadata", {})}
    return {"metadata": metadata, "spec": fields, "status": {"conditions": list(conditions)}}


def pod(index: int = 0, node: str | None = None, role: str = "worker", **status) -> dict:
    """state: of its container; the rest as in a pod's status."""
    state = status.pop("state", None)
    node = "ab"[index] if node is None else node
    conditions = [{"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": at(10)}]
    if not node:
        conditions[0] |= {"reason": "Unschedulable", "message": status.pop("said", "0/8 nodes are available")}
    body = {"phase": "Pending", "conditions": conditions, **status}
    if state:
        body["containerStatuses"] = [{"name": "node", "restartCount": 0, "state": state}]
    return {
        "metadata": {
            "name": f"gp-{role}-{index}",
            "uid": f"{role}-{index}",
            "labels": {names.ROLE: role},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)} if role == "worker" else {},
        },
        "spec": {"nodeName": node} if node else {},
        "status": body,
    }


def running(index: int = 0, since: float = 20, **more) -> dict:
    return pod(index, phase="Running", state={"running": {"startedAt": at(since)}}, **more)


def ended(index: int = 0, code: int = 0, end: float = 100, **more) -> dict:
    said = more.pop("said", {"reason": "Error" if code else "Completed"})
    state = {"terminated": {"exitCode": code, "startedAt": at(20), "finishedAt": at(end), **said}}
    return pod(index, phase="Failed" if code else "Succeeded", state=state, **more)


def waiting(index: int, reason: str, message: str = "") -> dict:
    return pod(index, state={"waiting": {"reason": reason, "message": message}})


FAILED = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer"}
DONE = {"type": "Complete", "status": "True"}


@pytest.mark.parametrize(
    ("run", "main", "pods", "phase", "why"),
    [
        (RUN, None, [], "gone", "no such run"),
        (RUN, job(metadata={"deletionTimestamp": at(5)}), [running(0)], "gone", "being deleted"),
        (RUN, job(), [], "queued", "0 of 2 pods"),
        (RUN, job(suspend=True), [], "queued", "suspended"),
        (RUN, job(), [pod(0), pod(1, "", said="insufficient nvidia.com/gpu")], "queued", "insufficient nvidia.com/gpu"),
        (RUN, job(), [pod(0), pod(1)], "starting", "gp-worker-0 on a"),
        (RUN, job(), [running(0), waiting(1, "ImagePullBackOff", "no such tag")], "starting", "no such tag"),
        (RUN, job(), [running(0), running(1)], "running", ""),
        (RUN, job(), [ended(0), running(1)], "running", ""),
        (RUN, job(), [ended(0, 137), running(1)], "running", "exit code 137"),
        (RUN, job(), [ended(0, 1), ended(1)], "failed", "gp-worker-0 on a: Error, exit code 1"),
        (RUN, job(), [ended(0), ended(1)], "succeeded", ""),
        (RUN, job(DONE), [ended(0), ended(1)], "succeeded", ""),
        (RUN, job(FAILED), [], "failed", "DeadlineExceeded: Job was active longer"),
        (ALONE, job(), [ended(0, 139)], "failed", "exit code 139"),
        # the others of an MPI run wait for ever
        (MPI, job(), [ended(0), running(1)], "succeeded", ""),
        (MPI, job(), [ended(0, 1), running(1)], "failed", "exit code 1"),
        (MPI, job(), [running(0), ended(1, 127)], "running", "exit code 127"),
        (MPI, job(), [running(0), running(1), pod(0, "b", "launcher")], "starting", "gp-launcher-0"),
        (MPI, job(), [running(0), running(1), ended(0, 0, role="launcher")], "succeeded", ""),
    ],
)
def test_phases(run, main, pods, phase, why):
    seen = observation.look(run, main, pods)
    assert seen["phase"] == phase and why in seen["why"]


def test_the_clock_starts_when_all_processes_run():
    assert observation.look(RUN, job(), [running(0, 20), running(1, 90)])["startedAt"] == at(90)
    assert observation.look(RUN, job(), [running(0, 20), pod(1)])["startedAt"] is None
    assert observation.look(RUN, job(), [running(0, 20)])["startedAt"] is None
    seen = observation.look(RUN, job(), [ended(0, end=70), ended(1, end=95)])
    assert seen["endedAt"] == at(95)


def test_the_most_telling_reason_of_a_pod():
    def told(item: dict) -> tuple:
        only = observation.look(RUN, job(), [item])["pods"][0]
        return only["reason"], only["message"], only["exitCode"]

    assert told(ended(0, 137, said={"reason": "OOMKilled"})) == ("OOMKilled", "", 137)
    evicted = pod(0, phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    assert told(evicted)[:2] == ("Evicted", "The node was low on resource: memory.")
    refused = pod(0, phase="Failed", reason="UnexpectedAdmissionError", message="no healthy devices present")
    assert told(refused)[0] == "UnexpectedAdmissionError"
    preempted = ended(0, 143)
    preempted["status"]["conditions"].append(
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempting"}
    )
    assert told(preempted) == ("PreemptionByScheduler", "preempting", 143)
    assert len(told(waiting(0, "ErrImagePull", "x" * 9000))[1]) == observation.TEXT


@pytest.mark.parametrize(
    ("run", "pods", "heard", "seconds", "limit", "nodes"),
    [
        (RUN, [], None, 599, None, None),
        (RUN, [], None, 601, "queue", []),
        (RUN, [running(0), pod(1, "")], None, 601, "queue", []),
        # the start has a clock of its own: placed after 10 s
        (RUN, [running(0), waiting(1, "ContainerCreating")], None, 605, None, None),
        (RUN, [running(0), waiting(1, "ContainerCreating")], None, 611, "start", ["b"]),
        (RUN, [running(0), waiting(1, "ImagePullBackOff")], None, 300, None, None),
        (RUN, [running(0), waiting(1, "ImagePullBackOff")], None, 320, "start", ["b"]),
        (RUN, [waiting(0, "InvalidImageName"), pod(1, "")], None, 45, "start", ["a"]),
        (RUN, [running(0), running(1)], 3600, 3619, None, None),
        (RUN, [running(0), running(1)], 3600, 3621, "run", ["a", "b"]),
        (RUN, [running(0), running(1)], None, 319, None, None),
        (RUN, [running(0), running(1)], None, 321, "silence", []),
        (RUN, [running(0), running(1)], 700, 900, None, None),
        (RUN, [running(0), running(1)], 700, 1001, "silence", []),
        (RUN, [ended(0, 1), running(1)], 100, 150, None, None),
        (RUN, [ended(0, 1), running(1)], 100, 161, "survivors", ["a"]),
        (RUN, [ended(0), running(1)], 100, 161, None, None),
        (RUN, [ended(0, 1), ended(1, 1)], None, 99999, None, None),
        # a clock that is behind is no reason to stop anything
        (RUN, [running(0), running(1)], None, -500, None, None),
    ],
)
def test_limits(run, pods, heard, seconds, limit, nodes):
    seen = observation.look(run, job(), pods)
    seen["lastLogAt"] = at(heard) if heard else None
    late = observation.overdue(run, seen, after(seconds))
    if limit is None:
        assert late is None
    else:
        assert (late["limit"], late["nodes"]) == (limit, nodes) and late["why"]


def test_scheduler_says_why_it_waits():
    said = "0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) didn't match"
    seen = observation.look(ALONE, job(), [pod(0, "", said=said)])
    assert said in observation.overdue(ALONE, seen, after(601))["why"]


def test_silence_has_no_meaning_where_the_result_comes_last():
    run = {**RUN, "limits": {"start": 600, "run": 3600, "silence": 3600}}
    seen = observation.look(run, job(), [running(0), running(1)])
    assert observation.overdue(run, seen, after(3500)) is None


@pytest.mark.parametrize("seed", range(30))
def test_both_ends_of_a_log(seed):
    rnd = random.Random(seed)
    lines = [b"%06d %s\n" % (number, b"x" * rnd.randrange(80)) for number in range(rnd.randrange(2000))]
    whole, limit = b"".join(lines), rnd.choice([2000, 5000, 50_000, 10_000_000])
    pieces, rest = [], whole
    while rest:
        size = rnd.randrange(1, 3000)
        pieces.append(rest[:size])
        rest = rest[size:]
    text, total, left_out = both_ends(iter(pieces), limit)
    assert total == len(whole)
    if len(whole) <= limit:
        assert (text, left_out) == (whole, 0)
    if left_out:
        kept = [line for line in text.splitlines(keepends=True) if b"left out" not in line]
        assert set(kept) <= set(lines) and kept[0] == lines[0] and kept[-1] == lines[-1]
        assert sum(map(len, kept)) + left_out == total
        assert len(text) <= limit + 100 and b"%d bytes are left out" % left_out in text
    else:
        assert text == whole


def test_a_long_log_is_never_held_as_a_whole():
    limit = 3 * HEAD
    pieces = (b"y" * 65535 + b"\n" for _ in range(1000))
    text, total, left_out = both_ends(pieces, limit)
    assert total == 1000 * 65536 and len(text) <= limit + 100 and left_out > total - limit - 131072
