# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page that a pull request gets: what it changes, whether the cluster is as it was left, what certifying costs.

Pure, and without a clock: the same review is the same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.reports import markdown, model
from ansible_collections.goodput.fleet.plugins.module_utils.reports.markdown import code, plain

OK, BAD_INPUT, DRIFTED, UNKNOWN = 0, 2, 3, 4
LONGEST = 160  # characters of a value
_SAYS = {
    OK: "🟢 **Nothing stands against this change**",
    DRIFTED: "🔴 **The cluster has left the lock that this change starts from**: bring it back before you merge",
    UNKNOWN: "🟣 **Not everything could be told**",
}
_EFFECTS = {"loosened": "🟠 loosened", "tightened": "🔵 tightened", "none": "the same, in other words"}


def exit_code(drift_status: str | None, unknown: Iterable[str]) -> int:
    """0, 3 (drifted) or 4 (something could not be told). Drift outranks what is unknown; the page tells both."""
    if drift_status == "drifted":
        return DRIFTED
    return UNKNOWN if drift_status == "unknown" or list(unknown) else OK


def page(review: Mapping) -> str:
    """Markdown. review: the result of the module change_review, see its RETURN for the keys."""
    lines = [f"# Review of {plain(review['name'])}", "", _SAYS[review["exit_code"]], ""]
    lines += [f"- {each}" for each in _short(review)] + [""]
    if review["unknown"]:
        lines += ["Could not be told:", "", *(f"- {plain(each)}" for each in review["unknown"]), ""]
    lines += _recipe(review["lock_changes"]) + _bounds(review["bound_changes"])
    if review["drift"]:
        lines += markdown.section(model.from_drift(review["drift"]))
    else:
        lines += ["## Drift: not looked at", "", plain(review["drift_why"]), ""]
    lines += _certify(review)
    return "\n".join(lines).rstrip() + "\n"


def _short(review: Mapping) -> list[str]:
    changes, bounds = review["lock_changes"], review["bound_changes"]
    again = sum(each["recertify"] for each in changes)
    calls = f", of which {again} {'call' if again > 1 else 'calls'} for a new certification" if again else ""
    lines = [f"Recipe: {_many(len(changes), 'change')}{calls}" if changes else "Recipe: no change"]
    loosened = sum(each.get("effect") == "loosened" for each in [*bounds, *changes])
    if bounds:
        lines.append(f"Certification: {_many(len(bounds), 'change')}")
    if loosened:
        lines.append(f"🟠 **{_many(loosened, 'bound or test', 'bounds or tests')} loosened**")
    drift = review["drift"]
    lines.append(f"Drift: {drift['spec']['status'].replace('_', ' ')}" if drift else "Drift: not looked at")
    lines.append(f"To certify again: {_cost(review)}")
    return lines


def _cost(review: Mapping) -> str:
    if review["affected"] is None:
        return "the GPU nodes, which are not known here" if review["affects"] else "not known"
    nodes, cost = len(review["affected"]), review["cost"]
    if not nodes:
        return "no node"
    if cost is None:
        return f"{_many(nodes, 'node')}, at a cost that is not known"
    return (
        f"{_many(nodes, 'node')}; {_many(cost['jobs'], 'job')}, at most {cost['nodeHours']:g} node-hours and "
        f"{_many(cost['minutes'], 'minute')} from begin to end"
    )


def _recipe(changes: list[Mapping]) -> list[str]:
    lines = ["## Recipe", ""]
    if not changes:
        return [*lines, "The lock does not change.", ""]
    rows = []
    for each in changes:
        what = code(each["path"]) if each["path"] else {"added": "added", "removed": "removed"}[each["kind"]]
        before, after = _sides(each, each["change"])
        told = _effect(each["effect"]) if "effect" in each else plain(each["why"]) or "no"
        rows.append([code(each["component"]) or "the recipe", what, before, after, told])
    return lines + _table(["Component", "What", "Before", "After", "Certify again"], rows)


def _bounds(changes: list[Mapping]) -> list[str]:
    if not changes:
        return []
    rows = []
    for each in changes:
        change = "added" if each["before"] is None else "missing" if each["after"] is None else "differs"
        where = code(each["category"]) or "all"
        what = code(each["path"]) or ("new category" if each["before"] is None else "category removed")
        rows.append(
            [
                code(each["certification"]),
                where,
                what,
                *_sides(each, change),
                _effect(each["effect"]),
            ]
        )
    head = ["Certification", "Category", "What", "Before", "After", "For nodes"]
    told = "Loosened: a node can pass that failed before. What is certified already stays so, under its old bounds."
    return ["## Bounds and tests", "", *_table(head, rows), told, ""]


def _certify(review: Mapping) -> list[str]:
    affected = review["affected"]
    lines = [f"## To certify again: {'unknown' if affected is None else _many(len(affected), 'node')}", ""]
    if affected is None:
        return [*lines, plain(review["affected_why"]), ""]
    reasons: dict[str, list[str]] = {}
    for each in affected:
        for why in each["why"]:
            reasons.setdefault(why, []).append(each["node"])
    lines += [f"- {plain(why)}: {_names(names)}" for why, names in sorted(reasons.items())]
    lines += [""] if reasons else []
    if not affected:
        return [*lines, "Nothing that a certification vouches for changes, or has changed in the cluster.", ""]
    if not review["plans"]:
        lines += ["What it costs is not known: no Certification was given to plan with.", ""]
    for plan in review["plans"]:
        lines += [f"### Plan of {code(plan['certification'])}", ""]
        lines += [f"- {plain(each)}" for each in plan["lines"]] + [""]
    if review["plans"] and review["uncovered"]:
        lines += [f"Tested by none of these: {_names(review['uncovered'])}", ""]
    return lines


def _sides(each: Mapping, change: str) -> list[str]:
    return [
        "–" if change == "added" else _value(each["before"]),
        "–" if change == "missing" else _value(each["after"]),
    ]


def _value(value: object) -> str:
    if isinstance(value, str):
        text = value if value.strip() else json.dumps(value)
    else:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return code(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _effect(effect: str) -> str:
    return _EFFECTS.get(effect, effect)


def _names(names: Iterable[str]) -> str:
    names = sorted(names)
    shown, more = names[: markdown.NAMES], len(names) - markdown.NAMES
    return ", ".join(map(code, shown)) + (f" and {more} more" if more > 0 else "")


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell or " " for cell in row) + " |" for row in rows[: markdown.ROWS]]
    if len(rows) > markdown.ROWS:
        lines += ["", f"… and {len(rows) - markdown.ROWS} more, in the JSON."]
    return [*lines, ""]


def _many(count: int, word: str, words: str = "") -> str:
    return f"{count} {word}" if count == 1 else f"{count} {words or word + 's'}"
