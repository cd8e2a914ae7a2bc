# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass over all open ValidationRequests: who is gated, certified, let in, or stays out, and why. Pure.

    plan = decide(nodes, documents, proofs, policy, adopted, now)
    ...                       # create plan.create, hold plan.holds; and decide anew, if there was any of it
    ...                       # store plan.statuses, release plan.releases, run plan.certifications
    plan.conclude(results)    # {request: status} of those that were released

A gate stands for requests: its evidence is their digests. It opens when everything it stands for, and every open
request that names the node, is proven for what the node is now. What cannot be told keeps it closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import batches, requests, validation_gate
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.newcomers import marked, newcomers
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import (
    GATE,
    VALIDATION,
    Fleet,
    basis,
    gate,
    holders,
    is_whole,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import Bound, Room
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.validation_track import (
    FAILED,
    GONE,
    LIVE,
    OPENED,
    PASSED,
    PENDING,
    RUNNING,
    Track,
)

NEW_NODE, MANUAL = "new-node", "manual"
CHUNK = 500  # nodes that one request of ours names: its status has to fit into an object
_NEVER = "~"  # after every time
SHOWN = 5  # nodes that a line names
EXCUSES = 5  # attempts of a node that cost none: one that boots whenever it is tested would be tested for ever
ORPHANED = "closed until a pass with adopt_orphans makes a request, or the gate is released"
MAX_OUT, MAX_OUT_DOMAIN = Bound(10, True), Bound(50, True)


@dataclass(frozen=True)
class Policy:
    """`tests`, `options`, `retries`: of requests that the pass makes. `settle`, `batch_seconds`: how long a node waits
    for the next, and for all company. `only`: names of the requests that are worked on; empty: all. `not_run`: {name
    of a certification that could not be run: why}. `together`: {tests_key: how many nodes its tests need at a time}."""

    tests: list
    options: Mapping | None = None
    retries: int = 1
    new_nodes: bool = True
    max_out: Bound = MAX_OUT
    max_out_domain: Bound = MAX_OUT_DOMAIN
    settle: float = 120
    batch_seconds: float = 600
    accept_changed: bool = False
    adopt_orphans: bool = False
    require_driver: bool = True
    only: frozenset[str] = frozenset()
    namespace: str = ""
    not_run: Mapping[str, str] = field(default_factory=dict)
    together: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Plan:
    """`due`: seconds until nodes that wait for company are certified without; None where none wait for that."""

    create: list[dict] = field(default_factory=list)
    holds: list[dict] = field(default_factory=list)
    releases: list[dict] = field(default_factory=list)
    certifications: list[dict] = field(default_factory=list)
    statuses: dict[str, dict] = field(default_factory=dict)
    waiting: list[dict] = field(default_factory=list)
    failed: list[dict] = field(default_factory=list)
    gone: list[dict] = field(default_factory=list)
    orphans: list[dict] = field(default_factory=list)
    done: list[dict] = field(default_factory=list)  # proven, and their gate was gone already
    lines: list[str] = field(default_factory=list)
    due: float | None = None
    _tracks: list[Track] = field(default_factory=list)
    _now: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether there is something to be run, or room for further nodes, so that another pass finds more to do."""
        return bool(self.certifications or self.releases or self.done)

    def conclude(self, results: Iterable[Mapping]) -> dict[str, dict]:
        """{request: new status} after the releases. results: as gates report them, in their order."""
        for want, result in zip(self.releases, results, strict=True):
            for track in self._tracks:
                entry = track.entries.get(want["node"])
                if track.open and not track.edited and entry and entry["phase"] == RUNNING:
                    _concluded(entry, result)
        return {track.name: status for track in self._tracks if (status := track.status(self._now))}


def _concluded(entry: dict, result: Mapping) -> None:
    if result["status"] not in ("released", "unchanged"):
        entry["why"] = f"not opened: {result['reason']}"
    elif result["open"]:
        entry.update(phase=OPENED, why="")
    else:
        entry.update(phase=PASSED, why=f"stays closed for {', '.join(others(result))}")


def others(result: Mapping) -> list[str]:
    """Who keeps a node closed whose gate was released. result: as gates report it."""
    held = [each for each in result["external"] if each["holds"]]
    return [f"gate {owner}" for owner in result["gates"]] + [
        each["kind"] if each["kind"] == "cordon" else each["key"] or each["kind"] for each in held
    ]


def decide(
    nodes: Fleet,
    documents: Iterable[Mapping],
    proofs: Mapping[str, dict],
    policy: Policy,
    adopted: str,
    now: datetime,
) -> Plan:
    """nodes: every node. documents: every ValidationRequest. proofs: {batch: proof}
    (batches.py) for those that evidence is there for. adopted: nodes made later are new."""
    return _Pass(nodes, documents, proofs, policy, adopted, now).run()


class _Pass:
    def __init__(self, nodes, documents, proofs, policy: Policy, adopted: str, now: datetime):
        self.nodes, self.proofs, self.policy, self.adopted, self.now = nodes, proofs, policy, adopted, now
        self.stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.noted = nodes.noted(adopted if policy.new_nodes else _NEVER)
        self.tracks = [Track(each, policy.accept_changed, policy.only) for each in documents]
        self.by_digest = {track.digest: track for track in self.tracks}
        self.plan = Plan(_tracks=[track for track in self.tracks if track.selected], _now=self.stamp)
        self.proven: set[tuple[str, str]] = set()  # (request, node)
        self.gated: set[str] = set()  # nodes whose gate stands for all that is open
        self.room: Room | None = None
        self.live: dict[str, list[tuple[Track, dict]]] = {}
        self.edited: dict[str, list[str]] = {}

    def run(self) -> Plan:
        self._take_in()
        self.new = self._newcomers()
        for name in sorted(self.live):
            self._gate(self.nodes[name], self.live[name])
        self._strays()
        self._go_on()
        self._form()
        self._report()
        return self.plan

    # ------------------------------------------------------------ what there is

    def _take_in(self) -> None:
        for track in self.tracks:
            if track.edited:
                for name, uid in track.named.items():
                    if name in self.nodes and uid in ("", self.nodes[name]["uid"]):
                        self.edited.setdefault(name, []).append(track.name)
                continue
            if not track.open:
                continue
            track.bind(self.nodes)
            for name, entry in track.entries.items():
                if entry["phase"] in LIVE:
                    self._judge(track, entry, self.nodes[name])
                if entry["phase"] in LIVE:
                    self.live.setdefault(name, []).append((track, entry))

    def _judge(self, track: Track, entry: dict, node: dict) -> None:
        """What the evidence of its certification says of a node that waits for it."""
        proof = self.proofs.get(entry["batch"]) if entry["phase"] == RUNNING else None
        if proof is None:
            return
        if "problem" in proof:
            entry["why"] = f"the evidence of {entry['batch']} proves nothing: {proof['problem']}"
            return
        name, attempts = entry["name"], entry["attempts"]
        told = proof["members"].get(name) or ["", 0, []]
        asked = told[:2] == [batches.mark(entry["basis"]), attempts] and track.asker(self.stamp) in told[2]
        if proof["tests"] != track.key or not asked:
            entry.update(phase=PENDING, why=f"the evidence of {entry['batch']} is of something else", batch="")
            return
        there = proof["nodes"].get(name) or {"passed": False, "verdict": "unknown", "why": "it has no result"}
        present = basis(node)
        changed = [part for part, value in present.items() if entry["basis"].get(part) != value]
        if there["passed"] and not changed:
            self.proven.add((track.name, name))
            entry.update(evidence=proof["digest"], why="passed")
            return
        why = f"attempt {attempts}: {there['verdict']}: {there['why']}"
        if changed:
            why = f"{there['verdict']} with another {', '.join(changed)} than it has now, which proves nothing"
        if changed or (there["verdict"] not in batches.FAILING and self._untestable(node)):
            entry["excused"] = entry.get("excused", 0) + 1
        excused = entry.get("excused", 0)
        over = attempts - excused > track.retries
        if excused > EXCUSES:
            over, why = True, f"{excused} attempts were in vain, the last: {why}"
        entry.update(phase=FAILED if over else PENDING, evidence=proof["digest"], why=why)
        entry["batch"] = entry["batch"] if over else ""

    def _newcomers(self) -> set[str]:
        """New nodes get a request; names of all that have not been proven since they came."""
        known = {(name, uid) for track in self.tracks for name, uid in track.uids()}
        known |= {(name, self.nodes[name]["uid"]) for name in self.live}
        found = newcomers(self.noted, self.adopted, known) if self.policy.new_nodes else []
        self._request(NEW_NODE, found, "joined, and was never certified")
        waiting = {name for name, entries in self.live.items() if any(each.reason == NEW_NODE for each, _e in entries)}
        return waiting | {node["name"] for node in found}

    def _request(self, reason: str, found: list[dict], cause: str) -> None:
        """Requests of our own for these nodes, and the gates that stand for them."""
        for first in range(0, len(found), CHUNK):
            part = found[first : first + CHUNK]
            named = [{key: node[key] for key in ("name", "uid", "bootId") if node[key]} for node in part]
            document = requests.make(
                reason,
                named,
                self.policy.tests,
                options=self.policy.options,
                cause=cause,
                retries=self.policy.retries,
                namespace=self.policy.namespace,
            )
            self.plan.create.append(document)
            digest = requests.digest_of(document["spec"])
            for node in part:
                self._hold(node, [digest], reason, [document["metadata"]["name"]])

    def _take_room(self, node: dict) -> str:
        """Why a node may not be taken out of service. Those of the fleet that are out, for whatever reason, count; new
        ones have never been in service."""
        if not node["open"] or not node["gpu"] or node["name"] in self.new:
            return ""
        if self.room is None:
            fleet = [each for name, each in self.nodes.items() if each["gpu"] and name not in self.new]
            self.room = Room(fleet, self.policy.max_out, self.policy.max_out_domain)
        return "" if self.room.take(node) else self.room.said(node["domain"])

    # ------------------------------------------------------------ gates

    def _gate(self, node: dict, entries: list[tuple[Track, dict]]) -> None:
        """Close the node for its open requests, open it when all are proven, or say why neither."""
        name, there = node["name"], gate(node, VALIDATION)
        proven = all((track.name, name) in self.proven for track, _entry in entries)
        if there is None and proven:
            self._over(node, entries)
            return
        stands, unknown, failed = self._stands_for(node, there, entries)
        if unknown and not self._accepts(unknown, there):
            self._wait(entries, f"the gate stands for {', '.join(unknown)}, which no request is (any more)")
            return
        digests = sorted({track.digest for track, _entry in entries} | stands)
        text = validation_gate.text(digests)
        if there is None or there["evidence"] != text or there["missing"] or not validation_gate.closes(there):
            self._close(node, entries, digests)
            return
        self.gated.add(name)
        if not proven:
            return
        if self.edited.get(name):
            self._wait(entries, f"request {', '.join(self.edited[name])} was edited")
        elif failed:
            self._wait(entries, f"it failed for {', '.join(failed)}, whose tests nothing has proven since")
        elif not is_whole(node):
            self._wait(entries, "passed, and fewer of its GPUs can be used now than it has")
        else:
            self._open(node, entries, text)

    def _stands_for(self, node: dict, there: dict | None, entries) -> tuple[set[str], list[str], list[str]]:
        """(digests of requests it failed for, which the gate goes on to stand for, digests that no request has, names
        of those it failed for that nothing has proven since)."""
        stands, failed, proven = set(), [], {t.key for t, _e in entries if (t.name, node["name"]) in self.proven}
        text = there["evidence"] if there and there["readable"] else ""
        told = validation_gate.digests(text)
        if told is None:  # too many to be told: it has to be exactly the open ones
            all_open = sorted(track.digest for track, _entry in entries)
            return set(), [] if validation_gate.text(all_open) == text else [text], []
        unknown = []
        for digest in told:
            track = self.by_digest.get(digest)
            if track is None or node["name"] not in track.named:
                unknown.append(digest)
                continue
            entry = track.entries.get(node["name"])
            if entry and entry["phase"] == FAILED and entry["uid"] == node["uid"]:
                stands.add(digest)
                failed += [] if track.key in proven else [track.name]
        return stands, unknown, failed

    def _accepts(self, unknown: list[str], there: dict) -> bool:
        if self.policy.accept_changed:
            return True
        return self.policy.adopt_orphans and unknown == validation_gate.digests(there["evidence"])

    def _close(self, node: dict, entries: list[tuple[Track, dict]], digests: list[str]) -> None:
        if node["deleted"]:
            self._wait(entries, "the node is being deleted")
            return
        mine = [(track, entry) for track, entry in entries if track.selected]
        if not mine:
            return
        if gate(node, VALIDATION) is None and not node["gpu"] and not marked(node):
            self._wait(entries, "it is no node with GPUs, and is left in service")
            return
        full = self._take_room(node)
        if full:
            self._wait(entries, f"in service until there is room: {full}")
            return
        self._hold(node, digests, mine[0][0].reason, [track.name for track, _entry in mine])

    def _hold(self, node: dict, digests: list[str], reason: str, names: list[str]) -> None:
        why = f"{reason}: to be certified ({', '.join(names)})"
        want = {"node": node["name"], "uid": node["uid"], "owner": VALIDATION, "reason": why}
        want["evidence"] = validation_gate.text(digests)
        there = gate(node, VALIDATION)
        if not (there and validation_gate.closes(there)):  # by value as admission sets it, so that it is one taint
            want["taint"] = {"key": GATE, "value": NEW_NODE if marked(node) else reason, "effect": "NoSchedule"}
        self.plan.holds.append(want)

    def _open(self, node: dict, entries: list[tuple[Track, dict]], text: str) -> None:
        if not any(track.selected for track, _entry in entries):
            return
        self.plan.releases.append(
            {
                "node": node["name"],
                "owner": VALIDATION,
                "bootId": node["bootId"],
                "evidence": text,
                "basis": basis(node),
                "annotations": validation_gate.certified(node, entries, self.stamp),
            }
        )

    def _over(self, node: dict, entries: list[tuple[Track, dict]]) -> None:
        """Released before, by a run that was killed before it could say so, or by a person."""
        for track, entry in entries:
            why = "" if node["open"] else f"stays closed for {', '.join(holders(node))}"
            entry.update(phase=OPENED if node["open"] else PASSED, why=why)
            self.plan.done.append({"node": node["name"], "request": track.name, "open": node["open"]})

    def _strays(self) -> None:
        """Gates that no open request is behind."""
        found, held = [], {want["node"] for want in self.plan.holds}
        for node in self.noted:
            name, there = node["name"], gate(node, VALIDATION)
            if there is None or name in self.live:
                continue
            told = validation_gate.digests(there["evidence"]) or []
            tracks = [self.by_digest[each] for each in told if each in self.by_digest]
            lost = [track for track in tracks if (track.entries.get(name) or {}).get("phase") == FAILED]
            if lost:
                if not lost[0].open:  # else it is told of with the others of its request
                    why = lost[0].entries[name]["why"]
                    self.plan.failed.append({"node": name, "request": lost[0].name, "why": why})
            elif name in self.edited:
                why = f"request {', '.join(self.edited[name])} was edited"
                self.plan.waiting.append({"node": name, "request": self.edited[name][0], "why": why})
            elif name not in held:
                gone = [each for each in told if each not in self.by_digest]
                why = f"no request is {', '.join(gone)} (any more)" if gone else "no open request names it"
                self.plan.orphans.append({"node": name, "evidence": there["evidence"], "why": why})
                found.append(node)
        if self.policy.adopt_orphans:
            self._request(MANUAL, found, "its gate stood for no request")

    # ------------------------------------------------------------ certification

    def _untestable(self, node: dict) -> str:
        """Why no test can be run on the node now."""
        held = holders(node, [VALIDATION])
        if held:
            return f"held by {', '.join(held)}"
        if node["deleted"]:
            return "the node is being deleted"
        if not node["ready"]:
            return "the node is not ready"
        if not node["gpus"]["capacity"]:
            return "the node offers no GPU"
        if not node["bootId"]:
            return "the node tells no boot id"
        if self.policy.require_driver and not node["driver"]:
            return "the node tells no driver version"
        return ""

    def _go_on(self) -> None:
        """Certifications that were written down and are not over: the same again."""
        running: dict[str, list[tuple[Track, dict]]] = {}
        for entries in self.live.values():
            for track, entry in entries:
                if entry["phase"] == RUNNING and entry["batch"] not in self.proofs:
                    running.setdefault(entry["batch"], []).append((track, entry))
        for batch, entries in sorted(running.items()):
            members, track = self._members(entries), entries[0][0]
            same = any(entry["basis"] == basis(self.nodes[entry["name"]]) for _track, entry in entries)
            if same and batches.name_of(track.key, members) == batch:
                if batch in self.policy.not_run:
                    self._wait(entries, f"{batch} could not be run: {self.policy.not_run[batch]}")
                elif any(each.selected for each, _entry in entries):
                    self.plan.certifications.append(batches.certification(track.spec, members))
                continue
            for _track, entry in entries:
                why = "its certification cannot be taken up: the nodes or the requests have changed"
                entry.update(phase=PENDING, batch="", attempts=max(0, entry["attempts"] - 1), why=why)

    def _members(self, entries: Iterable[tuple[Track, dict]]) -> dict[str, list]:
        by_node: dict[str, list[tuple[Track, dict]]] = {}
        for track, entry in entries:
            by_node.setdefault(entry["name"], []).append((track, entry))
        return {
            name: batches.member(
                pairs[0][1]["basis"], pairs[0][1]["attempts"], (track.asker(self.stamp) for track, _entry in pairs)
            )
            for name, pairs in by_node.items()
        }

    def _form(self) -> None:
        """New batches out of the nodes that are gated, and whose company is there or not to be waited for."""
        groups: dict[str, dict[str, list[tuple[Track, dict]]]] = {}
        for name in sorted(self.gated):
            busy = any(
                entry["phase"] == RUNNING and (track.name, name) not in self.proven for track, entry in self.live[name]
            )
            waits = [(track, e) for track, e in self.live[name] if track.selected and e["phase"] == PENDING]
            why = self._untestable(self.nodes[name])
            if why:
                self._wait(waits, why)
            elif not busy:
                for track, entry in waits:
                    groups.setdefault(track.key, {}).setdefault(name, []).append((track, entry))
        for key, group in sorted(groups.items()):
            need = self.policy.together.get(key, 1)
            if len(group) < need:  # alone they would fail for want of partners, and keep others from coming
                why = f"its tests need {need} nodes at a time, and {len(group)} can be tested now"
                self._wait([pair for pairs in group.values() for pair in pairs], why)
                continue
            wait = self._company(group)
            if wait > 0:
                self.plan.due = min(wait, self.plan.due if self.plan.due is not None else wait)
                self._wait([pair for pairs in group.values() for pair in pairs], "waits for company")
                continue
            self._batch(group)

    def _company(self, group: Mapping[str, list]) -> float:
        """Seconds that a group still waits for further nodes."""
        ages = [validation_gate.age(gate(self.nodes[name], VALIDATION), self.now) for name in group]
        return min(self.policy.settle - min(ages), self.policy.batch_seconds - max(ages))

    def _batch(self, group: Mapping[str, list[tuple[Track, dict]]]) -> None:
        for name, pairs in group.items():
            attempt = 1 + max(entry["attempts"] for _track, entry in pairs)
            for _track, entry in pairs:
                entry.update(phase=RUNNING, attempts=attempt, basis=basis(self.nodes[name]), why="")
        every = [pair for pairs in group.values() for pair in pairs]
        document = batches.certification(every[0][0].spec, self._members(every))
        for _track, entry in every:
            entry["batch"] = document["metadata"]["name"]
        self.plan.certifications.append(document)

    # ------------------------------------------------------------ report

    def _wait(self, entries: Iterable[tuple[Track, dict]], why: str) -> None:
        for track, entry in entries:
            if track.selected:
                keep = entry["phase"] == PENDING and entry["why"].startswith("attempt ")
                entry["why"] = f"{entry['why'].partition(' [')[0]} [{why}]" if keep else why

    def _report(self) -> None:
        plan, opening = self.plan, {want["node"] for want in self.plan.releases}
        for track in plan._tracks:
            if track.edited:
                plan.lines.append(f"request {track.name} was edited since it was taken up: nothing is done for it")
            if not track.open or track.edited:
                continue
            for name, entry in track.entries.items():
                seen = {"node": name, "request": track.name, "why": entry["why"]}
                if entry["phase"] in LIVE and name not in opening:
                    if entry["phase"] == PENDING or (track.name, name) in self.proven or entry["why"]:
                        plan.waiting.append(seen)
                elif entry["phase"] == FAILED:
                    plan.failed.append(seen)
                elif entry["phase"] == GONE:
                    plan.gone.append(seen)
        plan.statuses = {t.name: status for t in plan._tracks if (status := t.status(self.stamp, opening))}
        plan.lines += _grouped(plan.failed, "failed")
        plan.lines += _grouped(plan.gone, "gone")
        plan.lines += _grouped([{**each, "request": ""} for each in plan.orphans], ORPHANED)
        plan.lines += _grouped([each for each in plan.waiting if each["why"]], "waiting")


def _grouped(items: Iterable[Mapping], word: str) -> list[str]:
    """One line for all nodes of a request that the same is to be said of."""
    groups: dict[tuple[str, str], list[str]] = {}
    for item in items:
        groups.setdefault((item["request"], item["why"]), []).append(item["node"])
    lines = []
    for (request, why), names in groups.items():
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        lines.append(f"{shown}: {word}{f' ({request})' if request else ''}: {why}")
    return lines
