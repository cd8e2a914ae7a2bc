# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job's logs say it failed of: class, whom it points at, and the lines that decided.

    table = signatures.load_catalog(layers)
    classify([(0, "train-0", open("rank-0.log", "rb")), (1, "train-1", open("rank-1.log", "rb"))], table)["class"]

Rules: only the last attempt in a log counts. The earliest line that does not follow from another failure decides, lines
that do only where nothing else is there. Blame is a second answer, see blame.py. What a launcher calls the root cause
is only the first failure it saw, and is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from statistics import median

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import blame, logs
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.attempt_log import Attempt, Exit, Hit, Log
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.scan import Scan, Shapes
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.signatures import Table

SURVIVED = 3  # steps after a failure that show that it did not end the job
LINES, OTHERS = 8, 12
NEAR = 200  # lines of one traceback
REQUEUED = "J161"  # the scheduler ended the processes, whatever their exit codes
OBSERVE = "none (observe)"
# where nothing tells which of two logs' failures came first
ORDER = ("hardware", "storage", "user-code", "preemption", "network", "transient-software", "unknown")
# how much is known when such a line decides
ROOT, WEAK, MAYBE, WATCHED, PAST, CASCADE = range(6)
CONFIDENCE = {ROOT: 0.85, WEAK: 0.6, MAYBE: 0.5, WATCHED: 0.4, PAST: 0.3, CASCADE: 0.25}


def classify(sources: Iterable[tuple], table: Table, options: Mapping | None = None) -> dict:
    """The signature of a job's failure, as plain data.

    sources: (rank or None, pod, log) each; a log is a text, bytes, a file, lines, or pieces as they come, also gzip. A
    log of several ranks names them in its lines, and what a program calls itself counts before `rank`. Logs are read
    one after the other, so that they may be opened lazily: a log may also be a function that gives it, and what that
    gives is closed.
    options: `exits`, [{rank, exitCode, at}] as the scheduler knows them, signals as negative codes or from 128 on;
    `year`, for times without one; `world`, the number of ranks, which
    only counts where a log holds several.
    Raises TypeError for a log that is none of these. Junk in a log raises nothing.
    """
    options = options or {}
    found = _read(list(sources), table, options)
    scene, attempts = _scene(found, options)
    ends = _exits(found, attempts, options)
    root, level = _root(scene, found, attempts)
    culprits = blame.culprits(scene)
    if root is None or level >= MAYBE:
        told = _by_exit(scene, ends, table)
        ended = root is not None and root.signature.id == REQUEUED
        if told and not ended and (root is None or level == CASCADE or told["exitCode"] not in (0, 1)):
            return _answer(told, None, scene, culprits, found, attempts, ends)
    if root is None:
        return _answer(_unknown(), None, scene, culprits, found, attempts, ends)
    return _answer(_by_line(root, level, scene, culprits), root, scene, culprits, found, attempts, ends)


def _read(sources: list[tuple], table: Table, options: Mapping) -> list[Log]:
    shapes = Shapes(table)
    year = options.get("year") or 1970
    found = []
    for rank, pod, content in sources:
        scan = Scan(shapes, rank, pod or "", year, len(sources) == 1 and rank is None)
        opened = content() if callable(content) else content
        try:
            found.append(scan.read(opened))
        finally:
            if opened is not content and hasattr(opened, "close"):
                opened.close()
    # the same answer in whatever order the logs were given
    return sorted(found, key=lambda log: (log.rank is None, log.rank or 0, log.pod))


def _scene(found: list[Log], options: Mapping) -> tuple[blame.Scene, list[Attempt]]:
    told = max((log.world for log in found), default=0)
    # one rank a log: then the logs are the ranks
    expected = options.get("world") or 0
    scene = blame.Scene(world=told or (expected if any(log.shared for log in found) else 0))
    attempts = [_counts(log) for log in found]
    for log, attempt in zip(found, attempts, strict=True):
        scene.ranks |= log.ranks
        by_local = {one.local: one.rank for one in attempt.exits if one.rank is not None}
        for hit in attempt.hits.values():
            if hit.rank is None and hit.local is not None:
                hit.rank = by_local.get(hit.local, hit.local if len(found) == 1 and not by_local else None)
        scene.sequences |= attempt.sequences
        scene.hits += attempt.hits.values()
        scene.hosts |= log.hosts
        scene.logs += bool(log.pod)
        for rank in log.ranks:
            scene.pods.setdefault(rank, log.pod)
    return scene, attempts


