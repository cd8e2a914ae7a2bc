"""Finding who degrades: 8 GPUs a node, 8 metrics each, 200 measurements. Figures are of one CPU."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import degradation, metrics
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.series import History, utc

NODES, GPUS, SAMPLES, HOUR = 200, 8, 200, 3600
NOW = 1_795_910_400.0
SICK = "gpu-0007"
PARSE_BOUND = 8  # reading and judging, as multiple of only parsing the JSON
LINEAR_BOUND = 1.5  # time per node of all, as multiple of that of a quarter


def write(folder: Path, nodes: int) -> None:
    dice = random.Random(1)
    for index in range(SAMPLES):
        at = utc(NOW - (SAMPLES - index) * HOUR)
        with (folder / f"{index:04}.jsonl").open("w") as file:
            for node in range(nodes):
                name = f"gpu-{node:04}"
                hot = 14 if name == SICK and index > SAMPLES - 48 else 0
                for gpu in range(GPUS):
                    values = {
                        "gpu_temperature": round(62 + hot + dice.gauss(0, 1), 1),
                        "memory_temperature": round(70 + dice.gauss(0, 1), 1),
                        "sm_clock": int(1980 + dice.gauss(0, 8)),
                        "pcie_width": 16,
                        "nvlinks_up": 18,
                        "ecc_correctable": index // 40,
                        "nvlink_replays": index // 10,
                        "pcie_replays": 0,
                    }
                    line = {"node": name, "bootId": "b", "entity": f"GPU-{node}-{gpu}", "at": at, "values": values}
                    file.write(json.dumps(line) + "\n")


def measured(nodes: int) -> tuple[float, float, list[str]]:
    """Seconds of CPU for the whole, seconds for parsing alone, nodes that were found."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write(folder, nodes)
        begin = time.process_time()
        for path in sorted(folder.iterdir()):
            for line in path.open():
                json.loads(line)
        parsed = time.process_time() - begin
        begin = time.process_time()
        history = History(metrics.table(), NOW, 60 * 86400)
        history.read([text])
        places = {f"gpu-{node:04}": {"product": "H100", "domain": f"rack-{node // 8}"} for node in range(nodes)}
        decision = degradation.decide(history, places, NOW)
        return time.process_time() - begin, parsed, sorted({one["node"] for one in decision["findings"]})


def show(name: str, value: float, unit: str, ratio: str, limit: str, good: bool) -> bool:
    print(f"{name} {value:.6g} {unit} {ratio} {limit} {'ok' if good else 'MISSED'}", flush=True)
    return good


def main() -> int:
    few, _parsed, _found = measured(NODES // 4)
    took, parsed, found = measured(NODES)
    if found != [SICK]:
        print(f"degradation: not what was to be measured: {found}", file=sys.stderr)
        return 1
    ratio, linear = took / parsed, took / few / 4
    good = [
        show(
            "degradation_per_1000_nodes",
            took * 1000 / NODES,
            "s",
            f"{ratio:.2f}",
            f"<={PARSE_BOUND}",
            ratio <= PARSE_BOUND,
        ),
        show("degradation_linear", took, "s", f"{linear:.2f}", f"<={LINEAR_BOUND}", linear <= LINEAR_BOUND),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
