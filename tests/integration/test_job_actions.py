"""A job's next attempt on a real API server: one and only one, whoever dies, meddles or comes at the same time."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates import outofservice
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import affinity, intents, journal, kubernetes

from tests.integration import job_crds, modules
from tests.simfleet import EmbeddedCluster, workloads
from tests.simfleet.api import MERGE_PATCH, wait_until
from tests.simfleet.apiproxy import ApiProxy, Request

pytestmark = pytest.mark.cluster

SPACE = "ml"
FINALIZER = "goodput.fleet/recovery"
MARK, ATTEMPT, PREVIOUS = "goodput.fleet/recovering", "goodput.fleet/attempt", "goodput.fleet/previous-attempt"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(scope="module")
def cluster(show) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=8, profile="demo", say=show) as running:
        for name in (SPACE, "goodput-fleet"):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        job_crds.install(running.api)
        yield running


@pytest.fixture(scope="module")
def client(cluster: EmbeddedCluster) -> Iterator[Any]:
    made = connect({"kubeconfig": str(cluster.kubeconfig)})
    yield made
    made.close()


@pytest.fixture
def jobs(cluster: EmbeddedCluster, request) -> Iterator[Callable]:
    """jobs(completions=2, exit_code=1) -> the name of a Job of the test's own, gone with it."""
    made: list[str] = []

    def make(completions: int = 1, change: Callable[[dict], None] = lambda body: None, **behaviour: Any) -> str:
        name = f"j{abs(hash(request.node.name)) % 10**6}-{len(made)}"
        made.append(name)
        body = workloads.job(name, completions, **behaviour)
        body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
        change(body)
        cluster.api.create(workloads.path(SPACE, "jobs"), body)
        return name

    yield make
    for name in made:
        cluster.api.delete(workloads.path(SPACE, "jobs", name), propagationPolicy="Background")


def job(cluster: EmbeddedCluster, name: str) -> dict | None:
    return cluster.api.find(workloads.path(SPACE, "jobs", name))


def pods(cluster: EmbeddedCluster, name: str, uid: str = "") -> list[dict]:
    selector = f"batch.kubernetes.io/job-name={name}" + (f",batch.kubernetes.io/controller-uid={uid}" if uid else "")
    return cluster.api.list(f"/api/v1/namespaces/{SPACE}/pods", labelSelector=selector)


def failed(cluster: EmbeddedCluster, name: str) -> dict:
    def seen() -> dict | None:
        found = job(cluster, name)
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return found if any(each["type"] == "Failed" for each in conditions) else None

    return wait_until(seen, 30, f"Job {name} has failed")


def running(cluster: EmbeddedCluster, name: str, count: int) -> dict:
    def seen() -> dict | None:
        live = [pod for pod in pods(cluster, name) if pod["status"].get("phase") == "Running"]
        found = job(cluster, name)
        return found if len(live) == count and found["status"].get("ready") == count else None

    return wait_until(seen, 30, f"Job {name} runs")


def decision(raw: dict, action: str = "restart", exclude: tuple = (), **more: Any) -> tuple[dict, dict]:
    """A decision about the attempt that `raw` is, and that attempt."""
    metadata = raw["metadata"]
    number = metadata.get("annotations", {}).get(ATTEMPT, "1")
    key = f"{metadata['namespace']}/{metadata['name']}/{metadata['uid']}/{number}"
    about = {"apiVersion": raw.get("apiVersion", "batch/v1"), "kind": raw.get("kind", "Job")}
    about |= {part: metadata[part] for part in ("namespace", "name", "uid", "generation")}
    wanted = [{"node": node, "uid": "", "why": "xid 79", "until": "2099-01-01T00:00:00Z"} for node in exclude]
    spec = {"attempt": key, "action": action, "mode": "act", "exclude": wanted, "prefer": [], "resume": None}
    return {"spec": {**spec, **more}}, {"key": key, "job": about, "nodes": []}


def act(client, raw: dict, action: str = "restart", exclude: tuple = (), how: dict | None = None, **more: Any) -> dict:
    return kubernetes.apply(client, *decision(raw, action, exclude, **more), **{"wait": 30, **(how or {})})


def in_process(pipe, kubeconfig: str, given: tuple, how: dict) -> None:
    pipe.recv()  # until the test has set its trap
    client = connect({"kubeconfig": kubeconfig})
    pipe.send(kubernetes.apply(client, *given, **how))


SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload([__name__])


@contextlib.contextmanager
def started(kubeconfig: str, given: tuple, **how: Any) -> Iterator[tuple]:
    """A run in a process of its own, which begins when something is sent to it."""
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=in_process, args=(there, kubeconfig, given, {"wait": 30, **how}))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join()
        here.close()


def killed(cluster: EmbeddedCluster, given: tuple, number: int, before: bool) -> bool:
    """Run, and kill the run before or after its write of that number; False when it came to its end before."""
    met: list[Request] = []
    with ApiProxy(cluster.kubeconfig) as proxy, started(str(proxy.kubeconfig), given) as (process, pipe):

        def kill(request: Request) -> None:
            if proxy.writes == number and not met:
                met.append(request)
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                trap.drop = before  # what was to be written is not

        trap = proxy.rule("write", "", **{"before" if before else "after": kill})
        pipe.send("go")
        with contextlib.suppress(EOFError):
            assert pipe.recv()["status"] == "done"
        return bool(met)


def settled(cluster: EmbeddedCluster, name: str, old: dict, same: bool = False) -> None:
    """The job is there once, as attempt 2, with nothing of ours left on it but what says so."""
    found = job(cluster, name)
    metadata = found["metadata"]
    assert (metadata["uid"] == old["metadata"]["uid"]) is same
    assert metadata["annotations"][ATTEMPT] == "2" and metadata["annotations"][PREVIOUS] == old["metadata"]["uid"]
    assert MARK not in metadata["annotations"] and FINALIZER not in metadata.get("finalizers", [])
    assert not metadata.get("deletionTimestamp") and not found["spec"].get("suspend")
    requirement = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["gpu-0000"]}
    terms = found["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [requirement]}]
    state = intents.find(
        connect({"kubeconfig": str(cluster.kubeconfig)}),
        SPACE,
        metadata["annotations"]["goodput.fleet/recovery-intent"],
    )
    assert state["state"] == "done"
    if not same:
        assert pods(cluster, name, old["metadata"]["uid"]) == []


def sweep(cluster: EmbeddedCluster, client, names: list[str], ready: Callable[[str], dict], same: bool) -> None:
    """Kill before and after each write, a job for each; the run after it ends in the same state."""

    def one(index: int) -> None:
        old, (number, late) = ready(names[index]), divmod(index, 2)
        given = decision(old, exclude=("gpu-0000",))
        assert killed(cluster, given, number + 1, before=not late), f"there is no write {number + 1}"
        again = kubernetes.apply(client, *given, wait=30)
        assert again["status"] in ("done", "already"), again
        settled(cluster, names[index], old, same)
        assert kubernetes.apply(client, *given)["status"] == "already"

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(len(names))))


@pytest.mark.slow
def test_a_failed_job_is_made_anew_whenever_the_run_is_killed(cluster, client, jobs):
    """The question, the intent, mark, delete, note, let go, make, note, let go, note; more where others are quicker."""
    names = [jobs(exit_code=1) for _ in range(2 * 10)]
    sweep(cluster, client, names, lambda name: failed(cluster, name), same=False)


@pytest.mark.slow
def test_a_running_job_is_resumed_elsewhere_whenever_the_run_is_killed(cluster, client, jobs):
    """The question, the intent, suspend, resume, note."""
    names = [jobs() for _ in range(2 * 5)]
    sweep(cluster, client, names, lambda name: running(cluster, name, 1), same=True)


