# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a node may be repaired, per rung, fault and node within a window, and how many nodes at a time. Pure.

Attempts are counted where they are written down, in the statuses of all RepairRequests of a node, so that neither a
killed run nor a new request begins anew. An attempt counts from the moment it is requested, whatever came of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import ladder

MACHINE = "goodput.fleet/machine"  # annotation of a RepairRequest: the machine that the node is


@dataclass(frozen=True)
class Bounds:
    """`attempts` per rung for one fault, `per_fault` over its rungs, `per_node` over its faults, all within `window`;
    `between` two attempts on one node; `parallel` nodes at a time, and `per_domain` of them. Times in seconds."""

    attempts: Mapping[str, int] = field(default_factory=lambda: {"reset": 1, "reboot": 1, "replace": 1})
    per_fault: int = 3
    per_node: int = 5
    window: int = 7 * 86400
    between: int = 600
    parallel: int = 4
    per_domain: int = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One that was requested. `open`: nobody knows yet what came of it."""

    request: str
    rung: str
    fault: str
    at: datetime
    open: bool


def moment(text: object) -> datetime | None:
    """Of a time with its zone, as 2026-03-06T09:34:56Z; None for what is none."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo else None


def is_open(attempt: Mapping) -> bool:
    """Whether an attempt of a status was requested and is neither verified nor given up."""
    return attempt.get("verified") is None


def history(requests: Iterable[Mapping], machines: Mapping[str, str] | None = None) -> dict[str, list[Attempt]]:
    """The attempts of all RepairRequests by the node's uid, tickets left out. One whose time cannot be read counts as
    of now and for ever: a status that somebody edited gives nobody further attempts.

    `machines`: {uid of a node: its machine}. What was tried on a machine counts for the node that it is now: whoever
    joins anew after each reboot would else be rebooted for ever.
    """
    found: dict[str, list[Attempt]] = {}
    earlier: dict[str, list[tuple[str, Attempt]]] = {}
    for doc in requests:
        spec, attempts = doc["spec"], (doc.get("status") or {}).get("attempts") or ()
        uid, machine = spec["node"]["uid"], (doc["metadata"].get("annotations") or {}).get(MACHINE) or ""
        for each in attempts:
            if each["rung"] != ladder.TICKET:
                at = moment(each.get("requestedAt")) or _FOREVER
                one = Attempt(doc["metadata"]["name"], each["rung"], spec["fault"]["code"], at, is_open(each))
                found.setdefault(uid, []).append(one)
                earlier.setdefault(machine, []).append((uid, one))
    for uid, machine in (machines or {}).items():
        others = [one for of, one in earlier.get(machine, ()) if machine and of != uid]
        if others:
            found[uid] = [*others, *found.get(uid, ())]
    return found


def proven(requests: Iterable[Mapping]) -> dict[tuple[str, str], list[datetime]]:
    """{(uid, fault): when}: where there was nothing to repair, and the node has proven that it is well."""
    found: dict[tuple[str, str], list[datetime]] = {}
    for doc in requests:
        spec, status = doc["spec"], doc.get("status") or {}
        if status.get("phase") == "Closed" and status.get("validation") and not status.get("attempts"):
            at = moment(status.get("startedAt")) or _FOREVER
            found.setdefault((spec["node"]["uid"], spec["fault"]["code"]), []).append(at)
    return found


def machines(nodes: Iterable[Mapping]) -> dict[str, str]:
    """{uid: machine} of nodes with a `systemUUID` of their own; some boards all tell the same."""
    told = [(node["uid"], node.get("systemUUID") or "") for node in nodes]
    counts = Counter(machine for _uid, machine in told)
    return {uid: machine for uid, machine in told if machine and counts[machine] == 1}


def is_to_come(at: datetime, now: datetime) -> bool:
    """Whether a time is so far ahead that the clock it came from was wrong: nobody waits for it."""
    return at > now + timedelta(days=1)


def spent(bounds: Bounds, attempts: Iterable[Attempt], rung: str, fault: str, now: datetime) -> str:
    """Why there is no further attempt at this rung against this fault, "" where there is. `attempts`: the node's."""
    recent = [each for each in attempts if each.at > now - timedelta(seconds=bounds.window)]
    same = [each for each in recent if each.fault == fault]
    within = f"within {spell(bounds.window)}"
    for word, used, bound in (
        (f"{rung} of {fault}", sum(each.rung == rung for each in same), bounds.attempts.get(rung, 0)),
        (f"repair of {fault}", len(same), bounds.per_fault),
        ("repair of the node", len(recent), bounds.per_node),
    ):
        if used >= bound:
            return f"{word}: {used} of {bound} {'attempt' if bound == 1 else 'attempts'} used {within}"
    return ""


def too_soon(bounds: Bounds, attempts: Iterable[Attempt], now: datetime) -> str:
    """Why not yet, "" where there is no reason: the last attempt on this node may still be at work."""
    last = max((each.at for each in attempts if not is_to_come(each.at, now)), default=None)
    if last is None or last + timedelta(seconds=bounds.between) <= now:
        return ""
    return (
        f"the last attempt on this node was at {last:%Y-%m-%dT%H:%M:%SZ}, the next comes {spell(bounds.between)} later"
    )


class Room:
    """How many more nodes may be under repair now, in all and in each topology domain ("" has no bound of its own)."""

    def __init__(self, bounds: Bounds):
        self.bounds, self._all, self._domains = bounds, set(), {}

    def take(self, node: str, domain: str) -> None:
        self._all.add(node)
        self._domains.setdefault(domain, set()).add(node)

    def full(self, node: str, domain: str) -> str:
        """Why there is no room for this node, "" where there is."""
        if len(self._all - {node}) >= self.bounds.parallel:
            return f"{len(self._all)} of at most {self.bounds.parallel} nodes are under repair"
        here = self._domains.get(domain, set()) - {node}
        if domain and len(here) >= self.bounds.per_domain:
            return f"{len(here)} of at most {self.bounds.per_domain} nodes of {domain} are under repair"
        return ""

    @property
    def over(self) -> bool:
        """Whether more are under repair than may be."""
        crowded = any(domain and len(nodes) > self.bounds.per_domain for domain, nodes in self._domains.items())
        return crowded or len(self._all) > self.bounds.parallel


def spell(seconds: int) -> str:
    """Seconds as 1h30m."""
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_FOREVER = datetime.max.replace(tzinfo=moment("2026-01-01T00:00:00Z").tzinfo)
