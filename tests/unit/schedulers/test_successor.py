"""A live job as the manifest of its next attempt."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import declared
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotCovered
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import affinity, kinds, queues, successor

UID, OTHER = "1d0f6901-8288-4893-9462-63f57ed047a7", "88efc739-e3bd-4de1-9a95-71e50ab584c6"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GENERATED = {
    "batch.kubernetes.io/controller-uid": UID,
    "batch.kubernetes.io/job-name": "train",
    "controller-uid": UID,
    "job-name": "train",
}
OUT = successor.Placement([{"node": "gpu-7", "hostname": "gpu-7.example", "until": ""}])


def live(**spec) -> dict:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "ml",
            "uid": UID,
            "resourceVersion": "559",
            "generation": 2,
            "creationTimestamp": "2026-03-06T09:00:00Z",
            "managedFields": [{"manager": "kubectl"}],
            "labels": {"team": "a", **GENERATED},
            "annotations": {"note": "b", "batch.kubernetes.io/job-tracking": ""},
            "finalizers": ["foregroundDeletion", "example.com/mine"],
            "ownerReferences": [{"kind": "ConfigMap", "name": "set", "uid": OTHER}],
        },
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}},
            "manualSelector": False,
            "suspend": False,
            "template": {
                "metadata": {"labels": {"app": "x", **GENERATED}, "creationTimestamp": None},
                "spec": {
                    "containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}],
                    "restartPolicy": "Never",
                },
            },
            **spec,
        },
        "status": {"failed": 2, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]},
    }


def test_what_was_the_servers_is_out_and_what_was_the_users_stays():
    job = live()
    before = copy.deepcopy(job)
    made = successor.build(job, 1, OUT, intent="goodput-attempt-1", env={"RESUME": "/c", "A": "2"})
    assert job == before and "status" not in made
    metadata = made["metadata"]
    assert set(metadata) == {"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"}
    assert metadata["labels"] == {"team": "a"} and metadata["annotations"]["note"] == "b"
    assert metadata["finalizers"] == ["example.com/mine", successor.FINALIZER]
    assert metadata["annotations"][successor.ATTEMPT] == "2" and metadata["annotations"][successor.PREVIOUS] == UID
    assert successor.excluded_in(made) == {"gpu-7"}
    assert "selector" not in made["spec"] and "manualSelector" not in made["spec"]
    template = made["spec"]["template"]
    assert template["metadata"] == {"labels": {"app": "x"}} and template["spec"]["restartPolicy"] == "Never"
    env = template["spec"]["containers"][0]["env"]
    assert env == [{"name": "RESUME", "value": "/c"}, {"name": "A", "value": "2"}]
    terms = template["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["gpu-7.example"]


def test_labels_that_only_look_generated_and_selectors_by_hand_stay():
    job = live(manualSelector=True, selector={"matchLabels": {"job": "mine"}})
    job["spec"]["template"]["metadata"]["labels"] = {"job": "mine", "job-name": "mine"}
    made = successor.build(job, 1, successor.Placement(), intent="x")
    assert made["spec"]["selector"] == {"matchLabels": {"job": "mine"}}
    assert made["spec"]["template"]["metadata"]["labels"] == {"job": "mine", "job-name": "mine"}
    assert kinds.pod_selector(job) == "job=mine"


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchExpressions": [{"key": "run", "operator": "In", "values": ["a", "b"]}]}, "run in (a,b)"),
        (
            {
                "matchLabels": {"job": "mine"},
                "matchExpressions": [
                    {"key": "old", "operator": "DoesNotExist"},
                    {"key": "x", "operator": "Exists"},
                    {"key": "y", "operator": "NotIn", "values": ["c"]},
                ],
            },
            "job=mine,!old,x,y notin (c)",
        ),
        ({}, "goodput.fleet/nobody"),
    ],
)
def test_a_selector_by_hand_selects_its_pods_and_never_everybodys(selector, text):
    assert kinds.pod_selector(live(manualSelector=True, selector=selector)) == text


@pytest.mark.parametrize(
    ("place", "said", "out"),
    [
        ("annotations", "act", False),
        ("annotations", " Act", False),
        ("annotations", "OFF", True),
        ("annotations", "advise", True),
        ("annotations", "pause", True),
        ("labels", "off", True),
        ("labels", "act", False),
        ("annotations", None, False),
    ],
)
def test_a_job_that_says_anything_but_act_is_let_be(place, said, out):
    job = {"metadata": {place: {"goodput.fleet/recovery": said} if said else {}}}
    assert bool(kinds.opted_out(job)) is out


def test_the_attempt_after_the_next_takes_off_what_the_last_one_excluded():
    first = successor.build(live(), 1, OUT, intent="x")
    first["metadata"]["uid"] = OTHER
    second = successor.build(first, successor.number_of(first), successor.Placement(), intent="y")
    assert second["metadata"]["annotations"][successor.ATTEMPT] == "3"
    assert "affinity" not in second["spec"]["template"]["spec"]
    assert affinity.EXCLUDED not in second["metadata"]["annotations"]
    assert second["metadata"]["finalizers"].count(successor.FINALIZER) == 1


@pytest.mark.parametrize("spec", [{"nodeName": "gpu-7"}, {"nodeSelector": {affinity.HOSTNAME: "gpu-7.example"}}])
def test_a_job_that_insists_on_the_node_cannot_keep_away_from_it(spec):
    job = live()
    job["spec"]["template"]["spec"] |= spec
    with pytest.raises(InvalidDocument, match="insists on node gpu-7"):
        successor.build(job, 1, OUT, intent="x")


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B"])
def test_a_name_that_is_no_variables_is_told(name):
    with pytest.raises(InvalidDocument, match="not the name of a variable"):
        successor.build(live(), 1, OUT, intent="x", env={name: "/c"})


@pytest.mark.parametrize(("text", "number"), [("", 1), ("4", 4), ("0", 1), ("-2", 1), ("many", 1), ("²", 1)])
def test_the_number_of_an_attempt(text, number):
    assert successor.number_of({"metadata": {"annotations": {successor.ATTEMPT: text}}}) == number
    assert successor.number_of({"metadata": {"labels": {successor.ATTEMPT: text}}}) == number
    assert declared.read({"metadata": {"annotations": {successor.ATTEMPT: text}}}, None)["number"] == number


def test_a_number_of_thousands_of_digits_is_cut_alike_by_who_reads_and_who_writes():
    job = {"metadata": {"annotations": {successor.ATTEMPT: "7" * 5000}}}
    assert successor.number_of(job) == declared.read(job, None)["number"] == 777777777


RACKS = {
    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "r", "operator": "Exists"}]}]}}
}


def train_job(**spec) -> dict:
    metadata = {"name": "t", "namespace": "ml", "uid": UID}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
    }


def runtime(**spec) -> dict:
    return {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]}}


def test_a_train_job_keeps_the_affinity_of_its_runtime_and_of_its_user():
    made = successor.build(train_job(), 1, OUT, intent="x", env={"R": "/c"}, job_set=runtime(affinity=RACKS))
    (override,) = made["spec"]["podTemplateOverrides"]
    term = override["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]
    assert [each["operator"] for each in term["matchExpressions"]] == ["Exists", "NotIn"]
    assert made["spec"]["trainer"]["env"] == [{"name": "R", "value": "/c"}]
    theirs = [
        {"targetJobs": [{"name": "node"}], "spec": {"affinity": RACKS, "serviceAccountName": "s"}},
        {"targetJobs": [{"name": "node"}], "spec": {"affinity": RACKS}},
    ]
    made = successor.build(train_job(podTemplateOverrides=theirs), 1, OUT, intent="x", job_set=runtime())
    overrides = made["spec"]["podTemplateOverrides"]
    assert overrides[0] == theirs[0] and len(overrides) == 2
    assert overrides[1] == override
    made["metadata"]["uid"] = OTHER
    again = successor.build(made, 2, successor.Placement(), intent="y", job_set=runtime())
    assert [each["spec"]["affinity"] for each in again["spec"]["podTemplateOverrides"]] == [RACKS, RACKS]


def test_a_train_job_with_patches_gets_one_of_our_own():
    theirs = [{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": runtime(affinity=RACKS)}}]
    made = successor.build(train_job(runtimePatches=theirs), 1, OUT, intent="x", job_set=runtime())
    assert made["spec"]["runtimePatches"][0] == theirs[0]
    ours = made["spec"]["runtimePatches"][1]
    assert ours["manager"] == successor.PATCHES and "NotIn" in str(ours) and "Exists" in str(ours)


def test_a_train_job_whose_pods_cannot_be_told_is_not_covered():
    with pytest.raises(NotCovered, match="not known"):
        successor.build(train_job(), 1, OUT, intent="x")
    assert "podTemplateOverrides" not in successor.build(train_job(), 1, successor.Placement(), intent="x")["spec"]


def test_kinds_that_are_no_jobs_are_told_with_those_that_are():
    with pytest.raises(NotCovered, match="PyTorchJob"):
        kinds.kind_of({"kind": "PytorchJob"})


def queued(labels: dict, **template) -> dict:
    job = live(template=template)
    job["metadata"]["labels"] = labels
    return job


def test_what_kueue_put_in_is_out_and_the_job_waits_for_it_again():
    template = {
        "metadata": {
            "labels": {"kueue.x-k8s.io/podset": "main", "app": "x"},
            "annotations": {"kueue.x-k8s.io/workload": "w", "kueue.x-k8s.io/podset-preferred-topology": "rack"},
        },
        "spec": {
            "nodeSelector": {"rack": "r1", "os": "linux"},
            "tolerations": [{"key": "flavor"}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}, {"name": "mine"}],
        },
    }
    job = queued({queues.KUEUE: "team-a"}, **template)
    originals = {"main": {"count": 2, "template": {"spec": {"nodeSelector": {"os": "linux"}}}}}
    made = successor.build(job, 1, successor.Placement(), intent="x", originals=originals)
    assert made["spec"]["suspend"] is True and made["metadata"]["labels"] == {queues.KUEUE: "team-a"}
    pods = made["spec"]["template"]
    assert pods["metadata"]["labels"] == {"app": "x"}
    assert pods["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-preferred-topology": "rack"}
    assert pods["spec"] == {"nodeSelector": {"os": "linux"}, "schedulingGates": [{"name": "mine"}]}


@pytest.mark.parametrize(("equal", "completions"), [("true", 8), (None, 2)])
def test_a_job_that_kueue_admitted_in_part_asks_for_all_of_its_pods_again(equal, completions):
    job = queued({queues.KUEUE: "team-a"})
    job["metadata"]["annotations"] |= {"kueue.x-k8s.io/job-min-parallelism": "2"}
    if equal:
        job["metadata"]["annotations"]["kueue.x-k8s.io/job-completions-equal-parallelism"] = equal
    made = successor.build(job, 1, successor.Placement(), intent="x", originals={"main": {"count": 8}})
    assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (8, completions)


@pytest.mark.parametrize(
    ("labels", "in_template", "queue"),
    [
        ({queues.KUEUE: "q"}, {}, ("kueue", "q", True)),
        ({"kai.scheduler/queue": "q"}, {}, ("kai", "q", False)),
        ({}, {"runai/queue": "q"}, ("kai", "q", False)),
        ({}, {}, ("none", "", False)),
    ],
)
def test_queues(labels, in_template, queue):
    found = queues.queue_of(queued(labels, metadata={"labels": in_template}))
    assert (found["kind"], found["name"], found["managed"]) == queue


@pytest.mark.parametrize(("group", "stays"), [("external-batch-job", True), (f"pg-train-{UID}", False)])
def test_a_pod_group_of_the_users_stays_and_a_generated_one_goes(group, stays):
    template = {"metadata": {"annotations": {queues.POD_GROUP: group}, "labels": {"kai.scheduler/queue": "q"}}}
    made = successor.build(queued({}, **template), 1, successor.Placement(), intent="x")
    metadata = made["spec"]["template"]["metadata"]
    assert (queues.POD_GROUP in (metadata.get("annotations") or {})) is stays
    assert metadata["labels"] == {"kai.scheduler/queue": "q"}


REPLICAS = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}


@pytest.mark.parametrize(
    ("kind", "spec", "pods", "retries", "selector"),
    [
        (
            "Job",
            {"parallelism": 4, "completions": 2, "backoffLimit": 6},
            2,
            6,
            f"batch.kubernetes.io/controller-uid={UID}",
        ),
        (
            "JobSet",
            {
                "failurePolicy": {"maxRestarts": 3},
                "replicatedJobs": [
                    {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 4}}},
                    {"name": "b", "template": {"spec": {}}},
                ],
            },
            9,
            3,
            "jobset.sigs.k8s.io/jobset-name=t",
        ),
        ("TrainJob", {"trainer": {"numNodes": 4}}, 4, None, "jobset.sigs.k8s.io/jobset-name=t"),
        (
            "PyTorchJob",
            {"runPolicy": {"backoffLimit": 1}, "pytorchReplicaSpecs": REPLICAS},
            4,
            1,
            "training.kubeflow.org/job-name=t",
        ),
        ("MPIJob", {"mpiReplicaSpecs": REPLICAS}, 4, None, "training.kubeflow.org/job-name=t"),
    ],
)
def test_what_each_kind_says_of_itself(kind, spec, pods, retries, selector):
    job = {"kind": kind, "metadata": {"name": "t", "uid": UID}, "spec": spec}
    assert (kinds.expected_pods(job), kinds.max_retries(job), kinds.pod_selector(job)) == (pods, retries, selector)
    assert kinds.suspended(job) is False
    kinds.set_suspended(job, True)
    assert kinds.suspended(job) is True
    assert kinds.ended(job) is None
    end = "Failed" if kind != "JobSet" else "Completed"
    job["status"] = {"conditions": [{"type": end, "status": "True", "lastTransitionTime": "2026-03-06T09:00:00Z"}]}
    assert kinds.ended(job)["state"] == ("succeeded" if kind == "JobSet" else "failed")


def jobs_of(*groups: tuple) -> dict:
    """A JobSet's spec; each group is (jobs, pods of each)."""
    told = [
        {"name": f"g{number}", "replicas": jobs, "template": {"spec": {"parallelism": pods, "completions": pods}}}
        for number, (jobs, pods) in enumerate(groups)
    ]
    return {"replicatedJobs": told}


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        ("Job", {"parallelism": 8, "completions": 8, "completionMode": "Indexed"}, 6),
        ("JobSet", jobs_of((1, 8)), 6),
        ("JobSet", jobs_of((4, 2)), 6),
        ("TrainJob", {"trainer": {"numNodes": 8}}, 6),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 7}}}, 6),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 8}}}, 6),
    ],
)
def test_fewer_pods_where_a_job_declares_that_they_will_do(kind, spec, pods):
    job = {**live(), "apiVersion": kinds.KINDS[kind].api_version, "kind": kind, "spec": copy.deepcopy(spec)}
    assert kinds.expected_pods(successor.build(job, 1, successor.Placement(), intent="x", pods=pods)) == pods
    assert kinds.expected_pods(job) == 8


