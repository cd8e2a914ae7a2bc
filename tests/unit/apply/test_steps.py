"""What an install run has left to do, decided from what is there."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.apply.steps import left_to_do


def step(component="gpu-operator", release=None, chart="gpu-operator", version="v26.7.0", path=None) -> dict:
    return {
        "component": component,
        "release": release or component,
        "namespace": component,
        "chart": chart,
        "version": version,
        "path": path,
        "gate": {"component": component, "seconds": 600},
    }


def installed(chart="gpu-operator-v26.7.0", status="deployed", name="gpu-operator") -> dict:
    return {"name": name, "namespace": "gpu-operator", "chart": chart, "status": status}


def finding(path: str, code="image-differs", component="gpu-operator") -> dict:
    return {"path": path, "code": code, "component": component, "message": f"{code} at {path}"}


def report(*findings: dict, **parts: str) -> dict:
    states = {name: {"status": state, "reason": "forbidden"} for name, state in parts.items()}
    return {"spec": {"findings": list(findings), "parts": {"releases": {"status": "ok"}, **states}}}


@pytest.mark.parametrize(
    ("releases", "drift", "action", "words"),
    [
        ([], report(), "install", "not installed"),
        ([installed()], report(), "none", ""),
        ([installed("gpu-operator-v25.10.1")], report(), "upgrade", "v25.10.1 is installed"),
        ([installed(status="failed")], report(), "upgrade", "left it failed"),
        ([installed(status="pending-install")], report(), "recover", "did not end"),
        ([installed(status="uninstalling")], report(), "recover", "did not end"),
        ([installed()], report(finding("workloads/DaemonSet/x/driver/images/main")), "upgrade", "image-differs"),
        ([installed()], report(finding("releases/x/x/values/a", "value-differs")), "upgrade", "value-differs"),
        ([installed()], report(finding("crds/clusterpolicies.nvidia.com", "crd-differs")), "upgrade", "crd-differs"),
        # a node with another driver is not mended by installing the chart once more
        ([installed()], report(finding("nodes/driver", "node-not-as-locked")), "none", ""),
        ([installed()], report(finding("workloads/D/x/y/images/z", "container-added")), "none", ""),
        ([installed()], report(finding("releases/b/b", component="other")), "none", ""),
        # what is not known is not taken for done
        ([installed()], report(workloads="unknown"), "upgrade", "not known: forbidden"),
        ([installed()], report(nodes="unknown"), "none", ""),
    ],
)
def test_action_and_reason(releases, drift, action, words):
    (found,) = left_to_do([step()], releases, drift)
    assert found["action"] == action
    assert words in "; ".join(found["why"]) and bool(found["why"]) == (action != "none")


def test_a_charts_finding_does_not_reinstall_its_manifests():
    manifests = step(release="gpu-operator-manifests", chart="gpu-operator-manifests", version="1.0.0+abc", path="003")
    there = [installed(), installed("gpu-operator-manifests-1.0.0+abc", name="gpu-operator-manifests")]
    drift = report(finding("workloads/DaemonSet/x/driver/images/main"))
    assert [found["action"] for found in left_to_do([step(), manifests], there, drift)] == ["upgrade", "none"]


def test_changed_manifests_have_another_version():
    manifests = step(release="gpu-operator-manifests", chart="gpu-operator-manifests", version="1.0.0+new", path="003")
    there = [installed("gpu-operator-manifests-1.0.0+old", name="gpu-operator-manifests")]
    assert left_to_do([manifests], there, report())[0]["action"] == "upgrade"


def test_what_depends_on_a_component_waits_until_it_is_healthy():
    assert left_to_do([step()], [installed()], report(), ["gpu-operator"])[0]["action"] == "wait"
    assert left_to_do([{**step(), "gate": None}], [installed()], report(), ["gpu-operator"])[0]["action"] == "none"
    assert left_to_do([step()], [], report(), ["gpu-operator"])[0]["action"] == "install"


def test_what_is_unknown_of_one_component_does_not_move_the_others():
    drift = report(**{"components/other": "unknown"})
    assert left_to_do([step()], [installed()], drift)[0]["action"] == "none"
