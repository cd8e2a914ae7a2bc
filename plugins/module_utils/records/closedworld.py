# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder as a closed world: a list has the sha256 of every file, and nothing else may be there. Only reads.

File modes do not count: git checkouts set their own.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)}


@dataclass(frozen=True)
class Words:
    """What a folder is called, and what to do about a file that is not as listed."""

    folder: str
    changed: str
    again: str
    extra: str
    link: str


def compare(root: str, listed: Mapping[str, str], aside: Container[str], words: Words) -> list[Problem]:
    """Every way in which the folder is not what is listed, {path: sha256 in hex}; `aside` are the list's own files."""
    problems: list[Problem] = []
    seen: set[str] = set()
    there = entries(root, problems)
    full = {"/".join(path.split("/")[:depth]) for path in listed for depth in range(1, path.count("/") + 1)}
    full |= {path.rpartition("/")[0] for path, _mode in there}
    for path, mode in there:
        if path in aside:
            if not stat.S_ISREG(mode):
                problems.append(Problem("not-a-file", "is not a regular file", path, hint=words.again))
            continue
        if stat.S_ISDIR(mode):
            if path in listed:
                seen.add(path)
                problems.append(Problem("not-a-file", "is a folder, where a file is listed", path, hint=words.again))
            elif path not in full:
                problems.append(Problem("extra-folder", "is an empty folder", shown(path), hint="remove it"))
            continue
        problems += _judge(root, path, mode, listed, words)
        seen.add(path)
    missing = [path for path in listed if path not in seen]
    return problems + [Problem("missing-file", "is listed and not there", path, hint=words.again) for path in missing]


def _judge(root: str, path: str, mode: int, listed: Mapping[str, str], words: Words) -> Iterable[Problem]:
    if stat.S_ISLNK(mode):
        return [Problem("symlink", "is a symbolic link", shown(path), hint=words.link)]
    if path not in listed:
        return [Problem("extra-file", "is not listed", shown(path), hint=words.extra)]
    if not stat.S_ISREG(mode):
        return [Problem("not-a-file", "is not a regular file", path, hint=words.again)]
    try:
        actual = digest(os.path.join(root, path))
    except OSError as error:
        return [Problem("unreadable", f"cannot be read: {error.strerror}", path)]
    if actual != listed[path]:
        return [Problem("changed-file", words.changed, path, hint=words.again)]
    return []


def unsafe(path: str, folder: str) -> str:
    """Why the path must not be part of such a folder, or nothing."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        return f"leads out of the {folder}: {path!r}"
    if "" in parts or "." in parts:
        return f"has an empty part: {path!r}"
    if any(part.lower() == ".git" for part in parts):
        return f"is in git's own folder: {path!r}"
    return ""


def entries(root: str, problems: list[Problem] | None = None) -> list[tuple[str, int]]:
    """(path, mode) of everything below the root, sorted, links not followed. What cannot be listed is a problem."""

    def failed(error: OSError) -> None:
        if problems is None:
            raise error
        path = shown(os.path.relpath(error.filename, root))
        problems.append(Problem("unreadable", f"cannot be listed: {error.strerror}", path))

    found = []
    for folder, folders, names in os.walk(root, onerror=failed):
        for name in [*folders, *names]:
            full = os.path.join(folder, name)
            found.append((os.path.relpath(full, root), os.lstat(full).st_mode))
    return sorted(found)


def shown(path: str) -> str:
    """A path that came from the disk, in a form that JSON and terminals can carry."""
    return path.encode("utf-8", "backslashreplace").decode().translate(_CONTROL)


def read(path: str) -> bytes | None:
    """A regular file's content, or None. A link or a pipe is not read."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None


def digest(path: str) -> str:
    """The file's sha256 in hex."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
