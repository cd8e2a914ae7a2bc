"""When is a component healthy? What operators were fooled by, one case each."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.health.evaluate import counts, describe, evaluate
from ansible_collections.goodput.fleet.plugins.module_utils.health.share import NOT_READ

from tests.unit.health.things import (
    component,
    crd,
    daemonset,
    deployment,
    job,
    meta,
    objects,
    pod,
    replica_set,
)

DENIED = {"error": {"code": "denied", "message": "forbidden: cannot list pods in namespace gpu-operator"}}


def judge(world: dict, **fields) -> tuple[str, list[str]]:
    """Status and codes of the one component in its world."""
    result = evaluate([component(**fields)], world)[0]
    return result["status"], [reason["code"] for reason in result["reasons"]]


@pytest.mark.parametrize(
    ("what", "world"),
    [
        ("a finished rollout", objects(deployments=[deployment()], daemonsets=[daemonset()])),
        ("a completed job", objects(deployments=[deployment()], jobs=[job(condition="Complete")])),
        ("a pod that ended well", objects(deployments=[deployment()], pods=[pod(phase="Succeeded", ready=False)])),
        (
            "a pod on its way out",
            objects(deployments=[deployment()], pods=[pod(phase="Failed", deletionTimestamp="2026-01-01T00:00:00Z")]),
        ),
        (
            "an evicted pod whose replacement runs",
            objects(
                deployments=[deployment()],
                replicasets=[replica_set("operator-1", "operator", 1)],
                pods=[pod(phase="Failed", owner=("ReplicaSet", "operator-1"))],
            ),
        ),
        (
            "a crashing pod of a replaced revision",
            objects(
                deployments=[deployment()],
                replicasets=[replica_set("operator-1", "operator", 9), replica_set("operator-2", "operator", 10)],
                pods=[pod(waiting="CrashLoopBackOff", owner=("ReplicaSet", "operator-1"))],
            ),
        ),
        (
            "an attempt that a job retried",
            objects(
                deployments=[deployment()],
                jobs=[job(condition="Complete")],
                pods=[pod(phase="Failed", owner=("Job", "migrate"))],
            ),
        ),
        (
            "a cron job that failed once and then ran well",
            objects(
                deployments=[deployment()],
                jobs=[
                    job("backup-1", "Failed", ("CronJob", "backup"), None),
                    job("backup-2", "Complete", ("CronJob", "backup"), None, "2026-01-02T00:00:00Z"),
                ],
                pods=[pod(phase="Failed", owner=("Job", "backup-1"))],
            ),
        ),
        (
            "a container that is just starting",
            objects(deployments=[deployment()], pods=[pod(waiting="ContainerCreating", ready=True)]),
        ),
    ],
)
def test_healthy(what, world):
    assert judge(world) == ("healthy", []), what


@pytest.mark.parametrize(
    ("what", "world", "codes"),
    [
        (
            "running, but waiting in CrashLoopBackOff",
            objects(deployments=[deployment()], pods=[pod(waiting="CrashLoopBackOff")]),
            ["container-waiting"],
        ),
        (
            "an init container that cannot pull its image",
            objects(deployments=[deployment()], pods=[pod(phase="Pending", init_waiting="ImagePullBackOff")]),
            ["container-waiting"],
        ),
        ("1 of 100 ready", objects(daemonsets=[daemonset(numberReady=1, numberAvailable=1)]), ["rollout-incomplete"]),
        (
            "available fields left out by the API",
            objects(
                deployments=[
                    {
                        "metadata": meta("operator", release="gpu-operator"),
                        "spec": {"replicas": 1},
                        "status": {"observedGeneration": 2},
                    }
                ]
            ),
            ["rollout-incomplete"],
        ),
        (
            "no status at all",
            objects(daemonsets=[{"metadata": meta("driver", release="gpu-operator"), "spec": {}}]),
            ["stale-generation", "zero-desired"],
        ),
        (
            "the controller has not seen the change",
            objects(deployments=[deployment(observedGeneration=1)]),
            ["stale-generation"],
        ),
        (
            "old replicas still there",
            objects(deployments=[deployment(replicas=3) | {"status": {**deployment()["status"], "replicas": 4}}]),
            ["rollout-incomplete"],
        ),
        ("no node wants it", objects(daemonsets=[daemonset(desired=0)]), ["zero-desired"]),
        ("scaled to zero", objects(deployments=[deployment(replicas=0)]), ["zero-desired"]),
        ("a failed job", objects(jobs=[job(condition="Failed")]), ["job-failed"]),
        ("a job that still runs", objects(jobs=[job()]), ["job-incomplete"]),
        ("a suspended job", objects(jobs=[job(suspend=True)]), ["zero-desired"]),
        (
            "a pending pod",
            objects(deployments=[deployment()], pods=[pod(phase="Pending", ready=False)]),
            ["pod-pending"],
        ),
        ("a pod of a lost node", objects(deployments=[deployment()], pods=[pod(phase="Unknown")]), ["pod-unknown"]),
        ("a failed bare pod", objects(deployments=[deployment()], pods=[pod(phase="Failed")]), ["pod-failed"]),
        (
            "an operand's pod that is not ready",
            objects(deployments=[deployment()], pods=[pod(owner=("DaemonSet", "made-by-the-operator"), ready=False)]),
            ["pod-not-ready"],
        ),
        (
            "a pod without a status",
            objects(deployments=[deployment()], pods=[{"metadata": meta("p")}]),
            ["pod-unknown"],
        ),
        (
            "a failed pod while the rollout is not complete",
            objects(
                deployments=[deployment(readyReplicas=2)],
                replicasets=[replica_set("operator-1", "operator", 1)],
                pods=[pod(phase="Failed", owner=("ReplicaSet", "operator-1"))],
            ),
            ["rollout-incomplete", "pod-failed"],
        ),
        (
            "a failed run of a cron job, not made good since",
            objects(
                deployments=[deployment()],
                jobs=[
                    job("b-1", "Complete", ("CronJob", "b"), None),
                    job("b-2", "Failed", ("CronJob", "b"), None, "2026-02-01T00:00:00Z"),
                ],
                pods=[pod(phase="Failed", owner=("Job", "b-2"))],
            ),
            ["pod-failed"],
        ),
        (
            "a workload on its way out",
            objects(
                deployments=[
                    deployment()
                    | {"metadata": meta("operator", release="gpu-operator", deletionTimestamp="2026-01-01T00:00:00Z")}
                ]
            ),
            ["terminating"],
        ),
        ("a namespace on its way out", objects(deployments=[deployment()], phase="Terminating"), ["terminating"]),
        ("nothing there", objects(), ["absent"]),
    ],
)
def test_unhealthy(what, world, codes):
    assert judge(world) == ("unhealthy", codes), what


def test_a_namespace_that_is_not_there_says_it_once():
    world = {"namespaces": {"gpu-operator": {"object": None}}, "lists": {}, "crds": {"items": []}}
    health = {"workloads": [{"kind": "Deployment", "name": "a"}, {"kind": "DaemonSet", "name": "b"}]}
    assert judge(world, health=health) == ("unhealthy", ["absent"])


def test_optional_allows_absence_and_zero_but_not_a_broken_rollout():
    health = {"workloads": [{"kind": "DaemonSet", "name": "driver", "optional": True}]}
    assert judge(objects(), health=health) == ("healthy", [])
    assert judge(objects(daemonsets=[daemonset(desired=0)]), health=health) == ("healthy", [])
    broken = objects(daemonsets=[daemonset(desired=2, numberReady=1)])
    assert judge(broken, health=health) == ("unhealthy", ["rollout-incomplete"])


def test_declared_workloads_must_all_be_there():
    health = {"workloads": [{"kind": "Deployment", "name": "operator"}, {"kind": "StatefulSet", "name": "db"}]}
    result = evaluate([component(health=health)], objects(deployments=[deployment()]))[0]
    assert [(r["code"], r["object"]) for r in result["reasons"]] == [("absent", "StatefulSet/gpu-operator/db")]


def test_what_the_chart_renders_must_be_there_when_nothing_is_declared():
    rendered = {
        "workloads": [
            {"kind": "Deployment", "namespace": "gpu-operator", "name": "webhook"},
            {"kind": "Job", "namespace": "gpu-operator", "name": "hook"},
        ],
        "crds": [{"name": "clusterpolicies.nvidia.com"}],
    }
    result = evaluate([component(rendered=rendered)], objects(deployments=[deployment()]))[0]
    assert {(r["code"], r["object"]) for r in result["reasons"]} == {
        ("absent", "Deployment/gpu-operator/webhook"),
        ("crd-absent", "CustomResourceDefinition/clusterpolicies.nvidia.com"),
    }


def test_statefulset_with_a_partition_keeps_old_pods_on_purpose():
    status = {"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 1}
    item = {
        "metadata": meta("db", release="gpu-operator"),
        "status": status,
        "spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
    }
    assert judge(objects(statefulsets=[item])) == ("healthy", [])
    item["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = 1
    assert judge(objects(statefulsets=[item])) == ("unhealthy", ["rollout-incomplete"])


def test_an_on_delete_driver_that_is_not_renewed_says_why():
    item = daemonset(desired=4, updatedNumberScheduled=1)
    item["spec"] = {"updateStrategy": {"type": "OnDelete"}}
    reason = evaluate([component()], objects(daemonsets=[item]))[0]["reasons"][0]
    assert reason["message"].startswith("1 of 4 updated") and "OnDelete" in reason["message"]


def test_what_the_controller_complains_of_is_told():
    item = deployment(
        readyReplicas=0,
        availableReplicas=0,
        conditions=[
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"}
        ],
    )
    reason = evaluate([component()], objects(deployments=[item]))[0]["reasons"][0]
    assert "exceeded quota: gpus" in reason["message"]


@pytest.mark.parametrize("state", ["False", None])
def test_crd_that_is_not_established(state):
    world = objects(deployments=[deployment()], crds=[crd(established=state)])
    assert judge(world, crds=["clusterpolicies.nvidia.com"]) == ("unhealthy", ["crd-not-established"])


def test_a_component_of_crds_alone_needs_no_workload():
    world = objects(crds=[crd()])
    assert judge(world, crds=["clusterpolicies.nvidia.com"]) == ("healthy", [])
    assert judge(objects(), crds=["clusterpolicies.nvidia.com"]) == ("unhealthy", ["crd-absent"])


def test_everything_that_is_violated_is_told_at_once():
    world = objects(
        deployments=[deployment(observedGeneration=1)],
        daemonsets=[daemonset(numberReady=1)],
        jobs=[job(condition="Failed")],
        pods=[pod("a", init_waiting="CreateContainerConfigError"), pod("b", phase="Pending", ready=False)],
    )
    status, codes = judge(world, crds=["clusterpolicies.nvidia.com"])
    assert status == "unhealthy"
    assert sorted(codes) == [
        "container-waiting",
        "crd-absent",
        "job-failed",
        "pod-pending",
        "rollout-incomplete",
        "stale-generation",
    ]


@pytest.mark.parametrize("kind", ["deployments", "daemonsets", "pods"])
def test_a_list_that_is_denied_is_unknown_not_healthy(kind):
    world = objects(**{"deployments": [deployment()], "daemonsets": [daemonset()], kind: DENIED})
    status, codes = judge(world)
    assert status == "unknown" and codes == ["denied"]


def test_a_violation_outweighs_what_is_unknown():
    world = objects(deployments=[deployment(readyReplicas=0)], pods=DENIED)
    status, codes = judge(world)
    assert status == "unhealthy" and set(codes) == {"rollout-incomplete", "denied"}


def test_denied_replica_sets_leave_open_which_pods_count():
    world = objects(
        deployments=[deployment()],
        replicasets=DENIED,
        pods=[pod(waiting="CrashLoopBackOff", owner=("ReplicaSet", "operator-5d4f"))],
    )
    status, codes = judge(world)
    assert status == "unhealthy" and set(codes) == {"container-waiting", "denied"}


@pytest.mark.parametrize("part", ["namespaces", "lists", "crds"])
def test_what_was_not_read_at_all_is_unknown(part):
    world = objects(deployments=[deployment()], crds=[crd()])
    del world[part]
    status, _codes = judge(world, crds=["clusterpolicies.nvidia.com"])
    assert status == "unknown"
    assert NOT_READ["error"]["code"] == "unavailable"


def test_in_a_shared_namespace_each_component_answers_for_its_own():
    components = [component("gpu-operator", "shared"), component("network-operator", "shared")]
    mine, other = deployment("mine"), deployment("other", release="network-operator", readyReplicas=0)
    stray = pod("stray", waiting="CrashLoopBackOff", namespace="shared")
    world = objects("shared", deployments=[mine, other], pods=[stray])
    assert [result["status"] for result in evaluate(components, world)] == ["healthy", "unhealthy"]


def test_a_selector_narrows_pods_and_workloads():
    labels = {"app": "operator"}
    mine = deployment("mine", release="other-release")
    mine["metadata"]["labels"] = labels
    world = objects(
        deployments=[mine, deployment("neighbour", readyReplicas=0)], pods=[pod("theirs", waiting="ErrImagePull")]
    )
    assert judge(world, health={"selector": labels}) == ("healthy", [])


def test_pods_that_share_a_fault_become_one_reason_with_their_nodes():
    crashing = [
        pod(f"driver-{n}", waiting="CrashLoopBackOff", owner=("DaemonSet", "driver"), node=f"gpu-{n}")
        for n in range(99)
    ]
    world = objects(daemonsets=[daemonset(numberReady=1, numberAvailable=1)], pods=crashing)
    reasons = evaluate([component()], world)[0]["reasons"]
    assert [reason["code"] for reason in reasons] == ["rollout-incomplete", "container-waiting"]
    assert reasons[1]["pods"] == 99 and len(reasons[1]["nodes"]) == 99
    assert reasons[1]["message"].startswith("container main waits in CrashLoopBackOff on 99 pods")
    assert "--previous" in reasons[1]["next"]


def test_names_narrow_the_answer_not_who_shares_a_namespace():
    components = [component("a", "shared"), component("b", "shared")]
    world = objects("shared", deployments=[deployment(release="a")], pods=[pod("stray", waiting="ErrImagePull")])
    assert [(r["name"], r["status"]) for r in evaluate(components, world, ["a"])] == [("a", "healthy")]


def test_summary_for_people():
    results = evaluate([component(), component("other")], {**objects(deployments=[deployment()])})
    assert counts(results) == {"total": 2, "healthy": 1, "unhealthy": 0, "unknown": 1}
    text = describe(results)
    assert text.splitlines()[0] == "1 of 2 components are not healthy:" and "other [unknown]: Namespace/other" in text
    assert describe(results[:1]) == ""


def test_a_declared_workload_may_be_in_another_namespace():
    health = {"workloads": [{"kind": "DaemonSet", "name": "driver", "namespace": "kube-system"}]}
    world = objects()
    world["lists"]["kube-system"] = {
        **objects()["lists"]["gpu-operator"],
        "DaemonSet": {"items": [daemonset(numberReady=1)]},
        "Pod": {"items": [pod("stray", waiting="ErrImagePull")]},
    }
    assert judge(world, health=health) == ("unhealthy", ["rollout-incomplete"])


@pytest.mark.parametrize(
    ("optional", "suspend", "expected"),
    [(False, True, "unhealthy"), (True, True, "healthy"), (False, False, "healthy")],
)
def test_a_suspended_cron_job_does_nothing(optional, suspend, expected):
    health = {"workloads": [{"kind": "CronJob", "name": "backup", "optional": optional}]}
    world = objects()
    world["lists"]["gpu-operator"]["CronJob"] = {"items": [{"metadata": meta("backup"), "spec": {"suspend": suspend}}]}
    assert judge(world, health=health)[0] == expected


def test_a_declared_replica_set_is_one_revision():
    health = {"workloads": [{"kind": "ReplicaSet", "name": "fixed"}]}
    status = {"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 1}
    item = {"metadata": meta("fixed"), "spec": {"replicas": 2}, "status": status}
    assert judge(objects(replicasets=[item]), health=health) == ("unhealthy", ["rollout-incomplete"])
    item["status"]["availableReplicas"] = 2
    assert judge(objects(replicasets=[item]), health=health) == ("healthy", [])
