# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators' part of a stand-in: it writes the status for which a recipe's health checks wait.

Helm cannot set a status, and the real operators are not there. `held` names check kinds that stay without one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import jmespath

from tests.simfleet.api import MERGE_PATCH, Api, ApiError
from tests.standin import kinds, satisfy

PAUSE_SECONDS = 0.3


class Operators:
    """Watches over the custom resources of a lock's health checks."""

    def __init__(self, lock: dict, api: Api):
        self._api = api
        self.held: set[str] = set()
        self._wanted: dict[kinds.Kind, list[str]] = {}
        for component in lock["spec"]["components"]:
            for check in kinds.checks(component):
                self._wanted.setdefault(kinds.from_check(check), []).append(check["expression"])
        self._status = {kind: satisfy.status(expressions) for kind, expressions in self._wanted.items()}

    def step(self) -> int:
        """Give every object that lacks it the wanted status; how many got it."""
        done = 0
        for kind, expressions in self._wanted.items():
            if kind.kind in self.held:
                continue
            with contextlib.suppress(ApiError):  # no such kind yet, or the object is gone: the next step sees
                for obj in self._api.list(kind.path):
                    if all(holds(expression, obj) for expression in expressions):
                        continue
                    meta = obj["metadata"]
                    space = f"namespaces/{meta['namespace']}/" if kind.namespaced else ""
                    path = f"/apis/{kind.api_version}/{space}{kind.plural}/{meta['name']}/status"
                    self._api.patch(path, {"status": self._status[kind]}, MERGE_PATCH)
                    done += 1
        return done

    def work(self, stop: threading.Event) -> None:
        """Step until told to stop."""
        while not stop.wait(PAUSE_SECONDS):
            with contextlib.suppress(OSError):  # the API server is busy or restarts
                self.step()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[Operators]:
        """Work beside the body of a `with`. What stops the work before its end is raised at its end."""
        stop, failed = threading.Event(), []

        def run() -> None:
            try:
                self.work(stop)
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join()
        if failed:
            raise failed[0]


def holds(expression: str, obj: dict) -> bool:
    """Whether the check is true of the object. length() of a status that is not there is an error, and no."""
    try:
        return jmespath.search(expression, obj) is True
    except jmespath.exceptions.JMESPathError:
        return False
