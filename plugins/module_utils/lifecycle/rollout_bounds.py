# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes a roll-out may have out at a time: in all, in each topology domain, and per wave. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

_BOUND = re.compile(r"(\d{1,6})(%?)")


@dataclass(frozen=True)
class Bound:
    """A number of nodes, or a share of them in percent, of which at least one may go: else nothing ever would."""

    number: int
    percent: bool

    def of(self, nodes: int) -> int:
        return max(1, nodes * self.number // 100) if self.percent else self.number


def bound(given: object, where: str) -> Bound:
    """Of 4, "4" or "25%". Raises InvalidDocument for what is none, and for a bound that lets nothing happen."""
    match = _BOUND.fullmatch(str(given).strip()) if not isinstance(given, bool) else None
    hint = "a number of nodes from 1, or a share such as 25%"
    if not match:
        raise InvalidDocument(Problem("bound", f"is {given!r}", path=where, hint=hint))
    found = Bound(int(match[1]), bool(match[2]))
    if not found.number:
        raise InvalidDocument(Problem("bound", "no node may ever go: nothing would happen", path=where, hint=hint))
    if found.percent and found.number > 100:
        raise InvalidDocument(Problem("bound", f"is {given!r}", path=where, hint=hint))
    return found


def is_out(node: Mapping) -> bool:
    """Whether it takes no work now, for whatever reason."""
    return not node["open"] or not node["ready"]


class Room:
    """What may still be taken out. Nodes that are out already, for whatever reason, count.

    A node that tells no domain ("") is bounded by the fleet's number only.
    """

    def __init__(self, nodes: Iterable[Mapping], fleet: Bound, domain: Bound):
        sizes: dict[str, int] = {}
        out: dict[str, int] = {}
        for node in nodes:
            sizes[node["domain"]] = sizes.get(node["domain"], 0) + 1
            out[node["domain"]] = out.get(node["domain"], 0) + is_out(node)
        self.nodes, self.out = sum(sizes.values()), sum(out.values())
        self.homeless = sizes.get("", 0)
        self.allowed = fleet.of(self.nodes)
        self._out = out
        self._allowed = {name: domain.of(size) for name, size in sizes.items()}

    def take(self, node: Mapping) -> bool:
        """Count a node as out, if it may go. One that is out already costs nothing."""
        if is_out(node):
            return True
        if self.full or self.domain_full(node["domain"]):
            return False
        self.out += 1
        self._out[node["domain"]] += 1
        return True

    def give(self, node: Mapping) -> None:
        """Count a node that is out, or was taken, as back."""
        self.out -= 1
        self._out[node["domain"]] -= 1

    @property
    def full(self) -> bool:
        return self.out >= self.allowed

    def domain_full(self, domain: str) -> bool:
        return domain != "" and self._out[domain] >= self._allowed[domain]

    def said(self, domain: str) -> str:
        """Why nothing more of a domain may go."""
        if self.full:
            return f"{self.out} of {self.nodes} nodes are out, {self.allowed} may be"
        return f"{self._out[domain]} nodes of {domain} are out, {self._allowed[domain]} may be"
