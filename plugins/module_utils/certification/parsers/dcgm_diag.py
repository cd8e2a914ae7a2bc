# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCGM diagnostics of versions 2, 3 and 4: JSON or tables, one node or several (`dcgmi mndiag`).

    parse(text, expected_gpus=8, expected_tests=["memory", "pcie"], exit_code=226) -> see `outcome`

A run is one diagnostic: {test: "dcgm-diag" | "dcgm-mndiag", format: json|text, generation: 2|3|4|None, level, driver,
tests: [{name, title, section, status, line, message?, results: [{entity, gpu, host, status, info, warnings: [{message,
errorId, errorCategory, errorSeverity, category}]}]}], gpus: [numbers that were tested], devices, measurements: [{test,
name, host, gpu, value, unit}], metrics: {"pcie.gpu_to_host_bandwidth.min": …}, …}.

A status is pass, fail, warn, skip, not_run, or unknown for a word DCGM does not have; only pass is a pass. Skipped
tests, warnings of passed tests, and GPUs without a result are findings. A test that failed while all of its GPUs
passed is the tool's failure, not a GPU's; a missing fabric manager is one fault of a service, on however many GPUs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    dcgm_findings,
    dcgm_json,
    dcgm_links,
    dcgm_names,
    dcgm_text,
    dcgm_values,
    jsontext,
    streams,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.dcgm_model import (
    Diagnostic,
    Result,
    Test,
    Warned,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    Outcome,
    gpu_expectation,
    metric,
    names,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

MEASUREMENT_LIMIT = 5000
_WORST = (dcgm_names.FAIL, "unknown", dcgm_names.WARN, dcgm_names.NOT_RUN, dcgm_names.SKIP, dcgm_names.PASS)


def parse(
    text: streams.Text,
    *,
    expected_gpus: object = None,
    expected_tests: Iterable[str] | None = None,
    exit_code: object = None,
) -> dict:
    """All diagnostics in an output. Raises InvalidDocument for expectations that cannot be, never for the output.

    `expected_gpus` is a number or a list of GPU numbers, per node; `expected_tests` must have run, by name as DCGM 4
    names them or as titled; `exit_code` is the process's, which explains, but never decides a pass.
    """
    gpu_expectation(expected_gpus)
    wanted = list(dict.fromkeys(map(dcgm_names.test_name, names(expected_tests, "expected_tests"))))
    status = _status(exit_code)
    outcome = Outcome("dcgm-diag")
    found: list[tuple[str | None, Diagnostic]] = []
    by_label, outcome.lines = streams.split(text)
    for label, stream in by_label.items():
        host = streams.host_of(label)
        found.extend((host, diagnostic) for diagnostic in _diagnostics(outcome, host, stream))
    for host, diagnostic in found:
        diagnostic.host = diagnostic.host or host
        if not diagnostic.hosts and diagnostic.host:
            diagnostic.hosts = [diagnostic.host]
        outcome.version = outcome.version or diagnostic.version
        run = _run(diagnostic)
        outcome.runs.append(run)
        dcgm_findings.judge(outcome, diagnostic, run, expected_gpus, wanted)
    dcgm_findings.missing(outcome, outcome.runs, wanted)
    dcgm_findings.exit_status(outcome, status)
    ran = [diagnostic for _host, diagnostic in found if diagnostic.tests]
    outcome.complete = bool(ran) and all(
        diagnostic.whole and diagnostic.tests and not diagnostic.errors for _host, diagnostic in found
    )
    if not ran and not outcome.runs and not any(finding["severity"] == "error" for finding in outcome.findings):
        outcome.find(
            "no-result", "The output holds no result of a diagnostic", scope="run", category=dcgm_findings.TOOL
        )
    return outcome.result()


def _status(value: object) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(str(value))
    except ValueError:
        raise InvalidDocument(f"exit_code={value!r} is no number", hint="such as 226") from None


def _diagnostics(outcome: Outcome, host: str | None, stream: list[tuple[int, str]]) -> list[Diagnostic]:
    """Of one process's output: the JSON documents, and what stands around them as tables."""
    body = "\n".join(line for _number, line in stream)
    starts, position = [], 0
    for _number, line in stream:
        starts.append(position)
        position += len(line) + 1

    def line_at(offset: int) -> int:
        return stream[max(0, bisect_right(starts, offset) - 1)][0]

    found: list[Diagnostic] = []
    taken: set[int] = set()
    for document, start, end, complete in jsontext.documents(body, dcgm_json.ROOTS + dcgm_links.ROOTS):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
        taken.update(range(first, last + 1))
        root = next((key for key in dcgm_json.ROOTS if key in document), None)
        if root is None:
            dcgm_links.read(outcome, document, line_at(start), host)
            continue
        diagnostic = dcgm_json.read(document, complete)
        diagnostic.line = line_at(start)
        cursor = start
        for test in diagnostic.tests:
            at = body.find(f'"{test.title}"', cursor, end)
            if at >= 0:
                cursor, test.line = at + 1, line_at(at)
        found.append(diagnostic)
    tables, errors, other = dcgm_text.read([item for index, item in enumerate(stream) if index not in taken])
    for diagnostic in tables:
        for test in diagnostic.tests:
            dcgm_text.settle(test)
    found.extend(tables)
    for number, text in errors:
        dcgm_findings.runtime(outcome, host, number, text)
    for number, text in other:
        outcome.unread(number, text, "outside the diagnostic's result")
    if errors and found:
        found[-1].whole = False
    return found


def _run(diagnostic: Diagnostic) -> dict:
    measurements: list[dict] = []
    tests = [_test(test, diagnostic, measurements) for test in diagnostic.tests]
    gpus = {
        result["gpu"]
        for test in tests
        for result in test["results"]
        if result["gpu"] is not None and result["status"] not in (dcgm_names.SKIP, dcgm_names.NOT_RUN)
    }
    return {
        "test": "dcgm-mndiag" if diagnostic.multinode else "dcgm-diag",
        "format": diagnostic.form,
        "generation": diagnostic.generation,
        "level": diagnostic.level,
        "version": diagnostic.version,
        "driver": diagnostic.driver,
        "line": diagnostic.line,
        "tests": tests,
        "measurements": measurements,
        "metrics": _metrics(measurements),
        "gpus": sorted(gpus),
        "gpusDetected": diagnostic.counted,
        "devices": diagnostic.devices,
        "ranks": [],
        "hosts": diagnostic.hosts,
        "transports": [],
    }


def _test(test: Test, diagnostic: Diagnostic, measurements: list[dict]) -> dict:
    name = dcgm_names.test_name(test.title)
    results = [_result(name, result, diagnostic, measurements) for result in test.results]
    statuses = {result["status"] for result in results}
    if test.word is not None:
        statuses.add(dcgm_names.status(test.word) or "unknown")
    summary: dict = {
        "name": name,
        "title": test.title,
        "section": test.section,
        "status": next((word for word in _WORST if word in statuses), dcgm_names.NOT_RUN),
        "line": test.line,
        "results": results,
    }
    if test.warnings:
        summary["warnings"] = [_warning(warned) for warned in test.warnings]
    if test.info:
        summary["info"] = test.info
    return summary


def _result(name: str, result: Result, diagnostic: Diagnostic, measurements: list[dict]) -> dict:
    host = result.host or diagnostic.host
    for info in result.info:
        for label, value, unit in dcgm_values.values(info):
            if len(measurements) < MEASUREMENT_LIMIT:
                entry = {"test": name, "name": label, "host": host, "gpu": result.gpu, "value": value, "unit": unit}
                measurements.append(entry)
    return {
        "entity": result.entity,
        "gpu": result.gpu,
        "host": host,
        "status": dcgm_names.status(result.word) or "unknown",
        "info": result.info,
        "warnings": [_warning(warned) for warned in result.warnings],
    }


def _warning(warned: Warned) -> dict:
    return {
        "message": warned.message,
        "errorId": warned.error_id,
        "errorCategory": warned.error_category,
        "errorSeverity": warned.severity,
        "category": dcgm_names.category(warned.message, warned.error_id, warned.error_category, warned.severity),
    }


def _metrics(measurements: list[dict]) -> dict:
    """The least and the most of each number over the GPUs."""
    by_name: dict[tuple[str, str], list[float]] = {}
    for item in measurements:
        by_name.setdefault((f"{item['test']}.{item['name']}", item["unit"]), []).append(item["value"])
    metrics = {}
    for (name, unit), values in by_name.items():
        metrics[f"{name}.min"] = metric(min(values), unit)
        metrics[f"{name}.max"] = metric(max(values), unit)
    return metrics
