"""Training logs to steps: 100 MB of each framework's lines, whole and as a stream of lines.

Times are of the processor, so that neighbours on a shared machine count little.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import training

SIZE = 100_000_000
BOUND = 50.0  # MB/s
MEMORY_BOUND = 64  # MiB for a log that is never whole in memory

NOISE = (
    "[{clock}] [INFO] [checkpointing.py:41:save] saved shard {number} of the optimizer to /data/run/ckpt/{number}",
    "node-b: [{clock}] WARNING: NCCL_IB_TIMEOUT is not set; using the default of the fabric for device mlx5_{number}",
    "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1762: UserWarning: full backward hook {number}",
)


def clock(number: int) -> str:
    return f"2026-03-{number // 86400 % 28 + 1:02d} {number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}"


def megatron(number: int) -> str:
    return (
        f"[{clock(number)}] iteration {number:8d}/ 9999999 | consumed samples: {number * 2048:12d} | elapsed time per "
        f"iteration (ms): {980 + number % 40:.1f} | throughput per GPU (TFLOP/s/GPU): {480 + number % 30:.1f} | "
        f"learning rate: 4.134000E-07 | global batch size:  2048 | lm loss: {9 + number % 7 / 10:.6E} | "
        "loss scale: 1.0 | grad norm: 2.870 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def nemo(number: int) -> str:
    return (
        f"0: [{clock(number)}] Training epoch 0, iteration {number}/9999999 | lr: 0.0001758 | global_batch_size: 32 | "
        f"global_step: {number} | reduced_train_loss: {2 + number % 9 / 10:.3f} | train_step_timing in s: "
        f"{1 + number % 50 / 100:.3f} | TFLOPS_per_GPU: {1.2e3 + number % 40:.3e} | consumed_samples: {number * 32}"
    )


def nanotron(number: int) -> str:
    day = clock(number)
    return (
        f"[default0]:{day[5:7]}/{day[8:10]}/{day[:4]} {day[11:]} [INFO|DP=0|PP=0|TP=0|nid001]: iteration: {number} "
        f"/ 9999999 | consumed_tokens: {number * 2}K | elapsed_time_per_iteration_ms: {4 + number % 30 / 100:.2f}K | "
        f"tokens_per_sec: 1.09M | tokens_per_sec_per_gpu: {13 + number % 9 / 10:.1f}K | global_batch_size: 1.02K | "
        "lm_loss: 5.32 | lr: 0.00015 | model_tflops_per_gpu: 187 | hardware_tflops_per_gpu: 191 | grad_norm: 2.96"
    )


def lines(make: Callable[[int], str], share: int) -> Iterator[str]:
    """SIZE characters; one line in `share` is a step."""
    size = number = 0
    while size < SIZE:
        step, rest = divmod(number, share)
        text = NOISE[number % 3].format(number=number, clock=clock(step + 1)) if rest else make(step + 1)
        number += 1
        size += len(text) + 1
        yield text


def peak() -> float:
    """The most memory this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    bad = 0
    before = peak()
    training.parse(lines(megatron, 4))
    grown = peak() - before
    for name, make, share in (
        ("megatron_steps_only", megatron, 1),
        ("megatron_with_noise", megatron, 4),
        ("nemo_steps_only", nemo, 1),
        ("nanotron_steps_only", nanotron, 1),
    ):
        data = "\n".join(lines(make, share)).encode()
        expected = data.count(b"| global_batch_size") + data.count(b"| global batch size")
        best, result = float("inf"), {}
        for _run in range(3):
            began = time.process_time()
            result = training.parse(data)
            best = min(best, time.process_time() - began)
        if sum(run["steps"] for run in result["runs"]) != expected or result["unparsed"] or len(result["runs"]) != 1:
            print(f"wrong result: {expected} steps, {result['runs'][0]['steps']} read", file=sys.stderr)
            return 2
        began = time.process_time()
        sum(b"iteration" in line for line in data.split(b"\n"))
        plain = time.process_time() - began
        rate = len(data) / 1e6 / best
        bad += rate < BOUND
        print(
            f"training_{name} {rate:.0f} MB/s {plain / best:.2f}x-split-and-look {BOUND:.0f} "
            f"{'MISSED' if rate < BOUND else 'ok'}"
        )
    over = grown > MEMORY_BOUND
    print(f"training_memory {grown:.0f} MiB - {MEMORY_BOUND} {'MISSED' if over else 'ok'}")
    return int(bool(bad) or over)


if __name__ == "__main__":
    sys.exit(main())
