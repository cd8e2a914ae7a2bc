# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node is it? The next group tests to run, or the verdict, from all results so far. Pure.

Ask again after every single result: a group may start as soon as its nodes are free. Nothing is kept between two
calls, so a run that was killed goes on by handing in the results that it has stored.

    from ...certification.isolation import plan

    nodes = [{"name": "gpu-0001", "domain": "rack-1"}, {"name": "gpu-0002", "domain": "rack-1"}, ...]
    results, running = stored_results(), []
    while True:
        step = plan.advance(nodes, results, {"max_tests": 200, "max_nodes": 64}, busy=[t["group"] for t in running])
        if step["verdict"]:
            break
        for test in step["tests"]:
            start(test)                  # {group: [names], repeat, round, purpose, about: [names]}
            running.append(test)
        test, outcome = wait_for_any(running)
        running.remove(test)
        results.append({**test, "outcome": outcome, "signature": "busbw 41.2 < 300 GB/s"})

>>> done = [{"group": ["a", "b"], "outcome": "pass"}, {"group": ["c", "d"], "outcome": "fail"}]
>>> step = advance(["a", "b", "c", "d"], done)
>>> [(test["group"], test["purpose"], test["about"]) for test in step["tests"]]
[(['a', 'c'], 'isolate', ['c']), (['b', 'd'], 'isolate', ['d'])]
>>> done += [{"group": ["a", "c"], "outcome": "pass"}, {"group": ["b", "d"], "outcome": "fail"}]
>>> step = advance(["a", "b", "c", "d"], done)
>>> [(test["group"], test["purpose"]) for test in step["tests"]]
[(['a', 'd'], 'confirm')]
>>> done += [{"group": ["a", "d"], "outcome": "fail"}]
>>> step = advance(["a", "b", "c", "d"], done)
>>> [(test["group"], test["purpose"]) for test in step["tests"]]  # d is bad; do the others work all together?
[(['a', 'b', 'c'], 'together')]
>>> done += [{"group": ["a", "b", "c"], "outcome": "pass"}]
>>> verdict = advance(["a", "b", "c", "d"], done)["verdict"]
>>> [item["node"] for item in verdict["bad"]], verdict["cleared"], verdict["green"]
(['d'], ['a', 'b', 'c'], False)
"""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import (
    closing,
    links,
    screen,
    suspects,
    verdict,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import fleet as fleets
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import options as settings
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.board import Board
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import Judgement
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.state import State


def advance(
    nodes: Iterable[str | dict],
    results: Iterable[dict],
    options: settings.Options | dict | None = None,
    busy: Iterable[list[str]] = (),
) -> dict:
    """{tests, verdict, progress}. Tests may all start now; no tests and no verdict: wait for a running one.

    test: {group: [names], repeat, round, purpose, about: [names]}. purpose: screen (a first group), isolate or confirm
    (the nodes in `about` next to known-good ones), mates, domain or prove (is it the node, its domain, its partner?),
    link (which two of a failing group?), repeat (does the fault come back?), together (all good nodes at last).

    nodes: names or {name, domain}. results: {group: [names], outcome, repeat?, round?, signature?, suspects?: [names],
    id?}, of every test so far, in any order; the outcomes are those of state.OUTCOMES, and only pass, fail, hang and
    crash say anything about a node. options: see options.Options. busy: the groups of running tests.
    verdict, see verdict.report: None until nothing is left to test. progress: the same, as far as it is known now.
    Raises InvalidDocument.
    """
    fleet = fleets.read(nodes)
    state = State(fleet, settings.read(options), results, busy)
    judge, board = Judgement(state), Board(state)
    due = screen.ask(board, judge)
    links.follow(board, judge)
    suspects.ask(board, judge, due)
    idle = not board.tests and not state.running
    if idle and state.options.all_links(len(fleet)):
        closing.ask(board, judge)
    over = idle and not board.tests
    report = verdict.report(judge, exhausted=board.denied)
    return {"tests": board.tests, "verdict": report if over else None, "progress": report}
