# ruff: noqa: E501  (outputs as the tools print them)
"""nvbandwidth: every pair, and nothing that was not measured."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nvbandwidth
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

DEVICES = "\n".join(f"Device {gpu}: NVIDIA H100 80GB HBM3 (00000000:{gpu + 1:02d}:00)" for gpu in range(4))
PEER = "device_to_device_memcpy_read_ce"
HOST = "host_to_device_memcpy_ce"


def head(version: str = "v0.7") -> str:
    return f"nvbandwidth Version: {version}\nBuilt from Git version: {version}\n\nCUDA Runtime Version: 12080\nCUDA Driver Version: 12080\nDriver Version: 570.86.15\n\n{DEVICES}\n\n"


def matrix(
    name: str,
    cells: list[list[str]],
    what: str = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
    total: float | None = None,
) -> str:
    lines = [f"Running {name}.", what, " " * 10 + "".join(f"{column:>10}" for column in range(len(cells[0])))]
    lines += [f"{row:2d}" + "".join(f"{cell:>10}" for cell in line) for row, line in enumerate(cells)]
    if total is None:
        total = sum(float(cell) for line in cells for cell in line if cell != "N/A")
    return "\n".join([*lines, "", f"SUM {name} {total:.2f}", ""]) + "\n"


END = "NOTE: The reported results may not reflect the full capabilities of the platform.\nPerformance can vary with software drivers, hardware clocks, and system topology.\n"


def peers(slow: tuple[int, int] | None = None, diagonal: str = "N/A", value: str = "120.50") -> list[list[str]]:
    return [
        [diagonal if row == column else value if (row, column) == slow else "391.20" for column in range(4)]
        for row in range(4)
    ]


def document(*cases: dict, **more: object) -> str:
    body = {"version": "v0.6", "Driver Version": "565.02", "CUDA Runtime Version": 12070, "testcases": list(cases)}
    return json.dumps({"nvbandwidth": {**body, **more}}, indent="\t")


def case(name: str = HOST, status: str = "Passed", cells: list[list[str]] | None = None, **more: object) -> dict:
    entry: dict = {"name": name, "status": status, **more}
    if cells is not None:
        entry |= {
            "bandwidth_matrix": cells,
            "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s) ",
        }
    return entry


def codes(result: dict) -> list[str]:
    return [finding["code"] for finding in result["findings"]]


@pytest.mark.parametrize("diagonal", ["N/A", "0.00"])
def test_pairs_without_a_gpu_and_itself(diagonal):
    result = nvbandwidth.parse(
        head() + matrix(PEER, peers((2, 1), diagonal)) + END, expected_gpus=4, expected_tests=[PEER]
    )
    assert result["findings"] == [] and result["complete"] and result["toolVersion"] == "v0.7"
    run = result["runs"][0]
    assert len(run["rows"]) == 12
    assert {"test": PEER, "source": "2", "target": "1", "value": 120.5, "unit": "GB/s"} in run["rows"]
    assert run["metrics"][f"{PEER}.min"] == {"value": 120.5, "unit": "GB/s"}
    assert run["metrics"][f"{PEER}.max"]["value"] == 391.2
    assert run["devices"][3] == {"gpu": 3, "name": "NVIDIA H100 80GB HBM3", "pci": "00000000:04:00"}


def test_host_matrix_is_not_square_and_its_first_cell_counts():
    cells = [["55.10", "54.90"], ["12.00", "55.00"]]
    text = head() + matrix(HOST, cells, "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)") + END
    run = nvbandwidth.parse(text)["runs"][0]
    assert run["metrics"][f"{HOST}.min"]["value"] == 12.0 and len(run["rows"]) == 4


def test_latency_has_its_own_unit():
    text = (
        head() + matrix("host_device_latency_sm", [["772.58"]], "memory latency SM CPU(row) <-> GPU(column) (ns)") + END
    )
    assert nvbandwidth.parse(text)["runs"][0]["metrics"]["host_device_latency_sm.min"] == {
        "value": 772.58,
        "unit": "ns",
    }


def test_a_pair_without_bandwidth_is_a_finding():
    result = nvbandwidth.parse(head() + matrix(PEER, peers((0, 3), value="0.00")) + END)
    finding = result["findings"][0]
    assert (finding["code"], finding["scope"], finding["entity"]) == ("zero-bandwidth", "pair", "0 - 3")


def test_waived_is_not_passed():
    text = (
        head()
        + matrix(HOST, [["55.10"]])
        + f"Waived: {PEER}\nWaived:\nWaived:\nRunning all_to_host_memcpy_ce.\nWaived: needs a peer\n"
        + END
    )
    result = nvbandwidth.parse(text)
    statuses = {test["name"]: test["status"] for test in result["runs"][0]["tests"]}
    assert statuses == {HOST: "passed", PEER: "waived", "all_to_host_memcpy_ce": "waived"}
    assert result["runs"][0]["waivedUnnamed"] == 2 and set(codes(result)) == {"test-waived"}
    required = nvbandwidth.parse(text, expected_tests=[PEER, "one_to_all_read_ce"])
    errors = [finding["code"] for finding in required["findings"] if finding["severity"] == "error"]
    assert errors == ["test-waived", "test-missing"]


@pytest.mark.parametrize("version", ["v0.4", "v0.7"])
def test_an_output_that_breaks_off(version):
    whole = head(version) + matrix(HOST, [["55.10", "55.20"]]) + matrix(PEER, peers()) + END
    assert nvbandwidth.parse(whole)["complete"]
    result = nvbandwidth.parse(whole[: whole.index(f"SUM {PEER}")])
    assert not result["complete"] and "test-unfinished" in codes(result)
    assert f"{PEER}.min" not in result["runs"][0]["metrics"] and f"{HOST}.min" in result["runs"][0]["metrics"]


def test_sum_that_does_not_fit_and_row_that_is_cut():
    result = nvbandwidth.parse(head() + matrix(HOST, [["55.10", "55.20"]], total=210.0) + END)
    assert codes(result) == ["sum-mismatch"]
    text = head() + matrix(PEER, peers()).replace(" 2    391.20    391.20       N/A    391.20", " 2    391.20") + END
    assert "matrix-incomplete" in codes(nvbandwidth.parse(text))


def test_json_with_garbage_around_it():
    text = document(case(cells=[["55.1", "N/A"], ["12.5", "54.9"]], sum=122.5, min=0.0), case(PEER, "Waived"))
    for around in (("", ""), ("WARNING: lock {\nWARNING: {{{}}}}}\n", "\nWARNING: }}}\nbye {{{}}}}}")):
        result = nvbandwidth.parse(around[0] + text + around[1])
        run = result["runs"][0]
        assert result["complete"] and codes(result) == ["test-waived"]
        assert run["metrics"][f"{HOST}.min"] == {"value": 12.5, "unit": "GB/s"} and run["driver"] == "565.02"
        assert run["tests"][0]["matrix"] == [[55.1, None], [12.5, 54.9]] and run["gpus"] == [0, 1]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (case(status="Error"), "test-failed"),
        (case(status="Exploded"), "test-failed"),
        (case("no_such_test", "Not Found"), "test-not-found"),
        (case(status="Running"), "test-unfinished"),
        (case(status="Passed"), "no-measurement"),
        (case(status="Passed", cells=[["N/A"]]), "no-measurement"),
        (case(status="Passed", cells=[["55.1"]], error="CUDA_ERROR_ECC_UNCORRECTABLE in memcpy"), "test-failed"),
    ],
)
def test_statuses_of_json(entry, code):
    result = nvbandwidth.parse(document(entry))
    assert codes(result) == [code] and result["findings"][0]["severity"] == "error"
    assert not result["runs"][0]["metrics"]


@pytest.mark.parametrize(
    "text",
    [
        "[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized in expression cuInit(0) in init() : nvbandwidth.cpp:1\n",
        head() + "Running host_to_device_memcpy_ce.\n[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized in x\n",
        document(error="CUDA_ERROR_SYSTEM_NOT_READY system not yet initialized"),
    ],
)
def test_missing_fabric_manager(text):
    result = nvbandwidth.parse(text)
    found = [(finding["code"], finding["scope"]) for finding in result["findings"]]
    assert ("fabric-manager-down", "service") in found and len(
        [item for item in found if item[0] != "test-unfinished"]
    ) == 1
    assert not result["complete"]


def test_an_error_stops_a_test():
    text = head() + f"Running {HOST}.\n[CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access in expression x\n" + END
    result = nvbandwidth.parse(text)
    assert codes(result) == ["test-failed"] and "ILLEGAL_ADDRESS" in result["findings"][0]["message"]


def test_which_gpus():
    text = head() + matrix(PEER, peers()) + END
    assert codes(nvbandwidth.parse(text, expected_gpus=8)) == ["gpu-missing"]
    assert codes(nvbandwidth.parse(text, expected_gpus=4)) == []
    assert codes(nvbandwidth.parse(document(case("all_to_one_read_ce", cells=[["1.5"]])), expected_gpus=8)) == [
        "gpu-count-unknown"
    ]


def test_several_nodes_of_one_report():
    ranks = "\n".join(
        f"Process {rank} (node-{'ab'[rank // 2]}): device {rank % 2}: NVIDIA GB200 (00000008:01:00)"
        for rank in range(4)
    )
    text = head().replace(DEVICES, ranks) + matrix("multinode_device_to_device_memcpy_read_ce", peers()) + END
    run = nvbandwidth.parse(text, expected_gpus=2)["runs"][0]
    assert run["hosts"] == ["node-a", "node-b"] and len(run["ranks"]) == 4 and len(run["rows"]) == 12


def test_two_nodes_in_one_output():
    left = head() + matrix(PEER, peers()) + END
    right = head() + matrix(PEER, peers((1, 2))) + END
    mixed = "".join(
        f"node-a: {one}\nnode-b: {two}\n" for one, two in zip(left.splitlines(), right.splitlines(), strict=True)
    )
    runs = nvbandwidth.parse(mixed, expected_gpus=4)["runs"]
    assert [(run["hosts"], run["metrics"][f"{PEER}.min"]["value"]) for run in runs] == [
        (["node-a"], 391.2),
        (["node-b"], 120.5),
    ]


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"nvbandwidth": 3}', '{"nvbandwidth": {"testcases": {}}}'])
def test_no_result_is_said(text):
    result = nvbandwidth.parse(text)
    assert codes(result)[0] == "no-result" and not result["complete"]


def test_expectations_that_cannot_be():
    with pytest.raises(InvalidDocument, match="expected_tests"):
        nvbandwidth.parse("", expected_tests="x")
    with pytest.raises(InvalidDocument, match="expected_gpus"):
        nvbandwidth.parse("", expected_gpus=-1)
