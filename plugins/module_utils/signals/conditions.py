# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node conditions to HealthEvents: of kubelet, node-problem-detector, AKS, GKE, EKS and NVSentinel.

result = conditions.parse(nodes, tables=tables, received="2026-03-06T09:34:56Z")
result["events"]     HealthEvent documents, healthy ones too, in the order of the input
result["unparsed"]   [{line, text, reason}]: no condition, or one without type or status; at most 1,000 of unparsedTotal

The input is a Node, a NodeList, a list of Nodes or of conditions, as data or as JSON or YAML; or the text of
`kubectl describe node`. What a status means is the catalogue's: see gitops/catalog/signals/conditions.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.healthevent import ACTIONS
from ansible_collections.goodput.fleet.plugins.module_utils.signals import (
    condition_messages,
    condition_text,
    dates,
    documents,
    event,
    meanings,
    xid,
)
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Meaning, Tables

AGENT = "node-condition"
DEPTH = 4  # lists in lists: results of modules, lists of lists
STATUSES = {"true": "True", "false": "False", "unknown": "Unknown"}
_LISTS = ("items", "resources", "nodes")
_NODE_STATUS = ("nodeInfo", "capacity", "allocatable", "addresses", "daemonEndpoints")


@dataclass(slots=True)
class Condition:
    """`since` is when the status became what it is."""

    node: str
    boot: str | None
    type: str
    status: str
    reason: str
    message: str
    since: str | None
    line: int | None
    text: str


def parse(
    value: object,
    *,
    tables: Tables,
    node: str = "",
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "node conditions",
) -> dict:
    """`node` and `boot_id` hold where the input does not tell. Raises InvalidDocument for neither text nor data."""
    unparsed, received = event.Unparsed(), dates.received(received)
    text = documents.plain(value, "Nodes, or text of their conditions")
    if text is None:
        parts, lines = [documents.Part(value)], 0
    else:
        lines = documents.count(text)
        printed = condition_text.looks(text)
        parts = [] if printed else documents.read(text, unparsed, source_name)
    found = _in_text(text, unparsed) if text is not None and printed else _in(parts, unparsed)
    judge = _Judge(tables, received, source_name)
    events = []
    for condition in found:
        condition.node = condition.node or node
        condition.boot = condition.boot or boot_id
        events += judge.events(condition)
    return {"events": events, "unparsed": unparsed.in_order(), "unparsedTotal": unparsed.total, "lines": lines}


# what the input holds


def _in_text(text: str, unparsed: event.Unparsed) -> Iterator[Condition]:
    for row in condition_text.read(text):
        if "broken" in row:
            unparsed.add(row["line"], row["text"], row["broken"])
            continue
        condition = _condition(row, row["node"], row.get("boot"), row["line"], row["text"], unparsed)
        if condition:
            yield condition


def _in(parts: list[documents.Part], unparsed: event.Unparsed) -> Iterator[Condition]:
    for part in parts:
        yield from _walk(part, part.data, (), unparsed)


def _walk(part: documents.Part, data: object, path: tuple, unparsed: event.Unparsed) -> Iterator[Condition]:
    if isinstance(data, (list, tuple)) and len(path) <= DEPTH:
        if data and all(_is_condition(item) for item in data):
            yield from _of_node(part, data, "", None, path, unparsed)
            return
        for index, item in enumerate(data):
            yield from _walk(part, item, (*path, index), unparsed)
        return
    if not isinstance(data, Mapping):
        unparsed.add(part.line_of(path), part.text or data, "no Node")
        return
    kind = data.get("kind")
    for key in _LISTS:
        if isinstance(data.get(key), (list, tuple)) and len(path) <= DEPTH and kind != "Node":
            yield from _walk_list(part, data[key], (*path, key), unparsed)
            return
    status, metadata = data.get("status"), data.get("metadata")
    if kind not in (None, "Node"):
        unparsed.add(part.line_of(path), part.text or kind, f"is a {event.clean(kind, 64)}, not a Node")
    elif isinstance(data.get("conditions"), (list, tuple)):
        yield from _of_node(part, data["conditions"], "", None, (*path, "conditions"), unparsed)
    elif _is_condition(data):
        yield from _of_node(part, [data], "", None, path, unparsed)
    elif isinstance(status, Mapping) and _is_node(status, metadata, kind):
        name = metadata.get("name") if isinstance(metadata, Mapping) else ""
        info = status.get("nodeInfo")
        boot = info.get("bootID") if isinstance(info, Mapping) else None
        given = status.get("conditions")
        if given is None:
            given = []  # a node that has just been made
        if not isinstance(given, (list, tuple)):
            unparsed.add(part.line_of((*path, "status")), part.text or name, "status.conditions is no list")
            return
        yield from _of_node(part, given, name, boot, (*path, "status", "conditions"), unparsed)
    elif kind == "Node" and not isinstance(status, Mapping):
        unparsed.add(part.line_of(path), part.text or kind, "the Node has no status")
    else:
        unparsed.add(part.line_of(path), part.text or "map", "no Node, and no conditions of one")


