"""What is taken out, what is not, and what is said about it."""

from __future__ import annotations

import random

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.decide import admission, decide, entries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import made

HOUR = 60


def well(node: str = "n0", minutes: float = 1, **spec) -> dict:
    base = {"isFatal": False, "isHealthy": True, "state": "healthy", "recommendedAction": "NONE", "severity": "info"}
    return made.event(node, None, minutes, **{**base, **spec})


def pci(*values: str) -> list[dict]:
    return [{"entityType": "PCI", "entityValue": value} for value in values]


def made_of(kind: str, value: str) -> dict:
    return {"entityType": kind, "entityValue": value}


def why(decision: dict, part: str = "ignored") -> str:
    (one,) = decision[part]
    return one["why"]


def test_a_fatal_event_closes_one_gate_and_says_all_about_it():
    rule = made.rule(gate={"reason": "fatal GPU", "taint": {"key": "nvidia.com/gpu-error", "effect": "NoSchedule"}})
    event = made.event(name="e1", message="Xid 79, fell off the bus")
    policy = made.policy(rule)
    decision = decide(policy, [event], made.nodes(2, "rack-1"), [], made.NOW)
    assert decision["gates"] == [
        {
            "node": "n0",
            "owner": "quarantine",
            "reason": "fatal GPU: Xid 79, fell off the bus",
            "rule": "fatal",
            "ruleDigest": policy.rules[0].digest,
            "evidence": "e1",
            "fault": "xid-79",
            "action": "RESTART_BM",
            "entity": "0000:01:00",
            "bootId": "boot-1",
            "since": "2026-11-29T18:00:00Z",
            "cordon": False,
            "reclose": False,
            "taint": {"key": "nvidia.com/gpu-error", "value": "", "effect": "NoSchedule"},
            "domain": f"{made.CLIQUE}=rack-1",
            "mode": "enforce",
            "incident": "e1",
        }
    ]
    assert decision["incidents"][0]["why"] == "matched by fatal"
    assert decision["counts"]["gates"] == 1 and decision["breaker"]["tripped"] is False


GPU = "GPU-9f2c7a10-6b1d-4a3e-8c55-0d1e2f3a4b5c"


@pytest.mark.parametrize(
    ("spec", "about"),
    [
        ({"pci": "0000:0f:00"}, ("xid-79", "RESTART_BM", "0000:0f:00")),
        ({"entitiesImpacted": [made_of("PCI", "0000:0f:00"), made_of("GPU_UUID", GPU)]}, ("xid-79", "RESTART_BM", GPU)),
        ({"entitiesImpacted": [made_of("GPU", "0"), made_of("GPU", "1")]}, ("xid-79", "RESTART_BM", "")),
        ({"entitiesImpacted": [made_of("NIC", "mlx5_0")]}, ("xid-79", "RESTART_BM", "")),
        ({"entitiesImpacted": [made_of("GPU", "0; reboot")]}, ("xid-79", "RESTART_BM", "")),
        ({"codeSpace": "dcgm", "code": "DCGM_FR_X", "pci": None}, ("DCGM_FR_X", "RESTART_BM", "")),
        ({"code": None, "pci": None, "checkName": "Gpu Count"}, ("Gpu-Count", "RESTART_BM", "")),
        ({"recommendedAction": "COMPONENT_RESET", "pci": None}, ("xid-79", "COMPONENT_RESET", "")),
    ],
)
def test_a_gate_says_what_is_broken_and_what_would_mend_it(spec, about):
    (closed,) = made.run([made.event(**spec)])["gates"]
    assert (closed["fault"], closed["action"], closed["entity"]) == about


# which reports count


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"node": "elsewhere"}, "another cluster's, or gone"),
        ({"bootId": "boot-0"}, "history: from boot boot-0, the node now runs boot-1"),
        ({"bootId": "before:boot-1"}, "from before the node's current boot"),
        ({"minutes": 61}, "history: came in at 2026-11-29T16:59:00Z, more than 1h ago"),
    ],
)
def test_history_and_strangers_gate_nothing(spec, words):
    decision = made.run([made.event(**spec)])
    assert decision["gates"] == [] and words in why(decision)


