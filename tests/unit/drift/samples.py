"""A lock, and a snapshot that fits it, for tests to break one thing at a time."""

from __future__ import annotations

import copy

from ansible_collections.goodput.fleet.plugins.module_utils.drift import facts
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.snapshot import PARTS

from tests.simfleet.nodes import load_profile, node_objects

DRIVER = "580.105.08"
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicies.nvidia.com}
spec:
  group: nvidia.com
  scope: Cluster
  names: {kind: ClusterPolicy, plural: clusterpolicies}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: gpu-operator}
spec:
  template:
    spec:
      initContainers: [{name: setup, image: "nvcr.io/nvidia/cuda:13.0"}]
      containers: [{name: gpu-operator, image: "nvcr.io/nvidia/gpu-operator:v26.7.0"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: sweep, namespace: other}
spec:
  jobTemplate: {spec: {template: {spec: {containers: [{name: sweep, image: "busybox:1.36"}]}}}}
"""
VALUES = {"driver": {"version": DRIVER, "enabled": True}, "toolkit": {"env": [{"name": "A", "value": "1"}]}}


def nodes(count: int = 8, profile: str = "demo", driver: str = DRIVER) -> list[dict]:
    """Raw Node objects of the simulated fleet, with the Ready condition that kwok adds."""
    made = list(node_objects(load_profile(profile), count, 10250))
    for item in made:
        item["status"]["conditions"] = [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-29T12:00:00Z"}
        ]
        if driver != DRIVER:
            set_driver(item, driver)
    return made


def set_driver(item: dict, version: str) -> None:
    major, minor, revision = version.split(".")
    item["metadata"]["labels"].update(
        {
            "nvidia.com/cuda.driver-version.full": version,
            "nvidia.com/cuda.driver-version.major": major,
            "nvidia.com/cuda.driver-version.minor": minor,
            "nvidia.com/cuda.driver-version.revision": revision,
        }
    )


def record(**changes) -> dict:
    """A release record, as the readers of a cluster's adapter yield it."""
    return {
        "source": "helm",
        "name": "gpu-operator",
        "namespace": "gpu-operator",
        "status": "deployed",
        "revision": 1,
        "chart": "gpu-operator",
        "version": "v26.7.0",
        "values": copy.deepcopy(VALUES),
        "manifest": MANIFEST,
        "crds": [CRD],
        **changes,
    }


def snapshot(raw_nodes: list[dict] | None = None, records: list[dict] | None = None, **parts) -> dict:
    """What observe.take would make of these; its workloads and CRDs are what the releases rendered."""
    releases = [facts.release(item) for item in ([record()] if records is None else records)]
    states = {part: {"status": "ok"} for part in PARTS}
    for part, reason in parts.items():
        states[part] = {"status": "unknown", "reason": reason}
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Snapshot",
        "metadata": {"name": "prod-1"},
        "spec": {
            "parts": states,
            "namespaces": [],
            "server": {"version": "v1.36.3", "platform": "linux/amd64"},
            "nodes": [facts.node(item) for item in (nodes() if raw_nodes is None else raw_nodes)],
            "releases": releases,
            "workloads": copy.deepcopy([item for release in releases for item in release["workloads"]]),
            "crds": copy.deepcopy([item for release in releases for item in release["crds"]]),
        },
    }


def component(**changes) -> dict:
    made = {
        "name": "gpu-operator",
        "namespace": "gpu-operator",
        "release": "gpu-operator",
        "tier": 0,
        "dependsOn": [],
        "chart": {"name": "gpu-operator", "repository": "https://helm.ngc.nvidia.com/nvidia", "version": "v26.7.0"},
        "values": copy.deepcopy(VALUES),
        "manifests": [],
        "crds": ["clusterpolicies.nvidia.com"],
        "images": [],
        "nodeFacts": {"driver": {"valuesPath": "driver.version", "value": DRIVER}},
        **changes,
    }
    return {key: value for key, value in made.items() if value is not None}


def lock(*components: dict, constraints: list[dict] | None = None) -> dict:
    """A RecipeLock that load_lock accepts."""
    listed = [copy.deepcopy(item) for item in components or (component(),)]
    for item in listed:
        item["valuesDigest"] = digest.sha256(item["values"])
        for manifest in item["manifests"]:
            manifest["digest"] = digest.sha256_bytes(manifest["content"].encode())
    spec = {
        "criteria": {"service": "baremetal"},
        "catalog": {"digest": "sha256:" + "0" * 64, "version": "1.0.0"},
        "overlays": [],
        "components": listed,
        "constraints": [{"severity": "error", "from": "base", **entry} for entry in constraints or ()],
        "checks": [],
        "order": [item["name"] for item in listed],
    }
    document = {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "RecipeLock",
        "metadata": {"name": "baremetal", "digest": digest.sha256(spec)},
        "spec": spec,
    }
    faults = lockfile.faults(yamltree.Document(document, {}, "sample"))
    assert not faults, faults
    return document


def codes(report: dict) -> list[str]:
    return [item["code"] for item in report["spec"]["findings"]]


def only(report: dict) -> dict:
    """The one finding of a report that has exactly one."""
    assert len(report["spec"]["findings"]) == 1, report["spec"]["findings"]
    return report["spec"]["findings"][0]


def unknown(report: dict) -> dict[str, str]:
    parts = report["spec"]["parts"].items()
    return {part: state["reason"] for part, state in parts if state["status"] == "unknown"}
