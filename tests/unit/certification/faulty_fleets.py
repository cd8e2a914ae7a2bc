"""Fleets with known faults, and a launcher that runs the tests which the search asks for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import combinations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import plan


@dataclass
class FaultyFleet:
    """`bad`, `links` (pairs), `uplinks` (domains) always fail; `nics` only towards other domains, `flaky` at a rate."""

    nodes: list
    bad: set = field(default_factory=set)
    nics: set = field(default_factory=set)
    links: set = field(default_factory=set)
    uplinks: set = field(default_factory=set)
    flaky: dict = field(default_factory=dict)
    errors: set = field(default_factory=set)
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self):
        self.domain = {node["name"]: node.get("domain") for node in self.nodes}
        self.names = list(self.domain)

    def outcome(self, group: list[str]) -> str:
        members = set(group)
        domains = {self.domain[name] for name in group}
        # every coin is thrown, so that runs with the same seed stay the same
        came = [name for name in sorted(members & set(self.flaky)) if self.rng.random() < self.flaky[name]]
        if members & self.errors:
            return "error"
        if members & self.bad or came or any(members >= set(link) for link in self.links):
            return "fail"
        if len(domains) > 1 and (members & self.nics or domains & self.uplinks):
            return "fail"
        return "pass"


@dataclass
class Launcher:
    """Runs what is asked for; `finish` of the running tests end each time (None: all of them)."""

    fleet: FaultyFleet
    options: dict = field(default_factory=dict)
    results: list = field(default_factory=list)
    finish: int | None = None
    signature: str | None = None
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    running: list = field(default_factory=list)
    rounds: int = 0

    def step(self) -> dict:
        return plan.advance(self.fleet.nodes, self.results, self.options, busy=[test["group"] for test in self.running])

    def run(self, until=None, limit: int = 5000) -> dict:
        for _turn in range(limit):
            step = self.step()
            self.check(step)
            if step["verdict"] or (until and until(step)):
                return step["verdict"] or step["progress"]
            self.running += step["tests"]
            self.rounds += 1
            count = len(self.running) if self.finish is None else min(self.finish, len(self.running))
            for _test in range(count):
                test = self.running.pop(self.rng.randrange(len(self.running)) if self.finish else 0)
                outcome = self.fleet.outcome(test["group"])
                said = {"signature": self.signature} if self.signature and outcome != "pass" else {}
                self.results.append({**test, "outcome": outcome, **said})
        raise AssertionError(f"no verdict after {limit} turns")

    def check(self, step: dict) -> None:
        """What holds at every moment."""
        groups = [test["group"] for test in [*self.running, *step["tests"]]]
        names = [name for group in groups for name in group]
        assert len(names) == len(set(names)), "a node in two tests at once"
        assert len(names) <= self.options.get("max_nodes", len(names))
        total = len(self.results) + len(groups)
        assert total <= self.options.get("max_tests", total)
        least = self.options.get("min_size", 1 if self.options.get("mode") == "diagnostics" else 2)
        assert all(len(group) >= least for group in groups)
        assert step["verdict"] is None or not groups
        assert step["tests"] or step["verdict"] or self.running, "neither a test nor a verdict, and nothing runs"


def random_fleet(seed: int, sizes: tuple[int, int] = (4, 256), flaky: bool = True) -> FaultyFleet:
    """0 to 5 bad nodes, 0 to 2 bad links between good nodes and now and then flaky nodes, so few that most work."""
    rng = random.Random(seed)
    count = min(max(int(2 ** rng.uniform(2, 8.01)), sizes[0]), sizes[1])
    racks = rng.choice([None, None, 4, 8, 18])
    nodes = [
        {"name": f"gpu-{number:04d}", **({"domain": f"rack-{number // racks:02d}"} if racks else {})}
        for number in range(count)
    ]
    names = [node["name"] for node in nodes]
    rng.shuffle(names)
    bad = set(names[: min(rng.randrange(6), count // 4)])
    good = sorted(set(names) - bad)
    comes = rng.sample(good, 1) if flaky and count >= 12 and rng.random() < 0.3 else []
    solid = [name for name in good if name not in comes]
    links = set(rng.sample(sorted(combinations(solid, 2)), min(rng.randrange(3), max(len(solid) - 4, 0))))
    rates = {name: rng.choice([0.3, 0.5, 0.7]) for name in comes}
    return FaultyFleet(nodes, bad=bad, links=links, flaky=rates, rng=random.Random(seed))
