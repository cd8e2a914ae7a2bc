# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one HTML page: no script, nothing loaded from elsewhere, light and dark, fit for printing."""

from __future__ import annotations

import functools

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Unavailable
from ansible_collections.goodput.fleet.plugins.module_utils.reports import plots, recovery_plots
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import Section, overall, some
from ansible_collections.goodput.fleet.plugins.module_utils.reports.page import TEMPLATE
from ansible_collections.goodput.fleet.plugins.module_utils.reports.words import (
    COLUMNS,
    STATUS,
    TITLES,
    VERDICTS,
    tone,
)

ROWS = 2000  # per table
PLOTS = 60
NODES = 6  # the others are one click away


def render(title: str, parts: list[Section]) -> str:
    """The whole page. Raises Unavailable without Jinja."""
    verdict = overall(parts)
    page = _template().render(
        title=title,
        verdict=verdict,
        summary=VERDICTS[verdict],
        sections=[_section(part) for part in parts],
        part_columns=COLUMNS["part"],
        limit=NODES,
    )
    return page + "\n"


@functools.lru_cache(maxsize=1)
def _template():
    try:
        import jinja2
    except ImportError as error:
        raise Unavailable("the HTML report needs the Python package jinja2", hint="pip install jinja2") from error
    engine = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    engine.filters["some"] = some
    engine.globals["tone"] = tone
    return engine.from_string(TEMPLATE)


def _section(part: Section) -> dict:
    unread = [row for row in part.of("unknown") if row.code == "part"]
    wrong = [row for row in part.of("fail", "unknown", "note") if row not in unread]
    rows = list(part.rows) if part.kind in ("install", "recovery") else wrong
    counted = {"fail": "to mend", "unknown": "not determined", "note": "to know", "pass": "fine"}
    tiles = [(verdict, len(part.of(verdict)), label) for verdict, label in counted.items()]
    return {
        "kind": part.kind,
        "title": TITLES[part.kind],
        "name": part.name,
        "status": STATUS.get(part.status, part.status),
        "verdict": part.verdict,
        "summary": part.summary,
        "facts": part.facts,
        "tiles": [tile for tile in tiles if tile[1] and part.kind != "install"],
        "columns": COLUMNS[part.kind],
        "rows": rows[:ROWS],
        "more": max(len(rows) - ROWS, 0),
        "unread": unread,
        "healthy": [row.component for row in part.of("pass")] if part.kind == "health" else [],
        "lists": part.lists,
        "plots": _plots(part),
    }


def _plots(part: Section) -> list[tuple[str, str]]:
    """(caption, SVG) of each plot that has something to draw."""
    drawn = [
        (
            f"{plot.get('category')}: {plot.get('value')} by message size, range and median of all groups",
            plots.by_size(plot),
        )
        for plot in part.plots.get("sizes", ())
    ]
    drawn += [
        (f"{plot.get('category')}: {plot.get('metric')}, each node from low to high", plots.by_node(plot))
        for plot in part.plots.get("nodes", ())
    ]
    drawn += [("Where the GPU time went", recovery_plots.shares(one)) for one in part.plots.get("goodput", ())]
    # the latest are the ones that people come for
    latest = list(reversed(part.plots.get("incidents", ())))[:PLOTS]
    drawn += [(recovery_plots.caption(one), recovery_plots.timeline(one)) for one in latest]
    return [(caption, svg) for caption, svg in drawn if svg][:PLOTS]
