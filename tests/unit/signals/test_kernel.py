"""What the driver prints, and what an operator must be told about it."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent

from tests.unit.signals.shipped import BOOT, RECEIVED, entities, one, parse, specs

UUID = "GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708"
FALLEN = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."
GOOD = quickcheck.compile_schema(healthevent.SCHEMA)


def test_an_event_says_which_gpu_of_which_boot_what_to_do_and_where_it_was_read():
    lines = [
        f"[   11.5] NVRM: GPU at PCI:0000:3b:00: {UUID}",
        "[   11.6] NVRM: GPU Board Serial Number: 1650099000001",
        f"[   11.7] {FALLEN}",
    ]
    result = parse("\n".join(lines), boot_time="2026-11-29T17:00:00Z")
    (event,) = result["events"]
    assert GOOD(event)
    assert result["lines"] == 3
    spec = event["spec"]
    assert spec["message"] == "Xid 79, GPU fell off the PCIe bus at 0000:3b:00: GPU has fallen off the bus."
    assert {key: spec[key] for key in spec if key not in ("message", "metadata")} == {
        "nodeName": "gpu-0007",
        "agent": "kernel-log",
        "componentClass": "GPU",
        "checkName": "SysLogsXIDError",
        "isFatal": True,
        "isHealthy": False,
        "state": "sick",
        "severity": "fatal",
        "errorCode": ["79"],
        "codeSpace": "xid",
        "entitiesImpacted": [
            {"entityType": "PCI", "entityValue": "0000:3b:00"},
            {"entityType": "GPU_UUID", "entityValue": UUID},
        ],
        "recommendedAction": "RESTART_BM",
        "generatedTimestamp": "2026-11-29T17:00:11.7Z",
        "receivedTimestamp": RECEIVED,
        "bootId": BOOT,
        "source": {"name": "kern.log", "line": 3, "text": f"[   11.7] {FALLEN}"},
        "cause": None,
    }
    assert spec["metadata"]["pid"] == "4711"
    assert spec["metadata"]["process"] == "python3"


@pytest.mark.parametrize(
    "line, code, device",
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "79", "0000:3b:00"),
        ("NVRM: Xid (PCI:0000:3b:00.0): 79, pid=7, name=nv-hostengine", "79", "0000:3b:00"),
        ("NVRM: Xid (0000:3b:00): 14, Channel 00000001", "14", "0000:3b:00"),
        ("nvrm:  xid ( pci:0000:00:1E.0 ) : 43, channel 0x1", "43", "0000:00:1e"),
        ("NVRM: Xid (PCI:0021:06:00): 48, x", "48", "0021:06:00"),
        ("NVRM: Xid (PCI:10000:e1:00): 48, x", "48", "10000:e1:00"),
        ("NVRM: Xid (PCI:00000000:3B:00): 48, x", "48", "0000:3b:00"),
        ("NVRM: Xid (PCI:3b:00.0): 48, x", "48", "0000:3b:00"),
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid=7, Contained: CE User Channel", "94", "0000:3b:00"),
        ("NVRM: Xid (PCI:0000:3b:00): 64", "64", "0000:3b:00"),
        ("NVRM: Xid (PCI:0000:3b:00): 64 ", "64", "0000:3b:00"),
        ("NVRM: Xid (PCI:0000:3b:00): 064, x", "64", "0000:3b:00"),
        ("NVRM: GPU0: Xid (PCI:0000:3b:00): 64, x", "64", "0000:3b:00"),
    ],
)
def test_shapes_of_an_xid(line, code, device):
    spec = one(line)
    assert spec["errorCode"] == [code]
    assert entities(spec)["PCI"] == device


@pytest.mark.parametrize(
    "rest, pid, process, text",
    [
        ("pid=12, name=python3, Ch 00000007", "12", "python3", "Ch 00000007"),
        ("pid='<unknown>', name=<unknown>, Ch 00000007", None, None, "Ch 00000007"),
        ("pid='<unknown>', name='<unknown>', Ch 00000007", None, None, "Ch 00000007"),
        ("pid='12', name='my job', Ch 00000007", "12", "my job", "Ch 00000007"),
        ('pid="12", name="a, b", Ch 00000007', "12", "a, b", "Ch 00000007"),
        ("pid=12, Ch 00000007", "12", None, "Ch 00000007"),
        ("pid=12, name=ray::Worker", "12", "ray::Worker", ""),
        ("Ch 00000007", None, None, "Ch 00000007"),
        ("", None, None, ""),
    ],
)
def test_process_and_body(rest, pid, process, text):
    spec = one(f"NVRM: Xid (PCI:0000:3b:00): 8, {rest}")
    assert spec["metadata"].get("pid") == pid
    assert spec["metadata"].get("process") == process
    assert spec["message"] == "Xid 8, a channel made no progress at 0000:3b:00" + (f": {text}" if text else "")


def test_a_device_in_a_form_nobody_knows_is_still_a_fault():
    spec = one("NVRM: Xid (GPU-slot-4): 79, GPU has fallen off the bus.")
    assert spec["isFatal"] and spec["entitiesImpacted"] == []
    assert spec["metadata"]["device"] == "GPU-slot-4"


def test_an_instance_of_a_shared_gpu_is_named():
    spec = one("NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:01): 94, pid=7, name=x, Contained")
    assert spec["metadata"]["gpuInstance"] == "5"
    assert spec["metadata"]["computeInstance"] == "1"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Graphics SM Warp Exception on (GPC 4, TPC 6, SM 1): Illegal", {"GPC": "4", "TPC": "6", "SM": "1"}),
        ("Graphics Exception: ESR 0x52f730=0xd000e", {}),
        ("Ch 00000012, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC5 GPCCLIENT_T1_3 faulted", {"GPC": "5"}),
    ],
)
def test_where_in_the_gpu(text, expected):
    spec = one(f"NVRM: Xid (PCI:0000:3b:00): 13, pid=7, name=x, {text}")
    assert entities(spec) == {"PCI": "0000:3b:00", **expected}
    assert (spec["isFatal"], spec["recommendedAction"]) == (False, "RESTART_APP")


def test_link_and_registers_of_an_xid_74():
    spec = one("NVRM: Xid (PCI:0005:00:00): 74, NVLink: fatal error detected on link 6(0x0, 0x4, 0x0, 0x20000)")
    assert entities(spec)["NVLINK"] == "6"
    assert spec["metadata"]["registers"] == "0x0 0x4 0x0 0x20000"


# what is no fault of the node


@pytest.mark.parametrize("code", ["13", "31", "43", "45"])
def test_a_users_error_takes_no_node_out(code):
    spec = one(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=7, name=train, whatever")
    assert not spec["isFatal"]
    assert spec["severity"] == "warning"
    assert spec["metadata"]["class"] in ("application", "consequence")


def test_an_echo_names_its_cause():
    spec = one("NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=x, Ch 00000010 caused by previous Xid 149")
    assert spec["metadata"]["causeCode"] == "149"
    assert spec["metadata"]["consequenceOf"] == "*"


def test_out_of_memory_and_segfaults_are_no_events():
    assert parse(
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=Xid_train,pid=7\n"
        "oom_reaper: reaped process 7 (vector), now anon-rss:0kB\n"
        "pt_main_thread[77]: segfault at 7f79 ip 00007f7c sp 00007f7c error 4 in libtorch.so[7f11aa000000+1000]\n"
        "NVRM: RPC sequence number 119 acknowledged\n"
        "a sentence about Xid errors\n"
    ) == {"events": [], "unparsed": [], "unparsedTotal": 0, "ignored": {}, "lines": 5}


def test_a_reset_that_can_wait_is_noted_and_asks_for_nothing_now():
    spec = one(
        "NVRM: Xid (PCI:0000:3b:00): 63, pid=7, Row Remapper: New row marked for remapping, reset gpu to activate"
    )
    assert (spec["recommendedAction"], spec["isFatal"]) == ("NONE", False)
    assert spec["metadata"]["deferredAction"] == "COMPONENT_RESET"


def test_a_code_nobody_described_is_never_dropped_and_takes_nothing_out():
    spec = one("NVRM: Xid (PCI:0000:3b:00): 99999, pid=5, name=<unknown>, words of next year")
    assert spec["errorCode"] == ["99999"]
    assert (spec["recommendedAction"], spec["isFatal"], spec["severity"]) == ("CONTACT_SUPPORT", False, "error")
    assert spec["metadata"]["unknownCode"] == "true"


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid error: xyz, invalid data",
        "NVRM: Xid (unknown): some error",
        "NVRM: Xid (PCI:0000:65:00): invalid",
        "NVRM: Xid (PCI:0000:65:00): 79abc",
        "NVRM: Xid (PCI:0000:65:00): 12345678, x",
        "NVRM: Xid (PCI:0000:65:00)",
        "NVRM: Xid (PCI:0000:65:",
        "NVRM: Xid: 31",
        "nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): abc, Fatal error",
        "nvidia-nvswitch0: SXid (unknown): some error",
        "nvidia-nvswitch0: SXid",
        "NVRM: fallen off the bus and is not responding to commands.",
        "GPU reset executed: GPU-1, success: perhaps",
    ],
)
def test_what_looks_like_a_signal_and_cannot_be_read_is_kept(line):
    result = parse(f"first\n[   17.2] {line}\nlast")
    assert result["events"] == []
    (kept,) = result["unparsed"]
    assert (kept["line"], kept["text"]) == (2, f"[   17.2] {line}")
    assert kept["reason"]


def test_a_log_of_nothing_but_nonsense_does_not_become_a_result_of_its_size():
    result = parse("NVRM: Xid (PCI:0000:65:00)\n" * 5000)
    assert (len(result["unparsed"]), result["unparsedTotal"]) == (1000, 5000)


# Xid 154


@pytest.mark.parametrize(
    "text, action, fatal, state",
    [
        ("0x0 (None) to 0x1 (GPU Reset Required)", "COMPONENT_RESET", True, "sick"),
        ("0x0 (None) to 0x1 (PF FLR)", "COMPONENT_RESET", True, "sick"),
        ("0x0 (None) to 0x2 (OS Reboot)", "RESTART_BM", True, "sick"),
        ("0x0 (None) to 0x3 (Drain P2P)", "DRAIN_P2P", False, "sick"),
        ("0x0 (None) to 0x4 (Drain and Reset)", "DRAIN_RESET", True, "sick"),
        ("0x4 (Drain and Reset) to 0x0 (None)", "NONE", False, "healthy"),
        ("0x0 to 0x2", "RESTART_BM", True, "sick"),
        ("0x0 (None) to 0x7 (", "RESTART_BM", True, "sick"),
        ("0X0 (NONE) TO 0X2 (A WORD OF NEXT YEAR)", "RESTART_BM", True, "sick"),
    ],
)
def test_the_drivers_verdict_counts_by_its_code(text, action, fatal, state):
    spec = one(f"NVRM: Xid (PCI:0013:06:00): 154, GPU recovery action changed from {text}")
    assert (spec["recommendedAction"], spec["isFatal"], spec["state"]) == (action, fatal, state)
    assert spec["isHealthy"] == (state == "healthy")
    assert spec["metadata"]["overrides"] == "true"
    assert "wordsBelongTo" not in spec["metadata"]


def test_words_of_another_code_are_noted_and_do_not_count():
    spec = one("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (Drain and Reset)")
    assert spec["recommendedAction"] == "COMPONENT_RESET"
    assert spec["metadata"]["wordsBelongTo"] == "0x4"


@pytest.mark.parametrize(
    "text", ["GPU recovery action changed from 0x0 (None) to 0x9 (New)", "GPU recovery action changed", ""]
)
def test_a_verdict_that_cannot_be_read_needs_a_person(text):
    spec = one(f"NVRM: Xid (PCI:0000:3b:00): 154, {text}")
    assert (spec["recommendedAction"], spec["isFatal"]) == ("CONTACT_SUPPORT", False)


def test_a_process_cannot_write_the_verdict():
    spec = one(
        "NVRM: Xid (PCI:0000:3b:00): 154, pid=7, name=from 0x0 to 0x0, "
        "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    )
    assert spec["recommendedAction"] == "RESTART_BM"


def test_a_verdict_that_comes_back_is_news():
    change = "[{}.0] NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x{} (x) to 0x{} (x)"
    found = specs(*(change.format(*numbers) for numbers in ((10, 0, 1), (11, 1, 0), (12, 0, 1), (13, 0, 1))))
    assert [(spec["source"]["line"], spec["metadata"]["recoveryTo"]) for spec in found] == [
        (1, "0x1"),
        (2, "0x0"),
        (3, "0x1"),
    ]


# Xid 144-150

NETIR = "NVRM: Xid (PCI:0012:06:00): 149, {}"


def test_a_lost_link_is_decoded():
    spec = one(NETIR.format("NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021169c6 0x00000000 0x00000000 0x00000000)"))
    assert entities(spec) == {"PCI": "0012:06:00", "NVLINK": "1"}
    assert (spec["recommendedAction"], spec["isFatal"]) == ("COMPONENT_RESET", True)
    assert spec["metadata"]["unit"] == "NETIR_LINK_EVT"
    assert spec["metadata"]["look"] == "INVESTIGATE_PEER_DEVICE"
    assert spec["metadata"]["intrInfo"] == "0x021169c6"


def test_bit_errors_of_a_link_take_nothing_out():
    spec = one(
        NETIR.format("pid=7, name=x, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x000c8a26 0x00000001 0x00000000)")
    )
    assert (spec["recommendedAction"], spec["isFatal"], spec["severity"]) == ("NONE", False, "warning")


def test_a_fault_without_link_has_no_link():
    spec = one(NETIR.format("NETIR Fatal XC0 i0 Link -1 (0x000c1406 0x00000000 0x00000000)"))
    assert entities(spec) == {"PCI": "0012:06:00"}
    assert spec["isFatal"]


@pytest.mark.parametrize(
    "text, fatal",
    [
        ("NETIR_LINK_EVT Fatal XC 2 i 1 Link 03 [0x0000000c]", True),
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021169", True),
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 01", True),
        ("NEXT_UNIT Nonfatal XC 01 i 01 Link 04 (0x00000007)", False),
        ("NETIR_LINK_EVT Fata", False),
        ("driver-specific detail", False),
        ("", False),
    ],
)
def test_without_a_row_the_lines_own_word_counts(text, fatal):
    spec = one(NETIR.format(text))
    assert (spec["recommendedAction"], spec["isFatal"]) == ("CONTACT_SUPPORT", fatal)


def test_the_log_tells_the_drivers_version():
    lines = [
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build",
        # 0x11 are the lowest bits of a lost link from 575 on
        NETIR.format("NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x00000011 0x00000000)"),
    ]
    assert one(lines[0].format("580.105.08"), lines[1])["metadata"]["decoded"] == "v2"
    assert one(lines[0].format("570.86.15"), lines[1])["metadata"]["decoded"] == "no"
    assert one(lines[1])["metadata"]["decoded"] == "v2"


# SXid

SXID = "[90210.55{}] nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): 20034, {}"
HEAD = SXID.format("0743", "Fatal, Link 22 LTSSM Fault Up")
SEVERITY = SXID.format("0754", "Severity 1 Engine instance 22 Sub-engine instance 00")
DATA = SXID.format("0758", "Data {0x41720003, 0x20200048, 0x00000000}")


def test_three_lines_are_one_event():
    spec = one(HEAD, "[90210.551750] something between", SEVERITY, DATA)
    assert entities(spec) == {"PCI": "0000:e4:00", "NVSWITCH": "0", "NVLINK": "22"}
    assert spec["componentClass"] == "NVSWITCH"
    assert (spec["isFatal"], spec["recommendedAction"], spec["source"]["line"]) == (True, "COMPONENT_RESET", 1)
    wanted = {"severityLevel": "1", "engineInstance": "22", "data": "0x41720003 0x20200048 0x00000000", "count": "1"}
    assert wanted.items() <= spec["metadata"].items()


def test_a_part_that_comes_much_later_belongs_to_another_error():
    late = [line.replace("[90210", "[95210") for line in (SEVERITY, DATA)]
    first, second = specs(HEAD, *late)
    assert "data" not in first["metadata"]
    assert second["metadata"]["partial"] == "true"


def test_triples_of_two_switches_are_not_mixed():
    other = [line.replace("nvswitch0", "nvswitch1").replace("e4:", "e5:") for line in (HEAD, SEVERITY, DATA)]
    first, second = specs(HEAD, other[0], SEVERITY, other[1], other[2].replace("0x41720003", "0x2"), DATA)
    assert first["metadata"]["data"].startswith("0x41720003")
    assert second["metadata"]["data"].startswith("0x2 ")


def test_a_part_whose_head_is_lost_is_an_event_of_its_own():
    spec = one(SEVERITY, DATA)
    assert spec["isFatal"]
    assert spec["metadata"]["partial"] == "true"
    assert not one(SEVERITY.replace("Severity 1", "Severity 0"))["isFatal"]


@pytest.mark.parametrize(
    "text, fatal, action",
    [
        ("20009, Non-fatal, Link 11 RX Short Error Rate", False, "NONE"),
        ("20009, Non-fatal, Li", False, "NONE"),
        ("10001, Non-fatal, PRI WRITE SYSB error, instance=5, chiplet=0", False, "NONE"),
        ("10001, Fatal, PRI WRITE SYSB error", True, "CONTACT_SUPPORT"),
        ("20034, Non-fatal, Link 22 LTSSM Fault Up", False, "CONTACT_SUPPORT"),
        ("29017, Non-fatal, Link 12 some unit error (First)", False, "CONTACT_SUPPORT"),
        ("29017, Fatal, Link 46", True, "CONTACT_SUPPORT"),
        ("22003, Fatal, Link 46 Minion halt", True, "RESTART_BM"),
        ("22003", True, "RESTART_BM"),
    ],
)
def test_the_switch_drivers_own_word_comes_first(text, fatal, action):
    spec = one(f"nvidia-nvswitch1: SXid (PCI:0000:d5:00.0): {text}")
    assert (spec["isFatal"], spec["recommendedAction"]) == (fatal, action)


# fallen off the bus


@pytest.mark.parametrize(
    "lines",
    [
        ["NVRM: GPU 0000:6b:00.0: GPU has fallen off the bus."],
        ["NVRM: GPU 6b:00.0: GPU has fallen off the bus."],
        ["NVRM: GPU at PCI:0000:6b:00: GPU has fallen off the bus."],
        ["NVRM: GPU 0000:6b:00.0 has fallen off the bus and is not responding"],
        [
            "NVRM: The NVIDIA GPU 0000:6b:00.0",
            "NVRM: (PCI ID: 10de:2321) installed in this system has",
            "NVRM: fallen off the bus and is not responding to commands.",
        ],
        [
            "NVRM: The NVIDIA GPU 0000:6b:00.0 (PCI ID: 10de:2321)",
            "audit: something else",
            "NVRM: installed in this system has fallen off the bus and is not",
            "NVRM: responding to commands.",
        ],
        [
            "NVRM: Xid (PCI:0000:6b:00): 79, pid=3344, GPU has fallen off the bus.",
            "NVRM: GPU 0000:6b:00.0: GPU has fallen off the bus.",
        ],
    ],
)
def test_every_way_to_say_that_a_gpu_is_gone_is_one_event(lines):
    spec = one(*(f"[  100.{number}] {line}" for number, line in enumerate(lines)))
    assert spec["errorCode"] == ["79"]
    assert entities(spec) == {"PCI": "0000:6b:00"}
    assert (spec["isFatal"], spec["recommendedAction"], spec["source"]["line"]) == (True, "RESTART_BM", 1)


def test_two_gpus_gone_are_two_events():
    found = specs(
        *(f"NVRM: The NVIDIA GPU 0000:{bus}:00.0\nNVRM: (x) has\nNVRM: fallen off the bus and" for bus in ("5e", "6b"))
    )
    assert [(entities(spec)["PCI"], spec["source"]["line"]) for spec in found] == [("0000:5e:00", 1), ("0000:6b:00", 4)]


def test_events_stand_in_the_order_of_the_log():
    lines = ["NVRM: The NVIDIA GPU 0000:5e:00.0", "NVRM: Xid (PCI:0000:3b:00): 48, x", "NVRM: fallen off the bus and"]
    assert [spec["source"]["line"] for spec in specs(*lines)] == [1, 2]


def test_an_old_announcement_is_not_the_gpu_that_is_gone():
    lines = ["NVRM: The NVIDIA GPU 0000:5e:00.0", *["noise"] * 40, "NVRM: fallen off the bus and is not responding"]
    result = parse(lines)
    assert result["events"] == []
    assert result["unparsed"][0]["line"] == 42


# NICs


@pytest.mark.parametrize(
    "message, code, fatal, found",
    [
        (
            "mlx5_core 0000:c5:00.1: wait_func:1137:(pid 1): ENABLE_HCA(0x104) timeout. Will cause a leak of a command",
            "cmd_exec_timeout",
            True,
            {"NIC": "0000:c5:00.1", "PCI": "0000:c5:00"},
        ),
        (
            "mlx5_core 0000:82:00.0: poll_health:861:(pid 0): device's health compromised - reached miss count",
            "health_poll_failed",
            True,
            {"NIC": "0000:82:00.0", "PCI": "0000:82:00"},
        ),
        (
            "mlx5_core 0000:82:00.0: print_health_info:466:(pid 0): synd 0x8: unrecoverable hardware error",
            "unrecoverable_err",
            True,
            {"NIC": "0000:82:00.0", "PCI": "0000:82:00"},
        ),
        (
            "NETDEV WATCHDOG: ens5f0np0 (mlx5_core): transmit queue 3 timed out",
            "netdev_watchdog",
            False,
            {"NETDEV": "ens5f0np0"},
        ),
        (
            "NETDEV WATCHDOG: CPU: 3: ens5 (ena): transmit queue 3 timed out 5120 ms",
            "netdev_watchdog",
            False,
            {"NETDEV": "ens5"},
        ),
        (
            "mlx5_core 0000:9d:00.0: mlx5_pcie_event:305:(pid 2): Detected insufficient power on the PCIe slot (27W).",
            "pci_power_insufficient",
            False,
            {"NIC": "0000:9d:00.0", "PCI": "0000:9d:00"},
        ),
        (
            "mlx5_port_module_event:1140:(pid 0): Port module event[error]: module 2, Cable error, High Temperature",
            "port_module_high_temp",
            False,
            {"PORT_MODULE": "2"},
        ),
        (
            "mlx5_core 0000:84:00.1: Port module event: module 1, Cable unplugged",
            "module_unplugged",
            False,
            {"NIC": "0000:84:00.1", "PCI": "0000:84:00", "PORT_MODULE": "1"},
        ),
        (
            "mlx5_cmd_out_err:845:(pid 7): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3), err(-22)",
            "access_reg_failed",
            False,
            {},
        ),
    ],
)
def test_network_drivers(message, code, fatal, found):
    spec = one(f"[   21.400733] {message}")
    assert (spec["errorCode"], spec["codeSpace"], spec["componentClass"]) == ([code], "nic", "NIC")
    assert (spec["isFatal"], spec["recommendedAction"]) == (fatal, "REPLACE_VM" if fatal else "NONE")
    assert entities(spec) == found


def test_network_drivers_say_much_that_is_no_fault():
    assert (
        specs(
            "mlx5_core 0000:82:00.0 ens1f0np0: Link up",
            "mlx5_core 0000:82:00.0: Port module event: module 0, Cable plugged",
            "mlx5_core 0000:82:00.0: mlx5_pcie_event:294:(pid 9): PCIe slot advertised sufficient power (27W).",
        )
        == []
    )


def test_a_host_may_be_called_like_a_driver():
    assert one(f"May 21 09:14:33 mlx5-node-3 kernel: {FALLEN}")["errorCode"] == ["79"]


# resets


def test_a_reset_that_worked_takes_back_and_one_that_failed_is_a_fault():
    told = f"NVRM: GPU at PCI:0000:3b:00: {UUID}"
    good, bad = specs(told, f"GPU reset executed: {UUID}, success: true", f"GPU reset executed: {UUID}, success: false")
    assert (good["isHealthy"], good["state"], good["isFatal"], good["errorCode"]) == (True, "healthy", False, [])
    assert entities(good) == {"GPU_UUID": UUID, "PCI": "0000:3b:00"}
    assert (bad["isHealthy"], bad["isFatal"], bad["recommendedAction"]) == (False, True, "CONTACT_SUPPORT")


def test_a_fault_after_a_reset_is_news():
    fault = "[{}.0] NVRM: Xid (PCI:0000:3b:00): 95, Uncontained"
    found = specs(
        fault.format(10), fault.format(11), f"[12.0] GPU reset executed: {UUID}, success: true", fault.format(13)
    )
    assert [(spec["source"]["line"], spec["isHealthy"]) for spec in found] == [(1, False), (3, True), (4, False)]


# repeats


def test_a_storm_is_one_event():
    lines = [
        f"[{2000 + number / 10:.6f}] NVRM: Xid (PCI:0000:9b:00): 95, pid={number}, name=x, Uncontained"
        for number in range(20_000)
    ]
    spec = one(*lines)
    assert spec["source"]["line"] == 1
    assert {"count": "20000", "lastLine": "20000", "kernelTime": "2000.000000"}.items() <= spec["metadata"].items()
    assert spec["metadata"]["lastKernelTime"] == "3999.900000"


def test_a_repeat_after_a_pause_is_news():
    fault = "[{}.5] NVRM: Xid (PCI:0000:9b:00): 95, Uncontained"
    assert [spec["metadata"]["count"] for spec in specs(*(fault.format(at) for at in (10, 100, 270, 451)))] == [
        "3",
        "1",
    ]


def test_other_gpus_codes_nodes_and_units_are_not_repeats():
    lines = [
        "NVRM: Xid (PCI:0000:9b:00): 95, x",
        "NVRM: Xid (PCI:0001:9b:00): 95, x",
        "NVRM: Xid (PCI:0000:9b:00): 94, x",
        "May 21 09:14:33 a kernel: NVRM: Xid (PCI:0000:9b:00): 95, x",
        "May 21 09:14:33 b kernel: NVRM: Xid (PCI:0000:9b:00): 95, x",
        NETIR.format("NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021169c6 0x00000000)"),
        NETIR.format("NETIR_LINK_EVT Fatal XC0 i0 Link 02 (0x0211b1c6 0x00000000)"),
        NETIR.format("NETIR_BER_EVENT Nonfatal XC0 i0 Link 01 (0x00091226 0x00000001)"),
    ]
    found = parse("\n".join(lines), node="")["events"]
    assert len(found) == len(lines)
    assert len({event["metadata"]["name"] for event in found}) == len(lines)
    assert {event["spec"]["nodeName"] for event in found} == {"a", "b", "unknown"}


def test_a_uuid_told_later_or_by_the_caller_serves_as_well():
    line = "NVRM: Xid (PCI:0000:3b:00): 48, x"
    assert entities(one(line, f"NVRM: GPU at PCI:0000:3b:00: {UUID}"))["GPU_UUID"] == UUID
    assert entities(one(line, pci_to_uuid={"00000000:3B:00.0": UUID}))["GPU_UUID"] == UUID
    assert "GPU_UUID" not in entities(one(line, pci_to_uuid={"0000:3c:00": UUID}))


def test_the_same_report_has_the_same_name_wherever_it_stands():
    line = f"[  100.5] {FALLEN}"
    (first,) = parse(line)["events"]
    (again,) = parse(f"older\nlines\n{line}\nnewer\n")["events"]
    assert first["metadata"] == again["metadata"]
    names = {parse(line, **other)["events"][0]["metadata"]["name"] for other in ({"node": "b"}, {"boot_id": "c"})}
    names.add(parse(line.replace("100.5", "100.6"))["events"][0]["metadata"]["name"])
    names.add(parse(line.replace("3b", "3c"))["events"][0]["metadata"]["name"])
    assert len(names | {first["metadata"]["name"]}) == 5


@pytest.mark.parametrize(
    "context, words",
    [
        ({"received": "yesterday"}, "received"),
        ({"boot_time": "x"}, "boot_time"),
        ({"utc_offset": "CET"}, "utc_offset"),
        ({"driver_version": "new"}, "driver_version"),
        ({"pci_to_uuid": ["x"]}, "pci_to_uuid"),
        ({"pci_to_uuid": {"gpu0": UUID}}, "gpu0"),
    ],
)
def test_a_context_that_cannot_be_is_named(context, words):
    with pytest.raises(InvalidDocument, match=words):
        parse("x", **context)
