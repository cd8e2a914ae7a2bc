"""Job recovery on a real API server: what a pass costs, and how soon a failed job is there again.

A run that watches: from the moment a failed pod can be seen to the moment the job's next attempt is there. Then 5,000
nodes and 1,000 running jobs of which 10 fail, against 100 jobs of which 10 fail: requests of a pass may only grow by
pages of its lists. That pass is the module in a process of its own, planning only, so that it can be repeated.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

import yaml

from tests.integration import modules
from tests.simfleet import EmbeddedCluster, workloads
from tests.simfleet.api import wait_until
from tests.simfleet.apiproxy import ApiProxy

FLEET, FEW, MANY, FAILING, ROUNDS = 5000, 100, 1000, 10, 3
WATCHED = 20
SECONDS_BOUND, MEMORY_BOUND = 60.0, 2048  # of a pass; MiB
P95_BOUND = 15.0
SPACE = "ml"
GROUP = {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-22.04", "driver": "580.105.08"}
DIED = "RuntimeError: CUDA error: unspecified launch failure\n"


def arguments(cluster: EmbeddedCluster | ApiProxy, folder: Path, **options: Any) -> dict:
    policy = yaml.safe_load((modules.CATALOG / "recovery/default.yaml").read_text())
    policy["spec"] |= {"mode": "enforce", "budgets": {"global": {"max": 1000, "window": "10m"}}}
    policy["spec"]["blastRadius"] = {"jobs": 1000, "nodes": 1000}
    access = {"kubeconfig": str(cluster.kubeconfig), "catalog": [str(modules.CATALOG)]}
    return {**access, "policy": policy, "evidence_dir": str(folder), **options}


def make(cluster: EmbeddedCluster, numbers: range, over: int = 0) -> None:
    def one(number: int) -> None:
        body = workloads.job(f"train-{number}", 1, gpus=8)
        body["metadata"]["annotations"] = {"goodput.fleet/recovery": "act"}
        body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
        cluster.api.create(workloads.path(SPACE, "jobs"), body)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, numbers))

    def ready() -> bool:
        return sum((job["status"].get("ready") or 0) > 0 for job in jobs(cluster)) >= numbers.stop - over

    wait_until(ready, 900, f"{numbers.stop - over} jobs run", pause=1)


def jobs(cluster: EmbeddedCluster) -> list[dict]:
    return cluster.api.list(workloads.path(SPACE, "jobs"))


def fail(cluster: EmbeddedCluster, names: list[str]) -> None:
    for name in names:
        cluster.faults.set(name, {"namespace": SPACE, "pod": f"{name}-0-*"}, exit_code=1, log=DIED)

    def over() -> bool:
        found = {job["metadata"]["name"]: job["status"].get("conditions") or [] for job in jobs(cluster)}
        return all(any(each["type"] == "Failed" for each in found[name]) for name in names)

    wait_until(over, 300, "the jobs have failed", pause=0.5)


def requests(cluster: EmbeddedCluster, folder: Path) -> tuple[int, int]:
    """(pages of lists, all other requests) of a pass."""
    with ApiProxy(cluster.kubeconfig) as proxy:
        check(modules.run("job_recovery", arguments(proxy, folder)))
        pages = sum("limit=500" in each.path for each in proxy.requests)
        return pages, len(proxy.requests) - pages


def check(result: dict) -> None:
    assert not result["failed"] and len(result["decisions"]) == FAILING, result.get("msg")


def passes(cluster: EmbeddedCluster, folder: Path) -> bool:
    make(cluster, range(FEW))
    fail(cluster, [f"train-{number}" for number in range(FAILING)])
    few = requests(cluster, folder)
    make(cluster, range(FEW, MANY), over=FAILING)  # the failed ones stay: they are ten in both
    many = requests(cluster, folder)
    took = []
    for _round in range(ROUNDS):
        began = time.monotonic()
        check(modules.run("job_recovery", arguments(cluster, folder)))
        took.append(time.monotonic() - began)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    seconds = statistics.median(took)
    print(f"pass over {MANY} jobs and {FLEET} nodes, {FAILING} of them failed: {seconds:.1f} s, {memory:.0f} MiB")
    print(f"requests: {few[0]} pages and {few[1]} others with {FEW} jobs, {many[0]} and {many[1]} with {MANY}")
    return seconds <= SECONDS_BOUND and memory <= MEMORY_BOUND and many[1] == few[1]


def watched(cluster: EmbeddedCluster, folder: Path) -> bool:
    make(cluster, range(WATCHED))
    run = modules.start("job_recovery", arguments(cluster, folder, mode="enforce", watch=3600, interval=300))
    try:
        wait_until((folder / "seen.json").exists, 60, "the first pass is made")
        took = sorted(one(cluster, f"train-{number}") for number in range(WATCHED))
    finally:
        run.kill()
        modules.finish(run)
    median, p95 = statistics.median(took), took[round(0.95 * (len(took) - 1))]
    print(f"from a failed pod to the next attempt, {WATCHED} jobs: median {median:.2f} s, p95 {p95:.2f} s")
    return p95 <= P95_BOUND


def one(cluster: EmbeddedCluster, name: str) -> float:
    path = f"/api/v1/namespaces/{SPACE}/pods"
    selector = {"labelSelector": f"batch.kubernetes.io/job-name={name}", "fieldSelector": "status.phase=Failed"}

    def again() -> bool:
        found = cluster.api.find(workloads.path(SPACE, "jobs", name)) or {"metadata": {}}
        return (found["metadata"].get("annotations") or {}).get("goodput.fleet/attempt") == "2"

    (pod,) = cluster.api.list(path, labelSelector=selector["labelSelector"])
    cluster.faults.set(name, {"namespace": SPACE, "pod": pod["metadata"]["name"]}, exit_code=1, log=DIED)
    wait_until(lambda: cluster.api.list(path, **selector) or again(), 60, "the failed pod is seen", pause=0.02)
    began = time.monotonic()
    wait_until(again, 60, "the next attempt is there", pause=0.02)
    return time.monotonic() - began


def main() -> int:
    good = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes, what in ((WATCHED + 4, watched), (FLEET, passes)):
            with EmbeddedCluster(profile={"nodes": nodes, "groups": [GROUP]}) as cluster:
                for name in (SPACE, "goodput-fleet"):
                    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
                cluster.fleet.wait_ready(nodes, 600)
                good.append(what(cluster, Path(folder) / what.__name__))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
