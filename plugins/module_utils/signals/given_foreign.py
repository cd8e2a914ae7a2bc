# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVSentinel's HealthEvent as one of ours.

Field names come in camel case, snake case (protobuf) and small letters (database); what is empty is left out or null;
actions and strategies come as numbers or names, times as text or as maps of seconds and nanos.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.healthevent import ACTIONS
from ansible_collections.goodput.fleet.plugins.module_utils.signals import dates, event, meanings
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

NUMBERS = {
    0: "NONE",
    2: "COMPONENT_RESET",
    5: "CONTACT_SUPPORT",
    6: "RUN_FIELDDIAG",
    15: "RESTART_VM",
    24: "RESTART_BM",
    25: "REPLACE_VM",
    26: "RUN_DCGMEUD",
    27: "CUSTOM",
    99: "UNKNOWN",
}
STRATEGIES = {0: "", 1: "EXECUTE_REMEDIATION", 2: "STORE_ONLY", 3: "STORE_AND_ANALYSE"}
CODES = 64  # of one event
_RECEIVED = ("receivedtimestamp", "createdat", "inserttime")
_MUST = ("agent", "checkname")


@dataclass(frozen=True)
class Context:
    """What holds where an event does not tell."""

    tables: Tables
    node: str
    boot_id: str | None
    received: str | None
    source_name: str


def looks(data: Mapping) -> bool:
    """Whether a map is an event, and not what one is wrapped in."""
    keys = {_key(key) for key in data}
    return keys.issuperset(_MUST) or ("checkname" in keys and "nodename" in keys)


def stamps(data: Mapping) -> dict[str, str]:
    """When the event in this wrapping came in: {received: of the database, logged: of the log}."""
    found = {}
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping):  # of a resource
        found["received"] = dates.utc(metadata.get("creationTimestamp"))
    for key, value in data.items():
        name = _key(key)
        if name in _RECEIVED:
            found["received"] = dates.utc(value)
        elif name in ("time", "timestamp", "ts"):
            found["logged"] = dates.utc(value)
    return {key: value for key, value in found.items() if value}


def read(data: Mapping, around: Mapping[str, str], context: Context, line: int | None, text: str) -> dict | str:
    """Our document, or why it can be none. `around` are the stamps of what the event was wrapped in."""
    fields = {_key(key): value for key, value in data.items()}
    check, node = _text(fields.get("checkname")), _text(fields.get("nodename")) or context.node
    missing = [name for name, value in (("checkName", check), ("nodeName", node)) if not value]
    if missing:
        return f"no health event: {' and '.join(missing)} missing"
    flags = {name: _flag(fields.get(name)) for name in ("isfatal", "ishealthy")}
    broken = [name for name, value in flags.items() if value is None]
    if broken:
        return f"{' and '.join(broken)} is neither true nor false"
    entities = _entities(fields.get("entitiesimpacted"))
    if entities is None:
        return "entitiesImpacted is no list of entityType and entityValue"
    codes = _codes(fields.get("errorcode"))
    if codes is None:
        return "errorCode is no list of texts"
    message = _text(fields.get("message"))
    resolved = [meanings.resolve(check, code, message) for code in codes]
    space = resolved[0][0] if resolved else meanings.space(check, "")
    metadata, state = _metadata(fields), None
    if not flags["ishealthy"]:
        known = meanings.worst(context.tables, resolved)
        of_check = context.tables.of("condition").choose(check, {})
        if (known and known.state == "unknown") or (of_check.known and of_check.state == "unknown"):
            state = "unknown"
        metadata = {**(known.metadata() if known else {}), **metadata}  # correlation needs it
        if known and flags["isfatal"] and known.cls in meanings.NOT_THE_GPU:
            # some monitors call every Xid of an application fatal, and every echo of another fault
            flags["isfatal"], metadata["reportedFatal"] = False, "true"
    action = _action(fields.get("recommendedaction"), metadata)
    custom = _text(fields.get("customrecommendedaction"))
    metadata.update({"customRecommendedAction": custom} if custom else {})
    generated = dates.utc(fields.get("generatedtimestamp"))
    own = next((dates.utc(fields[key]) for key in _RECEIVED if dates.utc(fields.get(key))), None)
    return event.make(
        node=node,
        agent=_text(fields.get("agent")) or "unknown",
        check=event.clean(check, event.WORD_LIMIT),
        component=event.clean(_text(fields.get("componentclass")) or "NODE", event.WORD_LIMIT),
        codes=[code for _space, code in resolved],
        space=space,
        entities=entities,
        action=action,
        fatal=bool(flags["isfatal"]),
        healthy=bool(flags["ishealthy"]),
        state=state,
        message=message,
        generated=generated,
        # age counts from when it came in then, not from when a file of old events is read
        received=own or around.get("received") or around.get("logged") or context.received,
        boot_id=event.boot(fields.get("bootid")) or context.boot_id,
        source={"name": context.source_name, "line": line, "text": text},
        metadata=metadata,
        position=[_text(fields.get("id")), generated, message],
    )


@functools.lru_cache(maxsize=4096)
def _key(name: str) -> str:
    return str(name).replace("_", "").replace("-", "").lower()


def _text(value: object) -> str:
    return "" if value is None or isinstance(value, (Mapping, list, tuple)) else str(value).strip()


def _flag(value: object) -> bool | None:
    """Left out is false, as protobuf has it."""
    if value is None:
        return False
    if isinstance(value, Mapping) and set(value) == {"value"}:
        value = value["value"]
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value if isinstance(value, bool) else None


def _number(value: object) -> int | None:
    if isinstance(value, Mapping):
        value = value.get("$numberInt", value.get("$numberLong"))
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
        return int(number) if number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _action(value: object, metadata: dict[str, str]) -> str:
    """An action that this collection does not know is UNKNOWN, with its word in the metadata."""
    number = _number(value)
    name = NUMBERS.get(number, str(number)) if number is not None else _text(value).upper() or "NONE"
    if name in ACTIONS:
        return name
    metadata["reportedAction"] = name
    return "UNKNOWN"


def _codes(value: object) -> list[str] | None:
    if value is None or value == "":
        return []
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)):
        return None
    found = [_text(item) for item in value if item is not None]
    return [event.clean(code, event.WORD_LIMIT) for code in found if code][:CODES]


def _entities(value: object) -> list[tuple[str, str]] | None:
    found = []
    if value is not None and not isinstance(value, (list, tuple)):
        return None
    for item in value or ():
        if not isinstance(item, Mapping):
            return None
        fields = {_key(key): _text(part) for key, part in item.items()}
        kind, name = fields.get("entitytype", ""), fields.get("entityvalue", "")
        if not kind or not name:
            return None
        found.append((kind, (event.pci(name) or name) if kind == "PCI" else name))
    return found


def _metadata(fields: Mapping) -> dict[str, str]:
    given = fields.get("metadata")
    found = {}
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if value is not None:
            plain = isinstance(value, (str, int, float))
            found[event.clean(key, event.WORD_LIMIT)] = str(value) if plain else json.dumps(value, default=str)
    strategy = _number(fields.get("processingstrategy"))
    name = STRATEGIES.get(strategy, str(strategy)) if strategy is not None else _text(fields.get("processingstrategy"))
    overrides = fields.get("quarantineoverrides")
    for key in ("force", "skip"):
        if isinstance(overrides, Mapping) and overrides.get(key) is True:
            found[f"quarantine{key.capitalize()}"] = "true"
    return {**found, **({"processingStrategy": name} if name else {})}
