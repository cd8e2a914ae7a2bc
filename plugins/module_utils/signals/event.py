# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HealthEvents as every parser makes them, and the few pieces of text they share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.schema import API_VERSION
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.healthevent import (
    MESSAGE_LIMIT,
    SOURCE_LIMIT,
)

WORD_LIMIT = 253
UNPARSED_LIMIT = 1000  # a log of nothing but nonsense must not become a result of its size

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_BOOT = re.compile(r"[\x21-\x7e]{1,128}")
_PCI = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})(?:\.(?P<function>[0-9a-f]))?",
    re.IGNORECASE,
)


def make(
    *,
    node: str,
    agent: str,
    check: str,
    component: str,
    codes: Iterable[str] = (),
    space: str = "other",
    entities: Iterable[tuple[str, str]] = (),
    action: str = "NONE",
    fatal: bool = False,
    healthy: bool = False,
    state: str | None = None,
    severity: str | None = None,
    message: str = "",
    generated: str | None = None,
    received: str | None = None,
    boot_id: str | None = None,
    source: Mapping | None = None,
    metadata: Mapping[str, str] | None = None,
    cause: str | None = None,
    position: object = None,
) -> dict:
    """The HealthEvent document.

    `entities` are (type, value); times are texts in UTC (see `timestamps.utc`); `source` has name, line and text.
    `position` is what sets this report apart from a like one of the same node: a time, a sequence number; by default
    the source's line and text. With the same arguments the event has the same name, in every run. An event that is
    healthy, or blind (state unknown), is never fatal.
    """
    fatal = fatal and not healthy and state != "unknown"
    node = clean(node, WORD_LIMIT) or "unknown"
    agent, check, component = (clean(word, WORD_LIMIT) for word in (agent, check, component))
    codes = [clean(code, WORD_LIMIT) for code in codes]
    entities = [(clean(kind, WORD_LIMIT), clean(value, WORD_LIMIT)) for kind, value in entities]
    where = {
        "name": clean((source or {}).get("name") or "", SOURCE_LIMIT),
        "line": (source or {}).get("line"),
        "text": clean((source or {}).get("text") or "", SOURCE_LIMIT),
    }
    if position is None:
        position = [where["name"], where["line"], where["text"]]
    position = [_word(part) for part in position] if isinstance(position, list) else _word(position)
    identity = [node, agent, check, space, codes, sorted(entities), boot_id, healthy, position]
    return {
        "apiVersion": API_VERSION,
        "kind": "HealthEvent",
        "metadata": {"name": hashlib.sha256(digest.canonical(identity)).hexdigest()[:16]},
        "spec": {
            "nodeName": node,
            "agent": agent,
            "componentClass": component,
            "checkName": check,
            "isFatal": fatal,
            "isHealthy": healthy,
            "state": state or ("healthy" if healthy else "sick"),
            "severity": severity or ("info" if healthy else "fatal" if fatal else "error"),
            "errorCode": codes,
            "codeSpace": space,
            "entitiesImpacted": [{"entityType": kind, "entityValue": value} for kind, value in entities],
            "recommendedAction": action,
            "message": clean(message, MESSAGE_LIMIT),
            "generatedTimestamp": generated,
            "receivedTimestamp": received,
            "bootId": boot_id,
            "source": where,
            "cause": cause,
            "metadata": {str(key): clean(value, MESSAGE_LIMIT) for key, value in (metadata or {}).items()},
        },
    }


def _word(part: object) -> object:
    return clean(part, MESSAGE_LIMIT) if isinstance(part, str) else part


def clean(value: object, limit: int) -> str:
    """One line of text that YAML, JSON and a terminal can hold, cut to `limit` characters."""
    text = _CONTROL.sub("\ufffd", str(value)[: limit + 1]) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def boot(value: object) -> str | None:
    """A boot id as others write it; None where it can be none."""
    text = str(value).strip() if isinstance(value, str) else ""
    return text if _BOOT.fullmatch(text) else None


def pci(text: object) -> str | None:
    """A PCI address as `dddd:bb:dd`, lower case, without function; no domain is domain 0. None where it is none."""
    match = _PCI.fullmatch(str(text).strip())
    if not match:
        return None
    domain, bus, device = (int(match[part] or "0", 16) for part in ("domain", "bus", "device"))
    return f"{domain:04x}:{bus:02x}:{device:02x}" if device < 32 else None


class Unparsed:
    """Lines that look like a signal and cannot be read; the first ones in full, the others counted."""

    def __init__(self, limit: int = UNPARSED_LIMIT):
        self.limit = limit
        self.items: list[dict] = []
        self.total = 0

    def add(self, line: int | None, text: object, reason: str) -> None:
        self.total += 1
        if len(self.items) < self.limit:
            self.items.append({"line": line, "text": clean(text, SOURCE_LIMIT), "reason": reason})

    def in_order(self) -> list[dict]:
        """By line; a document is read before what it holds."""
        return sorted(self.items, key=lambda item: item["line"] or 0)
