# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""torch.distributed.checkpoint: .metadata, written last, says which bytes of which .distcp file hold what."""

from __future__ import annotations

import os
import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import pickles, torchfile
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import (
    Damaged,
    Finding,
    Unclear,
    is_int,
    listed,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

FORMAT = "pytorch-dcp"
MOST_METADATA = 512 << 20  # bytes; a save of 1,000 ranks with 1,000 tensors each has 190 MB
_PER_RANK = re.compile(r"__(\d+)\.metadata")
# Packages whose classes writers of .metadata name. Nothing of them is imported; a name from elsewhere means that the
# file is none of theirs.
_KNOWN = re.compile(
    r"(torch|pathlib|numpy|megatron\.core|transformer_engine|nvidia_resiliency_ext|collections)\..+"
    r"|(builtins|__builtin__)\.(set|frozenset|bytearray|complex|slice|range)|_codecs\.encode|io\.BytesIO"
)


class Extents:
    """What .metadata says: per file its length and its last slice, and whether a tensor or object is called so."""

    def __init__(self) -> None:
        self.slices: dict[str, tuple[int, int]] = {}  # file -> (offset, length) of the slice that ends last
        self.finished = False
        self.common = False

    def built(self, name: str, state: dict) -> None:
        kind = name.rpartition(".")[2]
        if "relative_path" in state and kind.endswith("StorageInfo"):
            path, offset, length = state["relative_path"], state.get("offset"), state.get("length")
            if not isinstance(path, str) or not is_int(offset) or not is_int(length) or min(offset, length) < 0:
                raise Damaged("says of a slice where it lies in a form that is not known")
            last = self.slices.get(path)
            if last is None or offset + length > last[0] + last[1]:
                self.slices[path] = (offset, length)
        elif kind == "MetadataIndex":
            self.common = self.common or "common" in str(state.get("fqn"))
        elif "storage_data" in state:
            self.finished = True


def folders(tree: Tree) -> list[str]:
    """Where the tree holds a distributed checkpoint; "" is the tree itself."""
    found = set()
    for name in tree.files:
        folder, base = os.path.split(name)
        if base.endswith(".distcp") or base == ".metadata" or _PER_RANK.fullmatch(base):
            found.add(folder)
    return sorted(found)


def check(tree: Tree, finding: Finding, folder: str = "") -> Extents:
    """The checkpoint in `folder`: every file that .metadata names is there with the length it says."""
    start = f"{folder}/" if folder else ""
    extents = Extents()
    metadata = _metadata_files(tree, finding, folder)
    if not metadata:
        shards = sum(1 for name in tree.below(folder) if name.endswith(".distcp"))
        finding.fault(f"{start}.metadata is missing: the save never finished ({shards} .distcp files are there)")
        return extents
    for name in metadata:
        with finding.reading(name):
            _read(tree, name, extents)
    if finding.complete is True or finding.marker is None:
        finding.marker = metadata[-1]
    wrong = not _lengths(tree, finding, start, extents)
    for name in tree.below(folder):
        if name.endswith(".distcp"):
            finding.accounted.add(name)
    if not wrong:
        _ends(tree, finding, start, extents)
    return extents


def _metadata_files(tree: Tree, finding: Finding, folder: str) -> list[str]:
    start = f"{folder}/" if folder else ""
    if f"{start}.metadata" in tree.files:
        return [f"{start}.metadata"]
    ranks = sorted(int(match[1]) for name in tree.below(folder) if (match := _PER_RANK.fullmatch(name[len(start) :])))
    missing = sorted(set(range(ranks[-1] + 1)) - set(ranks)) if ranks else []
    if missing:
        finding.fault(f"the metadata of rank {listed([str(rank) for rank in missing])} is missing")
    return [f"{start}__{rank}.metadata" for rank in ranks]


def _read(tree: Tree, name: str, extents: Extents) -> None:
    if tree.files[name].size == 0:
        raise Damaged("is empty: the save never finished")
    pickles.read(tree.read(name, MOST_METADATA), built=extents.built, named=_only_known)
    if not extents.finished:
        raise Damaged("is not the metadata of a distributed checkpoint")
    if not extents.slices:
        raise Unclear("lists no data")


def _only_known(name: str) -> None:
    if not _KNOWN.fullmatch(name):
        raise Unclear(f"names {name[:80]}, which no known writer of metadata does")


def _lengths(tree: Tree, finding: Finding, start: str, extents: Extents) -> bool:
    missing, wrong = [], []
    for path, (offset, length) in sorted(extents.slices.items()):
        if path.startswith("/") or ".." in path.split("/"):
            finding.doubt(f"{start}.metadata names {path[:80]}, outside of the checkpoint")
            continue
        file = tree.files.get(start + path)
        if file is None and start + path in tree.unseen:
            continue  # already doubted
        if file is None:
            missing.append(path)
        elif file.size != offset + length:
            wrong.append(f"{path} has {file.size} bytes, {offset + length} by .metadata")
    if missing:
        finding.fault(f"{start}{listed(missing)} missing, of {len(extents.slices)} files")
    for text in wrong[:3]:
        finding.fault(start + text)
    if len(wrong) > 3:
        finding.fault(f"{len(wrong) - 3} more files have a wrong length")
    return not missing and not wrong


def _ends(tree: Tree, finding: Finding, start: str, extents: Extents) -> None:
    """A file of the right length may still end in zeros, when blocks were set aside and never written."""
    for path, (offset, length) in extents.slices.items():
        if start + path not in tree.files or not length:
            continue
        with finding.reading(start + path), tree.open(start + path) as file:
            file.seek(offset)
            head = file.read(4)
            if head == torchfile.LOCAL[: len(head)]:
                torchfile.directory(file, offset, length)
            elif not any(head) and path.endswith(".distcp") and not any(_tail(file, offset + length, length)):
                raise Damaged("ends in zeros: its data was never written")


def _tail(file, end: int, length: int) -> bytes:
    size = min(length, 4096)
    file.seek(end - size)
    return file.read(size)
