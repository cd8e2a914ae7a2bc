# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of `dcgmi diag` without -j.

    | GPU Memory                | Pass - GPUs: 1, 2, 3                           |   DCGM 2 and 3
    |                           | Fail - GPU: 0                                  |
    | Warning                   | GPU 0 Thermal violations totaling 13.3 second  |
    |                           | s started at 9.7 seconds into the test         |
    | pcie                      | Fail                                           |   DCGM 4
    | Warning                   | There was an internal error during the test    |
    |                           | GPU0: Pass                                     |

A long text is cut every 45 characters wherever that falls, so its pieces are joined without a space; what was cut at
the right side by a terminal is made up for. A table may end in the middle.
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import dcgm_names, dcgm_text_hosts
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.dcgm_model import (
    CHUNK,
    Diagnostic,
    Result,
    Table,
    Test,
    Warned,
    joined,
)

_BORDER = re.compile(r"\s*\+-+\+(-+)\+?\s*$")
_SECTION = re.compile(r"\s*[|+]-+\s+(\S.*?)\s+-+\+-+[|+]?\s*$")
_ROW = re.compile(r"\s*\|([^|]*)\|(.*)$")
_ENTITY = re.compile(r"([A-Za-z][A-Za-z_ -]*?)\s?(\d{1,4}):\s+([A-Za-z][A-Za-z ]*)$")
_RESULT = re.compile(r"([A-Za-z][A-Za-z ]*?)\s*(?:-\s+(All|GPUs?:?\s*([\d,\s]*)))?$")
_MORE = re.compile(r"[\d,\s]+$")
_NOTE = re.compile(r"(Warning|Error|Info)(?::\s*(.+))?$", re.IGNORECASE)
_GPU = re.compile(r"\bGPU\s?(\d{1,4})\b")
_TARGET = re.compile(r"([A-Za-z]+)\s?(\d{1,4})$")
_LEVEL = re.compile(r"dcgmi\s+diag\b.*?\s(?:-r|--run)[ =]?(\d)\b")
_HOST = re.compile(r"Executing in Pod (\S+) on Host (\S+)")
_RETURN = re.compile(r"Return:\s*\((?:-\d+|[^)]*)\)", re.IGNORECASE)
_FAULT = re.compile(r"\s*Error\b|.*(?:command not found|cannot execute|No such file or directory)", re.IGNORECASE)
_KNOWN = re.compile(
    r"\s*$|.*successfully ran (?:the )?(?:multi-node )?diagnostic|\s*multi-node diagnostic failed|\s*\.\.\.\s*$"
    r"|.*[$#] dcgmi\b|\s*[+=|-]+\s*$",
    re.IGNORECASE,
)
LINE_LIMIT = 4000  # characters; a table is not as wide
_METADATA = {
    "dcgm version": "version",
    "driver version detected": "driver",
    "driver version": "driver",
}


def read(stream: list[tuple[int, str]]) -> tuple[list[Diagnostic], list[tuple[int, str]], list[tuple[int, str]]]:
    """(diagnostics, errors printed around the tables, lines that belong to neither)."""
    found: list[Diagnostic] = []
    errors: list[tuple[int, str]] = []
    other: list[tuple[int, str]] = []
    table: Table | None = None
    level: int | None = None
    host: str | None = None
    chunk = CHUNK

    def finish() -> None:
        if table is not None and table.rows:
            table.chunk = chunk
            diagnostic = dcgm_text_hosts.read(table) if dcgm_text_hosts.is_of(table) else _diagnostic(table)
            diagnostic.level, diagnostic.host = level, host
            found.append(diagnostic)

    for number, line in stream:
        if len(line) > LINE_LIMIT:
            other.append((number, line))
            continue
        border = _BORDER.match(line)
        section = None if border else _SECTION.match(line)
        row = None if border or section else _ROW.match(line)
        if border:
            if table is not None and table.rows:
                table.whole = True
            chunk = max(1, len(border[1]) - 3)
        elif section:
            table = table or Table()
            table.section, table.whole = section[1], False
        elif row:
            name, cell = row[1].strip(), _cell(row[2], chunk)
            if name == "Diagnostic" and cell.strip() == "Result":
                finish()
                table = Table()
                continue
            table = table or Table()
            table.whole = False
            if name or not table.rows or table.rows[-1][0] != table.section:
                table.rows.append((table.section, name, number, [cell]))
            else:
                table.rows[-1][3].append(cell)
        elif match := _LEVEL.search(line):
            finish()
            table, level = None, int(match[1])
        elif match := _HOST.search(line):
            host = match[2]
        elif _RETURN.search(line) or (_FAULT.match(line) and not _KNOWN.match(line)):
            errors.append((number, line.strip()))
        elif not _KNOWN.match(line):
            other.append((number, line))
    finish()
    return found, errors, other


