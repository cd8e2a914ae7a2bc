"""nvidia-smi -q -x, in all schema generations, and what it prints instead."""

from __future__ import annotations

import time

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_nvidia_smi import parse_nvidia_smi
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import nvidia_smi
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.signals import smi
from tests.unit.signals.shipped import BOOT, RECEIVED, TABLES, entities

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
ECC, LINK, FABRIC = "ecc_errors/", "pci/pci_gpu_link_info/", "fabric/"
REASON = "clocks_event_reasons/clocks_event_reason_"


def parse(text, **options) -> dict:
    result = nvidia_smi.parse(text, TABLES, **{"node": "gpu-7", "boot_id": BOOT, "received": RECEIVED, **options})
    assert all(GOOD(event) for event in result["events"])
    return result


def specs(text, **options) -> list[dict]:
    result = parse(text, **options)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


def one(text, **options) -> dict:
    (spec,) = specs(text, **options)
    return spec


# each field

CASES = [
    # changes -> code, fatal, action, check
    ({f"{ECC}volatile/dram_uncorrectable": "1"}, "ECC_VOLATILE_UNCORRECTED", True, "COMPONENT_RESET", "GpuMemWatch"),
    ({f"{ECC}volatile/sram_uncorrectable_parity": "2"}, "ECC_VOLATILE_UNCORRECTED", True, "COMPONENT_RESET",
     "GpuMemWatch"),
    ({f"{ECC}volatile/sram_uncorrectable_secded": "18446744073709551615"}, None, False, "NONE", ""),
    ({f"{ECC}aggregate/dram_uncorrectable": "3"}, "ECC_AGGREGATE_UNCORRECTED", False, "NONE", "GpuMemWatch"),
    ({f"{ECC}aggregate/sram_threshold_exceeded": "Yes"}, "SRAM_THRESHOLD_EXCEEDED", True, "CONTACT_SUPPORT",
     "GpuMemWatch"),
    ({"retired_pages/pending_retirement": "Yes"}, "RETIRED_PAGES_PENDING", False, "NONE", "GpuMemWatch"),
    ({"retired_pages/pending_blacklist": "Yes", "retired_pages/pending_retirement": None}, "RETIRED_PAGES_PENDING",
     False, "NONE", "GpuMemWatch"),
    ({"retired_pages/double_bit_retirement/retired_count": "63"}, "RETIRED_PAGES_LIMIT", True, "CONTACT_SUPPORT",
     "GpuMemWatch"),
    ({"remapped_rows/remapped_row_pending": "Yes"}, "ROW_REMAP_PENDING", False, "NONE", "GpuMemWatch"),
    ({f"{ECC}channel_repair_pending": "Yes", f"{ECC}tpc_repair_pending": "No"}, "REPAIR_PENDING", False, "NONE",
     "GpuMemWatch"),
    ({"remapped_rows/remapped_row_failure": "Yes"}, "ROW_REMAP_FAILURE", True, "COMPONENT_RESET", "GpuMemWatch"),
    ({"remapped_rows/remapped_row_unc": "512"}, "ROW_REMAP_LIMIT", False, "CONTACT_SUPPORT", "GpuMemWatch"),
    ({"gpu_recovery_action": "Reset"}, "GPU_RECOVERY_ACTION", True, "COMPONENT_RESET", "GpuDriverWatch"),
    ({"gpu_recovery_action": "Reboot"}, "GPU_RECOVERY_ACTION", True, "RESTART_BM", "GpuDriverWatch"),
    ({"gpu_recovery_action": "Drain P2P"}, "GPU_RECOVERY_ACTION", False, "DRAIN_P2P", "GpuDriverWatch"),
    ({"gpu_recovery_action": "Drain and Reset"}, "GPU_RECOVERY_ACTION", True, "DRAIN_RESET", "GpuDriverWatch"),
    ({"gpu_recovery_action": "Ask the Oracle"}, "RECOVERY_ACTION_UNKNOWN", False, "CONTACT_SUPPORT", "GpuDriverWatch"),
    ({"gpu_recovery_action": None, "gpu_reset_status/reset_required": "Yes"}, "RESET_REQUIRED", True,
     "COMPONENT_RESET", "GpuDriverWatch"),
    ({"gpu_recovery_action": "N/A", "gpu_reset_status/drain_and_reset_recommended": "Yes"}, "DRAIN_AND_RESET", True,
     "DRAIN_RESET", "GpuDriverWatch"),
    ({f"{REASON}hw_slowdown": "Active"}, "HW_SLOWDOWN", False, "CONTACT_SUPPORT", "GpuThermalWatch"),
    ({f"{REASON}hw_slowdown": "Active", f"{REASON}hw_thermal_slowdown": "Active"}, "HW_THERMAL_SLOWDOWN", False,
     "CONTACT_SUPPORT", "GpuThermalWatch"),
    ({f"{REASON}hw_slowdown": "Active", f"{REASON}hw_power_brake_slowdown": "Active"}, "HW_POWER_BRAKE", False,
     "CONTACT_SUPPORT", "GpuPowerWatch"),
    ({"clocks_throttle_reasons/clocks_throttle_reason_hw_thermal_slowdown": "Active"}, "HW_THERMAL_SLOWDOWN", False,
     "CONTACT_SUPPORT", "GpuThermalWatch"),
    ({f"{REASON}sw_thermal_slowdown": "Active"}, "SW_THERMAL_SLOWDOWN", False, "NONE", "GpuThermalWatch"),
    ({"temperature/gpu_temp_tlimit": "-3 C"}, "TEMPERATURE_SLOWDOWN", False, "CONTACT_SUPPORT", "GpuThermalWatch"),
    ({"temperature/gpu_temp_tlimit": "-8 C"}, "TEMPERATURE_SHUTDOWN", True, "CONTACT_SUPPORT", "GpuThermalWatch"),
    ({"temperature/gpu_temp": "89 C", "temperature/gpu_temp_slow_threshold": "88 C"}, "TEMPERATURE_SLOWDOWN", False,
     "CONTACT_SUPPORT", "GpuThermalWatch"),
    ({f"{LINK}link_widths/current_link_width": "8x"}, "PCIE_WIDTH_LOW", False, "CONTACT_SUPPORT", "GpuPcieWatch"),
    ({f"{LINK}pcie_gen/current_link_gen": "3"}, "PCIE_GENERATION_LOW", False, "CONTACT_SUPPORT", "GpuPcieWatch"),
    ({f"{FABRIC}status": "Insufficient Resources"}, "FABRIC_FAILED", True, "RESTART_VM", "GpuNvlinkWatch"),
    ({f"{FABRIC}state": "In Progress", f"{FABRIC}status": "N/A"}, "FABRIC_NOT_READY", False, "CONTACT_SUPPORT",
     "GpuNvlinkWatch"),
    ({f"{FABRIC}health/route_unhealthy": "True"}, "FABRIC_ROUTE_UNHEALTHY", True, "RESTART_VM", "GpuNvlinkWatch"),
    ({f"{FABRIC}health/bandwidth": "Degraded"}, "FABRIC_BANDWIDTH_DEGRADED", False, "CONTACT_SUPPORT",
     "GpuNvlinkWatch"),
    ({f"{FABRIC}health/summary": "Unhealthy"}, "FABRIC_UNHEALTHY", False, "CONTACT_SUPPORT", "GpuNvlinkWatch"),
    ({f"{FABRIC}health/incorrect_configuration": "No Partition"}, "FABRIC_MISCONFIGURED", False, "CONTACT_SUPPORT",
     "GpuNvlinkWatch"),
    ({"mig_mode/current_mig": "Enabled", "mig_devices/mig_device/ecc_error_count/volatile_count/sram_uncorrectable":
      "1"}, "ECC_VOLATILE_UNCORRECTED", True, "COMPONENT_RESET", "GpuMemWatch"),
    ({"temperature/gpu_temp": "ERR!"}, "READING_FAILED", False, "CONTACT_SUPPORT", "GpuHealthWatch"),
    ({f"{ECC}volatile/dram_uncorrectable": "[Unknown Error]"}, "READING_FAILED", False, "CONTACT_SUPPORT",
     "GpuHealthWatch"),
    ({"serial": "GPU is lost", "performance_state": "GPU is lost"}, "GPU_LOST", True, "RESTART_BM", "GpuPcieWatch"),
    ({"serial": "[GPU requires reset]"}, "RESET_REQUIRED", True, "COMPONENT_RESET", "GpuDriverWatch"),
]  # fmt: skip


