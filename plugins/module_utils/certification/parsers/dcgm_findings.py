# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a diagnostic's results state by themselves, without any threshold."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import dcgm_names
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.dcgm_model import Diagnostic
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.dcgm_names import (
    FABRIC_IDS,
    FAIL,
    NOT_RUN,
    PASS,
    SKIP,
    WARN,
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
)

_CODES = {FAIL: "test-failed", WARN: "test-warned", SKIP: "test-skipped", NOT_RUN: "test-not-run"}
_VERBS = {FAIL: "failed", WARN: "warned", SKIP: "was skipped", NOT_RUN: "did not run"}
# the strongest reason among several decides
_ORDER = (HARDWARE, UNKNOWN, CONFIGURATION, INFRASTRUCTURE, TOOL)
_UNTESTED = re.compile(r"(?:unable to|cannot|could not|couldn't|fail\w*( to)?) .{0,40}allocat|allocat.{0,60}fail", re.I)
_RETURN = re.compile(r"\((-\d{1,3})\)|Return:.*?(-\d{1,3})\b")


def judge(outcome: Outcome, diagnostic: Diagnostic, run: dict, expected_gpus: object, wanted: list[str]) -> None:
    """Findings of one diagnostic, from its model and the run made of it."""
    host = diagnostic.host
    fabric = _fabric(outcome, diagnostic, run)
    for line, text in diagnostic.errors:
        runtime(outcome, host, line or diagnostic.line, text)
    for place, warned in diagnostic.stray:
        text, error = warned.message, (warned.error_id, warned.error_category, warned.severity)
        if not _is_fabric(text, warned.error_id):
            kind = dcgm_names.category(text, *error)
            gpu = _one_gpu(text)
            outcome.find(
                "diagnostic-error", text, scope="gpu" if gpu else "node", host=place or host, entity=gpu,
                line=diagnostic.line, text=text, category=kind,
            )  # fmt: skip
    for test in run["tests"]:
        _test(outcome, test, host, wanted, fabric)
    if not diagnostic.whole:
        outcome.find(
            "output-truncated", "The diagnostic's output breaks off", scope="run", host=host, line=diagnostic.line,
            category=INFRASTRUCTURE,
        )  # fmt: skip
    if not run["tests"]:
        if not diagnostic.errors:
            outcome.find(
                "no-result", "The diagnostic names no test", scope="run", host=host, line=diagnostic.line,
                category=TOOL,
            )  # fmt: skip
        return
    _expected(outcome, diagnostic, run, expected_gpus)


def _test(outcome: Outcome, test: dict, host: str | None, wanted: list[str], fabric: bool) -> None:
    passive: dict[tuple[str, str | None, str, str], list[tuple[str | None, str]]] = {}
    blamed = False
    for result in test["results"]:
        status, place = result["status"], result["host"] or host
        warnings = [item for item in result["warnings"] if not _is_fabric(item["message"], item["errorId"])]
        message = "; ".join(dict.fromkeys(item["message"] for item in warnings))
        if status == PASS:
            for item in warnings:
                _warned_pass(outcome, test, result, item, place)
            continue
        if len(warnings) < len(result["warnings"]) or (fabric and status in (FAIL, WARN) and _follows(warnings)):
            blamed = True
            continue
        kind = _strongest(warnings, test)
        if status in (SKIP, NOT_RUN):
            key = (status, place, re.sub(r"\d+", "#", message), kind)
            passive.setdefault(key, []).append((result["entity"], message))
            continue
        blamed = True
        entity = result["entity"]
        subject = f"{test['title']} {_VERBS.get(status, 'has a status nobody knows')}"
        outcome.find(
            _CODES.get(status, "status-unknown"),
            f"{subject}{f' on {entity}' if entity else ''}{f': {message}' if message else ''}",
            severity="warning" if status == WARN else "error",
            scope="gpu" if result["gpu"] is not None else "node",
            host=place,
            entity=entity,
            line=test["line"],
            text=message,
            category=kind if status in _CODES else TOOL,
        )
    for (status, place, _message, kind), entities in passive.items():
        named = ", ".join(entity for entity, _text in entities if entity)
        needed = test["name"] in wanted
        where = f" on {named}" if named else ""
        _passed_over(outcome, test, status, place, where, entities[0][1], kind, needed, named or None)
    _own_status(outcome, test, host, wanted, fabric, blamed)


