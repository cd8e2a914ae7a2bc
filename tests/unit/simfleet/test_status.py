"""A pod's phase and conditions, as the real kubelet derives them from container states."""

from __future__ import annotations

import pytest

from tests.simfleet.kubelet.status import ContainerState, conditions_of, phase_of

WAITING = {"waiting": {"reason": "ContainerCreating"}}
RUNNING = {"running": {"startedAt": "t"}}


def ended(code: int) -> dict:
    return {"terminated": {"exitCode": code}}


def container(state: dict, name: str = "c", last: dict | None = None, **more) -> ContainerState:
    return ContainerState(name, "image", state=state, last=last or {}, ready="running" in state, **more)


@pytest.mark.parametrize(
    ("policy", "inits", "mains", "phase"),
    [
        ("Always", [], [container(WAITING)], "Pending"),
        ("Always", [], [container(RUNNING)], "Running"),
        ("Always", [], [container(RUNNING), container(WAITING)], "Pending"),
        # CrashLoopBackOff: it waits, and has run before
        ("Always", [], [container(WAITING, last=ended(1))], "Running"),
        ("Always", [], [container(ended(0))], "Running"),
        ("Never", [], [container(ended(0)), container(RUNNING)], "Running"),
        ("Never", [], [container(ended(0)), container(ended(0))], "Succeeded"),
        ("Never", [], [container(ended(0)), container(ended(2))], "Failed"),
        ("OnFailure", [], [container(ended(0))], "Succeeded"),
        ("OnFailure", [], [container(ended(1))], "Running"),
        ("Always", [container(RUNNING)], [container(WAITING)], "Pending"),
        ("Always", [container(WAITING, last=ended(1))], [container(WAITING)], "Pending"),
        ("Never", [container(ended(1))], [container(WAITING)], "Failed"),
        ("Always", [container(ended(1))], [container(WAITING)], "Pending"),
        ("Always", [container(ended(0))], [container(RUNNING)], "Running"),
        ("Always", [container(WAITING, sidecar=True)], [container(WAITING)], "Pending"),
        ("Never", [container(RUNNING, sidecar=True)], [container(ended(0))], "Succeeded"),
        ("Never", [container(ended(137), sidecar=True)], [container(ended(0))], "Succeeded"),
    ],
)
def test_phase(policy, inits, mains, phase):
    assert phase_of(policy, inits, mains) == phase


def facts(conditions: dict) -> dict:
    return {kind: (each["status"], each["reason"]) for kind, each in conditions.items()}


def test_a_running_pod_is_ready_when_all_its_containers_are():
    conditions = conditions_of("Running", [], [container(RUNNING)], {}, "t1")
    assert set(facts(conditions).values()) == {("True", None)}
    unready = [container(RUNNING, "a"), container(RUNNING, "b"), container(WAITING, "c", last=ended(1))]
    unready[1].ready = False
    conditions = conditions_of("Running", [], unready, {}, "t1")
    assert conditions["Ready"]["message"] == "containers with unready status: [b c]"


def test_an_ended_pod_says_why_it_is_not_ready():
    succeeded = facts(conditions_of("Succeeded", [], [container(ended(0))], {}, "t"))
    assert succeeded["Ready"] == succeeded["ContainersReady"] == ("False", "PodCompleted")
    assert facts(conditions_of("Failed", [], [container(ended(1))], {}, "t"))["Ready"] == ("False", "PodFailed")


def test_a_pod_is_initialized_after_its_init_containers_and_with_its_sidecars():
    inits = [container(ended(0), "a"), container(WAITING, "b", last=ended(1)), container(WAITING, "s", sidecar=True)]
    conditions = conditions_of("Pending", inits, [container(WAITING)], {}, "t")
    assert conditions["Initialized"]["message"] == "containers with incomplete status: [b]"
    assert conditions["Initialized"]["status"] == conditions["Ready"]["status"] == "False"


def test_the_time_of_a_condition_is_that_of_its_last_change():
    before = conditions_of("Running", [], [container(RUNNING)], {}, "t1")
    after = conditions_of("Running", [], [container(WAITING, last=ended(1))], before, "t2")
    assert after["Initialized"]["lastTransitionTime"] == "t1"
    assert after["Ready"]["lastTransitionTime"] == "t2"
