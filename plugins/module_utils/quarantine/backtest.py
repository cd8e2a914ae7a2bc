# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy would have done with recorded events, as if every rule had been enforced.

The recording is passed through again in steps of time. A gate stands until the node is taken to be repaired, `repair`
seconds later. Boot ids of the inventory are today's and say nothing of then, so age alone tells what was history.

    result = backtest(policy, events, nodes)
    result["timeline"]   [{at, node, domain, owner, rule, reason, evidence, code}], one per gate
    result["trips"]      [{at, until, scope, domain, used, bound, window, nodes}], one per time the breaker was open;
                         `nodes` are those it kept from being gated
    result["byRule"]     {rule: {gates, nodes}}, with rules that never matched
    result["unknown"]    [{rule, why, events}]: what rules could not decide, and what monitors could not see
    result["ignored"]    {why: events}: what never counted
    result["from"], result["to"], result["days"], result["step"], result["events"], result["undated"],
    result["nodes"], result["incidents"], result["wouldGate"], result["gatedNodes"], result["blockedNodes"]
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import breaker, moments
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.decide import decide, entries
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.policy import Policy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

PASSES = 2000  # of a recording, unless a step is given
SHORTEST = 60  # seconds
REPAIR = 4 * 3600
DAY = 86400
SHOWN = 10
BLIND = "a monitor could not see"


def backtest(
    policy: Policy,
    events: Iterable[Mapping],
    nodes: Iterable[Mapping],
    *,
    step: int | None = None,
    repair: int = REPAIR,
) -> dict:
    """`events` are HealthEvent documents, `nodes` facts of the inventory; `step` and `repair` are seconds.

    Raises InvalidDocument for a step that is too long for the policy.
    """
    return _Replay(policy.enforced(), list(events), nodes, step, repair).run()


