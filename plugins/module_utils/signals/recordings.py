# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded events: from paths or data to HealthEvents."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

ENDINGS = (".json", ".jsonl", ".ndjson", ".yaml", ".yml")


def read(source: object, parse: Callable[[object, str], dict]) -> tuple[list[dict], list[dict]]:
    """(events, unparsed) of a path, a directory, data, or a list of these. `parse(data, name)` reads one of them.

    What could not be read carries its `source`. Raises NotFound, and InvalidDocument for what is neither.
    """
    items = source if isinstance(source, (list, tuple)) else [source]
    events: list[dict] = []
    unparsed: list[dict] = []
    data = []
    for item in items:
        if isinstance(item, Mapping):
            data.append(item)
        elif not isinstance(item, (str, os.PathLike)):
            raise InvalidDocument(f"{str(item)[:80]!r} is no path and no event", path="events")
    parts: list[tuple[object, str]] = [(data, "events")] if data else []
    paths = [str(item) for item in items if not isinstance(item, Mapping)]
    parts += [(_bytes(path), path) for given in paths for path in _files(given)]
    for content, name in parts:
        result = parse(content, name)
        events += result["events"]
        unparsed += [{"source": name, **one} for one in result["unparsed"]]
    return events, unparsed


def _files(path: str) -> list[str]:
    try:
        if not os.path.isdir(path):
            return [path]
        names = sorted(name for name in os.listdir(path) if name.endswith(ENDINGS))
    except (OSError, ValueError) as error:
        raise NotFound(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from error
    # what node_quarantine keeps, beside its last decision
    names = [name for name in names if name.startswith("events-")] or names
    if not names:
        raise NotFound("is a directory without events", file=path, hint=f"files that end in {', '.join(ENDINGS)}")
    return [os.path.join(path, name) for name in names]


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise NotFound(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from error
