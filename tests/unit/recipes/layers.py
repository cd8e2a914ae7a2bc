"""Small catalogues, written where a test wants them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import catalog, lint, resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

DIMENSIONS = {
    "service": {"values": ["eks", "aks", "gke"], "aliases": {"self-managed": "any", "amazon": "eks"}},
    "accelerator": {"values": ["h100", "b200"]},
    "os": {"values": ["ubuntu", "cos"]},
    "intent": {"values": ["training", "inference"]},
}


def chart(name: str, **fields) -> dict:
    """A registry entry with a pinned chart of its own name."""
    source = {"name": name, "repository": "https://charts.example.com/stable", "version": "1.0.0"}
    return {"name": name, "namespace": name, "chart": source, **fields}


class Site:
    """One catalogue layer. Everything is written as it is given; nothing is checked here."""

    def __init__(self, root: Path):
        self.root = root

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def document(self, kind: str, name: str, spec: dict, file: str) -> Path:
        head = {"apiVersion": "goodput.fleet/v1alpha1", "kind": kind, "metadata": {"name": name}}
        return self.write(file, yamltree.dump({**head, "spec": spec}))

    def registry(self, *components: dict, name: str = "main", criteria: dict | None = None) -> Site:
        spec = {"criteria": DIMENSIONS if criteria is None else criteria, "components": list(components)}
        self.document("Registry", name, spec, f"registry/{name}.yaml")
        return self

    def overlay(self, name: str, criteria: dict | None = None, file: str = "", **spec) -> Site:
        """`spec` as in the document; components may be given as names."""
        spec = copy.deepcopy(spec)
        if "components" in spec:
            spec["components"] = [{"name": one} if isinstance(one, str) else one for one in spec["components"]]
        self.document("Overlay", name, {"criteria": criteria or {}, **spec}, file or f"overlays/{name}.yaml")
        return self

    def mixin(self, name: str, **spec) -> Site:
        self.document("Overlay", name, {"mixin": True, **spec}, f"overlays/{name}.yaml")
        return self

    def load(self, *more: Site) -> catalog.Catalog:
        return catalog.load_catalog([str(self.root), *(str(site.root) for site in more)])

    def resolve(self, **criteria) -> dict:
        return resolve.resolve(self.load(), criteria)

    def component(self, name: str, **criteria) -> dict:
        return next(one for one in self.resolve(**criteria)["spec"]["components"] if one["name"] == name)

    def names(self, **criteria) -> list[str]:
        return self.resolve(**criteria)["spec"]["order"]

    def lint(self) -> list:
        return lint.lint_paths([str(self.root)])[1]

    def problems(self, **criteria) -> list:
        """What resolving raises; without criteria, what loading raises."""
        with pytest.raises(FleetError) as caught:
            self.resolve(**criteria) if criteria else self.load()
        return caught.value.problems
