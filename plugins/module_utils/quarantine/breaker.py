# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The circuit breaker: how many nodes may be taken out within a window, in the fleet and in each domain.

It counts nodes, not gates: a node that was counted within the window costs nothing more. It looks at what is about to
be closed only; nothing here ever stands in the way of a release.

An entry of the ledger is {node, domain, owner, rule, ruleDigest, evidence, at}, and `held` once the gate was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.policy import Breaker

FLEET = "fleet"
NO_FABRIC = ("00000000-0000-0000-0000-000000000000", ".")


def domain_of(facts: Mapping, labels: Iterable[str]) -> str:
    """LABEL=VALUE of the first label that the node has; a node without any is a domain of its own.

    A clique whose fabric has no id is what GPUs without a fabric report, and no domain.
    """
    found = facts.get("labels") or {}
    for label in labels:
        value = found.get(label)
        if value and not value.startswith(NO_FABRIC):
            return f"{label}={value}"
    return f"node={facts['name']}"


def fabric_of(facts: Mapping, labels: Iterable[str]) -> str:
    """The domain whose nodes feel each other's faults. A node whose GPUs say that they are in no fabric feels none of
    them, whatever rack it stands in."""
    found = facts.get("labels") or {}
    alone = any((found.get(label) or "").startswith(NO_FABRIC) for label in labels)
    return domain_of(facts, () if alone else labels)


def same(entry: Mapping) -> tuple:
    """What makes two entries one."""
    return tuple(entry.get(key, "") for key in ("node", "owner", "rule", "evidence"))


class Window:
    """What was taken out within the window, and what may still be.

    `domains` are those of all nodes of the inventory, which is what percentages count from.
    """

    def __init__(self, breaker: Breaker, domains: Mapping[str, str], ledger: Iterable[Mapping], now: int):
        self._breaker, self._domains = breaker, domains
        self._sizes: dict[str, int] = {}
        for domain in domains.values():
            self._sizes[domain] = self._sizes.get(domain, 0) + 1
        self.fleet = breaker.fleet.of(len(domains))
        self._out: set[str] = set()
        self._by: dict[str, set[str]] = {}
        self._full: dict[str, dict] = {}
        begin = now - breaker.window * moments.SECOND
        for entry in ledger:
            at = moments.micros(entry["at"])
            if at is None or at > begin:  # what cannot be dated counts
                known = domains.get(entry["node"]) or entry.get("domain")
                self._count(entry["node"], known or f"node={entry['node']}")

    def _count(self, node: str, domain: str) -> None:
        self._out.add(node)
        self._by.setdefault(domain, set()).add(node)

    def admit(self, node: str) -> dict | None:
        """Counts the node; or the scope that has no room left: {scope, domain, used, bound, window}."""
        if node in self._out:
            return None
        domain = self._domains.get(node) or f"node={node}"
        bound = self._breaker.domain.of(self._sizes.get(domain, 1))
        used = len(self._by.get(domain, ()))
        if len(self._out) >= self.fleet:
            return self._trip(FLEET, "", len(self._out), self.fleet)
        if used >= bound:
            return self._trip("domain", domain, used, bound)
        self._count(node, domain)
        return None

    def _trip(self, scope: str, domain: str, used: int, bound: int) -> dict:
        full = {"scope": scope, "domain": domain, "used": used, "bound": bound}
        full["window"] = moments.spell(self._breaker.window)
        self._full[domain] = full
        return full

    def scopes(self) -> list[dict]:
        """The fleet, and every domain of which a node is out: {scope, domain, used, bound, window, tripped}."""
        window = moments.spell(self._breaker.window)
        rows = [(FLEET, "", len(self._out), self.fleet)]
        for domain in sorted(self._by):
            rows.append(("domain", domain, len(self._by[domain]), self._breaker.domain.of(self._sizes.get(domain, 1))))
        return [
            {"scope": scope, "domain": domain, "used": used, "bound": bound, "window": window}
            | {"tripped": domain in self._full}
            for scope, domain, used, bound in rows
        ]

    @property
    def tripped(self) -> bool:
        return bool(self._full)


def say(full: Mapping) -> str:
    """Why a node was not taken out."""
    where = "the fleet" if full["scope"] == FLEET else f"domain {full['domain']}"
    return f"the breaker of {where} is open: {full['used']} of at most {full['bound']} nodes within {full['window']}"


def admission(
    breaker: Breaker, domains: Mapping[str, str], now: int
) -> Callable[[list[dict], list[dict]], tuple[list[dict], list[dict]]]:
    """What the ledger asks once more on what it holds by then: (ledger, wanted) -> (admitted, blocked with `why`)."""

    def admit(ledger: list[dict], wanted: list[dict]) -> tuple[list[dict], list[dict]]:
        window, admitted, blocked = Window(breaker, domains, ledger, now), [], []
        for entry in wanted:
            full = window.admit(entry["node"])
            if full:
                blocked.append({**entry, **full, "why": say(full)})
            else:
                admitted.append(entry)
        return admitted, blocked

    return admit
