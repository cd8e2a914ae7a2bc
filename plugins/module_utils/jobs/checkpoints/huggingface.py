# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hugging Face: weights, whole or in shards with an index, and what the Trainer needs to go on."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import contents, dcp, deepspeed
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import (
    Damaged,
    Finding,
    is_int,
    listed,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

FORMAT = "huggingface"
TRAINER = re.compile(r"checkpoint-(\d+)")
STATE = "trainer_state.json"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin", "tf_model.h5")
_SHARD = re.compile(r"(.+)-(\d{5,6})-of-(\d{5,6})\.(safetensors|bin)")
_BIN = re.compile(r"(?:pytorch_model|adapter_model).*\.bin")
_RNG = re.compile(r"rng_state_(\d+)\.pth")
_RESUMING = ("optimizer.pt", "optimizer.bin", "scheduler.pt", "rng_state.pth")


def is_one(tree: Tree) -> bool:
    """Whether the tree is one, going by names."""
    return (
        STATE in tree.files
        or bool(TRAINER.fullmatch(tree.name))
        or ("config.json" in tree.files and bool(weights(tree)))
        or any(name in tree.files for name in ("pytorch_model.bin", "pytorch_model.bin.index.json"))
        or "adapter_config.json" in tree.files
    )


def weights(tree: Tree) -> list[str]:
    """Files of the top directory that hold or index weights."""
    return [
        name
        for name in tree.files
        if "/" not in name
        and (name in _WEIGHTS or name.endswith((".safetensors", ".index.json")) or _BIN.fullmatch(name))
    ]


def check(tree: Tree, finding: Finding, tensors: dict[str, set[str]], world_size: int | None = None) -> None:
    """`tensors`: names per safetensors file that is whole. See `contents.check`."""
    check_weights(tree, finding, tensors)
    distributed = [folder for folder in dcp.folders(tree) if folder]
    for folder in distributed:
        dcp.check(tree, finding, folder)
    engine = [folder for folder in deepspeed.folders(tree) if folder]
    if engine:
        deepspeed.check_all(tree, finding, world_size, needs_pointer=True)
    finding.proved = bool(tensors) and not distributed and not engine
    if not weights(tree) and not distributed and not engine:
        finding.fault("the weights are missing")
    if "config.json" not in tree.files and "adapter_config.json" not in tree.files and weights(tree):
        finding.doubt("config.json is missing")
    if any(name.startswith("adapter_model.") for name in tree.files) and "adapter_config.json" not in tree.files:
        finding.fault("adapter_config.json is missing")
    resuming = [name for name in tree.files if name in _RESUMING or _RNG.fullmatch(name)]
    if STATE in tree.files or resuming or TRAINER.fullmatch(tree.name):
        _trainer(tree, finding, sharded=bool(distributed or engine), world_size=world_size)


def check_weights(tree: Tree, finding: Finding, tensors: dict[str, set[str]]) -> None:
    """Shards against their indexes and against the count in their names."""
    indexed: set[str] = set()
    for name in [name for name in tree.files if name.endswith(".index.json")]:
        if tree.files[name].size:
            with finding.reading(name):
                indexed |= _index(tree, finding, name, tensors)
    sets: dict[tuple[str, int, str], set[int]] = {}
    for name in tree.files:
        if match := _SHARD.fullmatch(name):
            sets.setdefault((match[1], int(match[3]), match[4]), set()).add(int(match[2]))
            finding.accounted.add(name)
    for (stem, count, form), numbers in sorted(sets.items()):
        missing = count - len(numbers)
        if missing > 0:
            finding.fault(f"{missing} of {count} shards {stem}-*.{form} are missing")
        if not any(name.startswith(f"{stem}-") for name in indexed) and f"{stem}.{form}" not in tree.files:
            finding.fault(f"{stem}.{form}.index.json is missing")


def _index(tree: Tree, finding: Finding, name: str, tensors: dict[str, set[str]]) -> set[str]:
    said = contents.load_json(tree, name)
    places = said.get("weight_map") if isinstance(said, dict) else None
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()) or not places:
        raise Damaged("has no weight_map")
    folder = name.rpartition("/")[0]
    start = f"{folder}/" if folder else ""
    files = sorted(set(places.values()))
    missing = [file for file in files if start + file not in tree.files and start + file not in tree.unseen]
    if missing:
        finding.fault(f"{listed(missing)} missing, of {len(files)} shards in {name}")
    lost = [tensor for tensor, file in places.items() if tensor not in tensors.get(start + file, (tensor,))]
    if lost:
        finding.fault(f"{listed(lost)} not in the shard that {name} says")
    return {start + file for file in files}


def _trainer(tree: Tree, finding: Finding, sharded: bool, world_size: int | None) -> None:
    finding.marker = STATE
    if STATE not in tree.files:
        finding.fault(f"{STATE} is missing")
    elif tree.files[STATE].size:
        with finding.reading(STATE):
            _state(tree)
    optimizer = "optimizer.pt" in tree.files or "optimizer.bin" in tree.files
    rng = {int(match[1]) for name in tree.files if (match := _RNG.fullmatch(name))}
    if not optimizer and not sharded:
        if "scheduler.pt" in tree.files or rng or "rng_state.pth" in tree.files:
            finding.fault("optimizer.pt is missing")
        else:
            finding.doubt("has no optimizer state: the model can be loaded, the run cannot go on from it")
    if optimizer and "scheduler.pt" not in tree.files:
        finding.fault("scheduler.pt is missing")
    if (optimizer or sharded) and not rng and "rng_state.pth" not in tree.files:
        finding.doubt("the states of the random generators are missing")
    if "training_args.bin" not in tree.files:
        finding.doubt("training_args.bin is missing")
    missing = sorted(set(range(max(rng, default=-1) + 1)) - rng)
    if missing:
        finding.fault(f"rng_state of rank {listed([str(rank) for rank in missing])} missing")
    if world_size and (len(rng) or 1) != world_size:
        finding.doubt(f"has the states of {len(rng) or 1} ranks, {world_size} expected")


def _state(tree: Tree) -> None:
    said = contents.load_json(tree, STATE)
    step = said.get("global_step") if isinstance(said, dict) else None
    if not is_int(step):
        raise Damaged("has no global_step")
    named = TRAINER.fullmatch(tree.name)
    if named and int(named[1]) != step:
        raise Damaged(f"says step {step}")
