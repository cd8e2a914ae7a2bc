# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a catalogue layer: only regular files below the layer, each read once, and one digest over all of them.

A layer is a directory with registry/, overlays/, values/ and manifests/. Nothing outside these four folders can reach
a recipe, so nothing outside counts in the digest.
"""

from __future__ import annotations

import hashlib
import os
import stat

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem

FOLDERS = ("registry", "overlays", "values", "manifests")


class Layer:
    """`files` maps each relative path to its text. `problems` holds what may not be in a layer."""

    def __init__(self, path: str):
        self.path = str(path)
        self.files: dict[str, str] = {}
        self.problems: list[Problem] = []
        if not os.path.isdir(self.path):
            raise NotFound(
                "is not a directory",
                file=self.path,
                hint="a catalogue layer is a directory with registry/ and overlays/",
            )
        for folder in FOLDERS:
            self._walk(folder)
        if not any(name.startswith(("registry/", "overlays/")) for name in self.files) and not self.problems:
            raise NotFound(
                "has no file in registry/ or overlays/",
                file=self.path,
                hint="a catalogue layer is a directory with registry/ and overlays/",
            )

    def full(self, name: str) -> str:
        """The path to show to people and to open."""
        return os.path.join(self.path, name)

    def documents(self, folder: str) -> list[str]:
        """Relative paths of the YAML files of a folder, in the order of their names."""
        return sorted(name for name in self.files if name.startswith(f"{folder}/") and name.endswith((".yaml", ".yml")))

    def _walk(self, folder: str) -> None:
        top = self.full(folder)
        if os.path.islink(top):
            self._refuse(folder, "is a symbolic link")
            return
        if not os.path.isdir(top):
            return
        with os.scandir(top) as entries:
            # dot files are an editor's or git's own
            found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
        for entry in found:
            name = f"{folder}/{entry.name}"
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                self._refuse(name, "is a symbolic link")
            elif stat.S_ISDIR(mode):
                self._walk(name)
            elif not stat.S_ISREG(mode):
                self._refuse(name, "is neither a file nor a directory")
            else:
                try:
                    self.files[name] = yamltree.read(self.full(name))
                except InvalidDocument as error:
                    self.problems += error.problems

    def _refuse(self, name: str, what: str) -> None:
        hint = "put the file itself into the layer, so that the layer is all there is to review"
        self.problems.append(Problem("not-a-file", what, self.full(name), hint=hint))


def digest(layers: list[Layer]) -> str:
    """sha256 over the layers in their order and every file's path and content."""
    total = hashlib.sha256()
    for layer in layers:
        total.update(b"layer\0")
        for name in sorted(layer.files):
            content = layer.files[name].encode()
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return "sha256:" + total.hexdigest()
