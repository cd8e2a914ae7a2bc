"""Tools' outputs into lines of a history."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.degradation_samples import degradation_samples
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import collected

UUID = "GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708"


def smi(util: str = "97 %", power: str = "650.10 W", cap: str = "Not Active", **changed: str) -> str:
    values = {
        "dram": "12",
        "sram": "1",
        "pending": "No",
        "width": "16x",
        "counters": "".join(
            f"<clocks_event_reasons_counters_{name}>{micros} us</clocks_event_reasons_counters_{name}>"
            for name, micros in (("sw_therm_slowdown", 2500000), ("sw_power_capping", 99), ("hw_power_braking", 500000))
        ),
        **changed,
    }
    return f"""<nvidia_smi_log><driver_version>580.105.08</driver_version><attached_gpus>1</attached_gpus>
    <gpu id="00000000:3B:00.0"><uuid>{UUID}</uuid>
      <pci><pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width>
        <current_link_width>{values["width"]}</current_link_width></link_widths></pci_gpu_link_info>
        <replay_counter>7</replay_counter></pci>
      <clocks_event_reasons><clocks_event_reason_sw_power_cap>{cap}</clocks_event_reason_sw_power_cap></clocks_event_reasons>
      <clocks_event_reasons_counters>{values["counters"]}</clocks_event_reasons_counters>
      <utilization><gpu_util>{util}</gpu_util></utilization>
      <ecc_errors><volatile><sram_correctable>{values["sram"]}</sram_correctable>
        <dram_correctable>{values["dram"]}</dram_correctable></volatile></ecc_errors>
      <remapped_rows><remapped_row_corr>3</remapped_row_corr><remapped_row_unc>N/A</remapped_row_unc>
        <remapped_row_pending>{values["pending"]}</remapped_row_pending></remapped_rows>
      <temperature><gpu_temp>66 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>
      <gpu_power_readings><power_draw>{power}</power_draw><current_power_limit>700.00 W</current_power_limit>
      </gpu_power_readings>
      <clocks><sm_clock>1965 MHz</sm_clock></clocks></gpu></nvidia_smi_log>"""


def gpu(**changed: str) -> dict[str, float]:
    return collected.of_gpus(ElementTree.fromstring(smi(**changed)))[UUID]


def test_a_gpu_that_works_hard_tells_all():
    assert gpu() == {
        "ecc_correctable": 13,
        "remapped_rows_correctable": 3,
        "row_remap_pending": 0,
        "pcie_replays": 7,
        "pcie_width": 16,
        "throttled_seconds": 3.0,
        "gpu_temperature": 66,
        "sm_clock": 1965,
    }


@pytest.mark.parametrize(
    ("changed", "absent"),
    [
        ({"util": "3 %"}, {"gpu_temperature", "sm_clock"}),
        ({"util": "N/A"}, {"gpu_temperature", "sm_clock"}),
        ({"power": "200.00 W"}, {"gpu_temperature"}),
        ({"power": "N/A"}, {"gpu_temperature"}),
        ({"cap": "Active"}, {"sm_clock"}),
        ({"cap": ""}, {"sm_clock"}),
        ({"sram": "N/A", "dram": "N/A"}, {"ecc_correctable"}),
        ({"pending": "N/A"}, {"row_remap_pending"}),
        ({"width": "N/A"}, {"pcie_width"}),
        ({"counters": ""}, {"throttled_seconds"}),
    ],
)
def test_what_is_not_told_or_depends_on_load_is_left_out(changed, absent):
    assert set(gpu()) - set(gpu(**changed)) == absent


def test_links_and_their_errors():
    text = f"""GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID})
