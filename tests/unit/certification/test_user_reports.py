"""What users of other tools were misled by: each case is an output or a fleet that once got a wrong verdict."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import plan as plan_
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    dcgm_diag,
    gpu_burn,
    nccl,
    perftest,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.verdict import combine

from tests.unit.certification import nccl_output as out
from tests.unit.certification.dcgm_outputs import entity, new_json, warning
from tests.unit.certification.test_plan import ALL_REDUCE, DCGM, GB200, L40S, TESTS, certification, fleet, node
from tests.unit.certification.test_verdict import PAIR, WRITES, alone, burned, collective, ended, rows_of, run_of

ALL = [entity(gpu) for gpu in range(8)]
HEAD = "\n".join(out.run()[:25])  # a table that has begun


def diagnosed(code: int, expected: tuple = ("memory", "pcie"), **tests: list) -> dict:
    """The row of a diagnostic whose tests passed but for those whose results are given."""
    content = dict.fromkeys(("memory", "pcie", *expected), ("Pass", ALL))
    for name, results in tests.items():
        status = "Pass" if all(result["status"] == "Pass" for result in results) else "Fail"
        content[name] = (status, results)
    parsed = dcgm_diag.parse(new_json(content), expected_gpus=8, expected_tests=list(expected), exit_code=code)
    run = run_of("dcgm_diag", arguments={"expected_tests": list(expected)})
    return alone(rows_of(run, parsed, ended(["gpu-1"], code)))


def one(gpu: int, status: str, *told: dict) -> list[dict]:
    return [entity(number, status, *told) if number == gpu else entity(number) for number in range(8)]


def pair(text: str, code: int = 3, **expected) -> list[dict]:
    parsed = nccl.parse(text, expected_ranks=16, expected_hosts=2, **expected)
    return rows_of(run_of(), parsed, ended(PAIR, code))


def said(row: dict) -> tuple:
    return row["outcome"], row["attribution"]


# ---------------------------------------------------------------- fleets


def test_nodes_that_the_plan_left_out_keep_the_whole_from_passing():
    """Green although cordoned nodes and those of a rarer model had been dropped."""
    nodes = [*fleet(2), node(2, unschedulable=True), node(3, product=L40S), node(4, gpus=7, whole=8)]
    found = plan_.plan(certification(ALL_REDUCE, DCGM), TESTS, nodes)
    assert {row["node"] for row in found["rows"]} == {one_["name"] for one_ in nodes}
    verdicts = combine(rows_of(run_of(), collective()), required=["nccl"], asked=["gpu-1", "gpu-2", "gpu-3"])
    assert [item["verdict"] for item in verdicts] == ["pass", "pass", "not_run"]
    assert [item["mayOpenGate"] for item in verdicts] == [True, True, False]


def test_a_short_node_is_named_with_its_count_and_waited_for_by_nobody():
    found = plan_.plan(certification(ALL_REDUCE), TESTS, [*fleet(3), node(3, gpus=7, whole=8)])
    assert [run["nodes"] for run in found["runs"]] == [["gpu-000", "gpu-001", "gpu-002"]]
    assert [(row["node"], row["why"]) for row in found["blocked"]] == [("gpu-003", "7 of 8 GPUs")]


def test_the_first_nodes_model_decides_for_itself_only():
    nodes = [node(0, product=L40S), *[node(number, product=GB200, gpus=4) for number in (1, 2, 3)]]
    found = plan_.plan(certification(ALL_REDUCE), TESTS, nodes)
    assert [(run["accelerator"], len(run["nodes"]), run["expected"]["ranks"]) for run in found["runs"]] == [
        ("gb200", 3, 12)
    ]
    assert [row["node"] for row in found["blocked"]] == ["gpu-000"]


def test_two_nodes_that_are_asked_for_are_one_job():
    """Two nodes were asked for, nine jobs ran."""
    target = {"nodeNames": ["gpu-003", "gpu-007"]}
    found = plan_.plan(certification(ALL_REDUCE, target=target), TESTS, fleet(16))
    assert (found["jobs"], found["runs"][0]["nodes"]) == (1, ["gpu-003", "gpu-007"])


# ---------------------------------------------------------------- diagnostics


@pytest.mark.parametrize("code", [0, 1, 226])
def test_a_diagnostic_that_fails_is_no_pass_whatever_its_exit_status(code):
    broken = warning("GPU 3 has row remapping failures", 80, 10, 2)
    row = diagnosed(code, memory=one(3, "Fail", broken))
    assert said(row) == ("fail", "hardware") and "GPU 3" in row["reasons"][0]
    assert "row remapping failures" in row["reasons"][0]


def test_noise_after_a_burn_is_no_fault_of_the_gpu():
    busy = warning("GPU 0: MCUTIL is 12 %, more than 10 %, before the test began", 1, 0, 0)
    row = diagnosed(226, ("memory", "pcie", "nvbandwidth"), nvbandwidth=one(0, "Fail", busy))
    assert said(row) == ("error", "infrastructure")


@pytest.mark.parametrize(
    "text",
    [
        "Couldn't find the BwChecker_13 executable for the pcie test",
        "Unable to run the binary that measures bandwidth",
        "Could not locate a library of the diagnostic",
        "Unable to load plugin libPcie.so",
    ],
)
def test_a_diagnostic_whose_own_files_are_missing_is_a_broken_tool(text):
    row = diagnosed(226, pcie=[entity(gpu, "Fail", warning(text, 0, 0, 0)) for gpu in range(8)])
    assert said(row) == ("error", "tool")


def test_what_could_not_be_allocated_was_not_tested():
    for text in ("Memory allocation of 71000 MB failed", "GPU 0 cannot allocate memory on the host"):
        row = diagnosed(0, memory=one(0, "Pass", warning(text, 73, 8, 4)))
        assert row["outcome"] == "error" and text in row["reasons"][0]


def test_gpus_that_a_diagnostic_left_out_are_not_tested_and_not_blamed():
    """Told to test all or some, it tested others."""
    row = diagnosed(0, memory=[entity(0)], pcie=[entity(0)])
    assert said(row) == ("not_measured", "tool") and "1 of 8 GPUs" in row["reasons"][0]
    # a GPU that it does not see is another matter
    text = new_json(dict.fromkeys(("memory", "pcie"), ("Pass", ALL[:7])), gpus=7)
    parsed = dcgm_diag.parse(text, expected_gpus=8, expected_tests=["memory", "pcie"])
    assert said(alone(rows_of(run_of("dcgm_diag"), parsed))) == ("fail", "hardware")


def test_a_name_that_no_version_had_before_is_kept():
    row = diagnosed(226, quantum_flux=one(2, "Fail"))
    assert row["outcome"] == "fail" and "quantum_flux failed on GPU 2" in row["reasons"][0]


def test_a_setting_is_no_broken_part():
    off = warning("Persistence mode for GPU 0 is disabled.", 25, 3, 5)
    assert said(diagnosed(226, software=one(0, "Fail", off))) == ("error", "configuration")


# ---------------------------------------------------------------- collectives


def test_a_domain_that_is_not_joined_is_a_service_and_not_a_gpu():
    warns = (
        "node-a:1:1 [0] NCCL WARN MNNVL: the IMEX domain is not ready",
        "node-a:1:1 [0] transport/nvls.cc:250 NCCL WARN Cuda failure 800 'operation not permitted'",
    )
    rows = pair("\n".join([HEAD, *warns]))
    assert [row["outcome"] for row in rows] == ["error", "not_measured"]
    assert rows[0]["code"] == "imex-unavailable" and rows[0]["attribution"] == "infrastructure"


def test_a_domain_torn_down_under_its_pods_is_told_with_its_node():
    rows = pair(HEAD + "\nnode-a: Test CUDA failure common.cu:501 'unspecified launch failure'\n")
    assert [row["outcome"] for row in rows] == ["fail", "not_measured"] and rows[0]["attribution"] != "hardware"


def test_a_size_beyond_the_memory_is_a_crash_and_no_bad_node():
    rows = pair(HEAD + "\nFloating point exception (core dumped)", 136)
    assert {row["outcome"] for row in rows} == {"error"} and "least size exceeds" in rows[0]["reasons"][0]
    assert any("signal 8" in text for text in rows[0]["reasons"])


def test_each_rank_for_itself_is_no_result_however_good():
    """Built without MPI: sixteen tables of one rank each, of fine numbers."""
    each = out.run(hosts=("node-a",), gpus=1)
    text = "\n".join(line for line in each for _rank in range(16))
    for row in pair(text, 0):
        assert row["outcome"] in ("error", "not_applicable") and not row["boundsUsed"][0]["holds"]


def test_a_run_on_the_launcher_alone_is_no_result():
    rows = pair("\n".join(out.run(hosts=("node-a",), gpus=16)), 0)
    assert {row["outcome"] for row in rows} == {"error"}


def test_an_error_on_the_row_being_written_is_found():
    lines = out.run()
    lines[-8] = lines[-8][:25] + "node-b: Test CUDA failure common.cu:894 'uncorrectable ECC error encountered'"
    rows = pair("\n".join(lines[:-7]))
    assert [row["outcome"] for row in rows] == ["not_measured", "fail"]


def test_the_peer_that_left_is_named_and_the_reporter_is_not_blamed():
    text = "node-a:1:1 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node-b<36542>"
    rows = pair(f"{HEAD}\n{text}")
    assert {row["attribution"] for row in rows} == {"group"}
    assert all("look at that peer first" in row["reasons"][0] for row in rows)


def test_an_image_without_sshd_says_so():
    rows = pair("bash: /usr/sbin/sshd: not found\n", 127)
    assert {said(row) for row in rows} == {("error", "tool")} and "sshd" in rows[0]["reasons"][0]


@pytest.mark.parametrize(
    "text",
    [
        "ssh: Could not resolve hostname gp-0-1.gp-0: Name or service not known",
        "ssh: connect to host gp-0-1.gp-0 port 22: Connection refused",
    ],
)
def test_workers_that_are_not_up_yet_fail_no_node(text):
    assert {row["outcome"] for row in pair(text, 255)} <= {"error", "not_measured"}


def test_wrong_values_once_are_enough():
    """One size in a third of the runs."""
    rows_ = [{"size": size, "wrong": int(size == out.SIZES[5])} for size in out.SIZES]
    good, bad = rows_of(run_of(), collective()), rows_of(run_of(repeat=2), collective(rows=rows_, wrong=1))
    bad = [{**row, "run": "0123456789ac", "repeat": 2} for row in bad]
    assert {item["verdict"] for item in combine([*good, *bad])} == {"fail"}


# ---------------------------------------------------------------- other tools


def test_a_burn_that_is_stopped_at_its_end_keeps_its_result():
    row = alone(rows_of(run_of("gpu_burn"), burned(), ended(["gpu-1"], phase="running", timedOut="run")))
    assert row["outcome"] == "pass" and "did not end" in row["warnings"][0]


def test_a_library_that_does_not_fit_is_no_faulty_gpu():
    begun = "GPU 0: Some GPU (UUID: GPU-0)\nBurning for 60 seconds.\n"
    text = begun + "Couldn't init a GPU test: CUBLAS_STATUS_NOT_INITIALIZED\n"
    row = alone(rows_of(run_of("gpu_burn"), gpu_burn.parse(text, expected_gpus=1), ended(["gpu-1"], 0)))
    assert said(row) == ("error", "tool") and "CUBLAS" in row["reasons"][0]


def test_a_least_bandwidth_is_judged_outside_of_the_tool():
    thresholds = {"bandwidthAverageGbps": "value >= 390"}
    row = alone(rows_of(run_of("perftest"), perftest.parse(WRITES), thresholds=thresholds))
    assert row["outcome"] == "fail" and row["violations"][0]["bound"] == 390
    assert "197.55 Gb/s, not >= 390" in row["reasons"][0] and "bound from thresholds" in row["reasons"][0]
