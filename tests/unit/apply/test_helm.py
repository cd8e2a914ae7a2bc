"""Command lines are lists; data is never more than one argument."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.filter.helm_steps import helm_steps
from ansible_collections.goodput.fleet.plugins.module_utils.apply.helm import commands, major


def step(**fields) -> dict:
    return {
        "component": "gpu-operator", "release": "gpu-operator", "namespace": "gpu-operator", "chart": "gpu-operator",
        "repository": "https://charts.example.com/nvidia", "oci": False, "version": "v26.7.0", "path": None,
        "values": "003-gpu-operator/values.yaml", "timeout": "600s", "action": "install", "why": [], **fields,
    }  # fmt: skip


def test_from_a_chart_repository():
    assert commands(step(), "/b", helm="/opt/helm", kubeconfig="/k", context="prod")["deploy"] == [
        "/opt/helm", "upgrade", "gpu-operator", "gpu-operator", "--repo", "https://charts.example.com/nvidia",
        "--version", "v26.7.0", "--install", "--create-namespace", "--namespace", "gpu-operator", "--wait",
        "--timeout", "600s", "--kubeconfig", "/k", "--kube-context", "prod",
        "--values", "/b/003-gpu-operator/values.yaml",
    ]  # fmt: skip


def test_from_an_oci_registry():
    argv = commands(step(oci=True, repository="oci://ghcr.io/nvidia"), "/b")["deploy"]
    assert argv[3:6] == ["oci://ghcr.io/nvidia/gpu-operator", "--version", "v26.7.0"]


def test_a_local_chart_has_neither_version_nor_repository():
    argv = commands(step(path="004-x", values=None), "/b")["deploy"]
    assert argv[3] == "/b/004-x" and "--version" not in argv and "--repo" not in argv and "--values" not in argv


def test_data_stays_one_argument():
    evil = "v1; touch /tmp/x #$(id)"
    assert evil in commands(step(version=evil), "/b")["deploy"]


@pytest.mark.parametrize(("version", "action", "forced"), [
    ("v4.2.3+g1", "upgrade", True), ("v4.2.3", "install", False),
    ("v3.19.0+g9", "upgrade", False), ("", "upgrade", False),
])  # fmt: skip
def test_helm_4_is_told_that_the_recipe_wins(version, action, forced):
    assert ("--force-conflicts" in commands(step(action=action), "/b", version=version)["deploy"]) is forced


@pytest.mark.parametrize(("status", "verb"), [
    ("pending-install", "uninstall"), ("uninstalling", "uninstall"),
    ("pending-upgrade", "rollback"), ("pending-rollback", "rollback"),
])  # fmt: skip
def test_recovery_fits_what_was_cut_off(status, verb):
    argv = commands(step(action="recover", why=[f"it is {status}: an earlier operation did not end"]), "/b")["recover"]
    assert argv[1] == verb
    assert commands(step(), "/b")["recover"] == []


@pytest.mark.parametrize(
    ("text", "number"), [("v4.2.3+g1", 4), ("v3.19.0", 3), ("", 3), ("version.BuildInfo{v3.1.0}", 3)]
)
def test_major_version(text, number):
    assert major(text) == number


def test_filter_reads_the_version_of_local_charts():
    plan = {"steps": [{**step(path="001-x", values=None, chart=None, version=None), "gate": None}]}
    report = {"spec": {"findings": [], "parts": {}}}
    there = [{"namespace": "gpu-operator", "name": "gpu-operator", "chart": "x-1.0.0+abc", "status": "deployed"}]
    charts = {"001-x": "name: x\nversion: 1.0.0+abc\n"}
    (found,) = helm_steps(plan, "/b", report, releases=there, charts=charts)
    assert found["action"] == "none" and found["commands"]["deploy"][0] == "helm"
    assert json.dumps(found)
