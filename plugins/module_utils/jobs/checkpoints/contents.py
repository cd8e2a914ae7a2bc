# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every file of a checkpoint for itself: is it whole, by what its form says of its length?"""

from __future__ import annotations

import json

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import pickles, safetensors, torchfile
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged, Finding, listed
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

MOST_JSON = 256 << 20  # bytes; an index of a large model has a few tens of MiB
MOST_PICKLE = 64 << 20
TORCH = (".pt", ".pth", ".ckpt")
# Names under which Hugging Face's libraries write with torch.save; other .bin files may be anything.
TORCH_BIN = ("pytorch_model", "adapter_model", "optimizer", "scheduler", "training_args")
DATA = (*TORCH, ".bin", ".safetensors", ".distcp", ".json", ".pkl")
UNFINISHED = (".tmp", ".partial", ".part", ".incomplete", ".temp")


def check(tree: Tree, finding: Finding) -> dict[str, set[str]]:
    """Looks at all files; gives the names of the tensors of each safetensors file that is whole."""
    tensors: dict[str, set[str]] = {}
    for name, why in sorted(tree.unseen.items()):
        finding.doubt(f"{name} {why}".strip())
    empty = sorted(name for name, file in tree.files.items() if file.size == 0 and name.endswith(DATA))
    if empty:
        finding.fault(f"{listed(empty)} {'is' if len(empty) == 1 else 'are'} empty")
    for name, file in tree.files.items():
        if file.size == 0:
            continue
        base = name.rpartition("/")[2]
        with finding.reading(name):
            if name.endswith(UNFINISHED):
                _unfinished(tree, finding, name)
            elif name.endswith(".safetensors"):
                with tree.open(name) as opened:
                    tensors[name] = safetensors.tensors(opened, file.size)
            elif name.endswith((*TORCH, ".pkl")) or (name.endswith(".bin") and base.startswith(TORCH_BIN)):
                _saved(tree, name)
            elif name.endswith(".json"):
                load_json(tree, name)
    return tensors


def load_json(tree: Tree, name: str) -> object:
    """The file's value. Raises `Damaged` when it is no JSON."""
    try:
        return json.loads(tree.read(name, MOST_JSON))
    except (ValueError, RecursionError):
        raise Damaged("is broken off or no JSON") from None


def _saved(tree: Tree, name: str) -> None:
    """A file of torch.save, or of plain pickles one after the other; both forms come under the same names."""
    size = tree.files[name].size
    with tree.open(name) as file:
        if not torchfile.pickled(file.read(16)):
            torchfile.check(file, size)
            return
    data = tree.read(name, MOST_PICKLE)
    at = 0
    while at < len(data):
        at = pickles.read(data, built=lambda name, state: None, start=at)[1]


def _unfinished(tree: Tree, finding: Finding, name: str) -> None:
    final = name.rpartition(".")[0]
    if final in tree.files:
        finding.doubt(f"{name} is left beside {final.rpartition('/')[2]}: it was being written anew")
    else:
        finding.fault(f"{name} was never renamed: its save did not finish")
