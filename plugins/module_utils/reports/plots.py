# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plots as SVG inside the page: no script, colours by the page's style, every value escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.etree import ElementTree

from ansible_collections.goodput.fleet.plugins.module_utils.reports.junit import clean

WIDTH, HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 190, 16, 40
NAMED = 12  # labels that fit beside a plot
DRAWN = 5000  # nodes, and points of a line
_LONGEST = 26


def by_size(plot: Mapping) -> str:
    """Bandwidth by message size: the range of all groups, their median, and the slowest groups by name."""
    rows = [
        row for row in _dicts(plot, "rows")[:DRAWN] if _all(row, "low", "median", "high") and _positive(row.get("size"))
    ]
    if len(rows) < 2:
        return ""
    unit = str(plot.get("unit") or "")
    title = f"{plot.get('category')}: {plot.get('value')} by message size"
    frame = _Frame(title, [math.log2(row["size"]) for row in rows], [row["high"] for row in rows], unit)
    x = {row["size"]: frame.x(math.log2(row["size"])) for row in rows}
    upper = [(x[row["size"]], frame.y(row["high"])) for row in rows]
    lower = [(x[row["size"]], frame.y(row["low"])) for row in reversed(rows)]
    frame.add("polygon", "band", points=_points(upper + lower))
    frame.line([(x[row["size"]], frame.y(row["median"])) for row in rows], "median")
    labels = [(frame.y(rows[-1]["median"]), "median", "quiet")]
    for line in [one for one in _dicts(plot, "series") if one.get("standsOut") is True][:NAMED]:
        pairs = line.get("points") if isinstance(line.get("points"), list) else []
        points = [(x[size], frame.y(value)) for size, value in map(_pair, pairs) if size in x and _number(value)]
        if points:
            frame.line(points, "outlier")
            labels.append((points[-1][1], str(line.get("name")), "bad"))
    step = max(1, math.ceil(len(rows) / 9))
    for row in rows[::step]:
        frame.below(x[row["size"]], size_text(row["size"]))
    frame.beside(labels)
    return frame.text()


def by_node(plot: Mapping) -> str:
    """One metric over the nodes, from low to high: median, bounds, and those that stand out by name."""
    pairs = plot.get("values") if isinstance(plot.get("values"), list) else []
    values = [(str(node), value) for node, value in map(_pair, pairs) if _number(value)]
    if not values:
        return ""
    step = math.ceil(len(values) / DRAWN)
    odd = {str(one.get("node")) for one in _dicts(plot, "outliers")}
    limits = [limit for limit in plot.get("limits") or () if _number(limit)]
    title = f"{plot.get('category')}: {plot.get('metric')} of {len(values)} nodes"
    heights = [value for _node, value in values] + limits
    frame = _Frame(title, [0, max(len(values) - 1, 1)], heights, str(plot.get("unit") or ""), whole=False)
    labels = []
    for limit in limits:
        frame.line([(LEFT, frame.y(limit)), (WIDTH - RIGHT, frame.y(limit))], "limit")
        labels.append((frame.y(limit), f"bound {limit:.6g}", "quiet"))
    if _number(plot.get("median")):
        height = frame.y(plot["median"])
        frame.line([(LEFT, height), (WIDTH - RIGHT, height)], "median")
        labels.append((height, f"median {plot['median']:.6g}", "quiet"))
    named = 0
    for number, (node, value) in enumerate(values):
        if node in odd or number % step == 0:
            tone = "outlier" if node in odd else "node"
            dot = frame.add(
                "circle", tone, cx=_round(frame.x(number)), cy=_round(frame.y(value)), r="3.5" if node in odd else "2.5"
            )
            ElementTree.SubElement(dot, "title").text = clean(f"{node}: {value:.6g}")
        if node in odd and named < NAMED:
            labels.append((frame.y(value), f"{_cut(node)} {value:.4g}", "bad"))
            named += 1
    frame.below(LEFT, "lowest")
    frame.below(WIDTH - RIGHT, "highest")
    frame.beside(labels)
    return frame.text()


def size_text(size: float) -> str:
    """512M, as the tests write sizes; K is 1,024."""
    for power, unit in ((40, "T"), (30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g}{unit}"
    return f"{size:.4g}"


class _Frame:
    """Axes, and what is drawn between them."""

    def __init__(self, title: str, across: list[float], up: list[float], unit: str, whole: bool = True):
        self.root = ElementTree.Element(
            "svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "class": "plot", "aria-label": clean(title)}
        )
        self.first, self.last = min(across), max(*across, min(across) + 1e-9)
        low, high = min(0.0, *up) if whole else min(up), max(up)
        # a distribution of nearly equal values is drawn as one, not as noise
        room = max(high - low, abs(high) * 0.05, 1e-9)
        self.low, self.high = (low, low + room * 1.06) if whole else (low - room * 0.1, high + room * 0.1)
        for tick in _ticks(self.low, self.high):
            self.line([(LEFT, self.y(tick)), (WIDTH - RIGHT, self.y(tick))], "grid")
            self.label(LEFT - 8, self.y(tick) + 4, f"{tick:.6g}", "quiet", "end")
        if unit:
            self.label(8, HEIGHT - 8, unit, "quiet", "start")

    def x(self, value: float) -> float:
        return LEFT + (value - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.low) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def add(self, tag: str, tone: str, **attributes: str):
        return ElementTree.SubElement(self.root, tag, {"class": tone, **attributes})

    def line(self, points: list[tuple[float, float]], tone: str) -> None:
        self.add("polyline", tone, points=_points(points))

    def label(self, x: float, y: float, text: str, tone: str, anchor: str) -> None:
        element = self.add("text", tone, x=_round(x), y=_round(y), **{"text-anchor": anchor})
        element.text = clean(_cut(text) if tone == "bad" else text)

    def below(self, x: float, text: str) -> None:
        self.label(x, HEIGHT - BOTTOM + 18, text, "quiet", "middle")

    def beside(self, labels: list[tuple[float, str, str]]) -> None:
        """Labels at their heights, moved apart where they would cover each other."""
        labels = sorted(labels, key=lambda label: label[0])
        spots, above = [], TOP - 6.0
        for height, _text, _tone in labels:
            above = max(height, above + 14)
            spots.append(above)
        lowest = HEIGHT - 6.0
        for number in reversed(range(len(spots))):
            lowest = spots[number] = min(spots[number], lowest)
            lowest -= 14
        for (_height, text, tone), spot in zip(labels, spots, strict=True):
            self.label(WIDTH - RIGHT + 10, spot + 4, text, tone, "start")

    def text(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode")


def _ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _points(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{_round(x)},{_round(y)}" for x, y in points)


def _round(value: float) -> str:
    return f"{value:.1f}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _pair(item: object) -> tuple:
    return tuple(item) if isinstance(item, (list, tuple)) and len(item) == 2 else (None, None)


def _all(row: Mapping, *keys: str) -> bool:
    return all(_number(row.get(key)) for key in keys)


def _positive(value: object) -> bool:
    return _number(value) and value > 0


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _dicts(holder: Mapping, key: str) -> list[dict]:
    items = holder.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
