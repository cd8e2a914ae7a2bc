# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run's pods printed, read by the parser that its test names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    dcgm_diag,
    gpu_burn,
    nccl,
    nvbandwidth,
    perftest,
    regex,
    training,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, nearest

PARSERS = {
    "dcgm_diag": dcgm_diag,
    "gpu_burn": gpu_burn,
    "nccl": nccl,
    "nvbandwidth": nvbandwidth,
    "perftest": perftest,
    "training": training,
}
LAUNCHER = "launcher"


def read(run: Mapping, logs: Sequence[Mapping], codes: Sequence[int] = (), problems: Sequence[str] = ()) -> dict | None:
    """The parser's result; None for a test that prints nothing to be read.

    logs: [{pod, role, text}] in the order of their pods; codes: exit codes of the pods that have ended. Where a
    launcher runs the command, only what it printed counts; of several processes each line is marked with its
    pod. problems: why what they printed is not all here; each is an error of the result. Raises InvalidDocument
    for an unknown parser.
    """
    result = _parse(run, logs, codes)
    if result is not None and problems:
        found = [
            {"code": "log-unread", "severity": "error", "category": "infrastructure", "scope": "run", "message": text}
            for text in problems
        ]
        result = {**result, "complete": False, "findings": [*result.get("findings", ()), *found]}
    return result


def _parse(run: Mapping, logs: Sequence[Mapping], codes: Sequence[int]) -> dict | None:
    parser = run["parser"]
    tool = parser["tool"]
    if tool == "none":
        return None
    lines = _lines(logs)
    if tool == "regex":
        return regex.parse(lines, pattern=parser["pattern"], name=parser["metric"], unit=parser.get("unit", ""))
    if tool not in PARSERS:
        raise InvalidDocument(f"there is no parser {tool!r}", path="parser.tool", hint=nearest(tool, PARSERS))
    arguments = dict(run["arguments"])
    if tool == "dcgm_diag" and len(codes) == 1:
        arguments["exit_code"] = codes[0]  # some tell by it alone that a test failed
    return PARSERS[tool].parse(lines, **arguments)


def _lines(logs: Sequence[Mapping]) -> Iterator[str] | str:
    leaders = [log for log in logs if log["role"] == LAUNCHER]
    chosen = leaders or logs
    if len(chosen) == 1:
        return chosen[0]["text"]
    return (f"[pod/{log['pod']}/main] {line}" for log in chosen for line in log["text"].splitlines())
