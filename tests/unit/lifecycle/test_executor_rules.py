"""What executors of repairs decide: which command reboots an instance, and whether a reset has helped."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.cloud_reboot_command import cloud_reboot_command
from ansible_collections.goodput.fleet.plugins.filter.gpu_reset_verdict import gpu_reset_verdict
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import providers, resets
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotCovered
from ansible_collections.goodput.fleet.plugins.module_utils.signals import nvidia_smi

from tests.unit.signals import smi
from tests.unit.signals.shipped import TABLES

SCALE_SET = (
    "azure:///subscriptions/5e-1/resourceGroups/mc_rg/providers/Microsoft.Compute/virtualMachineScaleSets/aks-gpu"
)
FIRST, SECOND = (f"GPU-{number:08x}-5d6e-7f80-91a2-b3c4d5e6f708" for number in (0, 1))


@pytest.mark.parametrize(
    ("cloud", "provider_id", "command"),
    [
        ("aws", "aws:///us-east-1a/i-0123456789abcdef0", "--region us-east-1 --instance-ids i-0123456789abcdef0"),
        ("aws", "aws:///us-west-2-lax-1a/i-0123456789abcdef0", "--region us-west-2 "),
        ("aws", "aws:///us-gov-west-1b/i-0123abcd", "--region us-gov-west-1 "),
        ("aws", "aws:///us-east-1-wl1-bos-wlz-1/i-0123456789abcdef0", "--region us-east-1 "),
        (
            "gcp",
            "gce://my-project/us-central1-a/gke-gpu-1",
            "reset gke-gpu-1 --project my-project --zone us-central1-a",
        ),
        ("gcp", "gce://example.com:prj/us-central1-a/n", "--project example.com:prj"),
        (
            "azure",
            "azure:///subscriptions/5e-1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/gpu-1",
            "vm restart --ids /subscriptions/5e-1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/gpu-1",
        ),
        (
            "azure",
            f"{SCALE_SET}/virtualMachines/3",
            "vmss restart --subscription 5e-1 --resource-group mc_rg --name aks-gpu",
        ),
    ],
)
def test_the_command_that_reboots_an_instance(cloud, provider_id, command):
    assert command in " ".join(providers.reboot(cloud, provider_id))


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
@pytest.mark.parametrize(
    "provider_id",
    [
        "",
        "metal://gpu-0001",
        "ocid1.instance.oc1..abc",
        "aws:///us-east-1a/fargate-ip-10-0-0-1",
        "aws:///us-east-1a/i-0123456789abcdef0 --profile x",
        "aws:///us-east-1a/i-0123456789abcdef0\n",
        "gce://project/zone/--all",
        "gce://project/zone",
        f"{SCALE_SET}/virtualMachines/--all",
        "azure:///subscriptions/--x/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n",
    ],
)
def test_what_is_no_instance_is_refused(cloud, provider_id):
    with pytest.raises(NotCovered):
        providers.reboot(cloud, provider_id)
    with pytest.raises(AnsibleFilterError, match=f"is no instance of {cloud}"):
        cloud_reboot_command(provider_id, cloud)


def test_a_cloud_that_is_not_known():
    with pytest.raises(InvalidDocument, match="aws"):
        providers.reboot("awss", "aws:///us-east-1a/i-0123456789abcdef0")


@pytest.mark.parametrize(
    ("entity", "device"),
    [
        ("", ""),
        (FIRST, FIRST),
        ("0000:3b:00", "00000000:3b:00.0"),
        ("PCI:0008:01:00", "00000008:01:00.0"),
        ("00000008:01:00.0", "00000008:01:00.0"),
    ],
)
def test_what_nvidia_smi_calls_it(entity, device):
    assert resets.device(entity) == device


@pytest.mark.parametrize("entity", ["0", "--all", "GPU-x y", "MIG-0c1c4d8e", "3b"])
def test_what_is_no_gpu_is_refused(entity):
    with pytest.raises(InvalidDocument, match="is no GPU"):
        resets.device(entity)
    with pytest.raises(InvalidDocument, match="is no GPU"):
        resets.verdict([], [], entity)


def gpus(*each: dict) -> list[dict]:
    text = smi.log(*[smi.gpu(number, changes=changes) for number, changes in enumerate(each)])
    return nvidia_smi.parse(text, TABLES)["gpus"]


SICK = {"gpu_recovery_action": "Reset", "remapped_rows/remapped_row_pending": "Yes", "serial": "77"}


def test_a_reset_that_helped():
    found = gpu_reset_verdict(gpus({"serial": "77"}, {"serial": "78"}), gpus(SICK, {"serial": "78"}), FIRST, 2)
    assert found == {"verified": True, "detail": "", "serials": ["77"]}
    found = gpu_reset_verdict(gpus({"serial": "77"}, {"serial": "78"}), gpus(SICK, {"serial": "78"}))
    assert found == {"verified": True, "detail": "", "serials": ["77", "78"]}
    assert resets.verdict(gpus(SICK, {}), gpus({}, {}), "00000000:10:00")["verified"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (SICK, "the driver asks for"),
        ({"gpu_recovery_action": "Frobnicate"}, "the driver asks for"),
        ({"gpu_recovery_action": None, "gpu_reset_status/reset_required": "Yes"}, "requires a reset"),
        ({"remapped_rows/remapped_row_pending": "Yes"}, "a row remap is pending"),
        ({"remapped_rows/remapped_row_failure": "Yes"}, "a row remap has failed"),
        ({"retired_pages/pending_retirement": "Yes", "retired_pages/pending_blacklist": "Yes"}, "retirement of a page"),
        ({"ecc_errors/volatile/dram_uncorrectable": "3"}, "uncorrected memory errors"),
    ],
)
def test_a_reset_that_did_not_help(changes, told):
    found = resets.verdict(gpus(SICK, {}), gpus(changes, {}), FIRST)
    assert not found["verified"] and told in found["detail"] and FIRST in found["detail"]
    # what another GPU has is not this one's, but a reset of all is about all
    assert resets.verdict(gpus({}, SICK), gpus({}, changes), FIRST)["verified"]
    assert not resets.verdict(gpus({}, SICK), gpus({}, changes))["verified"]


def test_a_gpu_that_has_gone():
    before, after = gpus({"serial": "77"}, {}), gpus({}, {})[1:]
    assert "has not come back" in resets.verdict(before, after, FIRST)["detail"]
    assert resets.verdict(before, after, FIRST)["serials"] == ["77"]
    assert f"{FIRST} has not come back" in resets.verdict(before, after, SECOND)["detail"]
    assert "1 of 2 GPUs" in resets.verdict([], after, "", 2)["detail"]
    assert resets.verdict([], [], "")["detail"] == "nvidia-smi shows no GPU"


def test_a_slow_link_is_left_to_the_certification():
    hot = {"clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown": "Active"}
    assert resets.verdict(gpus(SICK), gpus(hot), FIRST)["verified"]
