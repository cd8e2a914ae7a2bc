"""One revalidation pass over 5,000 nodes with 200 open requests on a real API server, against the raw lists.

The requests name 1,000 nodes. The first pass gates them and writes every status; the next ones find nothing to do.
Those are timed in turns with bare lists of the nodes and of the requests by the same client: a pass that has nothing to
do may take twice as long, and writes nothing. Passes are the module's own, in this process; what Python takes to start
is not counted on either side.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import Client
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates.kubernetes import NODES
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import requests
from ansible_collections.goodput.fleet.plugins.modules import node_validation

from tests.integration import fixtures_crds
from tests.simfleet import EmbeddedCluster
from tests.simfleet.apiproxy import ApiProxy

FLEET, REQUESTS, EACH, ROUNDS = 5000, 200, 5, 5
RATIO_BOUND = 2.0
PATH = "/apis/goodput.fleet/v1alpha1/namespaces/goodput-fleet/validationrequests"
TESTS = [{"domain": "diagnostics", "variant": "dcgm-level2"}]
GROUP = {"prefix": "gpu", "accelerator": "h100", "service": "baremetal", "os": "ubuntu-22.04", "driver": "580.105.08"}


def fill(cluster: EmbeddedCluster) -> None:
    """The fleet and its requests."""
    api = cluster.api
    api.create("/api/v1/namespaces", {"metadata": {"name": "goodput-fleet"}})
    fixtures_crds.install(api)
    cluster.fleet.create({"nodes": FLEET, "groups": [GROUP]})
    nodes = sorted(api.list("/api/v1/nodes"), key=lambda node: node["metadata"]["name"])
    named = [
        {
            "name": node["metadata"]["name"],
            "uid": node["metadata"]["uid"],
            "bootId": node["status"]["nodeInfo"]["bootID"],
        }
        for node in nodes
    ]
    made = [
        requests.make("changed", named[EACH * number : EACH * (number + 1)], TESTS, namespace="goodput-fleet")
        for number in range(REQUESTS)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda document: api.create(PATH, document), made))


@contextlib.contextmanager
def counted() -> Iterator[list[str]]:
    """The methods of all requests that clients make, without a proxy's time on each."""
    methods: list[str] = []
    plain = Client._request

    def request(self: Client, method: str, *args: Any, **options: Any) -> Any:
        methods.append(method)
        return plain(self, method, *args, **options)

    Client._request = request
    try:
        yield methods
    finally:
        Client._request = plain


def one_pass(kubeconfig: Path, folder: str) -> tuple[float, dict]:
    """Seconds, and the module's answer. Nodes wait for company all the while."""
    arguments: dict[str, Any] = {
        "kubeconfig": str(kubeconfig),
        "catalog": [str(ROOT / "gitops/catalog")],
        "mode": "enforce",
        "evidence_dir": folder,
        "settle": 86400,
        "batch_seconds": 86400,
        "max_out": "100%",
        "max_out_domain": "100%",
    }
    out = io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit), patch_module_args(arguments):
        node_validation.main()
    took = time.perf_counter() - began
    answer = json.loads(out.getvalue())
    if answer.get("failed"):
        sys.exit(answer["msg"])
    return took, answer


def raw_lists(kubeconfig: Path) -> float:
    client = connect({"kubeconfig": str(kubeconfig)})
    began = time.perf_counter()
    found = len(list(client.list(NODES))), len(list(client.list(PATH)))
    took = time.perf_counter() - began
    assert found == (FLEET, REQUESTS), found
    return took


def line(name: str, value: float, unit: str, ratio: str, bound: str, ok: bool = True) -> bool:
    print(f"{name} {value:.2f} {unit} {ratio} {bound} {'ok' if ok else 'MISSED'}", flush=True)
    return ok


def main() -> int:
    with EmbeddedCluster(nodes=0) as cluster, tempfile.TemporaryDirectory() as folder:
        fill(cluster)
        with counted() as methods:
            first, answer = one_pass(cluster.kubeconfig, folder)
        calls, writes, gated = len(methods), sum(each != "GET" for each in methods), len(answer["gated"])
        with ApiProxy(cluster.kubeconfig) as proxy:
            _took, quiet = one_pass(proxy.kubeconfig, folder)
            quiet_calls, quiet_writes = len(proxy.requests), proxy.writes
        pairs = []
        for _round in range(ROUNDS):
            pairs.append((one_pass(cluster.kubeconfig, folder)[0], raw_lists(cluster.kubeconfig)))
    ours, raw = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    good = [
        line("revalidate_first_pass", first, "s", f"{gated}-gated", "-", gated == REQUESTS * EACH),
        line("revalidate_first_pass_calls", calls, "calls", f"{writes}-writes", "-"),
        line("raw_lists_5000", raw, "s", "1x", "-"),
        line("revalidate_nothing_to_do", ours, "s", f"{ratio:.2f}x-lists", f"{RATIO_BOUND}x", ratio <= RATIO_BOUND),
        line("revalidate_nothing_calls", quiet_calls, "calls", f"{quiet_writes}-writes", "0", not quiet["changed"]),
    ]
    return int(not all(good) or quiet_writes > 0)


if __name__ == "__main__":
    sys.exit(main())
