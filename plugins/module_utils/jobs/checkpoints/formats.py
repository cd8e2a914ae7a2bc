# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which format a checkpoint has, and the check that goes with it."""

from __future__ import annotations

import os

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import (
    contents,
    dcp,
    deepspeed,
    huggingface,
    megatron,
    names,
    nemo,
    orbax,
    single,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Finding
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

ALL = (
    dcp.FORMAT,
    megatron.DIST,
    megatron.LEGACY,
    nemo.FORMAT,
    deepspeed.FORMAT,
    huggingface.FORMAT,
    orbax.FORMAT,
    single.SAFETENSORS,
    single.TORCH,
)


def of(tree: Tree) -> str | None:
    """The format of the checkpoint, by the names of its files. A torn one is recognised by what is left of it."""
    tops = {name.partition("/")[0] for name in tree.files} | tree.folders
    if orbax.is_one(tree):
        return orbax.FORMAT
    if ("weights" in tops and "context" in tops) or os.path.lexists(tree.root + nemo.MARKER):
        return nemo.FORMAT
    if huggingface.is_one(tree):
        return huggingface.FORMAT
    if megatron.parts(tree):
        return megatron.LEGACY
    if deepspeed.folders(tree):
        return deepspeed.FORMAT
    distributed = dcp.folders(tree)
    if distributed or "metadata.json" in tree.files:
        if tree.name.startswith("iter_") or {"metadata.json", "common.pt"} & set(tree.files):
            return megatron.DIST
        return dcp.FORMAT
    if huggingface.weights(tree):
        return single.SAFETENSORS if single.format_of(tree) == single.SAFETENSORS else huggingface.FORMAT
    if any("/" not in name and names.single(name) for name in tree.files):
        return single.format_of(tree)
    return None


def check(tree: Tree, form: str | None, world_size: int | None = None, named: bool = False) -> Finding:
    """Everything that can be said about the checkpoint from its own files; `named`: a pointer names it."""
    finding = Finding()
    tensors = contents.check(tree, finding)
    if form == dcp.FORMAT:
        for folder in dcp.folders(tree):
            dcp.check(tree, finding, folder)
    elif form == megatron.DIST:
        megatron.check_dist(tree, finding)
    elif form == megatron.LEGACY:
        megatron.check_legacy(tree, finding, named)
    elif form == nemo.FORMAT:
        nemo.check(tree, finding)
    elif form == deepspeed.FORMAT:
        deepspeed.check_all(tree, finding, world_size, named)
    elif form == huggingface.FORMAT:
        huggingface.check(tree, finding, tensors, world_size)
    elif form == orbax.FORMAT:
        orbax.check(tree, finding)
    elif form == single.SAFETENSORS:
        huggingface.check_weights(tree, finding, tensors)
        single.check(tree, finding)
        finding.proved = True
    elif form == single.TORCH:
        single.check(tree, finding)
        finding.proved = len(tree.files) == 1
    else:
        finding.fault("is empty" if not tree.files else "holds none of a checkpoint's files")
    return finding
