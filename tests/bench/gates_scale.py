"""1,000 nodes gated in one call, against a loop of kubernetes.core.k8s_taint and against bare connections.

Playbooks are timed whole, from `ansible-playbook` to its end. k8s_taint does 20 nodes; what an empty playbook takes is
set aside, the rest scaled to 1,000. The bare side is eight threads of http.client, each with one kept connection, that
send ready-made patches of the same size and ask for the same short answers. Both sides take turns in one process.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import METADATA_OF_ONE
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes, model

from tests.bench import kubernetes_core
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import Kubeconfig

NODES, SAMPLE, ROUNDS, CONNECTIONS = 1000, 20, 5, 8
FASTER_BOUND, AGAIN_BOUND, RATE_BOUND = 200, 2.0, 0.8
REASON = "Xid 79: the GPU fell off the bus"
# the cordon's and the drain's controllers have nothing to do here, and would only add noise
HEAD = "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
GATE = """\
    - goodput.fleet.node_gate:
        owner: quarantine
        reason: "{reason}"
        selector: kubernetes.io/hostname
        state: {state}
"""
TAINT = """\
    - kubernetes.core.k8s_taint:
        name: "gpu-{{{{ '%04d' % item }}}}"
        taints: [{{key: bench.example.com/gate, value: fatal, effect: NoSchedule}}]
      loop: "{{{{ range({count}) | list }}}}"
"""
NOTHING = "    - ansible.builtin.meta: noop\n"


def playbook(tasks: str, kubeconfig: Path) -> float:
    """Seconds of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "play.yml").write_text(HEAD + tasks)
        env = {
            **os.environ,
            "K8S_AUTH_KUBECONFIG": str(kubeconfig),
            "ANSIBLE_COLLECTIONS_PATH": f"{ROOT / '.build/collections'}:{kubernetes_core.collections_path()}",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        }
        began = time.perf_counter()
        command = [Path(sys.executable).parent / "ansible-playbook", "play.yml"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        took = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    return took


def bare(kubeconfig: Path, patches: list[tuple[str, bytes]]) -> float:
    """Patches per second."""
    config = Kubeconfig(kubeconfig)
    where, tls = urlsplit(config.server), ssl.create_default_context(cafile=config.ca_file)
    headers = {
        "Authorization": f"Bearer {config.token}",
        "Content-Type": "application/merge-patch+json",
        "Accept": METADATA_OF_ONE,
    }

    def work(mine: list[tuple[str, bytes]]) -> None:
        connection = http.client.HTTPSConnection(where.hostname, where.port, context=tls)
        for name, body in mine:
            connection.request("PATCH", f"/api/v1/nodes/{name}?fieldManager=bench", body, headers)
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status == 200, content
        connection.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(work, [patches[index::CONNECTIONS] for index in range(CONNECTIONS)]))
    return len(patches) / (time.perf_counter() - began)


def ready_made(nodes: dict[str, dict], release: bool) -> list[tuple[str, bytes]]:
    """What we would send, under other names and for any version of the node."""
    made = []
    for name, node in nodes.items():
        patch = model.hold(node, {"owner": "bench", "reason": REASON, "since": "2026-11-29T12:00:00Z"}).patch
        del patch["metadata"]["resourceVersion"]
        if release:
            patch = {
                "metadata": {"annotations": dict.fromkeys(patch["metadata"]["annotations"])},
                "spec": {"taints": None},
            }
        made.append((name, json.dumps(patch).encode()))
    return made


def rates(kubeconfig: Path) -> tuple[list[float], list[float]]:
    """Patches per second of bare connections and of ours, closing and opening in turns."""
    client = connect({"kubeconfig": str(kubeconfig)}, threads=CONNECTIONS)
    plain, ours = [], []
    open_nodes = kubernetes.read_nodes(client)
    wants = [{"node": name, "owner": "quarantine", "reason": REASON} for name in open_nodes]
    for _round in range(ROUNDS):
        for release in (False, True):
            plain.append(bare(kubeconfig, ready_made(open_nodes, release)))
            nodes = kubernetes.read_nodes(client)
            began = time.perf_counter()
            act = kubernetes.release_many if release else kubernetes.hold_many
            results = act(client, wants, nodes=nodes, workers=CONNECTIONS)
            ours.append(len(results) / (time.perf_counter() - began))
            wrong = [each for each in results if each["status"] != ("released" if release else "held")]
            assert not wrong, wrong[:3]
    return plain, ours


def line(name: str, value: float, unit: str, ratio: str, bound: str, ok: bool = True) -> bool:
    print(f"{name} {value:.2f} {unit} {ratio} {bound} {'ok' if ok else 'MISSED'}", flush=True)
    return ok


def main() -> int:
    kubernetes_core.collections_path()
    with EmbeddedCluster(nodes=0) as cluster:
        cluster.fleet.create("demo", NODES)
        cluster.fleet.wait_ready(NODES, seconds=120)
        kubeconfig = cluster.kubeconfig
        empty = statistics.median(playbook(NOTHING, kubeconfig) for _ in range(3))
        loop = playbook(TAINT.format(count=SAMPLE), kubeconfig)
        scaled = empty + (loop - empty) / SAMPLE * NODES
        held, opened = (GATE.format(reason=REASON, state=state) for state in ("held", "released"))
        first, again = [], []
        for _round in range(3):
            first.append(playbook(held, kubeconfig))
            again.append(playbook(held, kubeconfig))
            playbook(opened, kubeconfig)
        once, second = statistics.median(first), statistics.median(again)
        plain, ours = rates(kubeconfig)
        pairs = [mine / theirs for mine, theirs in zip(ours, plain, strict=True)]
    rate, share = statistics.median(ours), statistics.median(pairs)
    good = [
        line("k8s_taint_loop_20", loop, "s", f"{(loop - empty) / SAMPLE:.2f}s-a-node", "-"),
        line("k8s_taint_loop_1000_scaled", scaled, "s", "1x", "-"),
        line(
            "node_gate_1000",
            once,
            "s",
            f"{scaled / once:.0f}x-faster",
            f"{FASTER_BOUND}x",
            scaled / once >= FASTER_BOUND,
        ),
        line(
            "node_gate_1000_again",
            second,
            "s",
            f"{second / empty:.1f}x-empty-play",
            f"{AGAIN_BOUND}s",
            second < AGAIN_BOUND,
        ),
        line("bare_patches", statistics.median(plain), "nodes/s", "1x", "-"),
        line("node_gate_patches", rate, "nodes/s", f"{share:.2f}x-bare", f"{RATE_BOUND}x", share >= RATE_BOUND),
    ]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
