# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees made from git's object store alone.

No working tree is ever checked out: the site's .gitattributes, .gitignore, filters, links and odd names cannot touch
the published bytes, and everything outside the published directory is the very object it was.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.publish.gitcli import Git
from ansible_collections.goodput.fleet.plugins.module_utils.publish.source import MARKER
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, Problem

TREE = "040000"


@dataclass(frozen=True)
class Place:
    """The published directory in a commit, and the entries {name: (mode, type, id)} of each directory above it."""

    parents: list[dict[bytes, tuple[str, str, str]]]
    tree: str  # "" where the commit has no such directory


def store(git: Git, src: str, files: list[tuple[str, str]]) -> str:
    """The tree of the files, their bytes as they are. `files` are (name, mode) under `src`."""
    names = "".join(f"./{name}\n" for name, _mode in files).encode()
    blobs = git("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names, cwd=src).text.split()
    index = "".join(f"{mode} {blob}\t{name}\0" for (name, mode), blob in zip(files, blobs, strict=True)).encode()
    env = {"GIT_INDEX_FILE": os.path.join(git.folder, "goodput.index")}
    git("update-index", "-z", "--index-info", stdin=index, env=env)
    return git("write-tree", env=env).text.strip()


def empty(git: Git) -> str:
    """The tree without files."""
    return git("mktree", stdin=b"").text.strip()


def locate(git: Git, commit: str, parts: list[str]) -> Place:
    """Where the directory `parts` is in a commit ("" is no commit). Raises Conflict where a file is in the way."""
    parents, current = [], f"{commit}^{{tree}}" if commit else ""
    for depth, part in enumerate(parts):
        entries = _entries(git, current) if current else {}
        if depth and MARKER.encode() in entries:
            raise Conflict(
                f"{'/'.join(parts[:depth])} is a bundle itself: nothing else can be published inside",
                path="path",
                hint="choose a directory beside it",
                code="inside-bundle",
            )
        parents.append(entries)
        mode, kind, current = entries.get(part.encode(), (TREE, "tree", ""))
        if kind != "tree":
            what = {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, "a file")
            raise Conflict(
                f"{'/'.join(parts[: depth + 1])} is {what} in the repository, not a directory",
                path="path",
                hint="remove it there, or choose another path",
                code="in-the-way",
            )
    return Place(parents, current)


def _entries(git: Git, tree: str) -> dict[bytes, tuple[str, str, str]]:
    entries = {}
    for line in filter(None, git("ls-tree", "-z", tree).out.split(b"\0")):
        head, _tab, name = line.partition(b"\t")
        entries[name] = tuple(head.decode().split(" "))
    return entries


def graft(git: Git, place: Place, parts: list[str], tree: str) -> str:
    """The root tree of the commit with exactly `tree` at the directory, and nothing else changed."""
    for part, entries in zip(reversed(parts), reversed(place.parents), strict=True):
        lines = {**entries, part.encode(): (TREE, "tree", tree)}
        listing = b"".join(" ".join(entry).encode() + b"\t" + name + b"\0" for name, entry in lines.items())
        tree = git("mktree", "-z", "--missing", stdin=listing).text.strip()
    return tree


def changes(git: Git, old: str, new: str) -> dict[str, list[str]]:
    """Names {added, modified, removed} between two trees, sorted."""
    fields = git("diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new).fields
    found: dict[str, list[str]] = {"added": [], "modified": [], "removed": []}
    for status, name in zip(fields[::2], fields[1::2], strict=True):
        found[{"A": "added", "D": "removed"}.get(status, "modified")].append(name)
    return {word: sorted(names) for word, names in found.items()}


def check_removals(path: str, removed: list[str]) -> None:
    """Raises Conflict when other bundles, in directories below, would go."""
    nested = [os.path.dirname(name) for name in removed if name.endswith("/" + MARKER)]
    if nested:
        raise Conflict(
            [
                Problem(
                    "holds-bundle",
                    f"{path} holds another bundle, in {path}/{name}: it would be removed",
                    path="path",
                    hint="give each bundle a directory of its own, such as clusters/NAME",
                )
                for name in nested
            ]
        )


def unified(git: Git, path: str, old: str, new: str, limit: int) -> str:
    """Unified diff of two trees under `path`, cut after `limit` bytes at the end of a line."""
    plain = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
    prefixes = (f"--src-prefix=a/{path}/", f"--dst-prefix=b/{path}/")
    content, cut = git.first(limit, "diff-tree", "-r", "-p", *plain, *prefixes, old, new)
    text = content.decode("utf-8", "replace")
    if cut:
        text = text[: text.rfind("\n") + 1] + f"... the rest is not shown: more than {limit // 1024} KiB differ\n"
    return text
