# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of one checkpoint: names, sizes and times, and ranges of bytes of them.

Links are followed only as far as they stay below the directory that was asked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Unclear

MOST_FILES = 200_000


@dataclass(frozen=True)
class File:
    path: str  # where it really is
    size: int  # bytes
    mtime: float  # seconds since 1970


@dataclass
class Tree:
    """All files below `root`, by their path relative to it. `unseen` are names that could not be looked at, and why."""

    root: str
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    unseen: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return os.path.basename(self.root)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def newest(self) -> float | None:
        """When its newest file was written."""
        return max((file.mtime for file in self.files.values()), default=None)

    def open(self, name: str) -> BinaryIO:
        """The file, to read. Raises `OSError`, or `Unclear` when it is no regular file."""
        return open_regular(self.files[name].path)

    def read(self, name: str, most: int) -> bytes:
        """The whole file. Raises `Unclear` when it has more than `most` bytes."""
        if self.files[name].size > most:
            raise Unclear(f"has {self.files[name].size} bytes, more than are read of such a file ({most})")
        with self.open(name) as file:
            return file.read(most)

    def below(self, folder: str) -> Iterator[str]:
        """Names of the files in `folder` and below, all for an empty one."""
        return (name for name in self.files if not folder or name.startswith(folder + "/"))


def open_regular(path: str) -> BinaryIO:
    """Opens without following a link put in the file's place, and without waiting for a pipe's other end."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unclear("is not a regular file")
    return os.fdopen(handle, "rb", buffering=0)


def inside(path: str, root: str) -> bool:
    """Whether the real `path` is `root` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def read(path: str, within: str, skip: Callable[[str], bool] | None = None) -> Tree:
    """The tree below `path`; `within` is the real path that links may not leave. A file is a tree of its own.

    Directories right below `path` whose names `skip` are left out.
    """
    tree = Tree(path)
    if os.path.isfile(path):
        name = os.path.basename(path)
        _file(tree, name, path, within)
        return tree
    real = os.path.realpath(path)
    waiting = [("", real)]
    seen = {real}
    while waiting:
        folder, place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if len(tree.files) + len(tree.folders) + len(tree.unseen) >= MOST_FILES:
                        tree.unseen[""] = f"has more than {MOST_FILES} files"
                        return tree
                    if not folder and skip and skip(name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        tree.folders.add(name)
                        waiting.append((name, os.path.join(place, entry.name)))
                    else:
                        below = _file(tree, name, os.path.join(place, entry.name), within)
                        if below and below not in seen:
                            seen.add(below)
                            tree.folders.add(name)
                            waiting.append((name, below))
        except OSError as error:
            tree.unseen[folder or "."] = f"cannot be read: {error.strerror or error}"
    return tree


def _file(tree: Tree, name: str, path: str, within: str) -> str | None:
    """Notes the file; gives the real path when it is a link to a directory."""
    try:
        real = path
        if os.path.islink(path):
            real = os.path.realpath(path)
            if not inside(real, within):
                tree.unseen[name] = "is a link that leads out of the directory asked for, not followed"
                return None
        found = os.stat(real)
    except FileNotFoundError:
        tree.unseen[name] = "is a link to nothing" if os.path.islink(path) else "went while it was looked at"
        return None
    except (OSError, ValueError) as error:
        tree.unseen[name] = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        return None
    if stat.S_ISDIR(found.st_mode):
        return real
    if stat.S_ISREG(found.st_mode):
        tree.files[name] = File(real, found.st_size, found.st_mtime)
    return None
