"""nccl-tests 2.17 under mpirun, or one process with -g: ranks, NCCL's own lines, table, footer."""

from __future__ import annotations

from .playing import Act, Work

NVLINK, NETWORK, SOCKETS = 470.0, 370.0, 4.0  # GB/s of bus bandwidth that the plateau reaches
HALF_SPEED_BYTES = 8 << 20
UNITS = {"K": 10, "M": 20, "G": 30}
REDOPS = {"all_reduce": "sum", "reduce_scatter": "sum", "sendrecv": "sum"}
RATIOS = {"all_reduce": lambda n: 2 * (n - 1) / n, "sendrecv": lambda n: 1.0}
MPIRUN_RULE = "-" * 74


def act(work: Work, test: str) -> Act:
    if work.my_fault == "no-sshd" and len(work.hosts) > 1:
        return Act(["goodput: 14: exec: /usr/sbin/sshd: not found"], 127)
    if work.me:
        return Act(["Server listening on 0.0.0.0 port 2222."], hang=True)
    refused = work.hosts_with("no-sshd")
    if refused and len(work.hosts) > 1:
        return Act([f"ssh: connect to host {host} port 2222: Connection refused" for host in refused], 255)
    low, high = size_of(work.option("-b", default="8")), size_of(work.option("-e", default="16G"))
    head = _head(work, test, low, high)
    missing, crashed, hung = (work.hosts_with(fault) for fault in ("missing-gpu", "crash", "hang"))
    if missing:
        return Act([*_settings(test, low, high), *_no_device(missing[0]), *_ended_by(work, missing[0])], 1)
    sizes = _sizes(low, high)
    if hung:
        return Act([*head, *_title()], hang=True)
    rows = _rows(work, test, sizes)
    if crashed:
        return Act([*head, *_title(), *rows[: len(rows) // 3], *_killed(work, crashed[0])], 139)
    wrong = bool(work.hosts_with("wrong-values"))
    return Act([*head, *_title(), *rows, *_footer(work, test, sizes, wrong)], int(wrong))


def size_of(text: str) -> int:
    unit = UNITS.get(text[-1:].upper(), 0)
    return int(text[:-1] if unit else text) << unit


def _sizes(low: int, high: int) -> list[int]:
    sizes = []
    while low <= high:
        sizes.append(low)
        low *= 2
    return sizes


def _crosses(work: Work) -> bool:
    return len(work.hosts) > 1 or work.env.get("NCCL_P2P_DISABLE") == "1"


def plateau(work: Work) -> float:
    """GB/s."""
    if not _crosses(work):
        top = NVLINK
    elif work.hosts_with("tcp-fallback"):
        return SOCKETS * work.wobble
    else:
        top = NETWORK
        if work.hosts_with("slow-nic"):
            top *= 0.45
        if work.bad_pair:
            top *= 0.35
    if work.hosts_with("slow-gpu"):
        top *= 0.7
    return top * work.wobble


def _settings(test: str, low: int, high: int) -> list[str]:
    return [
        f"# Collective test starting: {test}_perf",
        f"# nThread 1 nGpus 1 minBytes {low} maxBytes {high} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0",
        "#",
    ]


def _head(work: Work, test: str, low: int, high: int) -> list[str]:
    lines = [*_settings(test, low, high), "# Using devices"]
    rank = 0
    for number, host in enumerate(work.hosts):
        for gpu in range(work.gpus):
            bus = f"0000:{0x19 + 0x10 * gpu:02x}:00"
            pid = 40 + gpu + 100 * number
            lines.append(
                f"#  Rank {rank:2d} Group  0 Pid {pid:6d} on {host:>10} device {gpu:2d} [{bus}] NVIDIA H100 80GB HBM3"
            )
            rank += 1
    return [*lines, *(_info(work) if work.env.get("NCCL_DEBUG") == "INFO" else [])]


def _info(work: Work) -> list[str]:
    """Of the first rank of each host."""
    sockets = bool(work.hosts_with("tcp-fallback"))
    lines = []
    for number, host in enumerate(work.hosts):
        said = f"{host}:{40 + 100 * number}:{90 + 100 * number} [0] NCCL INFO"
        rank, ranks = number * work.gpus, len(work.hosts) * work.gpus
        after = (rank + work.gpus) % ranks
        if not number:
            lines.append(f"{said} NCCL version 2.27.7+cuda12.9")
        lines.append(f"{said} Using network {'Socket' if sockets else 'IB'}")
        if _crosses(work):
            way = "NET/Socket/0" if sockets else "NET/IB/0/GDRDMA"
            lines.append(f"{said} Channel 00/0 : {rank}[0] -> {after}[0] [send] via {way}")
        if work.env.get("NCCL_P2P_DISABLE") != "1" and work.gpus > 1:
            lines.append(f"{said} Channel 00/0 : {rank}[0] -> {rank + 1}[1] via P2P/CUMEM/read")
        lines.append(
            f"{said} ncclCommInitRank comm 0x55d0c0a8 rank {rank} nranks {ranks} cudaDev 0 nvmlDev 0 busId 19000 "
            "commId 0x8d5f - Init COMPLETE"
        )
    return lines


def _title() -> list[str]:
    side = "    time   algbw   busbw #wrong"
    units = "    (us)  (GB/s)  (GB/s)       "
    return [
        "#",
        f"#{'out-of-place':>74}{'in-place':>33}          ",
        f"#       size         count      type   redop    root {side} {side}",
        f"#        (B)    (elements)                          {units}     {units}",
    ]


def _measures(work: Work, test: str, size: int) -> tuple[float, float, float]:
    """(microseconds, algorithm's and bus bandwidth in GB/s)."""
    ranks = max(2, len(work.hosts) * work.gpus)
    bus = plateau(work) * size / (size + HALF_SPEED_BYTES)
    alg = bus / RATIOS.get(test, lambda n: (n - 1) / n)(ranks)
    return size / alg / 1e3, alg, bus


def _rows(work: Work, test: str, sizes: list[int]) -> list[str]:
    wrong = bool(work.hosts_with("wrong-values"))
    lines = []
    for size in sizes:
        time, alg, bus = _measures(work, test, size)
        bad = size // 4096 if wrong and size >= 1 << 20 else 0
        side = f" {time:8.2f} {alg:7.2f} {bus:7.2f} {bad:6d}"
        lines.append(f"{size:12d}  {size // 4:12d}     float {REDOPS.get(test, 'none'):>7}      -1{side}{side}")
    return lines


def _footer(work: Work, test: str, sizes: list[int], wrong: bool) -> list[str]:
    mean = sum(_measures(work, test, size)[2] for size in sizes) / len(sizes)
    bad = 2 * sum(size >= 1 << 20 for size in sizes) if wrong else 0
    return [
        f"# Out of bounds values : {bad} {'FAILED' if wrong else 'OK'}",
        f"# Avg bus bandwidth    : {mean:.6g} ",
        "#",
        f"# Collective test concluded: {test}_perf",
    ]


def _no_device(host: str) -> list[str]:
    return [
        f"{host}: Test CUDA failure common.cu:1027 'invalid device ordinal'",
        f" .. {host} pid 47: Test failure common.cu:1007",
    ]


def _ended_by(work: Work, host: str) -> list[str]:
    if "mpirun" not in " ".join(work.command):
        return []
    rank = work.hosts.index(host) * work.gpus + work.gpus - 1
    return [
        MPIRUN_RULE,
        "Primary job  terminated normally, but 1 process returned",
        "a non-zero exit code. Per user-direction, the job has been aborted.",
        MPIRUN_RULE,
        MPIRUN_RULE,
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "the job to be terminated. The first process to do so was:",
        "",
        f"  Process name: [[41025,1],{rank}]",
        "  Exit code:    3",
        MPIRUN_RULE,
    ]


def _killed(work: Work, host: str) -> list[str]:
    if "mpirun" not in " ".join(work.command):
        return ["Segmentation fault (core dumped)"]
    rank = work.hosts.index(host) * work.gpus + 1
    return [
        MPIRUN_RULE,
        f"mpirun noticed that process rank {rank} with PID 41 on node {host} exited on signal 11 (Segmentation fault).",
        MPIRUN_RULE,
    ]
