"""Planning a driver update over 5,000 nodes, with all waves foreseen, from raw nodes and 200 requests."""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.gates import hosts
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import nodefacts, rollout, rollout_target
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import bound

NODES, RACK, REQUESTS, IN_REQUEST = 5_000, 18, 200, 10
OLD, NEW = "570.172.08", "580.105.08"
TIME_BOUND = 5  # seconds
LINEAR_BOUND = 2.5  # time per node of the most, as multiple of that of a fifth; 5 would be quadratic


def raw(number: int) -> dict:
    """A node; every 20th has another model, every 50th is cordoned, the first hundred have the driver."""
    driver = NEW if number < 100 else OLD
    name = f"gpu-{number:04}"
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "labels": {
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": "NVIDIA-B200" if number % 20 == 0 else "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/cuda.driver-version.full": driver,
                "goodput.fleet/rack": f"rack-{number // RACK:03}",
                **{f"example.com/label-{extra}": str(number % 7) for extra in range(20)},
            },
        },
        "spec": {"unschedulable": True} if number % 50 == 0 else {},
        "status": {
            "capacity": {"nvidia.com/gpu": "8"},
            "allocatable": {"nvidia.com/gpu": "8"},
            "nodeInfo": {"bootID": f"boot-{number}"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def requests() -> list[dict]:
    made = []
    for index in range(REQUESTS):
        nodes = [{"name": f"gpu-{index * 5 + more:04}", "uid": "uid-before"} for more in range(IN_REQUEST)]
        status = {"phase": "Running", "nodes": [{**node, "phase": "Running"} for node in nodes]}
        spec = {"reason": "repaired", "nodes": nodes, "tests": ["dcgm-level3"]}
        made.append({"metadata": {"name": f"request-{index}"}, "spec": spec, "status": status})
    return made


def planned(nodes: list[dict], asked: list[dict], wave: str) -> tuple[float, dict]:
    begin = time.perf_counter()
    facts = [nodefacts.facts(node, hosts.host(node)["facts"]) for node in nodes]
    options = rollout.Options(wave=bound(wave, "wave"), fleet=bound("50%", "fleet"))
    made = rollout.plan(facts, asked, NEW, rollout_target.rollout_id(NEW), options)
    return time.perf_counter() - begin, made


def show(name: str, value: float, unit: str, ratio: str, limit: str, good: bool) -> bool:
    print(f"{name} {value:.6g} {unit} {ratio} {limit} {'ok' if good else 'MISSED'}", flush=True)
    return good


def main() -> int:
    nodes, asked = [raw(number) for number in range(NODES)], requests()
    turns = [(planned(nodes[: NODES // 5], asked, "10%")[0], *planned(nodes, asked, "10%")) for _turn in range(5)]
    few, took, made = min(turn[0] for turn in turns), min(turn[1] for turn in turns), turns[0][2]
    singly, one_by_one = planned(nodes, asked, "1")
    counts = made["counts"]
    if counts["pending"] + counts["foreign"] != NODES - 100 or not made["waves"] or len(one_by_one["waves"]) < 4_500:
        print(f"rollout_plan: the plan is not what was to be measured: {counts}", file=sys.stderr)
        return 1
    linear = took / few / 5
    good = [
        show("rollout_plan_time", took, "s", "-", f"<={TIME_BOUND}", took <= TIME_BOUND),
        show("rollout_plan_single_waves", singly, "s", "-", f"<={TIME_BOUND}", singly <= TIME_BOUND),
        show("rollout_plan_linear", took, "s", f"{linear:.2f}", f"<={LINEAR_BOUND}", linear <= LINEAR_BOUND),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
