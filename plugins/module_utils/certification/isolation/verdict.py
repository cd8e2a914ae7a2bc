# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the search found, with the tests that show it. Pure."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import closing
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.judge import Judgement, mask_of

_SHOWN = ("id", "outcome", "repeat", "signature")
# tests shown per finding; the count is always whole
EVIDENCE = 12
_WHY = {
    "together": "fails as a whole, while every two of its nodes work together",
    "unanswered": "the tests that would tell ended without an answer",
}


def report(judge: Judgement, exhausted: bool) -> dict:
    """The findings as data; every node is in exactly one of the classes marked *.

    bad*: [{node, domain?, scope, failed, evidence}]; scope: any, or only inside its domain or across domains.
    badPairs: [{a, b, unproven, failed, evidence}]; unproven: those of the two for which no other node was there to
    show that they work in that relation.
    badDomains: [{domain, kind, nodes, failed, evidence}]; kind: nodes (all of them are bad), uplink* (it works by
    itself), unreached* (nothing with it works: its nodes, or the way to them), link (towards the domain `peer`).
    flaky: [{node?*, nodes, failed, passed, evidence}]; without `node` it is the group in which the fault hides.
    unexplained: [{nodes, why, failed, evidence}]. suspicions: [{kind: service|infrastructure|fabric, message}].
    cleared*: [node]. unknown*: [{node, why}].
    linksProven: every two cleared nodes are seen to work together, but for the bad pairs.
    tests, nodeTests, rounds, budgetExhausted; green: nothing at all is wrong or open.
    """
    state, fleet = judge.state, judge.fleet
    nobody = _suspicions(judge)
    blamed = judge.bad_mask | judge.flaky
    for domain in (*judge.uplinks, *judge.unreached):
        blamed |= domain & ~judge.bad_mask
    doubtful = judge.doubtful() | judge.candidate_mask
    cleared = state.cleared & ~blamed & ~doubtful
    bad = [_bad(judge, node) for node in sorted(judge.bad)]
    flaky = [_flaky(judge, 1 << node, _own(judge, node)) for node in bits(judge.flaky)]
    flaky += [_flaky(judge, group, [group]) for group, why in judge.settled.items() if why == "intermittent"]
    unexplained = [
        {"nodes": fleet.members(group), "why": _WHY[why], **_evidence(judge, [group])}
        for group, why in judge.settled.items()
        if why in _WHY and group.bit_count() > judge.options.small
    ]
    loose = [group for group, why in judge.settled.items() if why == "unseparated"]
    unknown = fleet.all & ~blamed & ~cleared
    found = {
        "bad": bad,
        "badPairs": [_pair(judge, pair) for pair in (*judge.pairs, *loose) if not _in_larger(judge, pair)],
        "badDomains": _domains(judge),
        "flaky": flaky,
        "unexplained": unexplained,
        "suspicions": nobody,
        "unknown": [
            {"node": fleet.names[node], "why": _why_unknown(judge, node, doubtful, bool(nobody), exhausted)}
            for node in bits(unknown)
        ],
    }
    proven = bool(cleared) and not closing.open_pairs(judge, judge.good)
    nothing = not any(found.values()) and not exhausted
    return {
        **found,
        "cleared": fleet.members(cleared),
        "linksProven": proven,
        "tests": state.tests,
        "nodeTests": state.node_tests,
        "rounds": state.rounds,
        "budgetExhausted": exhausted,
        "green": nothing and (proven or not judge.options.all_links(len(fleet))),
    }


def _evidence(judge: Judgement, groups: list[int]) -> dict:
    shown = [
        {"group": judge.fleet.members(group), **{key: item[key] for key in _SHOWN if item.get(key) is not None}}
        for group in groups
        for item in sorted(judge.state.items[group], key=lambda item: (item["outcome"], str(item.get("repeat"))))
    ]
    return {"failed": sum(judge.state.fails.get(group, 0) for group in groups), "evidence": shown[:EVIDENCE]}


def _by_size(group: int) -> tuple[int, int]:
    return group.bit_count(), group


def _own(judge: Judgement, node: int) -> list[int]:
    return [group for group in judge.small if group >> node & 1]


def _domain_name(judge: Judgement, node: int) -> str | None:
    return next((name for name, group in judge.fleet.domains.items() if group >> node & 1), None)


