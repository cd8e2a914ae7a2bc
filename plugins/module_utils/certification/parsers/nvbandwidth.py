# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvbandwidth: text and JSON.

    parse(text, expected_gpus=8, expected_tests=["device_to_device_memcpy_read_ce"]) -> see `outcome`

A run is one report: {test: "nvbandwidth", format, driver, cuda, devices, tests: [{name, status: passed|waived|error|
not_found|running, unit, description, rows, columns, matrix, sum, line, message?}], rows: [{test, source, target, value,
unit}] with every pair that was measured, metrics: {"host_to_device_memcpy_ce.min": …, .max, .mean, .sum},
waivedUnnamed}.

Metrics are made from the cells, without the N/A ones and without a GPU's cell for itself, since the tool's own least
value counts those as zero. A waived test is no pass.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    jsontext,
    nvbandwidth_json,
    nvbandwidth_text,
    streams,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nvbandwidth_model import (
    ERROR,
    NOT_FOUND,
    PASSED,
    RUNNING,
    WAIVED,
    Case,
    Report,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    HARDWARE,
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
    Outcome,
    check_gpus,
    fabric_manager_down,
    gpu_expectation,
    metric,
    names,
)

ROW_LIMIT = 20_000
_KINDS = (
    (
        HARDWARE,
        re.compile(r"\bECC|_ECC_|uncorrectable|NVLINK|hardware|CONTAINED|LAUNCH_FAILED", re.IGNORECASE),
    ),
    (CONFIGURATION, re.compile(r"not found|invalid|out[ _]of[ _]memory|not[ _]supported|insufficient", re.IGNORECASE)),
    (TOOL, re.compile(r"loading shared|terminate called|no version information", re.IGNORECASE)),
)
_ROUNDING = 0.006  # a printed cell is rounded to two digits


def parse(text: streams.Text, *, expected_gpus: object = None, expected_tests: Iterable[str] | None = None) -> dict:
    """All reports in an output. Raises InvalidDocument for expectations that cannot be, never for the output.

    `expected_gpus` is a number or a list of GPU numbers, per node; `expected_tests` must have been measured.
    """
    gpu_expectation(expected_gpus)
    wanted = names(expected_tests, "expected_tests")
    outcome = Outcome("nvbandwidth")
    by_label, outcome.lines = streams.split(text)
    reports = []
    for label, stream in by_label.items():
        for report in _reports(outcome, stream):
            report.host = streams.host_of(label)
            reports.append(report)
    for report in reports:
        outcome.version = outcome.version or report.version
        run = _run(report)
        outcome.runs.append(run)
        _judge(outcome, report, run, expected_gpus, wanted)
    outcome.complete = bool(reports) and all(_complete(report) for report in reports)
    if not any(report.cases for report in reports) and not any(report.errors for report in reports):
        outcome.find("no-result", "The output holds no result of nvbandwidth", scope="run", category=TOOL)
    return outcome.result()


def _reports(outcome: Outcome, stream: list[tuple[int, str]]) -> list[Report]:
    body = "\n".join(line for _number, line in stream)
    starts, position = [], 0
    for _number, line in stream:
        starts.append(position)
        position += len(line) + 1
    found: list[Report] = []
    taken: set[int] = set()
    for document, start, end, whole in jsontext.documents(body, nvbandwidth_json.ROOTS):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
        taken.update(range(first, last + 1))
        report = nvbandwidth_json.read(document, whole, stream[first][0])
        cursor = start
        for case in report.cases:
            at = body.find(f'"{case.name}"', cursor, end)
            if at >= 0:
                cursor, case.line = at + 1, stream[bisect_right(starts, at) - 1][0]
        found.append(report)
    reader = nvbandwidth_text.Reader()
    for index, (number, line) in enumerate(stream):
        if index not in taken:
            reader.feed(number, line)
    if reader.report is not None:
        if found and not reader.report.cases:
            found[0].errors.extend(reader.report.errors)
        else:
            found.append(reader.report)
    for number, line in reader.other:
        outcome.unread(number, line, "not part of nvbandwidth's report")
    return found


def _complete(report: Report) -> bool:
    """Before version 0.5 the text had no closing note: the last test must then have its sum."""
    if not report.cases or report.errors or any(case.status == RUNNING for case in report.cases):
        return False
    version = re.match(r"v?(\d+)\.(\d+)", report.version or "")
    noted = version is not None and (int(version[1]), int(version[2])) >= (0, 5)
    return report.whole or (report.form == "text" and not noted and report.cases[-1].status in (PASSED, WAIVED))


def _pairs(case: Case) -> list[tuple[str, str, float]]:
    """(row, column, value) of the cells that were measured."""
    own = len(case.rows) == len(case.columns) and "device_to_device" in case.name
    pairs = []
    for row, cells in zip(case.rows, case.matrix, strict=False):
        for column, value in zip(case.columns, cells, strict=False):
            if value is not None and not (own and row == column):
                pairs.append((row, column, value))
    return pairs


