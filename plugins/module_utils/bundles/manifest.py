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

from ansible_collections.goodput.fleet.plugins.module_utils.records import closedworld
from ansible_collections.goodput.fleet.plugins.module_utils.records.closedworld import Words
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem

LIST = "bundle.sha256"
SIGNATURE = "bundle.sha256.sig"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f\x7f\\]+)")
_RENDER = "render the bundle again with goodput.fleet.bundle"
_WORDS = Words(
    folder="bundle",
    changed="was changed after rendering",
    again=_RENDER,
    extra="remove it: a deployer would apply it",
    link="remove it and render again",
)


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
    return closedworld.unsafe(path, _WORDS.folder)


def verify(root: str) -> list[Problem]:
    """Every way in which the folder is not the bundle that was rendered; nothing when it is. Only reads."""
    if not os.path.isdir(root):
        return [Problem("no-bundle", "is not a folder", root, hint="name the folder that goodput.fleet.bundle wrote")]
    content = closedworld.read(os.path.join(root, LIST))
    if content is None:
        what = f"holds no {LIST}, so it is no bundle or one that was cut short"
        return [Problem("no-bundle", what, root, hint=_RENDER)]
    listed, problems = parse(content)
    problems += closedworld.compare(root, listed, (LIST, SIGNATURE), _WORDS)
    return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))
