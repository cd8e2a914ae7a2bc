"""The newest complete checkpoint among 10,000 with three torn ones in front, of 512 ranks and 100,000 slices each."""

from __future__ import annotations

import os
import pickletools
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))
sys.path.insert(0, str(ROOT))

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import dcp, pickles, survey

from tests.unit.jobs.checkpoints import trees

STEPS = 10_000
TORN = 3
RANKS = 512
SLICES = 200
SCAN_BOUND = 30.0  # seconds
RATE_BOUND = 5_000  # entries of .metadata a second
MEMORY_BOUND = 3.0  # bytes that stay with the process for each byte of .metadata


def build(root: Path) -> bytes:
    for step in range(STEPS):
        (root / f"step_{step}").mkdir()
    length = 16
    metadata = trees.metadata({f"__{rank}_0.distcp": [length] * SLICES for rank in range(RANKS)})
    for step in range(STEPS - TORN - 2, STEPS):
        path = root / f"step_{step}"
        for rank in range(RANKS):
            trees.write(path / f"__{rank}_0.distcp", b"\1" * length * SLICES)
        if step < STEPS - TORN:
            trees.write(path / ".metadata", metadata)
    return metadata


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        pid = os.fork()  # what builds the checkpoints must not count as memory of what reads them
        if not pid:
            build(root)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            print("the checkpoints could not be written", file=sys.stderr)
            return 2
        data = (root / f"step_{STEPS - TORN - 1}" / ".metadata").read_bytes()
        before = peak()
        extents = dcp.Extents()
        began = time.perf_counter()
        pickles.read(data, built=extents.built)
        seconds = time.perf_counter() - began
        grown = (peak() - before) / len(data)
        began = time.perf_counter()
        found = survey.survey(place)
        scan = time.perf_counter() - began
        began = time.perf_counter()
        sum(1 for _ in pickletools.genops(data))
        plain = time.perf_counter() - began
    if len(extents.slices) != RANKS or len(found["torn"]) != TORN or found["newest"]["step"] != STEPS - TORN - 1:
        print(f"wrong result: {found['newest']}, {len(found['torn'])} torn", file=sys.stderr)
        return 2
    late, slow, over = scan > SCAN_BOUND, RANKS * SLICES / seconds < RATE_BOUND, grown > MEMORY_BOUND
    print(f"checkpoints_newest_of_10000 {scan:.1f} s - {SCAN_BOUND:.0f} {'MISSED' if late else 'ok'}")
    print(
        f"checkpoints_metadata_entries {RANKS * SLICES / seconds:.0f} entries/s {plain / seconds:.2f}x-pickletools "
        f"{RATE_BOUND} {'MISSED' if slow else 'ok'}"
    )
    print(f"checkpoints_metadata_memory {grown:.1f} bytes/byte - {MEMORY_BOUND} {'MISSED' if over else 'ok'}")
    return int(late or slow or over)


if __name__ == "__main__":
    sys.exit(main())