def test_a_launcher_is_not_counted_among_the_pods_that_train():
    job = {**live(), "kind": "MPIJob", "spec": {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {"replicas": 8}}}}
    made = successor.build(job, 1, successor.Placement(), intent="x", pods=6)
    assert made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 6
    assert "replicas" not in made["spec"]["mpiReplicaSpecs"]["Launcher"]


def test_a_queue_of_work_keeps_what_is_to_be_done():
    made = successor.build(live(parallelism=4, completions=100), 1, successor.Placement(), intent="x", pods=2)
    assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (2, 100)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("JobSet", jobs_of((4, 4))),
        ("JobSet", jobs_of((1, 1), (1, 7))),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"replicas": 6}, "Worker": {"replicas": 2}}}),
    ],
)
def test_a_job_that_cannot_be_made_smaller_is_told_and_not_started_as_it_was(kind, spec):
    job = {**live(), "kind": kind, "spec": spec}
    with pytest.raises(NotCovered, match="cannot be given 6 pods"):
        successor.build(job, 1, successor.Placement(), intent="x", pods=6)


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": None}, "Master": None}}, 2),
        ("JobSet", {"replicatedJobs": [{"replicas": None, "template": {"spec": {"parallelism": None}}}]}, 1),
        ("Job", {"parallelism": 0, "completions": 4}, 0),
        ("TrainJob", {"trainer": None}, None),
    ],
)
def test_a_number_that_is_left_open_is_one(kind, spec, pods):
    assert kinds.expected_pods({"kind": kind, "spec": spec}) == pods


def test_maps_that_are_null_are_as_good_as_none():
    job = live(template={"metadata": None, "spec": {"containers": [{"name": "c", "env": None}]}})
    job["metadata"] |= {"annotations": None, "labels": None, "finalizers": None, "ownerReferences": None}
    made = successor.build(job, 1, OUT, intent="x")
    assert made["metadata"]["annotations"][successor.ATTEMPT] == "2"
    assert "env" not in made["spec"]["template"]["spec"]["containers"][0]
