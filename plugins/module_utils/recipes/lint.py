# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole catalogue judged at once, not only what one query matches."""

from __future__ import annotations

import itertools
import json

from ansible_collections.goodput.fleet.plugins.module_utils.recipes import conflicts, resolve
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import read
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.model import Catalog, Overlay
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Problem


def lint_paths(paths: list[str]) -> tuple[Catalog, list[Problem]]:
    """Read and lint. What only a readable catalogue can show is left out where it cannot be read."""
    catalog, problems = read(paths)
    if not any(problem.severity == "error" for problem in problems):
        problems += lint(catalog)
    return catalog, problems


def lint(catalog: Catalog) -> list[Problem]:
    """Every problem of a catalogue that was read: errors, and warnings for what has no effect."""
    problems = [*_meetings(catalog), *_recipes(catalog), *_manifests(catalog), *_expressions(catalog)]
    problems += [*_dead_values(catalog), *_unused_files(catalog), *_unused_parts(catalog), *_redundant(catalog)]
    return sorted(dict.fromkeys(problems), key=lambda one: (one.file or "", one.line or 0, one.path, one.message))


def _meetings(catalog: Catalog) -> list[Problem]:
    """Conflicts that some query would meet: every two overlays that one query can match."""
    differences = conflicts.differences(catalog)
    problems = []
    for one, other in itertools.combinations_with_replacement(catalog.matchable, 2):
        if not conflicts.compatible(one, other):
            continue
        names = {step.content.name for step in one.steps} & differences.pairs.keys()
        if any(differences.pairs[name].keys() & {step.content.name for step in other.steps} for name in names):
            steps = [step for overlay in catalog.matching(one.items | other.items) for step in overlay.steps]
            problems += conflicts.unsettled(differences, steps)
    return problems


def _recipes(catalog: Catalog) -> list[Problem]:
    """Every declared recipe resolves to a good lock; without declared ones, every overlay that no other one extends."""
    problems = []
    for overlay in catalog.recipes or _leaves(catalog):
        try:
            lock = resolve.resolve(catalog, overlay.criteria)
        except FleetError as error:
            for problem in error.problems:
                if problem.file:
                    problems.append(problem)
                else:
                    text = f"does not resolve: {problem.message}"
                    problems.append(overlay.document.problem(("spec", "criteria"), problem.code, text, problem.hint))
            continue
        faults = lockfile.faults(yamltree.Document(json.loads(json.dumps(lock)), {}, "lock"))
        problems += [
            overlay.document.problem(
                ("metadata", "name"), fault.code, f"resolves to a bad lock: {fault.path}: {fault.message}", fault.hint
            )
            for fault in faults
        ]
    return problems


def _leaves(catalog: Catalog) -> list[Overlay]:
    return [
        one
        for one in catalog.matchable
        if one.items and not any(one.items < other.items for other in catalog.matchable)
    ]


def _manifests(catalog: Catalog) -> list[Problem]:
    """Manifests are Kubernetes objects."""
    problems = []
    for layer, used in zip(catalog.layers, catalog.used, strict=True):
        for name in sorted(used):
            if name.startswith("manifests/") and name in layer.files:
                problems += _objects(layer.files[name], layer.full(name))
    for holder in [*catalog.components.values(), *catalog.overlays.values()]:
        for write in holder.writes:
            if (
                write.operation == "replace"
                and write.path[2:3] == ("manifests",)
                and "file" not in _at(write.document.data, write.at)
            ):
                problems += [
                    write.problem(one.code, f"manifest {write.path[3]!r}: {one.message}", one.hint)
                    for one in _objects(write.value["content"], "content")
                ]
    return problems


def _at(data: object, path: tuple) -> dict:
    for key in path:
        data = data[key]
    return data


def _objects(text: str, source: str) -> list[Problem]:
    try:
        documents = yamltree.load_all_text(text, source)
    except FleetError as error:
        return error.problems
    if not documents:
        return [Problem("empty", "holds no Kubernetes object", source)]
    return [
        document.problem((), "not-an-object", f"a Kubernetes object has {key}")
        for document in documents
        for key in ("apiVersion", "kind", "metadata")
        if not isinstance(document.data, dict) or not document.data.get(key)
    ]


def _expressions(catalog: Catalog) -> list[Problem]:
    """Health checks are JMESPath."""
    import jmespath

    problems = []
    for holder in [*catalog.components.values(), *catalog.overlays.values()]:
        for write in holder.writes:
            if write.operation == "set" and write.path[2:4] == ("health", "checks") and write.path[-1] == "expression":
                try:
                    jmespath.compile(write.value)
                except jmespath.exceptions.JMESPathError as error:
                    text = " ".join(str(error).partition("\n")[0].split())
                    problems.append(write.problem("bad-expression", f"{write.value!r} is not JMESPath: {text}"))
    return problems


def _dead_values(catalog: Catalog) -> list[Problem]:
    """Criteria values that are declared and change nothing, so that asking for them is always refused."""
    carried = frozenset().union(*(overlay.items for overlay in catalog.matchable))
    problems = []
    for layer_document in catalog.registries:
        for name, stated in layer_document.data["spec"].get("criteria", {}).items():
            for index, value in enumerate(stated["values"]):
                if value != "any" and (name, value) not in carried:
                    problems.append(
                        layer_document.problem(
                            ("spec", "criteria", name, "values", index),
                            "dead-value",
                            f"{name} {value} is carried by no overlay",
                            "write an overlay for it or take the value away",
                            "warning",
                        )
                    )
    return problems


def _unused_files(catalog: Catalog) -> list[Problem]:
    return [
        Problem("unused-file", "is named by no registry entry or overlay", layer.full(name), severity="warning")
        for layer, used in zip(catalog.layers, catalog.used, strict=True)
        for name in sorted(layer.files)
        if name.startswith(("values/", "manifests/")) and name not in used
    ]


def _unused_parts(catalog: Catalog) -> list[Problem]:
    listed = {
        write.path[1] for one in catalog.overlays.values() for write in one.writes if write.operation == "present"
    }
    problems = [
        component.document.problem(
            (*component.at, "name"), "unused-component", f"component {name} is listed by no overlay", severity="warning"
        )
        for name, component in catalog.components.items()
        if name not in listed
    ]
    included = {name for one in catalog.overlays.values() for name in one.include}
    problems += [
        one.document.problem(
            ("metadata", "name"), "unused-mixin", f"mixin {one.name} is included nowhere", severity="warning"
        )
        for one in catalog.overlays.values()
        if one.mixin and one.name not in included
    ]
    return problems


def _redundant(catalog: Catalog) -> list[Problem]:
    """A mixin that a less specific overlay applies already would be applied a second time, over what stands between."""
    problems = []
    for one in catalog.matchable:
        for index, name in enumerate(one.include):
            for other in catalog.matchable:
                if other.items < one.items and any(step.content.name == name for step in other.steps):
                    text = f"{other.name}, which always applies before, has applied {name} already"
                    problems.append(
                        one.document.problem(
                            ("spec", "include", index), "redundant-include", text, "leave it out here", "warning"
                        )
                    )
                    break
    return problems