def test_old_pods_are_gone_before_new_ones_come(cluster, client, jobs):
    """A running gang that has to be made anew, since its variable changes."""

    def change(body: dict) -> None:
        body["metadata"]["annotations"] = {"goodput.fleet/recovery-resume-env": "RESUME_FROM", "team": "a"}
        body["metadata"]["labels"] = {"kai.scheduler/queue": "team-a"}
        term = {"matchExpressions": [{"key": "goodput.fleet/rack", "operator": "Exists"}]}
        body["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}

    name = jobs(3, change, gpus=8)
    old = running(cluster, name, 3)
    bad = pods(cluster, name)[0]["spec"]["nodeName"]
    left: list[int] = []
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule(
            "POST",
            r"/jobs\?fieldManager",
            before=lambda request: left.append(len(pods(cluster, name, old["metadata"]["uid"]))),
        )
        through = connect({"kubeconfig": str(proxy.kubeconfig)})
        done = act(through, old, exclude=(bad,), resume={"path": "/ckpt/step-200", "step": 200})
        assert proxy.count("DELETE", "/pods") == 0  # a gang is never ended pod by pod
    assert (done["status"], done["path"], done["changed"], left) == ("done", "recreate", True, [0])
    now = running(cluster, name, 3)
    nodes = {pod["spec"]["nodeName"] for pod in pods(cluster, name)}
    assert bad not in nodes and len(nodes) == 3
    template = now["spec"]["template"]["spec"]
    assert template["containers"][0]["env"] == [{"name": "RESUME_FROM", "value": "/ckpt/step-200"}]
    expressions = template["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"]
    assert [each["operator"] for each in expressions] == ["Exists", "NotIn"]
    assert (
        now["metadata"]["labels"]["kai.scheduler/queue"] == "team-a" and now["metadata"]["annotations"]["team"] == "a"
    )
    seen = kubernetes.verify(client, done["intent"])
    assert seen["running"] and seen["onExcluded"] == [] and seen["pods"]["running"] == 3
    # what is excluded, and for how long, is the decision's; it is told to people
    notes = json.loads(now["metadata"]["annotations"][affinity.EXCLUDED])
    assert [each["node"] for each in notes] == [bad]
    again = act(client, now, "retry", exclude=(bad,))
    assert (again["status"], again["path"], again["excluded"]) == ("done", "in-place", [bad])
    assert job(cluster, name)["metadata"]["annotations"][ATTEMPT] == "3"


def test_of_two_runs_one_acts_and_the_other_says_so(cluster, client, jobs):
    name = jobs(exit_code=1)
    given = decision(failed(cluster, name), exclude=("gpu-0000",))
    with started(str(cluster.kubeconfig), given) as first, started(str(cluster.kubeconfig), given) as second:
        for _process, pipe in (first, second):
            pipe.send("go")
        results = [pipe.recv() for _process, pipe in (first, second)]
    assert sorted(each["status"] for each in results) == ["already", "done"]
    assert job(cluster, name)["metadata"]["annotations"][ATTEMPT] == "2"


def test_a_run_on_another_host_is_taken_over_when_it_has_been_silent(cluster, client, jobs):
    name = jobs(exit_code=1)
    given = decision(failed(cluster, name), exclude=("gpu-0000",))
    assert killed(cluster, given, 2, before=False)
    intent = intents.find(client, SPACE, intents.name_of(given[0]["spec"]["attempt"]))
    path = intents.path_of(SPACE, intent["name"])
    content = json.loads(cluster.api.get(path)["data"]["intent"])
    content["holder"] = "another-host/1/x"
    cluster.api.patch(path, {"data": {"intent": json.dumps(content)}}, MERGE_PATCH)
    early = kubernetes.apply(client, *given)
    assert early["status"] == "already" and "another-host" in early["detail"]
    found = [each for each in intents.unfinished(client, [SPACE]) if each["name"] == intent["name"]]
    time.sleep(1.1)
    assert kubernetes.proceed(client, found[0], lease=0.5, wait=30)["status"] == "done"
    assert job(cluster, name)["metadata"]["annotations"][ATTEMPT] == "2"


def meddle(cluster: EmbeddedCluster, name: str, what: str) -> None:
    path = workloads.path(SPACE, "jobs", name)
    if what == "delete":
        cluster.api.delete(path, propagationPolicy="Background")
    elif what == "make anew":
        cluster.api.delete(path, propagationPolicy="Background")
        wait_until(lambda: job(cluster, name) is None, 10, "it is gone")
        cluster.api.create(workloads.path(SPACE, "jobs"), workloads.job(name, 1))
    else:
        change = {
            "suspend": {"spec": {"suspend": True}},
            "resume": {"spec": {"suspend": False}},
            "change": {"spec": {"activeDeadlineSeconds": 7200}},
            "opt out": {"metadata": {"annotations": {"goodput.fleet/recovery": "off"}}},
        }[what]
        cluster.api.patch(path, change, MERGE_PATCH)


@pytest.mark.parametrize("what", ["delete", "suspend", "change", "opt out", "make anew"])
def test_who_meddles_before_the_first_step_wins(cluster, client, jobs, what):
    name = jobs()
    old = running(cluster, name, 1)
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("POST", "/configmaps", after=lambda request: meddle(cluster, name, what), times=1)
        answer = act(connect({"kubeconfig": str(proxy.kubeconfig)}), old)
    assert answer["status"] == "refused", answer
    assert act(client, old)["status"] == "refused"
    theirs(cluster, name, what)


def theirs(cluster: EmbeddedCluster, name: str, what: str) -> None:
    def ours_is_off() -> bool:
        found = job(cluster, name)
        if found is None:
            return what == "delete"
        metadata = found["metadata"]
        return MARK not in metadata.get("annotations", {}) and FINALIZER not in metadata.get("finalizers", [])

    wait_until(ours_is_off, 15, "nothing of ours is on the job")
    found = job(cluster, name)
    if what == "delete":
        wait_until(lambda: job(cluster, name) is None, 10, "it is gone for good")
        return
    assert ATTEMPT not in found["metadata"].get("annotations", {})
    assert found["spec"].get("suspend", False) is (what == "suspend")


@pytest.mark.parametrize("what", ["delete", "suspend", "change", "opt out"])
def test_who_meddles_after_a_run_was_killed_wins(cluster, client, jobs, what):
    """The job is marked (write 3), and not deleted yet."""
    name = jobs(change=lambda body: body["metadata"].update(labels={"kueue.x-k8s.io/queue-name": "q"}))
    given = decision(running(cluster, name, 1))
    assert killed(cluster, given, 4, before=True)
    assert FINALIZER in job(cluster, name)["metadata"]["finalizers"]
    meddle(cluster, name, what)
    answer = kubernetes.apply(client, *given, wait=20)
    assert answer["status"] == "refused", answer
    theirs(cluster, name, what)


def test_a_job_that_is_resumed_by_somebody_while_we_wait_stays_so(cluster, client, jobs):
    name = jobs()
    given = decision(running(cluster, name, 1))
    assert killed(cluster, given, 3, before=False)
    assert job(cluster, name)["spec"]["suspend"] is True
    meddle(cluster, name, "resume")
    assert kubernetes.apply(client, *given)["detail"] == "somebody resumed the job"
    theirs(cluster, name, "resume")


def test_a_job_that_fails_while_it_is_to_be_suspended_is_made_anew(cluster, jobs):
    name = jobs(exit_code=1, after=2)
    old = running(cluster, name, 1)
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("PUT", "/jobs/", before=lambda request: failed(cluster, name), times=1)
        answer = act(connect({"kubeconfig": str(proxy.kubeconfig)}), old, exclude=("gpu-0000",))
    assert (answer["status"], answer["path"]) == ("done", "recreate"), answer
    settled(cluster, name, old)


def test_a_job_that_succeeds_meanwhile_is_left_alone(cluster, jobs):
    name = jobs(exit_code=0, after=2)
    old = running(cluster, name, 1)

    def over(request: Request) -> None:
        wait_until(lambda: "completionTime" in job(cluster, name)["status"], 20, "it is complete")

    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("PUT", "/jobs/", before=over, times=1)
        answer = act(connect({"kubeconfig": str(proxy.kubeconfig)}), old)
    assert answer["status"] == "refused" and "succeeded" in answer["detail"], answer
    assert job(cluster, name)["metadata"]["uid"] == old["metadata"]["uid"]


def test_runs_that_take_each_other_for_dead_still_make_one(cluster, client, jobs):
    name = jobs(exit_code=1)
    old = failed(cluster, name)
    given = decision(old, exclude=("gpu-0000",))
    created: list[str] = []
    with ApiProxy(cluster.kubeconfig) as proxy, contextlib.ExitStack() as stack:
        runs = [stack.enter_context(started(str(proxy.kubeconfig), given, lease=-1)) for _ in range(3)]

        def count(request: Request) -> None:
            if request.status == 201:
                created.append(request.path)

        proxy.rule("POST", r"/jobs\?fieldManager", after=count)
        for _process, pipe in runs:
            pipe.send("go")
        assert "done" in [pipe.recv()["status"] for _process, pipe in runs]
    settled(cluster, name, old)
    assert len(created) == 1


def test_an_attempt_that_is_deleted_right_after_it_was_made_stays_deleted(cluster, client, jobs):
    name = jobs(exit_code=1)
    given = decision(failed(cluster, name))
    assert killed(cluster, given, 7, before=False)
    meddle(cluster, name, "delete")
    assert kubernetes.apply(client, *given)["status"] == "done"
    wait_until(lambda: job(cluster, name) is None, 10, "it is gone for good")


def test_lost_answers_and_bad_days_of_the_server_lose_and_double_nothing(cluster, jobs):
    name = jobs(exit_code=1)
    old = failed(cluster, name)
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("POST", r"/configmaps", lose_answer=True, times=1)
        proxy.rule("PATCH", r"/jobs/", lose_answer=True, times=2)
        proxy.rule("DELETE", r"/jobs/", lose_answer=True, times=1)
        proxy.rule("POST", r"/jobs\?fieldManager", lose_answer=True, times=1)
        proxy.rule("PUT", r"/configmaps/", lose_answer=True, times=3)
        answer = act(connect({"kubeconfig": str(proxy.kubeconfig)}), old, exclude=("gpu-0000",))
    assert answer["status"] == "done", answer
    settled(cluster, name, old)


def test_what_the_server_would_not_take_is_found_before_anything_is_deleted(cluster, client, jobs):
    name = jobs(exit_code=1)
    old = failed(cluster, name)
    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("POST", "dryRun", status=422, message="spec.template: an image that the policy forbids")
        through = connect({"kubeconfig": str(proxy.kubeconfig)})
        answer = act(through, old)
        assert proxy.writes == 1
    assert answer["status"] == "refused" and "policy forbids" in answer["detail"]
    planned = act(client, old, how={"check_mode": True})
    advised = act(client, old, mode="advise")
    assert {planned["status"], advised["status"]} == {"planned"} and not planned["changed"]
    assert act(client, old, "giveBack")["changed"] is False
    assert job(cluster, name)["metadata"]["uid"] == old["metadata"]["uid"]
    assert list(intents.unfinished(client, [SPACE])) == []


def test_jobs_that_are_somebody_elses_are_refused_with_the_reason(cluster, client, jobs):
    nightly = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": workloads.job("x", 1)["spec"]}}
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": nightly}
    made = cluster.api.create(f"/apis/batch/v1/namespaces/{SPACE}/cronjobs", body)
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": made["metadata"]["uid"]}
    cron["controller"] = True
    owned = jobs(change=lambda body: body["metadata"].update(ownerReferences=[cron]), exit_code=1)
    held = jobs(change=lambda body: body["spec"].update(suspend=True))
    over = jobs(exit_code=0)
    wait_until(lambda: (job(cluster, over) or {}).get("status", {}).get("succeeded"), 20, "it has succeeded")
    wait_until(lambda: "completionTime" in job(cluster, over)["status"], 20, "it is complete")
    gone = {"metadata": {"namespace": SPACE, "name": "none", "uid": "x", "generation": 1}}
    pinned = jobs(
        change=lambda body: body["spec"]["template"]["spec"].update(nodeSelector={affinity.HOSTNAME: "gpu-1"})
    )
    for name, words in ((owned, "CronJob nightly"), (held, "suspended"), (over, "succeeded")):
        answer = act(client, job(cluster, name))
        assert answer["status"] == "refused" and words in answer["detail"], answer
    assert "not there" in act(client, gone)["detail"]
    assert "insists on node gpu-1" in act(client, job(cluster, pinned), exclude=("gpu-1",))["detail"]


def test_an_intent_or_a_mark_that_somebody_spoilt_is_told(cluster, client, jobs):
    name = jobs()
    old = running(cluster, name, 1)
    given = decision(old)
    path = intents.path_of(SPACE, intents.name_of(given[0]["spec"]["attempt"]))
    cluster.api.create(
        path.rpartition("/")[0], {"metadata": {"name": path.rpartition("/")[2]}, "data": {"intent": "{"}}
    )
    answer = kubernetes.apply(client, *given)
    assert answer["status"] == "refused" and answer["code"] == "intent-unreadable"
    cluster.api.delete(path)
    notes = {"annotations": {MARK: path.rpartition("/")[2]}, "finalizers": [FINALIZER]}
    cluster.api.patch(workloads.path(SPACE, "jobs", name), {"metadata": notes}, MERGE_PATCH)
    raw = {"apiVersion": "batch/v1", "kind": "Job", **job(cluster, name)}
    assert kubernetes.clean(client, raw) is True
    raw = {"apiVersion": "batch/v1", "kind": "Job", **job(cluster, name)}
    assert kubernetes.clean(client, raw) is False and "finalizers" not in raw["metadata"]


@pytest.mark.slow
def test_a_lost_node_is_waited_for_until_it_is_proven_off(cluster, client, jobs):
    """Its pod does not end: nobody is there to end it."""
    deaf = {"script": "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n"}
    name = jobs(change=lambda body: body["spec"]["template"]["spec"].update(terminationGracePeriodSeconds=3600), **deaf)
    old = running(cluster, name, 1)
    lost = pods(cluster, name)[0]["spec"]["nodeName"]
    cluster.fleet.set_not_ready(lost)
    try:
        how = {"wait": 2, "resume_env": "RESUME"}
        answer = act(client, old, exclude=(lost,), how=how, resume={"path": "/c"})
        assert answer["status"] == "waiting" and {pod["node"] for pod in answer["waitingFor"]} == {lost}, answer
        now = datetime.now(UTC)
        proof = {"source": "bmc", "at": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "off": True}
        for wrong in ({**proof, "off": "yes"}, {**proof, "at": "2026-01-01T00:00:00Z"}, {**proof, "uid": "x"}):
            assert outofservice.mark(client, lost, wrong)["status"] == "refused"
        well = next(node for node in cluster.nodes if node != lost)
        assert outofservice.mark(client, well, proof)["reason"] == "it is Ready"
        assert outofservice.mark(client, lost, proof)["status"] == "held"
        assert outofservice.mark(client, lost, proof)["status"] == "unchanged"
        done = act(client, old, exclude=(lost,), how={"wait": 45})  # Kubernetes looks every 20 s
        assert done["status"] == "done", done
        running(cluster, name, 1)
        assert kubernetes.verify(client, done["intent"])["onExcluded"] == []
        cluster.fleet.set_ready(lost)
        wait_until(lambda: lost in cluster.fleet.ready(), 20, "the node is back")
        nodes = {lost: cluster.fleet.get(lost)}
        assert "reboot it" in outofservice.clear(client, nodes)[0]["reason"]
    finally:
        for pod in pods(cluster, name):
            cluster.api.delete(f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}", gracePeriodSeconds=0)
        cluster.fleet.set_ready(lost)
        cluster.fleet.reboot(lost)
    wait_until(lambda: lost in cluster.fleet.ready(), 20, "the node has booted")
    results = outofservice.clear(client, {node: cluster.fleet.get(node) for node in cluster.nodes})
    assert [(each["node"], each["status"]) for each in results] == [(lost, "released")]
    assert not any("out-of-service" in taint["key"] for taint in cluster.fleet.get(lost)["spec"].get("taints", []))


def test_kueue_admits_the_next_attempt(cluster, client, jobs):
    def change(body: dict) -> None:
        body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team-a"}
        template = body["spec"]["template"]
        template["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = "rack"
        template["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = "job-x-1"
        template["spec"]["nodeSelector"] = {"goodput.fleet/rack": "gpu-rack-00", "kubernetes.io/os": "linux"}

    name = jobs(change=change, exit_code=1)
    old = failed(cluster, name)
    template = {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}
    labels = {"kueue.x-k8s.io/job-uid": old["metadata"]["uid"]}
    cluster.api.create(
        job_crds.path("Workload", SPACE),
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": f"job-{name}", "labels": labels},
            "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
        },
    )
    done = act(client, old, "requeue")
    assert done["status"] == "done", done
    found = job(cluster, name)
    assert found["spec"]["suspend"] is True and found["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team-a"}
    assert found["spec"]["template"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    notes = found["spec"]["template"]["metadata"]["annotations"]
    assert "kueue.x-k8s.io/podset-required-topology" in notes and "kueue.x-k8s.io/workload" not in notes
    assert "has not admitted" in kubernetes.verify(client, done["intent"])["waiting"]


def test_the_journal_takes_writers_at_once_and_keeps_a_bound(cluster, client):
    now = datetime.now(UTC)

    def within(entries: list[dict], wanted: list[dict]) -> tuple[list[dict], list[dict]]:
        room = max(0, 5 - len(entries))
        return wanted[:room], wanted[room:]

    def write(number: int) -> journal.Recorded:
        entry = {"key": f"ml/j{number}/u/1", "job": f"ml/j{number}", "class": "hardware", "outcome": ""}
        return journal.record(client, [entry], now, admit=within)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(write, range(8)))
    entries = journal.read(client).entries
    assert len(entries) == 5 and sum(len(each.admitted) for each in found) == 5
    journal.record(client, [{"key": entries[0]["key"], "outcome": "running"}], now)
    after = journal.read(client).entries
    assert after[0] == {**entries[0], "outcome": "running"} and len(after) == 5


def test_the_account_of_the_rbac_folder_is_enough(cluster, jobs):
    for item in yaml.safe_load((modules.ROOT / "gitops/rbac/recover_jobs.yaml").read_text())["items"]:
        metadata = item["metadata"]
        group = "api/v1" if item["apiVersion"] == "v1" else f"apis/{item['apiVersion']}"
        space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        cluster.api.apply(f"/{group}{space}/{item['kind'].lower()}s/{metadata['name']}", item)
    path = "/api/v1/namespaces/goodput-fleet/serviceaccounts/goodput-fleet-recover/token"
    token = cluster.api.create(path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
    account = connect({"kubeconfig": str(cluster.access.with_token("recover", token))})
    name = jobs(exit_code=1)
    old = failed(cluster, name)
    assert act(account, old, how={"check_mode": True})["status"] == "planned"
    refused = act(account, old)
    assert refused["status"] == "failed" and "forbidden" in refused["detail"]
    bind(cluster, "goodput-fleet-recover-act", SPACE)
    assert act(account, old, exclude=("gpu-0000",))["status"] == "done"
    settled(cluster, name, old)
    up = jobs()
    assert act(account, running(cluster, up, 1), exclude=("gpu-0000",))["path"] == "in-place"
    assert list(intents.unfinished(account, [SPACE])) == [] and intents.prune(account, [SPACE]) == []
    journal.record(account, [{"key": "ml/x/u/1", "outcome": ""}], datetime.now(UTC))
    journal.record(account, [{"key": "ml/x/u/1", "outcome": "running"}], datetime.now(UTC))
    assert outofservice.mark(account, "gpu-0001", {"source": "bmc", "at": "x", "off": True})["status"] == "refused"


def bind(cluster: EmbeddedCluster, role: str, namespace: str) -> None:
    subject = {"kind": "ServiceAccount", "name": "goodput-fleet-recover", "namespace": "goodput-fleet"}
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    cluster.api.apply(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{role}", body)


@pytest.mark.parametrize("kind", ["JobSet", "TrainJob", "PyTorchJob", "MPIJob"])
def test_jobs_of_operators_are_made_anew(cluster, client, kind):
    """Their controllers are not there: what is written is what counts. (Garbage collection learns of kinds late.)"""
    name = f"op-{kind.lower()}"
    old = job_crds.failed(cluster.api, kind, SPACE, name, annotations={"team": "a"}, labels={"runai/queue": "q"})
    if kind == "TrainJob":
        runtime = {"spec": {"template": {"spec": {"replicatedJobs": job_crds.SPECS["JobSet"]["replicatedJobs"]}}}}
        body = {"apiVersion": old["apiVersion"], "kind": "ClusterTrainingRuntime", **runtime}
        cluster.api.create(job_crds.path("ClusterTrainingRuntime"), {**body, "metadata": {"name": "torch-distributed"}})
    done = act(client, old, exclude=("gpu-0003",), resume={"path": "/c"}, how={"resume_env": "RESUME", "wait": 90})
    assert done["status"] == "done", done
    new = cluster.api.get(job_crds.path(kind, SPACE, name))
    assert new["metadata"]["uid"] != old["metadata"]["uid"] and "status" not in new
    assert new["metadata"]["annotations"][ATTEMPT] == "2" and new["metadata"]["annotations"]["team"] == "a"
    assert new["metadata"]["labels"] == {"runai/queue": "q"}
    text = json.dumps(new["spec"])
    count = {"JobSet": 2, "TrainJob": 2, "PyTorchJob": 2, "MPIJob": 2}[kind]
    assert text.count('"values": ["gpu-0003"]') == count
    assert text.count('{"name": "RESUME", "value": "/c"}') == (1 if kind == "TrainJob" else 2)