class _Replay:
    def __init__(self, policy: Policy, events: list[Mapping], nodes: Iterable[Mapping], step: int | None, repair: int):
        self.policy = policy
        self.nodes = {facts["name"]: {**facts, "bootId": "", "gates": []} for facts in nodes}
        dated = sorted((at, number) for number, at in enumerate(map(_received, events)) if at is not None)
        self.times = [at for at, _number in dated]
        self.events = [events[number] for _at, number in dated]
        self.total = len(events)
        span = (self.times[-1] - self.times[0]) // moments.SECOND if dated else 0
        # a step must not pass over a report before it has been looked at
        longest = min(policy.max_age, policy.breaker.window) // 4
        if step and step > longest:
            hint = f"at most {moments.spell(longest)}, a quarter of maxAge and of the breaker's window"
            raise InvalidDocument(f"is {moments.spell(step)}, which passes over events", path="step", hint=hint)
        self.step = step or max(1, min(max(SHORTEST, span // PASSES), longest))
        self.repair = repair * moments.SECOND
        # a day of reports is looked at for rules that count them only
        counted = any("history." in rule.expression.text for rule in policy.rules)
        self.horizon = max(policy.max_age, DAY if counted else 0) * moments.SECOND
        self.memory = max(self.horizon, policy.breaker.window * moments.SECOND, 30 * counted * DAY * moments.SECOND)
        self.ledger: list[dict] = []
        self.standing: dict[tuple[str, str], int] = {}
        self.timeline: list[dict] = []
        self.trips: list[dict] = []
        self.open: dict[tuple, dict] = {}
        self.causes: set[str] = set()
        self.unknown: dict[tuple, str] = {}
        self.ignored: dict[str, str] = {}

    def run(self) -> dict:
        for now in self._moments():
            self._pass(now)
        by_rule = {}
        for rule in self.policy.rules:
            mine = [gate["node"] for gate in self.timeline if gate["rule"] == rule.name]
            by_rule[rule.name] = {"gates": len(mine), "nodes": len(set(mine))}
        begin, end = (self.times[0], self.times[-1]) if self.times else (0, 0)
        return {
            "policy": self.policy.name,
            "policyDigest": self.policy.digest,
            "from": moments.text(begin) if self.times else None,
            "to": moments.text(end) if self.times else None,
            "days": round((end - begin) / moments.SECOND / DAY, 2),
            "step": moments.spell(self.step),
            "events": self.total,
            "undated": self.total - len(self.events),
            "nodes": len(self.nodes),
            "incidents": len(self.causes),
            "wouldGate": len(self.timeline),
            "gatedNodes": len({gate["node"] for gate in self.timeline}),
            "blockedNodes": sorted({node for trip in self.trips for node in trip["nodes"]}),
            "byRule": by_rule,
            "timeline": self.timeline,
            "trips": [{**trip, "nodes": sorted(trip["nodes"])} for trip in self.trips],
            "unknown": [
                {"rule": rule, "why": why, "events": count}
                for (rule, why), count in _tally((rule, why) for (_event, rule), why in self.unknown.items())
            ],
            "ignored": dict(_tally(self.ignored.values())),
        }

    def _moments(self) -> Iterator[int]:
        """Whenever something came in, on the grid of steps; and while nodes wait, whenever one leaves the window."""
        step = self.step * moments.SECOND
        place, now = 0, -1
        while True:
            known = [self._leaving(now)] if self.open else []
            if place < len(self.times):
                known.append(self.times[place])
            later = [-(-moment // step) * step for moment in known if moment is not None]
            if not later:
                return
            now = min(later)
            place = bisect.bisect_right(self.times, now)
            yield now

    def _leaving(self, now: int) -> int | None:
        """When the breaker's window lets the next node go, if a report may still count by then."""
        window = self.policy.breaker.window * moments.SECOND
        ends = (at + window for at in map(moments.micros, (entry["at"] for entry in self.ledger)) if at is not None)
        end = min((end for end in ends if end > now), default=None)
        return end if end is not None and end <= self.times[-1] + self.policy.max_age * moments.SECOND else None

    def _pass(self, now: int) -> None:
        first, last = bisect.bisect_left(self.times, now - self.horizon), bisect.bisect_right(self.times, now)
        self.standing = {key: at for key, at in self.standing.items() if at > now - self.repair}
        inventory = dict(self.nodes)
        for node, owner in self.standing:
            inventory[node] = {**inventory[node], "gates": [*inventory[node]["gates"], owner]}
        decision = decide(self.policy, self.events[first:last], inventory.values(), self.ledger, moments.moment(now))
        self.ledger = [entry for entry in self.ledger if (moments.micros(entry["at"]) or 0) > now - self.memory]
        self.ledger += [{**entry, "held": True} for entry in entries(decision)]
        codes = {incident["cause"]: incident["code"] for incident in decision["incidents"]}
        self.causes.update(codes)
        for gate in decision["gates"]:
            self.standing[gate["node"], gate["owner"]] = now
            told = {key: gate[key] for key in ("node", "domain", "owner", "rule", "reason", "evidence")}
            self.timeline.append({"at": decision["now"], **told, "code": codes[gate["incident"]]})
        self._open(decision)
        for one in decision["unknown"]:
            self.unknown.setdefault(
                (one["event"], one["rule"]), one["why"] if one["rule"] else "a monitor could not see"
            )
        for one in decision["ignored"]:
            if not one["why"].startswith("history: came in"):  # which becomes true of all in the end
                self.ignored.setdefault(one["event"], one["why"].partition(" by ")[0])

    def _open(self, decision: Mapping) -> None:
        """A trip lasts as long as the same scope keeps nodes back in one pass after the other."""
        still: dict[tuple, dict] = {}
        for one in decision["blocked"]:
            key = (one["scope"], one["domain"] if one["scope"] != breaker.FLEET else "")
            trip = still.get(key) or self.open.get(key)
            if trip is None:
                told = {part: one[part] for part in ("scope", "used", "bound", "window")}
                trip = {"at": decision["now"], "until": decision["now"], **told, "domain": key[1], "nodes": set()}
                self.trips.append(trip)
            still[key] = trip
            trip["until"] = decision["now"]
            trip["nodes"].add(one["node"])
        self.open = still


def _received(document: Mapping) -> int | None:
    spec = document["spec"]
    received = moments.micros(spec.get("receivedTimestamp"))
    return received if received is not None else moments.micros(spec.get("generatedTimestamp"))


def _tally(values: Iterable) -> list[tuple]:
    counts: dict = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items(), key=lambda one: (-one[1], str(one[0])))


def summary(result: Mapping, assumed: bool = False) -> str:
    """The back-test in a few lines for people. `assumed`: the inventory was not given."""
    gates, nodes, days = result["wouldGate"], result["gatedNodes"], result["days"]
    rate = f", {gates / days:.2g} a day" if days >= 1 else ""
    over = f"{result['events']} events over {days:g} days" if result["from"] else f"{result['events']} events"
    lines = [
        f"{result['policy']}: {over}, {result['nodes']} nodes: {_times(gates, 'gate')} on {_times(nodes, 'node')}{rate}"
    ]
    for rule, found in result["byRule"].items():
        lines.append(f"rule {rule}: {_times(found['gates'], 'gate')} on {_times(found['nodes'], 'node')}")
    trips = result["trips"]
    if trips:
        lines.append(f"the breaker would have tripped {_times(len(trips), 'time')}")
        lines += [
            f"  {trip['at']} to {trip['until']}: {trip['domain'] or 'the fleet'}, {trip['used']} of {trip['bound']} "
            f"within {trip['window']}, kept {_times(len(trip['nodes']), 'node')} back"
            for trip in trips[:SHOWN]
        ]
    else:
        lines.append("the breaker would not have tripped")
    lines += [
        f"not decided: {one['rule'] or 'no rule asked'}: {one['why']} ({_times(one['events'], 'event')})"
        for one in result["unknown"][:SHOWN]
    ]
    if assumed:
        lines.append("no inventory was given: the breaker's percentages are of the nodes that the events name")
    if result["undated"]:
        lines.append(f"left out: {_times(result['undated'], 'event')} without a time")
    lines += [f"left out: {_times(count, 'event')}: {why}" for why, count in result["ignored"].items()]
    return "\n".join(lines)


def _times(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
