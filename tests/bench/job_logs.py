"""Logs of a failed job to its signature: 512 ranks of 10,000 lines each, one log for each rank and one for all.

Times are of the processor, so that neighbours on a shared machine count little.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import signatures
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.classify import classify

RANKS, LINES, CULPRIT = 512, 10_000, 77
BOUND = 40.0  # MB/s
MEMORY_BOUND = 96  # MiB beyond what the interpreter and the catalogue take
NOISE = (
    "[2026-03-06 {clock}] [INFO] [checkpointing.py:41:save] saved shard {number} of the optimizer to /ckpt/{number}",
    "gpu-{node:03d}:{pid}:{pid} [{local}] NCCL INFO Channel {number}/0 : {rank}[{local}] -> {rank}[{local}] via P2P",
    "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1762: UserWarning: full backward hook {number}",
    " iteration {number:8d}/ 9999999 | consumed samples: {number} | elapsed time per iteration (ms): 980.1 | loss: 2.1",
)
WATCHDOG = (
    "[rank{rank}]:[E306 09:10:00.408 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600060 ms"
)
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def lines(rank: int, label: str = "") -> Iterator[str]:
    """One rank's log; a quarter of the first rank's lines are steps."""
    for number in range(LINES - 2):
        kind = number % (4 if rank == 0 else 3)
        clock = f"{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
        text = NOISE[kind].format(
            number=number, clock=clock, node=rank // 8, local=rank % 8, pid=7000 + rank, rank=rank
        )
        yield f"{label}{text}"
    yield f"[rank{rank}]: {ECC}" if rank == CULPRIT else f"{label}done with data"
    yield WATCHDOG.format(rank=rank)


def random_lines(count: int) -> Iterator[str]:
    """Lines no two of which have the same shape."""
    value = 1
    for _line in range(count):
        value = value * 6364136223846793005 % (1 << 512) | 1
        yield f"{value:x} {value:o}"[:150].translate(str.maketrans("01234567", "ghijklmn"))


def peak() -> float:
    """The most memory this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Metered:
    """Makes logs, and counts their bytes and the time that takes."""

    def __init__(self) -> None:
        self.size, self.spent = 0, 0.0

    def of(self, source: Iterator[str]) -> Iterator[bytes]:
        done = False
        while not done:
            began = time.process_time()
            batch = []
            for line in source:
                batch.append(line)
                if len(batch) == 2000:
                    break
            else:
                done = True
            data = ("\n".join(batch) + "\n").encode()
            self.size += len(data)
            self.spent += time.process_time() - began
            yield data


def main() -> int:
    table = signatures.load_catalog([str(ROOT / "gitops/catalog")])
    before, bad = peak(), 0

    def each() -> list[tuple]:
        return [(rank, f"train-{rank}", lambda rank=rank: meter.of(lines(rank))) for rank in range(RANKS)]

    def together() -> list[tuple]:
        streams = (line for start in range(0, RANKS, 8) for line in interleaved(range(start, start + 8)))
        return [(None, "", meter.of(streams))]

    def noise() -> list[tuple]:
        return [(0, "", meter.of(random_lines(100_000)))]

    for name, make, bound in (
        ("each_rank", each, BOUND),
        ("all_in_one", together, BOUND / 2),
        ("no_shape_twice", noise, 2.0),
    ):
        meter = Metered()
        began = time.process_time()
        answer = classify(make(), table, {"year": 2026})
        spent = time.process_time() - began - meter.spent
        expected = ("", []) if make is noise else ("J043", [CULPRIT])
        if (answer["id"], answer["blame"]["ranks"]) != expected:
            print(f"wrong result: {answer['id']} {answer['blame']}", file=sys.stderr)
            return 2
        rate = meter.size / 1e6 / spent
        bad += rate < bound
        print(
            f"job_logs_{name} {rate:.0f} MB/s {meter.size / 1e6:.0f}-MB-in-{spent:.1f}-s {bound:.0f} "
            f"{'MISSED' if rate < bound else 'ok'}"
        )
    grown = peak() - before
    bad += grown > MEMORY_BOUND
    print(f"job_logs_memory {grown:.0f} MiB - {MEMORY_BOUND} {'MISSED' if grown > MEMORY_BOUND else 'ok'}")
    return int(bool(bad))


def interleaved(ranks: range) -> Iterator[str]:
    for together in zip(*(lines(rank, f"[rank{rank}]: ") for rank in ranks), strict=True):
        yield from together


if __name__ == "__main__":
    sys.exit(main())