@pytest.mark.parametrize("changes, code, fatal, action, check", CASES)
def test_what_a_field_means(changes, code, fatal, action, check):
    spec = one(smi.one(changes=changes))
    assert spec["errorCode"] == ([code] if code else [])
    assert (spec["isFatal"], spec["recommendedAction"]) == (fatal, action)
    assert spec["isHealthy"] == (code is None)
    if code:
        assert (spec["checkName"], spec["codeSpace"], spec["agent"]) == (check, "nvml", "nvidia-smi")
        assert entities(spec)["GPU_UUID"].startswith("GPU-00000000-")
        assert (entities(spec)["PCI"], entities(spec)["GPU"]) == ("0000:10:00", "0")
        assert spec["state"] == ("unknown" if code == "READING_FAILED" else "sick")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        # a slower link while nothing runs, and a higher power state than P0
        {f"{LINK}pcie_gen/current_link_gen": "1", f"{REASON}gpu_idle": "Active"},
        {f"{LINK}pcie_gen/current_link_gen": "1", "performance_state": "P8"},
        {f"{LINK}pcie_gen/current_link_gen": "1", "performance_state": "N/A"},
        # MIG
        {"mig_mode/current_mig": "Enabled", f"{FABRIC}state": "Not Started"},
        # what a GPU does not have is not zero, and no fault
        dict.fromkeys([path for path in smi.FIELDS if path != "product_name"], "N/A"),
        dict.fromkeys([path for path in smi.FIELDS if path != "product_name"], "[Not Supported]"),
        dict.fromkeys([path for path in smi.FIELDS if path != "product_name"], ""),
        dict.fromkeys(smi.FIELDS, None),
    ],
)
def test_what_is_no_fault(changes):
    spec = one(smi.one(changes=changes))
    assert (spec["isHealthy"], spec["state"], spec["errorCode"]) == (True, "healthy", [])


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"double_bit/total": "2", "double_bit/device_memory": "2"}, "ECC_VOLATILE_UNCORRECTED"),
        ({"double_bit/device_memory": "1", "double_bit/register_file": "1"}, "ECC_VOLATILE_UNCORRECTED"),
        ({"double_bit/total": "0", "double_bit/device_memory": "0"}, None),
        ({"sram_uncorrectable": "1", "dram_uncorrectable": "0"}, "ECC_VOLATILE_UNCORRECTED"),
        ({"sram_uncorrectable": "N/A", "dram_uncorrectable": "N/A"}, None),
    ],
)
def test_ecc_counters_of_older_drivers(fields, code):
    gone = {path: None for path in smi.FIELDS if path.startswith(ECC)}
    spec = one(smi.one(changes={**gone, **{f"{ECC}volatile/{path}": value for path, value in fields.items()}}))
    assert spec["errorCode"] == ([code] if code else [])


