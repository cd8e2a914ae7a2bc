# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SARIF 2.1.0, which code review shows beside the lines of a change."""

from __future__ import annotations

import json

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import Row, Section, overall
from ansible_collections.goodput.fleet.plugins.module_utils.reports.words import TITLES

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://github.com/goodput/fleet"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(title: str, parts: list[Section], source: str = "") -> str:
    """The whole log. `source` is the file in the repository that a finding is shown at, such as the recipe's lock."""
    found = [
        (part, row)
        for part in parts
        for row in part.of("fail", "unknown", "note")
        if part.kind != "install" or row.verdict != "note"
    ]
    ids = sorted({_rule(part, row) for part, row in found})
    rules = [{"id": name, "shortDescription": {"text": name.rpartition("/")[2].replace("-", " ")}} for name in ids]
    results = [_result(part, row, ids, source) for part, row in found]
    run = {
        "tool": {"driver": {"name": "goodput.fleet", "informationUri": HOME, "rules": rules}},
        "automationDetails": {"id": f"goodput.fleet/{title}/"},
        "invocations": [{"executionSuccessful": overall(parts) != "unknown"}],
        "results": results,
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=True, sort_keys=True) + "\n"


def _rule(part: Section, row: Row) -> str:
    return f"{part.kind}/{'not-determined' if row.code == 'part' else row.code}"


def _result(part: Section, row: Row, ids: list[str], source: str) -> dict:
    where = "/".join(filter(None, (part.name, row.component, row.path))) or part.kind
    location: dict = {
        "logicalLocations": [{"fullyQualifiedName": where, "name": row.path or row.component or part.kind}]
    }
    if source:
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(source)}, "region": {"startLine": 1}}
    about = {
        "component": row.component,
        "expected": row.expected,
        "found": row.found,
        "nodes": list(row.nodes),
        "hint": row.hint,
    }
    told = row.message or f"{row.path} could not be determined"
    # the same fault at the same place is the same alert, whatever the values are today
    fingerprint = digest.sha256_bytes(json.dumps([part.kind, row.code, where]).encode())
    return {
        "ruleId": _rule(part, row),
        "ruleIndex": ids.index(_rule(part, row)),
        "level": _level(row),
        "message": {"text": f"{TITLES[part.kind]}: {told}" + (f"\nNext: {row.hint}" if row.hint else "")},
        "locations": [location],
        "partialFingerprints": {"goodput/v1": fingerprint},
        "properties": {key: value for key, value in about.items() if value not in (None, "", [])},
    }


def _level(row: Row) -> str:
    return (
        "error" if row.verdict == "unknown" else LEVELS.get(row.severity, "note" if row.verdict == "note" else "error")
    )


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path, errors="replace")
