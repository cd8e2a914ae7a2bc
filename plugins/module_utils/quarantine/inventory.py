# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a back-test: from whatever a user has at hand to node facts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.goodput.fleet.plugins.module_utils.records import snapshots, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem

TEXTS = {"*": str}
TAINT = {"key": str, "value": str, "effect": str}
NODE = {
    "metadata": {"name": str, "labels": TEXTS, "annotations": TEXTS},
    "spec": {"taints": [TAINT], "unschedulable": bool, "providerID": str},
    "status": {"conditions": [{"type": str, "status": str}], "nodeInfo": TEXTS},
}
FACTS = {
    "labels": TEXTS,
    "annotations": TEXTS,
    "taints": [TAINT],
    "conditions": {"*": Mapping},
    "gates": [(str, Mapping)],
    "external": [Mapping],
    "bootId": str,
}
WHAT = "a Snapshot, a list of Nodes as kubectl prints it, or a list of node names or facts"


def load(source: object, of_node: Callable[[Mapping], dict], name: str = "nodes") -> list[dict]:
    """Facts of every node. `of_node` makes them of a raw Node. Raises NotFound or InvalidDocument."""
    if isinstance(source, (str, os.PathLike)):
        name = str(source)
        source = _file(name)
    if isinstance(source, Mapping) and source.get("kind") == "Snapshot":
        document = snapshots.checked(yamltree.Document(dict(source), {}, name))
        found = [_of_snapshot(node) for node in document["spec"].get("nodes") or ()]
    elif isinstance(source, Mapping) and isinstance(source.get("items"), list):
        found = [_fact(node, of_node, f"{name}.items[{number}]") for number, node in enumerate(source["items"])]
    elif isinstance(source, Mapping) and source.get("kind") == "Node":
        found = [_fact(source, of_node, name)]
    elif isinstance(source, (list, tuple)):
        found = [_fact(node, of_node, f"{name}[{number}]") for number, node in enumerate(source)]
    else:
        raise InvalidDocument(f"{str(source)[:80]!r} is no inventory", path=name, hint=WHAT)
    return list({facts["name"]: facts for facts in found}.values())


def of_events(events: Iterable[Mapping]) -> list[dict]:
    """Where no inventory is known: the nodes that were heard of."""
    return [{"name": name} for name in sorted({event["spec"]["nodeName"] for event in events})]


def _file(path: str) -> object:
    try:
        with open(path, "rb") as stream:
            begin = stream.read(64).lstrip()
            if begin[:1] in (b"{", b"["):
                stream.seek(0)
                return json.loads(stream.read(snapshots.MAX_JSON_BYTES))
    except OSError as error:
        raise NotFound(f"cannot be read: {os.strerror(error.errno or 0)}", file=path) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InvalidDocument(Problem("malformed-json", f"malformed JSON: {error}", path, line)) from error
    return yamltree.load_file(path).data


def _fact(node: object, of_node: Callable[[Mapping], dict], where: str) -> dict:
    if isinstance(node, str) and node:
        return {"name": node}
    if isinstance(node, Mapping) and isinstance(node.get("metadata"), Mapping) and node["metadata"].get("name"):
        _check(node, NODE, where)
        return of_node(node)
    if isinstance(node, Mapping) and isinstance(node.get("name"), str):
        _check(node, FACTS, where)
        for number, gate in enumerate(node.get("gates") or ()):
            if isinstance(gate, Mapping) and not isinstance(gate.get("owner"), str):
                raise InvalidDocument("is missing", path=f"{where}.gates[{number}].owner", hint="who holds the gate")
        return dict(node)
    raise InvalidDocument("is no node", path=where, hint="a name, a Node, or facts with name and labels")


def _check(value: Any, shape: Any, where: str) -> None:
    """Raises InvalidDocument where a value is not of the shape; what is left out, or null, is."""
    if value is None:
        return
    kind = shape if isinstance(shape, (type, tuple)) else list if isinstance(shape, list) else Mapping
    if not isinstance(value, kind):
        words = {str: "a text", bool: "true or false", list: "a list", Mapping: "a map"}.get(kind, "a text or a map")
        raise InvalidDocument(f"{str(value)[:80]!r} does not belong here", path=where, hint=words)
    if isinstance(shape, list):
        for number, item in enumerate(value):
            _check("nothing" if item is None else item, shape[0], f"{where}[{number}]")
    elif isinstance(shape, Mapping):
        for key, part in shape.items():
            for name in value if key == "*" else (key,):
                _check(value.get(name), part, f"{where}.{name}")


def _of_snapshot(node: Mapping) -> dict:
    taints = []
    for text in node.get("taints", ()):
        key, _colon, effect = text.rpartition(":")
        key, _equals, value = key.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    return {
        "name": node["name"],
        "labels": node["labels"],
        "taints": taints,
        "unschedulable": node.get("unschedulable", False),
        "ready": {True: "True", False: "False"}.get(node.get("ready"), "Unknown"),
    }
