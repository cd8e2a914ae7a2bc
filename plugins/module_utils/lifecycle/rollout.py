# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver update, wave by wave: what to do next, told by nothing but nodes and validation requests. Pure.

Nothing is remembered from one look to the next, so a run that was killed anywhere goes on where it was: a node that has
the target driver is never changed again, and a node is changed only while it is gated in this roll-out's name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import Bound, Room, is_out
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_state import (
    CHANGING,
    Requests,
    State,
    evidence_of,
    state,
)

IN_FLIGHT = ("gated", "changing", "starting", "up", "proven")
DONE = ("validated", "current")
STAGES = ("pending", *IN_FLIGHT, *DONE, "foreign", "failed")
TENTH, QUARTER = Bound(10, True), Bound(25, True)
SHOWN = 10  # names in a line
_WAVE = re.compile(r"\bwave (\d{1,6})\b")


@dataclass(frozen=True)
class Options:
    """`canary`: nodes per GPU model that must be certified with the target before waves begin. `wave`: nodes of a
    wave, of those selected. `fleet`, `domain`: nodes that may be out, of all and of each domain. `names`: the nodes
    to update, None for all. `retry`: names of failed nodes to take up again. `waited`: names of nodes whose change
    was given its time. `not_drained`: name -> why it cannot be emptied. `recertify`: names that drift found changed.
    """

    canary: int = 1
    wave: Bound = TENTH
    fleet: Bound = TENTH
    domain: Bound = QUARTER
    names: Collection[str] | None = None
    retry: Collection[str] = ()
    waited: Collection[str] = ()
    not_drained: Mapping[str, str] = field(default_factory=dict)
    recertify: Collection[str] = ()


def plan(nodes: Iterable[Mapping], requests: Iterable[Mapping], target: str, rollout: str, options: Options) -> dict:
    """The next things to do. `nodes`: all GPU nodes of the fleet, as nodefacts.py has them. `requests`: all
    ValidationRequests.

    {id, target, phase, wave: its number (0: canary), nodes: [names of this wave],
    release, gate, change, wait, validate: [{name, boot_id, evidence}] as node_gate takes them,
    affected: [{name, uid, bootId}] of the request to make, requests: [names of those under way for validate],
    reason, cause: texts for gates and request, done: [names], uncertified, foreign, failures: [{node, why}],
    pending: number, waves: [[names]] of the waves after this one, blocked: [why], counts, lines}

    Phases: canary and wave: this wave is under way or about to begin. stopped: a node failed, so nothing further is
    begun; release and validate bring to an end what had. done: every node has the driver. idle: some have not, but
    they are others' or no more may be out.
    """
    nodes = sorted(nodes, key=lambda node: node["name"])
    selected = nodes if options.names is None else [node for node in nodes if node["name"] in options.names]
    asked = Requests(requests)
    view = _View(selected, asked, target, rollout, options)
    room = Room(nodes, options.fleet, options.domain)
    proven = _proven(view)
    begun = view.at(*IN_FLIGHT)
    chosen: list[Mapping] = []
    if not view.failed and not begun:
        pending = _in_order(view.at("pending"))
        canaries = _canaries(pending, proven, options.canary)
        chosen = _choose(pending, room, options.wave.of(len(selected)), canaries)
    now = begun or chosen
    canary = any(proven.get(node["product"], 0) < options.canary for node in now)
    result = {
        "id": rollout,
        "target": target,
        "phase": _phase(view, now, canary),
        "wave": _wave(now, begun, asked, rollout, canary),
        "nodes": [node["name"] for node in now],
        **_steps(view, chosen, rollout),
        "done": [node["name"] for node in view.at(*DONE)],
        "uncertified": [{"node": node["name"], "why": view.why(node)} for node in view.at("current")],
        "foreign": [{"node": node["name"], "why": view.why(node)} for node in view.at("foreign")],
        "failures": view.failed,
        "pending": len(view.at("pending", "foreign")),
        "counts": view.counts(len(selected)),
    }
    validate = view.nodes_of(result["validate"])
    under_way = {node["name"]: [each for each in asked.of(node) if each.open] for node in validate}
    result["requests"] = sorted({each.request for found in under_way.values() for each in found})
    mine = {name for name, found in under_way.items() if any(each.rollout == rollout for each in found)}
    result["affected"] = [
        {key: node[key] for key in ("name", "uid", "bootId")}
        for node in _affected(view, validate, options)
        if node["name"] not in mine
    ]
    result["reason"] = f"driver update to {target}, {'canary' if canary else 'wave ' + str(result['wave'])}"
    result["cause"] = f"{rollout}: {result['reason'].partition(',')[0]}, wave {result['wave']}, attempt "
    result["cause"] += str(_attempt(asked, validate, rollout))
    result["waves"], result["blocked"] = _preview(view, now, room, options, proven)
    result["lines"] = _lines(result, len(selected), room)
    return result