def test_gpus_are_told_with_their_readings_and_their_state():
    sick = smi.gpu(1, changes={"remapped_rows/remapped_row_failure": "Yes"})
    blind = smi.gpu(2, changes={"temperature/gpu_temp": "ERR!"})
    result = parse(smi.log(smi.gpu(0), sick, blind))
    assert [gpu["state"] for gpu in result["gpus"]] == ["healthy", "sick", "unknown"]
    first = result["gpus"][0]
    assert (first["index"], first["pci"], first["name"]) == (0, "0000:10:00", "NVIDIA H200")
    assert (first["temperature"], first["ecc_volatile_uncorrected"], first["serial"]) == (61, 0, "1650000000007")
    assert (result["driver_version"], result["lines"]) == ("580.105.08", smi.log(smi.gpu(0), sick, blind).count("\n"))


# GPUs that are missing, drivers that do not answer


@pytest.mark.parametrize(
    "text, expected, state, code, fatal",
    [
        ("No devices were found\n", 8, "sick", ["GPU_COUNT_LOW"], True),
        ("No devices were found\n", None, "unknown", ["NVML_UNREACHABLE"], False),
        ("No devices were found\n", 0, "healthy", [], False),
        (smi.log(), 8, "sick", ["GPU_COUNT_LOW"], True),
        (smi.log(smi.gpu(0)), 2, "sick", ["GPU_COUNT_LOW"], True),
        (smi.log(smi.gpu(0), attached=2), 2, "healthy", [], False),
        (smi.log(smi.gpu(0), smi.gpu(1)), 1, "sick", ["GPU_COUNT_HIGH"], False),
        ("Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this "
         "GPU\n", 8, "sick", ["GPU_LOST"], True),
        ("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\r\n", 8, "unknown",
         ["GPU_UNREADABLE"], False),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
         "NVIDIA driver is installed and running.\n\n", 8, "unknown", ["NVML_UNREACHABLE"], False),
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n", 8, "unknown",
         ["NVML_UNREACHABLE"], False),
        ("Failed to initialize NVML: Unknown Error", 8, "unknown", ["NVML_UNREACHABLE"], False),
        ("bash: nvidia-smi: command not found\n", 8, "unknown", ["NVML_UNREACHABLE"], False),
        ("", 8, "unknown", ["NVML_UNREACHABLE"], False),
        ("noise", 8, "unknown", ["NVML_UNREACHABLE"], False),
        ("WARNING: infoROM is corrupted at gpu 0000:10:00.0\n" + smi.log(smi.gpu(0)), 1, "sick", ["INFOROM_CORRUPTED"],
         False),
    ],
)  # fmt: skip
def test_what_it_prints_instead(text, expected, state, code, fatal):
    spec = one(text, expected_gpus=expected)
    assert (spec["state"], spec["errorCode"], spec["isFatal"]) == (state, code, fatal)
    if "3B" in text:
        assert entities(spec) == {"PCI": "0000:3b:00"}