def _cell(text: str, chunk: int) -> str:
    """The piece of text in a cell, with the spaces that are part of it."""
    if text.rstrip().endswith("|"):
        text = text.rstrip()[:-1]
    text = text[1:] if text.startswith(" ") else text
    return text[:chunk] if len(text) <= chunk + 2 else text.rstrip()


def _diagnostic(table: Table) -> Diagnostic:
    diagnostic = Diagnostic("text", whole=table.whole, line=table.rows[0][2])
    test: Test | None = None
    for section, name, line, pieces in table.rows:
        note = _NOTE.match(name)
        if note:
            _note(diagnostic, test if test and test.section == section else None, note[1], note[2], pieces, table.chunk)
        elif section.lower() == "metadata" or (not section and name.lower() in _METADATA):
            _metadata(diagnostic, name, joined(pieces, table.chunk))
            test = None
        else:
            test = Test(name, section, line=line)
            diagnostic.tests.append(test)
            _statuses(diagnostic, test, pieces)
    if diagnostic.version:
        major = re.match(r"\d+", diagnostic.version)
        diagnostic.generation = int(major[0]) if major else None
    return diagnostic


def _metadata(diagnostic: Diagnostic, name: str, value: str) -> None:
    field = _METADATA.get(name.lower())
    if field == "version":
        diagnostic.version = value or None
    elif field == "driver":
        diagnostic.driver = value or None
    elif name.lower().startswith("gpu device id"):
        identities = [item for item in re.split(r"[,\s]+", value) if item]
        diagnostic.counted = len(identities) or None


def _statuses(diagnostic: Diagnostic, test: Test, pieces: list[str]) -> None:
    """The test's status and those of its GPUs, on the lines right of its name."""
    for position, piece in enumerate(pieces):
        text = piece.strip()
        if not text:
            continue
        if entity := _ENTITY.match(text):
            test.results.append(_result(entity[3], entity[1], entity[2]))
        elif position == 0 or _RESULT.fullmatch(text):
            _result_of(diagnostic, test, text)
        elif _MORE.match(text) and test.results and test.results[-1].gpu is not None:
            word = test.results[-1].word
            test.results.extend(_result(word, "GPU", number) for number in re.findall(r"\d+", text))
        else:
            test.info.append(text)


def _result_of(diagnostic: Diagnostic, test: Test, text: str) -> None:
    match = _RESULT.fullmatch(text)
    if not match:
        test.word = text
        return
    numbers = re.findall(r"\d+", match[3] or "")
    if numbers:
        test.results.extend(_result(match[1], "GPU", number) for number in numbers)
    elif match[2]:
        diagnostic.everywhere = True
        test.results.append(Result(match[1]))
    else:
        test.word = match[1]


def _result(word: str, group: str, number: str) -> Result:
    group = "GPU" if group.strip().upper() == "GPU" else group.strip()
    return Result(word.strip(), f"{group} {int(number)}", int(number) if group == "GPU" else None)


def _note(
    diagnostic: Diagnostic, test: Test | None, kind: str, target: str | None, pieces: list[str], chunk: int
) -> None:
    """A Warning, Error or Info row, and below it in DCGM 4 the GPUs' statuses."""
    text: list[str] = []
    for piece in pieces:
        entity = _ENTITY.match(piece.strip()) if test else None
        if entity and test and dcgm_names.status(entity[3]):
            test.results.append(_result(entity[3], entity[1], entity[2]))
        else:
            text.append(piece)
    message = joined(text, chunk)
    if not message:
        return
    if kind.lower() == "info":
        (test.info if test else []).extend(re.split(r",\s*(?=GPU \d)", message))
        return
    if target and (named := _TARGET.match(target.strip())):
        gpu = f"{named[1]} {named[2]}"
        message = message if re.search(rf"\b{named[1]}\s?{named[2]}\b", message) else f"{gpu}: {message}"
    if test is None:
        diagnostic.stray.append((None, Warned(message)))
    else:
        test.warnings.append(Warned(message))


def settle(test: Test) -> None:
    """Gives each message of a table to the one GPU it names; the rest stays the test's.

    Where the table says `Fail - All`, the GPUs that messages name get a result of their own.
    """
    everyone = next((result for result in test.results if result.entity is None), None)
    by_gpu = {result.gpu: result for result in test.results if result.gpu is not None}
    for attribute in ("warnings", "info"):
        left = []
        for item in getattr(test, attribute):
            named = {int(number) for number in _GPU.findall(item.message if isinstance(item, Warned) else item)}
            gpu = named.pop() if len(named) == 1 else None
            if gpu is not None and gpu not in by_gpu and everyone is not None:
                by_gpu[gpu] = _result(everyone.word, "GPU", str(gpu))
                test.results.append(by_gpu[gpu])
            if gpu in by_gpu:
                getattr(by_gpu[gpu], attribute).append(item)
            else:
                left.append(item)
        setattr(test, attribute, left)
