# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria to a RecipeLock: match, check coverage, apply in the set order, close the graph, digest."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.recipes import conflicts, criteria, merge
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.model import Catalog, Step
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.version import VERSION
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import Write
from ansible_collections.goodput.fleet.plugins.module_utils.records import constraints, digest, graph
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, InvalidDocument, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.schema import API_VERSION


def resolve(catalog: Catalog, stated: dict[str, str]) -> dict:
    """The RecipeLock of these criteria: same inputs, same document. It shares nothing with the catalogue.

    Raises InvalidDocument (unknown criteria, or a recipe that does not hold together), NotCovered, or Conflict.
    """
    query = criteria.query(catalog.dimensions, stated)
    return lock(catalog, query, Recipe(catalog, query))


class Recipe:
    """The overlays of a query applied. `tree` is the merged state; `steps` what made it, in order."""

    def __init__(self, catalog: Catalog, query: dict[str, str], trace=None):
        """`trace(step, write, tree)` is called before each write; explain listens there."""
        self.catalog = catalog
        self.tree: dict = {"components": {}, "constraints": {}, "checks": {}}
        self.problems: list[Problem] = []
        self.removed: dict[str, Write] = {}
        self._limits: dict[str, list[tuple[Step, str, str, Write]]] = {}
        matched = catalog.matching(frozenset(query.items()))
        criteria.check_coverage(catalog.matchable, query, matched)
        self.steps = [step for overlay in matched for step in overlay.steps]
        clashing = conflicts.unsettled(conflicts.differences(catalog), self.steps)
        if clashing:
            raise Conflict(clashing)
        for step in self.steps:
            for write in step.content.writes:
                if trace:
                    trace(step, write, self.tree)
                self._apply(step, write)
            for kind, name in step.content.stated:
                self.tree[kind][name]["from"] = step.content.name

    def _apply(self, step: Step, write: Write) -> None:
        path = write.path
        if len(path) == 2 and path[0] == "components":
            self._component(path[1], write)
            return
        if path[0] == "constraints":
            self._limit(step, write)
        elif path[0] == "checks" and write.operation == "replace":
            # a copy, for "from" is added to it
            self.tree["checks"][path[1]] = dict(write.value)
            return
        wrong = merge.apply(self.tree, write)
        if wrong:
            self.problems.append(wrong)

    def _component(self, name: str, write: Write) -> None:
        components = self.tree["components"]
        if write.operation == "present":
            if name not in components:
                components[name] = merge.branch(self.catalog.components[name].tree)
                self.removed.pop(name, None)
        elif name in components:
            del components[name]
            self.removed[name] = write
        elif name not in self.removed:
            hint = "no less specific overlay of these criteria adds it"
            self.problems.append(
                write.problem("nothing-to-remove", f"component {name} is not there to be removed", hint)
            )

    def _limit(self, step: Step, write: Write) -> None:
        """A constraint may only be tightened, unless the overlay says that it loosens it."""
        name, key = write.path[1], write.path[-1]
        if write.operation == "remove":
            self._limits.pop(name, None)
            return
        if key == "remediation":
            return
        limits = self._limits.setdefault(name, [])
        if name not in step.content.loosened:
            for other, other_key, value, other_write in limits:
                if other_key == key and step.outranks(other) and not _tighter(name, key, write.value, value):
                    source = f"{other.content.name} sets ({other_write.place})"
                    message = f"{name} {write.value!r} is looser than {value!r}, which {source}"
                    hint = "tighten it, or state loosen: true with a reason"
                    self.problems.append(write.problem("loosened", message, hint))
        # what this one outranks is replaced by it
        limits[:] = [one for one in limits if one[1] != key or not step.outranks(one[0])]
        limits.append((step, key, write.value, write))


def _tighter(name: str, key: str, child: str, parent: str) -> bool:
    if key == "severity":
        return child == parent or child == "error"
    return constraints.tighter(name, child, parent)


def lock(catalog: Catalog, query: dict[str, str], recipe: Recipe) -> dict:
    """The document of a recipe. Raises InvalidDocument with everything that does not hold together."""
    problems = list(recipe.problems)
    components = recipe.tree["components"]
    edges = _edges(recipe, problems)
    ring = graph.cycle(edges)
    if ring:
        entry = catalog.components[ring[0]]
        problems.append(entry.problem("cycle", "the dependencies form a cycle: " + " -> ".join(ring)))
    levels = {} if ring else graph.tiers(edges)
    order = sorted(levels, key=lambda name: (levels[name], name))
    entries = [_component(catalog, name, components[name], levels[name], edges[name], problems) for name in order]
    problems += _releases(catalog, entries)
    if problems:
        raise InvalidDocument(dict.fromkeys(problems))
    if not entries:
        raise InvalidDocument("these criteria give a recipe without components", code="empty-recipe", path="criteria")
    spec = {
        "criteria": dict(query),
        "catalog": {"digest": catalog.digest, "version": VERSION},
        "overlays": [_applied(step) for step in recipe.steps],
        "components": entries,
        "constraints": [_constraint(name, item) for name, item in _there(recipe.tree["constraints"])],
        "checks": [{"name": name, **merge.finish(item)} for name, item in _there(recipe.tree["checks"])],
        "order": order,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "RecipeLock",
        "metadata": {"name": "-".join(query.values()), "digest": digest.sha256(spec)},
        "spec": spec,
    }


