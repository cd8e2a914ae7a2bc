# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of failed groups, each tested next to known-good ones. Pure."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.board import Board
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import (
    RELATION_TESTS,
    UNTESTABLE,
    Judgement,
    mask_of,
    union,
)

# up to so many nodes every pair is tried in search of two that work
EVERY_PAIR = 8
# among more nodes, so many small tests per node while not one node is known to be good
BLIND_TESTS = 2


def ask(board: Board, judge: Judgement, due: int) -> None:
    """Asks for the suspects' tests; `due`: nodes that wait for their first group."""
    state = judge.state
    suspects = judge.fleet.all & ~(state.cleared | judge.bad_mask | due)
    hinted = suspects & state.hinted
    rest = []
    # those that failed once are closest to an answer; then those that a failed test's log names
    order = sorted(bits(suspects), key=lambda node: (not judge.against(node), not hinted >> node & 1, node))
    for node in order:
        if not judge.silent(node) and board.free >> node & 1 and not _ask_one(board, judge, node):
            rest.append(node)
    _ask_company(board, judge, rest, due)


def company(judge: Judgement, node: int, free: int, number: int, relation: str | None = None) -> int:
    """So many known-good nodes to test a node with; 0 when there are too few that are free and not yet tried.

    Those of other domains come first, so that the test leaves through the NICs; after a failure those that are
    seen to work in that relation, and of yet another domain.
    """
    state, fleet = judge.state, judge.fleet
    tried = union(group for group in judge.small if group >> node & 1)
    pool = judge.good & free & ~judge.conflicts(node) & ~(1 << node)
    inside, across = pool & fleet.mates[node], pool & ~fleet.mates[node]
    if relation == "across":
        seen = union(fleet.mates[other] for other in bits(tried))
        tiers = [across & state.across & ~seen, across & state.across, across & ~seen, across]
    elif relation == "inside":
        tiers = [inside & state.inside, inside]
    elif tried:
        seen = union(fleet.mates[other] for other in bits(tried))
        sure = state.twice & ~judge.paired
        tiers = [across & state.across & ~seen & sure, across & state.across & sure, inside & state.inside & sure]
        tiers += [tier & state.proven(way) for tier, way in ((across, "across"), (inside, "inside"))]
        # against nodes that never worked towards others themselves only a few times
        tiers += [across & ~seen, across] if len(judge.against(node)) < RELATION_TESTS and not judge.no_fabric else []
    else:
        tiers = [across, inside]
    chosen = 0
    for tier in [*(tier & ~tried for tier in tiers), *(tiers if number > 1 else ())]:
        while chosen.bit_count() < number and (tier := tier & ~chosen):
            # from the node's own number on: not the same helpers for everyone
            later = tier >> node << node or tier
            chosen |= later & -later
    group = chosen | 1 << node
    usable = chosen.bit_count() == number and group not in state.fails and not state.gave_up(group)
    return chosen if usable else 0


def _ask_one(board: Board, judge: Judgement, node: int) -> bool:
    """False when a partner is missing."""
    if judge.options.alone:
        failed_alone = judge.state.fails.get(1 << node, 0)
        if failed_alone >= judge.options.repeats:
            return True
        return board.ask(1 << node, "confirm" if failed_alone else "isolate")
    number = judge.options.small - 1
    failed = judge.against(node)
    often = bool(failed) and judge.enough(node, failed)
    if often and (mates := judge.mates_due(node)):
        if mates != UNTESTABLE:
            _ask_mates(board, judge, node)
        return True
    others = company(judge, node, board.free, number)
    if often and not (others and judge.strong(node, others | 1 << node)):
        return _prove_partner(board, judge, failed[0] & ~(1 << node))
    return bool(others) and board.ask(others | 1 << node, "confirm" if failed else "isolate", 1 << node)


def _ask_mates(board: Board, judge: Judgement, node: int) -> None:
    """A test inside the node's domain, with mates that passed there if there are any."""
    number = judge.options.small - 1
    mates = judge.answering(node) & board.free & ~union(group for group in judge.small if group >> node & 1)
    classes = (judge.state.inside & ~judge.bad_mask, ~judge.state.inside & ~judge.bad_mask, judge.bad_mask)
    order = [mate for kind in classes for mate in bits(mates & kind)]
    if len(order) >= number:
        board.ask(1 << node | mask_of(order[:number]), "mates", 1 << node)


def _prove_partner(board: Board, judge: Judgement, partners: int) -> bool:
    """A test between good nodes of different domains, when none has been seen to work yet."""
    if judge.no_fabric:
        return False
    for partner in bits(partners & board.free):
        others = company(judge, partner, board.free, judge.options.small - 1, "across")
        if others and board.ask(others | 1 << partner, "prove", 1 << partner):
            return True
    return False


def _ask_company(board: Board, judge: Judgement, nodes: list[int], due: int) -> None:
    """Suspects with each other, when the known-good nodes do not suffice: those that pass are known-good at once."""
    state, size = judge.state, judge.options.small
    blind = judge.good.bit_count() < size - 1 or not judge.good
    if judge.options.alone or (blind and (due or state.running)) or not (state.passes or state.fails):
        return
    most = 1 if not blind else len(judge.fleet) if len(judge.fleet) <= EVERY_PAIR else BLIND_TESTS
    small = [group for group in (*state.fails, *state.silent) if group.bit_count() <= size]
    among = [group for group in small if (group & ~state.cleared).bit_count() > 1]
    count = {node: sum(group >> node & 1 for group in among) for node in nodes}
    waiting = [node for node in nodes if count[node] < most]
    while len(waiting) >= size:
        first = waiting.pop(0)
        for start in range(len(waiting) - size + 2):
            group = 1 << first | union(1 << node for node in waiting[start : start + size - 1])
            if not state.runs(group):
                if board.ask(group, "isolate"):
                    del waiting[start : start + size - 1]
                break