\t Link 0: Replay Errors: 2
\t Link 0: Recovery Errors: 1
\t Link 0: CRC Errors: 4
\t Link 1: CRC Errors: N/A
\t Link 1: Link recovery successful events: 3
\t Link 1: Symbol Errors: 900
\t Link 1: Malformed packet Errors: 1
\t Link 1: Rx remote Errors: 50
\t Link 1: Tx packets: 123456
\t Link 1: Total link recovery events: 3
\t Link 1: Effective BER: 15e-255
GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID})
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
\t Link 2: 26.562 GB/s
GPU 1: NVIDIA H100 PCIe (UUID: GPU-00000000-0000-0000-0000-000000000001)
"""
    found = collected.of_links(text)
    assert found[UUID] == {"nvlink_replays": 2, "nvlink_errors": 6, "nvlink_flaps": 3, "nvlinks_up": 2}
    assert found["GPU-00000000-0000-0000-0000-000000000001"] == {}


def test_ports_of_nics():
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    text = f"""{base}/counters/link_downed:3
{base}/counters/symbol_error:5
{base}/counters/port_rcv_errors:2
{base}/counters/port_xmit_data:123456789
{base}/rate:400 Gb/sec (4X NDR)
/sys/class/infiniband/mlx5_1/ports/1/rate:N/A
grep: /sys/class/infiniband/mlx5_1/ports/1/counters/link_downed: Invalid argument
"""
    assert collected.of_ports(text) == {
        "mlx5_0/1": {"nic_link_downed": 3, "nic_errors": 7, "nic_rate": 400},
        "mlx5_1/1": {},
    }


def test_lines_merge_what_several_tools_say_of_one_gpu():
    lines = collected.lines("n1", "b1", "2026-11-29T00:00:00Z", [{"G": {"a": 1}, "H": {}}, {"G": {"b": 2}}])
    assert lines == [
        {"node": "n1", "bootId": "b1", "at": "2026-11-29T00:00:00Z", "entity": "G", "values": {"a": 1, "b": 2}}
    ]


def certification(run: list[str], direction: str = "higher", finished: str = "2026-11-20T00:00:00Z") -> list[dict]:
    """Of n1, whose run was on these nodes."""
    measured = {"host_to_device": {"value": 55.1, "unit": "GB/s"}}
    results = {
        "finished": finished,
        "rows": [{"node": "n1", "category": "bandwidth", "runs": ["r1"], "metrics": measured}],
    }
    test = {"digest": "sha256:abc", "metrics": {"host_to_device": {"direction": direction}}}
    about = {"categories": [{"name": "bandwidth", "resolved": {"h100": test, "l40s": {"digest": "sha256:def"}}}]}
    runs = {"r1": {"nodes": run, "accelerator": "h100"}}
    return collected.of_certification(results, about, runs, {"n1": {"bootId": "b1", "machineId": "m1"}})


def test_what_a_certification_measured_of_one_node_is_its_own():
    (found,) = certification(["n1"])
    assert found["worse"] == "down" and found["unit"] == "GB/s"
    assert found["line"] == {
        "node": "n1",
        "at": "2026-11-20T00:00:00Z",
        "bootId": "b1",
        "machineId": "m1",
        "workload": "abc",
        "value": 55.1,
    }
    assert certification(["n1"], "lower")[0]["worse"] == "up"


def test_what_a_group_measured_is_nobodys_and_what_has_no_better_side_is_left_out():
    assert certification(["n1", "n2"]) == []
    assert certification(["n1"], "") == []
    assert certification(["n1"], finished="") == []


AT = "2026-11-29T12:00:00Z"


def test_the_filter_gives_lines_and_says_what_it_could_not_read():
    found = degradation_samples({"nvidia_smi": "warning\n<?xml version='1.0'?>" + smi(), "ports": ""}, "n1", AT, "b1")
    assert found["unreadable"] == [] and found["lines"][0]["entity"] == UUID and found["lines"][0]["bootId"] == "b1"
    torn = degradation_samples(
        {"nvidia_smi": smi()[:400], "nvlink": f"GPU 0: X (UUID: {UUID})\n Link 0: 25 GB/s"}, "n1", AT
    )
    assert [line["values"] for line in torn["lines"]] == [{"nvlinks_up": 1}]
    assert "malformed or breaks off" in torn["unreadable"][0]
    assert degradation_samples({"nvidia_smi": "No devices were found"}, "n1", AT)["unreadable"]


@pytest.mark.parametrize(
    ("value", "at", "words"),
    [
        ({"nvidia-smi": ""}, AT, "did you mean 'nvidia_smi'"),
        ("text", AT, "takes a map"),
        ({"nvlink": 3}, AT, "is no text"),
        ({}, "noon", "no time with a zone"),
    ],
)
def test_the_filter_refuses_what_it_cannot_take(value, at, words):
    with pytest.raises(AnsibleFilterError) as raised:
        degradation_samples(value, "n1", at)
    assert words in str(raised.value)
