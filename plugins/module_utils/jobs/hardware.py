# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of the machines under an attempt, while it ran there. Pure.

An entry: {source: gate | event | condition | gone, at, what, fatal, evidence}, and `before: true` for what stood when
the attempt began, `over: TIME` for what was taken back since. A node made anew under its name is another node: what is
said of the one says nothing of the other.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments, shapes

GRACE = 120.0  # seconds after the end: who reports a fault is often slower than the job that dies of it
BEFORE = 86400.0  # how old a report may be that still stands
LIMIT = 40  # entries of one node
# gates that say something about a machine; others close it for reasons of their own
FAULT_OWNERS = ("quarantine",)
_NODE_EVENTS = ("Rebooted", "SystemOOM", "NodeNotReady")
_PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_SLACK = 1.0  # times of objects are whole seconds


class Evidence:
    """All that is told, by node.

    gates: {node: [gates as read from its annotations]}; events: HealthEvents; node_events: v1 Events about nodes;
    known: {node: {uid, boots: [{bootId, at}]}} as earlier passes saw them, `at` for the last time.
    """

    def __init__(
        self,
        gates: Mapping[str, list] | None = None,
        events: Iterable[Mapping] = (),
        node_events: Iterable[Mapping] = (),
        known: Mapping[str, Mapping] | None = None,
    ):
        self._gates, self._known = gates or {}, known or {}
        self._events: dict[str, list[tuple[float, Mapping]]] = {}
        self._node_events: dict[str, list[Mapping]] = {}
        for event in events:
            spec = shapes.spec(event)
            at = _event_time(spec)
            if at is not None and isinstance(spec.get("nodeName"), str):
                self._events.setdefault(spec["nodeName"], []).append((at, event))
        for event in node_events:
            about = shapes.mapping(shapes.mapping(event).get("involvedObject"))
            if about.get("kind") == "Node" and event.get("reason") in _NODE_EVENTS:
                self._node_events.setdefault(shapes.text(about.get("name")), []).append(event)
        for told in self._events.values():
            told.sort(key=lambda one: one[0])

    def of(self, node: Mapping, start: float, end: float, now: float) -> list[dict]:
        """What is known of a node as node() describes it, from `start` to `end` (which has the grace in it)."""
        name = node["name"]
        since = max(start - BEFORE, (moments.of(node["created"]) or 0) - _SLACK if node["uid"] else 0)
        found = [_gone(node, start)] if node["gone"] or node["replaced"] else []
        if not node["replaced"]:
            found += _conditions(node, start, end)
            found += self._gates_of(name, node, start, end)
        found += self._reports(name, node, 0 if node["replaced"] else since, start, end)
        found += self._told(name, start, end)
        if not node["replaced"] and not any("Rebooted" in each["what"] for each in found):
            found += self._reboots(name, node, start, end, now)
        return _bounded(found)

    def _gates_of(self, name: str, node: Mapping, start: float, end: float) -> list[dict]:
        found = []
        for gate in shapes.listed(self._gates.get(name)):
            at = moments.of(gate.get("since"))
            if at is not None and at > end:
                continue
            owner = shapes.text(gate.get("owner"))
            words = [shapes.text(gate.get(key)) for key in ("reason", "fault", "entity")]
            entry = {
                "source": "gate",
                "at": shapes.text(gate.get("since")),
                "what": f"{owner}: {', '.join(word for word in dict.fromkeys(words) if word) or 'no reason told'}",
                "fatal": owner in FAULT_OWNERS or bool(gate.get("fault")),
                "evidence": shapes.text(gate.get("evidence")),
            }
            # one without a time may have stood there all along
            found.append(entry if at is not None and at >= start else {**entry, "before": True})
        return found

    def _reports(self, name: str, node: Mapping, since: float, start: float, end: float) -> list[dict]:
        told = self._events.get(name, ())
        first = bisect.bisect_left(told, since, key=lambda one: one[0])
        found: list[dict] = []
        open_: dict[tuple, list[tuple[dict, frozenset]]] = {}
        for at, event in told[first:]:
            spec = shapes.spec(event)
            state = spec.get("state") or ("healthy" if spec.get("isHealthy") else "sick")
            check = tuple(shapes.text(spec.get(key)) for key in ("agent", "checkName"))
            parts = _entities(spec)
            if state == "healthy":
                for entry, of in open_.get(check, ()):
                    if not parts or (of and of <= parts):
                        entry.setdefault("over", moments.text(at))
                continue
            if state != "sick" or at > end or (node["replaced"] and at < start):
                continue
            boot = shapes.text(spec.get("bootId"))
            if at < start and boot and node["bootId"] and boot != node["bootId"]:
                continue  # the boot that it tells of is over
            entry = {
                "source": "event",
                "at": moments.text(at),
                "what": _words(spec),
                "fatal": bool(spec.get("isFatal")),
                "evidence": shapes.text(shapes.metadata(event).get("name")),
            }
            if at < start:
                entry["before"] = True
            open_.setdefault(check, []).append((entry, parts))
            found.append(entry)
        begin = moments.text(start)
        return [each for each in found if not (each.get("before") and each.get("over", "~") <= begin)]

    def _told(self, name: str, start: float, end: float) -> list[dict]:
        found = []
        for event in self._node_events.get(name, ()):
            at = moments.of(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"))
            if at is not None and start <= at <= end:
                what = f"{event['reason']}: {shapes.text(event.get('message'))[:200]}"
                evidence = shapes.text(shapes.metadata(event).get("name"))
                found.append(_entry("event", moments.text(at), what, fatal=False, evidence=evidence))
        return found

    def _reboots(self, name: str, node: Mapping, start: float, end: float, now: float) -> list[dict]:
        """Two boots seen one after the other, both after the attempt had begun."""
        seen = [(moments.of(gate.get("since")), gate.get("bootId")) for gate in shapes.listed(self._gates.get(name))]
        known = shapes.mapping(self._known.get(name))
        if not known.get("uid") or not node["uid"] or known["uid"] == node["uid"]:
            seen += [(moments.of(one.get("at")), one.get("bootId")) for one in shapes.listed(known.get("boots"))]
        seen += [(at, shapes.spec(event).get("bootId")) for at, event in self._events.get(name, ())]
        dated = sorted(
            (at, boot)
            for at, boot in seen
            if at is not None and isinstance(boot, str) and boot and not boot.startswith("before:") and at >= start
        )
        if node["bootId"]:
            dated.append((now, node["bootId"]))
        for (_at, boot), (then, other) in itertools.pairwise(dated):
            if boot != other and then <= end:
                what = f"Rebooted: boot {boot} was over by then, and {other} ran"
                return [_entry("event", moments.text(then), what, fatal=False)]
        return []


def node(name: str, raw: Mapping | None, since: float | None, domain: str = "") -> dict:
    """{name, uid, bootId, created, ready: "True" | "False" | "Unknown", readySince, readyReason, pressure, domain,
    gone, replaced}. since: when the attempt's pod came to it. replaced: the node of that name came later."""
    info = shapes.mapping(shapes.status(raw).get("nodeInfo"))
    created = shapes.text(shapes.metadata(raw).get("creationTimestamp"))
    made = moments.of(created)
    conditions = {shapes.text(each.get("type")): each for each in shapes.listed(shapes.status(raw).get("conditions"))}
    ready = shapes.mapping(conditions.get("Ready"))
    return {
        "name": name,
        "uid": shapes.text(shapes.metadata(raw).get("uid")),
        "bootId": shapes.text(info.get("bootID")),
        "created": created,
        "ready": ready.get("status") if ready.get("status") in ("True", "False") else "Unknown",
        "readySince": shapes.text(ready.get("lastTransitionTime")),
        "readyReason": shapes.text(ready.get("reason")),
        "pressure": [(kind, conditions[kind]) for kind in _PRESSURE if _is_true(conditions.get(kind))],
        "domain": domain,
        "gone": raw is None,
        "replaced": made is not None and since is not None and made > since + _SLACK,
    }


def _is_true(condition: object) -> bool:
    return shapes.mapping(condition).get("status") == "True"


def _event_time(spec: Mapping) -> float | None:
    """When it happened. An observer whose clock is ahead cannot have seen what was not yet received."""
    happened, received = moments.of(spec.get("generatedTimestamp")), moments.of(spec.get("receivedTimestamp"))
    return received if happened is None or (received is not None and received < happened) else happened


def _entities(spec: Mapping) -> frozenset[tuple[str, str]]:
    told = shapes.listed(spec.get("entitiesImpacted"))
    return frozenset((str(each.get("entityType")), str(each.get("entityValue"))) for each in told)


def _words(spec: Mapping) -> str:
    told = spec.get("errorCode")
    codes = ", ".join(str(code) for code in told) if isinstance(told, list) else ""
    devices = [f"{kind} {value}" for kind, value in sorted(_entities(spec))]
    first = " ".join(part for part in (shapes.text(spec.get("checkName")), codes) if part)
    where = f" ({', '.join(devices[:4])})" if devices else ""
    message = shapes.text(spec.get("message"))[:200]
    return f"{first}{where}{': ' + message if message else ''}"


def _entry(source: str, at: str, what: str, fatal: bool, evidence: str = "") -> dict:
    return {"source": source, "at": at, "what": what, "fatal": fatal, "evidence": evidence}


def _gone(node: Mapping, start: float) -> dict:
    if node["gone"]:
        return _entry("gone", "", "there is no such node any more", fatal=True)
    return _entry("gone", node["created"], "another node has this name now", fatal=True)


def _conditions(node: Mapping, start: float, end: float) -> list[dict]:
    told = []
    if node["uid"] and node["ready"] != "True":
        told.append((f"Ready is {node['ready']}: {node['readyReason'] or 'no reason told'}", node["readySince"]))
    for kind, condition in node["pressure"]:
        told.append(
            (f"{kind}: {shapes.text(condition.get('reason'))}", shapes.text(condition.get("lastTransitionTime")))
        )
    found = []
    for what, at in told:
        moment = moments.of(at)
        if moment is not None and moment > end:
            continue
        # that a node does not answer is no proof against it: fatal is only what a machine cannot run with
        entry = _entry("condition", at, what, fatal=False)
        found.append({**entry, "before": True} if moment is not None and moment < start else entry)
    return found


def _bounded(found: list[dict]) -> list[dict]:
    found.sort(key=lambda each: (each["at"], each["source"]))
    if len(found) <= LIMIT:
        return found
    kept = sorted(found, key=lambda each: (each["source"] == "event", not each["fatal"], bool(each.get("before"))))
    more = _entry("event", found[-1]["at"], f"and {len(found) - LIMIT} more reports", fatal=False)
    return [*sorted(kept[:LIMIT], key=lambda each: (each["at"], each["source"])), more]