def _bad(judge: Judgement, node: int) -> dict:
    first = [group for group in judge.state.fails if group >> node & 1 and group not in judge.small]
    groups = _own(judge, node) + sorted(first, key=_by_size)
    domain = _domain_name(judge, node)
    return {
        "node": judge.fleet.names[node],
        **({"domain": domain} if domain else {}),
        "scope": judge.bad[node],
        **_evidence(judge, groups),
    }


def _pair(judge: Judgement, pair: int) -> dict:
    groups = [group for group in judge.small if group & pair == pair]
    pair = mask_of(judge.state.unknown_pairs(pair))
    a, b = judge.fleet.members(pair)
    unproven = pair & ~judge.state.proven("across" if judge.fleet.spans(pair) else "inside")
    return {"a": a, "b": b, "unproven": judge.fleet.members(unproven), **_evidence(judge, groups)}


def _flaky(judge: Judgement, nodes: int, groups: list[int]) -> dict:
    inside = nodes if nodes.bit_count() == 1 else 0
    passed = sum(
        count for group, count in judge.state.passes.items() if (group & inside if inside else group & nodes == nodes)
    )
    names = judge.fleet.members(nodes)
    return {**({"node": names[0]} if inside else {}), "nodes": names, "passed": passed, **_evidence(judge, groups)}


def _in_larger(judge: Judgement, pair: int) -> bool:
    """Whether the pair is part of what domains are found to have."""
    if judge.no_fabric and judge.fleet.spans(pair):
        return True
    return any(pair & one and pair & other for one, other in judge.trunks)


def _domains(judge: Judgement) -> list[dict]:
    names = {group: name for name, group in judge.fleet.domains.items()}
    found = []
    for domain, name in names.items():
        bad = domain & judge.bad_mask
        if bad == domain and domain.bit_count() > 1:
            groups = [group for group in judge.state.fails if group & domain and group not in judge.small]
            found.append({"domain": name, "kind": "nodes", "nodes": judge.fleet.members(domain),
                          **_evidence(judge, sorted(groups, key=_by_size))})  # fmt: skip
    for domain in judge.uplinks:
        groups = [group for group in judge.small if group & domain and group & ~domain]
        found.append({"domain": names.get(domain), "kind": "uplink",
                      "nodes": judge.fleet.members(domain & ~judge.bad_mask), **_evidence(judge, groups)})  # fmt: skip
    for domain in judge.unreached:
        groups = [group for group in judge.state.fails if group & domain]
        found.append({"domain": names[domain], "kind": "unreached", "nodes": judge.fleet.members(domain),
                      **_evidence(judge, sorted(groups, key=_by_size))})  # fmt: skip
    for one, other in judge.trunks:
        groups = [group for group in judge.small if group & one and group & other]
        found.append({"domain": names.get(one), "peer": names.get(other), "kind": "link",
                      "nodes": judge.fleet.members(one | other), **_evidence(judge, groups)})  # fmt: skip
    return found


def _suspicions(judge: Judgement) -> list[dict]:
    """Nobody known to be good: what all have in common is at fault sooner than each of them."""
    state, total = judge.state, len(judge.fleet)
    if judge.no_fabric and state.passes:
        tried = sum(judge.fleet.spans(group) for group in state.fails)
        message = (
            f"none of {tried} groups with nodes of more than one domain passed, while nodes of one domain do: look at "
            "what connects the domains; it cannot be told whether single nodes fail towards others"
        )
        return [{"kind": "fabric", "message": message}]
    if state.passes or judge.bad or not state.tests:
        return []
    tests = [item for items in state.items.values() for item in items]
    said = sorted({str(item["signature"]) for item in tests if item.get("signature")})
    alike = f", all of them: {said[0]}" if len(said) == 1 else ""
    if not state.fails:
        message = f"none of {len(tests)} tests gave an answer{alike}: the tool or what runs it is at fault, not a node"
        return [{"kind": "infrastructure", "message": message}]
    message = (
        f"all {len(tests)} tests over {total} nodes failed{alike}: look for one service, image or fabric that they "
        "share; no node can be judged while none is known to be good"
    )
    return [{"kind": "service", "message": message}]


def _why_unknown(judge: Judgement, node: int, doubtful: int, nobody: bool, exhausted: bool) -> str:
    state = judge.state
    if doubtful >> node & 1:
        return "one of a group whose fault comes and goes or was not told apart"
    if nobody:
        return "no node is known to be good that it could be tested with"
    if judge.silent(node):
        return "its tests ended without an answer"
    if exhausted:
        return "the budget ended before its test"
    if not any(group >> node & 1 for group in state.items):
        return "fits in no group of an allowed size"
    return "too few known-good nodes to test it with"
