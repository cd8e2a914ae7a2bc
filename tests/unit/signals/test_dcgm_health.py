"""DCGM's health report, in all its forms."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import dcgm_health
from ansible_collections.goodput.fleet.plugins.module_utils.signals.dcgm_messages import Messages
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.signals.dcgm import as_json, as_tree
from tests.unit.signals.shipped import BOOT, RECEIVED, TABLES, entities

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
LOST_HOST = (
    "Error: unable to establish a connection to the specified host: localhost\n"
    "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n"
)
OLD = """\
Health Monitor Report
+----------------------------------------------------------------------------+
| Group 4          | Overall Health: Failure                                 |
+==================+=========================================================+
| GPU ID: 2        | Failure                                                 |
|                  | PCIe system: Warning - Detected more than 4 PCIe        |
|                  | replays per minute for GPU 2: 21                        |
|                  | Memory system: Failure - Detected 3 volatile double-bit |
|                  | ECC error(s) in GPU 2.                                  |
+------------------+---------------------------------------------------------+
| GPU ID: 5        | Healthy                                                 |
+------------------+---------------------------------------------------------+
"""


def parse(text, **options) -> dict:
    result = dcgm_health.parse(text, TABLES, **{"node": "gpu-7", "boot_id": BOOT, "received": RECEIVED, **options})
    assert all(GOOD(event) for event in result["events"])
    return result


def specs(text, **options) -> list[dict]:
    result = parse(text, **options)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


def one(text, **options) -> dict:
    (spec,) = specs(text, **options)
    return spec


def failure(message: str, system: str = "Memory system", value: str = "Failure", place=("GPU", "3")) -> str:
    return as_json(value, {place: {system: (value, message)}})


# what an error is

CASES = [
    # message, system, value -> code, space, check, fatal, action
    ("Detected 2 volatile double-bit ECC error(s) in GPU 3. Drain the GPU and reset it or reboot the node.",
     "Memory system", "Failure", "DCGM_FR_VOLATILE_DBE_DETECTED", "dcgm", "GpuMemWatch", True, "COMPONENT_RESET"),
    ("GPU 3 had uncorrectable memory errors and row remapping failed. Run a field diagnostic on the GPU.",
     "Memory system", "Failure", "DCGM_FR_ROW_REMAP_FAILURE", "dcgm", "GpuMemWatch", True, "COMPONENT_RESET"),
    ("GPU 3 had uncorrectable memory errors and row remapping failed. Run a field diagnostic on the GPU.",
     "Memory system", "Warning", "DCGM_FR_ROW_REMAP_FAILURE", "dcgm", "GpuMemWatch", False, "COMPONENT_RESET"),
    ("GPU 3 had uncorrectable memory errors and 4 rows were remapped",
     "Memory system", "Warning", "DCGM_FR_UNCORRECTABLE_ROW_REMAP", "dcgm", "GpuMemWatch", False, "NONE"),
    ("A pending retired page has been detected in GPU 3. Monitor - this GPU can still perform workload",
     "Memory system", "Warning", "DCGM_FR_PENDING_PAGE_RETIREMENTS", "dcgm", "GpuMemWatch", False, "NONE"),
    ("Detected 122 CRC FLIT Error Counter NvLink errors on GPU 3's NVLink which exceeds threshold of 1",
     "NVLINK system", "Warning", "DCGM_FR_NVLINK_ERROR_THRESHOLD", "dcgm", "GpuNvlinkWatch", False, "CONTACT_SUPPORT"),
    ("Detected 2 nvlink_rx_errors NvLink errors on GPU 3's NVLink (should be 0) Run a field diagnostic on the GPU.",
     "NVLINK system", "Failure", "DCGM_FR_NVLINK_ERROR_CRITICAL", "dcgm", "GpuNvlinkWatch", True, "CONTACT_SUPPORT"),
    ("181.4 CRC FLIT NvLink errors found occuring per second on GPU 3, exceeding the limit of 100 per second.",
     "NVLINK system", "Failure", "DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD", "dcgm", "GpuNvlinkWatch", True,
     "CONTACT_SUPPORT"),
    ("Detected 48 Fabric Health: Route Unhealthy for GPU 3", "NVLINK system", "Failure", "DCGM_FR_FIELD_VIOLATION",
     "dcgm", "GpuNvlinkWatch", True, "RESTART_VM"),
    ("IMEX Domain status is DOWN (DOWN)", "NVLINK system", "Failure", "DCGM_FR_IMEX_UNHEALTHY", "dcgm",
     "GpuNvlinkWatch", False, "RECOVER_IMEX_DOMAIN"),
    ("Detected clock throttling due to thermal violation in GPU 3.", "Thermal system", "Warning",
     "DCGM_FR_CLOCK_THROTTLE_THERMAL", "dcgm", "GpuThermalWatch", False, "CONTACT_SUPPORT"),
    ("Detected clocks event due to thermal violation in GPU 3.", "Thermal system", "Warning",
     "DCGM_FR_CLOCKS_EVENT_THERMAL", "dcgm", "GpuThermalWatch", False, "CONTACT_SUPPORT"),
    ("GPU 3 requires a reset to recover from a fault. Recovery action: 1 (GPU_RESET).", "Driver", "Failure",
     "DCGM_FR_GPU_RECOVERY_RESET", "dcgm", "GpuDriverWatch", True, "COMPONENT_RESET"),
    # of all watches together, for which dcgmi has no name
    ("GPU 3 has fallen off the bus", "Internal error", "Failure", "DCGM_FR_FALLEN_OFF_BUS", "dcgm", "GpuHealthWatch",
     True, "RESTART_BM"),
    ("GPU had an uncontained error (XID 95)", "Internal error", "Failure", "DCGM_FR_UNCONTAINED_ERROR", "dcgm",
     "GpuHealthWatch", True, "COMPONENT_RESET"),
    # the Xid decides, not that a watch calls it a failure
    ("Detected XID 31 for GPU 3 Please consult the documentation for details of this XID.", "Memory system", "Failure",
     "31", "xid", "GpuMemWatch", False, "RESTART_APP"),
    ("Detected XID 48 for GPU 3", "Internal error", "Failure", "48", "xid", "GpuHealthWatch", True, "COMPONENT_RESET"),
    ("Detected XID 999 for GPU 3", "Internal error", "Failure", "999", "xid", "GpuHealthWatch", False,
     "CONTACT_SUPPORT"),
    # what nobody described
    ("The flux capacitor of GPU 3 is empty", "Power system", "Failure", None, "dcgm", "GpuPowerWatch", False,
     "CONTACT_SUPPORT"),
    ("Something broke (DCGM_FR_NEXT_YEAR)", "Power system", "Failure", "DCGM_FR_NEXT_YEAR", "dcgm", "GpuPowerWatch",
     False, "CONTACT_SUPPORT"),
]  # fmt: skip


@pytest.mark.parametrize("message, system, value, code, space, check, fatal, action", CASES)
def test_what_an_error_means(message, system, value, code, space, check, fatal, action):
    spec = one(failure(message, system, value))
    assert spec["errorCode"] == ([code] if code else [])
    assert (spec["codeSpace"], spec["checkName"], spec["isFatal"]) == (space, check, fatal)
    assert (spec["recommendedAction"], spec["state"], spec["agent"]) == (action, "sick", "dcgm")
    assert entities(spec)["GPU"] == "3"
    assert (spec["nodeName"], spec["bootId"], spec["receivedTimestamp"]) == ("gpu-7", BOOT, RECEIVED)


def test_json_table_and_data_say_the_same():
    report = {
        ("GPU", "0"): {"PCIe system": ("Warning", CASES[0][0])},
        ("GPU", "11"): {
            "NVLINK system": ("Failure", "GPU 11's NvLink link 4 is currently down Check DCGM and system logs"),
            "Driver": ("Failure", CASES[12][0]),
        },
        ("NvSwitch", "1"): {"Internal error": ("Failure", "Detected fatal errors on NvSwitch 1 link 7")},
        ("CPU", "0"): {"Thermal system": ("Warning", "Detected 96.0 C for CPU:0 which is above the threshold 95.0")},
    }  # fmt: skip
    seen = [specs(form) for form in (as_json("Failure", report), as_tree("Failure", report))]
    seen.append(specs(json.loads(as_json("Failure", report))))
    seen.append(specs(as_tree("Failure", report).replace("\n", "\r\n")))
    for spec in [spec for form in seen for spec in form]:
        spec.pop("source")
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert [spec["componentClass"] for spec in seen[0]] == ["GPU", "GPU", "GPU", "NVSWITCH", "CPU"]
    assert entities(seen[0][3]) == {"NVSWITCH": "1", "NVLINK": "7"}


def test_the_table_of_older_releases():
    pcie, memory, healthy = specs(OLD)
    assert (pcie["errorCode"], pcie["checkName"]) == (["DCGM_FR_PCI_REPLAY_RATE"], "GpuPcieWatch")
    assert pcie["message"] == "Detected more than 4 PCIe replays per minute for GPU 2: 21"
    assert (memory["errorCode"], memory["isFatal"]) == (["DCGM_FR_VOLATILE_DBE_DETECTED"], True)
    assert entities(memory) == {"GPU": "2"}
    assert (healthy["state"], entities(healthy)) == ("healthy", {"GPU": "5"})


def test_messages_that_dcgmi_joins_are_told_apart_and_links_of_one_gpu_are_one_event():
    links = ", ".join(f"GPU 3's NvLink link {link} is currently down Check DCGM and logs" for link in range(18))
    down, off = specs(failure(f"{links}, GPU 3 has fallen off the bus", "NVLINK system"))
    assert (down["errorCode"], down["metadata"]["count"]) == (["DCGM_FR_NVLINK_DOWN"], "18")
    links = [entity["entityValue"] for entity in down["entitiesImpacted"] if entity["entityType"] == "NVLINK"]
    assert links == [str(link) for link in range(18)]
    assert off["errorCode"] == ["DCGM_FR_FALLEN_OFF_BUS"]
    codes = [spec["errorCode"] for spec in specs(failure("Detected XID 48 for GPU 3, Detected XID 63 for GPU 3"))]
    assert codes == [["48"], ["63"]]


def test_every_message_of_the_table_is_found_again():
    messages = Messages(TABLES.of("dcgm"))
    for code, (entry,) in TABLES.of("dcgm").entries.items():
        for message in entry.get("messages", ()):
            assert messages.split(f"{message.replace('*', '7')} and what follows") == [
                (code, f"{message.replace('*', '7')} and what follows")
            ]


def test_uuids_where_they_are_known():
    spec = one(failure("GPU 3 has fallen off the bus"), index_to_uuid={3: "GPU-3f"})
    assert entities(spec) == {"GPU": "3", "GPU_UUID": "GPU-3f"}


DISCOVERY = """\
2 GPUs found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 2      | Name: NVIDIA H200                                                    |
|        | PCI Bus ID: 00000000:1B:00.0                                         |
|        | Device UUID: GPU-2c1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708                |
+--------+----------------------------------------------------------------------+
| 3      | Name: NVIDIA H200                                                    |
|        | PCI Bus ID: 00000000:3B:00.0                                         |
|        | Device UUID: GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708                |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
"""


@pytest.mark.parametrize("form", [as_json, as_tree])
@pytest.mark.parametrize("discovery_first", [True, False])
def test_the_devices_that_dcgm_discovered_give_numbers_a_name(form, discovery_first):
    report = form("Failure", {("GPU", "3"): {"Driver": ("Failure", "GPU 3 has fallen off the bus")}})
    spec = one(DISCOVERY + report if discovery_first else report + DISCOVERY, expected_gpus=2)
    assert spec["message"] == "GPU 3 has fallen off the bus"
    uuid = "GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708"
    assert entities(spec) == {"GPU": "3", "PCI": "0000:3b:00", "GPU_UUID": uuid}


# what is healthy, and who is blind


def test_a_healthy_report_is_one_healthy_event():
    spec = one("Health monitor systems report\n" + as_json("Healthy", {}))
    assert (spec["state"], spec["isHealthy"], spec["severity"], spec["entitiesImpacted"]) == (
        "healthy",
        True,
        "info",
        [],
    )
    assert one(as_tree("Healthy", {}))["state"] == "healthy"


@pytest.mark.parametrize(
    "text, code",
    [
        (LOST_HOST, ["DCGM_FR_HOSTENGINE_CONN"]),
        (LOST_HOST.replace("\n", "\r\n"), ["DCGM_FR_HOSTENGINE_CONN"]),
        ("Error: Unable to check health watches. Return: Timeout\n", ["DCGM_FR_HOSTENGINE_CONN"]),
        ("Error: Unable to check health watches. Return: Host engine connection invalid/disconnected", None),
        ("Error: Health watches not enabled. Please enable watches. \n", []),
        ("Error: Unable to check health watches. Return: The Group is not found\n", []),
        ("bash: dcgmi: command not found\n", []),
        ("", []),
        ("\n \n", []),
        ("noise\n", []),
        (as_json("Internal error", {}), []),
        (as_json("Failure", {("GPU", "1"): {"SM system": ("Internal error", "x")}}).replace("Failure", ""), []),
        ('{"body": {"PCIe": {"value": "Off"}, "Memory": {"value": "Off"}}}', []),
    ],
)
def test_a_monitor_that_sees_nothing_is_blind_and_calls_no_gpu_sick(text, code):
    spec = one(text)
    assert (spec["state"], spec["isFatal"], spec["isHealthy"], spec["severity"]) == ("unknown", False, False, "warning")
    assert code is None or spec["errorCode"] == code


def test_an_answer_of_dcgm_about_a_gpu_is_no_blindness():
    spec = one("Error: Unable to check health watches. Return: GPU is lost\n")
    assert (spec["state"], spec["errorCode"], spec["isFatal"]) == ("sick", ["DCGM_FR_FALLEN_OFF_BUS"], True)


def test_a_failure_without_a_word_why():
    spec = one(as_json("Failure", {}))
    assert (spec["state"], spec["isFatal"], spec["recommendedAction"]) == ("sick", False, "CONTACT_SUPPORT")
    spec = one('{"body": {"Overall Health": {"value": "Failure"}, "GPU": {"children": {"4": {"value": "Failure"}}}}}')
    assert (entities(spec), spec["recommendedAction"], spec["isFatal"]) == ({"GPU": "4"}, "CONTACT_SUPPORT", False)


def test_watches_that_are_on_say_nothing_of_health():
    assert specs('Health monitor systems report\n{"body": {"PCIe": {"value": "On"}, "SM": {"value": "Off"}}}') == []


@pytest.mark.parametrize(
    "found, expected, state, code",
    [
        ("0 GPUs found.", 8, "sick", "GPU_COUNT_LOW"),
        ("No GPUs found.", 8, "sick", "GPU_COUNT_LOW"),
        ("7 GPUs found.", 8, "sick", "GPU_COUNT_LOW"),
        ("9 GPUs found.", 8, "sick", "GPU_COUNT_HIGH"),
        ("8 GPUs found.", 8, "healthy", None),
        ("0 GPUs found.", None, "healthy", None),
    ],
)
def test_zero_gpus_where_some_are_expected_are_sick_though_dcgm_says_healthy(found, expected, state, code):
    spec = one(f"{found}\n{as_json('Healthy', {})}", expected_gpus=expected)
    assert (spec["state"], spec["errorCode"]) == (state, [code] if code else [])
    assert spec["isFatal"] == (code == "GPU_COUNT_LOW")


# what cannot be read


def test_a_cut_report_is_told_and_its_end_is_not_guessed():
    text = as_json("Failure", {("GPU", "3"): {"Memory system": ("Failure", "Detected XID 31 for GPU 3")}})
    whole = specs(text)
    for end in range(len(text.rstrip()) - 1, 0, -1):
        result = parse(text[:end])
        assert [event["spec"]["state"] for event in result["events"]] == ["unknown"]
        assert len(result["unparsed"]) == 1 and "breaks off" in result["unparsed"][0]["reason"]
    assert specs(text.rstrip()) == [{**whole[0]}]


def test_a_cut_report_behind_a_count_is_told_too():
    result = parse('8 GPUs found.\n{"body": {"Overall', expected_gpus=8)
    assert [event["spec"]["state"] for event in result["events"]] == ["unknown"]
    assert specs("8 GPUs found.\n", expected_gpus=8) == []


def test_a_cut_table_never_tells_another_fault():
    text = as_tree("Failure", {("GPU", "3"): {"Memory system": ("Failure", "Detected XID 314 for GPU 3")}})
    (whole,) = specs(text)
    for end in range(len(text)):
        for spec in [event["spec"] for event in parse(text[:end])["events"]]:
            assert spec["errorCode"] in ([], whole["errorCode"]) and not spec["isFatal"]


def test_a_report_is_the_same_event_each_time_it_is_read():
    first = parse(failure("Detected more than 8 PCIe replays per minute for GPU 3 : 13", "PCIe system", "Warning"))
    again = parse(failure("Detected more than 8 PCIe replays per minute for GPU 3 : 99", "PCIe system", "Warning"))
    assert first["events"][0]["metadata"] == again["events"][0]["metadata"]
    other = parse(failure("Detected more than 8 PCIe replays per minute for GPU 3 : 13", place=("GPU", "4")))
    assert first["events"][0]["metadata"] != other["events"][0]["metadata"]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"expected_gpus": "8"}, "expected_gpus is '8'"),
        ({"expected_gpus": -1}, "expected_gpus is -1"),
        ({"expected_gpus": True}, "expected_gpus is True"),
        ({"received": "today"}, "received is 'today'"),
        ({"index_to_uuid": ["GPU-1"]}, "index_to_uuid is"),
        ({"index_to_uuid": {"gpu0": "GPU-1"}}, "index_to_uuid is"),
    ],
)
def test_options_that_cannot_be_are_one_clear_error(options, words):
    with pytest.raises(FleetError) as caught:
        parse("", **options)
    assert words in str(caught.value)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.sampled_from(["Failure"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["value", "children", "overflow", "Errors", "0", "x"]), inner, max_size=5),
    ),
    max_leaves=12,
)


@settings(deadline=None)  # machines under load
@given(st.dictionaries(st.sampled_from(["Overall Health", "GPU", "NvSwitch", "PCIe", "x"]), JSON))
@example({"GPU": {"children": {"0": {"value": "Failure", "children": {"Errors": {"children": {"x": "Failure"}}}}}}})
def test_json_of_any_shape_is_read_or_told(body):
    result = parse({"body": body})
    assert result["events"] or result["unparsed"] or not body or "PCIe" in body or "x" in body or "GPU" in body
    parse(json.dumps({"body": body}))


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@example(b"{" * 20_000)
@example('{"body": {"Overall Health": {"value": ' + "9" * 5000 + "}}}")
@example(b"\xff\xfe|\x00|")
@example("| -> 0 | Failure |\n|       -> x | Failure |\n| | y |")
def test_any_bytes_are_read_or_told(data):
    result = parse(data)
    assert result["events"]


@settings(deadline=None)
@given(st.integers(0, 5000), st.binary(max_size=6))
def test_a_damaged_report_is_read_or_told(at, piece):
    text = as_tree("Failure", {("GPU", "3"): {"Memory system": ("Failure", "Detected XID 31 for GPU 3")}}).encode()
    at %= len(text)
    assert parse(text[:at] + piece + text[at:])["lines"] >= 1
