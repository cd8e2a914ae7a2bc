# ruff: noqa: E501
"""Logs of failing jobs, written for these tests in the forms that launchers print."""

from __future__ import annotations

import functools
from pathlib import Path

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import signatures
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.classify import classify

CATALOG = Path(__file__).parents[3] / "gitops/catalog"
BANNER = "W0306 09:00:00.100000 700 torch/distributed/run.py:766] Setting OMP_NUM_THREADS environment variable for each process to be 1"
CLOSED = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:20117"
TIMED_OUT = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 8000ms for recv operation to complete"


@functools.cache
def table() -> signatures.Table:
    return signatures.load_catalog([str(CATALOG)])


def read(*logs, **options) -> dict:
    """The answer for one log of all ranks, or for (rank, log) each."""
    sources = [(None, "", log) for log in logs] if not isinstance(logs[0], tuple) else logs
    return classify(
        [(one[0], f"train-{one[0]}" if one[0] is not None else "", one[-1]) for one in sources], table(), options
    )


def steps(first: int, last: int) -> list[str]:
    return [
        f" iteration {number:8d}/ 1000 | elapsed time per iteration (ms): 250.0 | lm loss: 3.{number:04d}E-01"
        for number in range(first, last + 1)
    ]


def traceback(rank: int | None, error: str, file: str = "/workspace/train.py", line: int = 15) -> list[str]:
    label = "" if rank is None else f"[rank{rank}]: "
    return [
        f"{label}{text}"
        for text in (
            "Traceback (most recent call last):",
            f'  File "{file}", line {line}, in <module>',
            "    step(batch)",
            '  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 648, in backward',
            "    torch.autograd.backward(",
            error,
        )
    ]


def torchrun_end(rank: int, code: int, what: str = "", pid: int = 700) -> list[str]:
    """What torchrun prints at the end of a run that `rank` is said to have ended."""
    return [
        f"W0306 09:10:00.100000 {pid} torch/distributed/elastic/multiprocessing/api.py:900] Sending process 7{1 - rank} closing signal SIGTERM",
        f"E0306 09:10:00.200000 {pid} torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: {code}) local_rank: {rank} (pid: 7{rank}) of binary: /opt/venv/bin/python3",
        "Traceback (most recent call last):",
        '  File "/opt/venv/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 270, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=====================================",
        "train.py FAILED",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-03-06_09:10:00",
        "  host      : worker-a",
        f"  rank      : {rank} (local_rank: {rank})",
        f"  exitcode  : {code} (pid: 7{rank})",
        "  error_file: <N/A>",
        f"  traceback : {what or 'To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html'}",
    ]


def started(world: int = 2, restart: int = 0) -> list[str]:
    return [BANNER, *(f"[rank{rank}] world {world} restart {restart}" for rank in range(world))]


def watchdog(rank: int, sequence: int = 1580, completed: int | None = None, enqueued: int | None = None) -> list[str]:
    lines = [
        f"[rank{rank}]:[E306 09:10:00.408271257 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600060 "
        "milliseconds before timing out."
    ]
    if completed is not None:
        lines.append(
            f"[rank{rank}]:[E306 09:10:00.465150152 ProcessGroupNCCL.cpp:1664] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
            f"Exception (either an error or timeout) detected by watchdog at work: {sequence}, last enqueued NCCL work: "
            f"{enqueued}, last completed NCCL work: {completed}."
        )
    lines.append(
        f"[rank{rank}]:[E306 09:10:00.5 ProcessGroupNCCL.cpp:583] [Rank {rank}] To avoid data inconsistency, we are taking "
        "the entire process down."
    )
    return lines


DESYNC = [
    "[rank0]:[E306 09:10:00.1 ProcessGroupNCCL.cpp:1375] [PG 0 Rank 0] ",
    "\t - [0] Timeout at collective: ALLREDUCE, #183",
    "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
    "\t   - [0, 1, 2] joined but didn't finish collective #183 (count from 1)",
    "\t     [3] finished collective #182, but didn't join collective #183 (count from 1)",
    "\t - Snapshot of ranks' latest states:",
    "\t   #183 started ranks:",
    "\t     [0, 1, 2] started ALLREDUCE",
]
