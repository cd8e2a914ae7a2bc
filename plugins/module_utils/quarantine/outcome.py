# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A decision and what came of it: for the breaker's ledger, and in words. Pure.

`results` are those of the gates: {node, owner, status: held|unchanged|refused|failed, reason, ...}.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.active import NO_NODE

SHUT = ("held", "unchanged")  # what a gate's result says when the node is closed by it
BAD = ("refused", "failed")
UNMATCHED = 20  # incidents without a rule that are named
HISTORY = "history: "  # how reports of the past are marked, see active.py
SHOWN = 8  # nodes named in one line


def withdraw(decision: dict, blocked: Iterable[Mapping]) -> None:
    """Another run was quicker and took the room that was left: these gates are blocked after all."""
    late = {(entry["node"], entry["owner"]): entry for entry in blocked}
    if not late:
        return
    stay = []
    for gate in decision["gates"]:
        entry = late.get((gate["node"], gate["owner"]))
        if entry is None:
            stay.append(gate)
        else:
            full = {key: entry[key] for key in ("scope", "used", "bound", "window", "why")}
            decision["blocked"].append({**gate, **full})
    decision["gates"] = stay
    decision["breaker"]["tripped"] = True
    for key in ("gates", "blocked"):
        decision["counts"][key] = len(decision[key])


def written(decision: Mapping, results: Iterable[Mapping], ledger: Iterable[Mapping]) -> list[dict]:
    """The entries whose gates stand and whose entry does not say so yet; those of a run that was killed as well, and
    of gates that stand for newer faults than the ledger knows: they are no news once somebody opens the gate."""
    shut = {(each["node"], each["owner"]) for each in results if each["status"] in SHUT}
    standing = [gate for gate in decision["gates"] if (gate["node"], gate["owner"]) in shut]
    stands = {(one["node"], one["owner"]): one["last"] for one in decision["held"]}
    killed: list[dict] = []
    seen: dict[tuple, int] = {}
    for entry in ledger:
        place = (entry["node"], entry["owner"])
        if not entry.get("held"):
            killed += [{**entry, "last": stands[place]}] if place in stands else []
        else:
            known = [moments.micros(entry["at"]) or 0, moments.micros(entry.get("seen")) or 0]
            seen[place] = max(*known, seen.get(place, 0))
    never = sys.maxsize  # nobody closed it, so that there is nothing to note
    newer = [
        one
        for one in decision["held"]
        if (moments.micros(one["last"]) or 0) > seen.get((one["node"], one["owner"]), never)
    ]
    return [*standing, *killed, *newer]


def failures(decision: Mapping, results: Iterable[Mapping]) -> list[str]:
    """What of tripped, failed and unreadable there was."""
    found = {
        "tripped": decision["breaker"]["tripped"],
        "failed": any(each["status"] not in SHUT for each in results),
        "unreadable": any(each.get("rule") for each in decision["unknown"]),
    }
    return [name for name, is_so in found.items() if is_so]


def line(decision: Mapping, results: list[Mapping], planned: bool, asked: str = "") -> str:
    """The decision in one line. `asked`: the mode of the run, which the policy may have lowered."""
    new, bad = nodes_of(results, ("held",)), nodes_of(results, BAD)
    lowered = " (by the policy)" if asked not in ("", decision["mode"]) else ""
    parts = [f"{decision['mode']}{lowered}: {count(decision['counts']['incidents'], 'incident')}"]
    if new:
        parts.append(f"{'would gate' if planned else 'gated'} {names(new)}")
    if bad:
        parts.append(f"could not gate {names(bad)}")
    for key, words in (
        ("held", "gated already"),
        ("observed", "only observed"),
        ("blocked", "BLOCKED by the breaker"),
    ):
        nodes = sorted({each["node"] for each in decision[key]})
        if nodes:
            parts.append(f"{words}: {names(nodes)}")
    strangers = sorted({each["node"] for each in decision["ignored"] if each["why"] == NO_NODE})
    if strangers:
        parts.append(
            f"ignored, for the fleet has no such {'node' if len(strangers) == 1 else 'nodes'}: {names(strangers)}"
        )
    for scope in decision["breaker"]["scopes"]:
        if scope["tripped"]:
            where = scope["domain"] or "the fleet"
            parts.append(f"breaker of {where} tripped at {scope['used']} of {scope['bound']} in {scope['window']}")
    return "; ".join(parts)


def lines(decision: Mapping, results: Iterable[Mapping], unparsed: list[Mapping]) -> list[str]:
    """One line for each node that something was decided for, and for what could not be read."""
    outcome = {(each["node"], each["owner"]): each for each in results}
    text = []
    for gate in decision["gates"]:
        result = outcome[gate["node"], gate["owner"]]
        done = {"held": "gate", "unchanged": "gate stands"}.get(result["status"], f"{result['status'].upper()}, gate")
        note = f" ({result['reason']})" if result.get("reason") else ""
        text.append(f"{gate['node']}: {done} {gate['owner']} by {gate['rule']}: {gate['reason']}{note}")
    text += [f"{each['node']}: gated already by {each['rule']}" for each in decision["held"]]
    text += [f"{each['node']}: BLOCKED {each['rule']}: {each['reason']}: {each['why']}" for each in decision["blocked"]]
    watched: dict[str, list[Mapping]] = {}
    for each in decision["observed"]:
        watched.setdefault(each["node"], []).append(each)
    for node, (first, *rest) in watched.items():
        also = f" (also {', '.join(each['rule'] for each in rest)})" if rest else ""
        text.append(f"{node}: observed {first['rule']}: {first['reason']}{also}")
    text += [f"{each['node']}: opened by somebody, {each['rule']}: {each['why']}" for each in decision["released"]]
    text += [f"{each['node']}: unknown: {each['why']}" for each in decision["unknown"]]
    left = [each for each in decision["incidents"] if not each["rules"]]
    text += [f"{each['node']}: not acted on, {each['code']}: {each['why']}" for each in left[:UNMATCHED]]
    if len(left) > UNMATCHED:
        text.append(f"and {count(len(left) - UNMATCHED, 'incident')} more that no rule acts on")
    past = [each for each in decision["ignored"] if each["why"].startswith(HISTORY)]
    if past:
        text.append(f"{count(len(past), 'report')} of the past, such as {past[0]['node']}: {past[0]['why']}")
    if unparsed:
        first = unparsed[0]
        where = f"{first['source']}:{first['line']}" if first.get("line") else first["source"]
        text.append(f"{count(len(unparsed), 'report')} could not be read, the first {where}: {first['reason']}")
    return text


def nodes_of(results: Iterable[Mapping], statuses: Iterable[str]) -> list[str]:
    """The nodes of these results, each once: it may have gates of several owners."""
    return list(dict.fromkeys(each["node"] for each in results if each["status"] in statuses))


def count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def names(nodes: list[str]) -> str:
    more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
    return ", ".join(nodes[:SHOWN]) + more
