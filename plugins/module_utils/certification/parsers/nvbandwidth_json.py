# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvbandwidth -j`: cells are texts, the sums are numbers, waived cases have neither."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nvbandwidth_model import (
    ERROR,
    NOT_FOUND,
    PASSED,
    RUNNING,
    WAIVED,
    Case,
    Report,
    unit_of,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import clip, number

ROOTS = ("nvbandwidth",)
_STATUSES = {
    "passed": PASSED,
    "waived": WAIVED,
    "error": ERROR,
    "failed": ERROR,
    "not found": NOT_FOUND,
    "running": RUNNING,
}
_PRINTED = ("sum", "min", "max", "average")
SIDE = 4096  # rows and columns of a matrix that are read


def read(document: dict, whole: bool, line: int) -> Report:
    body = document["nvbandwidth"] if isinstance(document["nvbandwidth"], dict) else {}
    report = Report("json", line=line, whole=whole)
    report.version = _text(body.get("version"))
    report.driver = _text(body.get("Driver Version"))
    report.cuda = _text(body.get("CUDA Runtime Version"))
    for key, target in (("error", report.errors), ("warning", report.warnings)):
        if body.get(key):
            target.append((line, clip(body[key], 2000)))
    for item in body["testcases"] if isinstance(body.get("testcases"), list) else ():
        if isinstance(item, dict):
            report.cases.append(_case(item))
    return report


def _case(item: dict) -> Case:
    word = str(item.get("status") or "").strip().lower()
    case = Case(clip(item.get("name") or "unnamed", 200), None, _STATUSES.get(word, ERROR))
    case.description = clip(item.get("bandwidth_description") or "", 200)
    case.unit = unit_of(case.description or case.name)
    if word not in _STATUSES:
        case.message = f"status {clip(item.get('status'), 100)!r}"
    if item.get("error"):
        case.status, case.message = ERROR, clip(item["error"], 2000)
    matrix = item.get("bandwidth_matrix")
    for row in matrix[:SIDE] if isinstance(matrix, list) else ():
        cells = row[:SIDE] if isinstance(row, list) else [row]
        case.matrix.append([number(cell) for cell in cells])
    case.rows = [str(index) for index in range(len(case.matrix))]
    case.columns = [str(index) for index in range(max(map(len, case.matrix), default=0))]
    for name in _PRINTED:
        value = number(item.get(name))
        if value is not None:
            case.printed[name] = value
    return case


def _text(value: object) -> str | None:
    return clip(value, 100) or None if isinstance(value, (str, int, float)) else None