# the form without -x

TEXT = """\

==============NVSMI LOG==============

Timestamp                                 : Sun Nov 29 18:00:00 2026
Driver Version                            : 580.105.08

Attached GPUs                             : 2
GPU 00000000:10:00.0
    Product Name                          : NVIDIA H200
    MIG Mode
        Current                           : Disabled
    GPU UUID                              : GPU-00000000-5d6e-7f80-91a2-b3c4d5e6f708
    GPU Recovery Action                   : None
    PCI
        Bus Id                            : 00000000:10:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 5
            Link Width
                Max                       : 16x
                Current                   : 16x
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 0
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 0
        Pending                           : No
        Remapping Failure Occurred        : No
    Fabric
        State                             : Completed
        Status                            : Success
    Processes                             : None
GPU 00000000:11:00.0
    Product Name                          : NVIDIA H200
    Processes                             : None
"""


@pytest.mark.parametrize(
    "before, after, code",
    [
        ("Remapping Failure Occurred        : No", "Remapping Failure Occurred        : Yes", "ROW_REMAP_FAILURE"),
        ("DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 2", "ECC_VOLATILE_UNCORRECTED"),
        ("HW Power Brake Slowdown       : Not", "HW Power Brake Slowdown       :", "HW_POWER_BRAKE"),
        ("Clocks Event Reasons\n", "Clocks Throttle Reasons\n", None),
        ("                Current                   : 16x", "                Current                   : 4x",
         "PCIE_WIDTH_LOW"),
        ("Status                            : Success", "Status                            : Insufficient Resources",
         "FABRIC_FAILED"),
        ("Recovery Action                   : None", "Recovery Action                   : Drain P2P",
         "GPU_RECOVERY_ACTION"),
        ("Recovery Action                   : None", "Recovery Action                   : GPU requires reset",
         "RECOVERY_ACTION_UNKNOWN"),
        ("Product Name", "Product Name", None),
    ],
)  # fmt: skip
def test_the_form_without_x(before, after, code):
    assert before in TEXT
    result = parse(TEXT.replace(before, after), expected_gpus=2)
    spec = one(TEXT.replace(before, after), expected_gpus=2)
    assert spec["errorCode"] == ([code] if code else [])
    assert [gpu["pci"] for gpu in result["gpus"]] == ["0000:10:00", "0000:11:00"]
    assert (result["gpus"][1]["index"], result["driver_version"]) == (1, "580.105.08")
    assert one(TEXT.replace(before, after).replace("\n", "\r\n"), expected_gpus=2)["errorCode"] == spec["errorCode"]


def test_a_section_alone_does_not_tell_how_many_gpus_there_are():
    section = (
        "Fabric\n    State                             : Completed\n    Status                            : {}\n\n"
    )
    spec = one(section.format("Insufficient Resources"), expected_gpus=8)
    assert (spec["errorCode"], spec["isFatal"], spec["entitiesImpacted"]) == (["FABRIC_FAILED"], True, [])
    assert one(section.format("Success"), expected_gpus=8)["state"] == "healthy"


