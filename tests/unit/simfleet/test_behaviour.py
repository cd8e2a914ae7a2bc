"""What annotations and fault rules make of a container."""

from __future__ import annotations

import pytest

from tests.simfleet.kubelet.behaviour import BadBehaviour, Behaviour, Rule, behaviour_of, read_rules
from tests.simfleet.workloads import behaviour_annotations

MAIN, INIT = {"name": "main", "image": "registry/app:1"}, {"name": "setup", "image": "registry/setup:1"}
SIDECAR = {"name": "proxy", "image": "registry/proxy:1", "restartPolicy": "Always"}


def pod(**behaviour):
    return {
        "metadata": {
            "name": "driver-x",
            "namespace": "gpu-operator",
            "labels": {"app": "driver", "tier": "node"},
            "annotations": behaviour_annotations(**behaviour),
            "ownerReferences": [{"kind": "DaemonSet", "name": "nvidia-driver"}],
        },
        "spec": {"nodeName": "gpu-0003"},
    }


def test_a_container_that_is_told_nothing_runs_on():
    assert behaviour_of({"metadata": {}, "spec": {}}, MAIN, False, []) == Behaviour()


@pytest.mark.parametrize(("container", "code"), [(INIT, 0), (SIDECAR, None)])
def test_an_init_container_that_is_told_nothing_succeeds_unless_it_is_a_sidecar(container, code):
    assert behaviour_of(pod(), container, True, []).exit_code == code


def test_annotations_are_read_by_their_types():
    told = pod(exit_code=3, after=1.5, ready=False, restarts=2, exec=True, log="a\nb", reason="OOMKilled")
    expected = Behaviour(exit_code=3, after=1.5, ready=False, restarts=2, exec=True, log="a\nb", reason="OOMKilled")
    assert behaviour_of(told, MAIN, False, []) == expected


def test_what_is_said_of_a_pod_holds_for_main_containers_and_what_is_said_of_one_wins():
    told = pod(exit_code=3, exit_code__main=4, waiting__setup="CrashLoopBackOff")
    assert behaviour_of(told, MAIN, False, []).exit_code == 4
    assert behaviour_of(told, {"name": "other"}, False, []).exit_code == 3
    setup = behaviour_of(told, INIT, True, [])
    assert (setup.exit_code, setup.waiting) == (0, "CrashLoopBackOff")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("exitcode", "3", "unknown key 'exitcode'; known: after, exec, exit-code"),
        ("exit-code", "x", "exit-code is 'x', expected int"),
        ("ready", "yes", "ready is 'yes', expected bool"),
    ],
)
def test_an_annotation_that_cannot_be_followed_is_named(name, value, message):
    told = pod()
    told["metadata"]["annotations"][f"sim.goodput.fleet/{name}"] = value
    with pytest.raises(BadBehaviour, match=f"annotation sim.goodput.fleet/{name}: {message}"):
        behaviour_of(told, MAIN, False, [])


@pytest.mark.parametrize(
    ("match", "applies"),
    [
        ({}, True),
        ({"namespace": "gpu-*", "image": "*/app:*", "node": ["gpu-0001", "gpu-0003"]}, True),
        ({"owner": "DaemonSet/nvidia-*"}, True),
        ({"owner": "Deployment/*"}, False),
        ({"labels": {"app": "driver"}}, True),
        ({"labels": {"app": "driver", "tier": "web"}}, False),
        ({"exceptNode": "gpu-0000"}, True),
        ({"exceptNode": ["gpu-0003"]}, False),
        ({"container": "main"}, True),
        ({"container": "setup"}, False),
        ({"pod": "driver-y"}, False),
    ],
)
def test_a_rule_applies_to_what_looks_like_its_match(match, applies):
    assert Rule(match, {"waiting": "X"}).applies(pod(), MAIN, False) is applies


def test_a_rule_reaches_an_init_container_only_by_its_name():
    assert not Rule({"namespace": "*"}).applies(pod(), INIT, True)
    assert Rule({"container": "setup"}).applies(pod(), INIT, True)


def test_rules_win_over_annotations_and_later_rules_over_earlier_ones():
    rules = read_rules(
        "- {match: {}, set: {exit-code: 5, waiting: A}}\n- {match: {container: main}, set: {waiting: B}}", "faults"
    )
    found = behaviour_of(pod(exit_code=3, log="kept"), MAIN, False, rules)
    assert (found.exit_code, found.waiting, found.log) == (5, "B", "kept")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {match: {}}", r"f\[0\]: expected a map of `match` and `set`"),
        ("- text", r"f\[0\]: expected a map"),
        ("- {match: {nodes: x}, set: {}}", r"f\[0\]: match.nodes is unknown; known: namespace, pod"),
        ("- {match: {}, set: {wait: x}}", r"f\[0\]: unknown key 'wait'"),
        ("- {match: {}, set: {restarts: many}}", r"f\[0\]: restarts is 'many', expected int"),
        ("a: [", "f: not YAML"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(BadBehaviour, match=message):
        read_rules(text, "f")
