# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orbax: a directory per step, renamed when the save is over, with a directory per item in it."""

from __future__ import annotations

import re
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import contents, names, ocdbt, zarr
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
# Of arrays, of the handler for JSON, and of metrics.
_JSON = ("_sharding", "metadata", "metrics")
_COMMITTED = "Checkpoint commit was successful"
_PROCESS = re.compile(r"(?:^|/)ocdbt\.process_[^/]+/")
_PROCESS_FOLDER = re.compile(r"(?:.*/)?ocdbt\.process_[^/]+(?=/)")
_HASHED = re.compile(r"(?:^|/)d/[0-9a-f]{32}$")


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
    told = {item for item in items if f"{item}/{SUCCESS}" in tree.files}
    if told and (SUCCESS not in tree.files or told != items):
        finding.doubt(f"{SUCCESS} is there for {listed(sorted(told))} only")
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
            if isinstance(said, dict) and said.get("use_ocdbt") is False and not said.get("use_zarr3"):
                zarr.check(tree, finding, item, said)
    elif ITEM in inner:
        finding.fault(f"{start}{ITEM} is empty")
    elif MANIFEST in inner:
        finding.fault(f"{start}{ITEM} is missing")
    if MANIFEST in inner:
        _store(tree, finding, item)
    if not set(inner) - {SUCCESS}:
        finding.fault(f"{item} is empty")
    for folder in ("array_metadatas", "d"):
        if start + folder in tree.folders and not any(tree.below(start + folder)):
            finding.fault(f"{start}{folder} is empty")
    for name in inner:
        if name in _JSON or name.startswith("array_metadatas/"):
            with finding.reading(start + name):
                contents.load_json(tree, start + name)


def _store(tree: Tree, finding: Finding, item: str) -> None:
    """The item's arrays. Its tree names data files of its own and of the stores of single processes."""
    start = f"{item}/" if item else ""
    whole = _needed(tree, finding, item, finding.fault)
    for name in tree.below(item):
        if whole and _HASHED.search(name):
            finding.accounted.add(name)  # how many files there are follows from when they were flushed
    if not whole and not any(tree.below(f"{start}d")):
        finding.fault(f"{start}d is missing or empty")
    for folder in sorted({match[0] for name in tree.below(item) if (match := _PROCESS_FOLDER.match(name))}):
        if f"{folder}/{MANIFEST}" in tree.files:
            _needed(tree, finding, folder, finding.doubt)
        else:
            finding.doubt(f"{folder}/{MANIFEST} is missing")


def _needed(tree: Tree, finding: Finding, folder: str, say: Callable[[str], None]) -> bool:
    """Whether the tree of the store in `folder` could be read; what it needs and lacks is told to `say`."""
    broken = Finding()
    whole = False
    with broken.reading(f"{folder}/{MANIFEST}".lstrip("/")):
        store = ocdbt.Store(tree, folder)
        whole = store.check()
        if store.missing:
            say(f"{listed(sorted(store.missing))} missing")
        if store.short:
            say(f"{listed(sorted(store.short))} {'breaks' if len(store.short) == 1 else 'break'} off")
    for text in broken.faults:
        say(text)
    for text in broken.doubts:
        finding.doubt(text)
    return whole


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
