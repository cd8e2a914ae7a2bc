"""Which node is it? Rounds and node-tests until every bad node is named, against two other ways and the least possible.

One line per fleet size and number of bad nodes, medians over the same seeded fleets. A round is all groups that run at
once when tests take equal time; node-tests are the sum of group sizes. Ours ends when each node is cleared or named,
every named one after small failing tests against two different good nodes; the test of all good nodes together, which
shows that no link is bad either and which the others do not have, is the figure `with_links`.
"""

from __future__ import annotations

import random
import sys
import time
from math import comb, log2
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import plan

from tests.bench.isolation_baselines import halving, reference

SEEDS = 20
SIZES = (64, 256, 1024)
BAD = (1, 2, 3, 4, 5)
BOUND_AT = 256
ROUNDS_BOUND = 0.5  # of the reference's, in the worst fleet
NODE_TESTS_BOUND = 1.1
ASK_BOUND = 1.0  # seconds for one question with all results of a search over 1024 nodes


def ours(count: int, bad: set[int]) -> tuple[int, int, int, int, set[int], float]:
    """(rounds, node_tests) to the names, the same with the proof of the links, the names, the slowest question."""
    nodes = [f"gpu-{number:04d}" for number in range(count)]
    results: list[dict] = []
    rounds = slowest = 0
    named = None
    while True:
        began = time.perf_counter()
        step = plan.advance(nodes, results)
        slowest = max(slowest, time.perf_counter() - began)
        found = step["progress"]
        if named is None and not found["unknown"]:
            named = (rounds, found["nodeTests"])
        if step["verdict"]:
            names = {int(item["node"][4:]) for item in found["bad"]}
            return *named, rounds, found["nodeTests"], names, slowest
        rounds += 1
        for test in step["tests"]:
            failed = any(int(name[4:]) in bad for name in test["group"])
            results.append({**test, "outcome": "fail" if failed else "pass"})


def main() -> int:
    missed, slowest = False, 0.0
    for count in SIZES:
        for number in BAD:
            mine, theirs, plain = [], [], []
            for seed in range(SEEDS):
                bad = set(random.Random(f"{count}/{number}/{seed}").sample(range(count), number))

                def fails(group: list[int], bad: set[int] = bad) -> bool:
                    return not bad.isdisjoint(group)

                run = ours(count, bad)
                others = [way(list(range(count)), fails) for way in (reference, halving)]
                if any(names != bad for names in (run[4], others[0][2], others[1][2])):
                    print(f"wrong names for {count} nodes, seed {seed}: {run[4]} {others}", file=sys.stderr)
                    return 2
                slowest = max(slowest, run[5])
                mine.append(run)
                theirs.append(others[0])
                plain.append(others[1])
            rounds = max(own[0] / other[0] for own, other in zip(mine, theirs, strict=True))
            cost = mean(own[1] for own in mine) / mean(other[1] for other in theirs)
            name, least = f"isolation_n{count}_k{number}", log2(comb(count, number))
            bound = count == BOUND_AT
            over = [bound and rounds > ROUNDS_BOUND, bound and cost > NODE_TESTS_BOUND]
            missed = missed or any(over)
            print(
                f"{name}_rounds {median(own[0] for own in mine):g} rounds {rounds:.2f}x-reference "
                f"{ROUNDS_BOUND if bound else '-'} {'MISSED' if over[0] else 'ok'} "
                f"(reference {median(own[0] for own in theirs):g}, halving {median(own[0] for own in plain):g}, "
                f"with_links {median(own[2] for own in mine):g})"
            )
            print(
                f"{name}_node_tests {mean(own[1] for own in mine):.0f} node-tests {cost:.2f}x-reference "
                f"{NODE_TESTS_BOUND if bound else '-'} {'MISSED' if over[1] else 'ok'} "
                f"(reference {mean(own[1] for own in theirs):.0f}, halving {mean(own[1] for own in plain):.0f}, "
                f"with_links {mean(own[3] for own in mine):.0f}, log2(C(n,k)) {least:.1f} tests)"
            )
    slow = slowest > ASK_BOUND
    print(f"isolation_question {slowest * 1000:.0f} ms - {ASK_BOUND * 1000:.0f} {'MISSED' if slow else 'ok'}")
    return int(missed or slow)


if __name__ == "__main__":
    sys.exit(main())
