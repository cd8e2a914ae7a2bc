# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying writes to a tree of plain maps: maps merge, lists and scalars replace, null deletes, clashes are problems.

null takes away what a less specific source set. Where nothing was set it stays in the result as null, which is how Helm
is told to drop a chart's own default. A map and a scalar or list at the same path clash: the more specific source would
silently lose the whole map, so it must delete the map first (null, in a less specific overlay or a mixin).
"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import Flattener, Write
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.yamltree import Document, dotted


class Keyed(dict):
    """A list whose items merge: item key -> item."""


class _Deleted:
    """Stands where a value was deleted, so that a second null knows it."""

    def __repr__(self) -> str:
        return "DELETED"


DELETED = _Deleted()


def apply(tree: dict, write: Write) -> Problem | None:
    """Do one write in place. Values are shared with the write, never changed. Returns what is wrong, if anything."""
    path, operation = write.path, write.operation
    node = tree
    for depth, key in enumerate(path[:-1]):
        child = node.get(key)
        if isinstance(child, dict):
            node = child
        elif child is None or child is DELETED:
            if operation in ("remove", "null"):
                break
            node.pop(key, None)
            node[key] = node = {}
        else:
            return _clash(write, path[: depth + 1], child, "a map")
    else:
        return _leaf(node, path[-1], write)
    if operation == "remove":
        return write.problem("nothing-to-remove", f"{label(path)} is not there to be removed")
    # null below what is not there: keep the maps that Helm needs to see it
    return _force_null(tree, write)


def _leaf(node: dict, key: str, write: Write) -> Problem | None:
    operation = write.operation
    present = key in node
    current = node.get(key)
    if operation == "set":
        if isinstance(current, dict):
            return _clash(write, write.path, current, "a list" if isinstance(write.value, list) else "a scalar")
        if current is DELETED:
            del node[key]
        node[key] = write.value
    elif operation in ("map", "keyed"):
        if current is None or current is DELETED:
            node.pop(key, None)
            node[key] = Keyed() if operation == "keyed" else {}
        elif not isinstance(current, dict):
            return _clash(write, write.path, current, "a map" if operation == "map" else "a list of items that merge")
    elif operation == "null":
        node[key] = None if not present or current is None else DELETED
    elif operation == "remove":
        if not present:
            return write.problem("nothing-to-remove", f"{label(write.path)} is not there to be removed")
        node[key] = DELETED
    elif operation in ("replace", "edge"):
        if current is DELETED:
            del node[key]
        node[key] = write.value
    return None


def _force_null(tree: dict, write: Write) -> None:
    node = tree
    for key in write.path[:-1]:
        child = node.get(key)
        if not isinstance(child, dict):
            node.pop(key, None)
            child = node[key] = {}
        node = child
    node[write.path[-1]] = None


def _clash(write: Write, path: tuple, current: object, new: str) -> Problem:
    old = (
        "a list of items that merge"
        if isinstance(current, Keyed)
        else "a map"
        if isinstance(current, dict)
        else "a list"
        if isinstance(current, list)
        else f"the value {current!r}"
    )
    hint = "delete it first with null in a less specific overlay or a mixin, or keep its type"
    above = len(write.path) - len(path)
    at = write.at[: len(write.at) - above]  # the field that clashes, not the leaf below it
    return write.document.problem(at, "type-clash", f"{label(path)} is {old} already and cannot become {new}", hint)


def label(path: tuple) -> str:
    """("components", "gpu-operator", "values", "driver") as "gpu-operator.values.driver"."""
    return dotted(path[1:] if path[0] == "components" else path)


def branch(node: dict) -> dict:
    """A copy of the maps of a tree. Scalars and lists are shared, for they are never changed in place."""
    copy = node.__class__()
    for key, value in node.items():
        copy[key] = branch(value) if isinstance(value, dict) else value
    return copy


def finish(value: object) -> object:
    """Plain data that shares nothing with its sources: deleted things gone, keyed lists as lists."""
    if isinstance(value, dict):
        if isinstance(value, Keyed):
            return [finish(item) for item in value.values() if item is not DELETED]
        return {
            key: finish(item) if isinstance(item, (dict, list)) else item
            for key, item in value.items()
            if item is not DELETED
        }
    if isinstance(value, list):
        return [finish(item) if isinstance(item, (dict, list)) else item for item in value]
    return value


def merge(*sources: dict, keys: dict[tuple, tuple] | None = None) -> dict:
    """Merge Helm values, later ones over earlier ones. Raises InvalidDocument with every clash."""
    tree: dict = {}
    problems: list[Problem] = []
    for source in sources:
        flat = Flattener(Document(source, {}, "values"))
        flat.values(source, ("values",), (), keys or {})
        problems += flat.problems + [problem for write in flat.writes if (problem := apply(tree, write))]
    if problems:
        raise InvalidDocument(dict.fromkeys(problems))
    return finish(tree.get("values", {}))
