# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files to publish, and where they go: names that git or a deployer could be misled by are refused."""

from __future__ import annotations

import os
import re
import stat

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem

MARKER = "bundle.sha256"  # the integrity manifest at the top of every bundle
# forms of .git on file systems that fold case, drop trailing dots and blanks, or have short names
_GIT = re.compile(r"\.git[. ]*|git~\d", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read(src: str) -> list[tuple[str, str]]:
    """(name, mode) of every file under `src`, sorted; names use slashes, modes are git's 100644 and 100755.

    Raises NotFound, or InvalidDocument with every entry that cannot be published.
    """
    if not os.path.isdir(src):
        what = "is not a directory" if os.path.exists(src) else "does not exist"
        raise NotFound(f"{src} {what}", path="src", hint="render the bundle first, with goodput.fleet.bundle")
    found, problems = [], []

    def fail(error: OSError):
        raise NotFound(f"{error.filename} cannot be read: {error.strerror}", path="src")

    for folder, folders, files in os.walk(src, onerror=fail):
        folders.sort()
        for name in sorted([*folders, *files]):
            full = os.path.join(folder, name)
            shown = os.path.relpath(full, src)
            fault, mode = _fault(name), os.lstat(full).st_mode
            if not fault and stat.S_ISLNK(mode):
                fault = "is a symbolic link; publish the file itself"
            elif not fault and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                fault = "is neither a file nor a directory"
            if fault:
                problems.append(Problem("unsafe-file", f"{_printable(shown)} {fault}", path="src"))
            elif stat.S_ISREG(mode):
                # owner's x bit only: group, others and umask differ between machines
                found.append((shown, "100755" if mode & stat.S_IXUSR else "100644"))
        folders[:] = [name for name in folders if not _fault(name) and not os.path.islink(os.path.join(folder, name))]
    if problems:
        raise InvalidDocument(problems)
    if not found:
        raise InvalidDocument(f"{src} holds no file: publishing it would only delete", path="src", code="empty")
    return sorted(found)


def split(path: str) -> list[str]:
    """The parts of a directory's path in the repository. Raises InvalidDocument when it could lead elsewhere."""
    parts = path.rstrip("/").split("/")
    hint = "a directory below the repository's root, such as clusters/prod-1"
    fault = ""
    if path.startswith("/"):
        fault = "is absolute"
    elif not path or parts == ["."]:
        fault = "is the whole repository"
    elif ".." in parts:
        fault = "leads out of the repository"
    elif "" in parts or "." in parts:
        fault = "has an empty part"
    else:
        fault = next(filter(None, map(_fault, parts)), "")
    if fault:
        raise InvalidDocument(f"{_printable(path)!r} {fault}", path="path", hint=hint, code="unsafe-path")
    return parts


def _fault(name: str) -> str:
    """Why a file or directory must not have this name, or nothing."""
    if _GIT.fullmatch(name):
        return "is git's own name"
    if _CONTROL.search(name):
        return "has a control character in its name"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    return ""


def _printable(name: str) -> str:
    return _CONTROL.sub("?", name.encode("utf-8", "replace").decode())
