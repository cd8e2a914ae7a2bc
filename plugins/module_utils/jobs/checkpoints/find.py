# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where checkpoints lie below a directory: names only, nothing is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import names, nemo, tree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound, Unavailable

DEPTH = 3
FEW = 64  # directories with numbers for names are looked into before they are taken for checkpoints, if so few
MOST_LISTED = 20_000  # directories that are opened to look for checkpoints in them


@dataclass(frozen=True)
class Candidate:
    """Something that may be a checkpoint. `members` are the files of one that has no directory of its own."""

    path: str
    step: int | None
    mtime: float = 0.0  # of the directory or file; only told apart where there is no step
    members: tuple[str, ...] = ()
    apart: bool = False  # other checkpoints lie below it

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


@dataclass
class Found:
    root: str  # absolute, as it was asked for
    within: str  # the same without links; nothing outside of it is looked at
    candidates: list[Candidate]  # newest first, by step, those without after them by time
    pointers: list[str]  # paths of the files that name a checkpoint
    unread: list[str]  # what could not be looked at, and why


POINTERS = ("latest_checkpointed_iteration.txt", "latest", "latest_universal", "latest_iteration.txt")


def find(root: str) -> Found:
    """Checkpoints at and below `root`. Raises `NotFound`, or `Unavailable` when `root` cannot be read."""
    try:
        os.stat(root)
    except FileNotFoundError:
        raise NotFound(
            f"no such file or directory: {root}", path="path", hint="is the file system mounted on this host?"
        ) from None
    except (OSError, ValueError) as error:
        raise _unreadable(root, error) from None
    root = os.path.abspath(root)
    found = Found(root, os.path.realpath(root), [], [], [])
    if not os.path.isdir(root):
        found.candidates.append(_candidate(root))
        return found
    try:
        _look(found)
    except OSError as error:
        raise _unreadable(root, error) from None
    found.candidates.sort(key=lambda it: (it.step is not None, it.step or 0, it.mtime, it.path), reverse=True)
    return found


def _unreadable(root: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"{root} cannot be read: {getattr(error, 'strerror', None) or error}",
        path="path",
        hint="whether a checkpoint is there stays unknown",
    )


def _look(found: Found) -> None:
    waiting = [(found.root, 0)]
    listed = 0
    while waiting:
        place, depth = waiting.pop()
        listed += 1
        if listed > MOST_LISTED:
            found.unread.append(f"only {MOST_LISTED} directories below {found.root} were looked at")
            return
        folders, files = [], []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    # A link to a checkpoint, such as "last", is a second name of one that is found anyway.
                    if entry.is_symlink() and os.path.isdir(entry.path):
                        if not tree.inside(os.path.realpath(entry.path), found.within):
                            found.unread.append(f"{entry.path} is a link that leads out of {found.root}, not followed")
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    else:
                        files.append(entry.name)
        except OSError as error:
            if not depth:
                raise
            found.unread.append(f"{place} cannot be read: {error.strerror or error}")
            continue
        named = {*folders, *files}
        for name in POINTERS:
            if name in files:
                found.pointers.append(os.path.join(place, name))
        own = place == found.root and names.sure(os.path.basename(place))
        apart = not own and any(names.sure(name) and not names.inner(name, named) for name in folders)
        if own or (names.strong(named) and not apart):
            found.candidates.append(_candidate(place))
            continue
        if names.strong(named) or names.weak(named):
            # Hugging Face's Trainer leaves the final model in the directory of its checkpoints.
            found.candidates.append(_candidate(place, apart=True))
        else:
            found.candidates.extend(_singles(place, files))
        marked = {name.removesuffix(nemo.MARKER) for name in named if name.endswith(nemo.MARKER)}
        numbered = {name for name in folders if names.likely(name) and not names.sure(name)}
        for name in folders:
            path = os.path.join(place, name)
            if len(numbered) <= FEW and name in numbered and depth < DEPTH and _holds_others(path):
                waiting.append((path, depth + 1))
                continue
            if name in marked or names.likely(name) or (names.unfinished(name) and names.step(name) is not None):
                found.candidates.append(_candidate(path))
            elif depth < DEPTH:
                waiting.append((path, depth + 1))


def _singles(place: str, files: list[str]) -> list[Candidate]:
    """Files that are checkpoints by themselves, and sets of shards."""
    sets: dict[str, list[str]] = {}
    for name in files:
        if names.single(name):
            sets.setdefault(names.shard_set(name) or name, []).append(name)
    found = []
    for common, members in sets.items():
        if common in members and len(members) == 1:
            found.append(_candidate(os.path.join(place, common)))
        else:
            step = names.step(common)
            found.append(Candidate(os.path.join(place, common), step, members=tuple(sorted(members))))
    return found


def _holds_others(path: str) -> bool:
    """Whether a directory with a number for a name is one of a run or a trial, with checkpoints below it."""
    inner = _listing(path)
    if names.strong(inner):
        return False
    if any(names.sure(name) for name in inner):
        return True
    below = (_listing(os.path.join(path, name)) for name in sorted(inner)[:FEW])
    return any(not names.strong(entries) and any(map(names.likely, entries)) for entries in below)


def _listing(path: str) -> set[str]:
    try:
        return set(os.listdir(path))
    except OSError:
        return set()  # a file, or said when it is read


def _candidate(path: str, apart: bool = False) -> Candidate:
    name = os.path.basename(path)
    step = names.step(name)
    mtime = 0.0
    if step is None:
        try:
            mtime = os.stat(path).st_mtime
        except OSError:
            mtime = 0.0
    return Candidate(path, step, mtime, apart=apart)