@pytest.mark.parametrize(
    "spec",
    [
        {"bootId": "boot-1"},
        {"bootId": "BOOT1"},
        {"bootId": None},
        {"minutes": 59},
        {"receivedTimestamp": None},
        {"minutes": -5},
        {"generatedTimestamp": made.at(600)},
    ],
)
def test_what_counts(spec):
    assert made.gated(made.run([made.event(**spec)])) == ["n0"]


def test_age_counts_from_receipt_and_where_nobody_noted_that_from_the_monitor():
    old = made.event(receivedTimestamp=None, generatedTimestamp=made.at(90))
    assert "more than 1h ago" in why(made.run([old]))


def test_a_node_without_a_known_boot_is_judged_by_age():
    assert made.gated(made.run([made.event(bootId="x")], [made.node(bootId="")])) == ["n0"]


def test_blind_is_not_sick():
    lost = made.event(code=None, isFatal=True, state="unknown", message="lost the connection to the host engine")
    decision = made.run([lost], policy_=made.policy(made.rule(expression="true"), breaker=made.open_wide()))
    assert decision["gates"] == []
    assert why(decision, "unknown") == "kernel-log could not see: lost the connection to the host engine"


@pytest.mark.parametrize("spec", [{"checkName": "GpuDcgmConnectivityFailure"}, {"metadata": {"class": "monitor"}}])
def test_nor_where_the_monitor_itself_calls_it_fatal(spec):
    lost = made.event(code="DCGM_CONNECTIVITY_ERROR", codeSpace="dcgm", agent="gpu-health-monitor", **spec)
    decision = made.run([lost])
    assert decision["gates"] == [] and "gpu-health-monitor could not see" in why(decision, "unknown")


def test_what_a_monitor_could_not_see_yesterday_is_history():
    lost = made.event(code=None, state="unknown", minutes=24 * HOUR)
    decision = made.run([lost])
    assert decision["unknown"] == [] and "history" in why(decision)


def test_the_same_report_twice_is_one():
    first, again = made.event(name="e", minutes=30), made.event(name="e", minutes=5)
    decision = made.run([again, first])
    assert made.gated(decision) == ["n0"] and why(decision) == "the same report came in before"
    assert decision["incidents"][0]["at"] == "2026-11-29T17:30:00Z"


def test_one_name_on_two_nodes_is_two_reports():
    decision = made.run([made.event("n0", name="e"), made.event("n1", name="e")])
    assert made.gated(decision) == ["n0", "n1"]


def test_blind_and_healthy_takes_nothing_back():
    blind = made.event(code=None, isHealthy=True, isFatal=False, state="unknown", minutes=1)
    assert made.gated(made.run([made.event(), blind])) == ["n0"]


# what takes a report back


