# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A captured output as lines, and as one stream per process where a launcher marked each line with its origin.

[1,3]<stdout>:TEXT            mpirun --tag-output
3: TEXT                       srun --label
node-a: TEXT                  pdsh
[pod/NAME/CONTAINER] TEXT     kubectl logs --prefix
2026-03-06T09:34:56.1Z TEXT   kubectl logs --timestamps, also `[2026-03-06 09:34:56,123] `
2026-03-06T09:34:56.1Z stdout F TEXT    a container runtime's file
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Union

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

LINE_LIMIT = 1 << 20  # characters; what follows in a line is not read
STREAM_LIMIT = 4096  # processes told apart; the rest shares one stream

Text = Union[str, bytes, Iterable[str], Iterable[bytes]]  # noqa: UP007

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_STAMP = (
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?:\s+(?:stdout|stderr)\s+[FP])?\s"
)
_MARK = re.compile(
    rf"""
    (?: (?P<time> {_STAMP} )
      | \[(?:[^\]@\s]{{1,128}}@)?(?P<mpi>\d{{1,9}},\d{{1,9}})\](?:<std(?:out|err|diag)>)?:[ ]?
      | \[(?:rank|default)(?P<torch>\d{{1,6}})\]:[ ]?
      | \[pod/(?P<pod>[^\]\s/]+)(?:/[^\]\s]+)?\][ ]?
      | [ ]{{0,6}}(?P<srun>\d{{1,6}}):[ ]
      | (?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?):[ ]
    )""",
    re.VERBOSE,
)
# words in lower case that begin a message, not a host's name
_WORDS = frozenset(
    ("error", "warning", "warn", "info", "note", "fatal", "debug", "usage", "iteration", "srun", "mpirun", "mpiexec")
    + ("prterun", "dcgmi", "nvvs", "torchrun", "slurmstepd", "bash", "sh", "python", "python3", "kubectl", "done")
)


def lines(text: Text) -> Iterator[str]:
    """The lines without their ends, ANSI codes and control characters. Carriage returns inside a line stay.

    Raises InvalidDocument for what is neither text, bytes, nor a list of them.
    """
    for line in _split(text):
        if len(line) > LINE_LIMIT:
            line = line[:LINE_LIMIT]
        if not line.isprintable():
            if "\x1b" in line:
                line = _ESCAPE.sub("", line)
            line = _CONTROL.sub("", line)
        yield line


def _split(text: Text) -> Iterator[str]:
    if isinstance(text, (bytes, bytearray, memoryview)):
        text = bytes(text).decode("utf-8", "replace")
    if isinstance(text, str):
        pieces = text.split("\n")
        if pieces and not pieces[-1]:
            pieces.pop()
        for piece in pieces:
            yield piece.rstrip("\r")
        return
    for number, item in enumerate(_items(text), 1):
        if isinstance(item, (bytes, bytearray)):
            item = bytes(item).decode("utf-8", "replace")
        if not isinstance(item, str):
            raise InvalidDocument(
                f"item {number} of the output is {type(item).__name__}, not a line of text",
                hint="a text, bytes, or a list of lines",
            )
        # a list's item is one line; a piece that holds several is split
        yield from (piece.rstrip("\r") for piece in item.rstrip("\r\n").split("\n"))


def _items(text: object) -> Iterator:
    if isinstance(text, dict) or not isinstance(text, Iterable):
        raise InvalidDocument(
            f"the output is {type(text).__name__}, not a text", hint="a text, bytes, or a list of lines"
        )
    return iter(text)


def unmark(line: str) -> tuple[str, str]:
    """(label, rest): who wrote the line by the launcher's mark, "" where nothing tells, and what was written."""
    label, position = "", 0
    for _mark in range(4):
        match = _MARK.match(line, position)
        if not match or match["host"] in _WORDS:
            break
        found = match["mpi"] or match["torch"] or match["pod"] or match["srun"] or match["host"]
        if found:
            if label and not (match["srun"] or match["torch"]):
                break  # one origin is enough: what follows belongs to the message
            label = f"{label}/{found}" if label else found
        position = match.end()
    return label, line[position:]


def split(text: Text) -> tuple[dict[str, list[tuple[int, str]]], int]:
    """The output by process: {label: [(line number from 1, text)]}, and how many lines it has.

    The label is "" for lines without a mark. Streams stand in the order of their first line.
    """
    streams: dict[str, list[tuple[int, str]]] = {}
    number = 0
    for number, line in enumerate(lines(text), 1):
        label, rest = unmark(line)
        if label not in streams and len(streams) >= STREAM_LIMIT:
            label = "(others)"
        streams.setdefault(label, []).append((number, rest))
    return streams, number


def host_of(label: str) -> str | None:
    """The host or pod a label names; a rank alone names none."""
    name = label.partition("/")[0]
    return name if name and not re.fullmatch(r"\d+(?:,\d+)?|\(others\)", name) else None
