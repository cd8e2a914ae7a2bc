"""Two other ways to find the bad nodes, to hold ours against: plain halving, and the published screen-and-bisect.

Each returns (rounds, node_tests, named): all groups of a round run at once and take equal time; node_tests is the sum
of group sizes. A group fails when it has a bad node.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt

Fails = Callable[[list[int]], bool]


def halving(nodes: list[int], fails: Fails) -> tuple[int, int, set[int]]:
    """Everything, then both halves of each failing group, down to single nodes."""
    rounds, cost, named = 0, 0, set()
    groups = [nodes]
    while groups:
        rounds += 1
        cost += sum(map(len, groups))
        failing = [group for group in groups if fails(group)]
        named |= {group[0] for group in failing if len(group) == 1}
        groups = [half for group in failing if len(group) > 1 for half in _halves(group)]
    return rounds, cost, named


def reference(nodes: list[int], fails: Fails, smallest: int = 2) -> tuple[int, int, set[int]]:
    """The published diagnosis, round by round with a barrier after each.

    Screening in groups of the root of n; one test of the first healthy node of each passing group; halving of failing
    groups down to `smallest`, whose nodes become suspects; where both halves of a failing group pass, the two mixed
    halves; then each suspect once with a healthy node, whereby a node is in one group at a time.
    """
    size = max(2, ceil(sqrt(len(nodes))))
    screens = [nodes[start : start + size] for start in range(0, len(nodes), size)]
    failing = [group for group in screens if fails(group)]
    healthy = [node for group in screens if group not in failing for node in group]
    rounds, cost = 1, len(nodes)
    first = [group[0] for group in screens if group not in failing]
    if len(first) > 1:
        rounds, cost = rounds + 1, cost + len(first)
    suspects = [node for group in failing if len(group) <= smallest for node in group]
    failing = [group for group in failing if len(group) > smallest]
    while failing:
        halves = [_halves(group) for group in failing]
        rounds, cost = rounds + 1, cost + sum(map(len, failing))
        mixed = [
            mix for a, b in halves if not fails(a) and not fails(b) for mix in zip(_halves(a), _halves(b), strict=True)
        ]
        if mixed:
            rounds, cost = rounds + 1, cost + sum(len(one) + len(other) for one, other in mixed)
        failing = []
        for half in (half for pair in halves for half in pair):
            if not fails(half):
                healthy += half
            elif len(half) <= smallest:
                suspects += half
            else:
                failing.append(half)
    named = set()
    waiting = [(node, healthy[number % len(healthy)]) for number, node in enumerate(suspects)] if healthy else []
    while waiting:
        busy: set[int] = set()
        later = []
        for pair in waiting:
            if busy & set(pair):
                later.append(pair)
                continue
            busy |= set(pair)
            cost += 2
            if fails(list(pair)):
                named.add(pair[0])
        rounds, waiting = rounds + 1, later
    return rounds, cost, named if healthy else set(suspects)


def _halves(group: list[int]) -> tuple[list[int], list[int]]:
    middle = len(group) // 2
    return group[:middle], group[middle:]
