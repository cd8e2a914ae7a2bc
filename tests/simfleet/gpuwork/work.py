"""What one pod of a run does: the lines that it prints, and how it ends. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import PurePath

from . import dcgm, gpu_burn, megatron, nccl, nvbandwidth
from .playing import Act, Work

__all__ = ["Act", "Fleet", "Work", "act", "work_of"]


@dataclass
class Fleet:
    """Seeded: see gpuwork.seed."""

    faults: dict[str, dict] = field(default_factory=dict)
    pairs: list[list[str]] = field(default_factory=list)

    def faults_in(self, run_id: str, nodes: list[str]) -> dict[str, str]:
        """Node -> fault, of those that show in that run."""
        found = {}
        for node in nodes:
            given = self.faults.get(node)
            if given and luck(node, run_id) < given["chance"]:
                found[node] = given["fault"]
        return found


def luck(*words: str) -> float:
    """0 to 1, the same for the same words."""
    return int(hashlib.sha256("/".join(words).encode()).hexdigest()[:8], 16) / 16**8


def work_of(
    command: list[str], env: dict[str, str], run_id: str, nodes: list[str], hosts: list[str], me: int, gpus: int, fleet
) -> Work:
    """The work of the pod `me` (its index) of a run on `nodes`, whose pods call themselves `hosts`."""
    bad_pairs = [pair for pair in fleet.pairs if set(pair) <= set(nodes)]
    wobble = 0.99 + 0.02 * luck(run_id, *nodes)
    return Work(command, env, nodes, hosts, me, gpus, fleet.faults_in(run_id, nodes), bool(bad_pairs), wobble)


def act(work: Work) -> Act:
    """By the first program in its command that is known; an unknown one says so and succeeds."""
    players = {"dcgmi": dcgm.act, "gpu_burn": gpu_burn.act, "nvbandwidth": nvbandwidth.act, "torchrun": megatron.act}
    for word in work.command:
        name = PurePath(word).name if "\n" not in word else ""
        if "_perf" in name:
            return nccl.act(work, name.partition("_perf")[0])
        if name in players:
            return players[name](work)
    if work.my_fault == "hang":
        return Act([], hang=True)
    if work.my_fault == "crash":
        return Act(["Segmentation fault (core dumped)"], 139)
    return Act([f"ran {' '.join(work.command)}"])
