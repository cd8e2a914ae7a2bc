"""Simulated GPU nodes: made from profiles, changed as tests want them.

A profile (profiles/*.yaml) is a number of nodes and groups of them:

    nodes: 8                # when the caller names no number
    groups:
      - prefix: gpu         # names gpu-0000, gpu-0001, ...
        accelerator: h100   # of profiles/accelerators.yaml
        service: eks        # eks, aks, gke, oke, baremetal: instance type, provider id, zone names
        os: ubuntu-22.04    # of OPERATING_SYSTEMS
        driver: 580.105.08
        perRack: 4
        zones: [a, b]       # racks go round them
        share: 1            # of the number of nodes, against the other groups' shares
        kubelet: v1.36.3
        labels: {}  taints: []
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.simfleet.api import Api, wait_until

PROFILES = Path(__file__).with_name("profiles")
CONNECTIONS = 8
NOT_READY = "sim.goodput.fleet/not-ready"  # stages.yaml leaves such a node alone
RACK_LABEL = "goodput.fleet/rack"
IDS = uuid.UUID("6f1d0a52-0c1c-4d8e-9a57-5d5f10b1f1ee")  # ids are functions of names, so that runs are alike
OPERATING_SYSTEMS = {
    "ubuntu-22.04": ("ubuntu", "22.04", "Ubuntu 22.04.5 LTS", "6.8.0-1036-nvidia"),
    "ubuntu-24.04": ("ubuntu", "24.04", "Ubuntu 24.04.3 LTS", "6.14.0-1007-nvidia"),
    "rhel-9.4": ("rhel", "9.4", "Red Hat Enterprise Linux 9.4 (Plow)", "5.14.0-427.42.1.el9_4.x86_64"),
    "amazon-linux-2023": ("amzn", "2023", "Amazon Linux 2023.9.20250929", "6.12.46-66.121.amzn2023.x86_64"),
}
PROVIDER_IDS = {
    "eks": "aws:///{zone}/i-{hex:.17}",
    "aks": "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/{name}",
    "gke": "gce://project/{zone}/{name}",
    "oke": "ocid1.instance.oc1..{hex}",
    "baremetal": "metal://{name}",
}
RUNTIME = "containerd://2.1.4"
KUBELET = "v1.36.3"


class BadProfile(ValueError):
    """A profile that does not exist, or a value in it that is not known."""


def load_profile(name: str) -> dict[str, Any]:
    path = PROFILES / f"{name}.yaml"
    if not path.exists():
        known = sorted(entry.stem for entry in PROFILES.glob("*.yaml") if entry.stem != "accelerators")
        raise BadProfile(f"there is no profile {name!r}; known: {', '.join(known)}")
    return yaml.safe_load(path.read_text())


def node_objects(profile: dict[str, Any], count: int | None, kubelet_port: int) -> Iterator[dict[str, Any]]:
    """The Node objects of a profile, `count` in all, shared out among its groups."""
    accelerators = yaml.safe_load((PROFILES / "accelerators.yaml").read_text())
    groups = profile["groups"]
    total = profile["nodes"] if count is None else count
    for group, number in zip(groups, shared_out(total, [group.get("share", 1) for group in groups]), strict=True):
        if group["accelerator"] not in accelerators:
            raise BadProfile(f"accelerator {group['accelerator']!r}; known: {', '.join(accelerators)}")
        for index in range(number):
            yield node_object(group, accelerators[group["accelerator"]], index, kubelet_port)


def shared_out(total: int, shares: Sequence[int]) -> list[int]:
    """Whole numbers that add up to total, by shares; the first ones take what is left over."""
    numbers = [total * share // sum(shares) for share in shares]
    for index in range(total - sum(numbers)):
        numbers[index % len(numbers)] += 1
    return numbers


def node_object(group: dict[str, Any], accelerator: dict[str, Any], index: int, kubelet_port: int) -> dict[str, Any]:
    """A node as it looks once its kubelet is up. It is Ready from the start: at 1,000 nodes that spares the control
    plane half of the work, which is to taint what is not Ready yet and to take that back."""
    name = f"{group['prefix']}-{index:04d}"
    rack = index // group.get("perRack", 16)
    zones = group.get("zones") or ["zone-a"]
    zone = zones[rack % len(zones)]
    service = group["service"]
    arch = accelerator.get("arch", "amd64")
    os_id, os_version, os_image, kernel = OPERATING_SYSTEMS[group["os"]]
    identity = uuid.uuid5(IDS, name)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",  # kubelets still set both; a controller would add what is missing
        "beta.kubernetes.io/arch": arch,
        "node.kubernetes.io/instance-type": accelerator["instanceTypes"][service],
        "topology.kubernetes.io/region": zone.rstrip("abcdef") if service == "eks" else "region-1",
        "topology.kubernetes.io/zone": zone,
        RACK_LABEL: f"{group['prefix']}-rack-{rack:02d}",
        "feature.node.kubernetes.io/system-os_release.ID": os_id,
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": os_version,
        "feature.node.kubernetes.io/kernel-version.full": kernel,
    }
    gpus = accelerator["gpus"]
    if gpus:
        labels |= gpu_labels(accelerator, group["driver"])
        if accelerator.get("clique"):
            labels["nvidia.com/gpu.clique"] = f"{uuid.uuid5(IDS, labels[RACK_LABEL])}.0"
    resources = {
        "cpu": str(accelerator["cpu"]),
        "memory": accelerator["hostMemory"],
        "ephemeral-storage": "7Ti",
        "pods": "250",
        **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | group.get("labels", {})},
        "spec": {
            "providerID": PROVIDER_IDS[service].format(name=name, zone=zone, hex=identity.hex),
            "taints": group.get("taints", []),
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "conditions": [ready_condition("True", "KubeletReady", "kubelet is posting ready status")],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
            "nodeInfo": {
                "architecture": arch,
                "bootID": str(uuid.uuid5(identity, "boot")),
                "containerRuntimeVersion": RUNTIME,
                "kernelVersion": kernel,
                "kubeProxyVersion": "",
                "kubeletVersion": group.get("kubelet", KUBELET),
                "machineID": identity.hex,
                "operatingSystem": "linux",
                "osImage": os_image,
                "systemUUID": str(identity),
            },
        },
    }


def gpu_labels(accelerator: dict[str, Any], driver: str) -> dict[str, str]:
    major, _, minor = accelerator["compute"].partition(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": accelerator["product"],
        "nvidia.com/gpu.family": accelerator["family"],
        "nvidia.com/gpu.count": str(accelerator["gpus"]),
        "nvidia.com/gpu.memory": str(accelerator["memory"]),
        "nvidia.com/gpu.machine": accelerator["machine"],
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "false" if accelerator["family"] == "ada-lovelace" else "true",
        **driver_labels(driver),
    }


def driver_labels(driver: str) -> dict[str, str]:
    """Under the present names and under the ones that older GPU feature discovery used."""
    major, minor, revision = (driver.split(".") + ["", ""])[:3]
    return {
        "nvidia.com/cuda.driver-version.full": driver,
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.driver.major": major,
        "nvidia.com/cuda.driver.minor": minor,
        "nvidia.com/cuda.driver.rev": revision,
    }


class Fleet:
    """The nodes of one cluster."""

    def __init__(self, api: Api, kubelet_port: int):
        self._api, self._port = api, kubelet_port

    def create(self, profile: str | dict[str, Any] = "demo", count: int | None = None) -> list[str]:
        """Make nodes and return their names; they take pods a moment later (wait_ready)."""
        loaded = load_profile(profile) if isinstance(profile, str) else profile
        nodes = list(node_objects(loaded, count, self._port))
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda node: self._api.create("/api/v1/nodes", node), nodes))
        return [node["metadata"]["name"] for node in nodes]

    def delete(self, names: Iterable[str]) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda name: self._api.delete(path_of(name)), names))

    def get(self, name: str) -> dict[str, Any]:
        return self._api.get(path_of(name))

    def names(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in self._api.list("/api/v1/nodes"))

    def ready(self) -> list[str]:
        """Names of the nodes that take pods: Ready, and the taint of the time before is gone."""
        return sorted(node["metadata"]["name"] for node in self._api.list("/api/v1/nodes") if takes_pods(node))

    def wait_ready(self, count: int, seconds: float = 60) -> None:
        found: list[str] = []

        def enough() -> bool:
            found[:] = self.ready()
            return len(found) >= count

        wait_until(enough, seconds, lambda: f"{count} nodes Ready ({len(found)} are)", pause=0.2 + count / 2000)

    # ---- what happens to nodes ----

    def set_labels(self, name: str, labels: Mapping[str, str | None]) -> None:
        self._api.patch(path_of(name), {"metadata": {"labels": labels}})

    def set_driver(self, name: str, version: str) -> None:
        """The driver that feature discovery reports."""
        self.set_labels(name, driver_labels(version))

    def set_gpus(self, name: str, allocatable: int) -> None:
        """What the device plugin offers; the capacity stays."""
        self._api.patch(f"{path_of(name)}/status", {"status": {"allocatable": {"nvidia.com/gpu": str(allocatable)}}})

    def set_node_info(self, name: str, **values: str) -> None:
        """kernelVersion=, osImage=, kubeletVersion=, containerRuntimeVersion=, bootID=..."""
        self._api.patch(f"{path_of(name)}/status", {"status": {"nodeInfo": values}})

    def reboot(self, name: str) -> str:
        """Not Ready for a moment, then Ready with another boot id, which is returned. Pods on it stay as they are."""
        boot_id = str(uuid.uuid4())
        condition = ready_condition("False", "KubeletNotReady", "the node has just been rebooted")
        status = {"nodeInfo": {"bootID": boot_id}, "conditions": [condition]}
        self._api.patch(f"{path_of(name)}/status", {"status": status})
        return boot_id

    def set_not_ready(self, name: str, message: str = "Kubelet stopped posting node status.", status: str = "Unknown"):
        """Until set_ready(). Status "Unknown" is a node that went silent, "False" one that says so itself."""
        self._api.patch(path_of(name), {"metadata": {"annotations": {NOT_READY: message}}})
        reason = "NodeStatusUnknown" if status == "Unknown" else "KubeletNotReady"
        body = {"status": {"conditions": [ready_condition(status, reason, message)]}}
        self._api.patch(f"{path_of(name)}/status", body)

    def set_ready(self, name: str) -> None:
        self._api.patch(path_of(name), {"metadata": {"annotations": {NOT_READY: None}}})


def takes_pods(node: dict[str, Any]) -> bool:
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", []))
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return ready and not any(key.startswith("node.kubernetes.io/not-ready") for key in taints)


def ready_condition(status: str, reason: str, message: str) -> dict[str, str]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def path_of(name: str) -> str:
    return f"/api/v1/nodes/{name}"
