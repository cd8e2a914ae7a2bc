# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node conditions in text for people: `kubectl describe node`, and how Go prints the structs in logs.

Type             Status  LastHeartbeatTime    LastTransitionTime   Reason                Message
KernelDeadlock   False   Thu, 30 Oct ...      Thu, 30 Oct ...      KernelHasNoDeadlock   kernel has no deadlock
Type:XIDError Status:True LastHeartbeatTime:2026-05-11 10:35:45 +0530 IST ... Reason:... Message:...
GpuNvlinkWatch = True   reason=GpuNvlinkWatchIsNotHealthy
Conditions: [{"type":"XIDError","status":"False", ...}]
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator

_NAME = re.compile(r"Name:\s+(\S+)")
_BOOT = re.compile(r"\s*Boot ID:\s+(\S+)")
_SECTION = re.compile(r"\s*Conditions:\s*$")
_OTHER_SECTION = re.compile(r"[A-Za-z][A-Za-z ()-]*:(?:\s|$)")
_HEADER = re.compile(r"\s*(?:Type\s+Status\b|-{2,}\s+-{2,})")
_CLOCK = (
    r"[A-Z][a-z]{2}, \d\d? [A-Z][a-z]{2} \d{4} [\d:]{8} \S+|<unknown>|"
    r"\d{4}-\d\d-\d\d[T ][\d:.]{8,}\S*(?: [+-]\d{4}(?: [A-Z]+)?)?"
)
_ROW = re.compile(rf"\s*([A-Za-z][A-Za-z0-9._/-]*)\s+(True|False|Unknown)(?:\s{{2,}}|\t|\s*$|\s(?={_CLOCK}))(.*)")
_GO = re.compile(r"[{\s]?Type:\s?([A-Za-z][A-Za-z0-9._/-]*),?\s+Status:\s?(True|False|Unknown)\b")
_GO_FIELD = re.compile(r"\b(LastHeartbeatTime|LastTransitionTime|Reason|Message):")
_EQUALS = re.compile(
    r"\s*([A-Za-z][A-Za-z0-9._/-]*)\s*=\s*(True|False|Unknown)\b(?:\s+reason=(\S*))?(?:\s+message=(.*))?"
)
_JSON = re.compile(r"Conditions:\s*(?=\[\s*\{)")
_JSON_TEXT = re.compile(r'\s*[\[{][\[{\s]*"')
_YAML_TEXT = re.compile(
    r"^(?:- )?(?:apiVersion|kind|items|metadata|status|conditions|type|message|last\w+Time):(?:\s|$)", re.MULTILINE
)
_TIME = re.compile(rf"\s*({_CLOCK})(?:\s+|$)")
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_:,.-]*|\{.*\}")


def looks(text: str) -> bool:
    """Whether a text is of these forms, and not YAML or JSON."""
    if _JSON_TEXT.match(text) or _YAML_TEXT.search(text):
        return False
    if _JSON.search(text) or _GO.search(text):
        return True
    lines = text.splitlines()
    headed = any(_HEADER.match(line) for line in lines)
    return headed or any(_ROW.match(line) or _EQUALS.match(line) for line in lines)


def read(text: str) -> Iterator[dict]:
    """{node, boot, line, text, type, status, reason, message, lastTransitionTime} of each; node and boot may be ''."""
    found: list[dict] = []
    node, since, inside = "", 0, False
    sections = bool(re.search(r"^\s*Conditions:\s*$", text, re.MULTILINE))
    for number, line in enumerate(textwrap.dedent(text).splitlines(), 1):
        name, boot = _NAME.match(line), _BOOT.match(line)
        if name:
            node, since, inside = name[1], len(found), False
        elif boot:
            for condition in found[since:]:
                condition["boot"] = boot[1]
        elif _SECTION.match(line):
            inside = True
        elif _JSON.search(line):
            found += [{**condition, "node": node, "line": number, "text": line} for condition in _listed(line)]
        elif _GO.search(line):
            found += [{**condition, "node": node, "line": number, "text": line} for condition in _printed(line)]
        elif sections and inside and _OTHER_SECTION.match(line):
            inside = False
        elif line.strip() and (inside or not sections) and not _HEADER.match(line):
            row = _EQUALS.match(line)
            if row:
                fields = {"type": row[1], "status": row[2], "reason": row[3] or "", "message": row[4] or ""}
            else:
                row = _ROW.match(line)
                fields = {"type": row[1], "status": row[2], **_cells(row[3])} if row else {}
            if row:
                found.append({**fields, "node": node, "line": number, "text": line})
            elif found and found[-1]["node"] == node:  # a message over several lines
                found[-1]["message"] = f"{found[-1].get('message') or ''} {line.strip()}".strip()
    yield from found


def _cells(rest: str) -> dict:
    """Heartbeat, transition, reason and message; the times and the reason may be missing."""
    times, at = [], 0
    while len(times) < 2 and (match := _TIME.match(rest, at)):
        times.append(match[1])
        at = match.end()
    rest = rest[at:].strip()
    first, _gap, message = re.sub(r"\t+", "  ", rest).partition("  ")
    if not message and times:  # the columns were squeezed together
        first, _gap, message = rest.partition(" ")
    reason = first if _REASON.fullmatch(first) else ""
    return {
        "lastTransitionTime": times[-1] if times else None,
        "reason": reason,
        "message": message.strip() if reason else rest,
    }


def _listed(line: str) -> list[dict]:
    start = _JSON.search(line).end()
    try:
        conditions, _end = json.JSONDecoder().raw_decode(line, start)
    except (ValueError, RecursionError):
        return [{"broken": "malformed JSON after Conditions:"}]
    return [condition if isinstance(condition, dict) else {"broken": "no condition"} for condition in conditions]


def _printed(line: str) -> Iterator[dict]:
    heads = list(_GO.finditer(line))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(line)], strict=True):
        rest = line[head.end() : end]
        fields = {"type": head[1], "status": head[2]}
        marks = list(_GO_FIELD.finditer(rest))
        # the message comes last, and may hold anything
        for index, mark in enumerate(marks):
            if mark[1] == "Message":
                marks = marks[: index + 1]
                break
        ends = [mark.start() for mark in marks[1:]] + [len(rest)]
        for mark, stop in zip(marks, ends, strict=False):  # there may be no field at all
            key = mark[1][0].lower() + mark[1][1:]
            fields[key] = rest[mark.end() : stop].strip().rstrip(",").strip()
        if fields.get("message") and head[0].startswith("{"):
            fields["message"] = fields["message"].rstrip("]").strip().removesuffix("}")
        yield fields
