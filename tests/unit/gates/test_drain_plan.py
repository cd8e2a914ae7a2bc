"""What a drain does with each pod: tables, and rules that hold for any pods and policies."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_plan, drain_policy
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_budgets import Budgets
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_plan import Attempt, Situation
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.gates.drain_things import NOW, budget, read

EVICT = {"namespaces": ["apps"], "action": "evict"}
FORCE = {**EVICT, "force": True, "force_after": "1h"}
WEB = {"app": "web"}


def plan(pods, *policies, budgets=(), **at):
    situation = Situation(node="gpu-0", now=NOW, since=at.pop("since", NOW), **at)
    return drain_plan.plan(pods, Budgets(list(budgets)), drain_policy.load(list(policies)), situation)


def one(pod, *policies, **more):
    """(state, why, step) of the only pod."""
    made = plan([pod], *policies, **more)
    assert len(made.remaining) == 1 and not made.stays
    return made.remaining[0]["state"], made.remaining[0]["why"], (made.steps or [None])[0]


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (read(owner=("DaemonSet", "dcgm")), "pod of DaemonSet dcgm"),
        (read(annotations={"kubernetes.io/config.mirror": "x"}, owner=None), "mirror pod"),
        (read(owner=("Node", "gpu-0")), "mirror pod"),
        (read(namespace="kube-system"), "system_namespaces says leave"),
        (read(namespace="monitoring"), "policies[0] says leave"),
    ],
)
def test_what_stays(pod, why):
    made = plan([pod], {"namespaces": ["monitoring"], "action": "leave"}, {**EVICT, "unmanaged": True})
    assert made.stays[0]["why"].startswith(why)
    assert made.status == "drained" and not made.steps


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_are_ignored(phase):
    made = plan([read(phase=phase)], EVICT)
    assert (made.status, made.steps, made.remaining, made.stays) == ("drained", [], [], [])


@pytest.mark.parametrize(
    ("pod", "policy", "since", "state", "evicted", "told"),
    [
        (read(), None, NOW, "waiting", False, "completion, and by itself it never ends (restartPolicy Always)"),
        (read(restartPolicy="Never"), None, NOW, "waiting", False, "the default says wait for its completion"),
        (read(), EVICT, NOW, "evicting", True, "to be evicted"),
        (read(ready=False), EVICT, NOW, "evicting", True, ""),
        (read(ready=False), None, NOW - 1e6, "waiting", False, ""),  # not ready for long is not drained
        (read(phase="Pending"), EVICT, NOW, "evicting", True, ""),
        (read(), {**EVICT, "after": "30m"}, NOW, "waiting", False, "policies[0] evicts it at 2025-11-29T21:30:00Z"),
        (read(), {**EVICT, "after": "30m"}, NOW - 1799, "waiting", False, ""),
        (read(), {**EVICT, "after": "30m"}, NOW - 1800, "evicting", True, ""),
        (read(owner=None), EVICT, NOW, "blocked", False, "unmanaged: true"),
        (read(owner=None), {**EVICT, "unmanaged": True}, NOW, "evicting", True, ""),
        (read(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]), EVICT, NOW, "blocked", False, "volume shm"),
        (read(volumes=[{"name": "tmp", "ephemeral": {}}]), EVICT, NOW, "blocked", False, "local_data: true"),
        (read(volumes=[{"name": "tmp", "emptyDir": {}}]), {**EVICT, "local_data": True}, NOW, "evicting", True, ""),
        (read(volumes=[{"name": "c", "configMap": {}}]), EVICT, NOW, "evicting", True, ""),
        (read(deleted=NOW + 20), EVICT, NOW, "terminating", False, "until 2025-11-29T21:00:20Z"),
        (read(deleted=NOW - 20), EVICT, NOW, "terminating", False, "should have ended at"),
    ],
)
def test_what_happens_to_a_pod(pod, policy, since, state, evicted, told):
    found, why, step = one(pod, *([policy] if policy else []), since=since)
    assert found == state and told in why
    assert bool(step) is evicted
    if step:
        assert step.pod is pod and not step.force and step.grace is None


def test_a_dead_node_never_confirms():
    _, why, step = one(read(deleted=NOW - 999), EVICT, ready=False)
    assert "its node is not ready" in why and step is None


def test_the_grace_that_the_policy_gives():
    assert one(read(), {**EVICT, "grace_seconds": 7})[2].grace == 7


# ---- budgets ----


@pytest.mark.parametrize(
    ("pod", "budgets", "state", "told"),
    [
        (read(labels=WEB), [budget(allowed=1)], "evicting", ""),
        (read(labels=WEB), [budget()], "blocked", "PodDisruptionBudget web allows no disruption (2 healthy, 2 needed)"),
        (read(labels={"app": "db"}), [budget()], "evicting", ""),
        (read(labels=WEB), [budget(namespace="other")], "evicting", ""),
        (read(labels={}), [budget(selector={})], "blocked", "web"),
        (read(labels=WEB), [budget("b"), budget("a", allowed=5)], "blocked", "more than one PodDisruptionBudget"),
        (read(labels=WEB, phase="Pending"), [budget()], "evicting", ""),  # it disrupts nothing
        (read(labels=WEB, ready=False), [budget(unhealthyPodEvictionPolicy="AlwaysAllow")], "evicting", ""),
        (read(labels=WEB, ready=False), [budget()], "evicting", ""),  # enough others are healthy
        (read(labels=WEB, ready=False), [budget(healthy=1)], "blocked", "1 healthy, 2 needed"),
    ],
)
def test_what_a_budget_says(pod, budgets, state, told):
    found, why, step = one(pod, EVICT, budgets=budgets)
    assert found == state and told in why
    assert step is not None  # the API server has the last word


def test_several_budgets_are_all_named():
    made = plan([read(labels=WEB)], EVICT, budgets=[budget("b"), budget("a"), budget("c", selector={})])
    assert made.remaining[0]["pdb"] == ["a", "b", "c"]
    assert "(a, b, c)" in made.remaining[0]["why"]


def test_a_budget_is_not_spent_twice():
    pods = [read(f"web-{number}", labels=WEB) for number in range(4)]
    made = plan(pods, EVICT, budgets=[budget(allowed=2)])
    assert [entry["state"] for entry in made.remaining] == ["evicting", "evicting", "blocked", "blocked"]


# ---- what was tried before ----


def test_a_refused_eviction_is_asked_again_after_its_pause():
    pod = read(labels=WEB)
    attempt = Attempt(tries=1, blocked=True, message="PodDisruptionBudget web forbids it", next_at=NOW + 5)
    assert one(pod, EVICT, attempts={pod.uid: attempt}) == ("blocked", "PodDisruptionBudget web forbids it", None)
    attempt.next_at = NOW
    assert one(pod, EVICT, attempts={pod.uid: attempt})[2] is not None


def test_a_refusal_for_lack_of_rights_is_final():
    pod = read()
    attempts = {pod.uid: Attempt(tries=1, final=True, message="forbidden")}
    assert one(pod, EVICT, attempts=attempts) == ("failed", "forbidden", None)


def test_pods_that_come_back_are_not_chased_for_ever():
    pod = read()
    returned = {("apps", pod.owner): drain_plan.RETURNS}
    state, why, step = one(pod, EVICT, returned=returned)
    assert state == "blocked" and step is None and "ReplicaSet web puts its pods onto this node again" in why


# ---- force ----


@pytest.mark.parametrize(
    ("tries", "blocked", "since", "policy", "forced"),
    [
        (0, False, NOW - 9999, FORCE, False),  # the eviction comes first, however late it is
        (1, True, NOW - 3599, FORCE, False),
        (1, True, NOW - 3600, FORCE, True),
        (1, False, NOW - 9999, FORCE, False),  # an API server that fails is no reason
        (9, True, NOW - 9999, EVICT, False),  # nobody said force
        (1, True, NOW - 3600, {**FORCE, "after": "30m"}, False),  # its own deadline comes after that of the eviction
        (1, True, NOW - 5400, {**FORCE, "after": "30m"}, True),
    ],
)
def test_when_a_pod_is_deleted_by_force(tries, blocked, since, policy, forced):
    pod = read(labels=WEB)
    attempts = {pod.uid: Attempt(tries=tries, blocked=blocked, message="no")}
    step = one(pod, policy, budgets=[budget()], since=since, attempts=attempts)[2]
    assert step.force is forced and step.grace is None


@pytest.mark.parametrize(
    ("pod", "grace", "asked"),
    [
        (read(deleted=NOW - 1, grace=30), None, None),
        (read(deleted=NOW - 1, grace=30), 0, None),  # its hour is not over
        (read(deleted=NOW - 3600, grace=30), 0, 0),
        (read(deleted=NOW - 3600, grace=30), 10, None),  # would change nothing
        (read(deleted=NOW + 3600, grace=7200), 10, 10),  # ends for an hour now, and may for one more
        (read(deleted=NOW + 3601, grace=7200), 10, None),
        (read(deleted=NOW + 3600, grace=7200), 0, None),  # 0 is for those whose own grace is over
    ],
)
def test_a_pod_that_ends_slowly(pod, grace, asked):
    policy = FORCE if grace is None else {**FORCE, "force_grace_seconds": grace}
    step = one(pod, policy, since=NOW - 7200)[2]
    assert (step.grace if step else None) == asked
    assert step is None or step.force


def test_one_slow_pod_harms_no_other():
    slow = read("a-slow", deleted=NOW - 9999, labels={"slow": "yes"})
    blocked, ending, fresh = read("b", labels=WEB), read("c", deleted=NOW - 9999), read("d")
    policy = {**FORCE, "selector": "slow", "force_grace_seconds": 0}
    attempts = {blocked.uid: Attempt(tries=3, blocked=True)}
    made = plan([slow, blocked, ending, fresh], policy, EVICT, budgets=[budget()], attempts=attempts, since=NOW - 9999)
    assert [(step.pod.name, step.force) for step in made.steps] == [("a-slow", True), ("b", False), ("d", False)]


# ---- the node as a whole ----


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([], "drained"),
        ([read(namespace="jobs")], "waiting"),
        ([read(namespace="jobs"), read()], "draining"),
        ([read(deleted=NOW), read(namespace="jobs")], "draining"),
        ([read(), read("x", owner=None)], "blocked"),
    ],
)
def test_the_status_of_a_node(pods, status):
    assert plan(pods, EVICT).status == status


# ---- one GPU only ----


def test_only_the_pods_of_one_gpu():
    gpu = "GPU-00000000-aaaa-4000-8000-000000000001"
    note = {"dgxc.nvidia.com/devices": '{"devices": {"nvidia.com/gpu": ["%s"]}}'}
    mine = read("mine", gpus=1, annotations={key: text % gpu for key, text in note.items()})
    others = read("others", gpus=1, annotations={key: text % (gpu[:-1] + "2") for key, text in note.items()})
    unknown, plain = read("unknown", gpus=1), read("plain")
    made = plan([mine, others, unknown, plain], EVICT, gpus=[gpu])
    assert [step.pod.name for step in made.steps] == ["mine", "unknown"]
    assert {entry["pod"]: entry["why"] for entry in made.stays} == {
        "apps/others": "uses none of the GPUs",
        "apps/plain": "uses none of the GPUs",
    }


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (read(namespace="kube-system", gpus=1), "system_namespaces says leave; it uses the GPU"),
        (read(owner=("DaemonSet", "cache"), gpus=1), "pod of DaemonSet cache; it uses the GPU"),
        (read(owner=("DaemonSet", "logs")), "pod of DaemonSet logs"),
    ],
)
def test_a_pod_that_stays_though_it_uses_the_gpu_is_told(pod, why):
    made = plan([pod], EVICT, gpus=["GPU-00000000-aaaa-4000-8000-000000000001"])
    assert made.stays[0]["why"] == why


# ---- whatever the pods and the policies ----

pods = st.builds(
    read,
    name=st.sampled_from(["a", "b", "c"]),
    namespace=st.sampled_from(["apps", "jobs", "kube-system"]),
    owner=st.sampled_from([None, ("ReplicaSet", "x"), ("DaemonSet", "y"), ("Node", "n"), ("Job", "j")]),
    phase=st.sampled_from(["Running", "Pending", "Succeeded", "Failed", "Unknown", ""]),
    ready=st.booleans(),
    labels=st.sampled_from([{}, WEB]),
    deleted=st.sampled_from([None, NOW - 9999, NOW + 9999]),
    gpus=st.sampled_from([None, 1]),
)
policies = st.fixed_dictionaries(
    {"namespaces": st.sampled_from([["apps"], ["jobs"], ["*"]]), "action": st.sampled_from(["leave", "wait"])}
) | st.fixed_dictionaries(
    {
        "namespaces": st.sampled_from([["apps"], ["jobs"], ["*"]]),
        "action": st.just("evict"),
        "after": st.sampled_from([0, 60]),
        "unmanaged": st.booleans(),
    }
)


@settings(max_examples=300)
@given(st.lists(pods, max_size=6), st.lists(policies, max_size=3), st.sampled_from([NOW, NOW - 99]), st.booleans())
def test_every_pod_is_accounted_for_and_none_is_forced_unasked(found, given_policies, since, scoped):
    gpus = ["GPU-00000000-aaaa-4000-8000-000000000001"] if scoped else None
    made = plan(found, *given_policies, budgets=[budget()], since=since, gpus=gpus)
    counted = [pod.key for pod in found if not pod.finished]
    assert sorted([*(each["pod"] for each in made.remaining), *(each["pod"] for each in made.stays)]) == sorted(counted)
    assert (made.status == "drained") is (not made.remaining)
    rules = drain_policy.load(given_policies)
    for step in made.steps:
        policy = rules.match(step.pod.namespace, step.pod.labels)
        assert policy.action == "evict" and since + policy.after <= NOW
        assert not step.force and step.pod.ends is None and not step.pod.mirror
        assert step.pod.namespace != "kube-system" and step.pod.owner[0] != "DaemonSet"
        assert policy.unmanaged or any(step.pod.owner)
        assert not scoped or step.pod.gpus["uses"]
