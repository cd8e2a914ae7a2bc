"""A small fleet under repair, in memory: nodes with gates, the ledger, a store, and runs that may die anywhere.

world = World("gpu-1")
world.close("gpu-1", fault="xid-79", action="RESTART_BM")
world.step()                                     # a run: decide, carry out
world.step(drained=["gpu-1"])["execute"]         # attempts that are to be made now
"""

from __future__ import annotations

import copy
import uuid
from datetime import UTC, datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    budget,
    repair,
    repair_run,
    repair_step,
    requests,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict

START = datetime(2026, 3, 6, 9, 0, tzinfo=UTC)
TESTS = [{"domain": "communication", "variant": "nccl-loopback-nvswitch"}]
EXECUTORS = {"reset": "ssh", "reboot": "ssh", "replace": "hook", "ticket": "webhook"}
BOUNDS = budget.Bounds(between=0, per_domain=8)


class Killed(Exception):
    """The run ends here."""


class Store:
    """As the real ones: one document of a name, statuses only where the document is as it was read."""

    def __init__(self):
        self.docs: dict[str, dict] = {}
        self.writes = 0
        self.fuse = -1  # writes until the run is killed, before one of them; negative: never

    def _spend(self) -> None:
        if self.fuse == 0:
            raise Killed
        self.fuse -= 1
        self.writes += 1

    def create(self, doc: dict) -> bool:
        self._spend()
        check(doc)
        name = doc["metadata"]["name"]
        if name in self.docs:
            if self.docs[name]["spec"] != doc["spec"]:
                raise Conflict(f"there is another {name}")
            return False
        self.docs[name] = {**copy.deepcopy(doc), "metadata": {**doc["metadata"], "resourceVersion": "0"}}
        return True

    def write_status(self, doc: dict, status: dict) -> dict:
        self._spend()
        there = self.docs.get(doc["metadata"]["name"])
        if there is None or there["metadata"]["resourceVersion"] != doc["metadata"]["resourceVersion"]:
            raise Conflict("changed since it was read")
        metadata = {**there["metadata"], "resourceVersion": str(int(there["metadata"]["resourceVersion"]) + 1)}
        written = {**there, "metadata": metadata, "status": copy.deepcopy(status)}
        check(written)
        self.docs[doc["metadata"]["name"]] = written
        return copy.deepcopy(written)

    def of(self, kind: str) -> list[dict]:
        return [copy.deepcopy(doc) for doc in self.docs.values() if doc["kind"] == kind]