class _View:
    """The selected nodes and where they stand."""

    def __init__(self, nodes: list[Mapping], asked: Requests, target: str, rollout: str, options: Options):
        self.states: dict[str, State] = {}
        self._nodes = {node["name"]: node for node in nodes}
        self._by_stage: dict[str, list[Mapping]] = {}
        for node in nodes:
            name = node["name"]
            found = state(node, asked, target, rollout, name in options.retry, name in options.waited)
            if name in options.not_drained and found.stage in ("gated", "pending"):
                self._by_stage.setdefault("undrained", []).append(node)
            self.states[name] = found
            self._by_stage.setdefault(found.stage, []).append(node)
        self.failed = [{"node": node["name"], "why": self.why(node)} for node in self.at("failed")]
        undrained = self._by_stage.get("undrained", ())
        self.failed += [{"node": each["name"], "why": options.not_drained[each["name"]]} for each in undrained]

    def at(self, *stages: str) -> list[Mapping]:
        """In order of names within a stage."""
        return [node for stage in stages for node in self._by_stage.get(stage, ())]

    def why(self, node: Mapping) -> str:
        return self.states[node["name"]].why

    def nodes_of(self, entries: Iterable[Mapping]) -> list[Mapping]:
        return [self._nodes[each["name"]] for each in entries]

    def counts(self, selected: int) -> dict:
        """Number of nodes by stage."""
        return {"selected": selected, **{stage: len(self._by_stage.get(stage, ())) for stage in STAGES}}


def _entries(nodes: Iterable[Mapping], says: str | None = None) -> list[dict]:
    """As node_gate takes them. `says`: what the gate is to say, else what it says."""
    told = ((node, "".join(evidence_of(node)) if says is None else says) for node in nodes)
    return [{"name": node["name"], "boot_id": node["bootId"], "evidence": evidence} for node, evidence in told]


def _steps(view: _View, chosen: list[Mapping], rollout: str) -> dict:
    """What to do with nodes of this wave. All of a wave are validated together, so that group tests have partners."""
    ours = [node for node in view.at("gated") if view.states[node["name"]].own]
    others = [node for node in view.at("gated") if not view.states[node["name"]].own]
    untouched = [node for node in ours if not view.states[node["name"]].mark]
    left = [node for node in view.at("foreign") if view.states[node["name"]].own]
    release = view.at("proven") + [node for node in left if not view.states[node["name"]].mark]
    gate, change = chosen + others, ours
    if view.failed:
        gate, change, release = [], [], release + untouched
    wait = view.at("changing", "starting")
    validate = [] if gate or change or wait else view.at("up")
    return {
        "release": _entries(release),
        "gate": _entries(gate, rollout),
        "change": _entries(change, rollout + CHANGING),
        "wait": _entries(wait),
        "validate": _entries(validate),
    }


def _phase(view: _View, now: list[Mapping], canary: bool) -> str:
    if view.failed:
        return "stopped"
    if now:
        return "canary" if canary else "wave"
    return "idle" if view.at("pending", "foreign") else "done"


def _proven(view: _View) -> dict[str, int]:
    """GPU model -> how many nodes run the target and are certified with it."""
    found: dict[str, int] = {}
    for node in view.at("validated", "proven"):
        found[node["product"]] = found.get(node["product"], 0) + 1
    return found


def _in_order(pending: list[Mapping]) -> list[Mapping]:
    """Those that are out already first. Then domain by domain, each as far as it may go, so that group tests find
    partners close by."""
    return sorted(pending, key=lambda node: (not is_out(node), node["domain"], node["name"]))


def _canaries(pending: Iterable[Mapping], proven: Mapping[str, int], number: int) -> dict[str, int]:
    """GPU model -> how many of its nodes have to be proven yet before waves begin."""
    models = {node["product"] for node in pending}
    return {model: number - proven.get(model, 0) for model in models if proven.get(model, 0) < number}


