"""What a run is worth for its nodes, with the parsers' own results. Whatever is missing, it is no pass."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import bounds as bounds_
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    dcgm_diag,
    gpu_burn,
    nccl,
    nvbandwidth,
    perftest,
    training,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.verdict import combine, for_search, outcomes
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.certification import nccl_output as out
from tests.unit.certification.dcgm_outputs import entity, new_json, warning
from tests.unit.certification.training_logs import megatron

PAIR = ["gpu-1", "gpu-2"]
HOSTS = {"node-a": "gpu-1", "node-b": "gpu-2"}
METRICS = {
    "nccl": {
        "busBandwidthGBps": {"unit": "GB/s", "direction": "higher"},
        "busBandwidthTopSizeGBps": {"unit": "GB/s", "direction": "higher"},
        "smallestSizeTimeUs": {"unit": "us", "direction": "lower"},
    },
    "gpu_burn": {"gflopsPerGpu.min": {"unit": "Gflop/s", "direction": "higher"}},
    "training": {"avgStepTimeSec": {"unit": "s", "direction": "lower"}},
    "perftest": {"bandwidthAverageGbps": {"unit": "Gb/s", "direction": "higher"}},
}
BOUND = {
    "nccl": {"busBandwidthGBps": "value >= 300"},
    "gpu_burn": {"gflopsPerGpu.min": "value >= 10000"},
    "training": {"avgStepTimeSec": "value <= 16"},
    "nvbandwidth": {"host_to_device_memcpy_ce.min": "value >= 50"},
    "perftest": {"bandwidthAverageGbps": "value >= 100"},
    "dcgm_diag": {},
}


def run_of(tool: str = "nccl", nodes: list[str] | None = None, **more) -> dict:
    nodes = nodes or (PAIR if tool in ("nccl", "training") else ["gpu-1"])
    expected = {"ranks": 16, "hosts": 2} if tool == "nccl" else {}
    return {
        "id": "0123456789ab",
        "category": tool,
        "test": f"some/{tool}",
        "nodes": nodes,
        "launcher": "mpijob" if len(nodes) > 1 else "job",
        "limits": {"start": 1800, "run": 3600, "silence": 900},
        "parser": {"tool": tool},
        "arguments": {"expected_tests": ["memory", "pcie"]} if tool == "dcgm_diag" else {},
        "expected": expected,
        "metrics": METRICS.get(tool, {}),
        "accelerator": "h100",
        "scope": "cross",
        "repeat": 1,
        "purpose": "screen",
        **more,
    }


def ended(nodes: list[str], code: int = 0, **more) -> dict:
    pods = [
        {"name": f"gp-0123456789ab-{number}", "node": node, "phase": "Succeeded", "exitCode": 0, "restarts": 0}
        for number, node in enumerate(nodes)
    ]
    if len(nodes) > 1:
        pods = [{**pod, "role": "worker"} for pod in pods]
        pods.append({"name": "gp-0123456789ab-launcher", "node": nodes[0], "phase": "Succeeded", "role": "launcher"})
    pods[-1]["exitCode"] = code
    return {"phase": "failed" if code else "succeeded", "pods": pods, **more}


def rows_of(run: dict, parsed, observed=None, thresholds: dict | None = None, listed: list | None = None, **context):
    """The rows; without `thresholds` the tool's own of BOUND."""
    thresholds = BOUND.get(run["parser"]["tool"], {}) if thresholds is None else thresholds
    given = [{"metric": name, "expression": text, "source": "thresholds"} for name, text in thresholds.items()]
    bounds = bounds_.load({**run, "bounds": [*given, *(listed or ())]})
    observed = ended(run["nodes"]) if observed is None else observed
    return outcomes(run, parsed, observed, bounds, {"hosts": HOSTS, **context})


def collective(*lines: str, more: dict | None = None, **changes) -> dict:
    expected = {"expected_ranks": 16, "expected_hosts": 2, "expected_test": "all_reduce", **(more or {})}
    return nccl.parse("\n".join([*out.run(**changes), *lines]), **expected)


def alone(row_list: list[dict]) -> dict:
    (row,) = row_list
    return row


