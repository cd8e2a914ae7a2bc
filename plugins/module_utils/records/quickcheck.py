# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fast yes for documents that are good, which nearly all are; jsonschema is loaded only to explain a no.

Importing jsonschema costs more than reading a whole catalogue, and judging with it ten times what this costs. A schema
becomes nested functions once. The answer yes is never wrong; a no, or a keyword not known here, means: ask jsonschema.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.records import schema as slow
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.yamltree import Document

Judge = Callable[[object], bool]
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
ANNOTATIONS = {"$schema", "title", "description", "default"}
_COMPILED: dict[str, Judge] = {}


def validate(document: Document, kind: str, schema: dict) -> list[Problem]:
    """As `schema.validate`, for a kind whose schema the caller has at hand."""
    if kind not in _COMPILED:
        _COMPILED[kind] = compile_schema(schema)
    return [] if _COMPILED[kind](document.data) else slow.validate(document, kind)


def compile_schema(schema: dict) -> Judge:
    """A function that says yes only to what the schema accepts."""
    unknown = schema.keys() - ANNOTATIONS - _KEYWORDS.keys() - {"required", "additionalProperties", "propertyNames"}
    if unknown:
        return lambda value: False
    tests = [_KEYWORDS[key](limit) for key, limit in schema.items() if key in _KEYWORDS and key != "properties"]
    if schema.keys() & {"properties", "required", "additionalProperties", "propertyNames"}:
        tests.append(_map(schema))
    if not tests:
        return lambda value: True
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def _type(names: str | list[str]) -> Judge:
    names = [names] if isinstance(names, str) else names
    exact = {TYPES[name] for name in names if name in TYPES} | ({int, float} if "number" in names else set())
    # text types of Ansible are subclasses
    text = "string" in names
    return lambda value: type(value) in exact or (text and isinstance(value, str))


def _one_of(allowed: list) -> Judge:
    return lambda value: any(type(value) is type(one) and value == one for one in allowed)


def _pattern(pattern: str) -> Judge:
    search = re.compile(pattern).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _items(schema: dict) -> Judge:
    judge = compile_schema(schema)
    return lambda value: not isinstance(value, list) or all(judge(item) for item in value)


def _map(schema: dict) -> Judge:
    known = {key: compile_schema(one) for key, one in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    rest = schema.get("additionalProperties", True)
    others = compile_schema(rest) if isinstance(rest, dict) else lambda value: rest
    names = compile_schema(schema["propertyNames"]) if "propertyNames" in schema else None

    def judge(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        if any(key not in value for key in required) or (names and not all(map(names, value))):
            return False
        return all(known.get(key, others)(item) for key, item in value.items())

    return judge


_KEYWORDS: dict[str, Callable[..., Judge]] = {
    "type": _type,
    "enum": _one_of,
    "const": lambda limit: _one_of([limit]),
    "pattern": _pattern,
    "minLength": lambda limit: lambda value: not isinstance(value, str) or len(value) >= limit,
    "minItems": lambda limit: lambda value: not isinstance(value, list) or len(value) >= limit,
    "minProperties": lambda limit: lambda value: not isinstance(value, dict) or len(value) >= limit,
    "maxLength": lambda limit: lambda value: not isinstance(value, str) or len(value) <= limit,
    "maxItems": lambda limit: lambda value: not isinstance(value, list) or len(value) <= limit,
    "maxProperties": lambda limit: lambda value: not isinstance(value, dict) or len(value) <= limit,
    "minimum": lambda limit: lambda value: not isinstance(value, (int, float)) or value >= limit,
    "maximum": lambda limit: lambda value: not isinstance(value, (int, float)) or value <= limit,
    "items": _items,
    "properties": _map,
}
