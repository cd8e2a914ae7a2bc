# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a caller asks of repair, checked: bounds, executors, what was drained, and what came of attempts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget, ladder, repair_step, requests
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

DEFAULTS = budget.Bounds()
_COUNTS = {
    "per_fault": (0, 20),
    "per_node": (0, 20),
    "window": (60, 365 * 86400),
    "min_between": (0, 86400),
    "max_parallel": (0, 100_000),
    "max_parallel_per_domain": (0, 100_000),
    "retries": (0, 5),
    "wait": (0, 86400),
    "poll": (1, 3600),
    "concurrency": (1, 64),
}
_OUTCOME = (
    "request",
    "rung",
    "key",
    "executed",
    "verified",
    "detail",
    "serials",
    "executor",
    "reference",
    "at",
    "node",
)


def policy(params: Mapping) -> repair_step.Policy:
    """Raises InvalidDocument with everything that is wrong."""
    problems = [
        Problem("out-of-range", f"is {params[name]}", path=name, hint=f"from {least} to {most}")
        for name, (least, most) in _COUNTS.items()
        if not least <= params[name] <= most
    ]
    executors, wrong = _executors(params["executors"])
    problems += wrong
    mended = ladder.RUNGS[:-1]
    attempts, wrong = _numbers("attempts", params["attempts"], DEFAULTS.attempts, mended, 0, 10)
    problems += wrong
    timeouts, wrong = _numbers("timeouts", params["timeouts"], repair_step.TIMEOUTS, mended, 1, 7 * 86400)
    problems += wrong
    if problems:
        raise InvalidDocument(problems)
    # what is wrong with the tests must not show once a node is repaired
    requests.make("repaired", [{"name": "any"}], params["tests"], params["test_options"], retries=params["retries"])
    return repair_step.Policy(
        tests=params["tests"],
        options=params["test_options"],
        retries=params["retries"],
        executors=executors,
        timeouts=timeouts,
        on_validation_failure=params["on_validation_failure"],
        namespace="" if params["records_dir"] else params["namespace"],
        bounds=budget.Bounds(
            attempts=attempts,
            per_fault=params["per_fault"],
            per_node=params["per_node"],
            window=params["window"],
            between=params["min_between"],
            parallel=params["max_parallel"],
            per_domain=params["max_parallel_per_domain"],
        ),
    )


def drained(entries: Iterable) -> list[dict]:
    """[{node, scope, entity}], of names and of maps. Raises InvalidDocument."""
    found, problems = [], []
    for index, entry in enumerate(entries):
        each = {"node": entry} if isinstance(entry, str) else entry
        scope = (each.get("scope") or "node") if isinstance(each, Mapping) else ""
        if not isinstance(each, Mapping) or not isinstance(each.get("node"), str) or scope not in ("gpu", "node"):
            hint = "the name of a node, or {node: NAME, scope: gpu|node, entity: GPU}"
            problems.append(Problem("drained", f"is {entry!r}", path=f"drained[{index}]", hint=hint))
        else:
            found.append({"node": each["node"], "scope": scope, "entity": each.get("entity") or ""})
    if problems:
        raise InvalidDocument(problems)
    # of two drains of one node the wider counts
    return sorted(found, key=lambda each: each["scope"] == "node")


def outcomes(entries: Iterable[Mapping]) -> tuple[list[dict], list[dict]]:
    """(those that can be understood, [{request, node, why}] of what cannot): one bad executor must not make the word of
    the others be lost. A key that is not known is left out of an outcome, one that is no good leaves nothing of it."""
    found, wrong = [], []
    for index, entry in enumerate(entries):
        at = f"outcomes[{index}]"
        strange = [_problem(at, key, "is not known", nearest(key, _OUTCOME)) for key in entry if key not in _OUTCOME]
        bad = list(_wrong_with(entry, at))
        if not bad:
            found.append({key: value for key, value in entry.items() if key in _OUTCOME})
        about = {"request": str(entry.get("request") or ""), "node": str(entry.get("node") or at)}
        wrong += [{**about, "why": str(problem)} for problem in [*strange, *bad]]
    return found, wrong


def _wrong_with(entry: Mapping, at: str) -> Iterator[Problem]:
    for name in ("request", "key"):
        if not isinstance(entry.get(name), str) or not entry[name]:
            yield _problem(at, name, f"is {entry.get(name)!r}", f"{name} of the attempt, as node_repair returned it")
    for name in ("executed", "verified"):
        if not (entry.get(name) is None or isinstance(entry[name], bool)):
            yield _problem(at, name, f"is {entry[name]!r}", "true, false, or null for what is not known")
    if entry.get("at") and budget.moment(entry["at"]) is None:
        yield _problem(at, "at", f"is {entry['at']!r}, no time", "in UTC, such as 2026-03-06T09:34:56Z")
    if not isinstance(entry.get("serials") or [], list):
        yield _problem(at, "serials", "is no list", "a list of serial numbers")


def _problem(at: str, name: str, what: str, hint: str) -> Problem:
    return Problem("outcome", what, path=f"{at}.{name}", hint=hint)


def _executors(given: object) -> tuple[dict[str, str], list[Problem]]:
    pairs = given if isinstance(given, Mapping) else dict.fromkeys(given, "") if isinstance(given, list) else None
    if pairs is None:
        hint = "a list of rungs, or {RUNG: NAME OF ITS EXECUTOR}"
        return {}, [Problem("executors", f"is a {type(given).__name__}", path="executors", hint=hint)]
    wrong = [
        Problem("executors", f"{rung!r} is no rung", path="executors", hint=nearest(rung, ladder.RUNGS))
        for rung in pairs
        if rung not in ladder.RUNGS
    ]
    return {rung: str(name or "")[:253] for rung, name in pairs.items()}, wrong


def _numbers(
    option: str, given: Mapping | None, defaults: Mapping, names: Iterable[str], least: int, most: int
) -> tuple[dict[str, int], list[Problem]]:
    problems, found = [], dict(defaults)
    for name, value in (given or {}).items():
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value
        if name not in names:
            problems.append(Problem(option, "is no rung", path=f"{option}.{name}", hint=nearest(name, names)))
        elif not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            hint = f"a whole number from {least} to {most}"
            problems.append(Problem(option, f"is {value!r}", path=f"{option}.{name}", hint=hint))
        else:
            found[name] = number
    return found, problems
