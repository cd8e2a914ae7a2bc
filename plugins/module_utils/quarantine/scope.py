# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule sees: the variables `event`, `node`, `domain`, `history` and `now`, all of them always there."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments
from ansible_collections.goodput.fleet.plugins.module_utils.records.cel import Environment

VARIABLES: dict[str, Mapping[str, str] | str] = {
    # the spec of a HealthEvent, and what is known of it besides
    "event": {
        "name": "string",
        "nodeName": "string",
        "agent": "string",
        "componentClass": "string",
        "checkName": "string",
        "isFatal": "bool",
        "isHealthy": "bool",
        "state": "string",
        "severity": "string",
        "errorCode": "strings",
        "codeSpace": "string",
        "class": "string",
        "entitiesImpacted": "list of texts",
        "recommendedAction": "string",
        "message": "string",
        "generatedTimestamp": "timestamp",
        "receivedTimestamp": "timestamp",
        "bootId": "string",
        "cause": "string",
        "source": "dyn",
        "metadata": "texts",
    },
    "node": {
        "name": "string",
        "labels": "texts",
        "annotations": "texts",
        "taints": "list of texts",
        "unschedulable": "bool",
        "ready": "string",
        "bootId": "string",
        "providerId": "string",
        "conditions": "map of texts",
        "gates": "strings",
        "external": "list of texts",
    },
    # nodes in it, those with a gate, those with a sick report that counts now
    "domain": {"name": "string", "nodes": "int", "gated": "int", "sick": "int"},
    # reports of this node in the last 24 hours, and gates of the last 30 days
    "history": {"sameCode24h": "int", "sameNode24h": "int", "gates30d": "int"},
    "now": "timestamp",
}


@functools.lru_cache(maxsize=1)
def environment() -> Environment:
    return Environment(VARIABLES)


def node(facts: Mapping) -> dict:
    """The node's variables by dotted name."""
    found = {
        "name": facts["name"],
        "labels": _texts(facts.get("labels")),
        "annotations": _texts(facts.get("annotations")),
        "taints": [_texts(taint) for taint in facts.get("taints") or ()],
        "unschedulable": bool(facts.get("unschedulable")),
        "ready": _text(facts.get("ready")) or "Unknown",
        "bootId": str(facts.get("bootId") or ""),
        "providerId": str(facts.get("providerId") or ""),
        "conditions": {str(kind): _texts(one) for kind, one in (facts.get("conditions") or {}).items()},
        "gates": owners(facts),
        "external": [_texts(one) for one in facts.get("external") or ()],
    }
    return {f"node.{key}": value for key, value in found.items()}


def owners(facts: Mapping) -> list[str]:
    """Who holds gates of the node."""
    return sorted(gate if isinstance(gate, str) else gate["owner"] for gate in facts.get("gates") or ())


def event(document: Mapping, *, cls: str, cause: str, now: datetime.datetime, action: str, fatal: bool) -> dict:
    """The event's variables by dotted name. What correlation knows better than the event comes as arguments."""
    spec = document["spec"]
    received = _time(spec.get("receivedTimestamp"), now)
    source = spec.get("source") or {}
    return {
        "event.name": document["metadata"]["name"],
        "event.nodeName": spec["nodeName"],
        "event.agent": spec["agent"],
        "event.componentClass": spec["componentClass"],
        "event.checkName": spec["checkName"],
        "event.isFatal": fatal,
        "event.isHealthy": spec["isHealthy"],
        "event.state": spec.get("state") or ("healthy" if spec["isHealthy"] else "sick"),
        "event.severity": spec.get("severity") or "error",
        "event.errorCode": spec.get("errorCode") or [],
        "event.codeSpace": spec.get("codeSpace") or "other",
        "event.class": cls,
        "event.entitiesImpacted": spec.get("entitiesImpacted") or [],
        "event.recommendedAction": action,
        "event.message": spec.get("message") or "",
        "event.generatedTimestamp": _time(spec.get("generatedTimestamp"), received),
        "event.receivedTimestamp": received,
        "event.bootId": spec.get("bootId") or "",
        "event.cause": cause,
        "event.source": {
            "name": source.get("name", ""),
            "line": source.get("line") or 0,
            "text": source.get("text", ""),
        },
        "event.metadata": spec.get("metadata") or {},
    }


def _time(text: str | None, default: datetime.datetime) -> datetime.datetime:
    micros = moments.micros(text)
    return default if micros is None else moments.moment(micros)


def _texts(value: Mapping | None) -> dict[str, str]:
    """A map of nothing but text; rules know no null."""
    return {str(key): _text(item) for key, item in (value or {}).items()}


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
