# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The breaker's memory: which nodes were taken out when, in a ConfigMap, so that it outlives a killed run.

    ledger = read(client, "goodput-system", "goodput-quarantine")
    reserved = reserve(client, "goodput-system", "goodput-quarantine", wanted, admit, now, window=3600)
    ...                                                       # hold the gates of reserved.admitted, no others
    confirm(client, "goodput-system", "goodput-quarantine", [the entries whose gate was written], now, window=3600)

An entry is {node, domain, owner, rule, ruleDigest, evidence, at}, with `held: true` once its gate was written, and
`seen`: of when the newest fault is that came while it stood. Entries
are reserved before gates are, so that a run that dies in between has been counted. Of several writers at once one wins;
the others read anew and ask `admit` again, on what the ledger holds by then. Content that cannot be read is an error
and is never replaced: with an unknown state of the breaker nothing may be gated.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    InvalidDocument,
    NotFound,
)

NAMESPACE, NAME, KEY = "goodput-system", "goodput-quarantine", "ledger"
MANAGER = "goodput-fleet"
KEEP = timedelta(days=30)
LIMIT = 900_000  # bytes; a ConfigMap holds 1 MiB
ATTEMPTS = 40
_TEXTS = ("node", "domain", "owner", "rule", "ruleDigest", "evidence", "at")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

Admit = Callable[[list[dict], list[dict]], tuple[list[dict], list[dict]]]


@dataclass(frozen=True, slots=True)
class Ledger:
    """`config_map` is the object it was read from, None where there is none yet."""

    entries: list[dict]
    config_map: dict | None = None


@dataclass(frozen=True, slots=True)
class Reserved:
    """`admitted` may be gated now; `blocked` may not, each with what `admit` said of it."""

    admitted: list[dict]
    blocked: list[dict]


def read(client, namespace: str = NAMESPACE, name: str = NAME) -> Ledger:
    """Raises InvalidDocument for names that are none or content that cannot be read, and what the client raises."""
    for option, value, pattern in (("ledger_namespace", namespace, _LABEL), ("ledger_name", name, _SUBDOMAIN)):
        if not pattern.fullmatch(value):
            hint = "lower-case letters, digits and '-'" + (" or '.'" if pattern is _SUBDOMAIN else ", at most 63")
            raise InvalidDocument(f"{value!r} is not the name of one", path=option, hint=hint)
    found = client.find(f"{_path(namespace)}/{name}")
    if found is None:
        return Ledger([])
    return Ledger(_entries((found.get("data") or {}).get(KEY), f"ConfigMap {namespace}/{name}"), found)


def reserve(
    client, namespace: str, name: str, wanted: Iterable[Mapping], admit: Admit, now: datetime, *, window: int
) -> Reserved:
    """Writes down those of the wanted entries that `admit(ledger, wanted) -> (admitted, blocked)` lets through.

    `window` is the breaker's, in seconds. An entry of the same node, owner, rule and evidence within it is used again.
    """
    asked = [dict(entry) for entry in wanted]
    outcome = Reserved([], [])

    def change(entries: list[dict]) -> list[dict]:
        nonlocal outcome
        outcome = Reserved(*admit(entries, asked))
        begin = now - timedelta(seconds=window)
        fresh = {_same(entry) for entry in entries if _at(entry) > begin}
        new = {_same(entry): _entry(entry, now) for entry in outcome.admitted if _same(entry) not in fresh}
        return [entry for entry in entries if _same(entry) not in new] + list(new.values())

    _update(client, namespace, name, change, now, window)
    return outcome


def confirm(client, namespace: str, name: str, written: Iterable[Mapping], now: datetime, *, window: int) -> None:
    """Notes that the gates of these entries were written: one that is missing later was opened by somebody.

    `last` of an entry is a time: the gate stands for faults up to then, whichever it was closed for.
    """
    entries_ = [dict(entry) for entry in written]
    known = {_same(entry) for entry in entries_}
    faults = {(entry["node"], entry["owner"]): entry["last"] for entry in entries_ if entry.get("last")}

    def noted(entry: dict) -> dict:
        entry = {**entry, "held": True} if _same(entry) in known else entry
        last = faults.get((entry["node"], entry["owner"]))
        if not last or not entry.get("held"):
            return entry
        before = max(_at(entry), datetime.fromisoformat(entry.get("seen") or entry["at"]))
        return {**entry, "seen": last} if datetime.fromisoformat(last) > before else entry

    def change(entries: list[dict]) -> list[dict]:
        return [noted(entry) for entry in entries]

    _update(client, namespace, name, change, now, window)


