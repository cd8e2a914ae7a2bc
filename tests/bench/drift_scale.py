"""Drift of a large cluster against merely listing the same objects, and the memory it takes.

5,000 nodes and 20,000 workload objects on the embedded cluster, and the Helm records of 20 releases that rendered
some of them. Both sides read the same pages over the same client in the same process, in turns; `list` decodes the
JSON and drops it. Making the objects takes most of the time.
"""

from __future__ import annotations

import base64
import gzip
import json
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.releases import READERS
from ansible_collections.goodput.fleet.plugins.module_utils.drift import observe, run
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree

from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import ApiError
from tests.standin import locks

NODES, NAMESPACES, PER_NAMESPACE = 5000, 20, 1000
ROUNDS = 3
# nothing is to run: these would write for minutes after the last object was made
IDLE = "--controller-manager=--controllers=*,-deployment-controller,-statefulset-controller,-cronjob-controller"
RATIO_BOUND, MEMORY_BOUND = 1.5, 500  # times the list, MiB


def namespace(index: int) -> str:
    return f"team-{index:02d}"


def a_lock() -> dict:
    components = []
    for index in range(NAMESPACES):
        fields = {"namespace": namespace(index), "nodeFacts": None}
        if index == 0:
            fields["nodeFacts"] = {"driver": {"valuesPath": "driver.version", "value": "580.105.08"}}
        components.append(locks.component(f"part-{index:02d}", {"replicas": 0}, **fields))
    return locks.lock(*components)


def workload(kind: str, space: str, name: str) -> dict:
    """Of the size that real ones have."""
    container = {
        "name": "main",
        "image": f"registry.example.com/team/{name}:v1.2.3",
        "args": ["--config=/etc/app/config.yaml", "--verbosity=2", f"--name={name}"],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(12)],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
    }
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": space, "team": space}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "volumes": [{"name": "config", "configMap": {"name": "config"}}]},
    }
    spec: dict = {"selector": {"matchLabels": labels}, "template": pod, "replicas": 0}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    if kind == "CronJob":
        pod["spec"]["restartPolicy"] = "Never"
        spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": pod}}}
    metadata = {"name": name, "namespace": space, "labels": labels, "annotations": {"meta.helm.sh/release-name": space}}
    return {
        "apiVersion": "batch/v1" if kind == "CronJob" else "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def kinds_of(number: int) -> str:
    return "StatefulSet" if number % 20 == 0 else "CronJob" if number % 20 == 1 else "Deployment"


def release_secret(component: dict, objects: list[dict]) -> dict:
    """As helm writes it."""
    record = {
        "name": component["release"],
        "namespace": component["namespace"],
        "version": 1,
        "info": {"status": "deployed"},
        "chart": {"metadata": {"name": component["chart"]["name"], "version": component["chart"]["version"]}},
        "config": component["values"],
        "manifest": "".join(f"---\n{yamltree.dump(item)}" for item in objects),
    }
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode())))
    labels = {"owner": "helm", "name": component["release"], "version": "1", "status": "deployed"}
    metadata = {"name": f"sh.helm.release.v1.{component['release']}.v1", "labels": labels}
    return {"metadata": metadata, "type": "helm.sh/release.v1", "data": {"release": packed.decode()}}


def fill(cluster: EmbeddedCluster, lock: dict) -> None:
    api = cluster.api

    def make(path_and_body: tuple[str, dict]) -> None:
        try:
            api.create(*path_and_body)
        except ApiError as error:
            if error.status != 409:  # a lost connection that had done its work
                raise

    def objects():
        for index, component in enumerate(lock["spec"]["components"]):
            space, rendered = namespace(index), []
            for number in range(PER_NAMESPACE):
                kind = kinds_of(number)
                item = workload(kind, space, f"app-{number:04d}")
                if number < 10:
                    rendered.append(item)
                yield f"/apis/{item['apiVersion']}/namespaces/{space}/{kind.lower()}s", item
            yield f"/api/v1/namespaces/{space}/secrets", release_secret(component, rendered)

    cluster.fleet.create("demo", NODES)  # kwok makes them Ready while the rest is made
    for index in range(NAMESPACES):
        make(("/api/v1/namespaces", {"metadata": {"name": namespace(index)}}))
    with ThreadPoolExecutor(8) as pool:
        for _done in pool.map(make, objects()):
            pass
    cluster.fleet.wait_ready(NODES, seconds=120)


def list_all(client, secrets: list[str]) -> int:
    """The same requests as drift makes, one after the other, and nothing done with what comes."""
    count = sum(len(items) for items in client.pages("/api/v1/nodes"))
    for index in range(NAMESPACES):
        for api_version, plural in observe.PLURALS.values():
            path = f"/apis/{api_version}/namespaces/{namespace(index)}/{plural}"
            count += sum(len(items) for items in client.pages(path))
    for path in secrets:
        client.get(path)
    return count


def measure(kubeconfig: str) -> dict:
    """In a process of its own, so that its memory is drift's."""
    lock = a_lock()
    client = connect({"kubeconfig": kubeconfig})
    secrets = [
        f"/api/v1/namespaces/{item['namespace']}/secrets/sh.helm.release.v1.{item['release']}.v1"
        for item in lock["spec"]["components"]
    ]
    lists, drifts = [], []
    for _round in range(ROUNDS):
        began = time.perf_counter()
        count = list_all(client, secrets)
        listed = time.perf_counter()
        report = run.report(lambda: client, READERS, lock=lock)
        drifts.append(time.perf_counter() - listed)
        lists.append(listed - began)
    spec = report["spec"]
    assert count == NODES + NAMESPACES * PER_NAMESPACE, count
    assert (spec["status"], spec["findings"]) == ("in_sync", []), (spec["status"], spec["findings"][:3], spec["parts"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"list": statistics.median(lists), "drift": statistics.median(drifts), "peak": peak}


def line(name: str, value: float, unit: str, ratio: str, bound: str, ok: bool) -> bool:
    print(f"{name} {value:.2f} {unit} {ratio} {bound} {'ok' if ok else 'MISSED'}", flush=True)
    return ok


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "measure":
        print(json.dumps(measure(sys.argv[2])))
        return 0
    began = time.perf_counter()
    with EmbeddedCluster(nodes=0, controlplane_flags=[IDLE]) as cluster:
        fill(cluster, a_lock())
        print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        command = [sys.executable, "-m", "tests.bench.drift_scale", "measure", str(cluster.kubeconfig)]
        result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    ratio = result["drift"] / result["list"]
    good = [
        line("drift_list_raw", result["list"], "s", "1.00x", "-", True),
        line("drift_report", result["drift"], "s", f"{ratio:.2f}x-list", f"{RATIO_BOUND}x", ratio <= RATIO_BOUND),
        line("drift_memory", result["peak"], "MiB", "-", str(MEMORY_BOUND), result["peak"] <= MEMORY_BOUND),
        line("drift_bench_itself", (time.perf_counter() - began) / 60, "min", "-", "-", True),
    ]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
