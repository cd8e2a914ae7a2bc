# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group failed, yet each of its nodes works elsewhere: which two do not work together, or was it chance? Pure.

Pairs that passed together anywhere are out of question; the rest is halved until one pair is left.
"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.board import Board
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import (
    DOMAIN_SAMPLE,
    RELATION_TESTS,
    Judgement,
    mask_of,
    union,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.screen import cut
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.suspects import company


def follow(board: Board, judge: Judgement) -> None:
    """One step for each failing group that nothing accounts for; what leads nowhere goes to `judge.settled`."""
    _ask_domains(board, judge)
    waiting: list[int] = []
    for group in judge.unfollowed():
        # a group around one that is still followed has its answer there
        if any(group & inner == inner for inner in waiting):
            continue
        if not group & judge.candidate_mask and (why := _step(board, judge, group)):
            judge.settle(group, why)
        else:
            waiting.append(group)


def _step(board: Board, judge: Judgement, group: int) -> str | None:
    """Asks for the next test, or says why there is none."""
    state, options = judge.state, judge.options
    pairs = state.unknown_pairs(group)
    if not pairs:
        return _chance(board, judge, group)
    core = mask_of(pairs)
    if core.bit_count() == 2:
        if group.bit_count() > options.small:
            return _run(board, judge, [_fill_up(judge, group, core)], core)
        if state.fails[group] < options.repeats:
            return _run(board, judge, [group], core)
        return _separate(board, judge, core)
    if judge.weight(group) < options.repeats:
        return _run(board, judge, [group], group)
    return _run(board, judge, [_fill_up(judge, group, part) for part in split(core, pairs)], core)


def split(core: int, pairs: dict[int, int]) -> list[int]:
    """Two disjoint groups with about half of the open pairs inside them; groups without such a pair are left out.

    `pairs` maps each node of `core` to those it was never seen to work with.
    """
    parts = _components(core, pairs)
    if len(parts) > 1:
        left = 0
        for part in sorted(parts, key=lambda part: (-part.bit_count(), part))[:-1]:
            if 2 * (left | part).bit_count() <= core.bit_count() or not left:
                left |= part
        halves = [left, core & ~left]
    elif sides := _sides(core, pairs):
        (a, b), (c, d) = (_halves(side) for side in sides)
        halves = [a | c, b | d]
        if not any(_has_pair(half, pairs) for half in halves):
            halves = [a | d, b | c]
    else:
        halves = list(_halves(core))
    return [half for half in halves if _has_pair(half, pairs)]


def _has_pair(group: int, pairs: dict[int, int]) -> bool:
    return any(pairs.get(node, 0) & group for node in bits(group))


def _halves(group: int) -> tuple[int, int]:
    nodes = bits(group)
    middle = (len(nodes) + 1) // 2
    return mask_of(nodes[:middle]), mask_of(nodes[middle:])


def _components(core: int, pairs: dict[int, int]) -> list[int]:
    parts = []
    while core:
        part, edge = 0, core & -core
        while edge:
            part |= edge
            edge = union(pairs[node] for node in bits(edge)) & ~part
        parts.append(part)
        core &= ~part
    return parts


def _sides(core: int, pairs: dict[int, int]) -> tuple[int, int] | None:
    """The two sides when all open pairs run between two groups that each work by themselves."""
    left, right = core & -core, 0
    edge = left
    while edge:
        reached = union(pairs[node] for node in bits(edge))
        if edge & left:
            edge, right = reached & ~right, right | reached
        else:
            edge, left = reached & ~left, left | reached
        if left & right:
            return None
    return left, right


def _fill_up(judge: Judgement, group: int, part: int) -> int:
    """A part of a failing group in an allowed size: with members, or known-good nodes, that work with all of it."""
    missing = (judge.options.fit(part.bit_count()) or 0) - part.bit_count()
    for pool in (group & ~part, judge.good & ~group):
        for node in bits(pool):
            if missing > 0 and not part & ~judge.state.cover[node]:
                part |= 1 << node
                missing -= 1
    return part if missing == 0 else 0


def _run(board: Board, judge: Judgement, groups: list[int], about: int) -> str | None:
    state = judge.state
    usable = [group for group in groups if group and state.silent.get(group, 0) <= judge.options.error_retries]
    for group in usable:
        board.ask(group, "link", about)
    return None if usable else "unanswered"


def _separate(board: Board, judge: Judgement, pair: int) -> str | None:
    """Two nodes fail together; each still has to work with another of the same relation."""
    state, number = judge.state, judge.options.small - 1
    relation = "across" if judge.fleet.spans(pair) else "inside"
    proven = state.proven(relation)
    if relation == "across" and judge.no_fabric:
        return "unseparated"
    waiting = False
    for node in bits(pair & ~proven):
        failed = [group for group in judge.against(node) if _relation(judge, group) == relation]
        if len(failed) < RELATION_TESTS and company(judge, node, judge.fleet.all, number, relation):
            waiting = True
            if others := company(judge, node, board.free, number, relation):
                board.ask(others | 1 << node, "link", 1 << node)
    return None if waiting else "unseparated"


def _relation(judge: Judgement, group: int) -> str:
    return "across" if judge.fleet.spans(group) else "inside"


def _ask_domains(board: Board, judge: Judgement) -> None:
    """A node fails towards other domains: do its mates, too?"""
    for node, domain in judge.candidates.items():
        for mate in bits(domain & judge.good)[: DOMAIN_SAMPLE - 1]:
            if not board.free >> mate & 1 or mate == node:
                continue
            if not judge.against(mate):
                others = company(judge, mate, board.free, judge.options.small - 1, "across")
                if others:
                    board.ask(others | 1 << mate, "domain", 1 << mate)


def _chance(board: Board, judge: Judgement, group: int) -> str | None:
    """Everything in the group is seen to work together: once more, and then its parts or nodes a few times each."""
    state, options = judge.state, judge.options
    passes = state.passes.get(group, 0)
    if not passes and state.fails[group] < options.repeats:
        return _run(board, judge, [group], group)
    why = "intermittent" if passes or group.bit_count() <= options.small else "together"
    if group.bit_count() > 2 * judge.group_size:
        parts: list[int] = []
        cut(bits(group), judge.group_size, options, parts)
        if due := [part for part in parts if state.runs(part) < options.flaky_runs]:
            return _run(board, judge, due, group) or _last_word(board, judge, group, why)
        return _last_word(board, judge, group, why)
    waiting = False
    for node in bits(group):
        if _small_tests(judge, node) >= options.flaky_runs + 2 * sum(inner >> node & 1 for inner in judge.small):
            continue
        waiting = _again(board, judge, node) or waiting
    return None if waiting else _last_word(board, judge, group, why)


def _last_word(board: Board, judge: Judgement, group: int, why: str) -> str | None:
    """A group that always failed so far runs a few times more: did its fault only happen to come each time?"""
    if why == "together" and judge.state.runs(group) < judge.options.flaky_runs:
        return _run(board, judge, [group], group) or why
    return why


def _small_tests(judge: Judgement, node: int) -> int:
    """Small tests of a node that count against chance, failed ones included."""
    state, small = judge.state, judge.options.small
    return sum(
        count
        for kind in (state.passes, state.fails)
        for group, count in kind.items()
        if group >> node & 1 and group.bit_count() <= small
    )


def _again(board: Board, judge: Judgement, node: int) -> bool:
    """Whether one more small test of a node is asked for or awaited."""
    state, number = judge.state, judge.options.small - 1
    if not number:
        board.ask(1 << node, "repeat", 1 << node)
        return True
    pool = judge.good & ~judge.conflicts(node) & ~(1 << node)
    # the least used company first
    groups = sorted(
        (state.runs(1 << node | 1 << other), (other - node) % len(judge.fleet), other) for other in bits(pool)
    )
    if len(groups) < number:
        return False
    free = [other for _runs, _far, other in groups if board.free >> other & 1][:number]
    if len(free) == number and board.free >> node & 1:
        board.ask(1 << node | mask_of(free), "repeat", 1 << node)
    return True
