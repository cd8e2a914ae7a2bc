# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which parser reads a test's output, and what it is told to expect: whether that fits together. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification.reading import PARSERS
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import testing


def faults(document: yamltree.Document, parser: Mapping, path: tuple) -> list[Problem]:
    """What is wrong with the parser of a test or of a workload."""
    if parser["tool"] != "regex":
        return [
            document.problem((*path, key), "bad-value", f"{key} belongs to tool regex only", "leave it out")
            for key in ("pattern", "metric", "unit")
            if key in parser
        ]
    problems = [
        document.problem((*path, key), "missing-key", f"tool regex needs {key}", testing.PARSER["description"])
        for key in ("pattern", "metric")
        if key not in parser
    ]
    try:
        groups = re.compile(parser.get("pattern", "(x)")).groups
    except re.error as error:
        return [*problems, document.problem((*path, "pattern"), "bad-value", f"is no regular expression: {error}")]
    if groups != 1:
        message = f"has {groups} groups, not one"
        hint = r"such as 'throughput: ([0-9.]+)'; (?:…) groups without catching"
        problems.append(document.problem((*path, "pattern"), "bad-value", message, hint))
    return problems


def unknown(document: yamltree.Document, parser: Mapping, path: tuple) -> list[Problem]:
    """What a test expects and its parser does not take: better said now than when the test has run."""
    expects, module = parser.get("expects", {}), PARSERS.get(parser["tool"])
    if not expects:
        return []
    if module is None:
        return [document.problem(path, "bad-value", f"a parser of tool {parser['tool']} expects nothing")]
    taken = [*inspect.signature(module.parse).parameters][1:]
    problems = [
        document.problem((*path, name), "unknown-key", f"the parser takes no {name!r}", nearest(name, taken))
        for name in expects
        if name not in taken
    ]
    if not problems:
        try:
            module.parse("", **expects)
        except InvalidDocument as error:
            problems = [
                document.problem(path, "bad-value", problem.message, problem.hint) for problem in error.problems
            ]
    return problems
