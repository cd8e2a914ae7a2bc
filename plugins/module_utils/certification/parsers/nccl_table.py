# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of nccl-tests and rccl-tests, read by its header.

The columns changed with every second release: `redop` may be missing or blank, `root` came in 2.11, `error` (a
float tolerance) became `#wrong` (a count), `#iters`, time stamps and per-iteration columns stand at the right. So
the header names the columns, and a row is read from its right end.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

OUT_OF_PLACE, IN_PLACE = "outOfPlace", "inPlace"
UNITS = {"time": "us", "algbw": "GB/s", "busbw": "GB/s", "wrong": "values", "size": "B"}

_NAMES = {"bytes": "size", "N": "count", "op": "redop", "cputime": "time", "#wrong": "wrong", "res": "error"}
_ITERATION = {"i_min": "min", "i_max": "max", "i_p99": "p99", "i_cv%": "cvPercent"}
# a number of the table, the word for "not checked", and the sign RCCL puts behind what is out of bounds
_CELL = re.compile(r"(?:[+-]?(?:\d{1,25}(?:\.\d{0,25})?(?:[eE][+-]?\d{1,4})?|nan|inf)|N/A)\*?\Z", re.IGNORECASE)
_TYPE = r"[A-Za-z][A-Za-z0-9_]{2,20}"
_START = re.compile(rf"(?:^|(?<=[\s:|>\]]))(\d{{1,20}})\s+(\d{{1,20}})\s+({_TYPE})(?=\s|\Z)")
_DATE, _CLOCK = re.compile(r"\d{4}-\d\d-\d\d\Z"), re.compile(r"\d\d:\d\d:\d\d\Z")


@dataclass
class Header:
    """Names of the columns: those at the left, those of each side, and what follows."""

    left: list[str]
    sides: list[tuple[str, list[str]]]
    tail: list[str]
    milliseconds: bool = False  # the oldest tables, which call the first column "bytes"
    width: int = field(init=False)

    def __post_init__(self) -> None:
        # a time stamp is printed as two words
        self.width = sum(len(names) for _side, names in self.sides) + sum(
            2 if n == "timestamp" else 1 for n in self.tail
        )

    @property
    def counts_wrong(self) -> bool:
        return any("wrong" in names for _side, names in self.sides)


def header(text: str, above: str = "") -> Header | None:
    """The header in this line, if it is one; `above` is the line before, which names the sides."""
    words = text.rpartition("# ")[2].split() if "# " in text else text.split()
    names = [_NAMES.get(word, word) for word in words]
    if "busbw" not in names or "algbw" not in names or "time" not in names or "size" not in names:
        return None
    names = names[names.index("size") :]
    starts = [index for index, name in enumerate(names) if name == "time"]
    order = [OUT_OF_PLACE, IN_PLACE]
    if len(starts) == 1 and "in-place" in above and "out-of-place" not in above:
        order = [IN_PLACE]
    if len(starts) > len(order):
        return None
    sides, tail = [], []
    for side, start, end in zip(order, starts, starts[1:] + [len(names)], strict=False):
        columns = names[start:end]
        last = max(i for i, name in enumerate(columns) if name in ("busbw", "wrong", "error", *_ITERATION) or not i)
        sides.append((side, columns[: last + 1]))
        tail += columns[last + 1 :]
    if any("busbw" not in columns for _side, columns in sides):
        return None
    return Header(names[: starts[0]], sides, tail, "bytes" in words)


def start(text: str) -> re.Match | None:
    """Where a row begins: size, number of elements and type, whatever a launcher put before."""
    return next(iter(list(_START.finditer(text))[-1:]), None)


def numbers(text: str) -> list[str] | None:
    """The words of a line that holds nothing but cells: the rest of a row that something was printed into."""
    words = text.split()
    return words if words and all(_is_cell(word) for word in words) else None


def leading(text: str) -> list[str]:
    """The words of a broken row up to what is no cell: size, elements, type, perhaps more."""
    words = text.split()
    kept = words[:3]
    for position, word in enumerate(words[3:]):
        if not _is_cell(word) and not (position == 0 and re.fullmatch(r"[a-z]{3,8}", word)):
            break
        kept.append(word)
    return kept


def _is_cell(word: str) -> bool:
    return bool(_CELL.match(word) or _DATE.match(word) or _CLOCK.match(word))


def row(head: Header, words: list[str], line: int) -> dict | None:
    """One measurement: {size, count, type, redop, root, iters, line, outOfPlace, inPlace}, each side {time (us), algbw
    and busbw (GB/s), wrong, error}. None where the words do not fit the header. N/A and nan are None.
    """
    if len(words) < head.width + 3:
        return None
    cells, left = words[-head.width :], words[: -head.width]
    if not all(map(_is_cell, cells)) or len(left) > max(len(head.left), 3):
        return None
    result = _left(head, left)
    if result is None:
        return None
    result["line"] = line
    position = 0
    for side, columns in head.sides:
        result[side] = _side(dict(zip(columns, cells[position : position + len(columns)], strict=True)))
        if head.milliseconds and result[side]["time"] is not None:
            result[side]["time"] = round(result[side]["time"] * 1000, 3)
        position += len(columns)
    for name in head.tail:
        if name == "timestamp":
            result["at"] = " ".join(cells[position : position + 2])
            position += 1
        elif name == "#iters" and cells[position].isdigit():
            result["iters"] = int(cells[position])
        position += 1
    return result


def _left(head: Header, words: list[str]) -> dict | None:
    result: dict = {"size": int(words[0]), "count": int(words[1]), "type": words[2]}
    for word in words[3:]:
        if re.fullmatch(r"-?\d{1,9}", word) and "root" in head.left and "root" not in result:
            result["root"] = int(word)
        elif re.fullmatch(r"[A-Za-z]\w*", word) and "redop" in head.left and "redop" not in result:
            result["redop"] = word
        else:
            return None
    if "root" in head.left and "root" not in result:
        return None
    return result


def _side(cells: dict[str, str]) -> dict:
    result: dict = {name: value(cells[name]) for name in ("time", "algbw", "busbw")}
    for name in ("wrong", "error"):
        if name in cells:
            result[name] = value(cells[name])
            if cells[name].endswith("*"):
                result["flagged"] = True
    iterations = {name: value(cells[key]) for key, name in _ITERATION.items() if key in cells}
    if iterations:
        result["iterations"] = iterations
    return result


def value(cell: object) -> float | None:
    """The number in a cell; None for N/A, nan and infinity."""
    try:
        result = float(str(cell).rstrip("*"))
    except ValueError:
        return None
    return result if math.isfinite(result) else None
