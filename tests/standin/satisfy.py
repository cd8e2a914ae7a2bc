# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object's status for which a health check's JMESPath expression is true.

Handles what checks are made of: paths, filters, `==` and the other comparisons with a literal, length(), `&&`, `||`,
pipes and list indexes. The answer is always proven with the real JMESPath before it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jmespath
from jmespath.parser import Parser

# a value that compares as asked with a literal
FITTING: dict[str, Callable[[Any], Any]] = {
    "eq": lambda literal: literal,
    "gte": lambda literal: literal,
    "lte": lambda literal: literal,
    "gt": lambda literal: literal + 1,
    "lt": lambda literal: literal - 1,
    "ne": lambda literal: not literal if isinstance(literal, bool) else "other" if literal is None else None,
}


def status(expressions: Iterable[str]) -> dict:
    """A status under which every expression is true. Raises ValueError where none is found."""
    made: dict = {}
    expressions = list(expressions)
    for expression in expressions:
        _fulfil(Parser().parse(expression).parsed, made, expression)
    for expression in expressions:
        if jmespath.search(expression, made) is not True:
            raise ValueError(f"no status found for which this is true: {expression}")
    if set(made) - {"status"}:
        raise ValueError(f"a status alone does not make this true: {expressions}")
    return made.get("status", {})


def _fulfil(node: dict, obj: Any, expression: str) -> None:
    kind, children = node["type"], node["children"]
    if kind == "and_expression":
        for child in children:
            _fulfil(child, obj, expression)
    elif kind == "or_expression":
        _fulfil(children[0], obj, expression)
    elif kind == "comparator":
        path, literal = children
        if literal["type"] != "literal":
            raise ValueError(f"only comparisons PATH OPERATOR LITERAL are understood: {expression}")
        value = FITTING[node["value"]](literal["value"])
        if path["type"] == "function_expression" and path["value"] == "length":
            for _ in range(value):
                _place(path["children"][0], obj, expression, None, append=True)
        else:
            _place(path, obj, expression, value)
    elif kind == "pipe":  # binds weaker than all else: A | B == C means A | (B == C)
        source, rest = children
        moved = rest["children"][:1] if rest["type"] == "comparator" else rest["children"]
        inner = [{"type": "pipe", "children": [source, child]} for child in moved]
        inner += rest["children"][len(moved) :]
        _fulfil({**rest, "children": inner}, obj, expression)
    elif kind in ("field", "subexpression"):
        _place(node, obj, expression, True)
    else:
        raise ValueError(f"{kind} is not understood: {expression}")


def _place(node: dict, obj: Any, expression: str, value: Any, append: bool = False) -> Any:
    """Put the value where the path leads, making what is missing on the way; returns what stands there.

    None as value: whatever is there, or an empty map.
    """
    kind, children = node["type"], node["children"]
    if kind in ("identity", "current"):
        return obj
    if kind == "field":
        if value is not None or obj.get(node["value"]) is None:
            obj[node["value"]] = {} if value is None else value
        return obj[node["value"]]
    if kind == "pipe" and _is_index(children[1]):  # one of the things that the left side gives
        return _place(children[0], obj, expression, value, append)
    if kind in ("subexpression", "pipe", "index_expression"):
        inner = obj
        for child in children[:-1]:
            inner = _place(child, inner, expression, None)
        return _place(children[-1], inner, expression, value, append)
    if kind == "index":
        return obj if isinstance(obj, dict) else obj[node["value"]]
    if kind in ("filter_projection", "projection"):
        entries = _list(children[0], obj, expression)
        if append or not entries:
            entries.append({})
        if kind == "filter_projection":
            _fulfil(children[2], entries[-1], expression)
        return _place(children[1], entries[-1], expression, value)
    raise ValueError(f"{kind} is not understood: {expression}")


def _is_index(node: dict) -> bool:
    return node["type"] == "index_expression" and node["children"][0]["type"] == "identity"


def _list(node: dict, obj: Any, expression: str) -> list:
    """The list at a path, made where there is none."""
    while node["type"] in ("subexpression", "pipe"):
        for child in node["children"][:-1]:
            obj = _place(child, obj, expression, None)
        node = node["children"][-1]
    if node["type"] != "field":
        raise ValueError(f"{node['type']} is not understood: {expression}")
    return obj.setdefault(node["value"], [])
