# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of an attempt, kept before anything acts on it: when a job ends for good its pods go, and their logs.

    kept = collect(attempt, read_logs, classify, "/var/lib/goodput/records")
    kept["signature"]["class"], kept["partial"]

What is kept lies under the record directory, in a folder of the attempt: attempt.json, objects.json (the raw job and
pods), logs/ (one file per container), and last evidence.json, which says that it is all there. A second run that finds
that reads no log again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import history, ranks
from ansible_collections.goodput.fleet.plugins.module_utils.records import durable
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

WORKERS = 8  # logs read at a time
BYTES_PER_LOG = 8 << 20
BYTES = 512 << 20  # of all logs of an attempt
LEAST = 64 << 10  # of one log, however many there are
GONE = 20  # pods that are named one by one
DONE = "evidence.json"
WAIT = 300.0  # seconds
STATES = ("failed", "lost", "hung")

ReadLogs = Callable[[dict], Iterable[bytes]]
Classify = Callable[[list, dict], dict]


def wanted(attempts: Iterable[Mapping]) -> list[Mapping]:
    """Those whose logs are worth reading: they went wrong, and somebody wants to know."""
    return [each for each in attempts if each["state"] in STATES and each["job"]["mode"] in ("act", "advise")]


def requests(attempt: Mapping) -> list[dict]:
    """The logs to read: {index, namespace, name, uid, container, previous}, an earlier run of a container before the
    one that runs now. A pod that never ran has none."""
    found = []
    for rank in attempt["ranks"]:
        if not rank["node"] or rank["phase"] == history.GONE or (rank["phase"] == "Pending" and not rank["startedAt"]):
            continue
        told = {"index": rank["index"], "name": rank["pod"], **{key: rank[key] for key in ("namespace", "uid")}}
        told["container"] = rank["container"]
        if rank["previousLog"]:
            found.append({**told, "previous": True})
        found.append({**told, "previous": False})
    return found


def folder(record_dir: str, attempt: Mapping) -> str:
    """Where an attempt's evidence is kept: what was seen when it hung is not what is seen once it has failed, nor what
    is seen after its scheduler has started it again under the same name."""
    job = attempt["job"]
    again = f"#{job['restarts']}" if job["kind"] in ("JobSet", "TrainJob") else ""
    name = hashlib.sha256(f"{attempt['key']}{again}".encode()).hexdigest()[:32]
    return os.path.join(record_dir, f"{name}-{attempt['state']}")


def collect(
    attempt: dict,
    read_logs: ReadLogs,
    classify: Classify,
    record_dir: str,
    raw: Mapping | None = None,
    workers: int = WORKERS,
    bytes_per_log: int = BYTES_PER_LOG,
    total: int = BYTES,
    refresh: bool = False,
) -> dict:
    """Keeps the evidence and sets attempt["signature"].

    {dir, signature, partial: [what is missing, and why], logs: [{pod, rank, previous, file, bytes, cut}], reused}.
    read_logs(request) gives a log as bytes, in lines or in pieces of any size, and is called from several threads; a
    FleetError or OSError of it costs that log, not the run. classify(sources, options) gets [(rank, pod, a function
    that gives its lines)] and {exits}. raw: objects to keep with it. refresh: read again what is there. Another run
    that is at it is waited for. Raises Unavailable where the record directory cannot be written: without evidence
    nobody may act.
    """
    root = folder(record_dir, attempt)
    with durable.disk(root):
        os.makedirs(root, mode=0o700, exist_ok=True)  # environments of pods hold secrets
        held = durable.lock(root, "another run that keeps the evidence of the same attempt", wait=WAIT)
        try:
            before = {} if refresh else _before(root)
            if before and not before["unread"]:
                kept = before
            else:
                kept = _keep(attempt, root, before, read_logs, classify, raw, workers, bytes_per_log, total)
        finally:
            os.close(held)
    attempt["signature"] = kept["signature"]
    told = {key: kept[key] for key in ("signature", "partial", "logs")}
    return {"dir": root, **told, "reused": kept is before}


