# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which reports count now: not those of other clusters, of earlier boots, too old, blind, or taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.item import WHOLE, Item, entities

DAY = 86400 * moments.SECOND
Entities = dict[str, set[str]]
Parts = frozenset[tuple[str, frozenset[str]]]
NO_NODE = "the inventory has no node of this name: another cluster's, or gone"


@dataclass(slots=True)
class Reports:
    """`active` in order of time; `ignored` and `unknown` as the decision tells them; counts of the last 24 hours."""

    active: list[Item] = field(default_factory=list)
    ignored: list[dict] = field(default_factory=list)
    unknown: list[dict] = field(default_factory=list)
    healthy: int = 0
    total: int = 0
    per_node: dict[str, int] = field(default_factory=dict)
    per_code: dict[tuple, int] = field(default_factory=dict)


def sift(events: Iterable[Mapping], nodes: Mapping[str, Mapping], max_age: int, now: int) -> Reports:
    """`nodes` by name; `max_age` in seconds, `now` in microseconds."""
    reports = Reports()
    sick, healthy = [], {}
    for item in _once(events, now, reports):
        facts = nodes.get(item.node)
        if facts is None:
            _ignore(reports, item, NO_NODE)
            continue
        if item.blind:
            past = _history(item, facts, max_age, now)
            if past:
                _ignore(reports, item, past)
            else:
                why = f"{item.spec['agent']} could not see: {item.spec.get('message') or item.title()}"
                reports.unknown.append({"node": item.node, "event": item.name, "rule": None, "why": why})
            continue
        if item.spec["isHealthy"] or item.spec.get("state") == "healthy":
            healthy.setdefault(_subject(item), []).append(item)
            continue
        if item.received > now - DAY:
            reports.per_node[item.node] = reports.per_node.get(item.node, 0) + 1
            code = (item.node, item.space, item.codes)
            reports.per_code[code] = reports.per_code.get(code, 0) + 1
        sick.append(item)
    reports.healthy = sum(map(len, healthy.values()))
    cleared = _taken_back(sick, healthy)
    for item in sick:
        why = cleared.get(id(item)) or _history(item, nodes[item.node], max_age, now)
        if why:
            _ignore(reports, item, why)
        else:
            reports.active.append(item)
    reports.active.sort(key=lambda item: item.key)
    return reports


def _once(events: Iterable[Mapping], now: int, reports: Reports) -> Iterable[Item]:
    """Each report once; of those that came in twice the first."""
    found: dict[tuple[str, str], Item] = {}
    for document in events:
        reports.total += 1
        item = Item(document, now)
        before = found.setdefault((item.node, item.name), item)
        if before is not item:
            first, again = (before, item) if before.received <= item.received else (item, before)
            found[item.node, item.name] = first
            _ignore(reports, again, "the same report came in before")
    _date(found.values())
    return found.values()


def _date(items: Iterable[Item]) -> None:
    """Gives those that know only the kernel's clock a time: the last one of a log happened when the log was read."""
    logs: dict[tuple, list[Item]] = {}
    for item in items:
        if item.mono is not None:
            logs.setdefault((item.node, item.spec.get("bootId"), item.received), []).append(item)
    for log in logs.values():
        end = max(item.mono[1] for item in log)
        for item in log:
            item.date(*(item.received - int((end - second) * moments.SECOND) for second in item.mono))


def _ignore(reports: Reports, item: Item, why: str) -> None:
    reports.ignored.append({"event": item.name, "node": item.node, "why": why})


def _history(item: Item, facts: Mapping, max_age: int, now: int) -> str:
    boot, current = item.spec.get("bootId") or "", facts.get("bootId") or ""
    if boot.startswith("before:"):
        return "history: from before the node's current boot"
    if boot and current and _hex(boot) != _hex(current):
        return f"history: from boot {boot}, the node now runs {current}"
    if item.received < now - max_age * moments.SECOND:
        return f"history: came in at {moments.text(item.received)}, more than {moments.spell(max_age)} ago"
    return ""


def _hex(boot: str) -> str:
    """journald writes boot ids without hyphens."""
    return boot.replace("-", "").lower()