def _counts(log: Log) -> Attempt:
    """The attempt that counts. A launcher's restart that came to nothing is the failure before it."""
    last = log.last
    if log.before and last.first_step is None and not any(last.roots) and any(log.before.roots):
        return log.before
    return last


# what decides


def _root(scene: blame.Scene, found: list[Log], attempts: list[Attempt]) -> tuple[Hit | None, int]:
    if not scene.hits:
        return None, CASCADE
    steps = {log.pod: attempt.last_step for log, attempt in zip(found, attempts, strict=True)}
    dated = len(found) == 1 or all(hit.at is not None for hit in scene.hits)
    maybes = [hit for hit in scene.hits if hit.signature.cascade == "maybe"]

    def when(hit: Hit) -> tuple:
        if len(found) == 1:
            return (hit.order,)
        if dated:
            return (hit.at, hit.order, hit.rank if hit.rank is not None else -1)
        return (ORDER.index(hit.signature.cls), hit.order, hit.rank if hit.rank is not None else -1)

    def level(hit: Hit) -> int:
        signature = hit.signature
        if signature.cascade == "always" or hit.collateral:
            return CASCADE
        if _survived(hit, steps.get(hit.pod)):
            return PAST
        if signature.action == OBSERVE and signature.cls != "user-code":
            return WATCHED
        if signature.cascade == "maybe":
            return MAYBE
        if signature.strength > 0:
            return ROOT
        # who ended it is not why it failed
        late = not signature.died and any(when(one) < when(hit) for one in maybes)
        return CASCADE if late else WEAK

    levels = {id(hit): level(hit) for hit in scene.hits}

    def rank_of(hit: Hit) -> tuple:
        # of lines that only follow, those of the teardown say least
        strength = 2 if hit.signature.strength == 2 else 1
        # and of those that may, what programs also warn of
        strength = hit.signature.strength if levels[id(hit)] in (MAYBE, CASCADE) else strength
        return (levels[id(hit)], -strength, when(hit))

    best = min(scene.hits, key=rank_of)
    if levels[id(best)] == ROOT:
        same = [hit for hit in scene.hits if levels[id(hit)] <= WEAK]
        best = _instead(best, same, when)
    return best, levels[id(best)]


def _survived(hit: Hit, last: int | None) -> bool:
    return hit.step is not None and last is not None and last - hit.step >= SURVIVED


def _instead(best: Hit, roots: list[Hit], when) -> Hit:
    """A line that only says how others saw it gives way to what the others saw."""
    if best.guessed:
        # the rest of a message of several lines, or what an exception was raised from, may be described
        said = [hit for hit in roots if not hit.guessed and (hit.rank, hit.pod) == (best.rank, best.pod)]
        near = [hit for hit in said if abs(hit.number - best.number) <= NEAR and hit.signature.strength > 0]
        if near:
            return min(near, key=when)
    soft = best.signature.blame in ("peer", "pair") or best.guessed
    if soft:
        died = [hit for hit in roots if hit.signature.died and (hit.rank is None or hit.rank != best.rank)]
        if died:
            return min(died, key=when)
    if best.signature.id in blame.REPORTS:
        named = {rank for hit in roots if hit.signature.id in blame.REPORTS for rank in hit.ranks}
        own = [hit for hit in roots if hit.rank in named and hit.signature.id not in blame.REPORTS]
        if own:
            return min(own, key=lambda hit: (hit.signature.strength == 0, when(hit)))
    return best


