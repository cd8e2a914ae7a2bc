# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where each node stands in a driver update, told by nothing but the node and the validation requests. Pure.

Nodes are facts of nodefacts.py. The maintenance gate's evidence is the roll-out's id, followed by CHANGING while the
change is made and by FAILED once it did not come to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAINTENANCE, VALIDATION = "maintenance", "validation"
CHANGING, FAILED = "/changing", "/failed"
_EVIDENCE = re.compile(r"(du-[0-9a-f]{12})(/changing|/failed)?")
_CAUSE = re.compile(r"(du-[0-9a-f]{12}): .*?(?:, wave (\d+), attempt (\d+))?")
_OPEN = ("", "Pending", "Running")
# Kubernetes' own taints of a node that restarts: part of many a change, and gone once it is Ready
_RESTART = "node.kubernetes.io/"


@dataclass(frozen=True)
class Asked:
    """One request of a driver update that names a node: `phase` is the node's in it, '' while it is not told."""

    request: str
    rollout: str
    wave: int
    attempt: int
    phase: str
    basis: Mapping
    why: str

    @property
    def open(self) -> bool:
        return self.phase in _OPEN


@dataclass(frozen=True)
class State:
    """`stage` is one of: current, validated, pending, foreign, gated, changing, up (to be validated), starting (has
    the driver, but is not ready or held by somebody), proven (gate to be released), failed. `mark`: what the
    maintenance gate says after the id. `own`: the gate is of this very roll-out."""

    stage: str
    why: str = ""
    mark: str = ""
    own: bool = False


class Requests:
    """What validation requests say of nodes, by uid: a node of the same name that was made since is another one."""

    def __init__(self, documents: Iterable[Mapping]):
        self.named: set[tuple[str, str]] = set()
        self._asked: dict[tuple[str, str], list[Asked]] = {}
        self.last_wave: dict[str, int] = {}
        for document in documents:
            self._read(document)

    def _read(self, document: Mapping) -> None:
        spec, status = document["spec"], document.get("status") or {}
        match = _CAUSE.fullmatch(spec.get("cause") or "")
        over = status.get("phase") in ("Succeeded", "Failed")
        told = {(each.get("name"), each.get("uid")): each for each in status.get("nodes") or ()}
        if match and match[2]:
            self.last_wave[match[1]] = max(self.last_wave.get(match[1], 0), int(match[2]))
        for node in spec.get("nodes") or ():
            key = (node["name"], node.get("uid") or "")
            self.named.add(key)
            if not match:
                continue
            entry = told.get(key) or {}
            phase = entry.get("phase") or ("Gone" if over else "")
            name = (document.get("metadata") or {}).get("name") or ""
            numbers = int(match[2] or 0), int(match[3] or 1)
            self._asked.setdefault(key, []).append(
                Asked(name, match[1], *numbers, phase, entry.get("basis") or {}, entry.get("why") or "")
            )

    def of(self, node: Mapping) -> list[Asked]:
        """The requests of driver updates that name this very node."""
        return self._asked.get((node["name"], node["uid"]), [])

    def names(self, node: Mapping) -> bool:
        """Whether any request, of whatever origin, names it."""
        return (node["name"], node["uid"]) in self.named or (node["name"], "") in self.named


def evidence_of(node: Mapping) -> tuple[str, str]:
    """(roll-out, mark) of the maintenance gate; ('', '') when it is none of a driver update."""
    for gate in node["gates"]:
        if gate["owner"] == MAINTENANCE and gate.get("readable", True):
            match = _EVIDENCE.fullmatch(gate.get("evidence") or "")
            return (match[1], match[2] or "") if match else ("", "")
    return "", ""


def _said(node: Mapping) -> str:
    """What the gate says of a failed change, after what it was for."""
    reasons = [gate["reason"] for gate in node["gates"] if gate["owner"] == MAINTENANCE]
    said = reasons[0].partition(": ")[2] if reasons else ""
    return f" ({said})" if said else ""


