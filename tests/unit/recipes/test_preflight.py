"""A lock's constraints on a snapshot: all at once, on the worst node, and unknown never passes."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import preflight
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.snapshot import PARTS


def node(name: str, **fields) -> dict:
    facts = {
        "kernel": "6.8.0-45-generic",
        "osId": "ubuntu",
        "osVersion": "24.04",
        "kubelet": "v1.34.2",
        "driver": "580.105.08",
        "gpus": {"capacity": 8, "allocatable": 8},
    }
    return {"name": name, "labels": {}, **facts, **fields}


def snapshot(*nodes: dict, version: str | None = "v1.34.2-eks-1", **parts) -> dict:
    spec: dict = {
        "parts": {**{part: {"status": "ok"} for part in PARTS}, **parts},
        "server": {"version": version} if version else {},
        "nodes": list(nodes) or [node("n1"), node("n2")],
        **{key: [] for key in ("releases", "workloads", "crds")},
    }
    return {"apiVersion": "goodput.fleet/v1alpha1", "kind": "Snapshot", "metadata": {"name": "prod"}, "spec": spec}


def limits(**values) -> dict:
    names = {name.replace("_", ".").replace("VERSION.ID", "VERSION_ID"): value for name, value in values.items()}
    listed = [{"name": name, "value": value, "severity": "error", "from": "base"} for name, value in names.items()]
    return {"spec": {"constraints": listed}}


KERNEL = limits(OS_kernel=">= 6.8")


@pytest.mark.parametrize(
    "lock, found, status, words",
    [
        (limits(K8s_server_version=">= 1.34"), snapshot(), "pass", "satisfies"),
        (limits(K8s_server_version="> 1.34.2"), snapshot(), "fail", "v1.34.2-eks-1 does not satisfy"),
        (limits(K8s_server_version=">= 1.34"), snapshot(version=None), "unknown", "not measured"),
        (
            limits(K8s_server_version=">= 1.34"),
            snapshot(server={"status": "unknown", "reason": "forbidden: /version"}),
            "unknown",
            "forbidden: /version",
        ),
        (KERNEL, snapshot(), "pass", "6.8.0-45-generic satisfies"),
        (KERNEL, snapshot(node("n1"), node("n2", kernel="5.15.0-1053-aws")), "fail", "node n2: 5.15.0-1053-aws"),
        (KERNEL, snapshot(node("n1", kernel=None), node("n2", kernel="5.15")), "fail", "node n2"),
        (KERNEL, snapshot(node("n1", kernel=None), node("n2")), "unknown", "node n1: not measured"),
        (KERNEL, snapshot(node("n1", kernel="weird")), "unknown", "is not a version"),
        (
            KERNEL,
            snapshot(nodes={"status": "unknown", "reason": "forbidden: nodes list at cluster scope"}),
            "unknown",
            "nodes list at cluster scope",
        ),
        (limits(OS_release_ID="ubuntu"), snapshot(node("n1"), node("n2", osId="cos")), "fail", "node n2: cos"),
        (limits(OS_release_VERSION_ID="24.04"), snapshot(), "pass", "24.04"),
        (limits(GPU_count=">= 8"), snapshot(node("n1", gpus={"capacity": 7})), "fail", "node n1: 7"),
        (limits(GPU_count=">= 8"), snapshot(node("n1", gpus=None)), "unknown", "not measured"),
        (limits(GPU_count="8"), snapshot(node("n1", gpus={"capacity": 56, "count": 8})), "pass", "8 satisfies"),
        (limits(GPU_count="8"), snapshot(node("n1", gpus={"capacity": 56, "count": None})), "unknown", "not measured"),
        (limits(GPU_driver_version=">= 580.95"), snapshot(), "pass", "580.105.08"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_judgement(lock, found, status, words):
    (result,) = preflight.judge(lock, found)
    assert result["status"] == status, result
    assert words in result["reason"]


def test_os_facts_are_judged_where_the_gpus_are_and_kubelets_everywhere():
    found = snapshot(node("gpu"), node("cpu", kernel="5.4", kubelet="v1.30.0", gpus=None))
    kernel, kubelet = preflight.judge(limits(OS_kernel=">= 6.8", K8s_node_kubelet=">= 1.34"), found)
    assert kernel["status"] == "pass"
    assert (kubelet["status"], kubelet["nodes"]) == ("fail", ["cpu"])


def test_the_worst_node_is_named_first_and_all_are_listed():
    nodes = [node(f"n{number}", kernel=f"5.{number}.0") for number in (15, 4, 10)]
    (result,) = preflight.judge(KERNEL, snapshot(*nodes))
    assert result["reason"].startswith("node n4: 5.4.0")
    assert result["nodes"] == ["n10", "n15", "n4"]
    errors, _warnings = preflight.violations([result])
    assert "3 nodes: n10, n15, n4" in errors[0].message


def test_all_violations_at_once_with_their_remediation():
    """Whoever repairs one should not have to run again to learn of the next."""
    lock = limits(K8s_server_version=">= 1.36", OS_kernel=">= 7", GPU_count=">= 8", OS_release_ID="rhel")
    lock["spec"]["constraints"][0]["remediation"] = "upgrade the control plane"
    errors, warnings = preflight.violations(preflight.judge(lock, snapshot()))
    assert [one.path for one in errors] == [
        "constraints.K8s.server.version",
        "constraints.OS.kernel",
        "constraints.OS.release.ID",
    ]
    assert errors[0].hint == "upgrade the control plane"
    assert warnings == []


@pytest.mark.parametrize(
    "status, severity, fail_on_unknown, fails",
    [
        ("fail", "error", True, True),
        ("fail", "error", False, True),
        ("fail", "warning", True, False),
        ("unknown", "error", True, True),
        ("unknown", "error", False, False),
        ("unknown", "warning", True, False),
    ],
)
def test_what_fails_a_run(status, severity, fail_on_unknown, fails):
    result = {"name": "OS.kernel", "value": ">= 6", "severity": severity, "status": status, "reason": "x", "nodes": []}
    errors, warnings = preflight.violations([result], fail_on_unknown)
    assert (len(errors), len(warnings)) == ((1, 0) if fails else (0, 1))
