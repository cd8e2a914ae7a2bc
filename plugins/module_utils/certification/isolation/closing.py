# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last test: all good nodes together, so that every pair of them is seen to work. Pure."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.board import Board
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import (
    Judgement,
    mask_of,
    union,
)


def open_pairs(judge: Judgement, nodes: int) -> dict[int, int]:
    """Per node of a group those it was never seen to work with, but for those known to fail with it."""
    pairs = {}
    for node in bits(nodes):
        missing = nodes & ~judge.state.cover[node] & ~(1 << node)
        if missing and (missing := missing & ~judge.conflicts(node)):
            pairs[node] = missing
    return pairs


def ask(board: Board, judge: Judgement) -> None:
    """Asks for the largest groups that have an open pair and no two nodes that are known to fail together.

    Nodes of failing groups that led nowhere come last: they would spoil the answer for the others.
    """
    vague = union(group for group, why in judge.settled.items() if why != "unseparated")
    for nodes in (judge.good & ~vague, judge.good):
        while not judge.no_fabric and (pairs := open_pairs(judge, nodes & board.free)):
            group = _largest(judge, nodes & board.free, pairs)
            if not group or group in judge.state.fails or judge.state.gave_up(group):
                break
            if not board.ask(group, "together"):
                return
        if board.tests:
            return


def _largest(judge: Judgement, nodes: int, pairs: dict[int, int]) -> int:
    """0 when no allowed size fits."""
    options = judge.options
    first = max(pairs, key=lambda node: (pairs[node].bit_count(), -node))
    chosen, against = [first], judge.conflicts(first)
    most = options.fill(nodes.bit_count())
    pool = nodes & ~(1 << first)
    if most < nodes.bit_count():
        return _dense(judge, pool & ~against, pairs, first, most)
    for part in (pairs[first], pool & ~pairs[first]):
        for node in bits(part):
            if not against >> node & 1:
                chosen.append(node)
                against |= judge.conflicts(node)
    return mask_of(chosen[: options.fill(len(chosen))]) if options.fill(len(chosen)) > 1 else 0


def _dense(judge: Judgement, pool: int, pairs: dict[int, int], first: int, most: int) -> int:
    """A group of bounded size with many open pairs: one after the other the node with most of them in the group."""
    group = 1 << first
    while pool and group.bit_count() < most:
        node = max(bits(pool), key=lambda node: ((pairs.get(node, 0) & group).bit_count(), -node))
        group |= 1 << node
        pool &= ~(1 << node) & ~judge.conflicts(node)
    return group if group.bit_count() == most else 0