def _own_status(outcome: Outcome, test: dict, host: str | None, wanted: list[str], fabric: bool, blamed: bool) -> None:
    """What the test says of itself, where no entity explains it."""
    warnings = [item for item in test.get("warnings", []) if not _is_fabric(item["message"], item["errorId"])]
    message = "; ".join(dict.fromkeys(item["message"] for item in warnings))
    status = test["status"]
    statuses = {result["status"] for result in test["results"]}
    if status in (SKIP, NOT_RUN) and status not in statuses:
        _passed_over(outcome, test, status, host, "", message, _strongest(warnings, test), test["name"] in wanted, None)
    elif status in (FAIL, WARN, "unknown") and not blamed:
        if fabric and _follows(warnings):
            return
        good = bool(test["results"])
        kind = _strongest(warnings, test)
        if good and status == FAIL and kind == UNKNOWN:
            kind = TOOL  # nothing failed but the test itself
        broken = status == FAIL and kind == TOOL
        outcome.find(
            "test-error" if broken else _CODES.get(status, "status-unknown"),
            f"{test['title']} {_VERBS.get(status, 'has a status nobody knows')}"
            f"{' while all of its parts passed' if good else ''}{f': {message}' if message else ''}",
            severity="warning" if status == WARN else "error",
            scope="run" if broken else "node",
            host=host,
            line=test["line"],
            text=message,
            category=kind if status in _CODES else TOOL,
        )
    elif warnings and status == PASS:
        for item in warnings:
            _warned_pass(outcome, test, {"entity": None, "gpu": None}, item, host)
    elif warnings and blamed and status == FAIL:
        for item in warnings:
            outcome.find(
                "test-message", f"{test['title']}: {item['message']}", severity="warning", host=host,
                line=test["line"], text=item["message"], category=item["category"],
            )  # fmt: skip


def _warned_pass(outcome: Outcome, test: dict, result: dict, item: dict, host: str | None) -> None:
    # what could not be allocated was not tested
    isolate = item["errorSeverity"] in (2, 6) or _UNTESTED.search(item["message"]) is not None
    where = f" on {result['entity']}" if result["entity"] else ""
    outcome.find(
        "warning-on-pass",
        f"{test['title']} passed{where} with a warning: {item['message']}",
        severity="error" if isolate else "warning",
        scope="gpu" if result["gpu"] is not None else "node",
        host=host,
        entity=result["entity"],
        line=test["line"],
        text=item["message"],
        category=item["category"],
    )


def _passed_over(
    outcome: Outcome, test: dict, status: str, host: str | None, where: str, reason: str, kind: str, needed: bool,
    entity: str | None,
) -> None:  # fmt: skip
    outcome.find(
        _CODES[status],
        f"{test['title']} {_VERBS[status]}{where}{f': {reason}' if reason else ''}",
        severity="error" if needed else "warning",
        host=host,
        entity=entity,
        line=test["line"],
        text=reason,
        category=kind,
    )


def missing(outcome: Outcome, runs: list[dict], wanted: list[str]) -> None:
    """Tests that had to run and are in none of a host's diagnostics."""
    by_host: dict[tuple, list[dict]] = {}
    for run in runs:
        if run.get("tests"):
            by_host.setdefault(tuple(run["hosts"]), []).append(run)
    for hosts, mine in by_host.items():
        names = {test["name"] for run in mine for test in run["tests"]}
        for name in wanted:
            if name not in names:
                outcome.find(
                    "test-missing",
                    f"The test {name} has no result",
                    host=hosts[0] if len(hosts) == 1 else None,
                    line=mine[-1]["line"],
                    category=TOOL,
                )


def _expected(outcome: Outcome, diagnostic: Diagnostic, run: dict, expected_gpus: object) -> None:
    by_host: dict[str | None, set[int]] = {}
    for test in run["tests"]:
        for result in test["results"]:
            if result["gpu"] is not None and result["status"] not in (SKIP, NOT_RUN):
                by_host.setdefault(result["host"], set()).add(result["gpu"])
    for host in diagnostic.hosts if diagnostic.multinode else ():
        by_host.setdefault(host, set())
    for test in run["tests"]:
        seen: dict[str | None, set[int]] = {}
        for result in test["results"]:
            if result["gpu"] is not None:
                seen.setdefault(result["host"], set()).add(result["gpu"])
        if any(result["gpu"] is None for result in test["results"]):
            continue  # speaks of all GPUs at once
        for host, gpus in seen.items():
            without = sorted(by_host.get(host, set()) - gpus)
            if without:
                named = ", ".join(f"GPU {gpu}" for gpu in without)
                outcome.find(
                    "gpu-not-tested",
                    f"{test['title']} has no result for {named}",
                    scope="gpu" if len(without) == 1 else "node",
                    host=host,
                    entity=named,
                    line=test["line"],
                    category=TOOL,
                )
    if not diagnostic.whole:
        return  # the rest may have been in what is lost
    for host, gpus in (by_host or {diagnostic.host: set()}).items():
        where = f"The diagnostic{f' of {host}' if host and diagnostic.multinode else ''}"
        # the numbers a table's messages happen to name are not all that ran
        known = set() if diagnostic.everywhere and diagnostic.counted else gpus
        check_gpus(outcome, expected_gpus, known, diagnostic.counted, host, where, _present(diagnostic, host))


