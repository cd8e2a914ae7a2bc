# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orbax: a directory per step, renamed when the save is over, with a directory per item in it."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import contents, names, ocdbt
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import (
    Damaged,
    Finding,
    Unclear,
    listed,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

FORMAT = "orbax"
UNFINISHED = ".orbax-checkpoint-tmp"
STEP = "_CHECKPOINT_METADATA"
ITEM = "_METADATA"
SUCCESS = "commit_success.txt"
MANIFEST = ocdbt.MANIFEST
_COMMITTED = "Checkpoint commit was successful"
_PROCESS = re.compile(r"(?:^|/)ocdbt\.process_[^/]+/")


def is_one(tree: Tree) -> bool:
    """Whether the tree is one, going by names."""
    if UNFINISHED in tree.name or STEP in tree.files or SUCCESS in tree.files:
        return True
    ends = {name.rpartition("/")[2] for name in tree.files}
    return bool(ends & {ITEM, MANIFEST, "orbax.checkpoint", "_strings.json"})


def check(tree: Tree, finding: Finding) -> None:
    """A step with its items, or an item saved for itself."""
    if UNFINISHED in tree.name:
        finding.fault("is a temporary directory: its save never finished")
    for name in sorted(tree.folders):
        if UNFINISHED in name:
            finding.fault(f"{name} is a temporary directory: the save of the item never finished")
    items = {name.rpartition("/")[0] for name in tree.files if name.rpartition("/")[2] in (ITEM, MANIFEST)}
    items = {item for item in items if not _PROCESS.search(f"{item}/")}
    if STEP in tree.files:
        with finding.reading(STEP):
            items |= _step(tree, finding)
    elif "" not in items:
        finding.doubt(f"{STEP} is missing")
    if not items:
        finding.fault("no item is there")
    for item in sorted(items):
        _item(tree, finding, item)
    for name, file in tree.files.items():
        if name.rpartition("/")[2] == SUCCESS:
            with finding.reading(name):
                _success(tree, name)
        elif "/d/" in f"/{name}" or _PROCESS.search(name):
            _data_file(tree, finding, name, file.size)


def _step(tree: Tree, finding: Finding) -> set[str]:
    finding.marker = STEP
    if not tree.files[STEP].size:
        raise Damaged("is empty")
    said = contents.load_json(tree, STEP)
    if not isinstance(said, dict):
        raise Damaged("is not the metadata of a step")
    if not said.get("commit_timestamp_nsecs"):
        raise Damaged("has no commit time: the save never finished")
    handlers = said.get("item_handlers")
    items = set(handlers) if isinstance(handlers, dict) else set()
    for item in sorted(items):
        if item not in tree.folders:
            finding.fault(f"{item} is missing")
    return items & tree.folders


def _item(tree: Tree, finding: Finding, item: str) -> None:
    start = f"{item}/" if item else ""
    inner = [name[len(start) :] for name in tree.below(item)]
    if ITEM in inner and tree.files[start + ITEM].size:
        with finding.reading(start + ITEM):
            said = contents.load_json(tree, start + ITEM)
            if isinstance(said, dict) and said.get("use_ocdbt") and MANIFEST not in inner:
                raise Damaged(f"says that {MANIFEST} is there, and it is not")
    elif ITEM in inner:
        finding.fault(f"{start}{ITEM} is empty")
    elif MANIFEST in inner:
        finding.fault(f"{start}{ITEM} is missing")
    if MANIFEST in inner:
        _store(tree, finding, item)
    if not inner:
        finding.fault(f"{item} is empty")
    for folder in ("array_metadatas", "d"):
        if start + folder in tree.folders and not any(tree.below(start + folder)):
            finding.fault(f"{start}{folder} is empty")
    for name in inner:
        if name.rpartition("/")[2] in ("_sharding", "array_metadatas") or "array_metadatas/" in name:
            with finding.reading(start + name):
                contents.load_json(tree, start + name)


def _store(tree: Tree, finding: Finding, item: str) -> None:
    start = f"{item}/" if item else ""
    with finding.reading(start + MANIFEST):
        store = ocdbt.Store(tree, item)
        whole = store.check()
        if store.missing:
            finding.fault(f"{listed(sorted(store.missing))} missing")
        if store.short:
            finding.fault(f"{listed(sorted(store.short))} {'breaks' if len(store.short) == 1 else 'break'} off")
        if whole:
            # The tree accounts for the data files; their number follows from the size of the values.
            finding.accounted.update(tree.below(f"{start}d"))
        elif not any(tree.below(f"{start}d")):
            finding.fault(f"{start}d is missing or empty")


def _success(tree: Tree, name: str) -> None:
    """The marker is a sentence that ends with the path it was written for."""
    folder = name.rpartition("/")[0].rpartition("/")[2] or tree.name
    text = tree.read(name, 65536).decode("utf-8", "replace").strip()
    if _COMMITTED.startswith(text):
        raise Damaged("is broken off")
    if text.startswith(_COMMITTED) and not text.endswith((folder, str(names.step(folder)))):
        raise Unclear(f"is of another checkpoint than {folder}, or broken off")


def _data_file(tree: Tree, finding: Finding, name: str, size: int) -> None:
    """A file that begins with a node has room for it. What single processes wrote may go once it was merged."""
    broken = Finding()
    with broken.reading(name):
        ocdbt.check_head(tree, name, size)
    say = finding.doubt if _PROCESS.search(name) else finding.fault
    for text in broken.faults:
        say(text)
    for text in broken.doubts:
        finding.doubt(text)
