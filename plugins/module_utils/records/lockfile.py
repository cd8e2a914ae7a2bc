# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a RecipeLock that nobody tampered with: all that follows (bundle, drift, install) trusts the result."""

from __future__ import annotations

import os
from collections import Counter

from ansible_collections.goodput.fleet.plugins.module_utils.records import (
    constraints,
    digest,
    graph,
    quickcheck,
    yamltree,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    InvalidDocument,
    Problem,
    nearest,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import recipelock

RESOLVE = "resolve it again with goodput.fleet.recipe instead of editing it"


def load_lock(source: str | os.PathLike | dict) -> dict:
    """The RecipeLock document of a file, or given as data. Raises NotFound, or InvalidDocument with every fault."""
    document = read(source, "lock")
    problems = faults(document)
    if problems:
        raise InvalidDocument(problems)
    return document.data


def read(source: str | os.PathLike | dict, what: str) -> yamltree.Document:
    """The document of a file, or data as one. Raises NotFound, or InvalidDocument for anything else."""
    if isinstance(source, dict):
        return yamltree.Document(source, {}, what)
    if isinstance(source, (str, os.PathLike)):
        return yamltree.load_file(os.fspath(source))
    raise InvalidDocument(f"must be the path of a file or a map, not {source!r}", code="wrong-type", path=what)


def faults(document: yamltree.Document) -> list[Problem]:
    """Every fault of a RecipeLock: its schema, its digests, its names, its graph and its order."""
    problems = quickcheck.validate(document, "RecipeLock", recipelock.SCHEMA)
    data = document.data
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind != "RecipeLock":
        what = f"a {kind} is not a lock" if kind else "this is not a lock"
        hint = "resolve criteria with goodput.fleet.recipe and give the lock file that it writes"
        return [document.problem(("kind",), "not-a-lock", what, hint)]
    spec = data.get("spec")
    if not isinstance(spec, dict):
        return problems
    reader = _Reader(document, spec)
    return problems + reader.digests() + reader.names() + reader.graph() + reader.constraints()


class _Reader:
    """The rules between the fields. Each is judged even where others, or the schema, are broken."""

    def __init__(self, document: yamltree.Document, spec: dict):
        self.problem = document.problem
        self.metadata = document.data.get("metadata") if isinstance(document.data.get("metadata"), dict) else {}
        self.spec = spec
        listed = spec.get("components")
        self.components = [
            (index, component)
            for index, component in enumerate(listed if isinstance(listed, list) else [])
            if isinstance(component, dict) and isinstance(component.get("name"), str)
        ]

    def digests(self) -> list[Problem]:
        problems = []

        def check(path: tuple, stated: object, content: object, what: str) -> None:
            actual = digest.sha256_bytes(content.encode()) if isinstance(content, str) else digest.sha256(content)
            if isinstance(stated, str) and stated != actual:
                problems.append(self.problem(path, "digest-mismatch", f"the digest is not that of {what}", RESOLVE))

        check(("metadata", "digest"), self.metadata.get("digest"), self.spec, "the spec: the lock was changed by hand")
        for index, component in self.components:
            path = ("spec", "components", index)
            if "values" in component:
                check(
                    (*path, "valuesDigest"),
                    component.get("valuesDigest"),
                    component["values"],
                    f"the values of {component['name']}",
                )
            for number, manifest in _numbered(component.get("manifests")):
                if isinstance(manifest.get("content"), str):
                    check(
                        (*path, "manifests", number, "digest"),
                        manifest.get("digest"),
                        manifest["content"],
                        f"manifest {manifest.get('name')!r}",
                    )
        return problems

    def names(self) -> list[Problem]:
        problems = self._once("component", [((index, "name"), one["name"]) for index, one in self.components])
        first = {one["name"]: (index, one) for index, one in reversed(self.components)}.values()
        problems += self._once(
            "release",
            [
                ((index, "release"), f"{one.get('namespace')}/{one['release']}")
                for index, one in sorted(first, key=lambda pair: pair[0])
                if one.get("chart") and one.get("release")
            ],
        )
        for index, one in self.components:
            named = [
                ((index, "manifests", number, "name"), item.get("name"))
                for number, item in _numbered(one.get("manifests"))
            ]
            problems += self._once(f"manifest of {one['name']}", named)
            if not one.get("chart") and not one.get("manifests"):
                what = f"{one['name']} has neither a chart nor manifests"
                problems.append(self.problem(("spec", "components", index), "nothing-to-install", what, RESOLVE))
        for key in ("constraints", "checks"):
            named = [((number, "name"), item.get("name")) for number, item in _numbered(self.spec.get(key))]
            problems += self._once(key[:-1], named, key)
        criteria = self.spec.get("criteria")
        right = "-".join(map(str, criteria.values())) if isinstance(criteria, dict) else None
        if right is not None and self.metadata.get("name", right) != right:
            problems.append(
                self.problem(("metadata", "name"), "wrong-name", "the name is not that of the criteria", right)
            )
        return problems

    def _once(self, what: str, named: list[tuple], key: str = "components") -> list[Problem]:
        """One problem for each name that comes again; `named` pairs a place below spec[key] with a name."""
        seen: set = set()
        problems = []
        for place, name in named:
            if name in seen:
                problems.append(
                    self.problem(("spec", key, *place), "duplicate-name", f"{what} {name!r} is there twice", RESOLVE)
                )
            if isinstance(name, str):
                seen.add(name)
        return problems

    def graph(self) -> list[Problem]:
        problems = []
        index_of = {component["name"]: index for index, component in reversed(self.components)}
        edges = {
            component["name"]: [one for one in _items(component.get("dependsOn")) if isinstance(one, str)]
            for _index, component in self.components
        }
        for name, before in edges.items():
            path = ("spec", "components", index_of[name], "dependsOn")
            for ghost in sorted(set(before) - edges.keys()):
                problems.append(
                    self.problem(
                        path,
                        "unknown-dependency",
                        f"{name} depends on {ghost!r}, which is not in the lock",
                        nearest(ghost, edges),
                    )
                )
        ring = graph.cycle(edges)
        if ring:
            path = ("spec", "components", index_of[ring[0]], "dependsOn")
            return [
                *problems,
                self.problem(path, "cycle", "the dependencies form a cycle: " + " -> ".join(ring), RESOLVE),
            ]
        level = graph.tiers(edges)
        for index, component in self.components:
            if isinstance(component.get("tier"), int) and component["tier"] != level[component["name"]]:
                problems.append(
                    self.problem(
                        ("spec", "components", index, "tier"),
                        "wrong-tier",
                        f"{component['name']} is in tier {level[component['name']]} by its dependencies",
                        RESOLVE,
                    )
                )
        return problems + self._order(edges)

    def _order(self, edges: dict) -> list[Problem]:
        order = [name for name in _items(self.spec.get("order")) if isinstance(name, str)]
        path = ("spec", "order")
        problems = [
            self.problem(path, "wrong-order", f"{name} is missing from the order", RESOLVE)
            for name in sorted(edges.keys() - set(order))
        ]
        problems += [
            self.problem(path, "wrong-order", f"{name!r} stands in the order but is no component", nearest(name, edges))
            for name in sorted(set(order) - edges.keys())
        ]
        problems += [
            self.problem(path, "wrong-order", f"{name} stands twice in the order", RESOLVE)
            for name, times in sorted(Counter(order).items())
            if times > 1
        ]
        place = {name: position for position, name in enumerate(order)}
        problems += [
            self.problem(
                (*path, place[name]), "wrong-order", f"{name} comes before {needed}, which it depends on", RESOLVE
            )
            for name, before in edges.items()
            for needed in sorted(set(before))
            if name in place and place.get(needed, -1) > place[name]
        ]
        return problems

    def constraints(self) -> list[Problem]:
        problems = []
        for index, constraint in _numbered(self.spec.get("constraints")):
            name, value = constraint.get("name"), constraint.get("value")
            wrong = constraints.fault(name, value) if name in constraints.FACTS and isinstance(value, str) else ""
            if wrong:
                problems.append(self.problem(("spec", "constraints", index, "value"), "bad-constraint", wrong, RESOLVE))
        return problems


def _items(value: object) -> list:
    return value if isinstance(value, list) else []


def _numbered(value: object) -> list[tuple[int, dict]]:
    return list(enumerate(_maps(value)))


def _maps(value: object) -> list[dict]:
    return [item if isinstance(item, dict) else {} for item in _items(value)]
