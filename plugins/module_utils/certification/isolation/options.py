# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a search may do: sizes of groups, budgets, repeats. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isqrt

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

MODES = {
    "communication": {},
    "training": {},
    # one node alone tells, and no link is part of the test
    "diagnostics": {"min_size": 1, "links": "seen"},
}
LINKS = ("auto", "all", "seen")


@dataclass(frozen=True)
class Options:
    """Sizes and budgets count nodes or tests; None is no bound of the caller's own."""

    min_size: int = 2  # the smallest group the test can run in; 1: a node can be judged alone
    max_size: int | None = None  # the largest group that may be asked for
    sizes: tuple[int, ...] | None = None  # the only group sizes the test can run in
    group_size: int | None = None  # of the first groups; about the root of the number of nodes when None
    max_tests: int | None = None  # of all kinds of outcome, those of earlier attempts included
    max_node_tests: int | None = None  # sum of the sizes of all groups
    max_nodes: int | None = None  # in running tests at once
    repeats: int = 2  # failing tests before a node or a pair is called bad
    partners: int = 2  # different known-good nodes a node must have failed against
    flaky_runs: int = 4  # small tests per node to catch a fault that comes and goes
    error_retries: int = 1  # of a test whose outcome says nothing about its nodes
    # all: every pair of good nodes is to be seen to work, which takes very many tests when they do not fit in a group;
    # seen: only the links of failing groups are looked at; auto: all if most nodes fit in one group, else seen
    links: str = "auto"

    def fit(self, size: int) -> int | None:
        """The smallest allowed group size from `size` on, if any."""
        if self.sizes is not None:
            return min((allowed for allowed in self.sizes if allowed >= size and allowed <= self.cap), default=None)
        return max(size, self.min_size) if max(size, self.min_size) <= self.cap else None

    def fill(self, size: int) -> int:
        """The largest allowed group size up to `size`; 0 when there is none."""
        size = min(size, self.cap)
        if self.sizes is not None:
            return max((allowed for allowed in self.sizes if allowed <= size), default=0)
        return size if size >= self.min_size else 0

    def all_links(self, nodes: int) -> bool:
        return self.links == "all" or (self.links == "auto" and self.fill(nodes) > nodes // 2)

    @property
    def cap(self) -> int:
        return min(bound for bound in (self.max_size, self.max_nodes, 1 << 30) if bound is not None)

    @property
    def alone(self) -> bool:
        return self.fit(1) == 1

    @property
    def small(self) -> int:
        """The size of the group that judges one node."""
        return self.fit(1 if self.alone else 2) or 0


def group_size(nodes: int, options: Options) -> int:
    """Of the first groups: about the root of the number of nodes, so as many groups as a group has nodes."""
    if options.alone and not options.group_size:
        return 1
    root = isqrt(max(nodes - 1, 0)) + 1
    return options.fill(options.group_size or max(root, options.small)) or options.small


def read(given: Options | dict | None) -> Options:
    """Options from a map with the fields of Options and `mode` (communication, training or diagnostics), which sets
    defaults. Keys that are None count as not given. InvalidDocument with every problem."""
    if isinstance(given, Options):
        return given
    values = {key: value for key, value in (given or {}).items() if value is not None}
    problems: list[Problem] = []

    def wrong(key: str, message: str, hint: str = "") -> None:
        problems.append(Problem("isolation", message, path=f"options.{key}", hint=hint))

    mode = values.pop("mode", "communication")
    if mode not in MODES:
        wrong("mode", f"is {mode!r}", nearest(mode, MODES))
    known = [field.name for field in fields(Options)]
    for key, value in values.items():
        if key not in known:
            wrong(key, "there is no such option", nearest(key, [*known, "mode"]))
        elif key == "links":
            if value not in LINKS:
                wrong(key, f"is {value!r}", nearest(value, LINKS))
        elif key == "sizes":
            if not isinstance(value, (list, tuple)) or not value or not all(_whole(item, 1) for item in value):
                wrong(key, f"is {value!r}, not a list of group sizes", "such as [2, 4, 8]")
        elif not _whole(value, least := _LEAST.get(key, 1)):
            wrong(key, f"is {value!r}, not a whole number from {least} on")
    if problems:
        raise InvalidDocument(problems)
    values = {**MODES[mode], **values}
    if "sizes" in values:
        values["sizes"] = tuple(sorted(set(values["sizes"])))
    options = Options(**values)
    if not options.small:
        least = min(options.sizes or (max(options.min_size, 2),))
        wrong("max_nodes" if options.max_nodes else "max_size", f"leaves no room for a group of {least} nodes",
              f"{least} or more: the smallest group of this test")  # fmt: skip
        raise InvalidDocument(problems)
    return options


_LEAST = {"max_tests": 0, "max_node_tests": 0, "error_retries": 0, "flaky_runs": 0, "partners": 1, "repeats": 1,
          "group_size": 2}  # fmt: skip


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
