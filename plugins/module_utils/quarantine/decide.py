# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes to take out now, and why not the others. Pure: the same input gives the same decision, in any order.

Level-triggered: it says what should be, from all reports that count now. What stands already is not done again.

    decision = decide(policy, events, nodes, ledger, now)
    decision["gates"]      to hold now, within the breaker's bounds: {node, owner, reason, rule, ruleDigest, evidence,
                           fault, action, entity, bootId, since, cordon, reclose, taint, domain, mode, incident}
    decision["held"]       stands already: {node, owner, rule, evidence, last: when the newest fault was, why}
    decision["blocked"]    the breaker is open: a gate, and scope, used, bound, window, why
    decision["observed"]   matched by rules that only watch (observe, dry_run): a gate, mode, why, and `blocked`: what
                           the breaker would have said
    decision["released"]   somebody opened the gate again after it was closed on this evidence: {node, owner, ..., why}
    decision["unknown"]    could not be told: {node, event, rule, why}
    decision["ignored"]    reports that do not count: {event, node, why}
    decision["incidents"]  one per cause: {node, domain, cause, code, class, action, fatal, at, attached, attachedNodes,
                           rules, why}
    decision["breaker"]    {tripped, scopes: [{scope, domain, used, bound, window, tripped}]}
    decision["counts"], decision["policy"], decision["policyDigest"], decision["mode"], decision["now"]
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import active, breaker, moments, scope
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.correlate import Incident, correlate
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.item import AHEAD, OUR_OWN, Item
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.policy import Policy, Rule, lower
from ansible_collections.goodput.fleet.plugins.module_utils.records.cel import Failure

REASON_LIMIT = 256  # characters; a reason stands in an annotation
MONTH = 30 * 86400 * moments.SECOND


@dataclass(slots=True)
class Match:
    """A rule is true for a report."""

    rule: Rule
    item: Item
    incident: Incident
    mode: str
    known: bool = False  # when the gate was last closed

    @property
    def order(self) -> tuple:
        """Who goes first when not all may: news first, since what was known may have been opened on purpose."""
        return (
            self.known,
            -self.rule.priority,
            self.item.severity,
            self.item.at,
            self.item.node,
            self.rule.name,
            self.item.name,
        )


def decide(
    policy: Policy,
    events: Iterable[Mapping],
    nodes: Iterable[Mapping],
    ledger: Iterable[Mapping],
    now: datetime.datetime,
) -> dict:
    """`events` are HealthEvent documents, `nodes` the facts of every node of the inventory, `ledger` the breaker's
    entries; `now` is in UTC."""
    return _Pass(policy, events, nodes, list(ledger), now).decision()


