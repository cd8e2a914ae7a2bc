# ruff: noqa: E501  (outputs as the tools print them)
"""Training logs: the steps, in one unit, from any framework."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import training
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.certification.training_logs import deepspeed, megatron, nanotron, nemo, stamp


def log(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def codes(result: dict) -> list[str]:
    return [finding["code"] for finding in result["findings"]]


def values(result: dict) -> dict[str, float]:
    assert len(result["runs"]) == 1, [run["label"] for run in result["runs"]]
    return {name: metric["value"] for name, metric in result["runs"][0]["metrics"].items()}


@pytest.mark.parametrize(
    ("make", "framework", "seconds", "tflops"),
    [
        (lambda step: megatron(step, 20, ms=15000), "megatron-lm", 15.0, 490.0),
        (lambda step: deepspeed(step, 20, ms=75000), "megatron-deepspeed", 75.0, 147.61),
        (lambda step: nemo(step, 20, 2.5), "nemo2", 2.5, None),
        (lambda step: nemo(step, 20, 2.5, " | TFLOPS_per_GPU: 1.249e+03"), "nemo2", 2.5, 1249.0),
        (lambda step: nanotron(step, 20), "nanotron", 4.71, 187.0),
        (lambda step: nanotron(step, 20, "998"), "nanotron", 0.998, 187.0),
    ],
)
def test_every_framework_in_seconds(make, framework, seconds, tflops):
    result = training.parse(log(*[make(step) for step in range(1, 21)]))
    run, found = result["runs"][0], values(result)
    assert (run["framework"], run["steps"], run["firstStep"], run["lastStep"], run["totalSteps"]) == (
        framework,
        20,
        1,
        20,
        20,
    )
    assert found["stepTimeSec.median"] == found["avgStepTimeSec"] == seconds
    assert found.get("avgTFLOPsPerGPU") == tflops and found["steps"] == 20
    assert result["complete"] and result["findings"] == [] and result["unparsed"] == []


def test_fields_of_one_step():
    row = training.parse(nanotron(7))["runs"][0]["rows"][0]
    assert row == {
        "step": 7,
        "line": 1,
        "stepTimeSec": 4.71,
        "loss": 5.32,
        "tflopsPerGpu": 187.0,
        "tokensPerSec": 1.09e6,
        "tokensPerSecPerGpu": 13600.0,
    }
    metrics = training.parse(nanotron(7))["runs"][0]["metrics"]
    assert metrics["peakReservedBytes"] == {"value": 52e9, "unit": "B"}
    nemo_ = training.parse(nemo(7, more=" | tokens_per_sec_per_gpu: 6.859e+03 | peak_memory_usage: 72972500992"))[
        "runs"
    ][0]
    assert nemo_["metrics"]["tokensPerSecPerGpu.median"] == {"value": 6859.0, "unit": "tokens/s"}
    assert nemo_["metrics"]["peakMemoryBytes"]["value"] == 72972500992


def test_megatron_bridge():
    text = log(
        "x/0 Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU",
        "",
        "x/0  [2025-12-22 15:18:33] iteration       50/      50 | consumed samples:        25600 | ",
        "elapsed time per iteration (ms): 9089.0 | learning rate: 3.000000E-05 | global batch size:   512 | ",
        "lm loss: 8.114214E+00 | load_balancing_loss: 1.000000E+00 | loss scale: 1.0 | grad norm: 0.042 | ",
        "number of skipped iterations:   0 | number of nan iterations:   1 |",
    )
    result = training.parse(text)
    run, found = result["runs"][0], values(result)
    assert (run["steps"], run["framework"]) == (1, "megatron-bridge")
    assert found["avgStepTimeSec"] == 9.089 and found["avgTFLOPsPerGPU"] == 663.5 and found["loss.last"] == 8.114214
    assert codes(result) == ["nan-iterations"]
    alone = training.parse(log(*["Step Time : 910ms GPU utilization: 663.5MODEL_TFLOP/s/GPU"] * 5))
    assert values(alone)["avgStepTimeSec"] == 0.91 and alone["runs"][0]["steps"] == 5
    long_lines = [
        line for step in range(1, 11)
        for line in (f"Step Time : {step}s GPU utilization: {600 + step}MODEL_TFLOP/s/GPU", megatron(step, 10, ms=step * 1000.0))
    ]  # fmt: skip
    both = training.parse(log(*long_lines))
    assert both["runs"][0]["steps"] == 10 and values(both)["stepTimeSec.median"] == 5.5
    assert values(both)["avgTFLOPsPerGPU"] == 490.0  # the step's own line is nearer to it


@pytest.mark.parametrize("warmup", [0, 1, 3, 10])
def test_warm_up_is_left_out_of_the_metrics(warmup):
    lines = [megatron(step, 30, ms=60000.0 if step <= 3 else 1000.0) for step in range(1, 31)]
    result = training.parse(log(*lines), warmup_steps=warmup)
    run, found = result["runs"][0], values(result)
    assert run["steps"] == 30 and run["warmupDropped"] == warmup and found["steps"] == 30 - warmup
    assert found["stepTimeSec.max"] == (60.0 if warmup < 3 else 1.0)
    assert sum(row.get("warmup", False) for row in run["rows"]) == warmup


def test_warm_up_by_step_where_not_every_step_is_printed():
    lines = [megatron(step, 100, ms=1000.0 + step) for step in range(10, 101, 10)]
    run = training.parse(log(*lines), warmup_steps=15)["runs"][0]
    # the line of step 20 stands for 11 to 20
    assert run["warmupDropped"] == 2 and run["metrics"]["stepTimeSec.median"]["value"] == pytest.approx(1.065)


def test_median_and_p95():
    lines = [nemo(step, 100, 1.0 if step % 10 else 5.0) for step in range(1, 101)]
    found = values(training.parse(log(*lines)))
    assert (
        found["stepTimeSec.median"] == 1.0
        and found["stepTimeSec.p95"] == 5.0
        and found["avgStepTimeSec"] == pytest.approx(1.4)
    )


@pytest.mark.parametrize("loss", ["nan", "NaN", "inf", "-inf"])
def test_a_loss_that_is_no_number(loss):
    lines = [nemo(step, 49, loss=loss if step >= 30 else "2.5") for step in range(50)]
    result = training.parse(log(*lines))
    finding = result["findings"][0]
    assert codes(result) == ["nan-loss"] and finding["line"] == 31 and "20 steps" in finding["message"]
    assert values(result)["loss.last"] == 2.5 and finding["severity"] == "error"


def test_skipped_and_nan_iterations():
    lines = [megatron(step, 20, skipped=step == 4, nans=2 * (step == 9)) for step in range(1, 21)]
    result = training.parse(log(*lines))
    assert {finding["code"]: finding["severity"] for finding in result["findings"]} == {
        "skipped-iterations": "warning", "nan-iterations": "error"
    }  # fmt: skip
    assert "2 iterations" in next(item["message"] for item in result["findings"] if item["code"] == "nan-iterations")


def test_too_few_steps_and_none():
    lines = [megatron(step, 20) for step in range(1, 21)]
    assert codes(training.parse(log(*lines), warmup_steps=5, min_steps=16)) == ["too-few-steps"]
    assert codes(training.parse(log(*lines), warmup_steps=5, min_steps=15)) == []
    assert codes(training.parse(log(*lines), warmup_steps=50)) == ["no-measurement"]
    assert codes(training.parse("starting\nloading weights\n")) == ["no-result"]
    assert not training.parse("")["complete"]


def test_a_log_that_ends_early():
    result = training.parse(log(*[nemo(step, 99) for step in range(12)]))
    assert (
        not result["complete"]
        and codes(result) == ["unfinished"]
        and "step 11 of 99" in result["findings"][0]["message"]
    )
    ended = training.parse(
        log(*[nemo(step, 99) for step in range(12)], "`Trainer.fit` stopped: `max_steps=12` reached.")
    )
    assert ended["complete"] and codes(ended) == []


LABELS = {
    "": None, "0: ": "0", " 12: ": "12", "node-b: ": "node-b", "[1,3]<stdout>:": "1,3", "[default3]:": "3",
    "[pod/train-worker-3/main] ": "train-worker-3", "node-a: 3: ": "node-a/3",
}  # fmt: skip
TIMES = ["", "[{}] ", "[{},123] ", "[{}.123456] ", "{}.250 ", "[{}+08:00] ", "{}Z ", "{}.123456789Z ", "{}Z stdout F "]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("make", [megatron, nemo, nanotron])
def test_labels_and_times_before_a_step(label, time, make):
    lines = [label + time.format(stamp(step * 15)) + make(step, 40) for step in range(1, 41)]
    result = training.parse(log(*lines), warmup_steps=4)
    assert len(result["runs"]) == 1 and result["complete"], [run["label"] for run in result["runs"]]
    run = result["runs"][0]
    assert run["steps"] == 40 and run["warmupDropped"] == 4 and result["findings"] == []
    assert ("time" in run["rows"][0]) == bool(time)
    assert run["label"] == LABELS[label]
    assert run["hosts"] == [(LABELS[label] or "").partition("/")[0]] * ("node" in label or "pod" in label)


def test_times_of_nanotron():
    lines = [f"[default0]:03/06/2026 09:{step:02d}:00 {nanotron(step, 20)}" for step in range(1, 21)]
    result = training.parse(log(*lines), silence_seconds=60)
    assert len([code for code in codes(result) if code == "silence"]) == 19
    assert codes(training.parse(log(*lines), silence_seconds=61)) == []


def test_ranks_that_print_the_same_steps():
    lines = []
    for step in range(1, 31):
        for rank in range(4):
            lines.append(f"{rank}: {megatron(step, 30, ms=1000.0 + 500 * (rank == 2))}")
    runs = training.parse(log(*lines))["runs"]
    assert [(run["label"], run["steps"]) for run in runs] == [(str(rank), 30) for rank in range(4)]
    assert [run["metrics"]["avgStepTimeSec"]["value"] for run in runs] == [1.0, 1.0, 1.5, 1.0]
    unmarked = training.parse(log(*[line.partition(": ")[2] for line in lines]))["runs"]
    assert len(unmarked) == 1 and unmarked[0]["steps"] == 30 and unmarked[0]["repeated"] == 90


def test_memory_of_another_process():
    lines = [
        f"node-b: {deepspeed(1)}",
        "node-a: [Rank 0] (after 1 iterations) memory (MB) | allocated: 17956.49 | max allocated: 68581.8 | reserved: 90178.0",
        "node-a: [2023-11-29 08:55:00,932] [INFO] [timer.py:260:stop] epoch=0, MemAllocated=17.54GB, MaxMemAllocated=66.97GB",
        f"node-b: {deepspeed(2)}",
    ]
    result = training.parse(log(*lines))
    assert [run["label"] for run in result["runs"]] == ["node-b"]
    assert values(result)["peakMemoryBytes"] == pytest.approx(68581.8 * 1024**2)


def test_lines_that_are_no_steps():
    lines = [
        "Validation: iteration 1/32 | val_loss: 3.1 | train_step_timing in s: 100.0",
        "Testing epoch 0, iteration 3/9 | train_step_timing in s: 100.0",
        "saving checkpoint at iteration       5 to /data/ckpt",
        "(min, max) time across ranks (ms):",
        " validation loss at iteration 5 | lm loss value: 1.0E+01 | lm loss PPL: 2.0E+04 |",
    ]
    result = training.parse(log(*lines, *[nemo(step, 9) for step in range(10)], *lines))
    assert result["runs"][0]["steps"] == 10 and len(result["runs"]) == 1 and values(result)["stepTimeSec.max"] == 2.5


def test_restart_from_a_checkpoint():
    steps = [*range(1, 61), *range(41, 101)]
    lines = [f"[{stamp(index * 10)}] {megatron(step, 100, ms=10000.0)}" for index, step in enumerate(steps)]
    result = training.parse(log(*lines), warmup_steps=2)
    run, found = result["runs"][0], values(result)
    assert codes(result) == ["restart"] and run["restarts"] == 1 and run["warmupDropped"] == 4
    # 20 of 119 intervals were spent on work that had been done
    assert found["goodputRatio"] == pytest.approx(99 / 119, abs=0.01)


def test_epochs_count_anew():
    lines = [
        f"Training epoch {epoch}, iteration {step}/9 | train_step_timing in s: 1.0 |"
        for epoch in range(3)
        for step in range(10)
    ]
    run = training.parse(log(*lines))["runs"][0]
    assert (run["steps"], run["restarts"], run["lastStep"]) == (30, 0, 29)


def test_silence():
    lines = [f"[{stamp(step * 10)}] {megatron(step, 20)}" for step in range(1, 11)]
    lines += [
        f"[{stamp(2000)}] [INFO] recovered",
        *[f"[{stamp(2000 + step * 10)}] {megatron(step, 20)}" for step in range(11, 21)],
    ]
    result = training.parse(log(*lines), silence_seconds=600)
    assert codes(result) == ["silence"] and result["findings"][0]["line"] == 11
    assert values(result)["maxSilenceSec"] == 1900 and result["runs"][0]["gaps"] == [{"line": 11, "seconds": 1900.0}]
    assert values(result)["goodputRatio"] < 0.2


def test_clocks_of_two_nodes_are_no_silence():
    lines = []
    for step in range(1, 30):
        lines += [
            f"node-a: [{stamp(step * 10)}] {megatron(step, 29)}",
            f"node-b: [{stamp(step * 10 + 250)}] [INFO] alive",
        ]
    assert codes(training.parse(log(*lines))) == []


@pytest.mark.parametrize(
    ("line", "code", "category"),
    [
        ("3: RuntimeError: CUDA error: uncorrectable ECC error encountered", "memory-error", "hardware"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out-of-memory", "configuration"),
        ("[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", "collective-timeout", "unknown"),
        ("ncclSystemError: System call (e.g. socket, malloc) or external library call failed", "nccl-error", "unknown"),
        ("srun: error: node-b: task 3: Exited with exit code 1", "process-ended", "infrastructure"),
        ("Traceback (most recent call last):", "program-error", "tool"),
        ("RuntimeError: cudaGetDeviceCount(): Error 802: system not yet initialized", "fabric-manager-down", "infrastructure"),
    ],
)  # fmt: skip
def test_what_broke(line, code, category):
    lines = [megatron(step, 20) for step in range(1, 11)]
    result = training.parse(log(*lines, line, line))
    finding = next(item for item in result["findings"] if item["code"] == code)
    assert finding["category"] == category and finding["line"] == 11 and line[-20:] in finding["text"]
    assert codes(result).count(code) == 1


def test_any_form_of_a_log_gives_the_same(tmp_path):
    text = log(*[f"[{stamp(step)}] {megatron(step, 3000, ms=1000.0 + step % 7)}" for step in range(1, 3001)])
    expected = training.parse(text, warmup_steps=10)
    path = tmp_path / "train.log"
    path.write_text(text)
    with path.open() as as_text, path.open("rb") as as_bytes:
        forms = [
            text.encode(),
            text.splitlines(),
            text.splitlines(True),
            iter(text.encode().splitlines()),
            as_text,
            as_bytes,
        ]
        for form in [*forms, text.replace("\n", "\r\n"), bytearray(text.encode())]:
            assert training.parse(form, warmup_steps=10) == expected
    assert expected["runs"][0]["steps"] == 3000 and len(expected["runs"][0]["rows"]) <= 1000


def test_a_progress_bar_in_one_line():
    text = "\r".join(f"{nemo(step, 9)}" for step in range(10)) + "\n"
    result = training.parse(text)
    assert result["runs"][0]["steps"] == 10 and result["lines"] == 1


def test_fast_and_slow_ways_agree():
    """Steps that lie alike are read at once; a layout that changes with every line is read one by one."""
    plain = [megatron(step, 500, ms=1000.0 + step % 13, tflops=400.0 + step % 11) for step in range(1, 501)]
    mixed = [
        line if index % 2 else line.replace("loss scale", "other | loss scale") for index, line in enumerate(plain)
    ]
    assert values(training.parse(log(*plain), warmup_steps=7)) == values(training.parse(log(*mixed), warmup_steps=7))


@pytest.mark.parametrize(
    "parameters",
    [{"warmup_steps": -1}, {"warmup_steps": "x"}, {"min_steps": 1.5}, {"silence_seconds": 0}, {"warmup_steps": True}],
)
def test_parameters_that_cannot_be(parameters):
    with pytest.raises(InvalidDocument, match=next(iter(parameters))):
        training.parse("", **parameters)


@pytest.mark.parametrize("value", [None, 7, {"a": 1}, [1], ["a", None]])
def test_what_is_no_log(value):
    with pytest.raises(InvalidDocument, match="log"):
        training.parse(value)


def test_the_progress_bar_of_older_nemo():
    bar = "Epoch 0: :   4%|▍         | {0}/20 [00:30<12:34, v_num=0, reduced_train_loss=10.90, global_step={0}.000, train_step_timing in s=6.100]"
    result = training.parse("\r".join(bar.format(step) for step in range(1, 21) for _again in range(2)) + "\n")
    run = result["runs"][0]
    assert (run["framework"], run["steps"], run["repeated"], run["lastStep"]) == ("nemo", 20, 20, 20) and result[
        "complete"
    ]
    assert values(result)["avgStepTimeSec"] == 6.1 and values(result)["loss.last"] == 10.9