def _run(report: Report) -> dict:
    tests, rows, metrics = [], [], {}
    for case in report.cases:
        pairs = _pairs(case)
        entry: dict = {
            "name": case.name,
            "status": case.status,
            "unit": case.unit,
            "description": case.description,
            "line": case.line,
        }
        if case.matrix:
            entry |= {"rows": case.rows, "columns": case.columns, "matrix": case.matrix}
        if "sum" in case.printed:
            entry["sum"] = case.printed["sum"]
        if case.message:
            entry["message"] = case.message
        tests.append(entry)
        for row, column, value in pairs[: max(0, ROW_LIMIT - len(rows))]:
            rows.append({"test": case.name, "source": row, "target": column, "value": value, "unit": case.unit})
        values = [value for _row, _column, value in pairs]
        if values and case.status == PASSED:
            metrics[f"{case.name}.min"] = metric(min(values), case.unit)
            metrics[f"{case.name}.max"] = metric(max(values), case.unit)
            metrics[f"{case.name}.mean"] = metric(sum(values) / len(values), case.unit)
            metrics[f"{case.name}.sum"] = metric(sum(values), case.unit)
    hosts = list(dict.fromkeys(device["host"] for device in report.devices if "host" in device))
    return {
        "test": "nvbandwidth",
        "format": report.form,
        "version": report.version,
        "driver": report.driver,
        "cuda": report.cuda,
        "line": report.line,
        "devices": report.devices,
        "tests": tests,
        "rows": rows,
        "metrics": metrics,
        "gpus": sorted(_gpus(report)),
        "waivedUnnamed": report.unnamed,
        "ranks": [device for device in report.devices if "rank" in device],
        "hosts": hosts or ([report.host] if report.host else []),
        "transports": [],
    }


def _gpus(report: Report) -> set[int]:
    """From the list of devices, or the columns of a test between the host and its GPUs."""
    if report.devices:
        return {device["gpu"] for device in report.devices}
    for case in report.cases:
        if case.matrix and ("host_to_device" in case.name or "device_to_host" in case.name):
            return {int(column) for column in case.columns if column.isdigit()}
    return set()


def _judge(outcome: Outcome, report: Report, run: dict, expected_gpus: object, wanted: list[str]) -> None:
    host = report.host
    for line, text in report.errors:
        if fabric_manager_down(text):
            outcome.fabric(host, line, text)
        else:
            outcome.find("tool-error", f"nvbandwidth: {text}", host=host, line=line, text=text, category=_kind(text))
    for line, text in report.warnings:
        outcome.find(
            "tool-warning", f"nvbandwidth: {text}", severity="warning", host=host, line=line, text=text, category=TOOL
        )
    measured = set()
    for case in report.cases:
        if case.status == PASSED and case.matrix:
            measured.add(case.name)
        _case(outcome, case, host, case.name in wanted)
    if report.unnamed:
        outcome.find(
            "test-waived", f"{report.unnamed} tests were waived, without saying which", severity="warning", host=host,
            line=report.line, category=CONFIGURATION,
        )  # fmt: skip
    if not report.whole and report.form == "json":
        outcome.find(
            "output-truncated", "nvbandwidth's report breaks off", scope="run", host=host, line=report.line,
            category=INFRASTRUCTURE,
        )  # fmt: skip
    known = {case.name for case in report.cases}
    for name in wanted:
        if name not in known:
            outcome.find("test-missing", f"The test {name} has no result", host=host, line=report.line, category=TOOL)
    if report.cases or report.devices:
        by_host: dict[str | None, set[int]] = {}
        for device in report.devices:
            by_host.setdefault(device.get("host") or host, set()).add(device["gpu"])
        for place, gpus in (by_host or {host: _gpus(report)}).items():
            check_gpus(outcome, expected_gpus, gpus, len(gpus) or None, place, "nvbandwidth")


def _case(outcome: Outcome, case: Case, host: str | None, needed: bool) -> None:
    common = {"host": host, "line": case.line, "text": case.message}
    reason = f": {case.message}" if case.message else ""
    if case.message and fabric_manager_down(case.message):
        outcome.fabric(host, case.line, case.message)
    elif case.status == WAIVED:
        outcome.find(
            "test-waived", f"{case.name} was waived{reason}", severity="error" if needed else "warning",
            category=CONFIGURATION, **common,
        )  # fmt: skip
    elif case.status == NOT_FOUND:
        outcome.find(
            "test-not-found", f"{case.name} is no test of this version{reason}", category=CONFIGURATION, **common
        )
    elif case.status == ERROR:
        outcome.find("test-failed", f"{case.name} failed{reason}", category=_kind(case.message), **common)
    elif case.status == RUNNING:
        outcome.find(
            "test-unfinished", f"{case.name} began and has no end", scope="run", category=INFRASTRUCTURE, **common
        )
    elif not _pairs(case):
        outcome.find("no-measurement", f"{case.name} passed without a measured pair", category=TOOL, **common)
    else:
        _values(outcome, case, host)


def _kind(text: str) -> str:
    """Whose fault an error is."""
    for kind, words in _KINDS:
        if words.search(text):
            return kind
    return UNKNOWN


def _values(outcome: Outcome, case: Case, host: str | None) -> None:
    ragged = [row for row, cells in zip(case.rows, case.matrix, strict=False) if len(cells) != len(case.columns)]
    if ragged:
        outcome.find(
            "matrix-incomplete", f"{case.name}: row {ragged[0]} does not have {len(case.columns)} cells", scope="run",
            host=host, line=case.line, category=TOOL,
        )  # fmt: skip
    for row, column, value in _pairs(case):
        if value <= 0:
            outcome.find(
                "zero-bandwidth", f"{case.name}: {value:g} {case.unit} from {row} to {column}", scope="pair", host=host,
                entity=f"{row} - {column}", line=case.line, category=HARDWARE,
            )  # fmt: skip
    cells = [value for row in case.matrix for value in row if value is not None]
    said, total = case.printed.get("sum"), sum(cells)
    if said is not None and not ragged and abs(said - total) > _ROUNDING * len(cells) + 1e-3 * abs(total):
        message = f"{case.name}: the cells add up to {total:.2f}, the tool says {said:.2f}"
        outcome.find("sum-mismatch", message, severity="warning", scope="run", host=host, line=case.line, category=TOOL)