def check(doc: dict) -> None:
    """Against the schema, without what a store adds."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "resourceVersion"}
    schema.check(yamltree.Document({**doc, "metadata": metadata}, {}, "document"), doc["kind"])


class World:
    def __init__(self, *names: str, domain: str = "rack=1", **policy):
        self.now = START
        self.store, self.ledger, self.nodes = Store(), [], {}
        self.policy = repair_step.Policy(**{"tests": TESTS, "executors": EXECUTORS, "bounds": BOUNDS, **policy})
        self.released: list[str] = []
        for name in names:
            self.join(name, domain)

    # what happens to nodes

    def join(self, name: str, domain: str = "rack=1") -> None:
        self.nodes[name] = {
            "name": name,
            "uid": str(uuid.uuid4()),
            "bootId": str(uuid.uuid4()),
            "ready": True,
            "domain": domain,
            "gates": [],
            "external": [],
            "address": "10.0.0.1",
            "providerId": f"metal://{name}",
            "machineId": "m-1",
            "systemUUID": f"s-{name}",
            "noRepair": False,
        }

    def boot(self, name: str, ready: bool = True) -> None:
        self.nodes[name].update(bootId=str(uuid.uuid4()), ready=ready)

    def close(self, name: str, owner: str = "quarantine", evidence: str = "", **about: str) -> None:
        evidence = evidence or uuid.uuid4().hex[:16]
        gate = {"owner": owner, "since": self.stamp(), "evidence": evidence, "readable": True, "reason": "broken"}
        gate |= {"fault": "xid-79", "action": "RESTART_BM", "entity": "", "rule": "fatal", **about}
        self.open(name, owner)
        self.nodes[name]["gates"].append(gate)
        if owner == "quarantine":
            self.ledger.append({"node": name, "owner": owner, "evidence": evidence, "at": self.stamp(), "held": True})

    def again(self, name: str) -> None:
        """The fault is seen while the gate stands."""
        self.ledger[-1 - [each["node"] for each in self.ledger[::-1]].index(name)]["seen"] = self.stamp()

    def open(self, name: str, owner: str) -> None:
        self.nodes[name]["gates"] = [each for each in self.nodes[name]["gates"] if each["owner"] != owner]

    def gate(self, name: str, owner: str) -> dict | None:
        return next((each for each in self.nodes[name]["gates"] if each["owner"] == owner), None)

    def validated(self, name: str, phase: str) -> None:
        """The node's open ValidationRequest comes to its end."""
        for doc in self.store.docs.values():
            if doc["kind"] == "ValidationRequest" and requests.is_open(doc):
                if [each["name"] for each in doc["spec"]["nodes"]] != [name]:
                    continue
                over = "Failed" if phase == "Failed" else "Succeeded"
                entry = {"name": name, "uid": self.nodes[name]["uid"], "phase": phase, "why": "busBandwidthGBps"}
                doc["status"] = {"phase": over, "nodes": [entry]}
                if phase == "Opened":
                    self.open(name, "validation")

    # runs

    def stamp(self) -> str:
        return self.now.strftime(repair_step.STAMP)

    def later(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    def decide(self, drained=(), outcomes=()) -> repair.Decision:
        return repair.decide(
            copy.deepcopy(self.nodes),
            self.ledger,
            self.store.of("RepairRequest"),
            self.store.of("ValidationRequest"),
            outcomes,
            [{"node": each} if isinstance(each, str) else each for each in drained],
            self.policy,
            self.now,
        )

    def carry_out(self, decision: repair.Decision, mode: str = "enforce") -> dict:
        hands = repair_run.Hands(
            store=self.store,
            look=lambda names: {name: self.nodes[name] for name in names if name in self.nodes},
            hold=self._hold,
            release=self._release,
            newest_faults=lambda: repair_step.newest_faults(self.ledger, self.now),
            crowded=self._crowded,
            now=self.now,
        )
        return repair_run.carry_out(decision, hands, mode)

    def step(self, drained=(), outcomes=(), mode: str = "enforce", seconds: int = 1) -> dict:
        found = self.carry_out(self.decide(drained, outcomes), mode)
        self.later(seconds)
        return found

    def _crowded(self) -> bool:
        return repair.crowded(self.store.of("RepairRequest"), self.nodes, self.policy, self.now)

    def _hold(self, wants: list[dict]) -> list[dict]:
        """As the gates' room: refused for another node or boot."""
        results = []
        for want in wants:
            self.store._spend()
            fits = all(want[part] == self.nodes[want["node"]][part] for part in ("uid", "bootId"))
            results.append({"node": want["node"], "status": "held" if fits else "refused", "reason": "stale"})
            if fits:
                since = (self.gate(want["node"], want["owner"]) or {}).get("since") or self.stamp()
                self.close(want["node"], want["owner"], want["evidence"], fault="", action="")
                self.gate(want["node"], want["owner"])["since"] = since
        return results

    def _release(self, wants: list[dict]) -> list[dict]:
        """As the gates' room: refused for another node, boot or evidence."""
        results = []
        for want in wants:
            self.store._spend()
            node, gate = self.nodes[want["node"]], self.gate(want["node"], want["owner"])
            fits = all(want[part] == node[part] for part in ("uid", "bootId"))
            status = "unchanged" if gate is None else "refused"
            if gate is not None and fits and gate["evidence"] == want["evidence"]:
                assert self.gate(want["node"], "validation"), "opened without validation"
                self.open(want["node"], want["owner"])
                self.released.append(want["node"])
                status = "released"
            results.append({"node": want["node"], "status": status, "reason": "stale"})
        return results

    # what is written down

    def request(self, name: str | None = None) -> dict:
        """The newest RepairRequest."""
        docs = [doc for doc in self.store.of("RepairRequest") if name in (None, doc["spec"]["node"]["name"])]
        return docs[-1]

    def phase(self) -> str:
        return (self.request().get("status") or {}).get("phase", "Open")


def outcome(entry: dict, executed: bool | None = True, **more) -> dict:
    """What an executor says of an attempt."""
    return {**{key: entry[key] for key in ("request", "rung", "key")}, "executed": executed, **more}
