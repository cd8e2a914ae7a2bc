# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Megatron-LM: iter_* directories, either distributed (torch_dist) or one mp_rank_* directory per model part (legacy).

The tracker latest_checkpointed_iteration.txt beside them names the one that Megatron would load.
"""

from __future__ import annotations

import itertools
import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import contents, dcp, pickles, torchfile
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import (
    Damaged,
    Finding,
    Unclear,
    is_int,
    listed,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

DIST = "megatron-torch-dist"
LEGACY = "megatron-legacy"
TRACKER = "latest_checkpointed_iteration.txt"
_PART = re.compile(r"mp_rank_(\d\d)(?:_(\d{3}))?(?:_(\d{3}))?")
_MODEL = ("model_optim_rng.pt", "model_rng.pt")
_OPTIMIZER = ("distrib_optim.pt", "optim.pt")


def parts(tree: Tree) -> set[str]:
    """The mp_rank_* directories."""
    tops = {name.partition("/")[0] for name in (*tree.files, *tree.folders)}
    return {name for name in tops if _PART.fullmatch(name)}


def check_dist(tree: Tree, finding: Finding, folder: str = "") -> None:
    """The checkpoint in `folder`: the rule of `dcp`, and what Megatron writes when the save is over."""
    start = f"{folder}/" if folder else ""
    said: object = None
    if f"{start}metadata.json" not in tree.files:
        finding.fault(f"{start}metadata.json is missing: the save was not finalised")
    else:
        with finding.reading(f"{start}metadata.json"):
            said = contents.load_json(tree, f"{start}metadata.json")
            if not isinstance(said, dict) or not isinstance(said.get("sharded_backend"), str):
                raise Damaged("is not the metadata of a Megatron checkpoint")
            if said["sharded_backend"] not in ("torch_dist", "torch_dcp"):
                raise Unclear(f"says {said['sharded_backend']!r}, a form that is not looked into")
    extents = dcp.check(tree, finding, folder)
    if f"{start}common.pt" not in tree.files and extents.finished and not extents.common:
        finding.doubt(f"{start}common.pt is missing, and .metadata names nothing in its place")


def check_legacy(tree: Tree, finding: Finding, named: bool = False) -> None:
    """One directory per model part, each with its model and, where it is distributed, its optimizer.

    `named`: the tracker, written when the save was over, names this iteration.
    """
    there = parts(tree)
    missing = sorted(part for part in there if not any(f"{part}/{name}" in tree.files for name in _MODEL))
    if missing:
        finding.fault(f"{listed(missing)}: the model file is missing")
    arguments = _arguments(tree, finding, there)
    finding.proved = named or bool(arguments)
    expected = _expected(there, arguments)
    if expected - there:
        finding.fault(f"{listed(sorted(expected - there))} missing, of {len(expected)} model parts")
    elif not finding.proved:
        finding.doubt("the number of model parts is not told by the checkpoint")
    having = {part for part in there if any(f"{part}/{name}" in tree.files for name in _OPTIMIZER)}
    needed = arguments.get("use_distributed_optimizer") is True and arguments.get("no_save_optim") is not True
    if (having or needed) and there - having:
        finding.fault(f"{listed(sorted(there - having))}: the optimizer file is missing")


def _arguments(tree: Tree, finding: Finding, there: set[str]) -> dict:
    """The arguments of the training run, from the first part's model file; empty when they cannot be read."""
    for part in sorted(there):
        for name in _MODEL:
            file = tree.files.get(f"{part}/{name}")
            if file is None or not file.size:
                continue
            try:
                with tree.open(f"{part}/{name}") as opened:
                    value = torchfile.values(opened, file.size)
            except (Damaged, Unclear, OSError):
                return {}  # said where each file is looked at
            arguments = value.get("args") if isinstance(value, dict) else None
            if isinstance(arguments, pickles.Inert):
                arguments = arguments.state
            return arguments if isinstance(arguments, dict) else {}
    return {}


def _expected(there: set[str], arguments: dict) -> set[str]:
    """Names of the parts that tensor, pipeline and expert parallel sizes ask for."""
    axes = [[int(index) for index in _PART.fullmatch(part).groups() if index] for part in there]
    width = max(map(len, axes), default=0)
    if not width or any(len(axis) != width for axis in axes):
        return set()
    seen = [max(axis[i] for axis in axes) + 1 for i in range(width)]
    tensor = _size(arguments, "tensor_model_parallel_size", seen[0])
    pipeline = _size(arguments, "pipeline_model_parallel_size", 1)
    expert = _size(arguments, "expert_model_parallel_size", 1)
    said = [pipeline] if pipeline > 1 else []
    said += [expert] if expert > 1 else []
    sizes = [tensor, *said] if len(said) == width - 1 else seen
    if sizes[0] * (sizes[1] if width > 1 else 1) > 65536:
        return set()
    forms = ("{:02d}", "_{:03d}", "_{:03d}")
    combined = itertools.product(*(range(max(size, most)) for size, most in zip(sizes, seen, strict=True)))
    return {"mp_rank_" + "".join(form.format(i) for form, i in zip(forms, place)) for place in combined}  # noqa: B905


def _size(arguments: dict, name: str, otherwise: int) -> int:
    value = arguments.get(name)
    return value if is_int(value) and 0 < value <= 65536 else otherwise
