# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DeepSpeed: model states per model-parallel rank, ZeRO partitions per data-parallel rank."""

from __future__ import annotations

import os
import re
from collections import defaultdict

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import torchfile
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import (
    Damaged,
    Finding,
    Unclear,
    is_int,
    listed,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

FORMAT = "deepspeed"
POINTERS = ("latest", "latest_universal")
_STATES = re.compile(
    r"(?:(?:(?:bf16_|fp16_)?zero_pp_rank|(?P<expert>expp_rank))_(?P<dp>\d+)_)?mp_rank_(?P<mp>\d+)_"
    r"(?P<kind>model|optim)_states\.pt"
)
_LAYER = re.compile(r"layer_(\d+)-model_(\d+)-model_states\.pt")


def folders(tree: Tree) -> list[str]:
    """Where the tree holds DeepSpeed's files; "" is the tree itself."""
    found = set()
    for name in tree.files:
        folder, base = os.path.split(name)
        if _STATES.fullmatch(base) or _LAYER.fullmatch(base):
            found.add(folder)
    return sorted(found)


def check_all(
    tree: Tree, finding: Finding, world_size: int | None = None, named: bool = False, needs_pointer: bool = False
) -> None:
    """All of DeepSpeed's folders in the tree.

    `named`: a pointer, written when the save was over, names the tree. A pointer within the tree has to name one of
    the folders; `needs_pointer`: one has to be there.
    """
    tags = folders(tree)
    pointer = POINTERS[0]
    if pointer in tree.files:
        with finding.reading(pointer):
            tag = tree.read(pointer, 4096).decode("utf-8", "replace").strip()
            if tag not in tags:
                raise Damaged(f"names {tag[:80]!r}, which is not there" if tag else "is empty")
            named = True
    elif needs_pointer:
        finding.fault(f"{pointer} is missing, which names DeepSpeed's directory")
    for tag in tags:
        _check(tree, finding, tag, world_size, named)


def _check(tree: Tree, finding: Finding, folder: str, world_size: int | None, named: bool) -> None:
    """The files of one tag. Model states say how many partitions there have to be."""
    start = f"{folder}/" if folder else ""
    models: set[int] = set()
    zero: dict[str, dict[int, set[int]]] = {"model": defaultdict(set), "optim": defaultdict(set)}
    layers: dict[int, set[int]] = defaultdict(set)
    for name in tree.below(folder):
        base = name[len(start) :]
        if match := _STATES.fullmatch(base):
            if match["dp"] is None:
                models.add(int(match["mp"]))
            elif not match["expert"]:
                zero[match["kind"]][int(match["mp"])].add(int(match["dp"]))
                finding.accounted.add(name)
        elif match := _LAYER.fullmatch(base):
            layers[int(match[1])].add(int(match[2]))
    said = _values(tree, start)
    wanted = said.get("dp_world_size") if is_int(said.get("dp_world_size")) else None
    parts = models | set(zero["model"]) | set(zero["optim"])
    _contiguous(finding, "model states of model-parallel rank", models or parts)
    if not models and not zero["model"]:
        finding.fault(f"{start}mp_rank_*_model_states.pt is missing")
    for kind, ranks in zero.items():
        _partitions(finding, kind, ranks, parts, wanted)
    for layer in layers.values():
        if len(layer) != max(map(len, layers.values())):
            finding.fault("some layer files are missing")
    _contiguous(finding, "layer files of model part", set().union(*layers.values()))
    if _stage(said) and not zero["optim"]:
        finding.fault("the optimizer's partitions are missing")
    finding.proved = named or wanted is not None
    if not finding.proved:
        finding.doubt("how many partitions there have to be cannot be read")
    if world_size and zero["optim"]:
        found = sum(map(len, zero["optim"].values()))
        if found != world_size:
            finding.doubt(f"has the optimizer partitions of {found} ranks, {world_size} expected")


def _partitions(finding: Finding, kind: str, ranks: dict[int, set[int]], parts: set[int], wanted: int | None) -> None:
    if not ranks:
        return
    count = max(max(max(found) for found in ranks.values()) + 1, min(wanted or 0, 1 << 20))
    for part in sorted(parts):
        missing = sorted(set(range(count)) - ranks.get(part, set()))
        if missing:
            names = listed([str(rank) for rank in missing])
            finding.fault(f"{kind} partitions {names} of model-parallel rank {part} are missing, of {count}")


def _contiguous(finding: Finding, what: str, numbers: set[int]) -> None:
    missing = sorted(set(range(max(numbers, default=-1) + 1)) - numbers)
    if missing:
        finding.fault(f"{what} {listed([str(number) for number in missing])} missing")


def _values(tree: Tree, start: str) -> dict:
    """The plain values of the first model states that can be read."""
    for name in sorted(tree.below(start.rstrip("/"))):
        if name.startswith(f"{start}mp_rank_") or name.startswith(f"{start}zero_pp_rank_0_mp_rank_00_model"):
            try:
                with tree.open(name) as file:
                    value = torchfile.values(file, tree.files[name].size)
            except (Damaged, Unclear, OSError):
                continue  # said where each file is looked at
            if isinstance(value, dict) and "dp_world_size" in value:
                return value
    return {}


def _stage(said: dict) -> bool:
    config = said.get("ds_config")
    zero = config.get("zero_optimization") if isinstance(config, dict) else None
    stage = zero.get("stage") if isinstance(zero, dict) else None
    return is_int(stage) and stage > 0