def _choose(ordered: Iterable[Mapping], room: Room, size: int, canaries: Mapping[str, int]) -> list[Mapping]:
    """The next wave, or the canaries while there are models that need some."""
    missing = dict(canaries)
    size = sum(missing.values()) or size
    chosen: list[Mapping] = []
    for node in ordered:
        if len(chosen) >= size or (room.full and not is_out(node)):
            break
        if canaries and not missing.get(node["product"]):
            continue
        if room.take(node):
            chosen.append(node)
            if canaries:
                missing[node["product"]] -= 1
    return sorted(chosen, key=lambda each: each["name"])


def _wave(now: list[Mapping], begun: list[Mapping], asked: Requests, rollout: str, canary: bool) -> int:
    """Its number, from the gates of one under way, else the one after the last that was requested."""
    if canary:
        return 0
    reasons = [gate.get("reason") or "" for node in begun for gate in node["gates"] if gate["owner"] == "maintenance"]
    told = [int(match[1]) for reason in reasons if (match := _WAVE.search(reason))]
    last = asked.last_wave.get(rollout, 0)
    if begun:
        return max([*told, last, 1])
    return last + 1 if now else last


def _attempt(asked: Requests, nodes: Iterable[Mapping], rollout: str) -> int:
    """A request that is over is not opened again: another attempt is another request."""
    before = [each for node in nodes for each in asked.of(node) if each.rollout == rollout]
    over = [each.attempt for each in before if not each.open]
    return max(over, default=0) + 1


def _affected(view: _View, validate: list[Mapping], options: Options) -> list[Mapping]:
    """Who must be certified now: the wave, and whom drift found changed although the driver is right. What still has
    the former driver differs from the lock as well, but its turn comes."""
    if not validate:
        return []
    drifted = [node for node in view.at("current") if node["name"] in options.recertify and node["open"]]
    return sorted([*validate, *drifted], key=lambda node: node["name"])


def _preview(
    view: _View, now: list[Mapping], room: Room, options: Options, proven: Mapping[str, int]
) -> tuple[list[list[str]], list[str]]:
    """The waves to come, if this one and each of them passes; and why some nodes never get their turn. Uses up the
    room."""
    if view.failed:
        return [], []
    chosen = {node["name"] for node in now}
    left = {node["name"]: node for node in _in_order(view.at("pending")) if node["name"] not in chosen}
    size, proven = options.wave.of(len(view.states)), dict(proven)
    waves: list[list[str]] = []
    wave, canaries = now, {"": 1}
    while left:
        for node in wave:
            proven[node["product"]] = proven.get(node["product"], 0) + 1
            room.give(node)
        canaries = _canaries(left.values(), proven, options.canary) if canaries else {}
        wave = _choose(left.values(), room, size, canaries)
        if not wave:
            return waves, sorted({room.said(node["domain"]) for node in left.values()})
        waves.append([node["name"] for node in wave])
        for name in waves[-1]:
            del left[name]
    return waves, []


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _lines(result: Mapping, selected: int, room: Room) -> list[str]:
    counts = result["counts"]
    done = counts["validated"] + counts["current"]
    lines = [f"{result['id']}: driver {result['target']}: {done} of {selected} nodes have it, {result['phase']}"]
    if result["phase"] in ("canary", "wave"):
        what = "canary" if result["phase"] == "canary" else f"wave {result['wave']}"
        lines.append(f"{what}: {_names(result['nodes'])}")
    for name, words in _WORDS:
        if result[name]:
            lines.append(f"{words}: {_names([each['name'] for each in result[name]])}")
    lines += [f"failed: {each['node']}: {each['why']}" for each in result["failures"][:SHOWN]]
    lines += [f"left alone: {each['node']}: {each['why']}" for each in result["foreign"][:SHOWN]]
    if result["uncertified"]:
        names = _names([each["node"] for each in result["uncertified"]])
        lines.append(f"have it, but are not certified with it: {names}")
    lines += [f"no further node may begin: {why}" for why in result["blocked"][:SHOWN]]
    if room.homeless:
        lines.append(f"{room.homeless} nodes tell no domain: only the fleet's bound holds for them")
    if result["phase"] == "stopped":
        lines.append(
            "nothing further is begun. To go on: mend the failed nodes and run again with their names in"
            " driver_update_retry. To go back: run with the former lock"
        )
    return lines


_WORDS = (
    ("release", "to release"),
    ("gate", "to gate"),
    ("change", "to drain and change"),
    ("wait", "to wait for"),
    ("validate", "to validate"),
)