def _exits(found: list[Log], attempts: list[Attempt], options: Mapping) -> list[Exit]:
    """Ends of processes, the first first: by the scheduler where it tells, else in the order of the logs."""
    given = [one for one in options.get("exits") or () if one.get("exitCode") is not None]
    given.sort(key=lambda one: (one.get("at") or "9999", one.get("rank") if one.get("rank") is not None else 1 << 30))
    logs_of = {log.rank: log for log in found if log.rank is not None}
    ends = []
    for one in given:
        log = logs_of.get(one.get("rank"))
        rank = log.own if log is not None else one.get("rank")
        ends.append(Exit(int(one["exitCode"]), rank, None, one.get("host") or "", log.pod if log else ""))
    for log, attempt in zip(found, attempts, strict=True):
        ranks = {(one.host, one.local): one.rank for one in attempt.exits if one.rank is not None}
        by_local = {one.local: one.rank for one in attempt.exits if one.rank is not None}
        for one in attempt.exits:
            rank = one.rank
            if rank is None:
                rank = ranks.get((one.host, one.local), by_local.get(one.local))
            if rank is None and one.local is not None and len(found) == 1:
                rank = one.local
            ends.append(Exit(one.code, rank, one.local, one.host, log.pod))
    return [one for one in ends if one.code != 0]


def _by_exit(scene: blame.Scene, ends: list[Exit], table: Table) -> dict | None:
    """What the first process's exit code says, where its log says nothing. Who only waited does not count."""
    waiters = scene.waiters
    waiting_pods = {scene.pods.get(rank) for rank in waiters}
    for one in ends:
        code = one.code
        meaning = table.exits.get(code)
        if meaning is None and code > 128:
            meaning = table.exits.get(128 - code)
        if meaning is not None and meaning.cascade != "never":
            continue
        if one.rank in waiters or (one.rank is None and one.pod and one.pod in waiting_pods):
            continue
        who = blame.nobody()
        if meaning is not None and meaning.blame == "emitter" and (one.rank is not None or one.host or one.pod):
            hosts = {one.host} if one.host and not one.host.startswith(blame.LOOPBACK) else set()
            who = blame.named("emitter", {one.rank} - {None}, hosts, scene)
            who["pods"] = who["pods"] or [one.pod] * bool(one.pod)
        return {
            "id": f"exit{code}",
            "class": meaning.cls if meaning else "user-code",
            "action": meaning.action if meaning else "fail to user",
            "blame": who,
            "cascade": False,
            "confidence": 0.4 if code != 1 else 0.3,
            "lines": [],
            "exitCode": code,
            "firstFailing": one.rank,
        }
    return None


def _unknown() -> dict:
    return {
        "id": "", "class": "unknown", "action": OBSERVE, "cascade": False, "confidence": 0.0, "lines": [],
        "blame": blame.nobody(), "exitCode": None, "firstFailing": None,
    }  # fmt: skip


def _by_line(root: Hit, level: int, scene: blame.Scene, culprits: blame.Culprits) -> dict:
    signature = root.signature
    cascade = level == CASCADE or signature.cascade != "never"
    who = blame.of(root, scene, culprits)
    if level in (WATCHED, PAST) or (level == CASCADE and signature.blame in ("emitter", "named-node", "pair")):
        who = blame.nobody()
    sure = CONFIDENCE[level] + (0.1 if signature.strength == 2 and level == ROOT else 0)
    if root.guessed or signature.generic:
        sure = min(sure, 0.6)
    if who["kind"] == "named-rank" and culprits.how and signature.blame != "emitter":
        sure = max(sure, culprits.confidence) if cascade else min(sure, culprits.confidence)
    first = root.rank if level in (ROOT, WEAK) and not signature.waiting else None
    if who["kind"] == "named-rank":
        first = who["ranks"][0] if len(who["ranks"]) == 1 else None
    elif signature.blame in ("peer", "pair"):
        first = None
    elif first is None and level in (ROOT, WEAK) and len(who["ranks"]) == 1:
        first = who["ranks"][0]
    return {
        "id": signature.id,
        "class": signature.cls,
        "action": signature.action,
        "blame": who,
        "cascade": cascade,
        "confidence": round(sure, 2),
        "lines": _lines(root, scene, who),
        "exitCode": None,
        "firstFailing": first,
    }