def _keep(attempt, root, before: dict, read_logs, classify, raw, workers: int, bytes_per_log: int, total: int) -> dict:
    logs = os.path.join(root, "logs")
    os.makedirs(logs, exist_ok=True)
    durable.replace(root, "attempt.json", _json(attempt))
    if raw is not None:
        durable.replace(root, "objects.json", _json(raw))
    # a log that was read before may be gone by now
    found = list(before.get("logs") or ())
    there = {(one["pod"], one["previous"]) for one in found}
    asked = [one for one in requests(attempt) if (one["name"], one["previous"]) not in there]
    limit = min(bytes_per_log, max(LEAST, total // max(len(asked), 1)))
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        read = list(pool.map(lambda one: _read(one, read_logs, logs, limit), asked))
    problems = [one.pop("problem") for one in read]
    found = sorted(found + [one for one in read if one["file"]], key=lambda one: one["file"])
    unread = [problem for problem in problems if problem]
    gone = [index for index in attempt["missing"] if not any(one["rank"] == index for one in found)]
    partial = unread + [f"rank {index}: its pod is gone, and its log with it" for index in gone[:GONE]]
    if len(gone) > GONE:
        partial.append(f"and {len(gone) - GONE} more pods are gone")
    signature = _classify(attempt, found, root, classify) if found else None
    kept = {"signature": signature, "partial": partial, "logs": found, "unread": len(unread)}
    durable.replace(root, DONE, _json(kept))
    return kept


def _before(root: str) -> dict:
    """What an earlier run has kept; {} where its end is not there or cannot be read, so that it is done again."""
    try:
        kept = json.loads(durable.read(os.path.join(root, DONE)))
        return {key: kept[key] for key in ("signature", "partial", "logs", "unread")}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}


def _classify(attempt: Mapping, found: list[dict], root: str, classify: Classify) -> dict:
    """Logs count processes, of which a pod has as many as GPUs: one that names no rank is its pod's first one's."""
    processes = max(1, attempt["job"]["shape"]["gpusPerPod"])

    def number(index: int | None) -> int | None:
        return None if index is None else index * processes

    sources = [
        (number(one["rank"]), one["pod"], functools.partial(_lines, os.path.join(root, one["file"]))) for one in found
    ]
    exits = [
        {"rank": number(rank["index"]), "exitCode": rank["exitCode"], "at": rank["finishedAt"]}
        for rank in attempt["ranks"]
        if rank["exitCode"] and rank["index"] is not None and not ranks.was_killed(rank)
    ]
    return classify(sources, {"exits": exits})


def _lines(path: str) -> Iterator[bytes]:
    """Opened when it is read: there may be hundreds."""
    with open(path, "rb") as stream:
        yield from stream


def _read(request: dict, read_logs: ReadLogs, logs: str, limit: int) -> dict:
    """One log into its file. A log that breaks off is kept as far as it came."""
    told = {"pod": request["name"], "rank": request["index"], "previous": request["previous"]}
    name = _file_name(request)
    path = os.path.join(logs, name)
    kept = _Bounded(limit)
    problem = ""
    try:
        for piece in read_logs({key: request[key] for key in ("namespace", "name", "uid", "container", "previous")}):
            kept.add(piece)
    except (FleetError, OSError) as error:
        what = "the log of its earlier run" if request["previous"] else "its log"
        broke = f" broke off after {kept.seen} bytes" if kept.seen else " cannot be read"
        problem = f"{request['namespace']}/{request['name']}: {what}{broke}: {' '.join(str(error).split())[:300]}"
    if problem and not kept.seen:
        return {**told, "file": "", "bytes": 0, "cut": 0, "problem": problem}
    with open(path, "wb", opener=lambda file, flags: os.open(file, flags, 0o600)) as stream:
        stream.writelines(kept.content())
    return {**told, "file": f"logs/{name}", "bytes": kept.seen, "cut": kept.cut, "problem": problem}


def _file_name(request: Mapping) -> str:
    place = "none" if request["index"] is None else f"{request['index']:05d}"
    pod = re.sub(r"[^A-Za-z0-9.-]", "_", request["name"])[:200]
    return f"{place}-{pod}{'.previous' if request['previous'] else ''}.log"


class _Bounded:
    """The start and the end of a log: how it was set up, and how it ended. What is cut out is said in its place."""

    def __init__(self, limit: int):
        self._head_room = limit // 4
        self._tail_room = limit - self._head_room
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.seen = self.cut = 0

    def add(self, piece: bytes | str) -> None:
        if isinstance(piece, str):
            piece = piece.encode("utf-8", "replace")
        self.seen += len(piece)
        if self._head_room > 0:
            self._head.append(piece[: self._head_room])
            piece = piece[self._head_room :]
            self._head_room -= len(self._head[-1])
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
        while self._tail_size > self._tail_room:
            over = self._tail_size - self._tail_room
            first = self._tail.popleft()
            if len(first) > over:
                self._tail.appendleft(first[over:])
            gone = min(over, len(first))
            self._tail_size -= gone
            self.cut += gone

    def content(self) -> Iterator[bytes]:
        yield from self._head
        if self.cut:
            yield f"\n[{self.cut} bytes left out here]\n".encode()
        yield from self._tail


def _json(data: object) -> bytes:
    return (
        json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True, default=str).encode("utf-8", "replace") + b"\n"
    )
