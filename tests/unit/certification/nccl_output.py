"""Writes outputs of nccl-tests as its versions print them."""

from __future__ import annotations

SIZES = [1 << n for n in range(20, 31)]
RATIO = {"all_reduce": lambda n: 2 * (n - 1) / n, "alltoall": lambda n: (n - 1) / n, "broadcast": lambda n: 1}


def busbw(size: int, test: str = "all_reduce", ranks: int = 16) -> tuple[float, float, float]:
    """(time, algbw, busbw) of a network that saturates at 400 GB/s of bus bandwidth."""
    top = 400 * size / (size + (8 << 20)) if ranks > 1 else 0.0
    ratio = RATIO[test](ranks)
    algbw = top / ratio if ratio else 1500.0
    return size / algbw / 1e3, algbw, top


def rank_lines(hosts: list[str], gpus: int = 8, form: str = "group") -> list[str]:
    lines = []
    for number, host in enumerate(hosts):
        for gpu in range(gpus):
            rank = number * gpus + gpu
            pid = 1000 * (number + 1) + gpu
            group = {"group": " Group  0", "plain": "", "oldest": ""}[form]
            process = "" if form == "oldest" else f" Pid {pid:6d}"
            bus = f"0000:{0x19 + gpu:02x}:00" if form == "group" else f"0x{0x19 + gpu:02x}"
            lines.append(f"#  Rank {rank:2d}{group}{process} on {host:>10} device {gpu:2d} [{bus}] Some GPU 80GB")
    return lines


def settings(low: int = SIZES[0], high: int = SIZES[-1], check: int = 1, **more) -> str:
    extra = "".join(f" {name}: {value}" for name, value in more.items())
    return (
        f"# nThread 1 nGpus 1 minBytes {low} maxBytes {high} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
        f"validation: {check} graph: 0{extra}"
    )


# generation: (columns at the left, column for wrong values, columns at the right, words for them)
GENERATIONS = {
    "2.0": (["bytes", "N", "type", "op"], "res", [], []),
    "2.10": (["size", "count", "type", "redop"], "error", [], []),
    "2.10 blank": (["size", "count", "type", "redop"], "error", [], []),
    "2.10 root": (["size", "count", "type", "root"], "error", [], []),
    "2.12": (["size", "count", "type", "redop", "root"], "#wrong", [], []),
    "2.17 iters": (["size", "count", "type", "redop", "root"], "#wrong", ["#iters"], ["20"]),
    "2.18 time stamp": (
        ["size", "count", "type", "redop", "root"],
        "#wrong",
        ["timestamp"],
        ["2026-02-05", "16:03:52"],
    ),
}


def table(generation: str, rows: list[dict], test: str = "all_reduce", ranks: int = 16) -> list[str]:
    left, wrong, tail, words = GENERATIONS[generation]
    side = ["time", "algbw", "busbw", wrong]
    lines = [
        "#",
        "#" + " " * 60 + "out-of-place                       in-place          ",
        "# " + "  ".join(f"{name:>10}" for name in left + side + side + tail),
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    for row in rows:
        cells = {
            "size": row["size"],
            "bytes": row["size"],
            "count": row["size"] // 4,
            "N": row["size"] // 4,
            "type": "float",
            "redop": "" if generation.endswith("blank") else "sum",
            "op": "sum",
            "root": -1,
        }
        text = "  ".join(f"{cells[name]!s:>10}" for name in left)
        for wrongs in (row.get("wrong", 0), row.get("wrongInPlace", 0)):
            time, algbw, bus = busbw(row["size"], test, ranks)
            bus = row.get("busbw", bus)
            if generation == "2.0":
                time = f"{time / 1000:7.5f}"  # milliseconds
            else:
                time = f"{time:7.2f}"
            text += f"  {time}  {algbw:6.2f}  {bus:6.2f}  {wrongs!s:>6}"
        lines.append(text + "".join(f"  {word}" for word in words))
    return lines


def footer(rows: list[dict], test: str = "all_reduce", ranks: int = 16, wrong: int = 0, word: str = "") -> list[str]:
    values = [row.get("busbw", busbw(row["size"], test, ranks)[2]) for row in rows]
    mean = sum(values) / len(values)
    return [
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}",
        f"# Avg bus bandwidth    : {mean:.6g} {word}",
        "#",
        f"# Collective test concluded: {test}_perf",
    ]


def run(generation="2.12", test="all_reduce", hosts=("node-a", "node-b"), gpus=8, rows=None, wrong=0, word="", **more):
    """The lines of a whole run."""
    rows = [{"size": size} for size in SIZES] if rows is None else rows
    ranks = len(hosts) * gpus
    return [
        f"# Collective test starting: {test}_perf",
        settings(rows[0]["size"], rows[-1]["size"], **more),
        "#",
        "# Using devices",
        *rank_lines(list(hosts), gpus),
        *table(generation, rows, test, ranks),
        *footer(rows, test, ranks, wrong, word),
    ]


def codes(result: dict, severity: str | None = None) -> list[str]:
    return [f["code"] for f in result["findings"] if severity in (None, f["severity"])]