@pytest.mark.parametrize(
    ("sick", "healthy", "stands"),
    [
        ({}, {}, False),
        ({}, {"entitiesImpacted": []}, False),
        ({}, {"pci": "0000:02:00"}, True),
        ({}, {"agent": "other"}, True),
        ({}, {"checkName": "other"}, True),
        ({}, {"node": "n1"}, True),
        ({}, {"minutes": 6}, True),  # before the fault
        ({}, {"minutes": 5}, True),  # at the same moment
        ({"pci": "0000:01:00.0"}, {"pci": "0:1:0"}, False),
        ({"entitiesImpacted": []}, {}, True),  # of one GPU, where no GPU was named
        ({"entitiesImpacted": []}, {"entitiesImpacted": []}, False),
        ({"entitiesImpacted": pci("0:1:0", "0:2:0")}, {"entitiesImpacted": pci("0:1:0")}, True),
        ({"entitiesImpacted": pci("0:1:0", "0:2:0")}, {"entitiesImpacted": pci("0:2:0", "0:1:0", "0:3:0")}, False),
        ({}, {"entitiesImpacted": [*pci("0000:01:00"), {"entityType": "NVLINK", "entityValue": "3"}]}, True),
        ({"entitiesImpacted": [*pci("0:1:0"), {"entityType": "NVLINK", "entityValue": "3"}]}, {}, False),
        (
            {"entitiesImpacted": [*pci("0:1:0"), {"entityType": "NVLINK", "entityValue": "3"}]},
            {"entitiesImpacted": [*pci("0:1:0"), {"entityType": "NVLINK", "entityValue": "4"}]},
            True,
        ),
        (
            {"entitiesImpacted": [*pci("0:1:0"), {"entityType": "GPU_UUID", "entityValue": "GPU-A"}]},
            {"entitiesImpacted": [{"entityType": "GPU_UUID", "entityValue": "GPU-a"}]},
            False,
        ),
    ],
)
def test_healthy_takes_back_the_same_check_of_the_same_entities(sick, healthy, stands):
    decision = made.run([made.event(**sick), well(**healthy)])
    assert made.gated(decision) == (["n0"] if stands else [])
    if not stands:
        assert why(decision).startswith("taken back by ")


def test_two_gpus_may_get_well_one_after_the_other():
    fault = made.event(entitiesImpacted=pci("0:1:0", "0:2:0"))
    parts = [well(pci="0:1:0", minutes=3), well(pci="0:2:0", minutes=2)]
    assert made.gated(made.run([fault, parts[1]])) == ["n0"]
    assert made.gated(made.run([*parts, fault])) == []


def test_a_fault_after_good_news_stands():
    assert made.gated(made.run([well(minutes=10), made.event(minutes=5)])) == ["n0"]


@pytest.mark.parametrize(("ahead", "stands"), [(5, False), (60, True), (60 * 24 * 365, True)])
def test_a_clock_far_ahead_has_not_the_last_word(ahead, stands):
    well = {"isHealthy": True, "isFatal": False, "generatedTimestamp": made.at(9 - ahead)}
    events = [made.event(minutes=9, **well), made.event(minutes=5, generatedTimestamp=made.at(5))]
    assert bool(made.run(events)["gates"]) is stands


def test_a_report_may_end_others_by_code():
    opened, closed = made.event(code="163", minutes=9), made.event(code="79", minutes=9)
    ends = made.event(code="162", isFatal=False, metadata={"clears": "163"}, minutes=5)
    decision = made.run([opened, closed, ends])
    assert [gate["evidence"] for gate in decision["gates"]] == [closed["metadata"]["name"]]
    assert [one["event"] for one in decision["ignored"]] == [opened["metadata"]["name"]]


# rules


def test_a_rule_that_cannot_be_decided_is_told_and_gates_nothing():
    decision = made.run([made.event()], policy_=made.policy(made.rule(expression="event.metadata.slot == '3'")))
    assert decision["gates"] == []
    assert decision["unknown"][0]["rule"] == "fatal"
    assert "the key 'slot' is not there; ask for it first with has() or in" in why(decision, "unknown")