def _present(diagnostic: Diagnostic, host: str | None) -> int:
    """How many GPUs the diagnostic saw on the node, whether it tested them or not."""
    devices = [item for item in diagnostic.devices if item.get("host", host) == host]
    return max(diagnostic.counted or 0, len({item["entity"] for item in devices if item["entity"].startswith("GPU ")}))


def runtime(outcome: Outcome, host: str | None, line: int | None, text: str) -> None:
    """A line that says why the diagnostic could not run."""
    if fabric_manager_down(text):
        outcome.fabric(host, line, text)
        return
    match = _RETURN.search(text)
    code = int(match[1] or match[2]) if match else None
    meaning, kind = dcgm_names.return_code(code) if code is not None else ("", TOOL)
    if code is None:
        found = dcgm_names.category(text, None, None, None)
        kind = found if found in (CONFIGURATION, TOOL) else TOOL
    outcome.find(
        "runtime-error", f"The diagnostic did not run{f' ({code}: {meaning})' if code is not None else ''}: {text}",
        scope="run" if kind in (TOOL, INFRASTRUCTURE) else "node", host=host, line=line, text=text, category=kind,
    )  # fmt: skip


def exit_status(outcome: Outcome, status: int | None) -> None:
    """The exit status says more than the results in one case: all passed, and DCGM wants the node isolated."""
    if not status:
        return
    code = dcgm_names.of_exit_status(status)
    if code is None:
        if 128 < status < 166:
            text, kind = f"The diagnostic was ended by signal {status - 128}", INFRASTRUCTURE
        else:
            text, kind = f"dcgmi ended with status {status}", TOOL
    else:
        meaning, kind = dcgm_names.return_code(code)
        text = f"dcgmi ended with status {status} ({code}: {meaning})"
    known = any(finding["severity"] == "error" for finding in outcome.findings)
    # what the results say already is not said twice as an error
    severity = "info" if known and code != -51 else "error"
    scope = "run" if kind in (TOOL, INFRASTRUCTURE) else "node"
    outcome.find("exit-status", text, severity=severity, scope=scope, category=kind)


def _fabric(outcome: Outcome, diagnostic: Diagnostic, run: dict) -> bool:
    """One finding per host for all messages that come of a missing fabric manager."""
    hosts: dict[str | None, tuple[int | None, str]] = {}
    for test in run["tests"]:
        for result in test["results"]:
            for item in result["warnings"]:
                if _is_fabric(item["message"], item["errorId"]):
                    hosts.setdefault(result["host"] or diagnostic.host, (test["line"], item["message"]))
        for item in test.get("warnings", []):
            if _is_fabric(item["message"], item["errorId"]):
                hosts.setdefault(diagnostic.host, (test["line"], item["message"]))
    for place, warned in diagnostic.stray:
        if _is_fabric(warned.message, warned.error_id):
            hosts.setdefault(place or diagnostic.host, (diagnostic.line, warned.message))
    for host, (line, text) in hosts.items():
        outcome.fabric(host, line, text)
    return bool(hosts)


def _is_fabric(message: str, error_id: int | None) -> bool:
    return error_id in FABRIC_IDS or fabric_manager_down(message)


def _follows(warnings: list[dict]) -> bool:
    """Whether a failure says nothing beyond CUDA not starting."""
    return all("cuda" in item["message"].lower() for item in warnings)


def _strongest(warnings: list[dict], test: dict) -> str:
    if not warnings:
        return dcgm_names.test_category(test["name"])
    kinds = {item["category"] for item in warnings}
    return next((kind for kind in _ORDER if kind in kinds), UNKNOWN)


def _one_gpu(text: str) -> str | None:
    named = set(re.findall(r"\bGPU\s?(\d{1,4})\b", text))
    return f"GPU {named.pop()}" if len(named) == 1 else None
