# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `dcgmi health -c` printed, as data: JSON, the tables of DCGM 2 to 4, or an error instead of a report.

report = read(text)
report.overall     "Failure", or "" where the report does not say
report.incidents   [Incident("GPU", "4", "Memory system", "Failure", "Detected XID 31 for GPU 4 …", line)]
report.errors      [(line, "Error: Unable to check health watches. Return: …")]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event

VALUES = ("Healthy", "Warning", "Failure")
GROUPS = ("gpu", "vgpu", "nvswitch", "switch", "gpu_i", "gpu_ci", "link", "cpu", "cpu core", "cpu_core", "connectx")
LINE_LIMIT = 1024  # characters; a row has less than 100
OVERALL = "Overall Health"
HEADING = "health monitor report"

_OPENS = re.compile(r"^[ \t]*\{", re.MULTILINE)
_ERROR = re.compile(
    r"\berror\b|\bfail(?:ed|ure)?\b|\btime[d ]*-?out\b|\brefused\b|\bunable\b|\bcannot\b|\bcould ?n[o']t\b"
    r"|\bnot found\b|\bdisconnected\b|\bunreachable\b|\bno such\b|\bdeadline\b|\bpermission denied\b|\bkilled\b",
    re.IGNORECASE,
)
_FOUND = re.compile(r"\W*(\d{1,6}|no)\s+GPUs?\s+(?:were\s+)?found\b", re.IGNORECASE)
_ROW = re.compile(r"\|([^|]*)(?:\|(.*))?$")
_OLD_ENTITY = re.compile(r"(GPU|NvSwitch|Switch|CPU|ConnectX|Link)(?:\s+ID)?\s*:\s*(\d+)", re.IGNORECASE)
_OLD_SYSTEM = re.compile(
    r"((?:\w+ )?system|Driver|NvSwitch \w+|Internal error)\s*:\s*(Healthy|Warning|Failure)\b\s*-?\s*(.*)", re.IGNORECASE
)


@dataclass(slots=True)
class Incident:
    """What one watch says of one entity. An entity with a value and without a watch has system ""."""

    group: str
    entity: str
    system: str
    value: str
    text: str
    line: int | None = None


@dataclass(slots=True)
class Report:
    found: bool = False  # whether there is a health report at all
    overall: str = ""
    overall_line: int | None = None
    incidents: list[Incident] = field(default_factory=list)
    watches: dict[str, bool] = field(default_factory=dict)  # of `dcgmi health -f`
    errors: list[tuple[int | None, str]] = field(default_factory=list)
    gpus_found: int | None = None  # of `dcgmi discovery -l`
    unreadable: list[tuple[int | None, str, str]] = field(default_factory=list)  # line, text, reason
    lines: int = 0


def read(text: str) -> Report:
    """Of a tool's output, in which reports of several forms may follow each other."""
    report = Report(lines=text.count("\n") + bool(text and not text.endswith("\n")))
    rest, line = [], 1
    for piece, is_json in _pieces(text, report):
        if is_json:
            _tree(piece, report)
        else:
            rest += list(enumerate(piece.split("\n"), start=line))
            line += piece.count("\n")
    _table(rest, report)
    return report


def read_data(data: Mapping) -> Report:
    """Of JSON that was decoded before."""
    report = Report(lines=0)
    _tree(data, report)
    return report


def _pieces(text: str, report: Report) -> Iterator[tuple[object, bool]]:
    """Texts and JSON objects in order. Text keeps its line count: an object is replaced by its line ends."""
    at = 0
    while opens := _OPENS.search(text, at):
        yield text[at : opens.start()], False
        start = opens.end() - 1
        try:
            data, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", start)) + 1
            report.unreadable.append((line, text[start:], f"JSON that is malformed or breaks off at line {line}"))
            return
        yield data, True
        yield "\n" * text.count("\n", opens.start(), end), False
        at = end
    yield text[at:], False


# JSON


def _tree(data: object, report: Report) -> None:
    body = data.get("body") if isinstance(data, Mapping) else None
    if not isinstance(body, Mapping):
        report.unreadable.append((None, _brief(data), "JSON without a body, so no report of dcgmi health"))
        return
    for name, node in body.items():
        name, value = str(name), _value(node)
        if name.lower() == OVERALL.lower():
            report.found, report.overall = True, value
        elif value.lower() in ("on", "off"):
            report.watches[name] = value.lower() == "on"
        elif isinstance(node, Mapping):
            _group(name, node, report)
        else:
            report.unreadable.append((None, _brief(node), f"{name} is no object"))


