# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run is about to do to a job, written down before it does anything: so that nothing is done twice or left half.

An intent is a ConfigMap in the job's namespace, named after the attempt, so that of two runs one makes it. It holds
what has to be known to go on when the run is killed: the next attempt's manifest above all.

    {name, namespace, key, job: {apiVersion, kind, namespace, name, uid}, number, action, path: recreate | suspend,
     generation, manifest, excluded: [names], state, holder, renewed, at, detail, successor: {uid, name} | None}

States: begun (the old job is there, or somebody else took it away), creating (the old job is gone by our hand, or
about to be), created (the new one is there), done, abandoned (somebody else decided otherwise; detail says who and
how). One that is open is held by a run, which renews it; it is taken over when that run is known to be dead or
has not renewed it for as long as `lease` says.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    InvalidDocument,
    NotFound,
    Unavailable,
)

MANAGER = "goodput-fleet"
LABEL, KEY = "goodput.fleet/intent", "intent"
OPEN, CLOSED = ("begun", "creating", "created"), ("done", "abandoned")
LIMIT = 900_000  # bytes; a ConfigMap holds 1 MiB
KEEP = timedelta(days=7)
STALE = timedelta(hours=1)  # a begun intent that is older is about a state of affairs that is over
STALE_ACTIVE = timedelta(minutes=5)  # of a job that has not ended
_TEXTS = ("key", "action", "path", "state", "holder", "renewed", "at", "selector", "expires", "detail")
_OTHERS = ("excluded", "preferred", "generation", "successor")


def name_of(key: str) -> str:
    return "goodput-attempt-" + hashlib.sha256(key.encode()).hexdigest()[:20]


def path_of(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def me() -> str:
    """This process: host, process id, and when that began, so that a run on the same host knows when it is dead."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_began(pid)}"


def moment(time: datetime | None = None) -> str:
    return (time or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def create(client, intent: dict) -> dict | None:
    """The intent as it is stored, None where there is one of that name already. Raises InvalidDocument when it is too
    big, and what the client raises."""
    body = _body(intent)
    where = path_of(intent["namespace"])
    try:
        return _read(client.post(where, body, fieldManager=MANAGER))
    except Conflict:
        return None
    except Unavailable:
        found = find(client, intent["namespace"], intent["name"])  # an answer that was lost may have been a yes
        if found is None or found["holder"] != intent["holder"] or found["at"] != intent["at"]:
            raise
        return found


def find(client, namespace: str, name: str) -> dict | None:
    """Raises InvalidDocument for one that cannot be read: it is never overwritten."""
    found = client.find(path_of(namespace, name))
    return None if found is None else _read(found)


def update(client, intent: dict, **changes) -> dict:
    """Write changes of it. Raises Conflict when another run wrote it meanwhile, NotFound when somebody deleted it."""
    changed = {**intent, **changes, "renewed": moment()}
    if changed["state"] in CLOSED:
        changed["manifest"] = None  # nothing is to be made of it any more
    try:
        return _read(client.put(path_of(intent["namespace"], intent["name"]), _body(changed), fieldManager=MANAGER))
    except Conflict as error:
        if getattr(error, "attempts", 1) > 1:  # an earlier try may have been ours
            found = find(client, intent["namespace"], intent["name"])
            if found and {**found, "resourceVersion": ""} == {**changed, "resourceVersion": ""}:
                return found
        raise


def held_by_another(intent: Mapping, lease: float, now: datetime | None = None) -> bool:
    """Whether a run that may be alive holds it."""
    if intent["state"] in CLOSED or intent["holder"] == me():
        return False
    host, _slash, process = intent["holder"].partition("/")
    pid, _slash, began = process.partition("/")
    if host == socket.gethostname() and pid.isdigit() and began and _began(int(pid)) != began:
        return False
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(intent["renewed"])
    return age <= timedelta(seconds=lease)


def unfinished(client, namespaces: Iterable[str] | None = None) -> Iterator[dict]:
    """Every open intent, by one list of each namespace, or of the cluster. One that cannot be read is left out."""
    for item in _listed(client, namespaces, f"{LABEL}=open"):
        try:
            yield _read(item)
        except InvalidDocument:
            continue


def prune(client, namespaces: Iterable[str] | None = None, now: datetime | None = None) -> list[str]:
    """Delete closed intents that have been kept long enough; names of those. An open one is never deleted."""
    oldest, gone = (now or datetime.now(UTC)) - KEEP, []
    for item in _listed(client, namespaces, f"{LABEL}=closed", metadata_only=True):
        metadata = item["metadata"]
        if datetime.fromisoformat(metadata["creationTimestamp"]) < oldest:
            precondition = {key: metadata[key] for key in ("uid", "resourceVersion")}
            try:
                client.delete(path_of(metadata["namespace"], metadata["name"]), {"preconditions": precondition})
            except (Conflict, NotFound):
                continue
            gone.append(f"{metadata['namespace']}/{metadata['name']}")
    return gone


def _listed(client, namespaces: Iterable[str] | None, selector: str, **options) -> Iterator[dict]:
    paths = ["/api/v1/configmaps"] if namespaces is None else [path_of(each) for each in namespaces]
    for path in paths:
        yield from client.list(path, labelSelector=selector, **options)


def _began(pid: int) -> str:
    """When a process of this host began, in its boot and its clock's ticks; "" where there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            ticks = stat.read().rpartition(")")[2].split()[19]
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as boot:
            return f"{boot.read().strip()[:8]}.{ticks}"
    except (OSError, IndexError):
        return ""


def _body(intent: Mapping) -> dict:
    content = {key: value for key, value in intent.items() if key not in ("name", "namespace", "resourceVersion")}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) > LIMIT:
        hint = "move what makes it big, such as scripts, into a ConfigMap"
        raise InvalidDocument(
            f"the manifest of {intent['job']['namespace']}/{intent['job']['name']} is bigger than a ConfigMap holds",
            code="intent-too-big",
            hint=hint,
        )
    labels = {"app.kubernetes.io/managed-by": MANAGER, LABEL: "open" if intent["state"] in OPEN else "closed"}
    metadata = {"name": intent["name"], "namespace": intent["namespace"], "labels": labels}
    if intent.get("resourceVersion"):
        metadata["resourceVersion"] = intent["resourceVersion"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}


def _read(config_map: Mapping) -> dict:
    metadata = config_map["metadata"]
    try:
        content = json.loads((config_map.get("data") or {}).get(KEY) or "")
        good = isinstance(content["job"], dict) and all(isinstance(content[each], str) for each in _TEXTS)
        good = good and all(each in content for each in _OTHERS)
        good = good and content["state"] in OPEN + CLOSED and datetime.fromisoformat(content["renewed"]).tzinfo
        good = good and isinstance(content["number"], int) and isinstance(content["job"]["uid"], str)
        good = good and (isinstance(content["manifest"], dict) or content["state"] in CLOSED)
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise InvalidDocument(
            f"ConfigMap {metadata.get('namespace')}/{metadata.get('name')} is no intent that can be read",
            code="intent-unreadable",
            path=f"data.{KEY}",
            hint="nothing is done meanwhile; look at the job, then delete the ConfigMap",
        )
    place = {key: metadata[key] for key in ("name", "namespace", "resourceVersion")}
    return {**content, **place}