def test_a_cut_text_tells_no_fault():
    for end in range(len(TEXT)):
        states = [event["spec"]["state"] for event in parse(TEXT[:end])["events"]]
        assert states in (["healthy"], ["unknown"])


# XML that is not what it should be


def test_cut_xml_is_told_and_nothing_of_it_counts():
    text = smi.one(changes={"remapped_rows/remapped_row_failure": "Yes"}).rstrip()
    for end in range(len(text) - 1, 0, -7):
        result = parse(text[:end])
        assert [event["spec"]["state"] for event in result["events"]] == ["unknown"]
        if "<nvidia_smi_log>" in text[:end]:
            (item,) = result["unparsed"]
            assert "breaks off" in item["reason"] and item["line"] == text[:end].count("\n") + 1


ENTITIES = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">{}]>\n'
BOMB = ENTITIES.format("".join(f'<!ENTITY b{n} "{"&b" + str(n - 1) + ";" if n else "&b;"}">' for n in range(20)))


@pytest.mark.parametrize(
    "head",
    [
        BOMB,
        '<!DOCTYPE nvidia_smi_log [<!ENTITY file SYSTEM "file:///etc/passwd">]>\n',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY % file SYSTEM "file:///etc/passwd"> %file;]>\n',
    ],
)
def test_entities_are_refused(head):
    text = smi.one().replace('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n', head)
    text = text.replace("NVIDIA H200", "&b;&file;")
    start = time.monotonic()
    result = parse(text)
    assert time.monotonic() - start < 1
    assert [event["spec"]["state"] for event in result["events"]] == ["unknown"]
    assert "root:" not in str(result) and len(result["unparsed"]) == 1


def test_elements_in_each_other_have_an_end():
    result = parse(f"<nvidia_smi_log>{'<a>' * 100_000}</nvidia_smi_log>")
    assert "deeper than 64" in result["unparsed"][0]["reason"]


def test_crlf_and_a_byte_order_mark():
    text = smi.one(changes={"remapped_rows/remapped_row_failure": "Yes"})
    assert one("\ufeff" + text.replace("\n", "\r\n"))["errorCode"] == ["ROW_REMAP_FAILURE"]
    assert one(text.encode())["errorCode"] == ["ROW_REMAP_FAILURE"]


VALUES = st.one_of(
    st.sampled_from(
        ["N/A", "ERR!", "Yes", "No", "Active", "-1", "9" * 30, "1.5 C", "16x", "Enabled", "P99", "\t", "½"]
    ),
    st.text(st.characters(blacklist_characters="<&\0", blacklist_categories=["Cs", "Cc"]), max_size=9),
)


@settings(deadline=None)  # machines under load
@given(st.dictionaries(st.sampled_from(sorted(smi.FIELDS)), VALUES))
def test_any_values_are_read_or_told(changes):
    assert parse(smi.one(changes=changes))["events"]


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@example(b"<nvidia_smi_log>\xff\x00</nvidia_smi_log>")
@example("<nvidia_smi_log/>")
@example("<?xml")
def test_any_bytes_are_read_or_told(data):
    assert parse(data)["events"]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.binary(max_size=6))
def test_damaged_xml_is_read_or_told(at, piece):
    text = smi.one().encode()
    at %= len(text)
    assert parse(text[:at] + piece + text[at:])["events"]


# the filter and its options


def test_the_filter_gives_what_the_parser_gives():
    text = smi.log(smi.gpu(0), smi.gpu(1))
    given = {"node": "gpu-7", "boot_id": BOOT, "received": RECEIVED, "expected_gpus": 2}
    assert parse_nvidia_smi(text, **given) == parse(text, **given)
    assert parse_nvidia_smi(text.split("\n"), **given) == parse(text, **given)


@pytest.mark.parametrize(
    "value, options, words",
    [
        (None, {}, "a text or a list of lines, not NoneType"),
        ({"a": 1}, {}, "a text or a list of lines, not dict"),
        ("x", {"received": "today"}, "received is 'today'"),
        ("x", {"expected_gpus": "many"}, "expected_gpus is 'many'"),
        ("x", {"catalog": ["/nowhere"]}, "no signal tables"),
    ],
)
def test_bad_input_of_the_filter_is_one_clear_error(value, options, words):
    with pytest.raises(AnsibleFilterError, match="parse_nvidia_smi") as caught:
        parse_nvidia_smi(value, **options)
    assert words in str(caught.value)