def _update(client, namespace: str, name: str, change: Callable, now: datetime, window: int) -> None:
    for attempt in range(ATTEMPTS):
        ledger = read(client, namespace, name)
        entries = change(ledger.entries)
        if entries == ledger.entries:
            return
        try:
            _write(client, namespace, name, ledger, _text(_pruned(entries, now, window), now, window))
            return
        except Conflict:
            time.sleep(random.uniform(0.005, 0.02) * min(attempt + 1, 10))
    raise Conflict(
        f"ConfigMap {namespace}/{name} changed under every one of {ATTEMPTS} attempts to write it", code="ledger-busy"
    )


def _write(client, namespace: str, name: str, ledger: Ledger, text: str) -> None:
    if ledger.config_map is not None:
        body = {**ledger.config_map, "data": {**(ledger.config_map.get("data") or {}), KEY: text}}
        client.put(f"{_path(namespace)}/{name}", body, fieldManager=MANAGER)
        return
    metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": MANAGER}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}
    try:
        client.post(_path(namespace), body, fieldManager=MANAGER)
    except NotFound as error:
        # never made here: with a misspelt name the breaker would begin anew
        hint = "gitops/rbac/quarantine.yaml makes goodput-fleet; or name the one that holds the ledger"
        raise NotFound(f"there is no namespace {namespace} for the breaker's ledger", hint=hint) from error


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _same(entry: Mapping) -> tuple:
    return tuple(entry[key] for key in ("node", "owner", "rule", "evidence"))


def _at(entry: Mapping) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _entry(entry: Mapping, now: datetime) -> dict:
    return {**{key: str(entry.get(key, "")) for key in _TEXTS}, "at": now.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _pruned(entries: list[dict], now: datetime, window: int) -> list[dict]:
    begin = now - max(KEEP, timedelta(seconds=window))
    return [entry for entry in entries if _at(entry) > begin]


def _text(entries: list[dict], now: datetime, window: int) -> str:
    """As it is stored. The oldest go first when there are too many; those that the breaker counts never go."""
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) <= LIMIT:
        return text
    begin = now - timedelta(seconds=window)
    counted = [entry for entry in entries if _at(entry) > begin]
    older = sorted((entry for entry in entries if _at(entry) <= begin), key=_at)
    room = LIMIT - sum(_size(entry) for entry in counted)
    if room < 0:
        raise FleetError(
            f"{len(counted)} entries within the breaker's window are more than a ConfigMap holds",
            code="ledger-full",
            hint="lower the breaker's bounds or shorten its window",
        )
    while older and _size(older[-1]) <= room:
        room -= _size(older[-1])
        counted.insert(0, older.pop())
    return json.dumps(counted, separators=(",", ":"), ensure_ascii=False)


def _size(entry: Mapping) -> int:
    return len(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode()) + 1


def _entries(text: object, where: str) -> list[dict]:
    if text is None:
        return []
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError) as error:
        raise _unreadable(where, f"is no JSON: {error}") from error
    if not isinstance(found, list):
        raise _unreadable(where, "is no list of entries")
    for number, entry in enumerate(found):
        problem = _problem(entry)
        if problem:
            raise _unreadable(where, f"entry {number} {problem}")
    return found


def _problem(entry: object) -> str:
    if not isinstance(entry, dict):
        return "is no map"
    for key in _TEXTS:
        if not isinstance(entry.get(key), str):
            return f"has no {key}"
    for date in (entry["at"], entry.get("seen", entry["at"])):
        try:
            if not datetime.fromisoformat(date).tzinfo:
                return f"is dated {date!r}, without a zone"
        except (TypeError, ValueError):
            return f"is dated {date!r}, which is no time"
    return ""


def _unreadable(where: str, what: str) -> InvalidDocument:
    return InvalidDocument(
        f"the breaker's ledger in {where} {what}; nothing is gated while its state is unknown",
        code="ledger-unreadable",
        path=f"data.{KEY}",
        hint="repair it, or set it to [] to forget which nodes were taken out",
    )
