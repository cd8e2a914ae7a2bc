# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Markdown for people: merge requests, job summaries, tickets.

Whatever the cluster's names and values hold, it stays in its cell and is shown as it is: marks that could end a cell or
start markup become character references, which no Markdown takes for structure.
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import Row, Section, overall, some
from ansible_collections.goodput.fleet.plugins.module_utils.reports.words import (
    COLUMNS,
    STATUS,
    TITLES,
    VERDICTS,
    tone,
)

ROWS = 300  # per table; a job summary takes one megabyte
NODES = 5
NAMES = 50
_MARKUP = re.compile(
    r"[\\`*\[\]<>&|~$@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # emphasis, links, HTML, cells, mentions
    r"|:(?=//|[\w+-]+:)|(?<=mailto):|(?<=xmpp):|(?<=www)\.|#(?=\d)",  # what becomes a link or a picture by itself
    re.IGNORECASE,
)
_START = re.compile(r"^([-+](?=[\s-]|$)|=|#(?=[\s#]|$)|\d+[.)](?=\s|$))")  # a list, a heading


def render(title: str, parts: list[Section]) -> str:
    """The whole page."""
    lines = [f"# {plain(title)}", "", f"{_mark(overall(parts))} **{VERDICTS[overall(parts)]}**", ""]
    for part in parts:
        lines += section(part)
    return "\n".join(lines).rstrip() + "\n"


def plain(value: str) -> str:
    """Text that shows as it is and starts no markup, on one line."""
    return _START.sub(_references, _MARKUP.sub(_references, _one_line(value)))


def code(value: str) -> str:
    """Text in a fixed-width font, on one line."""
    value = _one_line(value)
    if not value:
        return ""
    # in a table a backslash or bar inside backquotes means different things to different readers
    return f"<code>{plain(value)}</code>" if re.search(r"[`|\\]", value) else f"`{value}`"


def _references(match: re.Match) -> str:
    return "".join(f"&#{ord(sign)};" for sign in match[0])


def _one_line(value: str) -> str:
    """Line ends and control characters as blanks, one at a time."""
    return " ".join(re.sub(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff]+", " ", value).split())


def _mark(verdict: str) -> str:
    return {"fail": "🔴", "warn": "🟠", "unknown": "🟣", "pass": "🟢"}.get(verdict, "⚪")


def section(part: Section) -> list[str]:
    """The lines of one document, with its heading."""
    name = f" of {plain(part.name)}" if part.name else ""
    lines = [f"## {TITLES[part.kind]}{name}: {STATUS.get(part.status, plain(part.status))}", ""]
    lines += [plain(part.summary), ""] if part.summary else []
    lines += [f"- {plain(label)}: {code(value)}" for label, value in part.facts]
    lines += [""] if part.facts else []
    shown = (
        part.rows
        if part.kind in ("install", "recovery")
        else part.of("fail", "note") + [row for row in part.of("unknown") if row.code != "part"]
    )
    if shown:
        lines += _table(COLUMNS[part.kind], list(shown))
    unread = [row for row in part.of("unknown") if row.code == "part"]
    if unread:
        lines += ["Could not be determined:", "", *_table(COLUMNS["part"], unread)]
    passed = part.of("pass") if part.kind == "health" else []
    if passed:
        lines += [f"Healthy: {_names(row.component for row in passed)}", ""]
    for title, names in part.lists:
        lines += [f"{title}: {_names(names)}", ""]
    return lines


def _table(columns: dict[str, str], rows: list[Row]) -> list[str]:
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(column, row) or " " for column in columns) + " |" for row in rows[:ROWS]]
    if len(rows) > ROWS:
        lines += ["", f"… and {len(rows) - ROWS} more, in the JSON report."]
    return [*lines, ""]


def _cell(column: str, row: Row) -> str:
    if column == "nodes":
        names, more = some(row.nodes, NODES)
        return ", ".join(map(code, names)) + (f" +{more}" if more else "")
    value = getattr(row, column)
    if column == "severity":
        return f"{_mark(tone(row.verdict, row.severity))} {plain(value)}"
    if value is None:
        return "–"
    prose = column in ("message", "hint") or (column == "found" and value == row.message)
    return plain(value) if prose else code(value)


def _names(names) -> str:
    shown, more = some(names, NAMES)
    return ", ".join(map(code, shown)) + (f" +{more}" if more else "")
