"""What each kind of fault is called: racks, uplinks, NICs, links, services, tools; in every mode."""

from __future__ import annotations

import pytest

from tests.unit.certification.faulty_fleets import FaultyFleet, Launcher


def racks(count: int, size: int) -> list[dict]:
    return [{"name": f"r{rack}n{node:02d}", "domain": f"r{rack}"} for rack in range(count) for node in range(size)]


def plain(count: int) -> list[dict]:
    return [{"name": f"n{node:03d}"} for node in range(count)]


def rack(number: int, size: int = 8) -> set[str]:
    return {f"r{number}n{node:02d}" for node in range(size)}


def found(verdict: dict) -> dict:
    """The findings that there are, short."""
    told = {
        "bad": {item["node"]: item["scope"] for item in verdict["bad"]},
        "pairs": {(item["a"], item["b"]) for item in verdict["badPairs"]},
        "domains": {(item["domain"], item["kind"]) for item in verdict["badDomains"]},
        "flaky": {item["node"] for item in verdict["flaky"]},
        "suspicions": [item["kind"] for item in verdict["suspicions"]],
        "unknown": {item["node"] for item in verdict["unknown"]},
        "unexplained": verdict["unexplained"],
    }
    return {key: value for key, value in told.items() if value}


def anywhere(names: set[str]) -> dict:
    return dict.fromkeys(names, "any")


CASES = {
    "healthy": (FaultyFleet(racks(4, 8)), {}, {}),
    "a whole rack": (
        FaultyFleet(racks(4, 8), bad=rack(1)),
        {},
        {"bad": anywhere(rack(1)), "domains": {("r1", "nodes")}},
    ),
    "two racks and a node": (
        FaultyFleet(racks(6, 8), bad=rack(1) | rack(4) | {"r0n03"}),
        {},
        {"bad": anywhere(rack(1) | rack(4) | {"r0n03"}), "domains": {("r1", "nodes"), ("r4", "nodes")}},
    ),
    # the other rack never talked to a third: it may be the way between them
    "a rack of two": (FaultyFleet(racks(2, 8), bad=rack(1)), {}, {"domains": {("r1", "unreached")}}),
    "an uplink": (FaultyFleet(racks(4, 8), uplinks={"r2"}), {}, {"domains": {("r2", "uplink")}}),
    "an uplink and nodes": (
        FaultyFleet(racks(5, 8), uplinks={"r2"}, bad={"r1n03", "r2n05"}),
        {},
        {"bad": anywhere({"r1n03", "r2n05"}), "domains": {("r2", "uplink")}},
    ),
    "an uplink and a link behind it": (
        FaultyFleet(racks(6, 4), uplinks={"r5"}, links={("r5n02", "r5n03")}),
        {},
        {"pairs": {("r5n02", "r5n03")}, "domains": {("r5", "uplink")}},
    ),
    "a rack and a node without answers": (
        FaultyFleet(racks(4, 6), bad=rack(2, 6) - {"r2n00"}, errors={"r2n00"}),
        {},
        {"bad": anywhere(rack(2, 6) - {"r2n00"}), "unknown": {"r2n00"}},
    ),
    "no fabric": (
        FaultyFleet(racks(4, 8), uplinks={"r0", "r1", "r2", "r3"}, bad={"r3n04"}),
        {},
        {"bad": {"r3n04": "any"}, "suspicions": ["fabric"]},
    ),
    # these pass in their own NVLink domain
    "NICs": (
        FaultyFleet(racks(14, 18), nics={"r2n05", "r3n01", "r2n06", "r0n00"}, bad={"r8n01"}),
        {},
        {"bad": {"r0n00": "across", "r2n05": "across", "r2n06": "across", "r3n01": "across", "r8n01": "any"}},
    ),
    "a link in a rack": (FaultyFleet(racks(4, 8), links={("r1n01", "r1n04")}), {}, {"pairs": {("r1n01", "r1n04")}}),
    "a link between racks": (
        FaultyFleet(racks(4, 18), links={("r0n01", "r3n02")}),
        {},
        {"pairs": {("r0n01", "r3n02")}},
    ),
    "all links between two racks": (
        FaultyFleet(racks(6, 6), links={(a, b) for a in rack(0, 6) for b in rack(3, 6)}),
        {},
        {"domains": {("r0", "link")}},
    ),
    "two links of one node": (
        FaultyFleet(plain(32), links={("n004", "n009"), ("n004", "n025")}),
        {},
        {"pairs": {("n004", "n009"), ("n004", "n025")}},
    ),
    "a link in the group of a bad node": (
        FaultyFleet(plain(64), bad={"n017"}, links={("n018", "n020")}),
        {},
        {"bad": {"n017": "any"}, "pairs": {("n018", "n020")}},
    ),
    "half of all": (
        FaultyFleet(plain(32), bad={f"n{number:03d}" for number in range(0, 32, 2)}),
        {},
        {"bad": anywhere({f"n{number:03d}" for number in range(0, 32, 2)})},
    ),
    "one of four in each group": (FaultyFleet(plain(4), bad={"n000", "n002"}), {}, {"bad": anywhere({"n000", "n002"})}),
    # nothing to hold them against: no node is named
    "three of four": (
        FaultyFleet(plain(4), bad={"n000", "n001", "n002"}),
        {},
        {"suspicions": ["service"], "unknown": {f"n{number:03d}" for number in range(4)}},
    ),
    "everything": (
        FaultyFleet(plain(48), bad={f"n{number:03d}" for number in range(48)}),
        {},
        {"suspicions": ["service"], "unknown": {f"n{number:03d}" for number in range(48)}},
    ),
    "the tool": (
        FaultyFleet(plain(16), errors={f"n{number:03d}" for number in range(16)}),
        {},
        {"suspicions": ["infrastructure"], "unknown": {f"n{number:03d}" for number in range(16)}},
    ),
    "a node on which the tool does not start": (
        FaultyFleet(plain(32), bad={"n009"}, errors={"n007"}),
        {},
        {"bad": {"n009": "any"}, "unknown": {"n007"}},
    ),
    "nodes alone": (FaultyFleet(plain(20), bad={"n003"}), {"mode": "diagnostics"}, {"bad": {"n003": "any"}}),
    "all nodes alone": (
        FaultyFleet(plain(8), bad={f"n{number:03d}" for number in range(8)}),
        {"mode": "diagnostics"},
        {"suspicions": ["service"], "unknown": {f"n{number:03d}" for number in range(8)}},
    ),
    "one node alone": (FaultyFleet(plain(1), bad={"n000"}), {"mode": "diagnostics"}, {"bad": {"n000": "any"}}),
    "one node": (FaultyFleet(plain(1)), {}, {"unknown": {"n000"}}),
    "groups of four at least": (
        FaultyFleet(plain(64), bad={"n003", "n004"}, links={("n010", "n020")}),
        {"min_size": 4},
        {"bad": anywhere({"n003", "n004"}), "pairs": {("n010", "n020")}},
    ),
    "only some sizes": (
        FaultyFleet(plain(67), bad={"n003", "n066"}, links={("n010", "n020")}),
        {"sizes": [2, 4, 8], "links": "all"},
        {"bad": anywhere({"n003", "n066"}), "pairs": {("n010", "n020")}},
    ),
    "few at once": (FaultyFleet(plain(32), bad={"n003"}), {"max_nodes": 6}, {"bad": {"n003": "any"}}),
}


