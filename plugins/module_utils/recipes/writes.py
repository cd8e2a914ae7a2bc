# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One way to say what a registry entry or an overlay sets: a list of writes, each with its path, value and origin.

The same writes are applied to build a recipe, compared to find conflicts, and walked to explain a value.

Paths start with "components", "constraints" or "checks", then the name. Operations:
  present  a component is listed              remove   a named thing is taken away
  set      a scalar or list                   null     a value is deleted
  map      a map is there, perhaps empty      keyed    a list whose items merge by a key
  replace  a manifest or check as a whole     edge     a dependency, which unites with others
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.yamltree import Document

# what replaces or removes everything below its path
COVERING = ("set", "null", "remove", "replace")
HEALTH_KEYS = {("workloads",): ("kind", "name"), ("checks",): ("name",)}
PATCH = "$patch"


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """`at` is where in `document` the write is stated."""

    path: tuple
    operation: str
    value: object
    document: Document
    at: tuple

    def same(self, other: Write) -> bool:
        """Do both do the same? 1, 1.0 and true are three values."""
        return self.operation == other.operation and (
            self.value is other.value or digest.canonical(self.value) == digest.canonical(other.value)
        )

    def problem(self, code: str, message: str, hint: str = "") -> Problem:
        return self.document.problem(self.at, code, message, hint)

    @property
    def place(self) -> str:
        """file:line"""
        return f"{self.document.source}:{self.document.line(self.at)}"


class Flattener:
    """Turns the maps of one document into writes; collects the problems of what cannot be one."""

    def __init__(self, document: Document):
        self.document = document
        self.writes: list[Write] = []
        self.problems: list[Problem] = []

    def add(self, path: tuple, operation: str, value: object, at: tuple) -> None:
        self.writes.append(Write(path, operation, value, self.document, at))

    def values(self, data: dict, path: tuple, at: tuple, keys: dict[tuple, tuple]) -> None:
        """Helm values: null reaches Helm where there is nothing to delete; items leave a list by `$patch: delete`."""
        self._tree(data, path, at, keys, "null", ())

    def fields(self, data: dict, path: tuple, at: tuple, keys: dict[tuple, tuple] | None = None) -> None:
        """A recipe's own maps: null removes a key, and items leave a list by `remove: true`."""
        self._tree(data, path, at, keys or {}, "remove", ())

    def _tree(self, data: dict, path: tuple, at: tuple, keys: dict[tuple, tuple], null: str, inner: tuple) -> None:
        if not data:
            self.add(path, "map", None, at)
        for key, value in data.items():
            target, source, place = (*path, key), (*at, key), (*inner, key)
            if isinstance(value, dict):
                self._tree(value, target, source, keys, null, place)
            elif value is None:
                self.add(target, null, None, source)
            elif isinstance(value, list) and place in keys:
                self._items(value, target, source, keys[place], null)
            else:
                self.add(target, "set", value, source)

    def _items(self, items: list, path: tuple, at: tuple, keys: tuple, null: str) -> None:
        self.add(path, "keyed", None, at)
        seen: dict[str, int] = {}
        for index, item in enumerate(items):
            source = (*at, index)
            if not isinstance(item, dict) or not all(isinstance(item.get(key), (str, int)) for key in keys):
                message = f"items of this list merge by {' and '.join(keys)}, and this one has none"
                self.problems.append(self.document.problem(source, "no-merge-key", message))
                continue
            name = "/".join(str(item[key]) for key in keys)
            if name in seen:
                hint = f"first on line {self.document.line((*at, seen[name]))}"
                self.problems.append(
                    self.document.problem(source, "duplicate-name", f"item {name!r} is there twice", hint)
                )
                continue
            seen[name] = index
            target = (*path, name)
            mark, wanted = ("remove", True) if null == "remove" else (PATCH, "delete")
            if item.get(mark) == wanted:
                self.add(target, "remove", None, source)
            elif mark in item:
                message = f"{mark} may only be {str(wanted).lower()}"
                self.problems.append(self.document.problem((*source, mark), "bad-value", message))
            else:
                self._tree(item, target, source, {}, null, ())
