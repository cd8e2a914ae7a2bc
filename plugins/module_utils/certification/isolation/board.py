# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests that can start now, within the budgets. Pure."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.state import State

# an end for a search without a budget of its own, far above what one needs
TESTS_PER_NODE = 16
TESTS_AT_LEAST = 64


def ceiling(nodes: int) -> int:
    """The most tests a search over so many nodes ever asks for."""
    return TESTS_PER_NODE * nodes + TESTS_AT_LEAST


class Board:
    """`free`: nodes in no running and no chosen test. `denied`: a test was refused for want of budget."""

    def __init__(self, state: State):
        options, running = state.options, state.running
        self.state = state
        self.free = state.fleet.all & ~state.busy
        self.tests: list[dict] = []
        self.denied = False
        most = ceiling(len(state.fleet)) if options.max_tests is None else options.max_tests
        self._tests = most - state.tests - len(running)
        self._node_tests = _left(options.max_node_tests, state.node_tests + sum(map(int.bit_count, running)))
        self._nodes = _left(options.max_nodes, state.busy.bit_count())

    def ask(self, group: int, purpose: str, about: int = 0) -> bool:
        """Chooses a test if its nodes are free and the budgets allow it. `about`: the nodes it is to judge."""
        size = group.bit_count()
        if group & ~self.free or size > self._nodes or self._worn(group):
            return False
        if self._tests < 1 or size > self._node_tests:
            self.denied = True
            return False
        self.free &= ~group
        self._tests -= 1
        self._node_tests -= size
        self._nodes -= size
        names = self.state.fleet.members
        self.tests.append(
            {
                "group": names(group),
                "repeat": self.state.runs(group) + 1,
                "round": self.state.round_of(group),
                "purpose": purpose,
                "about": names(about or group),
            }
        )
        return True

    def _worn(self, group: int) -> bool:
        """The very same group ran so often that once more would tell nothing new: what makes every search end."""
        options = self.state.options
        most = options.repeats + options.flaky_runs + options.error_retries
        return self.state.gave_up(group) or self.state.runs(group) > most


def _left(bound: int | None, used: int) -> float:
    return float("inf") if bound is None else bound - used
