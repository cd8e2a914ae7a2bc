# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvbandwidth's text: a matrix per test case, the row's name first, and the sum below it.

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    276.07
 1    276.36       N/A

SUM device_to_device_memcpy_read_ce 552.43
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nvbandwidth_model import (
    ERROR,
    NOT_FOUND,
    PASSED,
    WAIVED,
    Case,
    Report,
    unit_of,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import number

_VERSION = re.compile(r"nvbandwidth Version:\s*(\S+)", re.IGNORECASE)
_HEAD = re.compile(r"\s*(CUDA Runtime Version|CUDA Driver Version|Driver Version|Built from Git version):\s*(\S*)")
_DEVICE = re.compile(r"\s*Device (\d{1,4}):\s*(.*?)\s*(?:\(([0-9a-fA-F:.]+)\))?\s*$")
_PROCESS = re.compile(
    r"\s*Process\s+(\d{1,6})\s+\(([^)]+)\):\s*device (\d{1,4}):\s*(.*?)\s*(?:\(([0-9a-fA-F:.]+)\))?\s*$"
)
_RUNNING = re.compile(r"\s*Running (?:benchmark )?([A-Za-z0-9_]{1,100})\.?\s*$")
_SAID = re.compile(r"\s*(SUM|MIN|MAX|AVG|AVERAGE|MEDIAN)\s+([A-Za-z0-9_]{1,100})\s+(\S+)\s*$", re.IGNORECASE)
_STATUS = re.compile(r"\s*(Waived|Error|Not Found|ERROR|waived)\s*(?::\s*(.*?))?\s*$")
_ALONE = re.compile(
    r"\s*(?:\[?CUDA_ERROR_\w+|\[?CUDA Error|ERROR\b|Error\b|NVML_ERROR\w*|.*\bterminate called"
    r"|.*error while loading|.*command not found)"
)
_DESCRIPTION = re.compile(
    r".*\((?:GB/s|GiB/s|MB/s|TB/s|ns|us)\)\s*$|.*\b(?:bandwidth|latency)\b.*\((?:row|column)\).*$"
)
_COLUMNS = re.compile(r"\s*\d+(?:\s+\d+)*\s*$")
_CELL = r"(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|N/A|-?nan|-?inf)"
_ROW = re.compile(rf"\s*(\d+)\s+({_CELL}(?:\s+{_CELL})*)\s*$", re.IGNORECASE)
_KNOWN = re.compile(
    r"\s*$|NOTE: (?:The reported|This tool)|Additional system-specific|Performance can vary|MPI version"
)
_LONG = 2000  # characters
_ROW_LIMIT = 1 << 17
_END = re.compile(r"\s*NOTE: The reported results|\s*Performance can vary")


class Reader:
    """`feed` each line of one process's output; `report` is None until something of nvbandwidth was seen."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self.other: list[tuple[int, str]] = []
        self._case: Case | None = None

    def feed(self, number_: int, line: str) -> None:
        if len(line) > _LONG:  # only a row of a matrix is as long
            if not self._matrix(line[:_ROW_LIMIT]):
                self.other.append((number_, line))
        elif _version := _VERSION.search(line):
            self._open(number_).version = _version[1]
        elif head := _HEAD.match(line):
            report = self._open(number_)
            if head[1] == "Driver Version":
                report.driver = head[2] or None
            elif head[1] == "CUDA Runtime Version":
                report.cuda = head[2] or None
        elif process := _PROCESS.match(line):
            device = {"gpu": int(process[3]), "rank": int(process[1]), "host": process[2], "name": process[4]}
            self._open(number_).devices.append(device | ({"pci": process[5]} if process[5] else {}))
        elif device := _DEVICE.match(line):
            entry = {"gpu": int(device[1]), "name": device[2]}
            self._open(number_).devices.append(entry | ({"pci": device[3]} if device[3] else {}))
        elif running := _RUNNING.match(line):
            self._case = Case(running[1], number_)
            self._open(number_).cases.append(self._case)
        elif said := _SAID.match(line):
            self._said(number_, said[1].lower(), said[2], said[3], line)
        elif status := _STATUS.match(line):
            self._status(number_, status[1].lower(), status[2] or "", line)
        elif self._matrix(line):
            return
        elif _ALONE.match(line):
            self._fault(number_, line.strip())
        elif self._case is not None and not self._case.matrix and _DESCRIPTION.match(line):
            self._case.description = line.strip()
            self._case.unit = unit_of(line)
        elif _END.match(line) and self.report is not None:
            self.report.whole = True
        elif not _KNOWN.match(line):
            self.other.append((number_, line))

    def _open(self, line: int) -> Report:
        self.report = self.report or Report("text", line=line)
        return self.report

    def _matrix(self, line: str) -> bool:
        case = self._case
        if case is None:
            return False
        if not case.columns and _COLUMNS.match(line):
            case.columns = line.split()
            return True
        row = _ROW.match(line) if case.columns else None
        if row is None:
            return False
        cells = row[2].split()
        case.rows.append(row[1])
        # a cut row has fewer cells, a torn one may have more
        case.matrix.append([number(cell) for cell in cells])
        return True

    def _said(self, line: int, what: str, name: str, text: str, whole: str) -> None:
        value = number(text)
        cases = self.report.cases if self.report else []
        case = next((item for item in reversed(cases) if item.name == name), None)
        if case is None or value is None:
            self.other.append((line, whole))
            return
        case.printed["average" if what in ("avg", "average") else what] = value
        if case.status not in (ERROR, WAIVED):
            case.status = PASSED

    def _status(self, line: int, word: str, message: str, whole: str) -> None:
        """Of the running case, where one is; the tool prints waived cases also without a name."""
        report = self._open(line)
        case = self._case if self._case is not None and not self._case.matrix else None
        if word == "waived":
            if case is not None:
                case.status, case.message, self._case = WAIVED, message, None
            elif re.fullmatch(r"[a-z0-9_]{3,100}", message):
                report.cases.append(Case(message, line, WAIVED))
            else:
                report.unnamed += 1
        elif word == "not found":
            report.cases.append(Case(message or "unnamed", line, NOT_FOUND, message=whole.strip()))
        else:
            self._fault(line, message or whole.strip())

    def _fault(self, line: int, text: str) -> None:
        report = self._open(line)
        if self._case is not None and self._case.status not in (PASSED, WAIVED):
            self._case.status = ERROR
            self._case.message = f"{self._case.message}; {text}" if self._case.message else text
        else:
            report.errors.append((line, text))
