# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last test: all good nodes together, so that every pair of them is seen to work. Pure."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.board import Board
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import Judgement, union
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.links import RELATION_TESTS


def open_pairs(judge: Judgement, nodes: int) -> dict[int, int]:
    """Per node of a group those it was never seen to work with, but for those known to fail with it."""
    pairs = {}
    for node in bits(nodes):
        missing = nodes & ~judge.state.cover[node] & ~(1 << node)
        if missing and (missing := missing & ~judge.conflicts(node)):
            pairs[node] = missing
    return pairs


def ask(board: Board, judge: Judgement) -> None:
    """Asks for the largest group that has an open pair and no two nodes that are known to fail together.

    Nodes of failing groups that led nowhere come last: they would spoil the answer for the others.
    """
    vague = union(group for group, why in judge.settled.items() if why != "unseparated")
    for nodes in (judge.good & ~vague, judge.good):
        pairs = open_pairs(judge, nodes)
        if not pairs or _apart(judge):
            continue
        group = _largest(judge, nodes, pairs)
        if group and group not in judge.state.fails and not judge.state.gave_up(group):
            board.ask(group, "together")
            return


def _largest(judge: Judgement, nodes: int, pairs: dict[int, int]) -> int:
    """0 when no allowed size fits."""
    options = judge.options
    first = max(pairs, key=lambda node: (pairs[node].bit_count(), -node))
    group, against = 1 << first, judge.conflicts(first)
    most = options.fill(nodes.bit_count())
    for pool in (pairs[first], nodes & ~pairs[first]):
        for node in bits(pool & ~group):
            if group.bit_count() < most and not against >> node & 1:
                group |= 1 << node
                against |= judge.conflicts(node)
    size = options.fill(group.bit_count())
    return group if size == group.bit_count() else _trim(group, first, pairs[first], size)


def _apart(judge: Judgement) -> bool:
    """Nobody works towards another domain, however often it was tried: there is nothing left to put together."""
    tried = sum(judge.fleet.spans(group) for group in judge.small)
    return len(judge.fleet.blocks) > 1 and not judge.state.across and tried >= 2 * RELATION_TESTS


def _trim(group: int, first: int, wanted: int, size: int) -> int:
    """So many of a group's nodes, the first and those it needs before others."""
    chosen = 1 << first
    for pool in (group & wanted, group):
        for node in bits(pool & ~chosen):
            if chosen.bit_count() < size:
                chosen |= 1 << node
    return chosen if size > 1 else 0
