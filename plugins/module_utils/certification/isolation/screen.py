# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first groups: every node once, a group within one domain where it can be. Pure."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.board import Board
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import Fleet, bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import Judgement, mask_of
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.options import Options, group_size


def chunks(fleet: Fleet, options: Options) -> list[int]:
    """Disjoint groups of allowed sizes. Nodes that fit in none are left out: they need known-good company."""
    size = group_size(len(fleet), options)
    groups, rest = [], []
    for block in fleet.blocks:
        rest += cut(bits(block), size, options, groups)
    cut(sorted(rest), size, options, groups)
    return groups


def cut(nodes: list[int], size: int, options: Options, groups: list[int]) -> list[int]:
    """Even pieces where sizes are free, else the largest allowed ones; returns what is left over."""
    count = min(ceil(len(nodes) / size), len(nodes) // options.small)
    if count and options.sizes is None and ceil(len(nodes) / count) <= options.cap:
        bounds = [len(nodes) * piece // count for piece in range(count + 1)]
        groups += [mask_of(nodes[low:high]) for low, high in pairwise(bounds)]
        return []
    while (piece := options.fill(min(size, len(nodes)))) and nodes:
        groups.append(mask_of(nodes[:piece]))
        nodes = nodes[piece:]
    return nodes


def probed(judge: Judgement) -> int:
    """Nodes whose first group is over: it failed, or never gave an answer."""
    state, most = judge.state, 2 * judge.group_size
    nodes = 0
    for group in [*state.fails, *filter(state.gave_up, state.silent)]:
        if group.bit_count() <= most:
            nodes |= group
    return nodes


def ask(board: Board, judge: Judgement) -> int:
    """Asks for the first groups that are still due; returns the nodes that wait for theirs."""
    state, options = judge.state, judge.options
    done, due = state.cleared | probed(judge), 0
    for chunk in chunks(judge.fleet, options):
        if pending := chunk & ~done:
            due |= pending
            size = pending.bit_count()
            board.ask(pending if size >= options.small and options.fill(size) == size else chunk, "screen", pending)
    return due