def _there(items: dict) -> list[tuple[str, dict]]:
    return sorted((name, item) for name, item in items.items() if item is not merge.DELETED)


def _applied(step: Step) -> dict:
    entry = {"name": step.content.name, "criteria": dict(step.content.criteria)}
    return entry if step.content is step.overlay else {**entry, "includedBy": step.overlay.name}


def _constraint(name: str, item: dict) -> dict:
    extra = {"remediation": item["remediation"]} if "remediation" in item else {}
    return {
        "name": name,
        "value": item["value"],
        "severity": item["severity"],
        **extra,
        "from": item["from"],
    }


def _edges(recipe: Recipe, problems: list[Problem]) -> dict[str, list[str]]:
    """Name -> the components that really come before it. Missing ones are problems, with all who need them."""
    components = recipe.tree["components"]
    edges = {}
    missing: dict[str, list[str]] = {}
    for name, component in components.items():
        needed = component.get("dependsOn", {})
        for other in needed:
            if other not in components:
                missing.setdefault(other, []).append(name)
        edges[name] = sorted(
            other for other in {*needed, *component.get("dependsOnOptional", {})} if other in components
        )
    for other, names in sorted(missing.items()):
        who = ", ".join(sorted(names))
        write = recipe.removed.get(other)
        if write:
            hint = "keep it, or remove those that need it as well"
            problems.append(write.problem("needed", f"component {other} is removed and needed by {who}", hint))
        else:
            entry = recipe.catalog.components[min(names)]
            hint = f"list {other} in an overlay of these criteria"
            problems.append(
                entry.problem("missing-dependency", f"component {other} is needed by {who} and not in the recipe", hint)
            )
    return edges


def _component(catalog: Catalog, name: str, tree: dict, tier: int, before: list[str], problems: list[Problem]) -> dict:
    chart = tree.get("chart")
    entry = {
        "name": name,
        "namespace": tree["namespace"],
        "release": tree.get("release", name),
        "tier": tier,
        "dependsOn": before,
    }
    manifests = [{"name": label, **item} for label, item in _there(tree.get("manifests", {}))]
    if chart:
        entry["chart"] = {key: chart[key] for key in ("name", "repository", "version") if key in chart}
        for key in ("name", "repository", "version"):
            if key not in chart:
                problems.append(
                    catalog.components[name].problem(
                        "no-chart", f"component {name} has no chart {key}", "state it in the registry or in an overlay"
                    )
                )
    elif not manifests:
        problems.append(
            catalog.components[name].problem(
                "nothing-to-install", f"component {name} has neither a chart nor manifests"
            )
        )
    values = merge.finish(tree.get("values", {}))
    return {
        **entry,
        "values": values,
        "valuesDigest": digest.sha256(values),
        "manifests": manifests,
        "crds": sorted(set(tree.get("crds", []))),
        "images": sorted(set(tree.get("images", []))),
        "nodeFacts": _facts(catalog, name, tree, values, problems),
        "health": merge.finish(tree.get("health", {})),
    }


def _facts(catalog: Catalog, name: str, tree: dict, values: dict, problems: list[Problem]) -> dict:
    """The facts of nodes that the values fix: only those that are set."""
    facts = {}
    for fact, path in _there(tree.get("nodeFacts", {})):
        value: object = values
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, (dict, list)):
            problems.append(
                catalog.components[name].problem(
                    "bad-node-fact", f"node fact {fact} of {name}: {path} is not a single value"
                )
            )
        elif value not in (None, ""):
            facts[fact] = {"valuesPath": path, "value": value}
    return facts


def _releases(catalog: Catalog, entries: list[dict]) -> list[Problem]:
    """Two charts cannot be one Helm release."""
    problems = []
    seen: dict[tuple, str] = {}
    for entry in entries:
        key = (entry["namespace"], entry["release"])
        other = seen.setdefault(key, entry["name"]) if "chart" in entry else entry["name"]
        if other != entry["name"]:
            message = f"components {other} and {entry['name']} are both release {key[1]} in namespace {key[0]}"
            problems.append(
                catalog.components[entry["name"]].problem(
                    "same-release", message, "give one of them another release name"
                )
            )
    return problems