def test_a_failing_rule_does_not_stop_the_others():
    rules = [made.rule("broken", "node.labels['rack'] == 'a'", priority=9), made.rule()]
    decision = made.run([made.event()], policy_=made.policy(*rules))
    assert made.gated(decision) == ["n0"] and len(decision["unknown"]) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "'79' in event.errorCode && event.errorCode.size() == 1",
        "event.entitiesImpacted.exists(e, e.entityType == 'PCI')",
        "now - timestamp(event.receivedTimestamp) < duration('6m')",
        "event.receivedTimestamp <= now && event.generatedTimestamp == event.receivedTimestamp",
        "event.metadata.?slot.orValue('none') == 'none' && !has(event.metadata.slot)",
        "event.bootId == '' && event.cause == '' && event.severity == 'error' && event.state == 'sick'",
        "event.source.line == 0",
        "node.labels['pool'] == 'a' && node.taints.size() == 0 && node.ready == 'True'",
        "node.conditions['Ready'].status == 'True' && node.gates == ['manual']",
        "domain.nodes == 3 && domain.gated == 1 && domain.sick == 1",
        "history.sameCode24h == 2 && history.sameNode24h == 3 && history.gates30d == 1",
        "event.class == '' && event.codeSpace == 'xid' && event.name.startsWith('event-')",
        "type(history.sameCode24h) == int && history.sameCode24h / 4 == 0",
    ],
)
def test_what_rules_see(expression):
    inventory = made.nodes(3, "rack")
    inventory[0].update(gates=["manual"], conditions={"Ready": {"status": "True"}})
    inventory[0]["labels"]["pool"] = "a"
    ledger = [made_entry("n0", minutes=60 * 24 * 3), made_entry("n0", minutes=60 * 24 * 31)]
    old = [made.event(minutes=20 * HOUR), made.event(code="48", minutes=20 * HOUR), made.event(minutes=25 * HOUR)]
    decision = made.run([made.event(), *old], inventory, ledger, policy_=made.policy(made.rule(expression=expression)))
    assert decision["unknown"] == [] and made.gated(decision) == ["n0"]


def made_entry(node: str, minutes: float = 10, **more) -> dict:
    base = {"node": node, "domain": "d", "owner": "quarantine", "rule": "fatal", "ruleDigest": "x", "evidence": "e"}
    return {**base, "at": made.at(minutes), **more}


def test_the_highest_priority_names_the_gate_and_owners_have_one_each():
    rules = [
        made.rule("low", priority=1),
        made.rule("high", priority=5, gate={"taint": {"key": "a", "effect": "NoExecute"}, "cordon": True}),
        made.rule("other", gate={"owner": "maintenance"}),
    ]
    decision = made.run([made.event()], policy_=made.policy(*rules))
    assert [(gate["owner"], gate["rule"]) for gate in decision["gates"]] == [
        ("quarantine", "high"),
        ("maintenance", "other"),
    ]
    assert decision["gates"][0]["cordon"] is True and decision["gates"][0]["taint"]["effect"] == "NoExecute"
    assert decision["incidents"][0]["rules"] == ["high", "low", "other"]


@pytest.mark.parametrize(
    ("policy", "rule", "mode"),
    [
        ("enforce", None, "enforce"),
        ("enforce", "observe", "observe"),
        ("enforce", "dry_run", "dry_run"),
        ("dry_run", "enforce", "dry_run"),
        ("observe", "enforce", "observe"),
    ],
)
def test_a_rule_may_be_lower_than_its_policy_and_never_higher(policy, rule, mode):
    one = made.rule(**({"mode": rule} if rule else {}))
    decision = made.run([made.event()], policy_=made.policy(one, mode=policy))
    part = "gates" if mode == "enforce" else "observed"
    assert [gate["mode"] for gate in decision[part]] == [mode]
    assert len(decision["gates"]) + len(decision["observed"]) == 1
    if part == "observed":
        assert why(decision, "observed") == f"rule fatal is in mode {mode}"


def test_watching_rules_say_what_the_breaker_would_have_said_and_do_not_use_it_up():
    events = [made.event(f"n{number}") for number in range(4)]
    rules = [made.rule("watch", mode="observe", priority=9), made.rule("act", "event.nodeName == 'n3'")]
    policy = made.policy(*rules, breaker={"fleet": {"max": 2}, "domain": {"max": 5}})
    decision = decide(policy, events, made.nodes(4), [], made.NOW)
    assert made.gated(decision) == ["n3"] and decision["breaker"]["tripped"] is False
    assert [bool(one["blocked"]) for one in decision["observed"]] == [False, True, True, False]


# what stands already


