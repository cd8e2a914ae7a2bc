# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered of earlier attempts: one entry per attempt that was decided about.

An entry: {key, previous, job: "NAMESPACE/NAME", at, class, id, action, rule, mode, nodes, blamed: [nodes],
exclude: [nodes], step, checkpointStep, advanced: true | false | null, fault, user, image, outcome}. `fault` is the same
for failures that are the same to the line; empty where there is none such. `outcome` is written by who acts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest

RESTARTS = ("retry", "restart")
# a restart that did not happen costs no budget
UNDONE = ("refused", "planned", "advised")
# the rule for memory that ran out: the node is looked at for what was left over, and not blamed
MEMORY = "row-15"
KEEP = 30 * 86400  # seconds
IMAGE = 300  # characters
# a time-out raises the same exception at the same line of the launcher each time; only these are somebody's bug
BUGS = ("user-code", "unknown", "")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """`at` in seconds since 1970."""

    key: str
    number: int | None
    previous: str  # uid of the job before; empty where that is not known
    job: str
    at: float
    cls: str
    id: str
    action: str
    nodes: frozenset[str]
    blamed: frozenset[str]
    exclude: frozenset[str]
    step: int | None
    checkpoint: int | None
    advanced: bool | None
    fault: str
    image: str
    acted: bool
    order: str  # between entries of one moment

    @property
    def restarted(self) -> bool:
        return self.acted and self.action in RESTARTS


class History:
    """The decisions of the last 30 days, oldest first, each attempt once. What cannot be read is left out."""

    def __init__(self, history: Mapping | None, now: float):
        told = [entry for raw in (history or {}).get("decisions") or () if (entry := _entry(raw, now))]
        told.sort(key=lambda entry: (entry.at, entry.order))
        found = {entry.key: entry for entry in told if entry.at >= now - KEEP}
        self.entries = sorted(found.values(), key=lambda entry: (entry.at, entry.key))
        self._by_job: dict[str, list[Entry]] = {}
        for entry in self.entries:
            self._by_job.setdefault(entry.job, []).append(entry)

    def of(self, attempt: Mapping) -> list[Entry]:
        """All of a job of that name, other attempts only, oldest first."""
        return [entry for entry in self._by_job.get(job_of(attempt), ()) if entry.key != attempt["key"]]

    def chain(self, attempt: Mapping) -> list[Entry]:
        """The attempts before it of the same submission, oldest first; who submits again starts anew."""
        chain: list[Entry] = []
        number, before = attempt.get("number"), attempt.get("previous")
        for entry in reversed(self.of(attempt)):
            if before and f"/{before}/" not in entry.key:
                continue  # of a job of another kind that has the same name
            if number is None or entry.number is None or entry.number >= number:
                break
            chain.append(entry)
            number, before = entry.number, entry.previous
        return chain[::-1]

    def since(self, seconds: float, now: float) -> list[Entry]:
        return [entry for entry in self.entries if entry.at > now - seconds]


def job_of(attempt: Mapping) -> str:
    job = attempt["job"]
    return f"{job.get('namespace', '')}/{job.get('name', '')}"


def image_of(attempt: Mapping) -> str:
    """As it is remembered: the end of one that is too long, which tells its tag or digest."""
    return (attempt["job"].get("image") or "")[-IMAGE:]


def number_of(key: str) -> int | None:
    """Of NAMESPACE/NAME/UID/NUMBER, also where the uid of another scheduler holds a slash, _, + or []."""
    last = key.rpartition("/")[2]
    return int(last) if last.isdecimal() else None


def step_of(attempt: Mapping) -> int | None:
    """The step at which it failed, as far as the log tells."""
    signature = attempt.get("signature") or {}
    for source in (signature.get("exception"), signature.get("progress"), attempt.get("progress")):
        for name in ("step", "lastStep"):
            if source and source.get(name) is not None:
                return source[name]
    return None


def checkpoint_of(attempt: Mapping) -> int | None:
    checkpoint = attempt.get("checkpoint") or {}
    return checkpoint.get("step") if checkpoint.get("complete") else None


