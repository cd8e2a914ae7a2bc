# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certification's results as a section of a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import ORDER, Row, Section

# what an outcome is to a reader: only a pass is one
VERDICTS = {
    "fail": "fail",
    "hang": "fail",
    "error": "unknown",
    "blocked": "unknown",
    "not_measured": "unknown",
    "not_run": "unknown",
    "skipped": "unknown",
    "not_applicable": "note",
    "pass_unbounded": "note",
    "pass": "pass",
}
STATUS = {"pass": "pass", "fail": "fail", "pass_unbounded": "unknown", "incomplete": "unknown"}
_NEXT = {
    "hardware": "hardware: keep the node gated and look at the part",
    "configuration": "configuration: mend it and test again",
    "tool": "the test itself: mend it and test again",
    "infrastructure": "infrastructure: mend it and test again",
    "group": "a group: only a search can tell which of its nodes it was",
    "unknown": "not known: test again, then look at the logs",
}
_NAMES = 4  # metrics in a cell
# what a search finds that is not about one node
_WHOLE = ("bad-link", "bad-domain", "unexplained", "suspicion")


def check(document: dict) -> list[Problem]:
    """What is wrong with the form of a results document."""
    where = "certification"
    problems = [
        Problem("missing-key", f"{key!r} must be text", path=f"{where}.{key}")
        for key in ("name", "status")
        if not isinstance(document.get(key), str)
    ]
    if isinstance(document.get("status"), str) and document["status"] not in STATUS:
        hint = nearest(document["status"], STATUS)
        problems.append(Problem("bad-value", f"{document['status']!r} is no status", path=f"{where}.status", hint=hint))
    shapes = {
        "rows": ("node", "category", "outcome"),
        "nodes": ("node", "verdict"),
        "categories": ("name",),
    }
    for key, needed in shapes.items():
        items = document.get(key)
        if not isinstance(items, list):
            hint = "give the whole results document"
            problems.append(Problem("missing-key", f"{key!r} must be a list", path=where, hint=hint))
            continue
        for index, item in enumerate(items):
            place = f"{where}.{key}[{index}]"
            for word in needed:
                value = item.get(word) if isinstance(item, dict) else None
                if not isinstance(value, str):
                    problems.append(Problem("missing-key", f"{word!r} must be text", path=f"{place}.{word}"))
                elif word in ("outcome", "verdict") and value not in VERDICTS:
                    hint = nearest(value, VERDICTS)
                    problems.append(Problem("bad-value", f"{value!r} is no outcome", path=f"{place}.{word}", hint=hint))
    for key in ("isolation", "plots"):
        if not isinstance(document.get(key) or {}, dict):
            problems.append(Problem("bad-value", f"{key!r} must be a dictionary", path=where))
    return problems


def section(document: dict) -> Section:
    """The results document, see certification.results. Its verdict is never better than its rows."""
    searches = {name: found for name, found in (document.get("isolation") or {}).items() if isinstance(found, dict)}
    rows = [_row(item) for item in document["rows"]]
    tested = {row.component for row in rows}
    told = {(row.component, row.path) for row in rows if row.verdict in ("fail", "unknown")}
    rows += [_untested(node) for node in document["nodes"] if node["node"] not in tested]
    found = [row for name, report in searches.items() for row in _search(name, report)]
    rows += [row for row in found if row.code in _WHOLE or (row.component, row.path) not in told]
    plots = document.get("plots") or {}
    open_gates = [node["node"] for node in document["nodes"] if node.get("mayOpenGate") is True]
    lists = [
        *((f"Stand out in {plot['category']}, {plot['metric']}", _outliers(plot)) for plot in _dicts(plots, "nodes")),
        ("Nodes that may be opened", tuple(open_gates)),
        ("Notes", tuple(map(str, document.get("notes") or ()))),
    ]
    return Section(
        kind="certification",
        name=document["name"],
        status=document["status"],
        verdict=_verdict(document, rows, len(open_gates)),
        summary=_summary(document["nodes"], len(open_gates)),
        rows=tuple(rows),
        facts=tuple(_facts(document, searches)),
        lists=tuple((title, names) for title, names in lists if names),
        plots={key: _dicts(plots, key) for key in ("sizes", "nodes")},
    )


def _verdict(document: dict, rows: list[Row], opened: int) -> str:
    found = {row.verdict for row in rows if row.verdict != "note"}
    found.add(STATUS[document["status"]])
    if document["status"] == "pass_unbounded" and opened == len(document["nodes"]) > 0:
        found -= {"unknown"}  # whoever asked for it takes a test without a bound for a pass
        found |= {row.verdict for row in rows if row.verdict == "unknown"}
    if not document["rows"]:
        found.add("unknown")
    return next((verdict for verdict in ORDER if verdict in found), "pass")


def _row(item: Mapping) -> Row:
    outcome = item["outcome"]
    verdict = VERDICTS[outcome]
    reasons = "; ".join(_texts(item.get("reasons")))
    wanted = "; ".join(_bound(bound) for bound in item.get("boundsUsed") or () if isinstance(bound, Mapping))
    return Row(
        verdict=verdict,
        severity=outcome,
        code=outcome,
        message=reasons or ("" if verdict == "pass" else outcome.replace("_", " ")),
        component=item["node"],
        path=item["category"],
        expected=wanted or None,
        found=_measured(item) or None,
        hint=_NEXT.get(str(item.get("attribution")), "") if verdict in ("fail", "unknown") else "",
    )


