# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes go into a run together. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil

ALONE = "intra-node"
WITHIN = "intra-rack"


@dataclass
class Group:
    """Nodes of one run. `borrowed` are in an earlier group too, and only fill this one up."""

    nodes: list[str]
    borrowed: list[str] = field(default_factory=list)


@dataclass
class Grouping:
    """`left`: node -> why it is in no group."""

    groups: list[Group] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)

    def add(self, other: Grouping) -> None:
        self.groups += other.groups
        self.left.update(other.left)


@dataclass(frozen=True)
class Sizes:
    """What group sizes a test can run in. `wanted`: the size that is asked for, None for as many as there are."""

    gpus_per_node: int
    wanted: int | None = None
    least: int = 1
    least_gpus: int = 0
    multiple: int = 1  # must divide the GPUs of a group
    most: int | None = None  # nodes out at once

    @property
    def minimum(self) -> int:
        """The smallest size that the test can run in."""
        size = max(self.least, ceil(self.least_gpus / self.gpus_per_node), 1)
        while size * self.gpus_per_node % self.multiple:
            size += 1
        return size

    def why_not(self, size: int) -> str:
        """Why a group of that size is none; "" when it is one."""
        gpus = size * self.gpus_per_node
        if size < self.least:
            return f"the test needs {self.least} nodes in a group, there {are(size)}"
        if gpus < self.least_gpus:
            return f"the test needs {self.least_gpus} GPUs in a group, {_nodes(size)} {gpus}"
        if gpus % self.multiple:
            return f"{gpus} GPUs in a group are no multiple of {self.multiple}, as the test's parallelism needs"
        if self.most is not None and size > self.most:
            return f"a group of {size} nodes is more than limits.maxNodesOut {self.most}"
        return ""

    def of(self, available: int) -> tuple[int, str]:
        """(size, "") for that many nodes, or (0, why there is none)."""
        if self.wanted is not None:
            size = min(self.wanted, available)
            why = self.why_not(size)
            return (0, why) if why else (size, "")
        upper = available if self.most is None else min(available, self.most)
        for size in range(upper, 0, -1):
            if not self.why_not(size):
                return size, ""
        return 0, self._too_few(available)

    def _too_few(self, available: int) -> str:
        if self.most is not None and self.minimum > self.most and self.minimum <= available:
            return self.why_not(self.minimum)
        return self.why_not(available) or f"no group of up to {available} nodes fits the test"

    def fitting(self, available: int) -> list[int]:
        """All sizes up to that many nodes."""
        return [size for size in range(1, available + 1) if not self.why_not(size)]


def form(domain_of: dict[str, str | None], sizes: Sizes, scale: str, labels: tuple[str, ...] = ()) -> Grouping:
    """The groups of nodes of one kind: each node alone, within domains, or across the fleet."""
    if scale == ALONE:
        why = replace(sizes, least=1).why_not(1)  # whatever else a test wants, here it is asked for one node
        if why:
            return Grouping(left=dict.fromkeys(domain_of, why))
        return Grouping([Group([name]) for name in sorted(domain_of)])
    if scale == WITHIN:
        return _within(domain_of, sizes, labels)
    return _across(domain_of, sizes)


def _within(domain_of: dict[str, str | None], sizes: Sizes, labels: tuple[str, ...]) -> Grouping:
    result = Grouping()
    for name, domain in domain_of.items():
        if domain is None:
            result.left[name] = f"the node tells no rack or NVLink domain: it has none of {', '.join(labels)}"
    for domain in sorted({domain for domain in domain_of.values() if domain is not None}):
        members = sorted(name for name, its in domain_of.items() if its == domain)
        part = _cut(members, sizes)
        result.groups += part.groups
        result.left.update({name: f"{why} (in {domain})" for name, why in part.left.items()})
    return result


def _across(domain_of: dict[str, str | None], sizes: Sizes) -> Grouping:
    """Whole groups within domains first, so that few of them span two."""
    order = sorted(domain_of, key=lambda name: (domain_of[name] is None, domain_of[name] or "", name))
    size, why = sizes.of(len(order))
    if not size:
        return Grouping(left=dict.fromkeys(order, why))
    blocks: dict[str | None, list[str]] = {}
    for name in order:
        blocks.setdefault(domain_of[name], []).append(name)
    ready, rest = [], []
    for block in blocks.values():
        whole = len(block) // size * size
        ready += block[:whole]
        rest += block[whole:]
    return _chunks([*ready, *rest], size)


def _cut(members: list[str], sizes: Sizes) -> Grouping:
    size, why = sizes.of(len(members))
    return _chunks(members, size) if size else Grouping(left=dict.fromkeys(members, why))


def _chunks(order: list[str], size: int) -> Grouping:
    """Groups of that size; nodes that are left over are filled up with others, so that their result compares."""
    result = Grouping()
    for start in range(0, len(order), size):
        members = order[start : start + size]
        short = size - len(members)
        borrowed = order[start - short : start] if short else []
        result.groups.append(Group([*members, *borrowed], borrowed))
    return result


def _nodes(count: int) -> str:
    return "one node has" if count == 1 else f"{count} nodes have"


def are(count: int) -> str:
    return f"is {count}" if count == 1 else f"are {count}"
