# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a parser found in the output of a test, in the one shape all parsers share.

    tool, toolVersion   "dcgm-diag", "4.2.3" or None
    complete            the output ends as a finished run ends
    runs                [{test, metrics: {name: {value, unit}}, ranks, hosts, transports, …}]
    findings            [{code, severity: error|warning|info, scope: node|gpu|pair|service|run, host, entity, message,
                        line, text, category: hardware|configuration|tool|infrastructure|unknown}], at most 1,000
    findingsTotal       how many there are
    unparsed            [{line, text, reason}], at most 200, and unparsedTotal
    lines               lines of the output

A finding is a fact that needs no threshold: a faulty GPU, a skipped test, a missing rank. What was not measured is
absent, never zero.
"""

from __future__ import annotations

import math
import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.excerpts import excerpt, masked
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

FINDING_LIMIT = 1000
UNPARSED_LIMIT = 200
TEXT_LIMIT = 1000
MESSAGE_LIMIT = 2000

HARDWARE, CONFIGURATION, TOOL, INFRASTRUCTURE, UNKNOWN = (
    "hardware",
    "configuration",
    "tool",
    "infrastructure",
    "unknown",
)

# CUDA error 802 on an NVSwitch system: the service that sets up the fabric does not run
_FABRIC = re.compile(
    r"system[ _]not[ _](?:yet[ _])?(?:initialized|ready)"
    r"|fabric[ -]?manager[^.]{0,60}\b(?:not|isn't|failed|down|inactive|missing|stopped)\b",
    re.IGNORECASE,
)
FABRIC_MESSAGE = (
    "The fabric manager of this node is not running or not done, so that CUDA cannot start on any GPU: "
    "start nvidia-fabricmanager in the driver's version and test again"
)


def fabric_manager_down(text: str) -> bool:
    return bool(_FABRIC.search(text))


class Outcome:
    """Collects; `result` gives the dict."""

    def __init__(self, tool: str):
        self.tool = tool
        self.version: str | None = None
        self.complete = False
        self.runs: list[dict] = []
        self.findings: list[dict] = []
        self.total = 0
        self.unparsed: list[dict] = []
        self.unparsed_total = 0
        self.lines = 0
        self._once: set[tuple] = set()

    def find(
        self,
        code: str,
        message: str,
        *,
        severity: str = "error",
        scope: str = "node",
        host: str | None = None,
        entity: str | None = None,
        line: int | None = None,
        text: str = "",
        category: str = UNKNOWN,
    ) -> None:
        """The same statement about the same thing counts once."""
        message = clip(masked(clip(message, MESSAGE_LIMIT)), MESSAGE_LIMIT)
        key = (code, scope, host, entity, message)
        if key in self._once:
            return
        self.total += 1
        if len(self.findings) >= FINDING_LIMIT:
            return
        self._once.add(key)
        self.findings.append(
            {
                "code": code,
                "severity": severity,
                "scope": scope,
                "host": host,
                "entity": entity,
                "message": message,
                "line": line,
                "text": excerpt(clip(text, TEXT_LIMIT)),
                "category": category,
            }
        )

    def fabric(self, host: str | None, line: int | None, text: str) -> None:
        self.find(
            "fabric-manager-down",
            FABRIC_MESSAGE,
            scope="service",
            host=host,
            entity="nvidia-fabricmanager",
            line=line,
            text=text,
            category=INFRASTRUCTURE,
        )

    def unread(self, line: int, text: str, reason: str) -> None:
        self.unparsed_total += 1
        if len(self.unparsed) < UNPARSED_LIMIT:
            self.unparsed.append({"line": line, "text": excerpt(clip(text, TEXT_LIMIT)), "reason": reason})

    def result(self) -> dict:
        return {
            "tool": self.tool,
            "toolVersion": self.version,
            "complete": self.complete,
            "runs": self.runs,
            "findings": self.findings,
            "findingsTotal": self.total,
            "unparsed": self.unparsed,
            "unparsedTotal": self.unparsed_total,
            "lines": self.lines,
        }


def clip(value: object, limit: int) -> str:
    """One line of text of at most `limit` characters."""
    text = " ".join(str(value)[: 2 * limit].split()).encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def number(value: object) -> float | None:
    """A finite number, or None; truth values and texts like N/A are none."""
    if isinstance(value, bool):
        return None
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def metric(value: float, unit: str) -> dict:
    return {"value": round(value, 6), "unit": unit}


def median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def whole(value: object, name: str, least: int = 0) -> int | None:
    """An expectation that counts something; None where there is none. Raises InvalidDocument."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or int(value) != float(value) or int(value) < least:  # type: ignore[arg-type]
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidDocument(f"{name}={value!r} is no whole number of {least} or more", hint="such as 8") from None
    return int(value)  # type: ignore[arg-type]


def names(value: object, name: str) -> list[str]:
    """An expectation that is a list of names; empty where there is none. Raises InvalidDocument."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise InvalidDocument(f"{name}={value!r} is no list of names", hint="such as ['memory', 'pcie']")
    return list(dict.fromkeys(value))


def gpu_expectation(value: object) -> tuple[int | None, set[int] | None]:
    """(how many GPUs, which) from a number or a list of GPU numbers. Raises InvalidDocument."""
    if isinstance(value, (list, tuple, set)):
        which = {whole(item, "expected_gpus") for item in value}
        return len(which), {item for item in which if item is not None}
    count = whole(value, "expected_gpus", 1)
    return count, None


def check_gpus(
    outcome: Outcome,
    expected: object,
    found: set[int],
    counted: int | None,
    host: str | None,
    where: str,
    present: int | None = None,
) -> None:
    """One finding for GPUs that were expected and are not there.

    `found` are the GPUs' numbers where the output tells; `counted` how many it speaks of, None where it does not tell.
    `present`: how many the tool saw on the node, also those that it left out.
    """
    count, which = gpu_expectation(expected)
    if count is None:
        return
    if counted is None and not found:
        outcome.find(
            "gpu-count-unknown",
            f"{where} does not tell which GPUs it ran on; {count} were expected",
            host=host,
            category=TOOL,
        )
        return
    have = len(found) if found else counted or 0
    if which and found:
        missing, unasked = sorted(which - found), sorted(found - which)
    else:
        # numbers from 0 on, if they explain exactly the gap
        missing, unasked = sorted(set(range(count)) - found) if found else [], []
        missing = missing if len(missing) == count - have else []
    if have < count or missing:
        named = f"; missing: {', '.join(map(str, missing))}" if missing else ""
        left_out = bool(found) and present is not None and present >= count
        outcome.find(
            "gpu-not-tested" if left_out else "gpu-missing",
            f"{where} ran on {min(have, count - len(missing))} of {count} GPUs{named}",
            host=host,
            entity=", ".join(f"GPU {gpu}" for gpu in missing) or None,
            category=TOOL if left_out else HARDWARE,
        )
    if unasked:
        outcome.find(
            "gpu-unexpected",
            f"{where} also ran on GPU {', '.join(map(str, unasked))}, which was not asked for",
            severity="warning",
            host=host,
            category=TOOL,
        )
