# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arrays that Orbax wrote without OCDBT: a directory per array, with .zarray and one file per chunk."""

from __future__ import annotations

import itertools
import math
import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import contents
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged, Finding, listed
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

HEAD = ".zarray"
MOST_CHUNKS = 1_000_000
MOST_BLOCKS = 200_000
_ZSTD = b"\x28\xb5\x2f\xfd"
_ARRAYS = ("jax.Array", "np.ndarray")


def check(tree: Tree, finding: Finding, item: str, said: dict) -> None:
    """The arrays that the item's metadata `said` lists, and their chunks."""
    start = f"{item}/" if item else ""
    for name in sorted(_listed(said)):
        if f"{start}{name}/{HEAD}" not in tree.files:
            finding.fault(f"{start}{name}/{HEAD} is missing")
    # Chunks that hold nothing but the fill value are left out, unless the writer says otherwise.
    full = said.get("store_array_data_equal_to_fill_value") is True
    for name in sorted(tree.below(item)):
        if name.endswith("/" + HEAD):
            with finding.reading(name):
                _array(tree, finding, name.removesuffix(HEAD), full)


def _listed(said: dict) -> set[str]:
    """Names of the arrays in the metadata of an item."""
    entries = said.get("tree_metadata")
    found = set()
    for entry in entries.values() if isinstance(entries, dict) else ():
        try:
            if entry["value_metadata"]["value_type"] in _ARRAYS:
                found.add(".".join(str(key["key"]) for key in entry["key_metadata"]))
        except (TypeError, KeyError):
            continue
    return found


def _array(tree: Tree, finding: Finding, start: str, full: bool) -> None:
    said = contents.load_json(tree, start + HEAD)
    try:
        grid = [max(0, math.ceil(size / chunk)) for size, chunk in zip(said["shape"], said["chunks"], strict=True)]
        separator = said.get("dimension_separator", ".")
        method = (said["compressor"] or {}).get("id")
        width = re.fullmatch(r"[<>|=][a-zA-Z](\d+)", said["dtype"])
        plain = math.prod(said["chunks"]) * int(width[1]) if width and method is None and not said["filters"] else None
        separator.join("ab")
    except (TypeError, KeyError, ValueError, AttributeError, ZeroDivisionError, OverflowError):
        raise Damaged("is not the head of an array") from None
    if math.prod(grid) > MOST_CHUNKS:
        finding.doubt(f"{start}{HEAD} asks for {math.prod(grid)} chunks, more than are looked at")
        return
    # An array without dimensions has one chunk, called 0.
    names = [separator.join(map(str, place)) or "0" for place in itertools.product(*map(range, grid))]
    missing = [name for name in names if start + name not in tree.files]
    if missing and (full or len(missing) == len(names)):
        finding.fault(f"{start}: chunk {listed(missing)} missing, of {len(names)}")
    for name in names:
        if start + name in tree.files:
            with finding.reading(start + name):
                _chunk(tree, start + name, method, plain)


def _chunk(tree: Tree, name: str, method: object, plain: int | None) -> None:
    size = tree.files[name].size
    if not size:
        raise Damaged("is empty")
    if plain is not None and size != plain:
        raise Damaged(f"has {size} bytes, {plain} by {HEAD}")
    if method == "zstd":
        with tree.open(name) as file:
            end = _frame_end(file)
        if end != size:
            raise Damaged(f"breaks off: {size} bytes")


def _frame_end(file) -> int:
    """Where the Zstandard frame ends, by the lengths of its blocks; nothing is decompressed."""
    head = file.read(5)
    if len(head) < 5 or head[:4] != _ZSTD:
        raise Damaged("is not compressed as its array says")
    flags = head[4]
    single = flags >> 5 & 1
    at = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    for _dummy in range(MOST_BLOCKS):
        file.seek(at)
        block = int.from_bytes(file.read(3).ljust(3, b"\xff"), "little")
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if block & 1 or block >> 1 & 3 == 3:
            break
    return at + (4 if flags & 4 else 0)
