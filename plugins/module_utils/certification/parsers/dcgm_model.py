# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A diagnostic's answer in one form, whatever DCGM's version and whether it was JSON or a table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Warned:
    """An error or warning DCGM gave; the numbers are DCGM's own, None where it gave none."""

    message: str
    error_id: int | None = None
    error_category: int | None = None
    severity: int | None = None


@dataclass(slots=True)
class Result:
    """Of one test on one entity. `word` is the status as printed; `gpu` the GPU's number, None for other entities."""

    word: str
    entity: str | None = None
    gpu: int | None = None
    host: str | None = None
    info: list[str] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)


@dataclass(slots=True)
class Test:
    """`word` and `warnings` are the test's own, apart from its results' (DCGM 4, and all tables)."""

    title: str
    section: str = ""
    word: str | None = None
    line: int | None = None
    info: list[str] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)


@dataclass(slots=True)
class Diagnostic:
    form: str  # json, text
    generation: int | None = None
    multinode: bool = False
    version: str | None = None
    driver: str | None = None
    level: int | None = None
    host: str | None = None
    hosts: list[str] = field(default_factory=list)
    devices: list[dict] = field(default_factory=list)  # {entity, deviceId?, serial?}
    counted: int | None = None  # GPUs the head speaks of
    everywhere: bool = False  # results speak of all GPUs at once, without numbers
    errors: list[tuple[int | None, str]] = field(default_factory=list)  # (line, text) that kept it from running
    stray: list[tuple[str | None, Warned]] = field(default_factory=list)  # (host, error) of no test
    tests: list[Test] = field(default_factory=list)
    line: int | None = None
    whole: bool = False


CHUNK = 45  # characters of a message in one row of a table


class Table:
    """A printed table: rows of (section, name, line, pieces of the cell); `whole` once its last rule was seen."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, int, list[str]]] = []
        self.section = ""
        self.whole = False
        self.chunk = CHUNK


def joined(pieces: list[str], chunk: int) -> str:
    """The text of a cell, whose pieces are `chunk` characters long but for the last."""
    return ("".join(piece.ljust(chunk) for piece in pieces[:-1]) + pieces[-1]).strip() if pieces else ""
