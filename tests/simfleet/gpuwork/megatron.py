"""Pre-training with Megatron-LM under torchrun: the first rank says what it runs, the last one prints the steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .playing import Act, Work

STEP_MS, TFLOPS = 2400.0, 640.0
BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SHOWN_BEFORE_FAULT = 3


def act(work: Work) -> Act:
    lines = [] if work.me else [f"using world size: {_ranks(work)}, data-parallel size: {_ranks(work)}"]
    if work.my_fault in ("crash", "missing-gpu"):
        return Act([*lines, *_dies(work)], 1)
    steps = int(work.option("--train-iters", default="50"))
    stopped = bool(work.hosts_with("hang", "crash", "missing-gpu"))
    if work.me == len(work.hosts) - 1:
        if not work.hosts_with("missing-gpu"):
            lines += _steps(work, SHOWN_BEFORE_FAULT if stopped else steps, steps)
        lines += [] if stopped else [f"[after training is done] datetime: {BEGIN:%Y-%m-%d %H:%M:%S} "]
    return Act(lines, hang=stopped)


def _ranks(work: Work) -> int:
    return len(work.hosts) * work.gpus


def slowness(work: Work) -> float:
    factor = 1.6 if work.hosts_with("slow-gpu") else 1.0
    if len(work.hosts) > 1:
        if work.hosts_with("tcp-fallback"):
            factor *= 8
        if work.hosts_with("slow-nic"):
            factor *= 1.5
        if work.bad_pair:
            factor *= 1.5
    return factor / work.wobble


def _steps(work: Work, shown: int, steps: int) -> list[str]:
    ranks, wrong = _ranks(work), bool(work.hosts_with("wrong-values"))
    lines, now = [], BEGIN
    for step in range(1, shown + 1):
        ms = STEP_MS * slowness(work) * (6 if step == 1 else 1 + 0.004 * (step % 5))
        now += timedelta(milliseconds=ms)
        bad = wrong and step > SHOWN_BEFORE_FAULT
        loss = "NAN" if bad else f"{12.3 - 4 * step / (steps + 20):.6E}"
        speed = TFLOPS * STEP_MS / ms
        lines.append(
            f" [{now:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/{steps:8d} | consumed samples: {step * ranks:12d} | "
            f"elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): {speed:.1f} | "
            f"learning rate: 4.134000E-07 | global batch size: {ranks:5d} | lm loss: {loss} | loss scale: 1.0 | "
            f"grad norm: 2.870 | number of skipped iterations:   0 | number of nan iterations: {int(bad):3d} |"
        )
    return lines


def _dies(work: Work) -> list[str]:
    first = work.me * work.gpus
    rank = first + work.gpus - 1 if work.my_fault == "missing-gpu" else first
    why = "invalid device ordinal" if work.my_fault == "missing-gpu" else "an illegal memory access was encountered"
    script = next((word for word in work.command if word.endswith(".py")), "train.py")
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "{script}", line 330, in <module>',
        f"[rank{rank}]: torch.AcceleratorError: CUDA error: {why}",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        f"{script} FAILED",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        f"  host      : {work.hosts[work.me]}",
        f"  rank      : {rank} (local_rank: {rank - first})",
        "  exitcode  : 1 (pid: 71)",
        "=" * 60,
    ]
