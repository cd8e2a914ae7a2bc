"""Kernel logs to events: a million lines with one Xid in a hundred, and a storm of one message."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

LINES = 1_000_000
STORM = 800_000
RATE_BOUND = 300_000  # lines a second
STORM_BOUND = 30_000
MEMORY_BOUND = 96  # MiB for reading the whole log, its events included
PIECE = 1 << 20

NOISE = (
    "IPv6: ADDRCONF(NETDEV_CHANGE): cali3f00c1d2a{0:02x}: link becomes ready",
    "audit: type=1400 audit(1764400000.{0:03d}:88): apparmor=DENIED operation=open name=/proc/{0}/status pid={0}",
    "systemd-journald[{0}]: Data hash table of /run/log/journal has a fill level at 75.0, suggesting rotation.",
    "mlx5_core 0000:4{1}:00.0 ens{1}f0np0: Link up",
    "nvidia-uvm: Loaded the UVM driver, major device number {0}.",
)
FAULTS = (
    "NVRM: Xid (PCI:0000:{1}b:00): 31, pid={0}, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS",
    "NVRM: Xid (PCI:0000:{1}b:00): 13, pid={0}, name=train, Graphics SM Warp Exception on (GPC {1}, TPC 3, SM 0): x",
    "NVRM: Xid (PCI:0013:0{1}:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 0{1} (0x021169c6 0x00000000 0x00000000)",
    "NVRM: Xid (PCI:0013:0{1}:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "nvidia-nvswitch{1}: SXid (PCI:0000:e{1}:00.0): 20034, Fatal, Link 22 LTSSM Fault Up",
)


def log(lines: int) -> Iterator[bytes]:
    """In pieces of ten thousand lines."""
    for first in range(0, lines, 10_000):
        piece = []
        for number in range(first, first + 10_000):
            text = FAULTS[number // 100 % len(FAULTS)] if number % 100 == 50 else NOISE[number % len(NOISE)]
            clock = f"{number // 36000 % 24:02d}:{number // 600 % 60:02d}:{number // 10 % 60:02d}"
            head = f"May 21 {clock} gpu-0007 kernel: [{number / 10:.6f}] "
            piece.append(head + text.format(number % 1000, number // 1000 % 9))
        yield "\n".join(piece).encode() + b"\n"


def storm() -> bytes:
    text = "NVRM: Xid (PCI:0000:9b:00): 95, pid=4711, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"
    return "".join(f"[{2000 + number / 1000:.6f}] {text}\n" for number in range(STORM)).encode()


def parse(pieces: Iterable[bytes], known: tables.Tables) -> dict:
    context = kernel.Context(node="gpu-0007", boot_id="b", received="2026-11-29T18:00:00Z")
    return kernel.parse(pieces, known, context)


def run(data: bytes, known: tables.Tables) -> tuple[float, dict]:
    """The fastest of three."""
    best, result = float("inf"), {}
    for _run in range(3):
        began = time.perf_counter()
        result = parse((data[at : at + PIECE] for at in range(0, len(data), PIECE)), known)
        best = min(best, time.perf_counter() - began)
    return best, result


def peak() -> float:
    """The most memory this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def counted(data: bytes) -> float:
    """What it takes only to split the log into lines and look for one word in each."""
    began = time.perf_counter()
    sum(b"Xid" in line for line in data.split(b"\n"))
    return time.perf_counter() - began


def main() -> int:
    folder = ROOT / "gitops/catalog/signals"
    known = tables.load([((folder / f"{name}.yaml").read_text(), name) for name in ("xid", "nvlink5", "sxid")])
    # first of all, while the process is small: a log that is never whole in memory
    before = peak()
    kept = parse(log(LINES), known)
    grown = peak() - before
    data = b"".join(log(LINES))
    seconds, result = run(data, known)
    lines = sum(int(event["spec"]["metadata"]["count"]) for event in result["events"])
    if result != kept or result["lines"] != LINES or lines != LINES // 100 or result["unparsed"]:
        print(f"wrong result: {result['lines']} lines, {lines} faults, {result['unparsed'][:3]}", file=sys.stderr)
        return 2
    plain = counted(data)
    rate = LINES / seconds
    missed = rate < RATE_BOUND
    print(
        f"signals_kernel_lines {rate:.0f} lines/s {plain / seconds:.2f}x-split-and-look {RATE_BOUND} "
        f"{'MISSED' if missed else 'ok'}"
    )
    print(f"signals_kernel_events {len(result['events'])} events {len(result['events']) / lines:.2f}-of-faults - ok")
    over = grown > MEMORY_BOUND
    print(f"signals_kernel_memory {grown:.0f} MiB - {MEMORY_BOUND} {'MISSED' if over else 'ok'}")
    seconds, result = run(storm(), known)
    rate, events = STORM / seconds, len(result["events"])
    slow = rate < STORM_BOUND or events != 1
    print(f"signals_kernel_storm {rate:.0f} lines/s {events}-event {STORM_BOUND} {'MISSED' if slow else 'ok'}")
    return int(missed or over or slow)


if __name__ == "__main__":
    sys.exit(main())