def holders(node: Mapping, asked: bool) -> list[str]:
    """Who else holds it, as words. `asked`: a request of a driver update names it, so its validation gate is ours."""
    rollout, _mark = evidence_of(node)
    own = {MAINTENANCE} if rollout else set()
    own |= {VALIDATION} if asked or rollout else set()
    held = [f"gate of {gate['owner']}" for gate in node["gates"] if gate["owner"] not in own]
    for entry in node["external"]:
        if entry.get("holds") and not (entry["kind"] == "system" and entry["key"].startswith(_RESTART)):
            held.append(f"{entry['kind']} {entry['key']}")
    return held


def state(node: Mapping, requests: Requests, target: str, rollout: str, retry: bool, waited: bool) -> State:
    """`retry`: a failure so far is to be forgotten. `waited`: time enough was given to a change that had begun."""
    asked = requests.of(node)
    gate, mark = evidence_of(node)
    held = holders(node, bool(asked))
    gated = next((each for each in node["gates"] if each["owner"] == VALIDATION), None)
    if node["driver"] == target:
        return _with_target(node, requests, asked, target, (gate, mark, gate == rollout), held, gated, retry, waited)
    own = gate == rollout
    if own and mark:
        why = f"driver is {node['driver'] or 'not told'} after the change, not {target}{_said(node)}"
        if mark == CHANGING and (retry or not waited):
            return State("changing", why, mark, True)
        gates = [each for each in held if each.startswith("gate ")]
        if gates:
            return State("failed", f"{why}; held by others: {', '.join(gates)}", mark, True)
        return State("gated", why, mark, True) if mark == CHANGING or retry else State("failed", why, mark, True)
    if held:
        return State("foreign", f"held by others: {', '.join(held)}", mark, own)
    if gate:
        return State("gated", "" if own else f"taken over from {gate}", mark, own)
    if not node["ready"]:
        return State("foreign", "not ready")
    return State("pending") if node["driver"] else State("foreign", "tells no driver")


def _with_target(
    node: Mapping,
    requests: Requests,
    asked: list[Asked],
    target: str,
    gate: tuple[str, str, bool],
    held: list[str],
    gated: Mapping | None,
    retry: bool,
    waited: bool,
) -> State:
    rollout, mark, own = gate
    opened = any(each.phase == "Opened" and each.basis.get("driver", target) == target for each in asked)
    if not rollout and not (gated and asked and not opened):
        if gated and str(gated.get("evidence")).startswith("vr") and not requests.names(node):
            why = "its validation gate stands for no request; with revalidate_accept_changed, retry asks for it anew"
            return State("up") if retry and not held else State("failed", why)
        certified = node["certified"]
        return State("validated") if certified["valid"] else State("current", certified["why"])
    if node["certified"]["valid"] and not gated and (own or not mark):  # what another roll-out began may go on yet
        return State("proven", "", mark, own)
    waiting = [each for each in asked if each.open]
    if not waiting:
        if not rollout and any(_passed(each, node) for each in asked):
            return State("validated", f"passed; held by others: {', '.join(held)}" if held else "passed")
        failed = [each for each in asked if each.phase == "Failed" and each.basis.get("driver", target) == target]
        if failed and not retry:
            last = max(failed, key=lambda each: each.attempt)
            said = f": {last.why}" if last.why else ""
            why = f"certification failed with {target}: request {last.request}{said}"
            return State("failed", why, mark, own)
    if not node["ready"] or held:
        why = f"has {target}, but is {'held by others: ' + ', '.join(held) if held else 'not ready'}"
        over = waited or any(each.startswith("gate ") for each in held)  # a cordon may be a part of the change
        return State("failed" if over else "starting", why, mark, own)
    return State("up", "", mark, own)


def _passed(asked: Asked, node: Mapping) -> bool:
    """In this boot and with this driver; the gate that is left is somebody else's matter."""
    same = all(asked.basis.get(key) == node[key] for key in ("bootId", "driver"))
    return asked.phase in ("Passed", "Opened") and same
