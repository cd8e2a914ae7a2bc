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

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event
from ansible_collections.goodput.fleet.plugins.module_utils.signals.dcgm_table import OVERALL, Incident, Report, Table

_OPENS = re.compile(r"^[ \t]*\{", re.MULTILINE)


def read(text: str) -> Report:
    """Of a tool's output, in which reports of several forms may follow each other."""
    report = Report(lines=text.count("\n") + bool(text and not text.endswith("\n")))
    rest, line = [], 1
    for piece, is_json in _pieces(text, report):
        if is_json:
            _tree(piece, report)
        else:
            rest += enumerate(piece.split("\n"), start=line)
            line += piece.count("\n")
    table = Table(report)
    for number, text in rest:
        table.line(number, text)
    table.close()
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
