# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reports are made from: a document of another module, brought to one form. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

ORDER = ("fail", "unknown", "pass")  # the worst verdict is the verdict of the whole
STEPS = ("ok", "changed", "planned", "skipped", "failed", "unknown")
LONGEST = 300  # characters of a value that a reader gets to see; JSON has all of it


@dataclass(frozen=True)
class Row:
    """One thing that was looked at. `verdict` is fail, unknown, note (true, but no failure) or pass."""

    verdict: str
    severity: str  # error | warning | info | unknown | ok, or a step's status
    code: str
    message: str
    component: str = ""
    path: str = ""
    expected: str | None = None
    found: str | None = None
    nodes: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class Section:
    """One document: its rows, what else there is to know, and lists of names."""

    kind: str  # drift | health | install | certification | recovery
    name: str
    status: str
    verdict: str  # fail | unknown | pass
    summary: str
    rows: tuple[Row, ...]
    facts: tuple[tuple[str, str], ...] = ()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()
    plots: dict[str, list[dict]] = field(default_factory=dict)

    def of(self, *verdicts: str) -> list[Row]:
        """The rows with one of the verdicts."""
        return [row for row in self.rows if row.verdict in verdicts]


def sections(drift: dict | None = None, health: dict | None = None, install: dict | None = None) -> list[Section]:
    """The documents that are there, in the order in which things happen."""
    made = [(install, from_install), (health, from_health), (drift, from_drift)]
    return [make(document) for document, make in made if document]


def overall(parts: Iterable[Section]) -> str:
    """fail, unknown or pass; nothing at all is unknown."""
    verdicts = {part.verdict for part in parts}
    return next((verdict for verdict in ORDER if verdict in verdicts), "unknown")


def from_drift(report: dict) -> Section:
    """A DriftReport document."""
    spec, name = report["spec"], report["metadata"]["name"]
    rows = [_finding(item) for item in spec["findings"]]
    for part, state in spec["parts"].items():
        known = state["status"] == "ok"
        row = Row(
            "pass" if known else "unknown", "ok" if known else "unknown", "part", state.get("reason", ""), path=part
        )
        rows.append(row if known else _with_hint(row))
    words = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("note", "notes")}
    summary = _counts(spec["counts"], words) or "no findings"
    unread = sum(state["status"] != "ok" for state in spec["parts"].values())
    if unread:
        summary += f"; {unread} of {len(spec['parts'])} parts could not be determined"
    facts = (("Recipe lock", report["metadata"]["lock"]),) if report["metadata"].get("lock") else ()
    ignored = tuple(f"{item['rule']} ({item['count']})" for item in spec.get("ignored") or [])
    lists = (("Nodes to certify again", tuple(spec.get("recertify") or ())), ("Ignored by rule", ignored))
    verdict = {"in_sync": "pass", "drifted": "fail"}.get(spec["status"], "unknown")
    return Section("drift", name, spec["status"], verdict, summary, tuple(rows), facts, _filled(lists))


def _finding(item: dict) -> Row:
    expected, found = text(item.get("expected")), text(item.get("found"))
    return Row(
        verdict="note" if item["severity"] == "info" else "fail",
        severity=item["severity"],
        code=item["code"],
        message=item["message"],
        component=item.get("component") or "",
        path=item["path"],
        expected=expected,
        # where there is nothing to compare, the message tells what was found
        found=item["message"] if expected is None and found is None else found,
        nodes=tuple(item.get("nodes") or ()),
        hint=item.get("hint") or "",
    )


def _with_hint(row: Row) -> Row:
    step = "grant get and list on it" if "forbidden" in row.message.lower() else "make it readable"
    return replace(row, hint=f"{step}, then run again")


def from_health(result: dict) -> Section:
    """component_health_info's result, {components: [{name, namespace, status, reasons}]}, and the cluster's `name`."""
    rows = [row for component in result["components"] for row in _component(component)]
    states = [component["status"] for component in result["components"]]
    verdict = "fail" if "unhealthy" in states else "pass" if set(states) == {"healthy"} else "unknown"
    status = {"fail": "unhealthy", "pass": "healthy"}.get(verdict, "unknown")
    words = {word: (word, word) for word in ("healthy", "unhealthy", "unknown")}
    summary = _counts({state: states.count(state) for state in states}, words) or "no components"
    return Section("health", result.get("name") or "", status, verdict, summary, tuple(rows))


def _component(component: dict) -> list[Row]:
    name, status = component["name"], component["status"]
    if status == "healthy":
        return [Row("pass", "ok", "healthy", "", component=name)]
    reasons = component.get("reasons") or [{"code": status, "verdict": status, "message": "no reason was given"}]
    return [_reason(name, reason) for reason in reasons]


def _reason(component: str, reason: dict) -> Row:
    broken = reason.get("verdict") == "unhealthy"
    return Row(
        verdict="fail" if broken else "unknown",
        severity="error" if broken else "unknown",
        code=reason["code"],
        message=reason["message"],
        component=component,
        path=reason.get("object") or "",
        nodes=tuple(reason.get("nodes") or ()),
        hint=reason.get("next") or "",
    )


def from_install(summary: dict) -> Section:
    """{name, status, facts: {label: value}, steps: [{name, status, message, hint}]}.

    Steps are ok, changed, planned, skipped, failed or unknown; without a `status` the worst step decides.
    """
    rows = []
    for step in summary.get("steps") or []:
        status = step.get("status") or "ok"
        verdict = {"failed": "fail", "unknown": "unknown", "skipped": "note", "planned": "note"}.get(status, "pass")
        rows.append(
            Row(verdict, status, status, step.get("message") or "", component=step["name"], hint=step.get("hint") or "")
        )
    worst = {row.verdict for row in rows}
    known = worst and "unknown" not in worst  # without a step, nothing is known
    status = summary.get("status") or ("failed" if "fail" in worst else "ok" if known else "unknown")
    verdict = {"failed": "fail", "unknown": "unknown"}.get(status, "pass")
    facts = tuple((str(label), text(value) or "") for label, value in (summary.get("facts") or {}).items())
    told = _counts(
        {word: sum(row.severity == word for row in rows) for word in STEPS}, {word: (word, word) for word in STEPS}
    )
    return Section("install", summary.get("name") or "", status, verdict, told, tuple(rows), facts)


def text(value: object) -> str | None:
    """A value as people read it: text as it is, everything else as JSON; None stays None. Long ones are cut."""
    if value is None:
        return None
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}… ({len(shown)} characters)"


def some(names: Iterable[str], limit: int) -> tuple[list[str], int]:
    """The first names, and how many more there are."""
    names = list(names)
    return names[:limit], max(len(names) - limit, 0)


def _counts(counts: dict, words: dict[str, tuple[str, str]]) -> str:
    """ "2 errors, 1 warning"; `words` gives the order, singular and plural."""
    return ", ".join(f"{counts[key]} {forms[counts[key] != 1]}" for key, forms in words.items() if counts.get(key))


def _filled(lists) -> tuple:
    return tuple((title, names) for title, names in lists if names)