def test_a_gate_that_stands_is_not_closed_again():
    decision = made.run([made.event()], [made.node(gates=["quarantine"])])
    assert decision["gates"] == [] and why(decision, "held") == "gate quarantine stands"


@pytest.mark.parametrize(
    ("gaps", "reclose", "stands"),
    [
        ([], True, True),
        (["taint"], False, False),
        (["text"], False, False),
        (["taint", "cordon"], False, False),
        (["cordon"], False, True),
        (["cordon"], True, False),
    ],
)
def test_a_gate_that_does_not_hold_the_node_is_closed_anew(gaps, reclose, stands):
    facts = made.node(gates=["quarantine"], gaps={"quarantine": gaps} if gaps else {})
    policy = made.policy(made.rule(gate={"cordon": True, "reclose": reclose}), breaker=made.open_wide())
    decision = made.run([made.event(name="e")], [facts], [made_entry("n0", held=True)], policy_=policy)
    assert (len(decision["held"]), len(decision["gates"]), decision["released"]) == (stands, not stands, [])
    assert [gate["reclose"] for gate in decision["gates"]] == ([] if stands else [reclose])


def test_gates_of_others_do_not_count_as_ours():
    decision = made.run([made.event()], [made.node(gates=["manual"], unschedulable=True)])
    assert made.gated(decision) == ["n0"]


def test_a_gate_that_somebody_opened_stays_open_until_there_is_news():
    event = made.event(name="e")
    ledger = [made_entry("n0", held=True)]
    decision = made.run([event], ledger=ledger)
    assert decision["gates"] == [] and "somebody opened this gate" in why(decision, "released")
    told_later = made.event(name="d", code="48", minutes=11)
    assert made.run([event, told_later], ledger=ledger)["gates"] == []
    news = made.event(name="f", code="48", minutes=1)
    assert [gate["evidence"] for gate in made.run([news], ledger=ledger)["gates"]] == ["f"]
    stubborn = made.policy(made.rule(gate={"reclose": True}))
    assert made.gated(made.run([event], ledger=ledger, policy_=stubborn)) == ["n0"]


@pytest.mark.parametrize("code", ["48", "79"])
def test_a_new_fault_closes_again_beside_the_one_that_was_dealt_with(code):
    rules = [made.rule("first", "'79' in event.errorCode", priority=9), made.rule()]
    policy = made.policy(*rules, breaker=made.open_wide())
    events = [made.event(name="e", minutes=20), made.event(name="news", code=code, minutes=1)]
    decision = made.run(events, ledger=[made_entry("n0", held=True)], policy_=policy)
    assert [gate["evidence"] for gate in decision["gates"]] == ["news"]
    stood = made.run(events, ledger=[made_entry("n0", held=True, seen=made.at(1))], policy_=policy)
    assert stood["gates"] == [] and len(stood["released"]) == 1


@pytest.mark.parametrize("key", ["at", "seen"])
def test_a_ledger_that_was_written_by_a_wrong_clock_hides_no_fault(key):
    ledger = [made_entry("n0", held=True, **{key: "2099-01-01T00:00:00Z"})]
    decision = made.run([made.event(name="e", minutes=20), made.event(name="news")], ledger=ledger)
    assert [gate["evidence"] for gate in decision["gates"]] == ["news"]


def test_a_gate_that_stands_tells_the_newest_fault():
    events = [made.event(name="e", minutes=20), made.event(name="news", code="48", minutes=0.005)]
    decision = made.run(events, [made.node(gates=["quarantine"])], [made_entry("n0", held=True)])
    assert [entry["last"] for entry in decision["held"]] == ["2026-11-29T18:00:00Z"]


def test_a_run_that_died_before_it_wrote_is_done_again_on_its_own_entry():
    decision = made.run([made.event(name="e")], ledger=[made_entry("n0")], breaker={"fleet": {"max": 1}})
    assert made.gated(decision) == ["n0"] and decision["breaker"]["tripped"] is False


# the breaker


