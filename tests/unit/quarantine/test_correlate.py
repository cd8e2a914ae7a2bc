"""One incident per cause, on events as the parsers write them and as other monitors do."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import policy as policies
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.decide import decide
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

from . import made

CATALOG = Path(__file__).parents[3] / "gitops/catalog"
TABLES = tables.load_catalog([str(CATALOG)])
DEFAULT = policies.load(str(CATALOG / "policies/default.yaml")).enforced()
FATAL_149 = "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000)"
XID_145 = "NVRM: Xid (PCI:0008:01:00): 145, RLW_RXPIPE {} XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001)"


def logged(*lines: str, node: str = "n0", first: float = 100.0, apart: float = 0.5) -> list[dict]:
    """Events of a kernel log of that node, in the current boot, read five minutes ago."""
    text = "\n".join(f"[{first + number * apart:.6f}] {line}" for number, line in enumerate(lines))
    context = kernel.Context(node=node, boot_id="boot-1", received=made.at(5), source="dmesg")
    return kernel.parse(text, TABLES, context)["events"]


def xid(code: int, text: str = "pid=7, name=train", pci: str = "0000:3b:00") -> str:
    return f"NVRM: Xid (PCI:{pci}): {code}, {text}"


def shipped(events: list[dict], inventory: list[dict]) -> dict:
    return decide(DEFAULT, events, inventory, [], made.NOW)


def codes(decision: dict) -> list[tuple[str, int]]:
    return [(incident["code"], len(incident["attached"])) for incident in decision["incidents"]]


@pytest.mark.parametrize("size", [18, 64])
@pytest.mark.parametrize("word", ["Fatal", "Nonfatal"])
def test_a_rack_with_one_149_is_one_sick_node(size, word):
    events = [event for number in range(size) for event in logged(XID_145.format(word), node=f"n{number}")]
    events += logged(FATAL_149, node="n7", first=101)
    events = [event for event in events if event["spec"]["nodeName"] != "n7" or event["spec"]["errorCode"] == ["149"]]
    decision = shipped(events, made.nodes(size, "rack"))
    assert made.gated(decision) == ["n7"] and codes(decision) == [("Xid 149", size - 1)]
    incident = decision["incidents"][0]
    assert incident["attachedNodes"] == sorted(f"n{number}" for number in range(size) if number != 7)


def test_a_rack_as_another_monitor_reports_it():
    plain = {"agent": "syslog-health-monitor", "codeSpace": "other"}
    events = [made.event(f"n{number}", "145", generatedTimestamp=made.at(6), **plain) for number in range(1, 64)]
    events.append(made.event("n0", "149", generatedTimestamp=made.at(5.5), **plain))
    decision = made.run(events, made.nodes(64, "rack"))
    assert made.gated(decision) == ["n0"] and len(decision["incidents"]) == 1


def test_145_of_another_rack_or_another_hour_has_its_own_cause():
    origin = made.event("n0", "149", generatedTimestamp=made.at(5))
    far = made.event("m0", "145", generatedTimestamp=made.at(5))
    late = made.event("n1", "145", generatedTimestamp=made.at(15))
    near = made.event("n2", "145", generatedTimestamp=made.at(6.9))
    decision = made.run([origin, far, late, near], [*made.nodes(3, "a"), made.node("m0", "b")])
    assert made.gated(decision) == ["m0", "n0", "n1"]


def test_a_fatal_report_yields_only_to_a_serious_one_of_a_neighbour():
    mild = made.event("n0", "149", isFatal=False)
    assert made.gated(made.run([mild, made.event("n1", "145")], made.nodes(2, "a"))) == ["n1"]


def test_what_the_driver_says_a_gpu_needs_is_not_hidden_behind_a_neighbour():
    verdict = {"class": "recovery", "overrides": "true", "consequenceOf": "*", "within": "gpu"}
    needs = made.event("n1", "154", recommendedAction="COMPONENT_RESET", metadata=verdict)
    decision = made.run([made.event("n0", "149"), made.event("n1", "145"), needs], made.nodes(3, "a"))
    assert made.gated(decision) == ["n0", "n1"] and sorted(codes(decision)) == [("Xid 149", 1), ("Xid 154", 0)]
    alone = made.run([made.event("n0", "145"), {**needs, "spec": {**needs["spec"], "nodeName": "n0"}}])
    assert codes(alone) == [("Xid 145", 1)]


@pytest.mark.parametrize(("clique", "gated"), [("", ["n0"]), ("00000000-0000-0000-0000-000000000000.0", ["n0", "n1"])])
def test_a_rack_of_nodes_without_a_fabric_is_no_domain(clique, gated):
    labels = {"topology.kubernetes.io/rack": "r1", **({made.CLIQUE: clique} if clique else {})}
    inventory = [made.node(f"n{number}", labels=labels) for number in range(4)]
    decision = made.run([made.event("n0", "149"), made.event("n1", "145")], inventory)
    assert made.gated(decision) == gated
    assert {gate["domain"] for gate in decision["gates"]} == {"topology.kubernetes.io/rack=r1"}


def test_links_within_a_node_are_not_broken_by_another_node():
    for marks in ({}, {"metadata": {"class": "link", "consequenceOf": "79", "within": "node"}}):
        decision = made.run([made.event("n0", "79"), made.event("n1", "74", **marks)], made.nodes(4, "rack"))
        assert made.gated(decision) == ["n0", "n1"]
        decision = made.run([made.event("n0", "79"), made.event("n0", "74", pci="0000:02:00", **marks)])
        assert codes(decision) == [("Xid 79", 1)]
    line = xid(74, "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 6(0x10000, 0x0)")
    decision = shipped([*logged(xid(79, "x"), node="n0"), *logged(line, node="n1")], made.nodes(80, "rack"))
    assert made.gated(decision) == ["n0", "n1"]


def test_nodes_without_a_domain_are_no_neighbours():
    decision = made.run([made.event("n0", "149"), made.event("n1", "145")], made.nodes(2))
    assert made.gated(decision) == ["n0", "n1"]


@pytest.mark.parametrize(
    "lines",
    [
        (xid(13, "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0)"), xid(43), xid(45)),
        (xid(31, "pid=7, name=train, MMU Fault"), xid(43, "pid=7, name=train, Ch 00000008")),
        (xid(43), xid(45), xid(45, pci="0000:4c:00")),
        (xid(45),),
        (xid(8), xid(32), xid(69)),
    ],
)
def test_errors_of_applications_gate_nothing(lines):
    for policy in (DEFAULT, made.policy(made.rule(expression="true"), breaker=made.open_wide())):
        decision = decide(policy, logged(*lines), made.nodes(2), [], made.NOW)
        assert decision["gates"] == [] and decision["incidents"]
        for incident in decision["incidents"]:
            assert incident["why"] in (
                "an error of an application, not of the node",
                "an echo of something else, which was not seen",
            )


@pytest.mark.parametrize("code", ["13", "31", "43", "45"])
@pytest.mark.parametrize("space", ["xid", "other"])
def test_nor_when_another_monitor_calls_them_fatal(code, space):
    event = made.event(code=code, agent="syslog-health-monitor", codeSpace=space)
    assert made.run([event])["gates"] == []


def test_nor_through_dcgm():
    text = "Detected XID 31 for GPU 4 Please consult the documentation for details of this XID."
    event = made.event(code="DCGM_FR_XID_ERROR", codeSpace="dcgm", agent="gpu-health-monitor", message=text)
    assert made.run([event])["gates"] == []


def test_a_rule_may_take_applications_in():
    rule = made.rule("follows-a-gpu", "history.sameCode24h >= 3 && '13' in event.errorCode", classes=["application"])
    few, many = ([made.event(code="13", isFatal=False) for _turn in range(count)] for count in (2, 3))
    assert made.gated(made.run(few, policy_=made.policy(rule))) == []
    assert made.gated(made.run(many, policy_=made.policy(rule))) == ["n0"]


def test_one_crash_with_an_echo_on_every_gpu_is_one_incident():
    lines = [xid(79, "GPU has fallen off the bus."), *(xid(45, pci=f"0000:{bus:02x}:00") for bus in range(64, 72))]
    decision = shipped(logged(*lines), made.nodes(1))
    assert made.gated(decision) == ["n0"] and codes(decision) == [("Xid 79", 8)]


@pytest.mark.parametrize(
    ("second", "pci", "attached"),
    [
        (xid(94, "Contained: SM (0x1). RST: No"), "0000:3b:00", 1),
        (xid(63, "Row remapper: New row marked"), "0000:3b:00", 1),
        (xid(94, "Contained: SM (0x1). RST: No", pci="0000:4c:00"), "0000:4c:00", 0),
    ],
)
def test_94_after_48_is_of_the_same_gpu_only(second, pci, attached):
    decision = shipped(logged(xid(48, "DBE"), second), made.nodes(1))
    assert codes(decision)[0] == ("Xid 48", attached) and made.gated(decision) == ["n0"]
    assert len(decision["incidents"]) == 2 - attached


def test_the_cause_that_the_driver_names_comes_first():
    lines = (xid(48, "DBE"), xid(79, "GPU has fallen off the bus."), xid(45, "Ch 1, caused by previous Xid 48"))
    decision = shipped(logged(*lines), made.nodes(1))
    assert codes(decision) == [("Xid 48", 1), ("Xid 79", 0)]


def test_kernel_clocks_tell_hours_apart():
    events = logged(xid(48, "DBE"), xid(94, "Contained"), apart=3600)
    assert len(shipped(events, made.nodes(1))["incidents"]) == 2


def test_a_long_burst_explains_what_comes_in_its_course():
    burst = made.event("n0", "149", generatedTimestamp=made.at(50), metadata={"lastTimestamp": made.at(10)})
    echo = made.event("n1", "145", generatedTimestamp=made.at(11))
    decision = made.run([burst, echo], made.nodes(2, "a"))
    assert made.gated(decision) == ["n0"]


# Xid 154


def recovery(code: str, words: str, pci: str = "0000:3b:00") -> str:
    return xid(154, f"GPU recovery action changed from 0x0 (None) to {code} ({words})", pci)


@pytest.mark.parametrize(
    ("lines", "action"),
    [
        ((xid(48, "DBE"), recovery("0x2", "Node Reboot Required")), "RESTART_BM"),
        ((xid(48, "DBE"), recovery("0x1", "GPU Reset Required"), recovery("0x2", "OS Reboot")), "RESTART_BM"),
        ((xid(48, "DBE"), recovery("0x2", "Node Reboot Required", "0000:4c:00")), "COMPONENT_RESET"),
        ((recovery("0x1", "GPU Reset Required"), xid(79, "fell off")), "RESTART_BM"),
    ],
)
def test_the_drivers_verdict_comes_before_the_table(lines, action):
    decision = shipped(logged(*lines), made.nodes(1))
    cause = next(incident for incident in decision["incidents"] if incident["code"] in ("Xid 48", "Xid 79"))
    assert cause["action"] == action and made.gated(decision) == ["n0"]


def test_a_verdict_that_asks_for_less_opens_the_node():
    decision = shipped(logged(FATAL_149, recovery("0x3", "Drain P2P", "0008:01:00")), made.nodes(1))
    assert decision["gates"] == [] and decision["incidents"][0]["action"] == "DRAIN_P2P"


def test_a_verdict_alone_is_enough():
    decision = shipped(logged(recovery("0x1", "GPU Reset Required")), made.nodes(1))
    assert decision["gates"][0]["rule"] == "gpu-recovery-action"


def test_a_verdict_of_a_newer_driver_takes_nothing_back():
    decision = shipped(logged(xid(79, "GPU has fallen off the bus."), recovery("0x63", "New Word")), made.nodes(1))
    assert made.gated(decision) == ["n0"] and decision["incidents"][0]["action"] == "RESTART_BM"
    assert codes(decision) == [("Xid 79", 1)]


def test_what_nvml_says_a_gpu_needs_is_a_verdict_too():
    verdict = made.event(
        code="GPU_RECOVERY_ACTION",
        codeSpace="nvml",
        agent="nvml",
        recommendedAction="RESTART_BM",
        pci="0000:3b:00",
        minutes=4.9,
        metadata={"class": "recovery", "overrides": "true"},
    )
    decision = shipped([*logged(xid(48, "DBE")), verdict], made.nodes(1))
    assert codes(decision) == [("Xid 48", 1)] and decision["incidents"][0]["action"] == "RESTART_BM"


# several monitors


def test_what_several_monitors_report_is_one_incident_and_any_of_their_rules_may_act():
    entities = [{"entityType": "PCI", "entityValue": "0000:3b:00.0"}, {"entityType": "GPU", "entityValue": "0"}]
    other = made.event(code="79", agent="gpu-health-monitor", entitiesImpacted=entities)
    events = [*logged(xid(79, "GPU has fallen off the bus.")), other]
    policy = made.policy(made.rule(expression="event.agent == 'gpu-health-monitor'"))
    decision = decide(policy, events, made.nodes(1), [], made.NOW)
    assert codes(decision) == [("Xid 79", 1)]
    assert decision["gates"][0]["evidence"] == other["metadata"]["name"]


def test_codes_that_name_each_other_end_somewhere():
    one = made.event(code="1", metadata={"class": "link", "consequenceOf": "2", "within": "gpu"}, minutes=5)
    two = made.event(code="2", metadata={"class": "link", "consequenceOf": "1", "within": "gpu"}, minutes=4)
    decision = made.run([two, one])
    assert codes(decision) == [("Xid 1", 1)] and made.gated(decision) == ["n0"]


# the shipped policies


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"code": "79"}, "gpu-off-the-bus"),
        ({"code": "DCGM_FR_FALLEN_OFF_BUS", "codeSpace": "dcgm"}, "gpu-off-the-bus"),
        ({"code": "48", "recommendedAction": "COMPONENT_RESET"}, "xid-fatal"),
        ({"code": "12028", "codeSpace": "sxid", "componentClass": "NVSWITCH"}, "sxid-fatal"),
        ({"code": "DCGM_FR_VOLATILE_DBE_DETECTED", "codeSpace": "dcgm"}, "dcgm-fatal"),
        ({"code": "GpuUnhealthy", "codeSpace": "condition"}, "gpu-fatal"),
        ({"code": "unrecoverable_err", "codeSpace": "nic", "componentClass": "NIC"}, "nic-fatal"),
        ({"code": "48", "isFatal": False}, None),
        ({"code": "NotReady", "codeSpace": "condition", "componentClass": "NODE"}, None),
        ({"code": "DCGM_FR_CLOCKS_EVENT_THERMAL", "codeSpace": "dcgm", "isFatal": False}, None),
        ({"code": "Reboot", "codeSpace": "cloud", "componentClass": "NODE", "recommendedAction": "NONE"}, None),
    ],
)
def test_default_policy(spec, rule):
    decision = shipped([made.event(**spec)], made.nodes(1))
    assert [gate["rule"] for gate in decision["gates"]] == ([rule] if rule else [])
    assert decision["unknown"] == []


def test_default_policy_leaves_retired_instances_to_maintenance():
    spec = {"codeSpace": "cloud", "componentClass": "NODE", "recommendedAction": "REPLACE_VM"}
    decision = shipped([made.event(code="instance-retirement", **spec)], made.nodes(1))
    assert [(gate["rule"], gate["owner"]) for gate in decision["gates"]] == [("cloud-retirement", "maintenance")]


@pytest.mark.parametrize(
    ("spec", "gated"),
    [
        ({}, True),
        ({"isFatal": False}, False),
        ({"agent": "syslog-health-monitor"}, False),
        ({"componentClass": "NIC"}, False),
    ],
)
def test_the_example_that_operators_know(spec, gated):
    known = policies.load(str(CATALOG / "policies/gpu-health-monitor.yaml")).enforced()
    event = made.event(**{"code": "DCGM_FR_FALLEN_OFF_BUS", "agent": "gpu-health-monitor", **spec})
    decision = decide(known, [event], made.nodes(1), [], made.NOW)
    taint = {"key": "nvidia.com/gpu-error", "value": "fatal", "effect": "NoSchedule"}
    assert [gate["taint"] for gate in decision["gates"]] == ([taint] if gated else [])
