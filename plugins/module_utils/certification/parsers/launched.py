# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines in the order they were written, each with the process that the launcher or the log collector names.

    [1,0]<stdout>:TEXT, [prterun-a-17@1,0]<stdout>: TEXT    mpirun --tag-output, Open MPI 4 and 5
    [0] TEXT                                                mpiexec -prepend-rank
    [rank0]: TEXT, [default0]:TEXT                          torchrun
     0: TEXT                                                srun --label
    [pod/worker-0/main] TEXT                                kubectl logs --prefix
    2026-02-05T16:03:52.1234Z TEXT                          kubectl logs --timestamps
    2026-02-05T16:03:52.1234Z stdout F TEXT                 a container runtime's file
    worker-1  | TEXT                                        compose
    node-a: TEXT                                            pdsh, only where TEXT is clearly the tool's

Other than `streams.split` this keeps the order between processes: facts that one process tells belong to the table
another one prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import streams

_STAMP = r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[ ]?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?:?(?:\s|$)"
_MARK = re.compile(
    rf"""
    (?:[A-Z][a-z]{{2}}\s[A-Z][a-z]{{2}}\s[ \d]?\d\s\d\d:\d\d:\d\d\s\d{{4}})?
        \[(?:[^\]@\s]{{1,128}}@)?(?P<mpi>\d{{1,9}},\d{{1,9}})\](?:\[[^\]]*\])?<std(?:out|err|diag)>:?[ ]?
  | \[pod/(?P<pod>[^/\]\s]+)/[^\]\s]+\][ ]?
  | (?P<time>{_STAMP})(?:std(?:out|err)\s[FP]\s?)?
  | \[(?:rank|default)(?P<torch>\d{{1,9}})\]:[ ]?
  | \[(?P<hydra>\d{{1,9}})\][ ](?!NCCL[ ]|finished[ ])
  | [ ]{{0,6}}(?P<task>\d{{1,9}}):(?![\d:])[ ]?
  | (?P<compose>[A-Za-z0-9][\w.-]{{0,100}})[ ]+\|[ ]
    """,
    re.VERBOSE,
)
# mpirun puts its mark before whatever a process wrote at once, also in the middle of a line
_INSIDE = re.compile(r"\[(?:[^\]@\s]{1,128}@)?(\d{1,9},\d{1,9})\]<std(?:out|err|diag)>:?")
_HOST = re.compile(r"([A-Za-z0-9][\w.-]{0,100}):(?=\s)[ ]?")


@dataclass(slots=True)
class Line:
    """`number` counts from 1; `source` is "" where nothing tells who wrote the line."""

    number: int
    source: str
    text: str


def read(text: streams.Text, own: re.Pattern[str]) -> Iterator[Line]:
    """A host's name before a line is taken off where the rest matches `own`. Raises InvalidDocument."""
    for number, whole in enumerate(streams.lines(text), 1):
        for part in whole.split("\r") if "\r" in whole else (whole,):
            source, rest = _unmark(part, own)
            if "]<std" not in rest:
                yield Line(number, source, rest)
                continue
            first, *others = _INSIDE.split(rest)
            pieces = [(source, first)]
            for mark, piece in zip(others[::2], others[1::2], strict=True):
                if mark == pieces[-1][0]:
                    pieces[-1] = (mark, pieces[-1][1] + piece)
                else:
                    pieces.append((mark, piece))
            for mark, piece in pieces:
                yield Line(number, mark, piece)


def _unmark(text: str, own: re.Pattern[str]) -> tuple[str, str]:
    source: list[str] = []
    for _layer in range(4):
        match = _MARK.match(text)
        if not match:
            break
        if match.lastgroup != "time":
            source.append(match[match.lastgroup])
        text = text[match.end() :]
    match = _HOST.match(text)
    if match and own.match(text, match.end()):
        source.append(match[1])
        text = text[match.end() :]
    return "/".join(source), text
