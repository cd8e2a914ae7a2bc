# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look again until all is healthy, or the time is up. Clock and sleep are arguments, so that tests need neither."""

from __future__ import annotations

import time
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import HEALTHY
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Unavailable


def until_healthy(
    look: Callable[[], list[dict]],
    timeout: float,
    interval: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[list[dict], float]:
    """(results of the last look, seconds waited). Looks once when `timeout` is 0.

    A server that is away for a while does not end the wait; one that still is at the end does (Unavailable).
    """
    begin = clock()
    while True:
        failure, results = None, []
        try:
            results = look()
        except Unavailable as error:
            failure = error
        waited = clock() - begin
        if not failure and all(result["status"] == HEALTHY for result in results):
            return results, waited
        if waited + interval > timeout:
            if failure:
                raise failure
            return results, waited
        sleep(interval)
