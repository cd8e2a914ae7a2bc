# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JUnit XML, which every CI system shows: one test case for each thing that was looked at.

Not determined is an error, not as it should be a failure; both fail the job.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import Row, Section
from ansible_collections.goodput.fleet.plugins.module_utils.reports.words import TITLES

# XML 1.0 can hold none of these, in no form
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(title: str, parts: list[Section]) -> str:
    """The whole document. Same input, same bytes: it holds no time."""
    root = ElementTree.Element("testsuites", {"name": clean(title)})
    for part in parts:
        suite = ElementTree.SubElement(root, "testsuite", {"name": clean(_suite(part))})
        rows = part.rows or (Row("pass" if part.verdict == "pass" else "unknown", "", part.kind, part.status),)
        for row in rows:
            _case(suite, part, row)
        _count(suite, [suite])
    _count(root, list(root))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def clean(value: str) -> str:
    """Text that XML can hold."""
    return _FORBIDDEN.sub("\ufffd", value)


def _suite(part: Section) -> str:
    return f"{TITLES[part.kind]} {part.name}".strip()


def _case(suite, part: Section, row: Row) -> None:
    group = row.component or ("parts" if row.code == "part" else "cluster")
    name = row.path or row.component or part.kind
    # a node in a test needs no more of a name; what else there is to tell does
    if part.kind != "install" and row.code not in ("part", "healthy", row.severity):
        name = f"{name} ({row.code})"
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": clean(f"{_suite(part)}.{group}"), "name": clean(name), "time": "0"}
    )
    kind = {"fail": "failure", "unknown": "error"}.get(row.verdict)
    if kind:
        told = row.message or row.severity
        ElementTree.SubElement(case, kind, {"type": clean(row.code), "message": clean(told)}).text = clean(
            _details(row)
        )
    elif row.severity in ("planned", "skipped") or (
        part.kind in ("certification", "recovery") and row.verdict == "note"
    ):
        ElementTree.SubElement(case, "skipped", {"message": clean(row.message or row.severity)})
    elif row.message:
        ElementTree.SubElement(case, "system-out").text = clean(row.message)


def _details(row: Row) -> str:
    fields = (("expected", row.expected), ("found", row.found), ("nodes", ", ".join(row.nodes)), ("next", row.hint))
    return "\n".join([row.message, *(f"{label}: {value}" for label, value in fields if value and value != row.message)])


def _count(element, suites: list) -> None:
    cases = [case for suite in suites for case in suite.iter("testcase")]
    element.set("tests", str(len(cases)))
    element.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    element.set("errors", str(sum(case.find("error") is not None for case in cases)))
    element.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