class _Pass:
    def __init__(self, policy: Policy, events, nodes, ledger: list[Mapping], now: datetime.datetime):
        self.policy, self.ledger = policy, ledger
        self.now, self.moment = now, moments.of(now)
        self.nodes = {facts["name"]: facts for facts in nodes}
        self.domains = {name: breaker.domain_of(facts, policy.breaker.labels) for name, facts in self.nodes.items()}
        self.reports = active.sift(events, self.nodes, policy.max_age, self.moment)
        near = {name: breaker.fabric_of(facts, policy.labels) for name, facts in self.nodes.items()}
        self.incidents = correlate(self.reports.active, near, policy.near * moments.SECOND)
        self._views: dict[str, dict] = {}
        self._domain_views: dict[str, dict] = {}
        self._tally()

    def _tally(self) -> None:
        """What domains and histories look like."""
        self._size: dict[str, int] = {}
        self._gated: dict[str, int] = {}
        self._sick: dict[str, int] = {}
        for name, domain in self.domains.items():
            self._size[domain] = self._size.get(domain, 0) + 1
            self._gated[domain] = self._gated.get(domain, 0) + bool(self.nodes[name].get("gates"))
        for name in {incident.cause.node for incident in self.incidents}:
            domain = self.domains[name]
            self._sick[domain] = self._sick.get(domain, 0) + 1
        self._gates: dict[str, int] = {}
        for entry in self.ledger:
            at = moments.micros(entry["at"])
            if at is None or at > self.moment - MONTH:
                self._gates[entry["node"]] = self._gates.get(entry["node"], 0) + 1

    # rules

    def _matches(self, incident: Incident, unknown: list[dict]) -> Iterator[Match]:
        environment = scope.environment()
        for item in incident.here:
            rules = [rule for rule in self.policy.rules if item.cls not in OUR_OWN or item.cls in rule.classes]
            if not rules:
                continue
            activation = environment.activation(self._values(item, incident))
            for rule in rules:
                answer = rule.expression.holds(activation)
                if isinstance(answer, Failure):
                    unknown.append({"node": item.node, "event": item.name, "rule": rule.name, "why": answer.why})
                elif answer:
                    yield Match(rule, item, incident, lower(self.policy.mode, rule.mode))

    def _values(self, item: Item, incident: Incident) -> dict:
        cause = incident.cause.name if item is not incident.cause else ""
        return {
            **self._node(item.node),
            **scope.event(item.doc, cls=item.cls, cause=cause, now=self.now, action=item.action, fatal=item.fatal),
            "history.sameCode24h": self.reports.per_code.get((item.node, item.space, item.codes), 0),
            "now": self.now,
        }

    def _node(self, name: str) -> dict:
        if name not in self._views:
            domain = self.domains[name]
            self._views[name] = {
                **scope.node(self.nodes[name]),
                "domain.name": domain,
                "domain.nodes": self._size[domain],
                "domain.gated": self._gated[domain],
                "domain.sick": self._sick.get(domain, 0),
                "history.sameNode24h": self.reports.per_node.get(name, 0),
                "history.gates30d": self._gates.get(name, 0),
            }
        return self._views[name]

    # the decision

    def decision(self) -> dict:
        unknown: list[dict] = list(self.reports.unknown)
        acting: dict[tuple, Match] = {}
        watching: dict[tuple, Match] = {}
        last: dict[tuple, int] = {}
        closed = self._closed()
        incidents = []
        for incident in self.incidents:
            rules = []
            for match in self._matches(incident, unknown):
                rules.append(match.rule.name)
                if match.mode == "enforce":
                    chosen, key = acting, (match.item.node, match.rule.owner)
                    match.known = not match.rule.reclose and _old_news(match, closed.get(key))
                    last[key] = max(last.get(key, 0), match.item.last)
                else:
                    chosen, key = watching, (match.item.node, match.rule.owner, match.rule.name)
                if key not in chosen or match.order < chosen[key].order:
                    chosen[key] = match
            incidents.append(self._incident(incident, sorted(set(rules))))
        decision = {
            "policy": self.policy.name,
            "policyDigest": self.policy.digest,
            "mode": self.policy.mode,
            "now": moments.text(self.moment),
            "incidents": incidents,
            **self._admit(acting.values(), watching.values(), last),
            "unknown": sorted(unknown, key=lambda one: (one["node"], one["event"], one["rule"] or "", one["why"])),
            "ignored": sorted(self.reports.ignored, key=lambda one: (one["node"], one["event"], one["why"])),
        }
        decision["counts"] = {
            "events": self.reports.total,
            "healthy": self.reports.healthy,
            "active": len(self.reports.active),
            "nodes": len(self.nodes),
            **{
                key: len(decision[key])
                for key in ("incidents", "gates", "held", "blocked", "observed", "released", "unknown", "ignored")
            },
        }
        return decision

    def _incident(self, incident: Incident, rules: list[str]) -> dict:
        cause = incident.cause
        if rules:
            why = f"matched by {', '.join(rules)}"
        elif cause.cls in OUR_OWN:
            why = {
                "application": "an error of an application, not of the node",
                "consequence": "an echo of something else, which was not seen",
            }[cause.cls]
        else:
            why = "no rule matches"
        return {
            "node": cause.node,
            "domain": self.domains[cause.node],
            "cause": cause.name,
            "code": cause.title(),
            "class": cause.cls,
            "action": cause.action,
            "fatal": cause.fatal,
            "at": moments.text(cause.at),
            "message": cause.spec.get("message") or "",
            "attached": [item.name for item in incident.attached],
            "attachedNodes": sorted({item.node for item in incident.attached} - {cause.node}),
            "rules": rules,
            "why": why,
        }

    def _admit(self, acting: Iterable[Match], watching: Iterable[Match], last: Mapping[tuple, int]) -> dict:
        window = breaker.Window(self.policy.breaker, self.domains, self.ledger, self.moment)
        gates: list[dict] = []
        held: list[dict] = []
        blocked: list[dict] = []
        released: list[dict] = []
        for match in sorted(acting, key=lambda match: match.order):
            gate = self._gate(match)
            key = {part: gate[part] for part in ("node", "owner", "rule", "evidence")}
            stands = match.rule.owner in scope.owners(self.nodes[match.item.node])
            gaps = (self.nodes[match.item.node].get("gaps") or {}).get(match.rule.owner, ())
            if stands and (not gaps or (gaps == ["cordon"] and not match.rule.reclose)):
                newest = moments.text_up(last[gate["node"], gate["owner"]])
                why = f"gate {match.rule.owner} stands" + (", and somebody lifted its cordon" if gaps else "")
                held.append({**key, "last": newest, "why": why})
            elif match.known and not stands:
                why = "somebody opened this gate after it was closed on this evidence; a new fault closes it again"
                released.append({**key, "why": why})
            else:
                full = window.admit(gate["node"])
                if full:
                    blocked.append({**gate, **full, "domain": gate["domain"], "why": breaker.say(full)})
                else:
                    gates.append(gate)
        state = {"tripped": window.tripped, "scopes": window.scopes()}
        observed = []
        for match in sorted(watching, key=lambda match: match.order):
            full = window.admit(match.item.node)
            why = f"rule {match.rule.name} is in mode {match.mode}"
            observed.append({**self._gate(match), "why": why, "blocked": breaker.say(full) if full else ""})
        return {
            "gates": gates,
            "held": held,
            "blocked": blocked,
            "observed": observed,
            "released": released,
            "breaker": state,
        }

    def _closed(self) -> dict[tuple, tuple[int, set[str]]]:
        """By node and owner: of when the last fault is that a gate was closed for, or stood for, and on which evidence
        one ever was closed."""
        closed: dict[tuple, tuple[int, set[str]]] = {}
        for entry in self.ledger:
            if entry.get("held"):
                last, evidence = closed.get((entry["node"], entry["owner"]), (0, set()))
                told = (moments.micros(entry["at"]) or 0, moments.micros(entry.get("seen")) or 0)
                # a clock that was wrong once must not make old news of all that comes
                at = max(last, *(one for one in told if one <= self.moment + AHEAD))
                closed[entry["node"], entry["owner"]] = (at, evidence | {entry["evidence"]})
        return closed

    def _gate(self, match: Match) -> dict:
        rule, item = match.rule, match.item
        message = item.spec.get("message") or item.title()
        reason = f"{rule.reason}: {message}" if rule.reason else message
        return {
            "node": item.node,
            "owner": rule.owner,
            "reason": reason if len(reason) <= REASON_LIMIT else reason[: REASON_LIMIT - 1] + "…",
            "rule": rule.name,
            "ruleDigest": rule.digest,
            "evidence": item.name,
            "fault": item.fault(),
            "action": item.action,
            "entity": item.entity(),
            "bootId": self.nodes[item.node].get("bootId") or "",
            "since": moments.text(self.moment),
            "cordon": rule.cordon,
            "reclose": rule.reclose,
            "taint": dict(rule.taint),
            "domain": self.domains[item.node],
            "mode": match.mode,
            "incident": match.incident.cause.name,
        }


def _old_news(match: Match, closed: tuple[int, set[str]] | None) -> bool:
    """Whether a gate was written since the fault, so that one that is gone was opened with the fault known."""
    return closed is not None and (match.item.name in closed[1] or match.item.last <= closed[0])


def entries(decision: Mapping) -> list[dict]:
    """What the ledger has to hold before the decision's gates are written."""
    keys = ("node", "domain", "owner", "rule", "ruleDigest", "evidence")
    return [{**{key: gate[key] for key in keys}, "at": decision["now"]} for gate in decision["gates"]]


def admission(policy: Policy, nodes: Iterable[Mapping], now: datetime.datetime) -> Callable:
    """What the ledger asks when it reserves: (ledger, wanted) -> (admitted, blocked). See breaker.admission."""
    domains = {facts["name"]: breaker.domain_of(facts, policy.breaker.labels) for facts in nodes}
    return breaker.admission(policy.breaker, domains, moments.of(now))
