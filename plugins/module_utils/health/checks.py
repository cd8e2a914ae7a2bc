# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that a catalogue's author wrote: a JMESPath expression that must be true for an object.

Only the value true passes: a missing field gives null, and null is a failure that shows its value.
"""

from __future__ import annotations

import json

from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import name_of, unhealthy, unreadable
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem


def compile_all(components: list[dict]) -> dict[str, object]:
    """Every expression of the components, parsed once. Raises InvalidDocument naming all that do not parse."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    compiled, problems = {}, []
    for component in components:
        for index, check in enumerate((component.get("health") or {}).get("checks") or []):
            expression = check["expression"]
            try:
                compiled[expression] = jmespath.compile(expression)
            except JMESPathError as error:
                problems.append(
                    Problem(
                        "bad-expression",
                        f"check {check['name']!r}: {expression!r} is not JMESPath: {_position(error)}",
                        path=f"{component['name']}.health.checks[{index}].expression",
                        hint="strings stand in single quotes, numbers and true in backticks: status.ready == `3`",
                    )
                )
    if problems:
        raise InvalidDocument(problems)
    return compiled


def _position(error) -> str:
    position = getattr(error, "lex_position", None)
    token = getattr(error, "token_value", None)
    if position is None:
        return " ".join(str(error).split())
    return f"at position {position + 1}" + (f", at {token!r}" if token else ", where it ends")


def namespace_of(component: dict, check: dict) -> str:
    """Where the check's objects are: "" is cluster-wide."""
    return (check.get("namespace") or component["namespace"]) if check.get("namespaced", True) else ""


def key(component: dict, check: dict) -> tuple[str, str, str]:
    """Under which key the observer files the check's objects: (apiVersion, plural or kind, namespace)."""
    return (check["apiVersion"], check.get("plural") or check["kind"], namespace_of(component, check))


def faults(component: dict, check: dict, answer: dict, expression) -> list[dict]:
    """Reasons why the check does not pass. `answer` is {items} | {error} | {absent: true} of its objects."""
    kind, where = check["kind"], namespace_of(component, check)
    target = "/".join(filter(None, (kind, where)))
    if answer.get("error"):
        return [unreadable(target, answer["error"])]
    label = f"check {check['name']!r}"
    items = [item for item in answer.get("items") or [] if _selected(item, check.get("selector") or {})]
    if not items:
        if check.get("optional"):
            return []
        what = f"no {kind} is there to check"
        if answer.get("absent"):
            what = f"the API has no {kind} ({check['apiVersion']})"
        step = f"kubectl get {check.get('plural') or kind.lower()}" + (f" -n {where}" if where else " -A")
        return [unhealthy("check-no-object", target, f"{label}: {what}", step)]
    verdicts = [(item, _evaluate(expression, item)) for item in items]
    if check.get("match", "all") == "any" and any(value is True for _item, (value, _error) in verdicts):
        return []
    return [_failed(check, label, item, value, error) for item, (value, error) in verdicts if value is not True]


def _selected(item: dict, selector: dict) -> bool:
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in selector.items())


def _evaluate(expression, item: dict) -> tuple[object, str]:
    from jmespath.exceptions import JMESPathError

    try:
        return expression.search(item), ""
    except (JMESPathError, TypeError) as error:  # comparing a string with a number is a TypeError of the library
        return None, " ".join(str(error).split())


def _failed(check: dict, label: str, item: dict, value, error: str) -> dict:
    meta = item["metadata"]
    step = f"kubectl get {check.get('plural') or check['kind'].lower()} {meta['name']}"
    step += f" -n {meta['namespace']} -o yaml" if meta.get("namespace") else " -o yaml"
    if error:
        text = f"{label}: {check['expression']} cannot be evaluated: {error}"
    elif value is False:
        text = f"{label}: {check['expression']} is false"
    else:
        shown = json.dumps(value, ensure_ascii=False)
        shown = shown if len(shown) <= 120 else shown[:117] + "..."
        text = f"{label}: {check['expression']} gives {shown}, neither true nor false (is the field there?)"
    return unhealthy("check-failed", name_of(item, check["kind"]), text, step)
