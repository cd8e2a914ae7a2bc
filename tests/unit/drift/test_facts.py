"""Raw objects to facts: what nodes really report, and what changes on them while nobody changes them."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.drift import facts
from ansible_collections.goodput.fleet.plugins.module_utils.drift.images import same
from ansible_collections.goodput.fleet.plugins.module_utils.drift.redact import PREFIX, is_secret_key, redact

from tests.unit.drift import samples


def test_a_gpu_node():
    found = facts.node(samples.nodes(1)[0])
    assert {key: found[key] for key in found if key != "labels"} == {
        "name": "gpu-0000",
        "ready": True,
        "taints": [],
        "unschedulable": False,
        "kernel": "6.8.0-1036-nvidia",
        "osImage": "Ubuntu 22.04.5 LTS",
        "osId": "ubuntu",
        "osVersion": "22.04",
        "kubelet": "v1.36.3",
        "containerRuntime": "containerd://2.1.4",
        "driver": "580.105.08",
        "accelerator": "NVIDIA-H100-80GB-HBM3",
        "gpus": {"capacity": 8, "allocatable": 8, "count": 8},
        "group": "",
    }
    assert found["labels"]["node.kubernetes.io/instance-type"] == "dgx-h100"


def test_an_empty_node_tells_nothing_and_nothing_is_guessed():
    found = facts.node({"metadata": {"name": "n"}})
    assert (found["driver"], found["osId"], found["ready"]) == ("", "", False)
    assert found["gpus"] == {"capacity": 0, "allocatable": 0, "count": None}
    assert not facts.is_gpu(found)


def heartbeat(item: dict) -> None:
    item["status"]["conditions"][0]["lastHeartbeatTime"] = "2027-01-01T00:00:00Z"


def reboot(item: dict) -> None:
    item["status"]["nodeInfo"]["bootID"] = "another"


def state(item: dict) -> None:
    item["metadata"]["labels"].update(
        {
            "nvidia.com/gfd.timestamp": "1800000000",
            "nvidia.com/gpu-driver-upgrade-state": "upgrade-done",
            "nvidia.com/mig.config.state": "pending",
            "nvidia.com/gpu.deploy.device-plugin": "paused-for-driver-upgrade",
            "dgxc.nvidia.com/nvsentinel-state": "quarantined",
        }
    )


def bookkeeping(item: dict) -> None:
    item["metadata"].update(
        resourceVersion="99",
        uid="u",
        managedFields=[{"time": "2027-01-01T00:00:00Z"}],
        annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}", "volumes.kubernetes.io/x": "y"},
    )
    item["status"]["images"] = [{"names": ["a"], "sizeBytes": 1}]
    item["status"]["volumesAttached"] = [{"name": "v"}]


def pressure(item: dict) -> None:
    item["spec"]["taints"] = [
        {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule", "timeAdded": "2027-01-01T00:00:00Z"}
    ]


@pytest.mark.parametrize("change", [heartbeat, reboot, state, bookkeeping, pressure])
def test_what_changes_by_itself_is_no_fact(change):
    item = samples.nodes(1)[0]
    before = facts.node(copy.deepcopy(item))
    change(item)
    assert facts.node(item) == before


def test_order_of_labels_and_taints_is_no_fact():
    item = samples.nodes(1)[0]
    item["spec"]["taints"] = [{"key": "b", "value": "1", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}]
    before = facts.node(copy.deepcopy(item))
    item["spec"]["taints"].reverse()
    item["metadata"]["labels"] = dict(reversed(item["metadata"]["labels"].items()))
    assert facts.node(item) == before
    assert before["taints"] == ["a:NoSchedule", "b=1:NoExecute"]
    assert list(facts.node(item)["labels"]) == sorted(before["labels"])


@pytest.mark.parametrize(
    ("labels", "driver"),
    [
        ({"nvidia.com/cuda.driver-version.full": "580.105.08"}, "580.105.08"),
        (
            {
                "nvidia.com/cuda.driver-version.major": "580",
                "nvidia.com/cuda.driver-version.minor": "105",
                "nvidia.com/cuda.driver-version.revision": "08",
            },
            "580.105.08",
        ),
        (
            {
                "nvidia.com/cuda.driver.major": "550",
                "nvidia.com/cuda.driver.minor": "54",
                "nvidia.com/cuda.driver.rev": "",
            },
            "550.54",
        ),
        ({"nvidia.com/cuda.driver.major": "550"}, ""),
        ({"nvidia.com/cuda.runtime-version.full": "13.0"}, ""),
    ],
)
def test_driver_labels_old_and_new(labels, driver):
    assert facts.node({"metadata": {"name": "n", "labels": labels}})["driver"] == driver


@pytest.mark.parametrize(
    ("image", "os_id", "version"),
    [
        ("Ubuntu 24.04.3 LTS", "ubuntu", "24.04"),
        ("Red Hat Enterprise Linux 9.4 (Plow)", "rhel", "9.4"),
        ("Red Hat Enterprise Linux CoreOS 9.6.20250925-0 (Plow)", "rhcos", "9.6.20250925-0"),
        ("Amazon Linux 2023.9.20250929", "amzn", "2023"),
        ("Amazon Linux 2", "amzn", "2"),
        ("Container-Optimized OS from Google", "cos", ""),
        ("Debian GNU/Linux 12 (bookworm)", "debian", "12"),
        ("Rocky Linux 9.6 (Blue Onyx)", "rocky", "9.6"),
        ("Oracle Linux Server 8.10", "ol", "8.10"),
        ("SUSE Linux Enterprise Server 15 SP6", "sles", "15.6"),
        ("Talos (v1.11.2)", "talos", "1.11.2"),
        ("Bottlerocket OS 1.48.0 (aws-k8s-1.34-nvidia)", "bottlerocket", "1.48.0"),
        ("Flatcar Container Linux by Kinvolk 4230.2.3 (Oklo)", "flatcar", "4230.2.3"),
        ("Microsoft Azure Linux 3.0", "azurelinux", "3.0"),
        ("Something Else 1", "", ""),
    ],
)
def test_operating_systems_as_kubelets_name_them(image, os_id, version):
    found = facts.node({"metadata": {"name": "n"}, "status": {"nodeInfo": {"osImage": image}}})
    assert (found["osId"], found["osVersion"]) == (os_id, version)


@pytest.mark.parametrize(
    ("capacity", "labels", "gpus"),
    [
        ({"nvidia.com/gpu": "8"}, {}, (8, 8)),
        ({"nvidia.com/gpu": "80"}, {"nvidia.com/gpu.count": "8"}, (80, 8)),  # time slices
        ({"nvidia.com/gpu.shared": "16"}, {}, (16, None)),
        ({"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "56"}, {"nvidia.com/gpu.count": "8"}, (56, 8)),
        ({"cpu": "8"}, {}, (0, None)),
    ],
)
def test_gpu_resources(capacity, labels, gpus):
    item = {"metadata": {"name": "n", "labels": labels}, "status": {"capacity": capacity, "allocatable": capacity}}
    found = facts.node(item)["gpus"]
    assert (found["capacity"], found["count"]) == gpus
    assert found["allocatable"] == found["capacity"]


def test_pools_of_all_clouds():
    for label in facts.POOL_LABELS:
        assert facts.node({"metadata": {"name": "n", "labels": {label: "pool-1"}}})["group"] == "pool-1"


def test_a_server_built_from_source_has_the_version_it_was_built_for():
    version = {"gitVersion": "v0.0.0-master+$Format:%H$", "major": "1", "minor": "36+", "platform": "linux/arm64"}
    assert facts.server(version) == {"version": "v1.36.0", "platform": "linux/arm64"}
    assert facts.server({"gitVersion": "v1.34.1-eks-1234567"})["version"] == "v1.34.1-eks-1234567"


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("password", True),
        ("adminPassword", True),
        ("NGC_API_KEY", True),
        ("ngcApiKey", True),
        ("apiKey", True),
        ("token", True),
        ("secretKey", True),
        ("clientSecret", True),
        ("accessKey", True),
        ("basic_auth", True),
        (".dockerconfigjson", True),
        ("imagePullSecrets", False),
        ("existingSecret", False),
        ("existingSecretKey", False),
        ("secretName", False),
        ("secretKeyRef", False),
        ("passwordKey", False),
        ("tokenizer", False),
        ("maxTokens", False),
        ("tolerations", False),
        ("key", False),
        ("author", False),
    ],
)
def test_keys_of_secrets(key, secret):
    assert is_secret_key(key) is secret


def test_secrets_are_replaced_wherever_they_stand():
    values = {
        "adminPassword": "hunter2",
        "secrets": {"one": "x", "create": True, "deep": [{"v": 7}]},
        "env": [{"name": "NGC_API_KEY", "value": "k"}, {"name": "LOG_LEVEL", "value": "debug"}],
        "url": "https://user:pw@example.com/x",
        "tls": "-----BEGIN RSA PRIVATE KEY-----\nMII",
        "empty": {"token": "", "password": None},
        "plain": 1,
    }
    found = redact(values, "ns/name")
    for value in (found["adminPassword"], found["secrets"]["one"], found["secrets"]["deep"][0]["v"]):
        assert value.startswith(PREFIX)
    assert found["secrets"]["create"] is True
    assert found["env"][0]["value"].startswith(PREFIX)
    assert found["env"][1] == values["env"][1]
    assert found["url"].startswith(PREFIX) and found["tls"].startswith(PREFIX)
    assert (found["empty"], found["plain"]) == (values["empty"], 1)
    assert redact(values, "ns/name") == found
    assert redact(values, "ns/other")["adminPassword"] != found["adminPassword"]
    assert "hunter2" not in str(found) and values["adminPassword"] == "hunter2"


@pytest.mark.parametrize(
    ("expected", "found", "verdict"),
    [
        ("nginx", "docker.io/library/nginx:latest", True),
        ("org/x:1", "docker.io/org/x:1", True),
        ("localhost:5000/x:1", "localhost:5000/x:1", True),
        ("localhost/x:1", "docker.io/localhost/x:1", False),
        ("r.io/x:1", "r.io/x:2", False),
        ("r.io/x:1", "mirror.io/x:1", False),
        ("r.io/x:1", "r.io/x:1@sha256:a", True),
        ("r.io/x:1@sha256:a", "r.io/x:1@sha256:b", False),
        ("r.io/x:1@sha256:a", "r.io/x@sha256:a", True),
        ("r.io/x:1@sha256:a", "r.io/x:1", False),
        ("r.io/x:1", "r.io/x@sha256:a", None),
        ("r.io/x@sha256:a", "r.io/x:1", None),
        ("x", "", False),
    ],
)
def test_image_references(expected, found, verdict):
    assert same(expected, found) is verdict
