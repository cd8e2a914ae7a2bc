# ruff: noqa: E501  (outputs as the tools print them)
"""DCGM diagnostics as tables."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import dcgm_diag

from tests.unit.certification.dcgm_outputs import RULE, row, section, table

THERMAL = (
    "GPU 0 Thermal violations totaling 13.3 seconds started at 9.7 seconds into the test for GPU 0 Verify that the "
    "cooling on this machine is functional."
)
INTERNAL = (
    "There was an internal error during the test: 'A child process (152) exited with non-zero status 1' Check DCGM and "
    "system logs for errors. Reset GPU. Restart DCGM. Rerun diagnostics."
)
CUDA = "GPU {} Error using CUDA API cuInit Unable to initialize CUDA library: 'system not yet initialized' . ."


def codes(result: dict) -> list[str]:
    return [finding["code"] for finding in result["findings"]]


def gpus(count: int, word: str = "Pass", **other: str) -> list[str]:
    return [line for gpu in range(count) for line in row("", f"GPU{gpu}: {other.get(f'gpu{gpu}', word)}")]


def test_old_table_with_gpus_that_pass_and_fail():
    text = table(
        section("Deployment"),
        row("Denylist", "Pass"),
        section("Hardware"),
        row("GPU Memory", "Pass - GPUs: 1, 2, 3, 4, 5, 6, 7"),
        row("", "Fail - GPU: 0"),
        row("Warning", THERMAL),
        row("Diagnostic", "Pass - All"),
    )
    result = dcgm_diag.parse(text, expected_gpus=8)
    assert result["complete"] and result["toolVersion"] == "3.3.8"
    finding = result["findings"][0]
    assert len(result["findings"]) == 1 and (finding["scope"], finding["entity"]) == ("gpu", "GPU 0")
    assert THERMAL in finding["message"] and finding["category"] == "hardware"
    tests = {test["name"]: test for test in result["runs"][0]["tests"]}
    assert tests["memory"]["status"] == "fail" and tests["diagnostic"]["status"] == "pass"
    assert {result["gpu"]: result["status"] for result in tests["memory"]["results"]}[7] == "pass"


@pytest.mark.parametrize("text", [INTERNAL, "x" * 45, "y" * 90, "a b " * 60, "short", THERMAL])
def test_wrapped_messages_come_out_as_they_were(text):
    lines = table(
        section("Integration"), row("pcie", "Fail"), row("Warning", text), gpus(2), version="4.4.1", devices=2
    )
    for output in (lines, "\n".join(line.rstrip(" |") for line in lines.split("\n"))):
        test = dcgm_diag.parse(output)["runs"][0]["tests"][0]
        warnings = test.get("warnings", []) + test["results"][0]["warnings"]
        assert [warning["message"] for warning in warnings] == [" ".join(text.split())]


def test_new_table_whose_test_failed_and_gpus_passed():
    text = table(
        section("Deployment"), row("software", "Pass"), gpus(4),
        section("Integration"), row("pcie", "Fail"), row("Warning", INTERNAL), row("Warning", INTERNAL), gpus(4),
        version="4.2.3", devices=4, ended=False,
    )  # fmt: skip
    result = dcgm_diag.parse(text, expected_gpus=4)
    found = [(finding["code"], finding["scope"], finding["category"]) for finding in result["findings"]]
    assert found == [("test-error", "run", "tool"), ("output-truncated", "run", "infrastructure")]
    assert not result["complete"] and result["runs"][0]["gpus"] == [0, 1, 2, 3]


def test_new_table_with_one_bad_gpu():
    text = table(
        section("Stress"), row("targeted_power", "Fail"), gpus(8, gpu3="Fail"),
        row("Warning: GPU3", "The GPU did not reach its target power draw"), version="4.4.1",
    )  # fmt: skip
    finding = dcgm_diag.parse(text, expected_gpus=8)["findings"]
    assert [(item["entity"], item["category"]) for item in finding] == [("GPU 3", "hardware")]
    assert "target power" in finding[0]["message"]


def test_fabric_manager_once_on_eight_gpus():
    warnings = [line for gpu in range(8) for line in row("Warning", CUDA.format(gpu))]
    text = table(
        section("Integration"), row("PCIe", "Skip - All"), section("Hardware"), row("GPU Memory", "Fail - All"), warnings,
        section("Stress"), row("EUD Test", "Skip - All"),
    )  # fmt: skip
    result = dcgm_diag.parse(text, expected_gpus=8)
    errors = [finding for finding in result["findings"] if finding["severity"] == "error"]
    assert [(error["code"], error["scope"]) for error in errors] == [("fabric-manager-down", "service")]
    assert codes(result).count("test-skipped") == 2


@pytest.mark.parametrize(
    "word", ["Skip - All", "Skip", "Warn - All", "Not Run", "Fail - All", "Whatever - All", "Fail - GPUs: 0, 1"]
)
def test_only_pass_passes(word):
    result = dcgm_diag.parse(table(section("Hardware"), row("Memtest", word)))
    assert result["runs"][0]["tests"][0]["status"] != "pass" and result["findings"]


def test_an_error_of_the_deployment_without_a_test():
    text = table(
        section("Deployment"), row("Error", "GPU 3 has uncorrectable memory errors and row remappings are pending")
    )
    finding = dcgm_diag.parse(text)["findings"][0]
    assert (finding["code"], finding["entity"], finding["category"]) == ("diagnostic-error", "GPU 3", "hardware")


def test_numbers_in_wrapped_info():
    info = "GPU 0 GPU to Host bandwidth:  13.13 GB/s, GPU 0 Host to GPU bandwidth:  12.37 GB/s, GPU 1 GPU to Host bandwidth: 9.50 GB/s"
    run = dcgm_diag.parse(table(section("Integration"), row("PCIe", "Pass - All"), row("Info", info), devices=2))[
        "runs"
    ][0]
    assert run["metrics"]["pcie.gpu_to_host_bandwidth.min"] == {"value": 9.5, "unit": "GB/s"}
    assert run["metrics"]["pcie.gpu_to_host_bandwidth.max"]["value"] == 13.13
    assert [item["gpu"] for item in run["measurements"]] == [0, 0, 1]


def test_gpus_are_counted_by_the_head():
    text = table(
        section("Hardware"),
        row("GPU Memory", "Pass - All"),
        row("Info", "GPU 0 Allocated 100 bytes (97.1%)"),
        devices=7,
    )
    result = dcgm_diag.parse(text, expected_gpus=8)
    assert codes(result) == ["gpu-missing"] and "7 of 8" in result["findings"][0]["message"]


def test_several_levels_in_one_session():
    text = "$ dcgmi diag -r 1\n" + table(section("Deployment"), row("Inforom", "Pass"))
    text += "root@x:/# dcgmi diag --run 3 -v\n" + table(section("Hardware"), row("Diagnostic", "Pass - All"))
    runs = dcgm_diag.parse(text)["runs"]
    assert [(run["level"], [test["name"] for test in run["tests"]]) for run in runs] == [
        (1, ["inforom"]),
        (3, ["diagnostic"]),
    ]


def test_marks_of_launchers():
    plain = table(section("Hardware"), row("memory", "Fail"), gpus(8, gpu2="Fail"), version="4.4.1")
    for mark in ("[1,0]<stdout>:", "  0: ", "node-a: ", "[pod/diag-x/main] ", "2026-03-06T09:34:56.123Z ", "\x1b[0m"):
        marked = "".join(f"{mark}{line}\r\n" for line in plain.splitlines())
        result = dcgm_diag.parse(marked, expected_gpus=8)
        assert [(finding["code"], finding["entity"]) for finding in result["findings"]] == [("test-failed", "GPU 2")], (
            mark
        )
        assert result["complete"]


def test_several_nodes():
    text = "\n".join([
        "Multi-node diagnostic failed.", RULE, *row("Diagnostic", "Result"), RULE.replace("-", "="),
        "|-----  Metadata  ----------+------------------------------------------------|",
        *row("MNUBERGEMM Test", "Fail"), *row("Driver Version", "580.95.05"), *row("DCGM Version", "4.6.0"),
        *row("Hosts Found", "2"), *row("Hosts With Errors", "1"), *row("Host List", "0: node-a"), *row("", "1: node-b"),
        *row("Total GPUs", "8"), "|-----  Host Details  ------+------------------------------------------------|",
        *row("Host 0", "Pass"), *row("  GPUs: 0, 1, 2, 3", "Pass"),
        *row("Host 1", "Fail"), *row("  GPU 0", "Pass"), *row("  GPU 1", "Pass"), *row("  GPU 2", "Pass"),
        *row("  GPU 3", "Fail"), *row("", "Error: GPU GFLOPs threshold violated, the value is far below what was asked"),
        "|-----  Error Summary  -----+------------------------------------------------|",
        *row("Host 1 (GPU 3)", "Error: GPU GFLOPs threshold violated, the value is far below what was asked"), RULE,
    ])  # fmt: skip
    result = dcgm_diag.parse(text, expected_gpus=4)
    assert result["complete"] and result["toolVersion"] == "4.6.0"
    assert result["runs"][0]["hosts"] == ["node-a", "node-b"]
    found = [(finding["code"], finding["host"], finding["entity"]) for finding in result["findings"]]
    assert found == [("test-failed", "node-b", "GPU 3")]


def test_tests_may_be_spread_over_levels():
    text = "$ dcgmi diag -r 1\n" + table(section("Deployment"), row("Inforom", "Pass"))
    text += "$ dcgmi diag -r 2\n" + table(section("Hardware"), row("GPU Memory", "Pass - All"))
    assert codes(dcgm_diag.parse(text, expected_tests=["inforom", "memory"])) == []
    assert codes(dcgm_diag.parse(text, expected_tests=["inforom", "pcie"])) == ["test-missing"]
