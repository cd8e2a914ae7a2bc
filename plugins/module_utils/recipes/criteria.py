# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Criteria: the dimensions a catalogue declares, what a query may state, and which overlays it matches.

`any`, an empty text and an absent dimension are the same. A specific value of an overlay matches only itself, so a
query that leaves a dimension open never pulls specific content.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    InvalidDocument,
    NotCovered,
    Problem,
    nearest,
)

ANY = "any"


@dataclass
class Dimension:
    """One word of the vocabulary. `aliases` maps other names to a value or to `any`."""

    name: str
    values: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)

    def canonical(self, value: str) -> str | None:
        """The value itself, the value an alias stands for, `any`, or None for an unknown one."""
        value = self.aliases.get(value, value)
        return value if value == ANY or value in self.values else None


def fault(dimensions: dict[str, Dimension], name: str, value: object) -> tuple[str, str, str] | None:
    """(code, message, hint) of a dimension or value that the catalogue does not know."""
    if name not in dimensions:
        return "unknown-dimension", f"criteria dimension {name!r} is not declared", nearest(name, dimensions)
    dimension = dimensions[name]
    if not isinstance(value, str):
        return "wrong-type", f"{name} is {value!r}, not a text", "put it in quotes"
    if dimension.canonical(value) is None:
        return (
            "unknown-value",
            f"{name} {value!r} is not known",
            nearest(value, [*dimension.values, *dimension.aliases, ANY]),
        )
    return None


def normalise(dimensions: dict[str, Dimension], stated: dict[str, str]) -> dict[str, str]:
    """Known criteria without `any` and aliases, in the order of the dimensions."""
    found = {name: dimensions[name].canonical(value) for name, value in stated.items() if name in dimensions}
    return {name: found[name] for name in dimensions if found.get(name) not in (None, ANY)}


def query(dimensions: dict[str, Dimension], stated: object) -> dict[str, str]:
    """What a person asked for, checked and normalised. Raises InvalidDocument with every fault."""
    if not isinstance(stated, dict):
        raise InvalidDocument("criteria must be a map of DIMENSION: VALUE", code="wrong-type", path="criteria")
    stated = {name: value for name, value in stated.items() if value not in (None, "")}
    problems = [
        Problem(wrong[0], wrong[1], path=f"criteria.{name}", hint=wrong[2])
        for name, value in stated.items()
        if (wrong := fault(dimensions, name, value))
    ]
    if problems:
        raise InvalidDocument(problems)
    criteria = normalise(dimensions, stated)
    if not criteria:
        choices = "; ".join(f"{dimension.name}: {', '.join(dimension.values)}" for dimension in dimensions.values())
        raise InvalidDocument(
            "no criteria are stated", code="no-criteria", path="criteria", hint=f"state at least one of {choices}"
        )
    return criteria


def check_coverage(overlays: list, criteria: dict[str, str], matched: list) -> None:
    """Every stated criterion must be carried by an applied overlay. Raises NotCovered naming completions that exist.

    Overlays have `.items`, the frozen set of their (dimension, value) pairs.
    """
    carried = frozenset().union(*(overlay.items for overlay in matched))
    missing = [pair for pair in criteria.items() if pair not in carried]
    if missing:
        raise NotCovered([_not_covered(overlays, criteria, *pair) for pair in missing])


def _not_covered(overlays: list, criteria: dict[str, str], name: str, value: str) -> Problem:
    carriers = [overlay.items for overlay in overlays if (name, value) in overlay.items]
    message = f"no overlay for these criteria carries {name} {value}"
    if not carriers:
        known = sorted({other for overlay in overlays for dimension, other in overlay.items if dimension == name})
        hint = (
            f"carried for {name}: {', '.join(known)}"
            if known
            else f"nothing in this catalogue depends on {name}: leave it out"
        )
        return Problem("not-covered", message, path=f"criteria.{name}", hint=hint)
    ways = [frozenset(pair for pair in items if criteria.get(pair[0]) != pair[1]) for items in carriers]
    # what was asked for stands, where it can
    ways = [way for way in ways if not any(name in criteria for name, _value in way)] or ways
    # a way that asks for more than another one says nothing new
    ways = sorted(
        {way for way in ways if not any(other < way for other in ways)}, key=lambda way: _effort(way, criteria)
    )
    told = [_way(way, criteria) for way in ways[:8]]
    return Problem("not-covered", message, path=f"criteria.{name}", hint="what exists: " + "; or ".join(told))


def _effort(way: frozenset, criteria: dict[str, str]) -> tuple:
    return sum(name in criteria for name, _value in way), len(way), sorted(way)


def _way(way: frozenset, criteria: dict[str, str]) -> str:
    added = [f"{name}: {value}" for name, value in sorted(way) if name not in criteria]
    changed = [f"{name}: {value} instead of {criteria[name]}" for name, value in sorted(way) if name in criteria]
    return " and ".join(part for part in ("add " + ", ".join(added) if added else "", ", ".join(changed)) if part)
