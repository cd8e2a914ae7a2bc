"""What GPU tests print on simulated nodes, in the tools' own formats, with the faults that a test seeds.

    gpuwork.seed(cluster, {"gpu-0003": "slow-nic", "gpu-0005": {"fault": "crash", "chance": 0.5}},
                 pairs=[("gpu-0001", "gpu-0006")])

From then on every pod of a run (its name begins with gp-) plays the tool that its command names, as healthy hardware
would, or as the faults of the run's nodes imply. What it plays is in work.py; it knows the fleet by its API server.
Faults hold for pods that start later. This file is loaded by every such pod, too: hence no imports here.
"""

from __future__ import annotations

FAULTS = {
    "slow-nic": "collectives and training are slow as soon as they cross its network devices",
    "slow-gpu": "one of its GPUs computes slowly",
    "wrong-values": "one of its GPUs computes wrong",
    "hang": "whatever it takes part in stands still, and prints nothing any more",
    "crash": "a process on it dies",
    "image-pull": "its pods never start, for their image cannot be pulled",
    "no-sshd": "its pods have no sshd",
    "tcp-fallback": "NCCL finds no InfiniBand on it and takes sockets",
    "missing-gpu": "one GPU less than its node says",
}
RULE = "gpuwork"


def seed(cluster, faults=None, pairs=(), seconds: float = 0.2) -> None:
    """Set the faults of the fleet's nodes, in place of those before.

    faults: {node: fault} of FAULTS, or {node: {"fault", "chance": 0 to 1}} for one that comes and goes from run to run
    (and is the same whenever that run is repeated). pairs: of nodes whose link is bad. seconds: that a test takes.
    """
    import json
    import sys
    from pathlib import Path

    from tests.simfleet.api import Kubeconfig

    seeded = {node: read_fault(node, given) for node, given in (faults or {}).items()}
    access = Kubeconfig(cluster.kubeconfig)
    state = {
        "server": access.server,
        "token": access.token,
        "ca": str(access.ca_file),
        "faults": seeded,
        "pairs": [sorted(pair) for pair in pairs],
        "seconds": seconds,
    }
    path = cluster.scripts / "gpuwork.json"
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(state))
    fresh.replace(path)
    # -S: without site-packages, it starts in a third of the time
    program = Path(__file__).with_name("pod.py")
    cluster.script("gpuwork", f"#!/bin/sh\nexec '{sys.executable}' -I -S '{program}' '{path}'\n")
    cluster.faults.set(RULE, {"pod": "gp-*"}, script="gpuwork")
    unpulled = [node for node, given in seeded.items() if given["fault"] == "image-pull"]
    if unpulled:
        message = 'Back-off pulling image "registry.example.com/tests:1": not found'
        rule = {"pod": "gp-*", "node": unpulled}
        cluster.faults.set(f"{RULE}-image-pull", rule, waiting="ImagePullBackOff", message=message)
    elif cluster.api.find(f"/api/v1/namespaces/default/configmaps/sim-fault-{RULE}-image-pull"):
        cluster.faults.clear(f"{RULE}-image-pull")


def clear(cluster) -> None:
    """Pods of runs do nothing again."""
    seed(cluster)
    cluster.faults.clear(RULE)


def read_fault(node: str, given) -> dict:
    """{fault, chance}. Raises ValueError."""
    entry = {"fault": given} if isinstance(given, str) else dict(given)
    if set(entry) - {"fault", "chance"} or entry.get("fault") not in FAULTS:
        raise ValueError(f"{node}: {given!r}; known faults: {', '.join(FAULTS)}")
    return {"fault": entry["fault"], "chance": float(entry.get("chance", 1))}
