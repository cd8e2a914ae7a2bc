# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HealthEvents that somebody else made: documents of our kind, and NVSentinel's in every wrapping they come in.

result = given.parse(text, tables=tables, received="2026-03-06T09:34:56Z")
result["events"]     HealthEvent documents with every field set, in the order of the input
result["unparsed"]   [{line, text, reason}]: what is no event, or a broken one; at most 1,000 of unparsedTotal
result["ignored"]    {reason: documents}: records of a log that hold no event

The input is data, JSON, lines of JSON or YAML; one broken event does not cost the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import dates, documents, event, given_foreign
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

DEPTH = 8  # wrappings of an event: log record, batch, database document, change stream
NO_EVENT = "a record of a log without a health event"
_GROUP = "goodput.fleet/"
_RECORD = ("level", "msg", "severity", "logger")
_REASONS = 3  # faults of one event that are named

_good = quickcheck.compile_schema(healthevent.SCHEMA)


def parse(
    value: object,
    *,
    tables: Tables,
    node: str = "",
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "health events",
) -> dict:
    """`node`, `boot_id` and `received` hold where an event does not tell. Raises InvalidDocument for neither text nor
    data; never for what the input holds.
    """
    unparsed, ignored, events = event.Unparsed(), {}, []
    text = documents.plain(value, "health events, as text or data")
    parts = [documents.Part(value)] if text is None else documents.read(text, unparsed, source_name)
    context = given_foreign.Context(tables, node, boot_id, dates.received(received), source_name)
    for part in parts:
        there = False
        for path, data, stamps in _walk(part.data, (), {}):
            there = True
            if _ours(data):
                found = _own(part, path, data, context)
            else:
                found = given_foreign.read(data, stamps, context, part.line_of(path), part.text)
            if isinstance(found, str):
                unparsed.add(part.line_of(path), part.text or _name(data), found)
            else:
                events.append(found)
        if not there:
            if isinstance(part.data, Mapping) and any(key in part.data for key in _RECORD):
                ignored[NO_EVENT] = ignored.get(NO_EVENT, 0) + 1
            elif part.data not in ([], {}, None):
                unparsed.add(part.line, part.text or _name(part.data), "no health event")
    return {
        "events": events,
        "unparsed": unparsed.in_order(),
        "unparsedTotal": unparsed.total,
        "ignored": ignored,
        "lines": documents.count(text) if text is not None else 0,
    }


def _walk(data: object, path: tuple, stamps: dict) -> Iterator[tuple[tuple, Mapping, dict]]:
    """Every event in the data, with where it stands and the times of what it is wrapped in, the inner ones first."""
    if isinstance(data, (list, tuple)):
        for index, item in enumerate(data if len(path) <= DEPTH else ()):
            if isinstance(item, (Mapping, list, tuple)):
                yield from _walk(item, (*path, index), stamps)
            elif not path:  # a list of events
                yield (index,), {"item": item}, stamps
    elif isinstance(data, Mapping):
        if _ours(data) or given_foreign.looks(data):
            yield path, data, stamps
            return
        stamps = {**stamps, **given_foreign.stamps(data)}
        for key, item in data.items() if len(path) <= DEPTH else ():
            if isinstance(item, (Mapping, list, tuple)):
                yield from _walk(item, (*path, key), stamps)


def _ours(data: Mapping) -> bool:
    return isinstance(data.get("apiVersion"), str) and data["apiVersion"].startswith(_GROUP) and "kind" in data


def _name(data: object) -> str:
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return str(name or data)[: event.SOURCE_LIMIT]


# documents of our kind


def _own(part: documents.Part, path: tuple, data: Mapping, context: given_foreign.Context) -> dict | str:
    data = dict(data)
    if not _good(data):
        problems = schema.validate(yamltree.Document(data, {}, context.source_name), "HealthEvent")
        if problems:
            return "; ".join(_words(problem) for problem in problems[:_REASONS])
    spec = data["spec"]
    healthy, state = spec["isHealthy"], spec.get("state")
    state = "healthy" if healthy else state if state in ("sick", "unknown") else "sick"
    fatal = spec["isFatal"] and state == "sick"  # healthy, or blind, is never fatal
    source = {"line": None, "text": "", **spec.get("source", {"name": context.source_name})}
    return {
        "apiVersion": data["apiVersion"],
        "kind": data["kind"],
        "metadata": data["metadata"],
        "spec": {
            "errorCode": [],
            "codeSpace": "other",
            "entitiesImpacted": [],
            "recommendedAction": "NONE",
            "message": "",
            "generatedTimestamp": None,
            "cause": None,
            "metadata": {},
            **spec,
            "isFatal": fatal,
            "state": state,
            "severity": spec.get("severity") or ("info" if healthy else "fatal" if fatal else "error"),
            "receivedTimestamp": spec.get("receivedTimestamp") or context.received,
            "bootId": spec.get("bootId") or context.boot_id,
            "source": source,
        },
    }


def _words(problem) -> str:
    text = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return f"{text} ({problem.hint})" if problem.hint else text
