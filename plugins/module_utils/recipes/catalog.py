# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A catalogue: layers of registry entries and overlays, read strictly, every problem at once."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.recipes import content, criteria, files, merge
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.criteria import Dimension
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.model import Catalog, Component, Overlay, steps
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import Flattener
from ansible_collections.goodput.fleet.plugins.module_utils.records import graph, quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    InvalidDocument,
    NotFound,
    Problem,
    nearest,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import overlay, registry
from ansible_collections.goodput.fleet.plugins.module_utils.records.yamltree import Document

_CACHE: dict[tuple, Catalog] = {}
SCHEMAS = {"Registry": registry.SCHEMA, "Overlay": overlay.SCHEMA}


def load_catalog(paths: list[str]) -> Catalog:
    """The catalogue of these layers, later ones over earlier ones. Raises InvalidDocument with every problem."""
    return _load(_layers(paths))


def load_cached(paths: list[str]) -> Catalog:
    """As `load_catalog`, for a process that resolves often: the files are read again, but parsed only when changed."""
    layers = _layers(paths)
    key = (*paths, files.digest(layers))
    if key not in _CACHE:
        _CACHE.clear()  # one process works with one catalogue; another one replaces it
        _CACHE[key] = _load(layers)
    return _CACHE[key]


def _load(layers: list[files.Layer]) -> Catalog:
    catalog, problems = _read(layers)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise InvalidDocument(errors)
    return catalog


def read(paths: list[str]) -> tuple[Catalog, list[Problem]]:
    """The catalogue as far as it can be read, and every problem. Raises NotFound for a layer that is none."""
    return _read(_layers(paths))


def _layers(paths: list[str]) -> list[files.Layer]:
    if not paths:
        raise NotFound("no catalogue is given", hint="name at least one layer directory")
    return [files.Layer(path) for path in paths]


def _read(layers: list[files.Layer]) -> tuple[Catalog, list[Problem]]:
    reader = _Reader(layers)
    reader.read()
    return reader.catalog, sorted(
        dict.fromkeys(reader.problems), key=lambda one: (one.file or "", one.line or 0, one.path)
    )


