"""The inventory of 5,000 nodes: what comes on top of listing them."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / ".build/collections")]

from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible_collections.goodput.fleet.plugins.inventory import gpu_nodes

from tests.unit.inventory.fleet import PLUGIN, a_plugin, nodes

NODES = 5000
BOUND = 3.0  # seconds


def parse(found: dict[str, dict]) -> tuple[float, InventoryData]:
    """The fastest of three."""
    gpu_nodes.connect = lambda params: None
    gpu_nodes.read_nodes = lambda client, selector: found
    best, inventory = float("inf"), InventoryData()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "x.gpu_nodes.yml")
        source.write_text(f"plugin: {PLUGIN}\n")
        for _run in range(3):
            plugin, inventory = a_plugin(), InventoryData()
            began = time.perf_counter()
            plugin.parse(inventory, DataLoader(), str(source), False)
            inventory.reconcile_inventory()
            best = min(best, time.perf_counter() - began)
    return best, inventory


def main() -> int:
    answer = json.dumps(list(nodes(NODES).values()))
    began = time.perf_counter()
    listed = json.loads(answer)
    decoding = time.perf_counter() - began  # the least that listing takes
    seconds, inventory = parse({node["metadata"]["name"]: node for node in listed})
    if len(inventory.groups["gpu_nodes"].hosts) != NODES or len(inventory.groups["rack_rack_0"].hosts) != 16:
        print("wrong result: not every node is where it belongs", file=sys.stderr)
        return 2
    missed = seconds > BOUND
    ratio = f"{seconds / decoding:.1f}x-json-decoding"
    print(f"inventory_{NODES}_nodes {seconds:.2f} s {ratio} {BOUND:.0f} {'MISSED' if missed else 'ok'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