def storm(count: int, **spec) -> list[dict]:
    return [made.event(f"n{number}", name=f"e{number:04}", **spec) for number in range(count)]


def test_a_false_alarm_at_boot_stops_at_the_bound():
    inventory = [made.node(f"n{number}", f"rack-{number // 18}") for number in range(288)]
    policy = made.policy(breaker={"fleet": {"max": 20, "percent": 5}, "domain": {"label": made.CLIQUE, "max": 18}})
    decision = decide(policy, storm(288, code="DCGM_FR_NVLINK_DOWN", codeSpace="dcgm"), inventory, [], made.NOW)
    assert len(decision["gates"]) == 14 and len(decision["blocked"]) == 274
    assert decision["breaker"]["tripped"] is True
    fleet = decision["breaker"]["scopes"][0]
    assert (fleet["scope"], fleet["used"], fleet["bound"], fleet["tripped"]) == ("fleet", 14, 14, True)
    assert decision["blocked"][0]["why"] == "the breaker of the fleet is open: 14 of at most 14 nodes within 1h"
    assert {gate["rule"] for gate in decision["gates"]} == {"fatal"}


def test_a_domain_that_is_full_does_not_stop_the_others():
    inventory = made.nodes(4, "a") + [made.node(f"m{number}", "b") for number in range(4)]
    events = [*storm(4), made.event("m0")]
    policy = made.policy(breaker={"fleet": {"max": 8}, "domain": {"label": made.CLIQUE, "max": 3, "percent": 50}})
    decision = decide(policy, events, inventory, [], made.NOW)
    assert made.gated(decision) == ["m0", "n0", "n1"]
    assert {(one["node"], one["scope"], one["used"], one["bound"]) for one in decision["blocked"]} == {
        ("n2", "domain", 2, 2),
        ("n3", "domain", 2, 2),
    }
    assert decision["blocked"][0]["domain"] == f"{made.CLIQUE}=a"


def test_what_went_out_within_the_window_counts_wherever_it_is_now():
    ledger = [made_entry("n8", 59), made_entry("gone", 30), made_entry("n9", 61), made_entry("n8", 5, evidence="f")]
    policy = made.policy(breaker={"fleet": {"max": 3}, "domain": {"max": 9}})
    decision = decide(policy, storm(4), made.nodes(10), ledger, made.NOW)
    assert made.gated(decision) == ["n0"] and len(decision["blocked"]) == 3


def test_who_goes_first():
    rules = [made.rule("low"), made.rule("high", "'48' in event.errorCode", priority=9)]
    events = [
        made.event("n0", severity="error", minutes=30),
        made.event("n1", severity="error", minutes=50),
        made.event("n2", severity="fatal", minutes=20),
        made.event("n3", code="48", minutes=1),
        made.event("n4", severity="fatal", minutes=40),
    ]
    for count, nodes in enumerate((["n3"], ["n3", "n4"], ["n2", "n3", "n4"], ["n1", "n2", "n3", "n4"]), start=1):
        policy = made.policy(*rules, breaker={"fleet": {"max": count}, "domain": {"max": 1}})
        assert made.gated(decide(policy, events, made.nodes(5), [], made.NOW)) == nodes


def test_labels_of_domains_the_first_that_is_there_counts():
    inventory = [
        made.node("n0", labels={"rack": "0"}),
        made.node("n1", labels={"pool": "r1"}),
        made.node("n2", labels={"rack": "0", "pool": "p"}),
        made.node("n3"),
        made.node("n4", labels={"rack": "00000000-0000-0000-0000-000000000000.0", "pool": "q"}),
    ]
    policy = made.policy(breaker={"fleet": {"max": 9}, "domain": {"label": ["rack", "pool"], "max": 1}})
    decision = decide(policy, storm(5), inventory, [], made.NOW)
    assert [gate["domain"] for gate in decision["gates"]] == ["rack=0", "pool=r1", "node=n3", "pool=q"]