def _lines(root: Hit, scene: blame.Scene, who: dict) -> list[dict]:
    """The lines that decided: the root's of each rank, and what names whom it points at."""
    same = [hit for hit in scene.hits if hit.signature.id == root.signature.id and hit is not root]
    same.sort(key=lambda hit: hit.order)
    reports = [hit for hit in scene.hits if hit.signature.id in blame.REPORTS] if who["kind"] == "named-rank" else []
    chosen, seen = [], set()
    for hit in [root, *reports, *same]:
        if id(hit) not in seen and len(chosen) < LINES:
            seen.add(id(hit))
            chosen.append({"rank": hit.rank, "pod": hit.pod, "number": hit.number, "text": hit.text})
    return chosen


# the answer


def _answer(
    told: dict,
    root: Hit | None,
    scene: blame.Scene,
    culprits: blame.Culprits,
    found: list[Log],
    attempts: list[Attempt],
    ends: list[Exit],
) -> dict:
    named = set(told["blame"]["ranks"])
    first = told["firstFailing"]
    if first is None and root is not None and told["blame"]["kind"] == "none":
        left = [one.rank for one in ends if one.rank is not None and one.rank not in scene.waiters]
        first = left[0] if left and root.signature.blame in ("none", "unknown", "see-block") else None
    waiting = scene.waiters - named - ({first} if root is not None and root.rank == first else set())
    code = told["exitCode"]
    if code is None:
        codes = [one.code for one in ends if one.rank == first and first is not None] or [one.code for one in ends]
        code = codes[0] if codes else None
    others = sorted(
        (hit for hit in scene.hits if root is None or hit.signature.id != root.signature.id), key=lambda hit: hit.order
    )
    return {
        **told,
        "exception": _exception(root, first, found),
        "exitCode": code,
        "firstFailing": first,
        "waiting": sorted(waiting),
        "missing": sorted(culprits.missing),
        "cascades": sum(hit.count for hit in scene.hits if hit is not root and hit.signature.cascade != "never"),
        "attempts": max((log.attempts for log in found), default=0),
        "progress": _progress(attempts),
        "others": _others(others),
    }


def _others(hits: list[Hit]) -> list[dict]:
    merged: dict[str, dict] = {}
    for hit in hits:
        one = merged.setdefault(hit.signature.id, {"id": hit.signature.id, "rank": hit.rank, "count": 0})
        one["count"] += hit.count
    return list(merged.values())[:OTHERS]


def _exception(root: Hit | None, first: int | None, found: list[Log]) -> dict | None:
    raised = root.raised if root else None
    if raised is None:
        for log in found:
            rank = first if first is not None else (root.rank if root else None)
            if rank is not None and rank in log.last_exceptions and (root is None or rank == first):
                raised = log.last_exceptions[rank]
                break
    if raised is None:
        return None
    return {
        "type": raised.type,
        "message": raised.message,
        "file": raised.file,
        "line": raised.line,
        "step": raised.step,
    }


def _progress(attempts: list[Attempt]) -> dict:
    first = [one.first_step for one in attempts if one.first_step is not None]
    last = max((one for one in attempts if one.last_step is not None), key=lambda one: one.last_step, default=None)
    seconds = [value for one in attempts for value in one.step_seconds]
    return {
        "firstStep": min(first, default=None),
        "lastStep": last.last_step if last else None,
        "lastStepAt": _text(last.last_stamp) if last else None,
        "stepSeconds": round(median(seconds), 6) if seconds else None,
    }


def _text(stamp: bytes) -> str | None:
    """The time as UTC, where the line says the day."""
    at = logs.moment(logs.plain(stamp).lstrip(b"[ "), 1970)
    if at is None or at < 365 * 86400:
        return None
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
