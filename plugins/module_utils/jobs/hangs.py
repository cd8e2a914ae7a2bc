# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a running job get on? Asked of the ends of two of its logs, as trainers report steps on the first rank or the
last; what earlier passes saw comes from history.remember().

    look(attempt, read_logs, classify, before["attempts"].get(attempt["key"]), now, limits)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, progress
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

TAIL = 400  # lines
BYTES = 1 << 20


def look(
    attempt: dict,
    read_logs: Callable[[dict], Iterable[bytes]],
    classify: Callable[[list, dict], dict],
    seen: Mapping | None,
    now: float,
    limits: Mapping | None = None,
    previous_step: int | None = None,
) -> dict:
    """Notes in the attempt what progress.verdict() finds, with {pause, samples}, and returns it; who hangs is `hung`.

    read_logs(request) as for collect(), with `tail` in the request: how many lines are enough. A log that cannot be
    read tells nothing: the verdict is unknown, whatever was seen before. limits: as for progress.verdict().
    """
    seen = seen or {}
    told, lines, unread = _ends(attempt, read_logs, classify)
    kept = progress.samples(told, seen.get("samples") or (), now)
    if unread and told is None:
        found = progress.verdict((), now)
        found["reasons"] = unread
    else:
        pause = _pause(lines, seen.get("pause"), kept, now)
        usual = (told or {}).get("stepSeconds")
        found = progress.verdict(
            kept, now, attempt["startedAt"], limits, step_seconds=usual, pause=pause, previous_step=previous_step
        )
        found["pause"] = pause
    progress.apply(attempt, {**found, "samples": kept})
    return attempt["progress"]


def _ends(attempt: Mapping, read_logs, classify) -> tuple[dict | None, list[str], list[str]]:
    """(progress of the log that is furthest, its last lines, why others could not be read)."""
    running = [rank for rank in attempt["ranks"] if rank["phase"] == "Running" and rank["index"] is not None]
    furthest: tuple[dict | None, list[str]] = (None, [])
    unread = [] if running else ["none of its ranks runs"]
    for rank in running[:1] + running[1:][-1:]:
        request = {key: rank[key] for key in ("namespace", "uid", "container")}
        request.update(name=rank["pod"], previous=False, tail=TAIL)
        try:
            text = _end(read_logs(request))
        except (FleetError, OSError) as error:
            why = " ".join(str(error).split())[:300]
            unread.append(f"{rank['namespace']}/{rank['pod']}: its log cannot be read: {why}")
            continue
        told = classify([(rank["index"], rank["pod"], text)], {}).get("progress") or {}
        if furthest[0] is None or (told.get("lastStep") or -1) > (furthest[0].get("lastStep") or -1):
            furthest = told, text.decode("utf-8", "replace").splitlines()[-TAIL:]
    return *furthest, unread


def _end(pieces: Iterable[bytes]) -> bytes:
    text = bytearray()
    for piece in pieces:
        text += piece
        if len(text) > 2 * BYTES:
            del text[:-BYTES]
    return bytes(text[-BYTES:])


def _pause(lines: list[str], before: Mapping | None, kept: list[dict], now: float) -> dict | None:
    """A pause began when it was first seen after the last step: of most lines nobody knows the time."""
    found = progress.pause(lines, moments.text(now))
    if not found or not before or before.get("kind") != found["kind"]:
        return found
    stepped = moments.of(kept[-1]["at"]) if kept else None
    return found if (moments.of(before.get("at")) or 0) < (stepped or 0) else dict(before)
