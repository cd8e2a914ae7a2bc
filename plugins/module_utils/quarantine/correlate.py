# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One incident per cause: reports that follow from another one are attached to it.

Causes are sought where the report's own metadata says (`causeCode`, `consequenceOf`, `within`): on the same GPU, the
same node, or in the node's NVLink domain, at about the same time. In a rack where one GPU prints Xid 149 and 63 print
145 there is one incident, on one node.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.item import Item

LONG = 16  # bursts still going on that are looked at


@dataclass(slots=True)
class Incident:
    """`attached` in order of time."""

    cause: Item
    attached: list[Item] = field(default_factory=list)

    @property
    def here(self) -> Iterator[Item]:
        """The reports of the cause's own node, the cause first."""
        yield self.cause
        yield from (item for item in self.attached if item.node == self.cause.node)


def correlate(items: list[Item], domains: Mapping[str, str], near: int) -> list[Incident]:
    """Of reports in order of time. `domains` by node; `near` is the widest gap in microseconds."""
    for item in items:
        item.locate()
    _recovery(items)
    index = _Index(items, domains, near)
    for item in items:
        item.root = index.cause(item) or item
    for item in items:
        # what the driver says that a GPU needs, it needs, whatever neighbour began it
        if item.overrides and item.fatal and _root(item).node != item.node:
            item.root = item
    _same(items)
    incidents: dict[int, Incident] = {}
    for item in items:
        root = _root(item)
        incident = incidents.setdefault(id(root), Incident(root))
        if item is not root:
            incident.attached.append(item)
    return sorted(incidents.values(), key=lambda incident: incident.cause.key)


def _recovery(items: Iterable[Item]) -> None:
    """What the driver says a GPU needs comes before what tables say of the GPU's reports up to then."""
    verdicts: dict[tuple, list[Item]] = {}
    for item in items:
        if item.overrides:
            for gpu in item.gpus:
                verdicts.setdefault((item.node, gpu), []).append(item)
    if not verdicts:
        return
    for item in items:
        if item.space in ("xid", "nvml"):
            found = [verdicts[item.node, gpu][-1] for gpu in item.gpus if (item.node, gpu) in verdicts]
            later = [verdict for verdict in found if verdict.key >= item.key]
            if later:
                verdict = max(later, key=lambda one: one.key)
                item.action, item.fatal = verdict.action, verdict.fatal


class _Index:
    """Possible causes by where they are and what they are, each list in order of time."""

    def __init__(self, items: list[Item], domains: Mapping[str, str], near: int):
        self._domains, self._near = domains, near
        self._lists: dict[tuple, _Line] = {}
        wanted = {(item.space, code) for item in items for code in (*item.causes, item.cause_code) if code}
        anything = any(item.echo for item in items)
        if not wanted:
            return
        for item in items:
            if item.echo:
                continue
            codes: list[tuple] = [(item.space, code) for code in item.codes if (item.space, code) in wanted]
            if anything:
                codes.append(("*",))
            for code in codes:
                for place in self._places(item):
                    self._lists.setdefault((*place, *code), _Line()).add(item, near)

    def _places(self, item: Item) -> list[tuple]:
        domain = self._domains.get(item.node, "")
        places = [("gpu", item.node, *gpu) for gpu in item.gpus]
        places += [("node", item.node), ("domain", domain)]
        return [*places, ("origin", domain)] if _serious(item) else places

    def cause(self, item: Item) -> Item | None:
        """What brought the report about, if that is known."""
        if item.cause_code:
            found = self._nearest(item, [(item.space, item.cause_code)], ("gpu", "node"))
            if found:
                return found
        if not item.causes:
            return None
        codes = [("*",) if code == "*" else (item.space, code) for code in item.causes]
        levels = ("gpu", "node", "domain")[: {"gpu": 1, "domain": 3}.get(item.within, 2)]
        if item.within == "gpu" and not item.gpus:
            levels = ("node",)
        return self._nearest(item, codes, levels)

    def _nearest(self, item: Item, codes: list[tuple], levels: Iterable[str]) -> Item | None:
        for level in levels:
            places: list[tuple]
            if level == "gpu":
                places = [(level, item.node, *gpu) for gpu in item.gpus]
            elif level == "node":
                places = [(level, item.node)]
            else:
                # a report that would take its own node out yields only to one that would take out another
                places = [("origin" if item.fatal else level, self._domains.get(item.node, ""))]
            lines = [self._lists.get((*place, *code)) for place in places for code in codes]
            found = [one for line in lines if line for one in line.near(item, self._near)]
            if found:
                return min(found, key=lambda one: (_gap(one, item), one.key))
        return None


class _Line:
    """Reports in order of time."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._times: list[int] = []
        self._long: list[Item] = []

    def add(self, item: Item, near: int) -> None:
        self._items.append(item)
        self._times.append(item.at)
        if item.last - item.at > near:
            self._long.append(item)

    def near(self, item: Item, near: int) -> Iterator[Item]:
        """The neighbours in time, other than the report itself."""
        place = bisect.bisect_right(self._times, item.at)
        around = self._items[max(0, place - 2) : place + 2] + self._long[-LONG:]
        return (one for one in around if one is not item and one.codes != item.codes and _gap(one, item) <= near)


def _gap(one: Item, other: Item) -> int:
    """Microseconds between the end of the first and the begin of the second; 0 where they overlap."""
    return max(0, other.at - one.last, one.at - other.last)


def _serious(item: Item) -> bool:
    """Whether the report alone speaks for a fault that neighbours feel."""
    metadata = item.spec.get("metadata") or {}
    return item.fatal or metadata.get("lineSays") == "Fatal" or metadata.get("awaits154") == "true"


def _same(items: Iterable[Item]) -> None:
    """Several monitors, or one again and again, tell of one fault: the first report stands for it."""
    first: dict[tuple, Item] = {}
    for item in items:
        if item.root is not item:
            continue
        places: tuple = item.gpus or (item.spec["checkName"],)
        keys = [(item.node, item.space, item.codes, place) for place in places]
        known = next((first[key] for key in keys if key in first), item)
        item.root = known
        for key in keys:
            first.setdefault(key, known)


def _root(item: Item) -> Item:
    """The end of the chain of causes. A table may name two codes as causes of each other: the first report is it."""
    path = {id(item): item}
    while item.root is not item:
        item = item.root
        if id(item) in path:
            ring = [item]
            while ring[-1].root is not item:
                ring.append(ring[-1].root)
            item = min(ring, key=lambda one: one.key)
            break
        path[id(item)] = item
    for one in path.values():  # the next one on this chain need not walk it
        one.root = item
    return item
