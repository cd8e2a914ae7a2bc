# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of dcgmi, and the sentences around them: the health report of DCGM 1 to 4, and `dcgmi discovery -l`.

| GPU                       |                    |        | GPU ID: 0 | Warning                           |
| -> 0                      | Warning            |        |           | PCIe system: Warning - Detected … |
|    -> Errors              |                    |        |           | replays per minute for GPU 0: 13  |
|       -> PCIe system      | Warning            |
|                           | Detected more than |        | 0         | Name: NVIDIA H200                 |
|                           | 8 PCIe replays …   |        |           | Device UUID: GPU-…                |
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event

GROUPS = ("gpu", "vgpu", "nvswitch", "switch", "gpu_i", "gpu_ci", "link", "cpu", "cpu core", "cpu_core", "connectx")
LINE_LIMIT = 1024  # characters; a row has less than 100
OVERALL = "Overall Health"
HEADING = "health monitor report"

_ERROR = re.compile(
    r"\berror\b|\bfail(?:ed|ure)?\b|\btime[d ]*-?out\b|\brefused\b|\bunable\b|\bcannot\b|\bcould ?n[o']t\b"
    r"|\bnot found\b|\bdisconnected\b|\bunreachable\b|\bno such\b|\bdeadline\b|\bpermission denied\b|\bkilled\b",
    re.IGNORECASE,
)
_FOUND = re.compile(r"\W*(\d{1,6}|no)\s+GPUs?\s+(?:were\s+)?found\b", re.IGNORECASE)
_ROW = re.compile(r"\|([^|]*)(?:\|(.*))?$")
_OLD_ENTITY = re.compile(r"(GPU|NvSwitch|Switch|CPU|ConnectX|Link)(?:\s+ID)?\s*:\s*(\d+)", re.IGNORECASE)
_OLD_SYSTEM = re.compile(
    r"((?:\w+ )?system|Driver|NvSwitch \w+|Internal error)\s*:\s*(Healthy|Warning|Failure)\b\s*-?\s*(.*)", re.IGNORECASE
)
_DEVICE = re.compile(r"(Name|PCI Bus ID|Device UUID)\s*:\s*(\S.*)", re.IGNORECASE)


@dataclass(slots=True)
class Incident:
    """What one watch says of one entity. An entity with a value and without a watch has system ""."""

    group: str
    entity: str
    system: str
    value: str
    text: str
    line: int | None = None


@dataclass(slots=True)
class Report:
    found: bool = False  # whether there is a health report at all
    overall: str = ""
    overall_line: int | None = None
    incidents: list[Incident] = field(default_factory=list)
    watches: dict[str, bool] = field(default_factory=dict)  # of `dcgmi health -f`
    errors: list[tuple[int | None, str]] = field(default_factory=list)
    gpus_found: int | None = None  # of `dcgmi discovery -l`
    devices: dict[str, dict[str, str]] = field(default_factory=dict)  # PCI and GPU_UUID by DCGM's number; of the same
    unreadable: list[tuple[int | None, str, str]] = field(default_factory=list)  # line, text, reason
    lines: int = 0


class Table:
    """Takes lines one after the other; what they say goes into the report."""

    def __init__(self, report: Report):
        self._report = report
        self._rows: list[Incident] = []
        self._group = ""
        self._open: Incident | None = None  # takes the rows without a label
        self._device = ""  # the same, in the table of devices
        self._last = ""
        self._whole = 0  # rows that a border follows

    def line(self, number: int, line: str) -> None:
        line = line[:LINE_LIMIT].strip()
        row = _ROW.match(line)
        if row and row[2] is not None:
            right = row[2].rstrip()
            self._cell(row[1], (right[:-1] if right.endswith("|") else right).strip(), number)
        elif line[:1] == "+":
            self._whole = len(self._rows)
        elif line and line[:1] != "|":
            self._open, self._device = None, ""
            self._sentence(number, line)
        self._last = line or self._last

    def close(self) -> None:
        rows, report = self._rows, self._report
        if len(rows) > self._whole and self._last[:1] == "|":  # a number may be cut, and mean another fault
            cut = rows.pop()
            report.unreadable.append((cut.line, f"{cut.system} {cut.value} {cut.text}", "the table breaks off here"))
        whole = {(row.group, row.entity) for row in rows if row.system}
        # an entity's own value only repeats that of its watches
        report.incidents += [row for row in rows if row.system or (row.group, row.entity) not in whole]

    def _cell(self, label: str, right: str, number: int) -> None:
        name = label.strip()
        old, device = _OLD_ENTITY.fullmatch(name), _DEVICE.fullmatch(right)
        if not name:
            self._more(right, number)
            return
        self._device = ""
        if name.startswith("->"):
            self._branch(label, name[2:].strip(), right, number)
        elif name.lower() == HEADING:
            self._report.found = True
        elif name.lower() == OVERALL.lower():
            self._overall(right, number)
        elif right.lower().startswith(OVERALL.lower()):  # `Group 1 | Overall Health: Warning`, of DCGM 1 and 2
            self._overall(right.partition(":")[2].strip(), number)
        elif old:
            self._add(old[1], old[2], "", right, "", number)
        elif device and name.isdecimal():
            self._device, self._open = str(int(name)), None
        elif right.lower() in ("on", "off"):
            self._report.watches[name] = right.lower() == "on"
        else:
            self._open = None
            self._group = name if name.lower() in GROUPS or not right else ""

    def _branch(self, label: str, name: str, right: str, number: int) -> None:
        """Of the tree: an entity, its word Errors, a watch; each is three blanks further in."""
        depth = (len(label) - len(label.lstrip()) - 1) // 3 + 1
        if depth == 1 and self._group:
            self._add(self._group, name, "", right, "", number)
        elif depth >= 3 and self._rows:
            self._add(self._rows[-1].group, self._rows[-1].entity, name, right, "", number)

    def _more(self, right: str, number: int) -> None:
        """A row without label: more of the row before, or, in the old table, the next watch of the same entity."""
        device, system, opened = _DEVICE.fullmatch(right), _OLD_SYSTEM.match(right), self._open
        if device and self._device:
            self._about(device[1].lower(), device[2].strip())
        elif not opened or not right:
            return
        elif system:
            self._add(opened.group, opened.entity, system[1], system[2], system[3], number)
        else:
            opened.text = f"{opened.text} {right}".strip()

    def _about(self, what: str, value: str) -> None:
        pci = event.pci(value) if what == "pci bus id" else None
        known = {"PCI": pci} if pci else {"GPU_UUID": value} if what == "device uuid" else {}
        self._report.devices.setdefault(self._device, {}).update(known)

    def _add(self, group: str, entity: str, system: str, value: str, text: str, number: int) -> None:
        self._open = Incident(group, entity, system, value, text, number)
        self._rows.append(self._open)

    def _overall(self, value: str, number: int) -> None:
        self._report.found, self._report.overall, self._report.overall_line = True, value, number

    def _sentence(self, number: int, line: str) -> None:
        found = _FOUND.match(line)
        if found:
            self._report.gpus_found = 0 if found[1].lower() == "no" else int(found[1])
        elif line.lower() == HEADING:
            self._report.found = True
        elif _ERROR.search(line):
            self._report.errors.append((number, line))
