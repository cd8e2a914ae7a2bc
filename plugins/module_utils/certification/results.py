# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results document of a certification: what reports, gates and pipelines read. Pure.

    name, status        "nightly", pass | pass_unbounded | fail | incomplete
    started, finished   times as text, or None
    categories          [{name, test, counts: {outcome: nodes}, bounds: [text]}]
    nodes               [{node, verdict, mayOpenGate, attribution, reasons}], every node that was asked for
    rows                [{node, category, test, outcome, code, reasons, attribution, metrics: {name: {value, unit}},
                        boundsUsed, violations, notMeasured, warnings, runs: [ids]}], one for each node and category
    isolation           {category: what the search found, see isolation.verdict.report}
    plots               {sizes: […], nodes: […]}, see charts
    counts              {nodes: {verdict: number}, rows: {outcome: number}, mayOpenGate: number}
    notes               [text]
    unstarted           [{run, nodes, why}] of tests that the cluster did not take, added by the session
    identity, evidence  digest of the spec and the nodes, and of the sealed evidence, where they are known

status: fail where a node failed or hangs, or a search found a fault; pass where every node passed every test and no
search has anything open; pass_unbounded where some of them passed for want of a bound; else incomplete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.certification import charts
from ansible_collections.goodput.fleet.plugins.module_utils.certification.findings import (
    FAIL,
    HANG,
    ORDER,
    PASS,
    UNBOUNDED,
)

INCOMPLETE = "incomplete"
# what a search can find wrong
FAULTS = ("bad", "badPairs", "badDomains", "flaky", "unexplained")
_DETAILS = ("metrics", "boundsUsed", "violations", "notMeasured", "warnings")


def build(
    name: str,
    rows: Iterable[Mapping],
    verdicts: Iterable[Mapping],
    categories: Iterable[Mapping] = (),
    runs: Iterable[tuple[Mapping, Mapping | None]] = (),
    isolation: Mapping[str, Mapping] | None = None,
    started: str | None = None,
    finished: str | None = None,
    notes: Iterable[str] = (),
) -> dict:
    """The document. rows and verdicts: of `verdict.outcomes` and `verdict.combine`, and in its order. categories: as
    planned, [{name, test}]; runs: (Run, what its parser read), for the plots."""
    measured: dict[tuple[str, str], list[Mapping]] = {}
    for row in rows:
        measured.setdefault((row["node"], row["category"]), []).append(row)
    verdicts, isolation = list(verdicts), dict(isolation or {})
    shown = [
        _row(one["node"], test, measured.get((one["node"], test["category"]), []))
        for one in verdicts
        for test in one["tests"]
    ]
    listed = [_category(category, shown) for category in _names(categories, shown)]
    return {
        "name": name,
        "status": _status(verdicts, isolation),
        "started": started,
        "finished": finished,
        "categories": listed,
        "nodes": [
            {key: one.get(key) for key in ("node", "verdict", "mayOpenGate", "attribution", "reasons")}
            for one in verdicts
        ],
        "rows": shown,
        "isolation": isolation,
        "plots": {"sizes": charts.by_size(runs), "nodes": charts.by_node(shown)},
        "counts": {
            "nodes": _counted(one["verdict"] for one in verdicts),
            "rows": _counted(row["outcome"] for row in shown),
            "mayOpenGate": sum(bool(one["mayOpenGate"]) for one in verdicts),
        },
        "notes": list(dict.fromkeys(notes)),
    }


def _row(node: str, test: Mapping, rows: Sequence[Mapping]) -> dict:
    """A node's verdict in a category, with what was measured in the run that decided it."""
    counted = [row for row in rows if row["run"] in test["runs"]]
    decisive = [row for row in counted if row["outcome"] == test["outcome"]] or counted
    details = decisive[-1] if decisive else {}
    return {
        "node": node,
        **{key: test.get(key) for key in ("category", "test", "outcome", "code", "attribution")},
        "reasons": list(test["reasons"]),
        "runs": list(dict.fromkeys(test["runs"])),
        **{key: details.get(key) or ({} if key == "metrics" else []) for key in _DETAILS},
    }


def _names(categories: Iterable[Mapping], rows: Iterable[Mapping]) -> list[dict]:
    known = {each["name"]: {"name": each["name"], "test": each.get("test", "")} for each in categories}
    for row in rows:
        known.setdefault(row["category"], {"name": row["category"], "test": row["test"]})
    return list(known.values())


def _category(category: Mapping, rows: Iterable[Mapping]) -> dict:
    mine = [row for row in rows if row["category"] == category["name"]]
    bounds = dict.fromkeys(bound_text(bound) for row in mine for bound in row["boundsUsed"])
    return {**category, "counts": _counted(row["outcome"] for row in mine), "bounds": list(bounds)}


def bound_text(bound: Mapping) -> str:
    """`busBandwidthGBps: value >= 300 (at 1073741824 bytes, across domains)`."""
    about = [f"at {bound['size']} bytes"] if bound.get("size") is not None else []
    about += (
        [{"domain": "in one domain", "cross": "across domains"}.get(bound["scope"], "")] if bound.get("scope") else []
    )
    about += [bound["accelerator"]] if bound.get("accelerator") else []
    return f"{bound['metric']}: {bound['expression']}" + (f" ({', '.join(about)})" if about else "")


def _status(verdicts: Sequence[Mapping], isolation: Mapping[str, Mapping]) -> str:
    outcomes = {one["verdict"] for one in verdicts}
    if outcomes & {FAIL, HANG} or any(found.get(kind) for found in isolation.values() for kind in FAULTS):
        return FAIL
    open_ends = any(found.get("green") is False for found in isolation.values())
    if not outcomes or outcomes - {PASS, UNBOUNDED} or open_ends:
        return INCOMPLETE
    return UNBOUNDED if UNBOUNDED in outcomes else PASS


def _counted(outcomes: Iterable[str]) -> dict[str, int]:
    """From the worst to the best."""
    counts = Counter(outcomes)
    return {outcome: counts[outcome] for outcome in ORDER if counts[outcome]}
