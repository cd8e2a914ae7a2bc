# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of `dcgmi mndiag`: one test over several hosts.

| MNUBERGEMM Test           | Fail                                           |
| Hosts Found               | 2                                              |
| Host List                 | 0: node-a                                      |
|                           | 1: node-b                                      |
|-----  Host Details  ------+------------------------------------------------|
| Host 0                    | Pass                                           |
|   GPUs: 0, 1, 2, 3        | Pass                                           |
| Host 1                    | Fail                                           |
|   GPU 3                   | Fail                                           |
|                           | Error: …                                       |
|-----  Error Summary  -----+------------------------------------------------|
| Host 1 (GPU 3)            | Error: …                                       |
| MPI Error                 | Error: …                                       |
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.dcgm_model import (
    Diagnostic,
    Result,
    Table,
    Test,
    Warned,
    joined,
)

_HOST = re.compile(r"Host (\d+)$")
_SOURCE = re.compile(r"Host (\d+) \(GPU (\d+)\)$")
_GPUS = re.compile(r"GPUs?:?\s+([\d,\s]+)$")
_LISTED = re.compile(r"(\d+):\s*(\S+)$")


def is_of(table: Table) -> bool:
    return any(name == "Hosts Found" for _section, name, _line, _pieces in table.rows)


def read(table: Table) -> Diagnostic:
    diagnostic = Diagnostic("text", generation=4, multinode=True, whole=table.whole, line=table.rows[0][2])
    names: dict[int, str] = {}
    test: Test | None = None
    current: str | None = None
    for _section, name, line, pieces in table.rows:
        value = joined(pieces, table.chunk)
        if name.endswith(" Test"):
            test = Test(name, "Multi-Node Tests", value, line)
            diagnostic.tests.append(test)
        elif name == "Host List":
            listed = (_LISTED.match(piece.strip()) for piece in pieces)
            names.update({int(match[1]): match[2] for match in listed if match})
            diagnostic.hosts = list(names.values())
        elif name == "DCGM Version":
            diagnostic.version = diagnostic.version or value
        elif name == "Driver Version":
            diagnostic.driver = diagnostic.driver or value
        elif host := _HOST.match(name):
            current = names.get(int(host[1]), name)
        elif test is not None and (gpus := _GPUS.match(name)):
            word = pieces[0].strip()
            for gpu in map(int, re.findall(r"\d+", gpus[1])):
                result = Result(word, f"GPU {gpu}", gpu, current)
                if len(pieces) > 1:
                    result.warnings.append(Warned(joined(pieces[1:], table.chunk).removeprefix("Error: ")))
                test.results.append(result)
        elif test is not None and (source := _SOURCE.match(name)):
            _summary(test, names.get(int(source[1]), f"Host {source[1]}"), int(source[2]), value)
        elif test is not None and name == "MPI Error":
            test.warnings.append(Warned(value.removeprefix("Error: ")))
    return diagnostic


def _summary(test: Test, host: str, gpu: int, message: str) -> None:
    """The summary repeats what stood below the GPU; where the details are missing it is all there is."""
    result = next((item for item in test.results if (item.host, item.gpu) == (host, gpu)), None)
    if result is None:
        result = Result("Fail", f"GPU {gpu}", gpu, host)
        test.results.append(result)
    if not result.warnings:
        result.warnings.append(Warned(message.removeprefix("Error: ")))
