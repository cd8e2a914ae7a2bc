# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HealthEvents kept as lines of JSON, one file a day: what policies are tried against before they are enforced."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
from datetime import datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, NotFound


def path_of(directory: str, day: datetime) -> str:
    return os.path.join(directory, f"events-{day:%Y-%m-%d}.jsonl")


def read(path: str) -> bytes:
    """The bytes of a file of events. Raises NotFound."""
    try:
        with open(path, "rb") as log:
            if not stat.S_ISREG(os.fstat(log.fileno()).st_mode):
                raise NotFound("is not a file", file=path)
            return log.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise NotFound(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from error


def append(directory: str, events: list[dict], now: datetime) -> int:
    """Add the events that neither today's nor yesterday's file holds; how many that were.

    Several runs may write at once: the day's file is locked meanwhile. A line that a killed run left half written is
    ended first, so that no event is lost in it.
    """
    target = path_of(directory, now)
    try:
        os.makedirs(directory, exist_ok=True)
        with open(target, "a+b") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            known = _names(log) | _names_of_file(path_of(directory, now - timedelta(days=1)))
            fresh = {event["metadata"]["name"]: event for event in events if event["metadata"]["name"] not in known}
            lines = [json.dumps(event, separators=(",", ":"), ensure_ascii=False) for event in fresh.values()]
            log.seek(0, os.SEEK_END)
            if log.tell():
                log.seek(-1, os.SEEK_END)
                if log.read(1) != b"\n":
                    lines.insert(0, "")
            if fresh:
                log.write(("\n".join(lines) + "\n").encode())
                log.flush()
                os.fsync(log.fileno())
    except OSError as error:
        raise FleetError(
            f"events cannot be kept: {error.strerror}", code="not-writable", file=target, path="record_dir"
        ) from error
    return len(fresh)


def replace(path: str, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), prefix=".new-", delete=False) as new:
            new.write(text)
        os.chmod(new.name, 0o644)
        os.replace(new.name, path)
    except OSError as error:
        raise FleetError(
            f"the record cannot be written: {error.strerror}", code="not-writable", file=path, path="record_dir"
        ) from error


def _names_of_file(path: str) -> set[str]:
    try:
        with open(path, "rb") as log:
            return _names(log)
    except FileNotFoundError:
        return set()


def _names(log) -> set[str]:
    log.seek(0)
    found = set()
    for line in log:
        try:
            found.add(json.loads(line)["metadata"]["name"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # a half line; it names no event
    return found
