# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was decided about jobs, and what came of it: in a ConfigMap, so that budgets outlive a killed run.

    journal = read(client)
    recorded = record(client, entries, now, admit=within_budget)
    ...                                          # act on recorded.admitted, no others
    record(client, [{"key": key, "outcome": "running"}], now)

An entry is {key, job, at, class, id, action, nodes, blamed, exclude, step, checkpointStep, user, image, outcome} and
whatever else its writer put in; `key` is the attempt's. It is written before anything is done, so that a run that dies
in between has been counted. Of several writers at once one wins; the others read anew and ask `admit` again. Entries
go after 30 days, the oldest first where there are too many. Content that cannot be read is an error, never replaced.
"""

from __future__ import annotations

import json
import random
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
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers.intents import MANAGER, moment, path_of

NAMESPACE, NAME, KEY = "goodput-fleet", "goodput-recovery", "journal"
KEEP = timedelta(days=30)
COUNTED = timedelta(days=1)  # budgets look back that far: restarts of that time never make room for others
LIMIT = 900_000  # bytes; a ConfigMap holds 1 MiB
TEXT = 300  # characters of a text
ITEMS = 1024  # of a list of nodes
ATTEMPTS = 40

Admit = Callable[[list[dict], list[dict]], tuple[list[dict], list[dict]]]


@dataclass(frozen=True, slots=True)
class Journal:
    """`config_map` is the object it was read from, None where there is none yet."""

    entries: list[dict]
    config_map: dict | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """`admitted` were written down; `blocked` were not."""

    admitted: list[dict]
    blocked: list[dict]


def read(client, namespace: str = NAMESPACE, name: str = NAME) -> Journal:
    """Raises InvalidDocument for content that cannot be read, and what the client raises."""
    found = client.find(path_of(namespace, name))
    if found is None:
        return Journal([])
    return Journal(_entries((found.get("data") or {}).get(KEY), f"ConfigMap {namespace}/{name}"), found)


def record(
    client,
    entries: Iterable[Mapping],
    now: datetime,
    *,
    admit: Admit | None = None,
    namespace: str = NAMESPACE,
    name: str = NAME,
) -> Recorded:
    """Write entries down, each over what is there of its key: so an outcome may be added later by key alone.

    `admit(journal's entries, wanted) -> (admitted, blocked)` says which may be; by default all. A new entry without a
    time is of `now`. Raises Conflict where others never let it through.
    """
    wanted = [_bounded(entry) for entry in entries]
    for attempt in range(ATTEMPTS):
        journal = read(client, namespace, name)
        admitted, blocked = admit(journal.entries, wanted) if admit else (wanted, [])
        merged = {entry["key"]: entry for entry in journal.entries}
        for entry in admitted:
            merged[entry["key"]] = {"at": moment(now), **merged.get(entry["key"], {}), **entry}
        changed = [entry for entry in merged.values() if _at(entry) > now - KEEP]
        if changed == journal.entries:
            return Recorded(admitted, blocked)
        try:
            _write(client, namespace, name, journal, _text(changed, now))
            return Recorded(admitted, blocked)
        except Conflict:
            time.sleep(random.uniform(0.005, 0.02) * min(attempt + 1, 10))
    raise Conflict(
        f"ConfigMap {namespace}/{name} changed under every one of {ATTEMPTS} attempts to write it", code="journal-busy"
    )


def _write(client, namespace: str, name: str, journal: Journal, text: str) -> None:
    if journal.config_map is not None:
        body = {**journal.config_map, "data": {**(journal.config_map.get("data") or {}), KEY: text}}
        client.put(path_of(namespace, name), body, fieldManager=MANAGER)
        return
    metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": MANAGER}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}
    try:
        client.post(path_of(namespace), body, fieldManager=MANAGER)
    except NotFound as error:
        hint = "gitops/rbac/recover_jobs.yaml makes goodput-fleet; or name the one that holds the journal"
        raise NotFound(f"there is no namespace {namespace} for the journal of recoveries", hint=hint) from error


def _bounded(entry: Mapping) -> dict:
    if not isinstance(entry.get("key"), str) or not entry["key"]:
        raise InvalidDocument("an entry of the journal has no key", path="key", hint="the attempt's key")
    bounded: dict = {}
    problem = _problem({"at": "2026-01-01T00:00:00Z", **entry})
    if problem:
        raise InvalidDocument(f"an entry of the journal {problem}", path="at", hint="2026-03-06T09:34:56Z")
    for key, value in entry.items():
        if isinstance(value, str) and key not in ("key", "at"):
            value = value[:TEXT]
        elif isinstance(value, (list, tuple)):
            # with a part of them, those of that part would look like what failures have in common
            value = [each[:TEXT] if isinstance(each, str) else each for each in value] if len(value) <= ITEMS else []
        bounded[key] = value
    return bounded


def _at(entry: Mapping) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _text(entries: list[dict], now: datetime) -> str:
    """As it is stored, without the oldest where there are too many, and without those that no budget counts first."""
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) <= LIMIT:
        return text
    room, kept = LIMIT - 2, []
    for entry in sorted(entries, key=lambda each: (_counts(each, now), _at(each)), reverse=True):
        if _size(entry) > room:
            entry = {**entry, "nodes": []}  # what budgets count is told without
        room -= _size(entry)
        if room < 0:
            if _counts(entry, now):
                hint = "fewer jobs may be acted on per day: lower the policy's budgets"
                raise FleetError(
                    "the journal of one day is more than a ConfigMap holds", code="journal-full", hint=hint
                )
            break
        kept.append(entry)
    return json.dumps(sorted(kept, key=_at), separators=(",", ":"), ensure_ascii=False)


def _counts(entry: Mapping, now: datetime) -> bool:
    acts = entry.get("action", "restart") in ("retry", "restart", "requeue") and entry.get("mode", "act") == "act"
    return acts and _at(entry) > now - COUNTED


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
    if not isinstance(entry.get("key"), str):
        return "has no key"
    try:
        if datetime.fromisoformat(entry["at"]).tzinfo:
            return ""
    except (KeyError, TypeError, ValueError):
        pass
    return f"is dated {entry.get('at')!r}, which is no time with a zone"


def _unreadable(where: str, what: str) -> InvalidDocument:
    return InvalidDocument(
        f"the journal of recoveries in {where} {what}; nothing is done while it is unknown what was",
        code="journal-unreadable",
        path=f"data.{KEY}",
        hint="repair it, or set it to [] to forget it",
    )
