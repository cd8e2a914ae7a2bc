"""How long the tests' cluster takes: until it is ready, until 1,000 nodes are, until a job of 1,000 pods is over."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from tests.controlplane.build import MODULE, PACKAGES, build
from tests.simfleet import EmbeddedCluster, rundir
from tests.simfleet import workloads as make
from tests.simfleet.api import wait_until

NODES = PODS = 1000
STARTS = 3
READY_BOUND, NODES_BOUND, JOB_BOUND = 15.0, 30.0, 90.0  # seconds
MEMORY_BOUND = 2048.0  # MiB, all processes of a cluster of 1,000 nodes


def start_seconds() -> float:
    """From nothing but the programs to eight Ready nodes."""
    began = time.perf_counter()
    with EmbeddedCluster(nodes=8):
        return time.perf_counter() - began


def nodes_seconds(cluster: EmbeddedCluster) -> float:
    began = time.perf_counter()
    cluster.fleet.create("demo", NODES)
    cluster.fleet.wait_ready(NODES, seconds=10 * NODES_BOUND)
    return time.perf_counter() - began


def job_seconds(cluster: EmbeddedCluster) -> float:
    """An indexed job, one pod of eight GPUs per node, each a real process that prints a line."""
    began = time.perf_counter()
    script = "#!/bin/sh\necho rank $JOB_COMPLETION_INDEX\n"
    cluster.api.create(make.path("default", "jobs"), make.job("j", PODS, gpus=8, script=script))

    def is_complete() -> bool:
        status = cluster.api.get(make.path("default", "jobs", "j"))["status"]
        if status.get("failed"):
            sys.exit(f"pods failed: {status}")
        return any(each["type"] == "Complete" for each in status.get("conditions", []))

    wait_until(is_complete, 10 * JOB_BOUND, "the job", pause=0.2)
    return time.perf_counter() - began


def resident_mib(cluster: EmbeddedCluster) -> float:
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in rundir.processes_of(cluster.dir))
    return pages * 4096 / 2**20


def show(name: str, value: float, unit: str, bound: float) -> bool:
    met = value < bound
    print(f"{name} {value:.2f} {unit} {value / bound:.2f}x-bound {bound:g} {'ok' if met else 'MISSED'}", flush=True)
    return met


def main() -> int:
    build(MODULE, PACKAGES)
    met = [show("cluster_ready", statistics.median(start_seconds() for _ in range(STARTS)), "s", READY_BOUND)]
    with EmbeddedCluster(nodes=0) as cluster:
        met.append(show("nodes_1000_ready", nodes_seconds(cluster), "s", NODES_BOUND))
        met.append(show("memory_1000_nodes", resident_mib(cluster), "MiB", MEMORY_BOUND))
        met.append(show("job_1000_pods", job_seconds(cluster), "s", JOB_BOUND))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
