# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bundle as a closed world: `bundle.sha256` lists every other file, and nothing else may be there.

Its lines are what `sha256sum` writes, so `sha256sum -c bundle.sha256` finds changed files as well. File modes do
not count: git checkouts set their own.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem

LIST = "bundle.sha256"
SIGNATURE = "bundle.sha256.sig"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f\x7f\\]+)")
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)}
_RENDER = "render the bundle again with goodput.fleet.bundle"


def listing(files: dict[str, bytes]) -> bytes:
    """The content of bundle.sha256 for these files (path -> content)."""
    return "".join(f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files)).encode()


def parse(content: bytes) -> tuple[dict[str, str], list[Problem]]:
    """({path: sha256}, problems) of a bundle.sha256. Only exactly the form that `listing` writes is accepted."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {}, [Problem("bad-list", "is not UTF-8 text", LIST, hint=_RENDER)]
    problems, listed = [], {}
    lines = text.split("\n")
    if lines.pop():
        problems.append(Problem("bad-list", "the last line is cut off", LIST, len(lines) + 1, hint=_RENDER))
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        fault = "is not a line of sha256sum" if not found else unsafe(found[2])
        if not fault and found[2] in (LIST, SIGNATURE):
            fault = f"lists {found[2]}, which cannot list itself"
        if not fault and found[2] in listed:
            fault = f"lists {found[2]} a second time"
        if fault:
            problems.append(Problem("bad-list", f"the line {fault}", LIST, number, hint=_RENDER))
        else:
            listed[found[2]] = found[1]
    if not listed and not problems:
        problems.append(Problem("bad-list", "lists no file", LIST, 1, hint=_RENDER))
    return listed, problems


def unsafe(path: str) -> str:
    """Why the path must not be part of a bundle, or nothing."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        return f"leads out of the bundle: {path!r}"
    if "" in parts or "." in parts:
        return f"has an empty part: {path!r}"
    if any(part.lower() == ".git" for part in parts):
        return f"is in git's own folder: {path!r}"
    return ""


def verify(root: str) -> list[Problem]:
    """Every way in which the folder is not the bundle that was rendered; nothing when it is. Only reads."""
    if not os.path.isdir(root):
        return [Problem("no-bundle", "is not a folder", root, hint="name the folder that goodput.fleet.bundle wrote")]
    content = _read(os.path.join(root, LIST))
    if content is None:
        what = f"holds no {LIST}, so it is no bundle or one that was cut short"
        return [Problem("no-bundle", what, root, hint=_RENDER)]
    listed, problems = parse(content)
    seen: set[str] = set()
    there = entries(root, problems)
    full = {"/".join(path.split("/")[:depth]) for path in listed for depth in range(1, path.count("/") + 1)}
    full |= {path.rpartition("/")[0] for path, _mode in there}
    for path, mode in there:
        if path in (LIST, SIGNATURE):
            if not stat.S_ISREG(mode):
                problems.append(Problem("not-a-file", "is not a regular file", path, hint=_RENDER))
            continue
        if stat.S_ISDIR(mode):
            if path in listed:
                seen.add(path)
                problems.append(Problem("not-a-file", "is a folder, where a file is listed", path, hint=_RENDER))
            elif path not in full:
                problems.append(Problem("extra-folder", "is an empty folder", shown(path), hint="remove it"))
            continue
        problems += _judge(root, path, mode, listed)
        seen.add(path)
    missing = [path for path in listed if path not in seen]
    problems += [Problem("missing-file", "is listed and not there", path, hint=_RENDER) for path in missing]
    return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))


def _judge(root: str, path: str, mode: int, listed: dict[str, str]) -> Iterable[Problem]:
    if stat.S_ISLNK(mode):
        return [Problem("symlink", "is a symbolic link", shown(path), hint="remove it and render again")]
    if path not in listed:
        return [Problem("extra-file", "is not listed", shown(path), hint="remove it: a deployer would apply it")]
    if not stat.S_ISREG(mode):
        return [Problem("not-a-file", "is not a regular file", path, hint=_RENDER)]
    try:
        actual = _digest(os.path.join(root, path))
    except OSError as error:
        return [Problem("unreadable", f"cannot be read: {error.strerror}", path)]
    if actual != listed[path]:
        return [Problem("changed-file", "was changed after rendering", path, hint=_RENDER)]
    return []


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


def _read(path: str) -> bytes | None:
    """A regular file's content, or None. A link or a pipe is not read."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None


def _digest(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
