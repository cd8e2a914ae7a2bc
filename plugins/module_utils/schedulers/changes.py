# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells when a job has failed, without asking again and again: a watch per kind of job that the cluster has.

changes = Changes(client)        # from now on
while changes.wait(15):          # a job failed, or 15 seconds went by without
    ...
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import kinds

_SERVER_ENDS = 45  # seconds; before the client takes a quiet connection for a lost one
_AFTER_FAULT = 2.0


class Changes:
    """Watches from when it is made. Its threads end with the process, or with `close`.

    A watch that breaks is begun anew, and counts as a change: what happened in between is not known.
    """

    def __init__(self, client):
        self._client, self._told, self._over = client, threading.Event(), threading.Event()
        self._ended: set[str] = set()
        for kind, about in kinds.KINDS.items():
            path = api_path(about.api_version, about.plural)
            version = self._version(path)
            if version is not None:
                threading.Thread(target=self._follow, args=(kind, path, version), daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether a job failed since the last call, or does within so many seconds."""
        told = self._told.wait(seconds)
        self._told.clear()
        return told

    def close(self) -> None:
        self._over.set()

    def _version(self, path: str) -> str | None:
        try:
            answer = self._client.get(path, limit=1)
        except NotFound:  # the cluster has no such kind
            return None
        return (answer.get("metadata") or {}).get("resourceVersion") or "0"

    def _follow(self, kind: str, path: str, version: str | None) -> None:
        while not self._over.is_set():
            try:
                if version is None:
                    version = self._version(path)
                    self._told.set()
                if version is None:
                    return
                version = self._watch(kind, path, version)
            except FleetError:
                version = None
                self._over.wait(_AFTER_FAULT)

    def _watch(self, kind: str, path: str, version: str) -> str | None:
        """The version to go on from; None where that is not known any more."""
        rest = b""
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": _SERVER_ENDS}
        for piece in self._client.stream(path, resourceVersion=version, **query):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    return None
                about = event.get("object") or {}
                if event.get("type") == "ERROR":
                    return None
                version = (about.get("metadata") or {}).get("resourceVersion") or version
                if event.get("type") != "BOOKMARK" and self._news({**about, "kind": kind}):
                    self._told.set()
            if self._over.is_set():
                return None
        return version

    def _news(self, job: Mapping) -> bool:
        """Whether it failed, and that is told for the first time."""
        uid = (job.get("metadata") or {}).get("uid") or ""
        end = kinds.ended(job)
        if not end or end["state"] != "failed" or uid in self._ended:
            return False
        self._ended.add(uid)
        return True
