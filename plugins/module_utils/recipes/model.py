# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a catalogue holds: components, overlays with their place in the order, mixins at the place of their includer."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.recipes.criteria import Dimension
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.files import Layer
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import COVERING, Write
from ansible_collections.goodput.fleet.plugins.module_utils.records.yamltree import Document


@dataclass(eq=False)
class Component:
    """A registry entry. `tree` is what a recipe starts from when it lists the component; it is never changed."""

    name: str
    document: Document
    at: tuple
    writes: list[Write]
    tree: dict

    @property
    def problem(self):
        return functools.partial(self.document.problem, self.at)


@dataclass(eq=False)
class Overlay:
    """`items` is the set of its (dimension, value) pairs; `steps` what it applies: its mixins, then itself."""

    name: str
    document: Document
    criteria: dict[str, str]
    mixin: bool
    recipe: bool
    include: list[str]
    writes: list[Write]
    items: frozenset = frozenset()
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self):
        self.items = frozenset(self.criteria.items())
        spec = self.document.data["spec"]
        self.loosened = {one["name"] for one in spec.get("constraints", []) if one.get("loosen")}
        self.stated = [
            (kind, one["name"])
            for kind in ("constraints", "checks")
            for one in spec.get(kind, [])
            if "remove" not in one
        ]

    @functools.cached_property
    def last(self) -> dict[tuple, Write]:
        """path -> the write that holds after all of this overlay's own writes."""
        found: dict[tuple, Write] = {}
        for write in self.writes:
            if write.operation in COVERING and any(
                len(path) > len(write.path) and path[: len(write.path)] == write.path for path in found
            ):
                found = {path: other for path, other in found.items() if path[: len(write.path)] != write.path}
            found[write.path] = write
        return found


@dataclass(eq=False)
class Step:
    """The content of an overlay or mixin at the place of the overlay that matched. `below`: what it outranks there."""

    content: Overlay
    overlay: Overlay
    below: frozenset[str]

    def outranks(self, other: Step) -> bool:
        """The set order: strictly more criteria, or the includer over its mixins."""
        if self.overlay is other.overlay:
            return other.content.name in self.below
        return self.overlay.items > other.overlay.items


@dataclass(eq=False)
class Catalog:
    """What is read is never changed: every recipe is built from copies."""

    layers: list[Layer]
    digest: str
    dimensions: dict[str, Dimension]
    components: dict[str, Component]
    overlays: dict[str, Overlay]
    registries: list[Document] = field(default_factory=list)
    used: list[set[str]] = field(default_factory=list)

    @functools.cached_property
    def matchable(self) -> list[Overlay]:
        """Overlays that queries match, the less specific first, then by name."""
        found = [one for one in self.overlays.values() if not one.mixin]
        return sorted(found, key=lambda one: (len(one.items), one.name))

    @property
    def recipes(self) -> list[Overlay]:
        """The declared recipes, by name."""
        return sorted((one for one in self.overlays.values() if one.recipe), key=lambda one: one.name)

    def matching(self, items: frozenset) -> list[Overlay]:
        """The overlays that a query matches, in the order in which they apply."""
        return [one for one in self.matchable if one.items <= items]


def steps(overlay: Overlay, overlays: dict[str, Overlay]) -> list[Step]:
    """The mixins of an overlay, each once and after those it includes itself, then the overlay."""
    found: dict[str, Step] = {}

    def visit(one: Overlay) -> frozenset[str]:
        if one.name not in found:
            inner = [overlays[name] for name in one.include if name in overlays and overlays[name].mixin]
            below = frozenset().union(*({other.name} | visit(other) for other in inner))
            found[one.name] = Step(one, overlay, below)
        return found[one.name].below

    visit(overlay)
    return list(found.values())