def _walk_list(part: documents.Part, items, path: tuple, unparsed: event.Unparsed) -> Iterator[Condition]:
    for index, item in enumerate(items):
        yield from _walk(part, item, (*path, index), unparsed)


def _is_condition(data: object) -> bool:
    return isinstance(data, Mapping) and "type" in data and "status" in data and "metadata" not in data


def _is_node(status: Mapping, metadata: object, kind: object) -> bool:
    """Other kinds have conditions, too; those of nodes have a heartbeat."""
    if kind == "Node" or any(key in status for key in _NODE_STATUS):
        return True
    conditions = status.get("conditions")
    if not isinstance(conditions, (list, tuple)):
        return False
    return any(isinstance(item, Mapping) and "lastHeartbeatTime" in item for item in conditions)


def _of_node(part, conditions, name, boot, path: tuple, unparsed: event.Unparsed) -> Iterator[Condition]:
    for index, item in enumerate(conditions):
        line = part.line_of((*path, index)) if part.document else part.line
        condition = _condition(item, name, boot, line, part.text if part.document is None else "", unparsed)
        if condition:
            yield condition


def _condition(item, name, boot, line: int | None, text: str, unparsed: event.Unparsed) -> Condition | None:
    if not isinstance(item, Mapping):
        unparsed.add(line, text or item, "no condition: not a map")
        return None
    kind, status = item.get("type"), STATUSES.get(str(item.get("status")).lower())
    if not isinstance(kind, str) or not kind.strip():
        unparsed.add(line, text or item.get("reason"), "a condition without a type")
        return None
    if status is None:
        unparsed.add(line, text or kind, f"the condition {event.clean(kind, 64)} has no status True, False or Unknown")
        return None
    return Condition(
        node=_text(name),
        boot=event.boot(boot),
        type=event.clean(kind.strip(), event.WORD_LIMIT),
        status=status,
        reason=_text(item.get("reason")),
        message=_text(item.get("message")),
        since=dates.utc(item.get("lastTransitionTime")),
        line=line,
        text=text or _text(item.get("reason")),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


# what a condition means


class _Judge:
    def __init__(self, tables: Tables, received: str | None, source: str):
        self._tables = tables
        self._table = tables.of("condition")
        self._received = received
        self._source = source

    def events(self, condition: Condition) -> Iterator[dict]:
        meaning = self._table.choose(
            condition.type, {"reason": condition.reason, "message": condition.message, "status": condition.status}
        )
        entry = meaning.entry
        nvsentinel = condition.reason in (f"{condition.type}IsNotHealthy", f"{condition.type}IsHealthy")
        nvsentinel = nvsentinel or condition.message.startswith("ErrorCode:")
        sick = condition.status in entry.get("sickWhen", ("True",))
        if nvsentinel:  # whatever the check is called
            sick = condition.status == "True"
        if condition.status == "Unknown" and not sick:
            yield self._event(condition, meaning, state="unknown", severity="warning")
        elif not meaning.known and not nvsentinel:
            yield self._event(condition, meaning, state=meaning.state, severity=meaning.severity)
        elif not sick:
            yield self._event(condition, meaning, healthy=True)
        elif meaning.state and meaning.known:
            yield self._event(condition, meaning, state=meaning.state, severity=meaning.severity, action=meaning.action)
        else:
            yield from self._sick(condition, meaning, nvsentinel)

    def _sick(self, condition: Condition, meaning: Meaning, nvsentinel: bool) -> Iterator[dict]:
        codes = []
        if meaning.entry.get("xids"):
            codes = condition_messages.xids(condition.type, condition.reason, condition.message)
        for code in codes:
            yield self._xid(condition, meaning, code)
        reported = []
        if nvsentinel or "ErrorCode:" in condition.message:
            reported = condition_messages.errors(condition.message)
        for number, one in enumerate(reported):
            yield self._reported(condition, meaning, one, number)
        if not codes and not reported:
            yield self._event(
                condition, meaning, fatal=meaning.fatal, severity=meaning.severity, action=_asked(meaning, nvsentinel)
            )

    def _xid(self, condition: Condition, meaning: Meaning, code: str) -> dict:
        """The Xid's own meaning; what the observer calls critical need not be."""
        found = self._tables.meaning("xid", code)
        boot = condition.boot
        if condition.reason.lstrip().startswith(("{", "[")):
            boot = event.boot(condition.message) or boot
        return self._event(
            condition,
            found,
            boot=boot,
            space="xid",
            codes=[code],
            component="GPU",
            fatal=found.fatal,
            state=found.state,
            severity=found.severity,
            action=found.action,
            message=f"{condition.type}: Xid {code}, {found.title}",
            family=meaning.entry.get("family"),
        )

    def _reported(self, condition: Condition, meaning: Meaning, one: condition_messages.Reported, number: int) -> dict:
        """Whether it is fatal is the catalogue's to say where it knows the code; what to do, the monitor's."""
        signal = xid.read(one.kernel_line, self._tables) if one.kernel_line else None
        if isinstance(signal, Signal):
            return self._event(
                condition,
                meaning,
                space=signal.space,
                codes=[signal.code],
                component=signal.component,
                entities=list(dict.fromkeys([*one.entities, *signal.entities])),
                fatal=signal.fatal,
                state=signal.state,
                severity=signal.severity,
                action=_of_both(signal.action, one.action, signal.fatal),
                message=f"{condition.type}: {signal.message}",
                extra={**signal.metadata, "catalogAction": signal.action},
                position=number,
            )
        resolved = [meanings.resolve(condition.type, code, one.text) for code in one.codes]
        where = resolved[0][0] if resolved else "condition"
        found = meanings.worst(self._tables, resolved)
        if found is None:
            action = _of_both(_asked(meaning, True), one.action, False)
            fatal = one.action in ACTIONS and one.action not in ("NONE", "UNKNOWN")
            severity = "fatal" if fatal else "warning" if action == "NONE" else "error"
            state = None
        else:
            fatal, severity, state = found.fatal, found.severity, found.state
            action = _of_both(found.action, one.action, fatal)
        return self._event(
            condition,
            found or meaning,
            space=where,
            codes=[code for _space, code in resolved] or [condition.type],
            component=meaning.entry.get("componentClass", "NODE"),
            entities=one.entities,
            fatal=fatal,
            state=state,
            severity=severity,
            action=action,
            message=f"{condition.type}: {' '.join([*one.codes, one.text])}",
            extra={"catalogAction": found.action} if found else {},
            family=meaning.entry.get("family") or "nvsentinel",
            position=number,
        )

    def _event(
        self,
        condition: Condition,
        meaning: Meaning,
        *,
        boot: str | None = None,
        space: str = "condition",
        codes: list[str] | None = None,
        component: str | None = None,
        entities: list[tuple[str, str]] | None = None,
        fatal: bool = False,
        healthy: bool = False,
        state: str | None = None,
        severity: str | None = None,
        action: str = "NONE",
        message: str = "",
        extra: Mapping[str, str] | None = None,
        family: str | None = None,
        position: int = 0,
    ) -> dict:
        metadata = {
            **({} if healthy else meaning.metadata()),
            "conditionStatus": condition.status,
            "conditionReason": condition.reason,
            "family": family or meaning.entry.get("family"),
            **(extra or {}),
        }
        if not message:
            told = ": ".join(part for part in (condition.reason, condition.message) if part)
            message = f"{condition.type} is {condition.status}" + (f": {told}" if told else "")
        return event.make(
            node=condition.node,
            agent=AGENT,
            check=condition.type,
            component=component or meaning.entry.get("componentClass", "NODE"),
            codes=codes or [condition.type],
            space=space,
            entities=entities or (),
            action=action,
            fatal=fatal,
            healthy=healthy,
            state=state,
            severity=severity,
            message=message,
            generated=condition.since,
            received=self._received,
            boot_id=boot or condition.boot,
            source={"name": self._source, "line": condition.line, "text": condition.text},
            metadata={key: value for key, value in metadata.items() if value},
            # not the heartbeat, which moves on while the condition stays what it is
            position=[condition.since, condition.status, condition.reason, position],
        )


def _of_both(catalog: str, reported: str, fatal: bool) -> str:
    """What the monitor asks for, unless that is nothing, no action, or leaves a node out without an end."""
    return catalog if reported not in ACTIONS or (fatal and reported in ("NONE", "UNKNOWN")) else reported


def _asked(meaning: Meaning, nvsentinel: bool) -> str:
    """Something that its monitor calls sick, and nobody knows what for, is for a person to look at."""
    return "CONTACT_SUPPORT" if nvsentinel and meaning.action == "NONE" else meaning.action
