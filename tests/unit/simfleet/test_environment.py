"""A container's environment and command."""

from __future__ import annotations

import pytest

from tests.simfleet.kubelet.environment import command_of, environment_of, expand

POD = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "annotations": {"batch.kubernetes.io/job-completion-index": "7"},
    },
    "spec": {"nodeName": "gpu-0001", "serviceAccountName": "runner"},
}


def field(path: str) -> dict:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_a_script_knows_who_it_is_and_what_its_container_was_told():
    variables = [
        {"name": "RANK", **field("metadata.annotations['batch.kubernetes.io/job-completion-index']")},
        {"name": "NODE", **field("spec.nodeName")},
        {"name": "IP", **field("status.podIP")},
        {"name": "ACCOUNT", **field("spec.serviceAccountName")},
        {"name": "NOTHING", **field("metadata.labels['none']")},
        {"name": "URL", "value": "tcp://$(IP)/$(RANK)"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    env = environment_of(POD, {"name": "main", "env": variables}, "10.1.2.3", {"PATH": "/bin", "SECRET": "x"})
    assert env == {
        "PATH": "/bin",
        "POD_NAME": "p",
        "POD_NAMESPACE": "n",
        "POD_UID": "u",
        "NODE_NAME": "gpu-0001",
        "HOSTNAME": "p",
        "CONTAINER_NAME": "main",
        "RANK": "7",
        "NODE": "gpu-0001",
        "IP": "10.1.2.3",
        "ACCOUNT": "runner",
        "NOTHING": "",
        "URL": "tcp://10.1.2.3/7",
    }


@pytest.mark.parametrize(
    ("text", "expanded"),
    [("$(A)-$(A)", "1-1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A ${A} $(", "$A ${A} $(")],
)
def test_only_known_references_are_expanded(text, expanded):
    assert expand(text, {"A": "1"}) == expanded


def test_a_command_is_command_and_args():
    assert command_of({"command": ["sh", "-c"], "args": ["echo $(A)"]}, {"A": "1"}) == ["sh", "-c", "echo 1"]
