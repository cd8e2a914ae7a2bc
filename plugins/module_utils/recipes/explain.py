# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a recipe has a value: every source that wrote it, in order, what each did and what it replaced."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.recipes import criteria, merge
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.model import Catalog, Step
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import Recipe
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import COVERING, Write
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound, nearest

REGISTRY = "(registry)"
# how people shorten paths: component.version is the chart's
SHORT = {"version": ("chart", "version"), "repository": ("chart", "repository")}


def explain(catalog: Catalog, stated: dict[str, str], path: str) -> dict:
    """The value at a path such as `gpu-operator.values.driver.version`, `gpu-operator.version` or
    `constraints.K8s.server.version`, and its chain.

    Returns {path, present, value, chain}; each link has overlay, file, line, action (set, added, listed, deleted,
    removed), value, replaced where there was another value, path where it concerns a part, and includedBy for a
    mixin. Raises NotFound for a path that nothing writes.
    """
    query = criteria.query(catalog.dimensions, stated)
    events: list[tuple[Step | None, Write]] = []

    def note(step: Step, write: Write, tree: dict) -> None:
        name = write.path[1]
        events.append((step, write))
        if write.operation == "present" and name not in tree["components"]:
            # the registry's defaults come in when an overlay first lists the component
            events.extend((None, base) for base in catalog.components[name].writes)

    recipe = Recipe(catalog, query, trace=note)
    target = _target(path, [write.path for _step, write in events])
    chain = []
    state: dict = {"components": {}, "constraints": {}, "checks": {}}
    for step, write in events:
        # what the write concerns: the target, or a part of it
        place = write.path if write.path[: len(target)] == target else target
        before = _value(state, place)
        _do(state, write)
        if _touches(write, target, before[0]):
            chain.append(_link(step, write, place, target, before, _value(state, place)))
    present, value = _value(recipe.tree, target)
    if target[0] == "constraints" and isinstance(value, dict):
        value.pop("from", None)
    return {"path": merge.label(target), "present": present, "value": value, "chain": chain}


def _do(state: dict, write: Write) -> None:
    components = state["components"]
    if len(write.path) == 2 and write.path[0] == "components":
        if write.operation == "present":
            components.setdefault(write.path[1], {})
        else:
            components.pop(write.path[1], None)
    else:
        merge.apply(state, write)


def _touches(write: Write, target: tuple, present: bool) -> bool:
    if len(target) == 2 and target[0] == "components":
        return write.path == target  # who lists and who removes it, not all that is in it
    if write.operation in ("map", "keyed") and present:
        return False
    if write.path[: len(target)] == target:
        return True
    return write.operation in COVERING and target[: len(write.path)] == write.path and present


def _value(tree: dict, place: tuple) -> tuple[bool, object]:
    node: object = tree
    for key in place:
        if not isinstance(node, dict) or key not in node or node[key] is merge.DELETED:
            return False, None
        node = node[key]
    if len(place) == 2 and place[0] == "components":
        return True, None
    return True, merge.finish(node)


def _link(step: Step | None, write: Write, place: tuple, target: tuple, before: tuple, after: tuple) -> dict:
    link: dict = {"overlay": step.content.name if step else REGISTRY}
    if step and step.content is not step.overlay:
        link["includedBy"] = step.overlay.name
    link |= {"file": write.document.source, "line": write.document.line(write.at), "action": _action(write, before[0])}
    if place != target:
        link["path"] = merge.label(place)
    if after[0] and after[1] is not None:
        link["value"] = after[1]
    if before[0] and before != after and before[1] is not None:
        link["replaced"] = before[1]
    return link


def _action(write: Write, present: bool) -> str:
    if write.operation == "present":
        return "listed" if present else "added"
    names = {"null": "deleted", "remove": "removed", "edge": "added", "keyed": "added", "map": "added"}
    return names.get(write.operation, "set")


def _target(path: str, known: list[tuple]) -> tuple:
    """The tuple of a dotted path. Keys may hold dots, so known paths are compared as text."""
    prefixes = {each[:length] for each in known for length in range(2, len(each) + 1)}
    texts = {_text(each): each for each in sorted(prefixes, key=len, reverse=True)}
    wanted = re.sub(r"\[([^\]]+)\]", r".\1", path.strip())
    wanted = wanted.removeprefix("components.")
    if wanted in texts:
        return texts[wanted]
    head, _dot, tail = wanted.partition(".")
    if tail in SHORT and f"{head}.{'.'.join(SHORT[tail])}" in texts:
        return ("components", head, *SHORT[tail])
    hint = nearest(wanted, _neighbours(wanted, texts))
    raise NotFound(f"nothing in this recipe is called {path!r}", code="unknown-path", path="path", hint=hint)


def _neighbours(wanted: str, texts: dict[str, tuple]) -> list[str]:
    """What stands where the wanted path leaves the known ones."""
    above = max((text for text in texts if wanted.startswith(f"{text}.")), key=len, default="")
    parent = texts.get(above, ())
    depth = max(len(parent) + 1, 2)
    found = [text for text, path in texts.items() if len(path) == depth and path[: len(parent)] == parent]
    return [*found, f"{above}.version"] if f"{above}.chart.version" in texts else found


def _text(path: tuple) -> str:
    return ".".join(path[1:] if path[0] == "components" else path)
