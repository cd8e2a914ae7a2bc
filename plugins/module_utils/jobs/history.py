# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one pass saw and the next one needs: where pods ran that are deleted by then, which boots nodes had, and which
step a job had reached when.

    before = load(record_dir)
    attempts = build(Snapshot(..., earlier=before["attempts"], known=before["nodes"]), now)
    save(record_dir, remember(before, attempts, nodes, now))

When a Job fails its other pods are deleted at once. Without this their nodes would be unknown, and so would be what is
known of those.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, progress, ranks, shapes
from ansible_collections.goodput.fleet.plugins.module_utils.records import durable

FILE = "seen.json"
BOOTS = 3  # of one node
KEEP = 86400.0  # seconds after an attempt or a node was last seen
GONE = "Gone"  # phase of a rank whose pod is there no more
_PLACE = ("index", "role", "pod", "uid", "namespace", "node", "startedAt")  # there are many of them, so only this


def remember(before: Mapping | None, attempts: Iterable[Mapping], nodes: Iterable[Mapping], now: float) -> dict:
    """{attempts: {key: {at, restarts, ranks, samples, pause}}, nodes: {name: {uid, boots: [{bootId, at}]}}}: what was
    there, brought up to date. `at` is when it was last seen. Of the nodes only those that an attempt runs on."""
    before = _sound(before)
    seen, at = {}, moments.text(now)
    known = dict(before["nodes"])
    used: set[str] = set()
    for attempt in attempts:
        old = before["attempts"].get(attempt["key"]) or {}
        used.update(attempt["nodes"])
        seen[attempt["key"]] = {
            "at": at,
            "restarts": attempt["job"]["restarts"],
            "ranks": [[rank[part] for part in _PLACE] for rank in attempt["ranks"] if rank["node"]],
            "samples": _samples(attempt["progress"], old, now),
            "pause": shapes.mapping(attempt["progress"]).get("pause"),
        }
    for key, old in before["attempts"].items():
        if key not in seen and now - (moments.of(old.get("at")) or 0) < KEEP:
            seen[key] = old
    for node in nodes:
        name = shapes.text(shapes.metadata(node).get("name"))
        if name in used:
            known[name] = _boots(known.get(name), node, at)
    kept = {name: one for name, one in known.items() if now - max(_times(one), default=0.0) < KEEP}
    return {"attempts": seen, "nodes": kept}


def missing_ranks(earlier: Mapping | None, found: Iterable[Mapping], restarts: int | None = None) -> list[dict]:
    """The ranks of an earlier pass whose place nobody has now; their phase is GONE. restarts: as the job's scheduler
    counts them; where those ran that it has started again since is not where the last ones ran."""
    then = shapes.mapping(earlier).get("restarts")
    if restarts is not None and then is not None and then != restarts:
        return []
    there = {(rank["role"], rank["index"]) for rank in found}
    pods = {rank["uid"] for rank in found}
    gone = []
    for place in shapes.mapping(earlier).get("ranks") or ():
        told = dict(zip(_PLACE, place, strict=True))
        if told["index"] is not None and (told["role"], told["index"]) not in there and told["uid"] not in pods:
            gone.append({**ranks.read({}, None), **told, "phase": GONE})
    return gone


def load(record_dir: str) -> dict:
    """What save() has kept; nothing where it is not there or cannot be read, as it only helps."""
    try:
        return _sound(json.loads(durable.read(os.path.join(record_dir, FILE))))
    except (OSError, ValueError):
        return _sound(None)


def save(record_dir: str, seen: Mapping) -> None:
    """Raises Unavailable where it cannot be kept."""
    with durable.disk(record_dir, "what was seen of jobs"):
        os.makedirs(record_dir, exist_ok=True)
        durable.replace(record_dir, FILE, json.dumps(seen, sort_keys=True).encode() + b"\n")


def _samples(told: Mapping | None, old: Mapping, now: float) -> list[dict]:
    kept = shapes.mapping(told).get("samples")
    return list(kept) if kept is not None else progress.samples(told, old.get("samples") or (), now)


def _sound(seen: object) -> dict:
    """Without what is not as remember() writes it, such as what another version wrote."""
    attempts, nodes = (shapes.mapping(shapes.mapping(seen).get(part)) for part in ("attempts", "nodes"))
    return {
        "attempts": {key: {**one, **_parts(one)} for key, one in attempts.items() if isinstance(one, dict)},
        "nodes": {name: one for name, one in nodes.items() if isinstance(one, dict)},
    }


def _parts(attempt: Mapping) -> dict:
    places = attempt.get("ranks")
    places = places if isinstance(places, list) else []
    return {
        "ranks": [one for one in places if isinstance(one, list) and len(one) == len(_PLACE) and _is_place(*one)],
        "samples": shapes.listed(attempt.get("samples")),
        "pause": attempt["pause"] if isinstance(attempt.get("pause"), dict) else None,
    }


def _is_place(index: object, *texts: object) -> bool:
    return (index is None or isinstance(index, int)) and all(isinstance(one, str) for one in texts)


def _times(known: Mapping) -> list[float]:
    return [at for one in shapes.listed(known.get("boots")) if (at := moments.of(one.get("at"))) is not None]


def _boots(known: Mapping | None, node: Mapping, at: str) -> dict:
    uid = shapes.text(shapes.metadata(node).get("uid"))
    boot = shapes.text(shapes.mapping(shapes.status(node).get("nodeInfo")).get("bootID"))
    same = known is not None and known.get("uid") == uid
    boots = [one for one in shapes.listed(known.get("boots")) if one.get("bootId") != boot] if same else []
    return {"uid": uid, "boots": [*boots, {"bootId": boot, "at": at}][-BOOTS:]}
