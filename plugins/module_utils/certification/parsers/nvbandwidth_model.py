# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both of nvbandwidth's forms are read into."""

from __future__ import annotations

from dataclasses import dataclass, field

PASSED, WAIVED, ERROR, NOT_FOUND, RUNNING = "passed", "waived", "error", "not_found", "running"


@dataclass(slots=True)
class Case:
    """One test case. A cell is None where the tool prints N/A; rows and columns are named as printed."""

    name: str
    line: int | None
    status: str = RUNNING
    description: str = ""
    unit: str = "GB/s"
    rows: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    matrix: list[list[float | None]] = field(default_factory=list)
    printed: dict[str, float] = field(default_factory=dict)  # sum, min, max, average, as the tool says
    message: str = ""


@dataclass(slots=True)
class Report:
    form: str  # json, text
    line: int | None = None
    version: str | None = None
    driver: str | None = None
    cuda: str | None = None
    host: str | None = None
    devices: list[dict] = field(default_factory=list)  # {gpu, name, pci?, host?}
    cases: list[Case] = field(default_factory=list)
    unnamed: int = 0  # waived cases of which only the word is printed
    errors: list[tuple[int | None, str]] = field(default_factory=list)
    warnings: list[tuple[int | None, str]] = field(default_factory=list)
    whole: bool = False


def unit_of(description: str) -> str:
    for unit in ("GB/s", "GiB/s", "MB/s", "TB/s", "ns", "us"):
        if f"({unit})" in description:
            return unit
    return "ns" if "latency" in description.lower() else "GB/s"