def _untested(node: Mapping) -> Row:
    """A node that was asked for and has no row, whatever its verdict."""
    return Row("unknown", "not_run", "not_run", "no test ran on this node", component=node["node"], path="(no test)")


def _bound(bound: Mapping) -> str:
    size = f" at {bound['size']} bytes" if bound.get("size") is not None else ""
    return f"{bound.get('metric', '')}: {bound.get('expression', '')}{size}"


def _measured(item: Mapping) -> str:
    """The metrics that have a bound, else the first ones."""
    bounds = [bound for bound in item.get("boundsUsed") or () if isinstance(bound, Mapping)]
    told = {str(bound.get("metric")): (bound.get("value"), bound.get("unit")) for bound in bounds}
    for name, measured in (item.get("metrics") or {}).items():
        about = measured if isinstance(measured, Mapping) else {"value": measured}
        if not bounds or told.get(name, (0,))[0] is None:
            told[str(name)] = (about.get("value"), about.get("unit"))
    parts = [
        f"{name} {_value(value)} {unit or ''}".rstrip() for name, (value, unit) in told.items() if value is not None
    ]
    return "; ".join(parts[:_NAMES]) + (f"; {len(parts) - _NAMES} more" if len(parts) > _NAMES else "")


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _search(category: str, found: Mapping) -> Iterable[Row]:
    """What a search found, and what it left open."""
    for item in _dicts(found, "badPairs"):
        pair = f"{item.get('a')} – {item.get('b')}"
        text = f"these two nodes fail with each other{_failed(item)}"
        yield Row("fail", "fail", "bad-link", text, pair, category, hint="the link between them, or their ports")
    for item in _dicts(found, "badDomains"):
        peer = f" towards {item['peer']}" if item.get("peer") else ""
        text = f"all of it is at fault, by its {item.get('kind')}{peer}{_failed(item)}"
        yield Row("fail", "fail", "bad-domain", text, str(item.get("domain")), category, nodes=_names(item))
    for item in _dicts(found, "flaky"):
        text = f"fails at some times and passes at others{_failed(item)}"
        who = str(item.get("node") or ", ".join(_names(item)))
        yield Row(
            "fail", "fail", "flaky", text, who, category, nodes=_names(item), hint="do not use it before it is mended"
        )
    for item in _dicts(found, "bad"):
        where = {"inside": " inside its domain", "across": " across domains"}.get(str(item.get("scope")), "")
        yield Row(
            "fail", "fail", "bad-node", f"the search found it{where}{_failed(item)}", str(item.get("node")), category
        )
    for item in _dicts(found, "unexplained"):
        yield Row(
            "fail", "fail", "unexplained", str(item.get("why")), ", ".join(_names(item)), category, nodes=_names(item)
        )
    for item in _dicts(found, "suspicions"):
        yield Row("unknown", "unknown", "suspicion", str(item.get("message")), str(item.get("kind")), category)
    for item in _dicts(found, "unknown"):
        yield Row("unknown", "unknown", "search-open", str(item.get("why")), str(item.get("node")), category)


def _failed(item: Mapping) -> str:
    return f" ({item['failed']} tests failed)" if isinstance(item.get("failed"), int) else ""


def _names(item: Mapping) -> tuple[str, ...]:
    return tuple(map(str, item.get("nodes") or ()))


def _outliers(plot: Mapping) -> tuple[str, ...]:
    unit = f" {plot['unit']}" if plot.get("unit") else ""
    return tuple(f"{one.get('node')} ({_value(one.get('value'))}{unit})" for one in _dicts(plot, "outliers"))


def _summary(nodes: list[dict], opened: int) -> str:
    counts = {word: sum(node["verdict"] == word for node in nodes) for word in VERDICTS}
    told = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items() if count) or "none"
    return f"{len(nodes)} node{'s' * (len(nodes) != 1)}: {told}; {opened} may be opened"


def _facts(document: Mapping, searches: Mapping[str, Mapping]) -> Iterable[tuple[str, str]]:
    for key, label in (
        ("started", "Started"), ("finished", "Finished"), ("identity", "Certification"), ("evidence", "Evidence"),
    ):  # fmt: skip
        if document.get(key):
            yield label, str(document[key])
    for category in document["categories"]:
        mine = [row["outcome"] for row in document["rows"] if row["category"] == category["name"]]
        counts = ", ".join(f"{mine.count(word)} {word.replace('_', ' ')}" for word in VERDICTS if word in mine)
        bounds = "; ".join(_texts(category.get("bounds"))) or "no bound"
        yield category["name"], f"{counts or 'no test'} ({bounds})"
    for name, found in searches.items():
        cost = [f"{found[key]} {word}" for key, word in (("tests", "tests"), ("rounds", "rounds")) if found.get(key)]
        yield f"Search in {name}", ", ".join(cost) + (", out of budget" if found.get("budgetExhausted") else "")


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, (list, tuple)) else []


def _dicts(holder: Mapping, key: str) -> list[dict]:
    items = holder.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