def _group(group: str, node: Mapping, report: Report) -> None:
    children = node.get("children")
    if not isinstance(children, Mapping):
        if _value(node) not in ("", "Healthy"):
            report.incidents.append(Incident(group, "", "", _value(node), _overflow(node)))
        return
    report.found = True
    for entity, child in children.items():
        systems = _children(_children(child).get("Errors", child))
        if not isinstance(child, Mapping):
            report.unreadable.append((None, _brief(child), f"{group} {entity} is no object"))
        elif systems:
            for system, told in systems.items():
                value = _value(told) or _value(child)
                report.incidents.append(Incident(group, str(entity), str(system), value, _overflow(told)))
        else:
            report.incidents.append(Incident(group, str(entity), "", _value(child), _overflow(child)))


def _children(node: object) -> Mapping:
    children = node.get("children") if isinstance(node, Mapping) else None
    return children if isinstance(children, Mapping) else {}


def _value(node: object) -> str:
    value = node.get("value") if isinstance(node, Mapping) else node
    return event.clean(value, 64).strip() if isinstance(value, (str, int, float)) else ""


def _overflow(node: object) -> str:
    """The message, which dcgmi broke into pieces of up to 54 characters between words."""
    pieces = node.get("overflow") if isinstance(node, Mapping) else None
    pieces = [pieces] if isinstance(pieces, (str, Mapping)) else pieces if isinstance(pieces, list) else []
    texts = [piece.get("value") if isinstance(piece, Mapping) else piece for piece in pieces]
    return " ".join(" ".join(text.split()) for text in texts if isinstance(text, str))


def _brief(data: object) -> str:
    try:
        return json.dumps(data)[:512]
    except (TypeError, ValueError, RecursionError):
        return type(data).__name__


# tables, and what stands around them


def _table(lines: list[tuple[int, str]], report: Report) -> None:
    rows: list[Incident] = []
    group, last = "", ""
    for number, line in lines:
        line = line[:LINE_LIMIT].strip()
        row = _ROW.match(line)
        if row and row[2] is not None:
            right = row[2].rstrip()
            right = (right[:-1] if right.endswith("|") else right).strip()
            group = _cell(row[1], right, number, group, rows, report)
        elif not row and line[:1] != "+":
            _sentence(number, line, report)
        last = line or last
    if rows and last[:1] == "|":  # a number may be cut, and mean another fault
        cut = rows.pop()
        report.unreadable.append((cut.line, f"{cut.system} {cut.value} {cut.text}", "the table breaks off here"))
    whole = {(row.group, row.entity) for row in rows if row.system}
    # an entity's own value only repeats that of its watches
    report.incidents += [row for row in rows if row.system or (row.group, row.entity) not in whole]


def _cell(label: str, right: str, number: int, group: str, rows: list[Incident], report: Report) -> str:
    """One row of a table; gives the group of entities that holds for the next one."""
    name = label.strip()
    arrow = name.startswith("->")
    old = _OLD_ENTITY.fullmatch(name)
    depth = (len(label) - len(label.lstrip()) - 1) // 3 + 1 if arrow else 0
    name = name[2:].strip() if arrow else name
    if not name:
        _more(right, number, rows)
    elif name.lower() == HEADING:
        report.found = True
    elif name.lower() == OVERALL.lower():
        report.found, report.overall, report.overall_line = True, right, number
    elif right.lower().startswith(OVERALL.lower()):  # `Group 1 | Overall Health: Warning`, of DCGM 1 and 2
        report.found, report.overall, report.overall_line = True, right.partition(":")[2].strip(), number
    elif old:
        rows.append(Incident(old[1], old[2], "", right, "", number))
    elif right.lower() in ("on", "off"):
        report.watches[name] = right.lower() == "on"
    elif not arrow:
        found = _FOUND.match(name)
        if found:
            _count(found, report)
        return name if name.lower() in GROUPS or not right else ""
    elif depth == 1 and group:
        rows.append(Incident(group, name, "", right, "", number))
    elif depth >= 3 and rows:
        rows.append(Incident(rows[-1].group, rows[-1].entity, name, right, "", number))
    return group


def _more(right: str, number: int, rows: list[Incident]) -> None:
    """A row without label: more text of the row before, or, in the old table, the next watch of the same entity."""
    system = _OLD_SYSTEM.match(right)
    if not rows or not right:
        return
    if system:
        rows.append(Incident(rows[-1].group, rows[-1].entity, system[1], system[2], system[3], number))
    else:
        rows[-1].text = f"{rows[-1].text} {right}".strip()


def _sentence(number: int, line: str, report: Report) -> None:
    found = _FOUND.match(line)
    if found:
        _count(found, report)
    elif line.lower() == HEADING:
        report.found = True
    elif _ERROR.search(line):
        report.errors.append((number, line))


def _count(found: re.Match, report: Report) -> None:
    report.gpus_found = 0 if found[1].lower() == "no" else int(found[1])
