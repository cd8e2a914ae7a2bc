"""Whatever is killed, told, lost or repeated, in any order: what repair must never do."""

from __future__ import annotations

import random

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget

from tests.unit.lifecycle.repairing import Killed, World, outcome

NODES = ("gpu-1", "gpu-2", "gpu-3")
FAULTS = (("xid-48", "COMPONENT_RESET"), ("xid-79", "RESTART_BM"), ("xid-74", "CONTACT_SUPPORT"), ("xid-13", "NONE"))
BOUNDS = budget.Bounds(per_fault=2, per_node=3, between=60, parallel=2, per_domain=1)


class Chaos:
    """Random events and runs on one world, some runs with an old view, some killed before one of their writes."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.world = World(bounds=BOUNDS, on_validation_failure="reboot")
        for index, name in enumerate(NODES):
            self.world.join(name, f"rack={index // 2}")
        self.made: list[dict] = []  # attempts that were handed out
        self.told: list[dict] = []  # outcomes, to be told once more or too late

    def run(self, moves: int) -> None:
        for _move in range(moves):
            self.random.choice([self.fault, self.boot, self.executor, self.step, self.step, self.step, self.validate])()
            if self.random.random() < 0.05:
                self.world.open(self.random.choice(NODES), "quarantine")
            if self.random.random() < 0.02:
                self.world.join(name := self.random.choice(NODES), self.world.nodes[name]["domain"])
            self.world.later(self.random.choice([1, 30, 600, 4000]))
            self.check()

    def fault(self) -> None:
        name, (code, action) = self.random.choice(NODES), self.random.choice(FAULTS)
        if self.world.gate(name, "quarantine") is None:
            self.world.close(name, fault=code, action=action)
        elif any(each["node"] == name for each in self.world.ledger):
            self.world.again(name)

    def boot(self) -> None:
        self.world.boot(self.random.choice(NODES), ready=self.random.random() < 0.8)

    def executor(self) -> None:
        if self.made:
            entry = self.random.choice(self.made)
            said = {"executed": self.random.choice([True, True, False, None]), "verified": self.random.random() < 0.5}
            self.told.append(outcome(entry, **said))

    def validate(self) -> None:
        self.world.validated(self.random.choice(NODES), self.random.choice(["Opened", "Failed"]))

    def step(self) -> None:
        drained = [name for name in NODES if self.random.random() < 0.7]
        outcomes = [each for each in self.told if self.random.random() < 0.7]
        decisions = [self.world.decide(drained, outcomes)]
        if self.random.random() < 0.3:  # another run, on the same view
            decisions.append(self.world.decide(drained, []))
        for decision in decisions:
            if self.random.random() < 0.3:
                self.world.store.fuse = self.random.randrange(4)
            try:
                found = self.world.carry_out(decision)
                self.made += found["execute"] + [{**each, "rung": "ticket"} for each in found["tickets"]]
            except Killed:
                pass
            self.world.store.fuse = -1

    def check(self) -> None:
        keys = [each["key"] for each in self.made if each["rung"] != "ticket"]
        assert len(keys) == len(set(keys)), "an attempt was handed out twice"
        docs = self.world.store.of("RepairRequest")
        for uid, attempts in budget.history(docs).items():
            recent = [each for each in attempts if (self.world.now - each.at).total_seconds() < BOUNDS.window]
            assert len(recent) <= BOUNDS.per_node, uid
            for fault in {each.fault for each in recent}:
                same = [each.rung for each in recent if each.fault == fault]
                assert len(same) <= BOUNDS.per_fault
                assert all(same.count(rung) <= BOUNDS.attempts[rung] for rung in same)
        for doc in docs:
            for attempt in (doc.get("status") or {}).get("attempts") or ():
                assert not attempt.get("validated") or attempt["verified"]
                assert attempt["rung"] != "reboot" or not attempt["verified"] or attempt["executed"]


@pytest.mark.parametrize("seed", range(30))
def test_no_order_of_events_breaks_the_budget_or_opens_a_gate_unproven(seed):
    # that a gate is released only under validation's, and on what it stands for, is asserted where the world releases
    chaos = Chaos(seed)
    chaos.run(120)
    assert chaos.made


@pytest.mark.parametrize("seed", range(30))
def test_what_was_killed_comes_to_its_end_once_it_is_left_alone(seed):
    """Runs that are killed one after the other, then runs that are not: every request ends, no node is forgotten."""
    chaos = Chaos(1000 + seed)
    chaos.run(60)
    world = chaos.world
    for _run in range(80):
        world.later(700)
        for name in NODES:
            world.nodes[name]["ready"] = True
            world.validated(name, "Opened")
        found = world.step(drained=NODES)
        tickets = [{**each, "rung": "ticket"} for each in found["tickets"]]
        world.step(outcomes=[outcome(each) for each in tickets])
        for entry in found["execute"]:
            if entry["rung"] == "reboot":
                world.boot(entry["node"])
    over = ("Closed", "Withdrawn", "Exhausted")
    assert {doc["status"]["phase"] for doc in world.store.of("RepairRequest")} <= set(over)
    held = {doc["spec"]["node"]["uid"] for doc in world.store.of("RepairRequest") if doc["status"]["phase"] == over[2]}
    for node in world.nodes.values():
        assert not node["gates"] or node["uid"] in held, "closed, and nobody has to act"