def told(rows: list[dict]) -> list[tuple[str, str, str | None]]:
    return [(row["outcome"], row["code"], row["attribution"]) for row in rows]


BURN = (
    "GPU 0: Some GPU (UUID: GPU-00000000-aaaa)\nGPU 1: Some GPU (UUID: GPU-00000001-aaaa)\nBurning for 60 seconds.\n"
    "\r10.0%  proc'd: 100 (14000 Gflop/s) - 100 (14000 Gflop/s)   errors: {0}   temps: 60 C - 60 C "
    "\r100.0%  proc'd: 900 (14000 Gflop/s) - 900 (14000 Gflop/s)   errors: {0}   temps: 60 C - 60 C "
    "\nKilling processes with SIGTERM (soft kill)\ndone\n\nTested 2 GPUs:\n\tGPU 0: {1}\n\tGPU 1: OK\n"
)
COPIES = (
    "nvbandwidth Version: v0.7\n\nDevice 0: Some GPU (00000000:01:00)\n\nRunning host_to_device_memcpy_ce.\n"
    "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0\n 0     55.20\n\n"
    "SUM host_to_device_memcpy_ce 55.20\n\n"
    "NOTE: The reported results may not reflect the full capabilities of the platform.\n"
)
WRITES = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : IB
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             197.60             197.55             0.376801
---------------------------------------------------------------------------------------
"""


def burned(errors: str = "0 - 0", word: str = "OK") -> dict:
    return gpu_burn.parse(BURN.format(errors, word), expected_gpus=2)


def diagnosed(memory: str = "Pass", pcie: str = "Pass", *warnings: dict, gpu: int = 3, **options) -> dict:
    def results(word: str) -> list[dict]:
        return [
            entity(n, word if n == gpu or word == "Skip" else "Pass", *(warnings if n == gpu else ())) for n in range(8)
        ]

    tests = {"memory": (memory, results(memory)), "pcie": (pcie, results(pcie))}
    options = {"expected_gpus": 8, "expected_tests": ["memory", "pcie"], **options}
    return dcgm_diag.parse(new_json(tests), **options)


def trained(steps: int = 50) -> dict:
    return training.parse("\n".join(megatron(step, 50) for step in range(1, steps + 1)), warmup_steps=5)


GOOD = {
    "nccl": collective,
    "dcgm_diag": diagnosed,
    "gpu_burn": burned,
    "nvbandwidth": lambda: nvbandwidth.parse(COPIES),
    "training": trained,
    "perftest": lambda: perftest.parse(WRITES),
}


# ---------------------------------------------------------------- passes


@pytest.mark.parametrize("tool", GOOD)
def test_a_good_run_passes_with_its_bound_and_metrics(tool):
    for row in rows_of(run_of(tool), GOOD[tool]()):
        assert (row["outcome"], row["reasons"], row["attribution"]) == ("pass", [], None), row
        assert all(used["holds"] for used in row["boundsUsed"])
        assert row["metrics"] or tool == "dcgm_diag"


@pytest.mark.parametrize("tool", sorted(set(GOOD) - {"dcgm_diag"}))
def test_without_a_bound_it_is_measured_and_opens_no_gate(tool):
    rows = rows_of(run_of(tool), GOOD[tool](), thresholds={})
    assert {row["outcome"] for row in rows} == {"pass_unbounded"} and rows[0]["metrics"]
    assert not any(node["mayOpenGate"] for node in combine(rows))
    assert all(node["mayOpenGate"] for node in combine(rows, allow_unbounded=True))
    assert all(node["mayOpenGate"] for node in combine(rows, allow_unbounded=[tool]))
    assert not any(node["mayOpenGate"] for node in combine(rows, allow_unbounded=["another"]))


def test_a_bound_for_other_accelerators_only_is_none():
    listed = [{"metric": "busBandwidthGBps", "expression": "value >= 600", "accelerator": "gb200"}]
    assert told(rows_of(run_of(), collective(), thresholds={}, listed=listed))[0][0] == "pass_unbounded"
    # another bound does not make up for it
    row = rows_of(run_of(), collective(), thresholds={"smallestSizeTimeUs": "value < 9e9"}, listed=listed)[0]
    assert row["outcome"] == "pass_unbounded" and "busBandwidthGBps" in row["reasons"][0]


def test_a_workload_without_a_parser_is_unbounded_if_it_ends_with_zero():
    run = run_of("none")
    assert alone(rows_of(run, None))["outcome"] == "pass_unbounded"
    assert alone(rows_of(run, None, ended(["gpu-1"], 1)))["outcome"] == "error"


# ---------------------------------------------------------------- bounds


def test_a_broken_bound_fails_every_node_of_the_group():
    rows = rows_of(run_of(), collective(), thresholds={"busBandwidthGBps": "value >= 500"})
    assert told(rows) == [("fail", "bound", "group")] * 2
    assert "not >= 500 GB/s (bound from thresholds)" in rows[0]["reasons"][0]
    assert rows[0]["violations"][0]["bound"] == 500


def test_a_broken_bound_of_one_node_is_its_own():
    row = alone(rows_of(run_of("gpu_burn"), burned(), thresholds={"gflopsPerGpu.min": "value >= 15000"}))
    assert (row["outcome"], row["attribution"]) == ("fail", "unknown")


def test_a_bound_whose_metric_is_missing_is_no_pass():
    parsed = collective()
    del parsed["runs"][0]["metrics"]["busBandwidthGBps"]
    assert told(rows_of(run_of(), parsed)) == [("not_measured", "not-measured", "tool")] * 2


def test_too_few_peers_is_no_pass():
    rows = rows_of(run_of(), collective(), thresholds={"busBandwidthGBps": "value > fleet.median"}, fleet=[])
    assert told(rows)[0][0] == "not_measured"


def test_categories_that_differ_in_bounds_only_are_two_results():
    low = rows_of(run_of(), collective(), category="low")
    high = rows_of(run_of(), collective(), thresholds={"busBandwidthGBps": "value >= 500"}, category="high")
    assert low[0]["run"] == high[0]["run"] and low[0]["result"] != high[0]["result"]
    (first, _second) = combine(low + high)
    assert [(test["category"], test["outcome"]) for test in first["tests"]] == [("low", "pass"), ("high", "fail")]
    assert first["verdict"] == "fail" and not first["mayOpenGate"]


# ---------------------------------------------------------------- findings decide without bounds


def test_wrong_values_fail_however_fast():
    rows_ = [{"size": size, "wrong": int(size == out.SIZES[3])} for size in out.SIZES]
    rows = rows_of(run_of(), collective(rows=rows_, wrong=1))
    assert told(rows) == [("fail", "wrong-values", "group")] * 2


def test_exit_0_with_a_faulty_gpu_fails():
    row = alone(rows_of(run_of("gpu_burn"), burned("1 (WARNING!)- 0", "FAULTY")))
    assert (row["outcome"], row["attribution"]) == ("fail", "hardware") and "GPU 0" in row["reasons"][0]


def test_ok_without_work_is_no_pass():
    idle = "GPU 0: Some GPU (UUID: GPU-00000000-aaaa)\nBurning for 60 seconds.\n\nTested 1 GPUs:\n\tGPU 0: OK\n"
    assert alone(rows_of(run_of("gpu_burn"), gpu_burn.parse(idle), thresholds={}))["code"] == "no-work"
    parsed = burned()
    parsed["runs"][0]["metrics"]["iterations.min"]["value"] = 0
    assert alone(rows_of(run_of("gpu_burn"), parsed))["code"] == "no-work"


@pytest.mark.parametrize("expected", [["memory", "pcie"], []])
def test_skipped_tests_are_no_pass(expected):
    run = run_of("dcgm_diag", arguments={"expected_tests": expected})
    row = alone(rows_of(run, diagnosed(pcie="Skip", expected_tests=expected)))
    assert row["outcome"] == "skipped" and "pcie" in row["reasons"][0].lower()


def test_a_test_that_was_not_asked_for_may_be_skipped():
    run = run_of("dcgm_diag", arguments={"expected_tests": ["memory"]})
    row = alone(rows_of(run, diagnosed(pcie="Skip", expected_tests=["memory"])))
    assert row["outcome"] == "pass" and any("skipped" in text for text in row["warnings"])


def test_a_required_test_that_is_nowhere_is_no_pass():
    run = run_of("dcgm_diag", arguments={"expected_tests": ["memory", "pcie", "targeted_power"]})
    assert alone(rows_of(run, diagnosed()))["outcome"] == "skipped"


def test_a_gpu_that_fails_a_diagnostic_is_hardware_and_a_setting_is_not():
    broken = warning("GPU 3 has row remapping failures", 80, 10, 2)
    row = alone(rows_of(run_of("dcgm_diag"), diagnosed("Fail", "Pass", broken), ended(["gpu-1"], 226)))
    assert (row["outcome"], row["attribution"]) == ("fail", "hardware")
    setting = warning("Persistence mode for GPU 3 is disabled. Enable it with nvidia-smi -pm 1", 25, 0, 3)
    row = alone(rows_of(run_of("dcgm_diag"), diagnosed("Fail", "Pass", setting), ended(["gpu-1"], 226)))
    assert row["outcome"] != "pass" and row["attribution"] == "configuration"


def test_no_fabric_manager_is_one_fault_of_a_service():
    down = warning("Error using CUDA API cudaDeviceGetByPCIBusId: system not yet initialized (802)", 38, 0, 3)
    tests = {"memory": ("Fail", [entity(gpu, "Fail", down) for gpu in range(8)])}
    parsed = dcgm_diag.parse(new_json(tests), expected_gpus=8, expected_tests=["memory"])
    row = alone(rows_of(run_of("dcgm_diag"), parsed, ended(["gpu-1"], 226)))
    assert (row["outcome"], row["code"], row["attribution"]) == ("error", "fabric-manager-down", "infrastructure")
    assert len(row["reasons"]) == 1
    # whatever else is said
    parsed["findings"] += [
        {
            "code": "gpu-died",
            "severity": "error",
            "scope": "gpu",
            "host": None,
            "message": "GPU 1",
            "category": "hardware",
        }
    ]
    row = alone(rows_of(run_of("dcgm_diag"), parsed))
    assert (row["attribution"], len(row["reasons"])) == ("infrastructure", 1)


def test_no_fabric_manager_in_a_group_is_its_nodes_own():
    text = "node-a: Test CUDA failure common.cu:894 'system not yet initialized'\n"
    rows = rows_of(run_of(), nccl.parse(text), ended(PAIR, 2))
    assert told(rows) == [
        ("error", "fabric-manager-down", "infrastructure"),
        ("not_measured", "spoiled", "group"),
    ]


def test_a_broken_gpu_in_a_group_is_its_nodes_own():
    text = "node-b: Test CUDA failure common.cu:894 'uncorrectable ECC error encountered'\n"
    rows = rows_of(run_of(), nccl.parse(text), ended(PAIR, 2))
    assert told(rows) == [("not_measured", "spoiled", "group"), ("fail", "gpu-ecc-error", "hardware")]
    assert "gpu-2" in rows[0]["reasons"][0]
    assert for_search(rows)["outcome"] == "fail"


def test_a_broken_gpu_on_a_host_nobody_knows_is_the_groups():
    text = "elsewhere: Test CUDA failure common.cu:894 'uncorrectable ECC error encountered'\n"
    rows = rows_of(run_of(), nccl.parse(text), ended(PAIR, 2))
    assert {(row["outcome"], row["attribution"]) for row in rows} == {("fail", "group")}
    assert "elsewhere" in rows[0]["reasons"][0]


def test_the_wrong_transport_fails():
    lines = [f"node-a:1000:1 [0] NCCL INFO Channel 0{n}/0 : 0[0] -> 8[0] [send] via NET/Socket/0" for n in range(2)]
    parsed = nccl.parse("\n".join([*lines, *out.run()]), expected_ranks=16, expected_hosts=2, expected_transport="IB")
    row = rows_of(run_of(), parsed)[0]
    assert (row["outcome"], row["attribution"]) == ("fail", "group") and row["code"] in (
        "wrong-transport",
        "tcp-fallback",
    )


def test_nodes_that_were_each_tested_alone_are_judged_alone():
    words = {"node-a": "OK", "node-b": "FAULTY"}
    text = "".join(
        f"[pod/{host}/main] {line}\n"
        for host, word in words.items()
        for line in BURN.format("0 - 0", word).replace("\r", "\n").splitlines()
    )
    rows = rows_of(run_of("gpu_burn", PAIR), gpu_burn.parse(text))
    assert [(row["node"], row["outcome"]) for row in rows] == [("gpu-1", "pass"), ("gpu-2", "fail")]


def test_names_of_hosts_may_be_long_or_addresses():
    text = "{}: Test CUDA failure common.cu:894 'uncorrectable ECC error encountered'\n"
    for nodes, host in (
        (["gpu-1.rack.example", "gpu-2.rack.example"], "gpu-2"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.2"),
        (["gpu-1", "gpu-2"], "gp-0123456789ab-1.workers.team.svc"),
    ):
        rows = rows_of(run_of("nccl", nodes), nccl.parse(text.format(host)), ended(nodes, 2))
        assert [row["outcome"] for row in rows] == ["not_measured", "fail"], nodes
    rows = rows_of(run_of("nccl", ["gpu.a", "gpu.b"]), nccl.parse(text.format("gpu")), ended(["gpu.a", "gpu.b"], 2))
    assert {row["attribution"] for row in rows} == {"group"}


def test_ranks_and_hosts_that_are_missing_are_an_error():
    assert told(rows_of(run_of(), collective(gpus=7)))[0] == ("error", "ranks-missing", "configuration")
    # also where the parser was told nothing
    row = rows_of(run_of(), nccl.parse("\n".join(out.run(gpus=7))))[0]
    assert (row["outcome"], row["code"]) == ("error", "ranks-missing")
    row = rows_of(run_of(), nccl.parse("\n".join(out.run(hosts=("node-a",), gpus=16))))[0]
    assert (row["outcome"], row["code"]) == ("error", "hosts-missing")


def test_one_rank_measures_nothing():
    run = run_of("nccl", ["gpu-1"], expected={"ranks": 1, "hosts": 1})
    parsed = nccl.parse("\n".join(out.run(hosts=("node-a",), gpus=1)), expected_ranks=1)
    assert alone(rows_of(run, parsed))["outcome"] == "not_applicable"


# ---------------------------------------------------------------- how it ended


def test_a_passing_table_with_an_error_at_the_end_is_no_pass():
    rows = rows_of(run_of(), collective(), ended(PAIR, 1))
    assert told(rows) == [("error", "exit-status", "unknown")] * 2
    assert "although its output is complete" in rows[0]["reasons"][0]


def test_how_the_workers_of_mpirun_are_stopped_says_nothing():
    observed = ended(PAIR)
    observed["pods"][0]["exitCode"] = 143
    assert told(rows_of(run_of(), collective(), observed))[0][0] == "pass"
    assert told(rows_of(run_of(launcher="indexed-job"), collective(), observed))[0][0] == "error"


def test_where_the_first_worker_is_the_launcher_its_end_counts():
    observed = ended(PAIR)
    observed["pods"] = [{**pod, "index": number} for number, pod in enumerate(observed["pods"][:2])]
    observed["pods"][1]["exitCode"] = 143
    assert told(rows_of(run_of(), collective(), observed))[0][0] == "pass"
    observed["pods"][0]["exitCode"] = 1
    assert told(rows_of(run_of(), collective(), observed))[0][0] == "error"


def test_a_crash_is_told_to_the_search():
    rows = rows_of(run_of(), None, ended(PAIR, 139))
    assert rows[0]["outcome"] == "error" and for_search(rows)["outcome"] == "crash"
    assert "signal 11" in rows[0]["reasons"][0]


def test_what_explains_most_stands_first():
    text = "\n".join([*out.run()[:6], "node-a: Invalid number of GPUs: 8 requested but only 7 were found"])
    rows = rows_of(run_of(), nccl.parse(text), ended(PAIR, 5))
    assert rows[0]["code"] == "invalid-gpu-count" and rows[0]["attribution"] == "configuration"
    assert len(rows[0]["reasons"]) > 2
    assert rows_of(run_of(), nccl.parse(""), ended(PAIR, 137))[0]["code"] == "crash"
    # of 166 on it is no signal
    assert for_search(rows_of(run_of(), nccl.parse(""), ended(PAIR, 226)))["outcome"] == "error"


@pytest.mark.parametrize("tool", sorted(set(GOOD)))
def test_an_output_that_breaks_off_is_an_error_or_by_its_silence_a_hang(tool):
    parsed = {**GOOD[tool](), "complete": False}
    assert {row["outcome"] for row in rows_of(run_of(tool), parsed)} == {"error"}
    run = run_of(tool)
    rows = rows_of(run, parsed, ended(run["nodes"], phase="running", timedOut="silence"))
    assert {row["outcome"] for row in rows} == {"hang"} and "15 min" in rows[0]["reasons"][0]
    rows = rows_of(run, parsed, ended(run["nodes"], phase="running", timedOut="run"))
    assert {(row["outcome"], row["code"]) for row in rows} == {("error", "run-timeout")}


def test_no_output_is_an_error():
    assert told(rows_of(run_of(), None))[0][:2] == ("error", "output-incomplete")
    assert told(rows_of(run_of(), nccl.parse("")))[0][0] == "error"


def test_a_hang_after_a_complete_result_is_a_warning():
    row = rows_of(run_of(), collective(), ended(PAIR, phase="running", timedOut="silence"))[0]
    assert row["outcome"] == "pass" and "did not end" in row["warnings"][0]


def test_a_collective_that_times_out_hangs():
    text = (
        "[rank3]:[E1] [PG 0 Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)"
    )
    rows = rows_of(run_of("training"), training.parse(text), ended(PAIR, 1))
    assert rows[0]["outcome"] in ("hang", "error")
    rows = rows_of(run_of(), nccl.parse(text), ended(PAIR, 1))
    assert told(rows) == [("hang", "collective-timeout", "group")] * 2


@pytest.mark.parametrize(
    ("observed", "outcome", "code"),
    [
        (
            {"phase": "queued", "timedOut": "queue", "why": "quota of team-a is used up"},
            "not_run",
            "queue-timeout",
        ),
        (
            {"phase": "starting", "timedOut": "start", "why": "0/8 nodes: too few GPUs"},
            "not_run",
            "start-timeout",
        ),
        ({"phase": "running"}, "not_run", "not-ended"),
        ({"phase": "gone"}, "error", "objects-gone"),
        ({}, "not_run", "not-ended"),
    ],
)
def test_a_run_that_never_came_to_its_end(observed, outcome, code):
    for parsed in (None, collective()):
        row = rows_of(run_of(), parsed, {"pods": ended(PAIR)["pods"], **observed})[0]
        assert (row["outcome"], row["code"]) == (outcome, code)
        assert observed.get("why", "") in row["reasons"][0]


@pytest.mark.parametrize(
    ("reason", "code", "attribution"),
    [
        ("ImagePullBackOff", "image-pull", "infrastructure"),
        ("Evicted", "pod-ended", "infrastructure"),
        ("OutOfnvidia.com/gpu", "pod-ended", "infrastructure"),
        ("OOMKilled", "pod-ended", "configuration"),
    ],
)
@pytest.mark.parametrize("phase", ["starting", "failed"])
def test_what_befell_a_pod_is_not_its_nodes_fault(reason, code, attribution, phase):
    observed = ended(PAIR, phase=phase, timedOut="start" if phase == "starting" else None)
    observed["pods"][1].update(reason=reason, message="said so")
    parsed = nccl.parse("node-a:1:1 [0] NCCL WARN socketProgress: Connection closed by remote peer node-b<1>")
    rows = rows_of(run_of(), parsed, observed)
    assert told(rows) == [("error", code, attribution)] * 2
    assert "gpu-2" in rows[0]["reasons"][0] and "said so" in rows[0]["reasons"][0]
    assert for_search(rows)["outcome"] == "error"


def test_a_node_without_a_pod_was_not_tested():
    observed = ended(PAIR)
    observed["pods"] = [pod for pod in observed["pods"] if pod["node"] == "gpu-1"]
    row = rows_of(run_of(), collective(), observed)[0]
    assert (row["outcome"], row["code"]) == ("error", "node-missing") and "gpu-2" in row["reasons"][0]


def test_a_pod_that_began_anew_is_no_pass():
    observed = ended(PAIR)
    observed["pods"][0]["restarts"] = 1
    assert told(rows_of(run_of(), collective(), observed))[0][:2] == ("error", "restarted")


def test_what_is_left_on_a_node_bars_it():
    observed = ended(PAIR, dirty={"gpu-2": "process 4711 holds 70 GiB"})
    assert [row["outcome"] for row in rows_of(run_of(), collective(), observed)] == ["pass", "error"]


# ---------------------------------------------------------------- nodes


def test_every_node_asked_for_gets_a_row():
    rows = rows_of(
        run_of(), collective(), asked=["gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5"],
        blocked={"gpu-3": "7 of 8 GPUs"}, notApplicable={"gpu-4": "its GPUs are partitioned (MIG)"},
    )  # fmt: skip
    assert [(row["node"], row["outcome"]) for row in rows] == [
        ("gpu-1", "pass"), ("gpu-2", "pass"), ("gpu-3", "blocked"), ("gpu-4", "not_applicable"), ("gpu-5", "not_run"),
    ]  # fmt: skip
    assert rows[2]["reasons"] == ["7 of 8 GPUs"] and for_search(rows)["outcome"] == "blocked"


def row(node: str, outcome: str, category: str = "a", run: str = "r1", attribution=None, result: str = "x") -> dict:
    return {
        "node": node, "category": category, "test": "t", "run": run, "result": result, "outcome": outcome,
        "code": outcome, "attribution": attribution, "reasons": [f"{outcome} of {run}"],
    }  # fmt: skip


def verdict(rows: list[dict], **options) -> list[tuple[str, str, bool]]:
    return [(node["node"], node["verdict"], node["mayOpenGate"]) for node in combine(rows, **options)]


def test_the_worst_required_test_is_the_verdict():
    rows = [row("n1", "pass"), row("n1", "skipped", "b"), row("n2", "pass"), row("n2", "pass", "b")]
    assert verdict(rows) == [("n1", "skipped", False), ("n2", "pass", True)]
    assert verdict(rows, required=["a"]) == [("n1", "pass", True), ("n2", "pass", True)]


def test_a_required_test_or_an_asked_node_without_a_row_was_not_run():
    assert verdict([row("n1", "pass")], required=["a", "b"], asked=["n0", "n1"]) == [
        ("n0", "not_run", False),
        ("n1", "not_run", False),
    ]
    assert verdict([], asked=["n0"]) == [("n0", "not_run", False)]
    assert verdict([row("n1", "pass"), row("n2", "pass", "b")]) == [("n1", "not_run", False), ("n2", "not_run", False)]


def test_a_retry_replaces_an_error_and_never_a_fail():
    assert verdict([row("n1", "error"), row("n1", "pass")]) == [("n1", "pass", True)]
    assert verdict([row("n1", "fail"), row("n1", "pass")]) == [("n1", "fail", False)]
    assert verdict([row("n1", "error"), row("n1", "pass", run="r2")]) == [("n1", "error", False)]
    assert verdict([row("n1", "pass"), row("n1", "error")]) == [("n1", "error", False)]


def test_the_search_takes_a_groups_fail_off_a_node_that_passed_itself():
    failed = [row("n1", "fail", attribution="group"), row("n2", "fail", attribution="group")]
    searched = [row("n1", "pass", run="r2"), row("n2", "fail", run="r3", attribution="group")]
    assert verdict(failed, cleared={"a": ["n1"]}) == [("n1", "fail", False), ("n2", "fail", False)]
    assert verdict(failed + searched) == [("n1", "fail", False), ("n2", "fail", False)]
    assert verdict(failed + searched, cleared={"a": ["n1"]}) == [("n1", "pass", True), ("n2", "fail", False)]
    (_one, other) = combine(failed + searched, cleared={"a": ["n1"]}, blamed={"a": {"n2": "failed with 3 partners"}})
    assert (other["verdict"], other["attribution"]) == ("fail", "unknown")
    assert other["reasons"][0] == "a: failed with 3 partners"
    assert verdict([row("n1", "pass")], blamed={"a": {"n1": "flaky: 1 of 4"}}) == [("n1", "fail", False)]
    own = [row("n1", "fail", run="r4", attribution="hardware")]
    assert verdict(failed + searched + own, cleared={"a": ["n1"]})[0] == ("n1", "fail", False)


# ---------------------------------------------------------------- nothing missing is ever a pass


def _without(parsed: dict, observed: dict, run: dict, what: str) -> None:
    """Takes away one thing without which there is no proof."""
    if what == "complete":
        parsed["complete"] = False
    elif what == "runs":
        parsed["runs"] = []
    elif what == "results":
        for entry in parsed["runs"]:
            entry["metrics"] = {}
            entry.pop("tests", None)
            entry["sizes"] = []
    elif what == "values":
        for entry in parsed["runs"]:
            entry["metrics"] = {name: {**metric, "value": None} for name, metric in entry["metrics"].items()}
            entry["tests"] = [{**test, "status": None} for test in entry.get("tests", [])]
    elif what == "phase":
        observed["phase"] = None
    elif what == "ended":
        observed["phase"] = "running"
    elif what == "pods":
        observed["pods"] = []
    elif what == "places":
        observed["pods"] = [{**pod, "node": None} for pod in observed["pods"]]
    elif what == "exit":
        observed["phase"] = "failed"


TAKEN = ["complete", "runs", "results", "values", "phase", "ended", "pods", "places", "exit"]
PARSED = {tool: make() for tool, make in GOOD.items()}


@given(
    tool=st.sampled_from(sorted(GOOD)),
    taken=st.sets(st.sampled_from(TAKEN), min_size=1),
    late=st.sampled_from([None, None, "queue", "start", "run", "silence"]),
    bounded=st.booleans(),
    gone=st.booleans(),
)
def test_no_combination_of_what_is_missing_gives_a_pass(tool, taken, late, bounded, gone):
    run, parsed = run_of(tool), copy.deepcopy(PARSED[tool])
    observed = ended(run["nodes"], timedOut=late)
    for what in sorted(taken):
        _without(parsed, observed, run, what)
    # a result that is complete counts, also where its processes had to be stopped
    if late in ("run", "silence") and taken <= {"phase", "ended", "exit"} and not gone:
        return
    rows = rows_of(run, None if gone else parsed, observed, None if bounded else {})
    for item in rows:
        assert item["outcome"] not in ("pass", "pass_unbounded"), (taken, late, item)
        assert item["reasons"], item
    assert not any(node["mayOpenGate"] for node in combine(rows, allow_unbounded=True))
    json.dumps(rows)


@given(rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["pass", "error"]))))
def test_a_gate_opens_only_where_every_required_test_passed(rows):
    given_ = [row(node, outcome, category, run=str(n)) for n, (node, category, outcome) in enumerate(rows)]
    for node in combine(given_, required=["x", "y"], asked=["a", "b"]):
        mine = {(category, outcome) for name, category, outcome in rows if name == node["node"]}
        good = {("x", "pass"), ("y", "pass")} <= mine and not {("x", "error"), ("y", "error")} & mine
        assert node["mayOpenGate"] is good


def test_what_a_crash_did_to_a_group_is_taken_off_those_that_a_search_cleared():
    """The row of a node whose own pod ended badly stays."""
    base = {"category": "c", "test": "t", "code": "x", "reasons": ["why"], "attribution": "unknown"}
    rows = [
        {**base, "node": "a", "run": "1", "result": "1", "outcome": "error", "own": False},
        {**base, "node": "a", "run": "2", "result": "2", "outcome": "pass", "own": True},
        {**base, "node": "b", "run": "1", "result": "1", "outcome": "error", "own": True},
        {**base, "node": "b", "run": "2", "result": "2", "outcome": "pass", "own": True},
        {**base, "node": "c", "run": "1", "result": "1", "outcome": "error", "own": False},
    ]
    found = {each["node"]: each["verdict"] for each in combine(rows, cleared={"c": ["a", "b", "c"]})}
    assert found == {"a": "pass", "b": "error", "c": "error"}
