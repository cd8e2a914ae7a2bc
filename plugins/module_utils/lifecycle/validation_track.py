# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One ValidationRequest on its way, and its status: {phase, digest, message, startedAt, finishedAt, counts, nodes:
[{name, uid, phase, attempts, batch, basis, why, evidence}]}. Pure.

Phases of a node: Pending, Running (a certification is written down for it), Opened (its gate is off and it takes
work), Passed (its gate is off, others keep it closed), Failed (it stays closed), Gone (deleted, or another node under
its name).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import requests

PENDING, RUNNING, PASSED, FAILED, OPENED, GONE = "Pending", "Running", "Passed", "Failed", "Opened", "Gone"
SUCCEEDED = "Succeeded"  # of a request
LIVE = (PENDING, RUNNING)
WHY_LIMIT, MESSAGE_LIMIT = 200, 500  # characters
_BLANK = {"phase": PENDING, "attempts": 0, "batch": "", "basis": {}, "why": "", "evidence": ""}


class Track:
    """`named`: {node: uid that the request asks for, or ""}. `entries`: {node: entry}. `edited`: the request is not
    what it was when it was taken up. `selected`: it is worked on."""

    def __init__(self, document: Mapping, accept_changed: bool, only: Collection[str]):
        self.spec, self.name = document["spec"], document["metadata"]["name"]
        self.digest, self.key = requests.digest_of(self.spec), requests.tests_key(self.spec)
        self.reason, self.retries = self.spec["reason"], self.spec.get("retries", 1)
        self.selected = not only or self.name in only
        self.named = {node["name"]: node.get("uid") or "" for node in self.spec["nodes"]}
        self._before = document.get("status") or {}
        self.open = requests.is_open(document)
        self.edited = bool(self._before.get("digest")) and self._before["digest"] != self.digest
        there = self._before
        if self.edited and accept_changed and self.selected:
            self.edited, self.open, there = False, True, {}
        self._started = there.get("startedAt") or ""
        entries = ({**_BLANK, **entry, "basis": entry.get("basis") or {}} for entry in there.get("nodes") or ())
        self.entries = {entry["name"]: entry for entry in entries}
        self._was = {name: dict(entry) for name, entry in self.entries.items()}

    def asker(self, now: str) -> str:
        """Which request it is, and since when it is worked on: one that was deleted and made anew is another."""
        return f"{self.digest}@{self._started or now}"

    def uids(self) -> Iterator[tuple[str, str]]:
        """(node, uid) of all that it names, as far as it is known which node was meant."""
        for name, uid in self.named.items():
            yield name, uid or (self.entries.get(name) or {}).get("uid") or ""

    def bind(self, nodes: Mapping[str, dict]) -> None:
        """An entry for each node it names, and none for others; those that are not there any more are gone."""
        entries = {}
        for name, uid in sorted(self.named.items()):
            entry = {"name": name, "uid": "", **_BLANK, **(self.entries.get(name) or {})}
            node = nodes.get(name)
            entry["uid"] = uid or entry["uid"] or (node["uid"] if node else "")
            if entry["phase"] in LIVE:
                if node is None:
                    entry.update(phase=GONE, why="there is no such node")
                elif node["uid"] != entry["uid"]:
                    entry.update(phase=GONE, why="it was deleted, and another node has its name")
                elif entry["phase"] == RUNNING and not entry["batch"]:
                    entry["phase"] = PENDING
            entries[name] = entry
        self.entries = entries

    def status(self, now: str, pending: Collection[str] = ()) -> dict | None:
        """The status that it should have; None where it has it, or is over. `pending`: nodes that are about to be
        released, of which nothing is said before that was done."""
        if not self.open:
            return None
        if self.edited:
            status = {**self._before, "message": "the request was edited since it was taken up; nothing is done for it"}
            return status if status != self._before else None
        nodes = [{**entry, "why": _cut(entry["why"], WHY_LIMIT)} for entry in self._entries(pending)]
        phase = _phase(nodes)
        status = {
            "phase": phase,
            "digest": self.digest,
            "message": _message(nodes),
            "startedAt": self._started or now,
            "counts": dict(sorted(Counter(entry["phase"].lower() for entry in nodes).items())),
            "nodes": nodes,
        }
        if phase not in LIVE:
            status["finishedAt"] = now
        same = {key: self._before.get(key) for key in status if key != "finishedAt"}
        return status if {key: status[key] for key in same} != same else None

    def _entries(self, pending: Collection[str]) -> list[dict]:
        return [self._was.get(name, entry) if name in pending else entry for name, entry in self.entries.items()]


def _phase(nodes: list[dict]) -> str:
    phases = {entry["phase"] for entry in nodes}
    if phases & set(LIVE):
        return PENDING if phases == {PENDING} and not any(entry["attempts"] for entry in nodes) else RUNNING
    return FAILED if FAILED in phases or phases <= {GONE} else SUCCEEDED


def _message(nodes: list[dict]) -> str:
    counts = Counter(entry["phase"].lower() for entry in nodes)
    parts = [f"{number} {phase}" for phase, number in sorted(counts.items())]
    failed = [f"{entry['name']} ({entry['why']})" for entry in nodes if entry["phase"] == FAILED]
    return _cut(", ".join(parts) + (f": {'; '.join(failed)}" if failed else ""), MESSAGE_LIMIT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