def test_the_reservation_asks_again_on_what_the_ledger_holds_by_then():
    inventory, events = made.nodes(10), storm(2)
    policy = made.policy(breaker={"fleet": {"max": 2}, "domain": {"max": 9}})
    wanted = entries(decide(policy, events, inventory, [], made.NOW))
    admit = admission(policy, inventory, made.NOW)
    assert [one["node"] for one in admit([], wanted)[0]] == ["n0", "n1"]
    admitted, blocked = admit([made_entry("n7")], wanted)
    assert [one["node"] for one in admitted] == ["n0"]
    assert blocked[0]["why"] == "the breaker of the fleet is open: 2 of at most 2 nodes within 1h"


def test_nothing_at_all():
    decision = made.run([], [])
    assert decision["gates"] == [] and decision["counts"]["events"] == 0 and decision["breaker"]["tripped"] is False


# what holds for any input

SPECS = st.fixed_dictionaries(
    {
        "node": st.sampled_from([f"n{number}" for number in range(6)] + ["elsewhere"]),
        "code": st.sampled_from(["79", "48", "45", "94", "149", "145", "13", "43", "154", "63"]),
        "minutes": st.integers(0, 70),
        "isFatal": st.booleans(),
        "isHealthy": st.sampled_from([False, False, False, True]),
        "pci": st.sampled_from(["0000:01:00", "0000:02:00", None]),
        "severity": st.sampled_from(["fatal", "error"]),
        "bootId": st.sampled_from([None, "boot-1", "boot-0", "before:boot-1"]),
    }
)
FLEETS = st.lists(SPECS, max_size=25)
BOUND = {"fleet": {"max": 3, "percent": 60}, "domain": {"label": made.CLIQUE, "max": 2}}


def fleet() -> list[dict]:
    return [made.node(f"n{number}", f"rack-{number % 2}") for number in range(6)]


def events_of(specs: list[dict]) -> list[dict]:
    return [made.event(name=f"e{number:03}", **spec) for number, spec in enumerate(specs)]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLEETS, st.randoms(use_true_random=False), st.lists(st.sampled_from(["n0", "n1", "n5", "gone"]), max_size=4))
def test_any_order_gives_the_same_and_never_more_than_the_bound(specs, shuffle, out):
    policy = made.policy(made.rule(), made.rule("memory", "event.class == 'memory'", priority=3), breaker=BOUND)
    ledger = [made_entry(node, evidence=f"old-{number}") for number, node in enumerate(out)]
    events = events_of(specs)
    decision = decide(policy, events, fleet(), ledger, made.NOW)
    nodes = {gate["node"] for gate in decision["gates"]} | set(out)
    assert len(nodes) <= max(3, len(set(out)))
    for rack in ("rack-0", "rack-1"):
        mine = {facts["name"] for facts in fleet() if facts["labels"][made.CLIQUE] == rack}
        assert len(nodes & mine) <= max(2, len(set(out) & mine))
    mixed = list(events)
    random.Random(shuffle.random()).shuffle(mixed)
    assert decide(policy, mixed, list(reversed(fleet())), ledger, made.NOW) == decision


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLEETS)
def test_twice_is_once(specs):
    policy, events = made.policy(breaker=BOUND), events_of(specs)
    decision = decide(policy, events, fleet(), [], made.NOW)
    double = decide(policy, [*events, *events], fleet(), [], made.NOW)
    assert {part: double[part] for part in ("gates", "blocked", "incidents")} == {
        part: decision[part] for part in ("gates", "blocked", "incidents")
    }
    ledger = [{**entry, "held": True} for entry in entries(decision)]
    after = fleet()
    for facts in after:
        facts["gates"] = [gate["owner"] for gate in decision["gates"] if gate["node"] == facts["name"]]
    later = decide(policy, events, after, ledger, made.NOW)
    assert later["gates"] == []
    assert {one["node"] for one in later["held"]} == {gate["node"] for gate in decision["gates"]}
