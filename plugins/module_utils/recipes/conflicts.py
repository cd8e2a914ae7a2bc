# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conflicts: two overlays, neither more specific than the other, that write the same thing differently.

A write that a more specific overlay replaces does not count any more, so an overlay that outranks both settles a
conflict. Nothing is decided by a name or by chance.
"""

from __future__ import annotations

import itertools
import weakref
from collections import defaultdict

from ansible_collections.goodput.fleet.plugins.module_utils.recipes.merge import label
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.model import Catalog, Overlay, Step
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.writes import COVERING, Write
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem


class Differences:
    """Which contents of a catalogue write something differently, whatever their ranks. Computed once."""

    def __init__(self, catalog: Catalog):
        self.pairs: dict[str, dict[str, list[tuple[Write, Write]]]] = defaultdict(lambda: defaultdict(list))
        writers: dict[tuple, list[tuple[Overlay, Write]]] = defaultdict(list)
        for overlay in catalog.overlays.values():
            for path, write in overlay.last.items():
                writers[path].append((overlay, write))
        covering = {
            path for path, found in writers.items() if any(write.operation in COVERING for _overlay, write in found)
        }
        for path, found in writers.items():
            if len(found) > 1:
                for one, other in itertools.combinations(found, 2):
                    self._add(one, other)
            for above in (path[:depth] for depth in range(2, len(path))):
                if above in covering:
                    for one, other in itertools.product(writers[above], found):
                        if one[1].operation in COVERING:
                            self._add(one, other)

    def _add(self, one: tuple[Overlay, Write], other: tuple[Overlay, Write]) -> None:
        (left, left_write), (right, right_write) = one, other
        if left is right or not _may_meet(left, right) or left_write.same(right_write):
            return
        self.pairs[left.name][right.name].append((left_write, right_write))
        self.pairs[right.name][left.name].append((right_write, left_write))

    def between(self, left: Overlay, right: Overlay) -> list[tuple[Write, Write]]:
        """The writes of two contents that differ."""
        return (
            self.pairs[left.name][right.name] if left.name in self.pairs and right.name in self.pairs[left.name] else []
        )


def _may_meet(left: Overlay, right: Overlay) -> bool:
    """Can one query apply both, and does neither outrank the other? Mixins are judged at their places later."""
    if left.mixin or right.mixin:
        return True
    return compatible(left, right) and not left.items < right.items and not right.items < left.items


def compatible(left: Overlay, right: Overlay) -> bool:
    """Can one query match both?"""
    return all(right.criteria.get(name, value) == value for name, value in left.criteria.items())


def unsettled(differences: Differences, steps: list[Step]) -> list[Problem]:
    """The conflicts between steps that apply together."""
    involved = [step for step in steps if step.content.name in differences.pairs]
    problems = []
    for one, other in itertools.combinations(involved, 2):
        writes = differences.between(one.content, other.content)
        if writes and not one.outranks(other) and not other.outranks(one):
            open_writes = [pair for pair in writes if not _settled(pair, one, other, steps)]
            problems += _tell(open_writes, one, other)
    return problems


def _settled(pair: tuple[Write, Write], one: Step, other: Step, steps: list[Step]) -> bool:
    deeper = max((write.path for write in pair), key=len)
    return any(_decides(step.content, deeper) for step in steps if step.outranks(one) or step.outranks(other))


def _decides(content: Overlay, path: tuple) -> bool:
    last = content.last
    if path in last:
        return True
    above = (last.get(path[:depth]) for depth in range(2, len(path)))
    return any(write is not None and write.operation in COVERING for write in above)


def _tell(pairs: list[tuple[Write, Write]], one: Step, other: Step) -> list[Problem]:
    """One problem for each thing, and none for what lies inside another one."""
    problems = []
    told: list[tuple] = []
    for left, right in sorted(
        pairs, key=lambda pair: (min(len(pair[0].path), len(pair[1].path)), pair[0].path, pair[1].path)
    ):
        shallow = min(left, right, key=lambda write: len(write.path))
        path = max(left.path, right.path, key=len)
        if any(path[: len(above)] == above for above in told):
            continue
        told.append(shallow.path)
        path = shallow.path if shallow.operation == "remove" else path
        (left, one_name), (right, other_name) = sorted(
            [(left, _name(one)), (right, _name(other))], key=lambda side: side[0].place
        )
        problems.append(
            left.problem(
                "conflict",
                f"{label(path)}: {one_name} {_does(left)}, and {other_name} {_does(right)} ({right.place}); "
                "neither is more specific",
                f"state it in an overlay whose criteria include {_criteria(one, other)}, or in one of the two only",
            )
        )
    return problems


def _name(step: Step) -> str:
    return (
        step.content.name if step.content is step.overlay else f"{step.content.name} (included by {step.overlay.name})"
    )


def _does(write: Write) -> str:
    verb = {
        "remove": "removes it",
        "null": "deletes it",
        "map": "makes it a map",
        "present": "uses it",
        "keyed": "merges it by key",
        "replace": "states it",
    }
    if write.operation in verb:
        return verb[write.operation]
    text = repr(write.value)
    return f"sets {text if len(text) <= 60 else text[:57] + '...'}"


def _criteria(one: Step, other: Step) -> str:
    both = sorted({*one.overlay.criteria.items(), *other.overlay.criteria.items()})
    return ", ".join(f"{name}: {value}" for name, value in both) or "more than none"


_KNOWN: weakref.WeakKeyDictionary[Catalog, Differences] = weakref.WeakKeyDictionary()


def differences(catalog: Catalog) -> Differences:
    """The differences of a catalogue, computed when first asked for."""
    if catalog not in _KNOWN:
        _KNOWN[catalog] = Differences(catalog)
    return _KNOWN[catalog]