def fault_of(attempt: Mapping) -> str:
    """The same for failures that are the same to the line and the step; empty for what is no bug."""
    signature = attempt.get("signature") or {}
    exception, cls = signature.get("exception"), signature.get("class", "")
    if cls == "user-code" and not exception:
        return digest.sha256([signature.get("id"), signature.get("exitCode"), step_of(attempt)])[7:23]
    if not exception or cls not in BUGS:
        return ""
    place = (exception.get("file"), exception.get("line"))
    what = _ADDRESS.sub("0x", exception.get("message") or "") if None in place else ""
    return digest.sha256([exception.get("type"), *place, what, step_of(attempt)])[7:23]


def advanced(attempt: Mapping, before: list[Entry]) -> bool | None:
    """Whether the attempt got further than those before it. None: nobody can tell."""
    told = (attempt.get("progress") or {}).get("advanced")
    if told is not None:
        return told
    saved = checkpoint_of(attempt)
    earlier = [entry.checkpoint for entry in before if entry.checkpoint is not None]
    if saved is not None and earlier and saved > max(earlier):
        return True
    step = step_of(attempt)
    steps = [entry.step for entry in before if entry.step is not None]
    return step > max(steps) if step is not None and steps else None


def entry(decision: Mapping, attempt: Mapping, outcome: str = "") -> dict:
    """What to remember of a decision (the document) about an attempt."""
    spec, job = decision["spec"], attempt["job"]
    advised = {one["node"] for one in spec["hardware"] if one["advice"] != "none" and spec["rule"] != MEMORY}
    return {
        "key": attempt["key"],
        "previous": attempt.get("previous") or "",
        "job": job_of(attempt),
        "at": spec["decidedAt"],
        "class": spec.get("class", ""),
        "id": spec.get("signature", ""),
        "action": spec["action"],
        "rule": spec["rule"],
        "mode": spec["mode"],
        "nodes": sorted(attempt.get("nodes") or ()),
        "blamed": sorted({*spec.get("blamed", ()), *advised}),
        "exclude": sorted(one["node"] for one in spec["exclude"]),
        "step": step_of(attempt),
        "checkpointStep": checkpoint_of(attempt),
        "advanced": spec.get("advanced"),
        "fault": fault_of(attempt),
        "user": job.get("user") or "",
        "image": image_of(attempt),
        "outcome": outcome,
    }


def _entry(raw: object, now: float) -> Entry | None:
    """A part that is none of its kind, since a person wrote it there, counts as not known."""
    raw = raw if isinstance(raw, Mapping) else {}
    at, key = moments.of(raw.get("at")), raw.get("key")
    if at is None or not key or not isinstance(key, str):
        return None
    acted = raw.get("mode", "act") == "act" and raw.get("outcome") not in UNDONE
    return Entry(
        key=key,
        number=number_of(key),
        previous=_text(raw, "previous"),
        job=_text(raw, "job"),
        at=min(at, now),  # by another clock it may be later
        cls=_text(raw, "class"),
        id=_text(raw, "id"),
        action=_text(raw, "action") or "none",
        nodes=_names(raw.get("nodes")),
        blamed=_names(raw.get("blamed")),
        exclude=_names(raw.get("exclude")),
        step=_step(raw, "step"),
        checkpoint=_step(raw, "checkpointStep"),
        advanced=raw.get("advanced") if isinstance(raw.get("advanced"), bool) else None,
        fault=_text(raw, "fault"),
        image=_text(raw, "image"),
        acted=acted,
        order=json.dumps(raw, sort_keys=True, default=str),
    )


def _names(names: object) -> frozenset[str]:
    return (
        frozenset(each for each in names if isinstance(each, str)) if isinstance(names, list | tuple) else frozenset()
    )


def _text(raw: Mapping, part: str) -> str:
    return raw[part] if isinstance(raw.get(part), str) else ""


def _step(raw: Mapping, part: str) -> int | None:
    return raw[part] if isinstance(raw.get(part), int) and not isinstance(raw[part], bool) else None