def _subject(item: Item) -> tuple[str, str, str]:
    return item.node, item.spec["agent"], item.spec["checkName"]


def _taken_back(sick: list[Item], healthy: dict[tuple, list[Item]]) -> dict[int, str]:
    """Why a report does not hold any more, by the item's id."""
    for item in sick:  # some reports end others without being good news themselves
        if "clears" in (item.spec.get("metadata") or {}):
            healthy.setdefault(_subject(item), []).append(item)
    groups: dict[tuple, list[Item]] = {}
    for item in sick if healthy else ():
        if _subject(item) in healthy:
            groups.setdefault(_subject(item), []).append(item)
    cleared: dict[int, str] = {}
    for subject, items in groups.items():
        _settle(items, healthy[subject], cleared)
    return cleared


def _settle(items: list[Item], well: list[Item], cleared: dict[int, str]) -> None:
    """In order of time. At one and the same moment the sick report stands."""
    standing = _Standing()
    moments_ = [(item.key[:2], 0, item.name, item) for item in well] + [
        (item.key[:2], 1, item.name, item) for item in items
    ]
    for _key, sick, _name, item in sorted(moments_, key=lambda moment: moment[:3]):
        if sick:
            standing.add(item)
            continue
        codes = (item.spec.get("metadata") or {}).get("clears", "")
        only = set(codes.split(",")) if codes else None
        for ended in standing.end(entities(item.spec), only):
            if ended is not item:
                cleared[id(ended)] = f"taken back by {item.name}: {item.spec.get('message') or 'healthy'}"


class _Standing:
    """Reports of one check that still hold, with what of each has not been said to be well again.

    Good news meets those only whose entities it names, so that a day of it costs no more than the reports it ends.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Item, Entities]] = {}
        self._by: dict[tuple[str, str], dict[Parts, dict[int, None]]] = {}

    def add(self, item: Item) -> None:
        left = entities(item.spec)
        self._open[id(item)] = (item, left)
        for key in _keys(left):
            self._by.setdefault(key, {}).setdefault(_parts(left), {})[id(item)] = None

    def end(self, well: Entities, only: set[str] | None) -> list[Item]:
        """Those that a healthy report of these entities ends. One without entities speaks for all of the check."""
        ended = []
        for one in self._met(well):
            item, left = self._open[one]
            if only is not None and not only & set(item.codes):
                continue
            before, parts = _keys(left), _parts(left)
            if not well or _covers(well, left):
                ended.append(item)
                del self._open[one]
                left = {}
            for key in set(before) - set(_keys(left)):
                self._by[key][parts].pop(one)
        return ended

    def _met(self, well: Entities) -> list[int]:
        if not well:
            return list(self._open)
        met: dict[int, None] = {}
        for key in _keys(well):
            for parts, items in self._by.get(key, {}).items():
                if _within(well, parts):
                    met.update(items)
        return list(met)


def _keys(found: Entities) -> list[tuple[str, str]]:
    """The names of whole things; of parts where nothing else is named."""
    kinds = [kind for kind in found if kind in WHOLE] or list(found)
    return [(kind, value) for kind in kinds for value in found[kind]]


def _parts(found: Entities) -> Parts:
    return frozenset((kind, frozenset(values)) for kind, values in found.items() if kind not in WHOLE)


def _within(well: Entities, parts: Parts) -> bool:
    """Whether what is well may speak for these parts: good news of a link says nothing of its GPU."""
    kinds = {kind for kind, _values in parts}
    if any(kind not in WHOLE and kind not in kinds for kind in well):
        return False
    return all(values <= well[kind] for kind, values in parts if kind in well)


def _covers(well: Entities, left: Entities) -> bool:
    """Whether nothing is `left` once these are well; takes from `left` what is. Names of one thing need not all be
    named."""
    common = [kind for kind in left if kind in WHOLE and kind in well]
    if not common:
        return True  # parts, where neither names a whole
    if any(left[kind] and not left[kind] & well[kind] for kind in common):
        return False
    for kind in common:
        left[kind] -= well[kind]
    return not any(left[kind] for kind in common)
