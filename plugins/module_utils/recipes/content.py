# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a registry entry or an overlay says, as writes; and the rules between the fields of one document."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.recipes.files import Layer
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import HEALTH_KEYS, Flattener
from ansible_collections.goodput.fleet.plugins.module_utils.records import constraints, digest, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.records.yamltree import Document

# item keys of the lists in a component's values that merge: component -> values path -> keys
MergeKeys = dict[str, dict[tuple, tuple]]


class Sources:
    """The values and manifest files of one layer, read once. `used` collects the names that documents mention."""

    def __init__(self, layer: Layer):
        self.layer = layer
        self.used: set[str] = set()
        self._values: dict[str, Document] = {}

    def text(self, flat: Flattener, name: str, at: tuple) -> str | None:
        """A file's text; a missing one is a problem of the document that names it."""
        self.used.add(name)
        if name not in self.layer.files:
            folder = name.split("/")[0]
            there = [other for other in self.layer.files if other.startswith(f"{folder}/")]
            hint = nearest(name, there) or f"{self.layer.full(folder)} has no file"
            flat.problems.append(
                flat.document.problem(at, "missing-file", f"{name!r} does not exist in {self.layer.path}", hint)
            )
        return self.layer.files.get(name)

    def values(self, flat: Flattener, name: str, at: tuple) -> Document | None:
        """The map in a values file. An empty file is an empty map."""
        text = self.text(flat, name, at)
        if text is None or name in self._values:
            return self._values.get(name)
        source = self.layer.full(name)
        try:
            documents = yamltree.load_all_text(text, source)
            if len(documents) > 1 or (documents and not isinstance(documents[0].data, dict)):
                raise InvalidDocument("must hold one map of Helm values", code="bad-values", file=source, line=1)
        except InvalidDocument as error:
            flat.problems += error.problems
            documents = []
        self._values[name] = documents[0] if documents else Document({}, {(): 1}, source)
        return self._values[name]


def component(flat: Flattener, data: dict, at: tuple, sources: Sources, keys: MergeKeys) -> None:
    """The writes of one entry of spec.components, in a registry or an overlay."""
    name = data["name"]
    path = ("components", name)
    chart = data.get("chart", {})
    for key, value in chart.items():
        flat.add((*path, "chart", key), "set", value, (*at, "chart", key))
    if "version" in data:
        flat.add((*path, "chart", "version"), "set", data["version"], (*at, "version"))
        if "version" in chart:
            flat.problems.append(
                flat.document.problem(
                    (*at, "version"), "stated-twice", "version and chart.version are the same field", "keep one of them"
                )
            )
    for key in ("namespace", "release", "images", "crds"):
        if key in data:
            flat.add((*path, key), "set", data[key], (*at, key))
    for index, file in enumerate(data.get("valuesFiles", [])):
        document = sources.values(flat, file, (*at, "valuesFiles", index))
        if document is not None:
            inner = Flattener(document)
            inner.values(document.data, (*path, "values"), (), keys.get(name, {}))
            flat.writes += inner.writes
            flat.problems += inner.problems
    if "values" in data:
        flat.values(data["values"], (*path, "values"), (*at, "values"), keys.get(name, {}))
    _dependencies(flat, data, path, at)
    for index, manifest in enumerate(data.get("manifests", [])):
        _manifest(flat, manifest, (*path, "manifests"), (*at, "manifests", index), sources)
    unique(flat, data.get("manifests", []), (*at, "manifests"), "manifest")
    if "health" in data:
        flat.fields(data["health"], (*path, "health"), (*at, "health"), HEALTH_KEYS)
    if "nodeFacts" in data:
        flat.fields(data["nodeFacts"], (*path, "nodeFacts"), (*at, "nodeFacts"))


def _dependencies(flat: Flattener, data: dict, path: tuple, at: tuple) -> None:
    seen: dict[str, tuple] = {}
    for key in ("dependsOn", "dependsOnOptional"):
        for index, other in enumerate(data.get(key, [])):
            place = (*at, key, index)
            if other == path[1]:
                flat.problems.append(flat.document.problem(place, "cycle", f"{other} depends on itself"))
            elif other in seen:
                hint = f"first on line {flat.document.line(seen[other])}"
                flat.problems.append(
                    flat.document.problem(place, "duplicate-name", f"the dependency {other!r} is there twice", hint)
                )
            seen.setdefault(other, place)
            flat.add((*path, key, other), "edge", True, place)


def _manifest(flat: Flattener, data: dict, path: tuple, at: tuple, sources: Sources) -> None:
    path = (*path, data["name"])
    stated = [key for key in ("file", "content", "remove") if key in data]
    if len(stated) != 1:
        flat.problems.append(
            flat.document.problem(
                at, "bad-manifest", f"manifest {data['name']!r} needs exactly one of file, content and remove"
            )
        )
    elif stated == ["remove"]:
        flat.add(path, "remove", None, at)
    else:
        content = sources.text(flat, data["file"], (*at, "file")) if "file" in data else data["content"]
        if content is not None:
            value = {
                "phase": data.get("phase", "post"),
                "content": content,
                "digest": digest.sha256_bytes(content.encode()),
            }
            flat.add(path, "replace", value, at)


def constraint(flat: Flattener, data: dict, at: tuple) -> None:
    """The writes of one constraint of an overlay."""
    name, path = data["name"], ("constraints", data["name"])
    if ("value" in data) == ("remove" in data):
        flat.problems.append(
            flat.document.problem(at, "bad-constraint", f"constraint {name} needs exactly one of value and remove")
        )
        return
    if ("remove" in data or "loosen" in data) and "reason" not in data:
        what = "removes" if "remove" in data else "loosens"
        flat.problems.append(
            flat.document.problem(at, "no-reason", f"this {what} {name} without a reason", "add reason: TEXT")
        )
    if "remove" in data:
        flat.add(path, "remove", None, at)
        return
    wrong = constraints.fault(name, data["value"])
    if wrong:
        flat.problems.append(
            flat.document.problem((*at, "value"), "bad-constraint", f"{name}: {wrong}", constraints.versions.GRAMMAR)
        )
    flat.add((*path, "value"), "set", data["value"], (*at, "value"))
    # the default is stated too: an error here and a warning elsewhere are a contradiction
    flat.add((*path, "severity"), "set", data.get("severity", "error"), (*at, "severity"))
    if "remediation" in data:
        flat.add((*path, "remediation"), "set", data["remediation"], (*at, "remediation"))


def check(flat: Flattener, data: dict, at: tuple) -> None:
    """The write of one certification check of an overlay."""
    path = ("checks", data["name"])
    if "remove" in data:
        flat.add(path, "remove", None, at)
    else:
        flat.add(path, "replace", {key: value for key, value in data.items() if key != "name"}, at)


def unique(flat: Flattener, items: list[dict], at: tuple, what: str) -> None:
    """Names of a list are there once."""
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        name = item["name"]
        if name in seen:
            hint = f"first on line {flat.document.line((*at, seen[name], 'name'))}"
            flat.problems.append(
                flat.document.problem((*at, index, "name"), "duplicate-name", f"{what} {name!r} is there twice", hint)
            )
        seen.setdefault(name, index)
