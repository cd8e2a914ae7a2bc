# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest checkpoint that is complete, and the torn ones in front of it."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import time
from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import (
    contents,
    find,
    formats,
    names,
    orbax,
    pointers,
    tree,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Finding, listed
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, nearest

SETTLE = 60
LIMIT = 100
_SKEW = 2.0  # seconds by which the clocks of writing hosts may differ
_OLDER = 3  # how many older checkpoints are tried for comparison
_NUMBER = re.compile(r"\d+")
_HASH = re.compile(r"[0-9a-f]{32}")
# Files that stay as they are from one save to the next.
_STATIC = (".txt", ".model", ".py", ".md", ".jinja", ".yaml", ".yml", "config.json", "tokenizer.json", "vocab.json")


@dataclasses.dataclass
class Examined:
    candidate: find.Candidate
    tree: tree.Tree
    form: str | None
    finding: Finding

    @property
    def step(self) -> int | None:
        return self.candidate.step

    @property
    def kin(self) -> tuple:
        """What checkpoints of one run have in common."""
        return os.path.dirname(self.candidate.path), self.form


def survey(
    path: str,
    *,
    every: bool = False,
    limit: int = LIMIT,
    settle: float = SETTLE,
    only: Iterable[str] = (),
    world_size: int | None = None,
    now: float | None = None,
) -> dict:
    """Looks below `path`, newest checkpoint first, until one is complete (`every`: until `limit` were looked at).

    `settle` is in seconds: a checkpoint whose files are younger is taken for one that is still being written, unless
    the file that its writer writes last says that it is done. `only` are formats to look at. Returns `newest`,
    `torn`, `checkpoints`, `pointers`, `unread` and `more`, the number that was not looked at; each checkpoint is
    {format, step, path, complete, why, files, bytes, writtenAt}. Raises `NotFound`, `Unavailable`, `InvalidDocument`.
    """
    only = _formats(only)
    if limit < 1 or settle < 0 or math.isnan(settle):
        raise InvalidDocument(
            f"{limit if limit < 1 else settle} is too small",
            path="limit" if limit < 1 else "settle",
            hint="limit is 1 or more, settle is 0 or more seconds",
        )
    now = time.time() if now is None else now
    found = find.find(path)
    look = Look(found, only, settle, world_size, now)
    documents: list[dict] = []
    newest = None
    looked = 0
    for looked, candidate in enumerate(found.candidates, 1):
        item = look.examine(looked - 1)
        if item is not None:
            look.compare(item, looked)
            document = describe(item)
            documents.append(document)
            if newest is None and document["complete"]:
                newest = document
                if not every:
                    break
        if len(documents) >= limit:
            break
        look.forget(candidate)
    answer = {
        "newest": newest,
        "torn": [document for document in documents if document["complete"] is False],
        "checkpoints": documents,
        "pointers": pointers.read(found.pointers, documents, look.judge, found.root),
        "unread": found.unread,
        "more": len(found.candidates) - looked,
    }
    return printable(answer)


def printable(value: object) -> object:
    """The same data with the bytes of names that are not UTF-8 written out, since Ansible's results are UTF-8."""
    if isinstance(value, dict):
        return {key: printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [printable(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


class Look:
    """Examines candidates, and keeps what may be needed again for comparison."""

    def __init__(self, found: find.Found, only: set[str], settle: float, world_size: int | None, now: float) -> None:
        self.found = found
        self.only = only
        self.settle = settle
        self.world_size = world_size
        self.now = now
        self.named = pointers.named(found.pointers)
        self.kept: dict[str, Examined | None] = {}

    def examine(self, index: int) -> Examined | None:
        """The candidate at `index`; none when it is no checkpoint, or of another format than was asked for."""
        candidate = self.found.candidates[index]
        if candidate.path not in self.kept:
            self.kept[candidate.path] = self._examine(candidate)
        return self.kept[candidate.path]

    def forget(self, candidate: find.Candidate) -> None:
        self.kept.pop(candidate.path, None)

    def judge(self, path: str) -> dict | None:
        """The document of the checkpoint at `path`, which a pointer names."""
        for index, candidate in enumerate(self.found.candidates):
            if candidate.path == path:
                item = self.examine(index)
                if item is None:
                    return None
                self.compare(item, index + 1)
                return describe(item)
        return None

    def _examine(self, candidate: find.Candidate) -> Examined | None:
        held = self._tree(candidate)
        form = formats.of(held)
        leftover = names.unfinished(candidate.name)
        if form is None and held.files and not names.sure(candidate.name) and not leftover:
            return None
        if self.only and form is not None and form not in self.only:
            return None
        finding = formats.check(held, form, self.world_size, candidate.path in self.named)
        if leftover and orbax.UNFINISHED not in candidate.name:
            finding.fault("has the name of a save that is not over")
        self._settled(held, finding)
        return Examined(candidate, held, form, finding)

    def _tree(self, candidate: find.Candidate) -> tree.Tree:
        if not candidate.members:
            return tree.read(candidate.path, self.found.within, skip=names.likely if candidate.apart else None)
        held = tree.Tree(candidate.path)
        for member in candidate.members:
            part = tree.read(os.path.join(os.path.dirname(candidate.path), member), self.found.within)
            held.files.update(part.files)
            held.unseen.update(part.unseen)
        return held

    def _settled(self, held: tree.Tree, finding: Finding) -> None:
        newest = held.newest
        if newest is None or abs(self.now - newest) >= self.settle:
            return
        marker = held.files.get(finding.marker or "")
        if finding.faults:
            finding.doubt("may still be being written, its newest file is from just now")
        elif marker is None and finding.proved:
            return
        elif marker is None:
            finding.doubt(f"its newest file was written {max(0, self.now - newest):.0f} s ago, it may not be the last")
        elif newest > marker.mtime + _SKEW:
            finding.doubt(f"files are being written after {finding.marker}")

    def compare(self, item: Examined, after: int) -> None:
        """Against the next older complete one of the same run, which has what this one should have."""
        if item.finding.complete is False:
            return
        tried = 0
        for index in range(after, min(after + 10 * _OLDER, len(self.found.candidates))):
            if os.path.dirname(self.found.candidates[index].path) != item.kin[0]:
                continue
            older = self.examine(index)
            if older is None or older.kin != item.kin or older.step is None or older.step == item.step:
                continue
            tried += 1
            if older.finding.complete is True:
                against(item, older)
                return
            if tried == _OLDER:
                return


def against(item: Examined, older: Examined) -> None:
    """Files that `older` has and `item` lacks, unless something inside of it accounts for them."""
    mine, theirs = shape(item), shape(older)
    other = older.candidate.name
    merged = not any("ocdbt.process_" in name for name in mine)
    lacking = sorted(name for name in theirs if name not in mine and not (merged and "ocdbt.process_" in name))
    needed = [name for name in lacking if _needed(name)]
    if needed:
        item.finding.fault(f"{listed(needed)} missing, {other} has {'it' if len(needed) == 1 else 'them'}")
    spare = [name for name in lacking if not _needed(name)]
    if spare:
        item.finding.doubt(f"{listed(spare)} missing, {other} has {'it' if len(spare) == 1 else 'them'}")
    shorter = sorted(
        name
        for name, size in theirs.items()
        if name.endswith(_STATIC) and name.rpartition("/")[2] != orbax.SUCCESS and mine.get(name, size) < size
    )
    if shorter:
        item.finding.doubt(f"{listed(shorter)} shorter than in {other}")


def _needed(name: str) -> bool:
    base = name.rpartition("/")[2]
    if base.startswith(("rng_state_", "random_states_")):
        return False  # a run may have been restarted with fewer ranks
    return base.endswith(contents.TORCH + (".bin", ".safetensors")) or base in (orbax.SUCCESS, orbax.MANIFEST)


def shape(item: Examined) -> dict[str, int]:
    """Names of the files, with the step and random parts taken out, to their sizes."""
    held = item.tree
    counts: dict[str, int] = {}
    sizes = {}
    for name, file in held.files.items():
        if name in item.finding.accounted:
            continue
        plain = _HASH.sub("#", name)
        if item.step is not None:
            step = item.step
            plain = _NUMBER.sub(lambda match, step=step: "STEP" if int(match[0]) == step else match[0], plain)
        if "#" in plain:
            counts[plain] = counts.get(plain, 0) + 1
            plain = f"{plain}{counts[plain]}"
        sizes[plain] = file.size
    return sizes


def describe(item: Examined) -> dict:
    """The checkpoint as plain data."""
    newest = item.tree.newest
    return {
        "format": item.form or "unknown",
        "step": item.step,
        "path": item.candidate.path,
        "complete": item.finding.complete,
        "why": item.finding.why,
        "files": len(item.tree.files),
        "bytes": item.tree.bytes,
        "writtenAt": None if newest is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(newest)),
    }


def _formats(only: Iterable[str]) -> set[str]:
    asked = list(only)
    for name in asked:
        if name not in formats.ALL:
            raise InvalidDocument(f"no such format: {name}", path="formats", hint=nearest(name, formats.ALL))
    return set(asked)
