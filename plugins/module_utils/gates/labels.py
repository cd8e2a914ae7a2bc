# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors: as kubectl writes them, and as objects such as PodDisruptionBudgets carry them. Pure."""

from __future__ import annotations

import re

_NAME = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"^({_NAME})\s+(in|notin)\s*\(([^()]*)\)$")
_EQUALS = re.compile(rf"^({_NAME})\s*(==|=|!=)\s*({_VALUE})$")
_EXISTS = re.compile(rf"^(!?)\s*({_NAME})$")
_COMMA = re.compile(r",(?![^()]*\))")  # not the commas inside parentheses


def parse(text: str) -> dict:
    """'app=web,tier in (a, b),!canary' as {"matchExpressions": [...]}. Raises ValueError with what is wrong."""
    if not text.strip():
        raise ValueError("the selector is empty")
    return {"matchExpressions": [_term(part.strip()) for part in _COMMA.split(text)]}


def _term(part: str) -> dict:
    if match := _SET.match(part):
        values = [value.strip() for value in match[3].split(",")]
        for value in values:
            if not re.fullmatch(_VALUE, value):
                raise ValueError(f"{value!r} in {part!r} is not a label value")
        return {"key": match[1], "operator": "In" if match[2] == "in" else "NotIn", "values": values}
    if match := _EQUALS.match(part):
        return {"key": match[1], "operator": "NotIn" if match[2] == "!=" else "In", "values": [match[3]]}
    if match := _EXISTS.match(part):
        return {"key": match[2], "operator": "DoesNotExist" if match[1] else "Exists", "values": []}
    raise ValueError(f"cannot read {part!r} in the selector")


def matches(selector: dict | None, labels: dict) -> bool:
    """As the API server has it: an empty selector takes everything, none at all takes nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(term, labels) for term in selector.get("matchExpressions") or [])


def _holds(term: dict, labels: dict) -> bool:
    key, operator, values = term.get("key"), term.get("operator"), term.get("values") or []
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    return operator == "DoesNotExist" and key not in labels
