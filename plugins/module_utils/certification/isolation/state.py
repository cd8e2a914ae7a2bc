# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the results so far say by themselves: who passed with whom, which groups failed. Pure.

Computed anew from all results each time, in whatever order they are given, so that a killed run goes on where it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import Fleet, bits, group_of
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.options import Options
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

PASSES = ("pass", "pass_unbounded")
FAILS = ("fail", "hang", "crash")
# these say nothing about a node: the tool, the image, the scheduler, or a precondition
SILENT = ("error", "blocked", "dirty", "not_measured", "not_run", "skipped", "not_applicable", "unresponsive")
OUTCOMES = PASSES + FAILS + SILENT


class State:
    """Groups are bits of `fleet`.

    `passes`, `fails`, `silent`: how often each group had such an outcome. `cover[i]`: the nodes that node i passed
    together with. `cleared`: nodes that passed at all; `twice`: in two groups. `across`, `inside`: nodes that passed
    with one of another domain, with one of their own. `items`: the results of each group, as given.
    """

    def __init__(self, fleet: Fleet, options: Options, results: Iterable[dict], busy: Iterable[Iterable[str]] = ()):
        self.fleet, self.options = fleet, options
        self.passes: dict[int, int] = defaultdict(int)
        self.fails: dict[int, int] = defaultdict(int)
        self.silent: dict[int, int] = defaultdict(int)
        self.items: dict[int, list[dict]] = defaultdict(list)
        self.hinted = 0
        self.tests = self.node_tests = self.rounds = 0
        self._chain = [0] * len(fleet)
        self._read(results)
        self.running = self._read_busy(busy)
        self.busy = 0
        for group in self.running:
            self.busy |= group
        self._relate()

    def runs(self, group: int) -> int:
        return self.passes.get(group, 0) + self.fails.get(group, 0) + self.silent.get(group, 0)

    def unknown_pairs(self, group: int) -> dict[int, int]:
        """Per node of a group those it never passed together with; nodes without such a one are left out."""
        return {node: open_ for node in bits(group) if (open_ := group & ~self.cover[node] & ~(1 << node))}

    def round_of(self, group: int) -> int:
        """The round in which a test of this group would run: one after the last of any of its nodes."""
        return 1 + max(self._chain[node] for node in bits(group))

    def gave_up(self, group: int) -> bool:
        """Every try of this very group ended without an answer."""
        return self.silent.get(group, 0) > self.options.error_retries and not (
            self.passes.get(group) or self.fails.get(group)
        )

    def relation(self, node: int, others: int) -> str:
        """How a test reached from node to the others: inside its domain, across domains, mixed, or alone."""
        inside, across = others & self.fleet.mates[node], others & ~self.fleet.mates[node]
        if not others:
            return "alone"
        return "mixed" if inside and across else "inside" if inside else "across"

    def proven(self, relation: str) -> int:
        """Nodes that passed a test of that relation."""
        if relation == "mixed":
            return self.inside & self.across
        return self.across if relation == "across" else self.inside if relation == "inside" else self.cleared

    def _read(self, results: Iterable[dict]) -> None:
        problems: list[Problem] = []
        seen: dict[tuple[int, object], str] = {}
        for number, result in enumerate(results):
            where = f"results[{number}]"
            if not isinstance(result, dict):
                problems.append(Problem("isolation", f"is {result!r}", path=where, hint="{group, outcome, repeat}"))
                continue
            group = group_of(self.fleet, result.get("group"), f"{where}.group", problems)
            outcome = result.get("outcome")
            if outcome not in OUTCOMES:
                problems.append(Problem("isolation", f"is {outcome!r}", path=f"{where}.outcome",
                                        hint=nearest(outcome, OUTCOMES)))  # fmt: skip
                continue
            named = result.get("suspects") or []
            if not isinstance(named, (list, tuple)) or not all(isinstance(name, str) for name in named):
                problems.append(Problem("isolation", f"is {named!r}, not a list of names", path=f"{where}.suspects"))
            for key in ("repeat", "round"):
                value = result.get(key)
                if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                    problems.append(Problem("isolation", f"is {value!r}, not a whole number", path=f"{where}.{key}"))
            if not group or problems:
                continue
            if (repeat := result.get("repeat")) is not None:
                # a resumed run may read one test's result twice
                before = seen.get((group, repeat))
                if before not in (None, outcome):
                    problems.append(Problem("isolation", f"repeat {repeat} is {outcome!r} here and {before!r} before",
                                            path=where, hint="one outcome per group and repeat"))  # fmt: skip
                if before is not None:
                    continue
                seen[group, repeat] = outcome
            self._add(group, outcome, result)
        if problems:
            raise InvalidDocument(problems)

    def _add(self, group: int, outcome: str, result: dict) -> None:
        self.tests += 1
        self.node_tests += group.bit_count()
        self.items[group].append(result)
        kind = self.passes if outcome in PASSES else self.fails if outcome in FAILS else self.silent
        kind[group] += 1
        members = bits(group)
        own = result.get("round") or 1 + max([self._chain[node] for node in members])
        self.rounds = max(self.rounds, own)
        for node in members:
            if self._chain[node] < own:
                self._chain[node] = own
        for name in result.get("suspects") or ():
            if name in self.fleet.index:
                self.hinted |= 1 << self.fleet.index[name]

    def _read_busy(self, busy: Iterable[Iterable[str]]) -> list[int]:
        problems: list[Problem] = []
        groups = [group_of(self.fleet, list(group), f"busy[{number}]", problems) for number, group in enumerate(busy)]
        if problems:
            raise InvalidDocument(problems)
        return groups

    def _relate(self) -> None:
        fleet, least = self.fleet, self.options.small
        self.cover = [0] * len(fleet)
        self.cleared = self.twice = self.across = self.inside = 0
        for group in self.passes:
            # a single node's test never leaves the node: nothing for a test that needs two
            if group.bit_count() < min(least, 2):
                continue
            self.twice |= self.cleared & group
            self.cleared |= group
            for node in bits(group):
                self.cover[node] |= group
        for node in bits(self.cleared):
            self.cover[node] &= ~(1 << node)
            if self.cover[node] & fleet.mates[node]:
                self.inside |= 1 << node
            if self.cover[node] & ~fleet.mates[node]:
                self.across |= 1 << node