@pytest.mark.parametrize("name", CASES)
def test_fault_is_called_what_it_is(name):
    fleet, options, expected = CASES[name]
    launcher = Launcher(fleet, options)
    verdict = launcher.run()
    assert found(verdict) == expected
    assert verdict["green"] == (not expected)
    sizes = {len(test["group"]) for test in launcher.results}
    assert sizes <= set(options.get("sizes", sizes))
    assert not verdict["budgetExhausted"]


def test_a_node_alone_never_tells_about_its_nic():
    """Whatever is split, two nodes at least are in each test of a communication."""
    launcher = Launcher(FaultyFleet(plain(7), bad={"n006"}))
    launcher.run()
    assert min(len(test["group"]) for test in launcher.results) == 2


def test_a_transient_failure_blames_nobody_yet_is_not_green():
    names = [node["name"] for node in plain(9)]
    launcher = Launcher(FaultyFleet(plain(9)), results=[{"group": names[:3], "outcome": "hang", "repeat": 1}])
    verdict = launcher.run()
    assert not verdict["bad"] and not verdict["badPairs"] and not verdict["green"]
    (flaky,) = verdict["flaky"]
    assert flaky["nodes"] == names[:3] and flaky["failed"] == 1 and flaky["passed"] > 0
    assert {item["node"] for item in verdict["unknown"]} == set(names[:3])


def test_a_flaky_node_is_named_when_it_shows():
    """Passes and fails alike, again and again, with different partners."""
    named = 0
    for seed in range(12):
        fleet = FaultyFleet(plain(16), flaky={"n005": 0.6})
        fleet.rng.seed(seed)
        launcher = Launcher(fleet)
        verdict = launcher.run()
        assert {item["node"] for item in verdict["bad"]} <= {"n005"}
        showed = any(test["outcome"] == "fail" for test in launcher.results)
        assert verdict["green"] != showed
        assert not showed or "n005" not in verdict["cleared"] or verdict["badPairs"] or verdict["unexplained"]
        named += bool(verdict["bad"]) or any(item.get("node") == "n005" for item in verdict["flaky"])
    assert named >= 6


def test_a_flaky_node_alone():
    results = [{"group": ["n001"], "outcome": outcome} for outcome in ("fail", "pass")]
    verdict = Launcher(FaultyFleet(plain(4)), {"mode": "diagnostics"}, results=results).run()
    assert found(verdict) == {"flaky": {"n001"}}


def test_a_fault_in_the_whole_that_no_two_nodes_show_is_not_green():
    fleet = FaultyFleet(plain(9))
    names = fleet.names
    outcome = fleet.outcome
    fleet.outcome = lambda group: "fail" if len(group) == len(names) else outcome(group)
    verdict = Launcher(fleet).run()
    assert not verdict["bad"] and not verdict["badPairs"] and not verdict["green"]
    assert [item["nodes"] for item in verdict["unexplained"]] == [names]
    assert "every two of its nodes work together" in verdict["unexplained"][0]["why"]


def test_service_fault_says_what_all_have_in_common():
    fleet = FaultyFleet(plain(4), bad=set(FaultyFleet(plain(4)).names))
    launcher = Launcher(fleet, signature="system not yet initialized (802)")
    (suspicion,) = launcher.run()["suspicions"]
    assert "all of them: system not yet initialized (802)" in suspicion["message"]