class _Reader:
    def __init__(self, layers: list[files.Layer]):
        self.problems: list[Problem] = [problem for layer in layers for problem in layer.problems]
        self.catalog = Catalog(layers, files.digest(layers), {}, {}, {})
        self.sources = [content.Sources(layer) for layer in layers]
        # names that a document which breaks its schema seems to declare: no reason to call them unknown elsewhere
        self.hinted: dict[str, set[str]] = {"components": set(), "overlays": set()}
        self.broken = {"Registry": False, "Overlay": False}

    def read(self) -> None:
        registries = self._documents("registry", "Registry")
        overlays = self._documents("overlays", "Overlay")
        self.catalog.registries = [document for document, _sources in registries]
        self._dimensions(registries)
        self._components(registries)
        for document, sources in overlays:
            self._overlay(document, sources)
        self._includes()
        self.catalog.used = [sources.used for sources in self.sources]

    # documents

    def _documents(self, folder: str, kind: str) -> list[tuple[Document, content.Sources]]:
        """The good documents of a folder in all layers, each name once, registries in the order of their names."""
        found: list[tuple[int, Document, content.Sources]] = []
        seen: dict[str, Document] = {}
        for number, sources in enumerate(self.sources):
            layer = sources.layer
            names = layer.documents(folder)
            for name in sorted(
                name
                for name in layer.files
                if name.startswith(f"{folder}/") and name not in names and not name.endswith(".md")
            ):
                self.problems.append(
                    Problem(
                        "unread-file",
                        f"is not read: a {kind} has the ending .yaml",
                        layer.full(name),
                        severity="warning",
                    )
                )
            for name in names:
                try:
                    document = yamltree.load_text(layer.files[name], layer.full(name))
                except InvalidDocument as error:
                    self.problems += error.problems
                    self.broken[kind] = True
                    continue
                problems = quickcheck.validate(document, kind, SCHEMAS[kind])
                if problems:
                    self.problems += problems
                    self.broken[kind] = True
                    self._hint(document, kind)
                    continue
                label = document.data["metadata"]["name"]
                if label in seen:
                    self.problems.append(
                        _twice(
                            document, ("metadata", "name"), f"the {kind} {label!r}", seen[label], ("metadata", "name")
                        )
                    )
                    continue
                seen[label] = document
                found.append((number, document, sources))
        # by name within a layer: what a file is called must not decide anything
        found.sort(key=lambda one: (one[0], one[1].data["metadata"]["name"]))
        return [(document, sources) for _number, document, sources in found]

    def _hint(self, document: Document, kind: str) -> None:
        data = document.data if isinstance(document.data, dict) else {}
        spec, metadata = data.get("spec"), data.get("metadata")
        if kind == "Overlay" and isinstance(metadata, dict):
            self.hinted["overlays"].add(str(metadata.get("name")))
        components = spec.get("components") if isinstance(spec, dict) else None
        if kind == "Registry" and isinstance(components, list):
            self.hinted["components"] |= {str(one.get("name")) for one in components if isinstance(one, dict)}

    # registry

    def _dimensions(self, registries: list[tuple[Document, content.Sources]]) -> None:
        dimensions = self.catalog.dimensions
        for document, _sources in registries:
            for name, stated in document.data["spec"].get("criteria", {}).items():
                at = ("spec", "criteria", name)
                dimension = dimensions.setdefault(name, Dimension(name))
                dimension.values += [
                    value for value in stated["values"] if value not in (criteria.ANY, *dimension.values)
                ]
                for alias, value in stated.get("aliases", {}).items():
                    if dimension.aliases.setdefault(alias, value) != value:
                        message = f"the alias {alias!r} stands for {dimension.aliases[alias]!r} elsewhere"
                        self.problems.append(document.problem((*at, "aliases", alias), "duplicate-name", message))
        for document, _sources in registries:
            for name, stated in document.data["spec"].get("criteria", {}).items():
                dimension = dimensions[name]
                for alias, value in stated.get("aliases", {}).items():
                    at = ("spec", "criteria", name, "aliases", alias)
                    if value != criteria.ANY and value not in dimension.values:
                        hint = nearest(value, [*dimension.values, criteria.ANY])
                        self.problems.append(
                            document.problem(
                                at,
                                "unknown-value",
                                f"the alias {alias!r} stands for {value!r}, which is no value",
                                hint,
                            )
                        )
                    elif alias in dimension.values or alias == criteria.ANY:
                        self.problems.append(
                            document.problem(at, "duplicate-name", f"the alias {alias!r} is a value as well")
                        )

    def _components(self, registries: list[tuple[Document, content.Sources]]) -> None:
        entries: dict[str, tuple] = {}
        for document, sources in registries:
            for index, data in enumerate(document.data["spec"].get("components", [])):
                at = ("spec", "components", index)
                if data["name"] in entries:
                    first, first_at, *_rest = entries[data["name"]]
                    self.problems.append(
                        _twice(document, (*at, "name"), f"component {data['name']!r}", first, (*first_at, "name"))
                    )
                    continue
                entries[data["name"]] = (document, at, data, sources)
        self.keys: content.MergeKeys = {
            name: {tuple(path.split(".")): (key,) for path, key in data.get("mergeKeys", {}).items()}
            for name, (_document, _at, data, _sources) in entries.items()
        }
        known = entries.keys() | self.hinted["components"]
        for name, (document, at, data, sources) in entries.items():
            flat = Flattener(document)
            content.component(flat, data, at, sources, self.keys)
            tree: dict = {"components": {}}
            self.problems += flat.problems + [wrong for write in flat.writes if (wrong := merge.apply(tree, write))]
            self._known_dependencies(document, data, at, known)
            self.catalog.components[name] = Component(name, document, at, flat.writes, tree["components"].get(name, {}))
        self._cycles(entries)

    def _known_dependencies(self, document: Document, data: dict, at: tuple, known) -> None:
        for key in ("dependsOn", "dependsOnOptional"):
            for index, other in enumerate(data.get(key, [])):
                if other not in known and not self.broken["Registry"]:
                    message = f"{data['name']} depends on {other!r}, which no registry has"
                    self.problems.append(
                        document.problem((*at, key, index), "unknown-dependency", message, nearest(other, known))
                    )

    def _cycles(self, entries: dict[str, tuple]) -> None:
        edges = {
            name: [*data.get("dependsOn", []), *data.get("dependsOnOptional", [])]
            for name, (_document, _at, data, _sources) in entries.items()
        }
        ring = graph.cycle({name: [other for other in before if other != name] for name, before in edges.items()})
        if ring:
            document, at, *_rest = entries[ring[0]]
            self.problems.append(
                document.problem((*at, "dependsOn"), "cycle", "the dependencies form a cycle: " + " -> ".join(ring))
            )

    # overlays

    def _overlay(self, document: Document, sources: content.Sources) -> None:
        spec, name = document.data["spec"], document.data["metadata"]["name"]
        flat = Flattener(document)
        self._criteria(document, spec)
        known = self.catalog.components.keys() | self.hinted["components"]
        for index, data in enumerate(spec.get("components", [])):
            at = ("spec", "components", index)
            path = ("components", data["name"])
            if data["name"] not in known:
                if not self.broken["Registry"]:
                    self.problems.append(
                        document.problem(
                            (*at, "name"),
                            "unknown-component",
                            f"component {data['name']!r} is in no registry",
                            nearest(data["name"], known),
                        )
                    )
            elif "remove" in data:
                extra = sorted(data.keys() - {"name", "remove"})
                if extra:
                    self.problems.append(
                        document.problem(at, "bad-removal", f"a component that is removed has no {', '.join(extra)}")
                    )
                flat.add(path, "remove", None, at)
            else:
                flat.add(path, "present", None, at)
                content.component(flat, data, at, sources, self.keys)
                self._known_dependencies(document, data, at, known)
        for index, data in enumerate(spec.get("constraints", [])):
            content.constraint(flat, data, ("spec", "constraints", index))
        for index, data in enumerate(spec.get("checks", [])):
            content.check(flat, data, ("spec", "checks", index))
        for what in ("components", "constraints", "checks"):
            content.unique(flat, spec.get(what, []), ("spec", what), what[:-1])
        self.problems += flat.problems
        stated = criteria.normalise(self.catalog.dimensions, spec.get("criteria", {}))
        self.catalog.overlays[name] = Overlay(
            name,
            document,
            stated,
            spec.get("mixin", False),
            spec.get("recipe", False),
            spec.get("include", []),
            flat.writes,
        )

    def _criteria(self, document: Document, spec: dict) -> None:
        stated = spec.get("criteria", {})
        if spec.get("mixin"):
            for key in ("criteria", "recipe"):
                if spec.get(key):
                    self.problems.append(
                        document.problem(
                            ("spec", key), "bad-mixin", f"a mixin has no {key}: it is included, never matched"
                        )
                    )
            return
        if self.broken["Registry"] and not self.catalog.dimensions:
            return
        for dimension, value in stated.items():
            wrong = criteria.fault(self.catalog.dimensions, dimension, value)
            if wrong and not (self.broken["Registry"] and wrong[0].startswith("unknown")):
                self.problems.append(document.problem(("spec", "criteria", dimension), *wrong))
        if (
            spec.get("recipe")
            and not criteria.normalise(self.catalog.dimensions, stated)
            and not self.broken["Registry"]
        ):
            self.problems.append(document.problem(("spec", "recipe"), "no-criteria", "a recipe needs criteria"))

    def _includes(self) -> None:
        overlays = self.catalog.overlays
        mixins = [name for name, one in overlays.items() if one.mixin]
        for one in overlays.values():
            for index, name in enumerate(one.include):
                at = ("spec", "include", index)
                if name in one.include[:index]:
                    self.problems.append(one.document.problem(at, "duplicate-name", f"{name!r} is included twice"))
                elif name in overlays and not overlays[name].mixin:
                    message = f"{name!r} is no mixin: it applies by its own criteria"
                    self.problems.append(one.document.problem(at, "not-a-mixin", message, nearest(name, mixins)))
                elif name not in overlays and name not in self.hinted["overlays"] and not self.broken["Overlay"]:
                    self.problems.append(
                        one.document.problem(at, "unknown-mixin", f"there is no mixin {name!r}", nearest(name, mixins))
                    )
        ring = graph.cycle({name: overlays[name].include for name in mixins})
        if ring:
            message = "mixins include each other: " + " -> ".join(ring)
            self.problems.append(overlays[ring[0]].document.problem(("spec", "include"), "cycle", message))
            return
        for one in overlays.values():
            if not one.mixin:
                one.steps = steps(one, overlays)


def _twice(document: Document, at: tuple, what: str, first: Document, first_at: tuple) -> Problem:
    hint = f"first in {first.source}:{first.line(first_at)}; change it with an overlay instead of stating it again"
    return document.problem(at, "duplicate-name", f"{what} is there twice", hint)
