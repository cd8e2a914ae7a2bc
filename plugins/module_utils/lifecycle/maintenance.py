# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From findings to what may be done about them now: by node, the worst first, within bounds. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

OWNER = "maintenance"
EVIDENCE = "degradation-"
_WEIGHT = {"watch": 0, "certify": 1, "maintenance": 2}
_CAUSE = 512  # characters that a ValidationRequest takes
_SHOWN = 3  # pods, or findings, that a text names


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many nodes may be out of service together, whoever took them out; what is None does not bound."""

    nodes: int | None = None
    percent: float | None = 5.0
    domain_nodes: int | None = None
    domain_percent: float | None = 25.0

    def __post_init__(self) -> None:
        problems = [
            Problem("wrong-value", f"is {value:g}", path=f"max_out.{name}", hint=f"from 0 to {most:g}")
            for name, most in (
                ("nodes", 1e6),
                ("percent", 100),
                ("domain_nodes", 1e6),
                ("domain_percent", 100),
            )
            if (value := getattr(self, name)) is not None and not 0 <= value <= most
        ]
        if problems:
            raise InvalidDocument(problems)

    def of_fleet(self, nodes: int) -> float:
        return _least(self.nodes, self.percent, nodes)

    def of_domain(self, nodes: int) -> float:
        return _least(self.domain_nodes, self.domain_percent, nodes)


def _least(absolute: int | None, percent: float | None, nodes: int) -> float:
    """A share that is less than one node is one node: a small fleet could never be mended otherwise."""
    share = math.inf if percent is None else max(int(nodes * percent / 100), 1 if percent else 0)
    return min(math.inf if absolute is None else absolute, share)


def plan(
    decision: Mapping,
    nodes: Mapping[str, Mapping],
    bounds: Bounds,
    in_window: bool = True,
    busy: bool = False,
) -> dict:
    """{suggestions, gates, cleared, out, allowed, counts}.

    decision: of degradation.decide.
    nodes: {name: {uid, bootId, ready: bool, gates: [{owner, evidence}], external: [text], domain, pods: [ns/name that
    use its GPUs]}}, the whole fleet. in_window: whether work is welcome now. busy: nodes with jobs may be taken too.

    suggestions: [{node, uid, bootId, suggestion, act, why, evidence, reason, cause, domain, findings}]; act: whether it
    may be done now, else `why` says why not. evidence: id of the gate that would stand for it, the same as long as it
    is the same degradation, as is `cause`; reason: for people, with the values of now.
    gates: [{name, reason, evidence, boot_id}] for those that want maintenance and may have it now.
    cleared: [{node, evidence}] whose gate of ours stands for what is no longer found.
    """
    by_node: dict[str, list[Mapping]] = {}
    for one in decision["findings"]:
        by_node.setdefault(one["node"], []).append(one)
    members = Counter(node.get("domain") or "" for node in nodes.values())
    away = [name for name, node in nodes.items() if _away(node)]
    out, out_of = len(away), Counter(nodes[name].get("domain") or "" for name in away)
    allowed = bounds.of_fleet(len(nodes))
    suggestions = []
    for name, mine in by_node.items():
        if name not in nodes:
            continue
        one = _suggestion(name, nodes[name], mine)
        domain = one["domain"]
        why = _hindered(one, nodes[name], in_window, busy)
        room = bounds.of_domain(members[domain]) if domain else math.inf
        if not why and out >= allowed:
            why = f"{out} of {len(nodes)} nodes are out of service, and {allowed:g} may be"
        elif not why and out_of[domain] >= room:
            why = f"{out_of[domain]} of {members[domain]} nodes of {domain} are out of service, and {room:g} may be"
        if not why:
            out, one["act"] = out + 1, True
            out_of[domain] += 1
        one["why"] = why
        suggestions.append(one)
    return {
        "suggestions": suggestions,
        "gates": [
            {"name": one["node"], "reason": one["reason"], "evidence": one["evidence"], "boot_id": one["bootId"]}
            for one in suggestions
            if one["act"] and one["suggestion"] == "maintenance"
        ],
        "cleared": _cleared(nodes, {*by_node, *(one["node"] for one in (*decision["unknown"], *decision["stale"]))}),
        "out": len(away),
        "allowed": None if allowed == math.inf else int(allowed),
        "counts": {
            "suggestions": len(suggestions),
            "act": sum(one["act"] for one in suggestions),
            **{kind: sum(one["suggestion"] == kind for one in suggestions) for kind in _WEIGHT},
        },
    }


def _away(node: Mapping) -> bool:
    return bool(node["gates"] or node["external"] or not node["ready"])


def _suggestion(name: str, node: Mapping, findings: list[Mapping]) -> dict:
    kind = max((one["suggestion"] for one in findings), key=_WEIGHT.__getitem__)
    about = "; ".join(
        ": ".join(filter(None, (one["entity"], one["workload"], one["evidence"]))) for one in findings[:_SHOWN]
    )
    more = len(findings) - _SHOWN
    return {
        "node": name,
        "uid": node.get("uid") or "",
        "bootId": node.get("bootId") or "",
        "suggestion": kind,
        "act": False,
        "why": "",
        "evidence": (evidence := evidence_of(node, findings)),
        "reason": "degrades: " + about + (f"; and {more} more" if more > 0 else ""),
        "cause": f"{evidence}: {'; '.join(sorted(_named(one) for one in findings))}"[:_CAUSE],
        "domain": node.get("domain") or "",
        "findings": list(findings),
    }


def _named(one: Mapping) -> str:
    return f"{one['metric']} of {one['entity']}" if one["entity"] else one["metric"]


def evidence_of(node: Mapping, findings: Iterable[Mapping]) -> str:
    """Of the machine and of what degrades on it; not of how much, which changes from pass to pass."""
    about = sorted([one["entity"], one["workload"], one["metric"]] for one in findings)
    return EVIDENCE + digest.sha256({"uid": node.get("uid") or "", "about": about}).removeprefix("sha256:")[:16]


def _hindered(one: Mapping, node: Mapping, in_window: bool, busy: bool) -> str:
    if one["suggestion"] == "watch":
        return "only to be watched: nothing is done about it"
    holders = [f"the gate {gate['owner']}" for gate in node["gates"]] + list(node["external"])
    if holders:
        return "already held by " + ", ".join(holders[:_SHOWN])
    if not node["ready"]:
        return "it is not ready, which is not for maintenance to mend"
    pods = node.get("pods") or []
    if pods and not busy:
        more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
        return f"its GPUs are in use by {', '.join(pods[:_SHOWN])}{more}"
    if not in_window:
        return "it is not the time: no maintenance window is open"
    return ""


def _cleared(nodes: Mapping[str, Mapping], kept: set[str]) -> list[dict]:
    """What is not known any more is not well."""
    return [
        {"node": name, "evidence": gate["evidence"]}
        for name, node in sorted(nodes.items())
        for gate in node["gates"]
        if gate["owner"] == OWNER and gate.get("evidence", "").startswith(EVIDENCE) and name not in kept
    ]


def lines(decision: Mapping, planned: Mapping) -> list[str]:
    """For people: fleet first, then nodes, then what is not known."""
    told = [each["evidence"] for each in decision["shifts"]]
    for one in planned["suggestions"]:
        what = one["suggestion"] if one["act"] else f"{one['suggestion']}, not now: {one['why']}"
        told.append(f"{one['node']}: {one['reason']} -> {what}")
    for one in planned["cleared"]:
        told.append(f"{one['node']}: no longer degraded; its gate maintenance ({one['evidence']}) can be released")
    for one in decision["stale"]:
        what = f"{one['node']}: {_named(one)} was degraded when it was measured last, until {one['until']}"
        told.append(f"{what}; not known since")
    unknown = decision["unknown"]
    if unknown:
        names = ", ".join(one["node"] for one in unknown[:10]) + (", …" if len(unknown) > 10 else "")
        told.append(f"nothing is known of {len(unknown)} nodes: {names}")
    return told
