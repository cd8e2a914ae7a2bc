# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is worth a plot: bandwidth by message size, and a metric over the nodes with those that stand out. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

# where a run has something for each size, and what it is called; the first that is there
PER_SIZE = (
    ("busbw", "bus bandwidth", "GB/s"),
    ("average", "average", ""),
    ("typical", "latency", "us"),
)
SERIES = 6  # groups that are drawn by themselves
METRICS = 3  # per category
NODES = 3  # fewer are no distribution
# a value stands out beyond so many standard deviations, as the median absolute deviation estimates them
DEVIATIONS = 3.5
SCALE = 1.4826
# and no less than this part of the median: equal nodes are never exactly equal
LEAST = 0.02


def by_size(runs: Iterable[tuple[Mapping, Mapping | None]]) -> list[dict]:
    """Per category of (Run, what its parser read):

    [{category, value: what is drawn, unit, rows: [{size in bytes, low, median, high, groups}], series: [{name,
    standsOut: bool, points: [[size, value]]}]}]. Series are the slowest groups, by their shares of the median.
    """
    found: dict[tuple[str, str, str], dict[str, dict[int, float]]] = {}
    for run, parsed in runs:
        for part in (parsed or {}).get("runs") or ():
            value, unit, points = _points(part)
            if len(points) < 2:
                continue
            for category in run.get("categories") or [run["category"]]:
                groups = found.setdefault((category, value, unit), {})
                groups[_name(run, groups)] = points
    return [_sizes(*about, groups) for about, groups in found.items()]


def _points(part: Mapping) -> tuple[str, str, dict[int, float]]:
    rows = part.get("sizes") if "sizes" in part else part.get("rows")
    rows = [row for row in rows or () if isinstance(row, Mapping) and _number(row.get("size"))]
    for key, value, unit in PER_SIZE:
        points = {row["size"]: row[key] for row in rows if _number(row.get(key))}
        if points:
            return value, unit or str((part.get("units") or {}).get(key) or ""), points
    return "", "", {}


def _name(run: Mapping, taken: Mapping) -> str:
    nodes = run["nodes"]
    name = ", ".join(nodes) if len(nodes) < 3 else f"{nodes[0]}, {nodes[1]} and {len(nodes) - 2} more"
    return name if name not in taken else f"{name} ({run['id']})"


def _sizes(category: str, value: str, unit: str, groups: Mapping[str, Mapping[int, float]]) -> dict:
    rows, middle = [], {}
    for size in sorted({size for points in groups.values() for size in points}):
        values = [points[size] for points in groups.values() if size in points]
        middle[size] = statistics.median(values)
        rows.append(
            {"size": size, "low": min(values), "median": middle[size], "high": max(values), "groups": len(values)}
        )
    share = {
        name: statistics.median(points[size] / middle[size] if middle[size] else 1 for size in points)
        for name, points in groups.items()
    }
    slower = value == "latency"
    chosen = sorted(share, key=lambda name: (-share[name] if slower else share[name], name))[:SERIES]
    series = [
        {
            "name": name,
            "standsOut": bool(share[name] > 1.1 if slower else share[name] < 0.9),
            "points": [[size, groups[name][size]] for size in sorted(groups[name])],
        }
        for name in chosen
    ]
    return {"category": category, "value": value, "unit": unit, "rows": rows, "series": series}


def by_node(rows: Iterable[Mapping]) -> list[dict]:
    """Per category and metric of the results' rows, those with a bound first:

    [{category, metric, unit, median, mad, limits: [number], values: [[node, value]] from low to high, outliers: [{node,
    value, why: bound | spread}]}].
    """
    found: dict[str, list[Mapping]] = {}
    for row in rows:
        found.setdefault(row["category"], []).append(row)
    return [
        plot
        for category, mine in found.items()
        for metric in _metrics(mine)
        if (plot := _distribution(category, metric, mine))
    ]


def _metrics(rows: Iterable[Mapping]) -> list[str]:
    rows = list(rows)
    bounded = [bound["metric"] for row in rows for bound in row["boundsUsed"]]
    return list(dict.fromkeys([*bounded, *(name for row in rows for name in row["metrics"])]))[:METRICS]


def _distribution(category: str, metric: str, rows: Sequence[Mapping]) -> dict | None:
    values, unit = {}, ""
    broken, limits = set(), set()
    for row in rows:
        measured = row["metrics"].get(metric)
        given = measured.get("value") if isinstance(measured, Mapping) else measured
        uses = [bound for bound in row["boundsUsed"] if bound["metric"] == metric]
        if not _number(given):  # the test may have a name of its own for what the parser calls otherwise
            given = next((bound["value"] for bound in uses if _number(bound.get("value"))), None)
        if not _number(given):
            continue
        values[row["node"]] = given
        unit = unit or str((measured or {}).get("unit") or "" if isinstance(measured, Mapping) else "")
        for bound in uses:
            unit = unit or str(bound.get("unit") or "")
            if bound.get("size") is None:
                limits |= {one["bound"] for one in bound.get("limits") or () if _number(one.get("bound"))}
            if bound.get("holds") is False:
                broken.add(row["node"])
    alike = len(set(values.values())) == 1 and not any(
        bound["metric"] == metric for row in rows for bound in row["boundsUsed"]
    )
    if len(values) < NODES or alike:
        return None
    median = statistics.median(values.values())
    mad = statistics.median(abs(value - median) for value in values.values())
    far = max(DEVIATIONS * SCALE * mad, LEAST * abs(median))
    ordered = sorted(values.items(), key=lambda entry: (entry[1], entry[0]))
    return {
        "category": category,
        "metric": metric,
        "unit": unit,
        "median": median,
        "mad": round(mad, 6),
        "limits": sorted(limits)[:4],
        "values": [[node, value] for node, value in ordered],
        "outliers": [
            {"node": node, "value": value, "why": "bound" if node in broken else "spread"}
            for node, value in ordered
            if node in broken or abs(value - median) > far
        ],
    }


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
