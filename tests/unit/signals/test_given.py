# ruff: noqa: E501  (events as others write them)
"""HealthEvents that come from elsewhere: taken as they are meant, or kept with the reason why not."""

from __future__ import annotations

import copy
import json
import time

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import given

from tests.unit.signals.shipped import BOOT, RECEIVED, TABLES, entities
from tests.unit.signals.shipped import parse as parse_kernel

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
UUID = "GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708"
NVSENTINEL = {
    "version": 1,
    "agent": "gpu-health-monitor",
    "componentClass": "GPU",
    "checkName": "GpuPcieWatch",
    "isFatal": True,
    "message": "GPU lost",
    "recommendedAction": 15,
    "errorCode": ["DCGM_FR_PCI_REPLAY_RATE"],
    "entitiesImpacted": [
        {"entityType": "GPU", "entityValue": "0"},
        {"entityType": "PCI", "entityValue": "0002:00:00.0"},
    ],
    "metadata": {"topology.kubernetes.io/zone": "b", "count": 3, "none": None},
    "generatedTimestamp": {"seconds": 1772789696, "nanos": 500000000},
    "nodeName": "gpu-0007",
    "processingStrategy": 1,
    "id": "66",
}
OURS = parse_kernel("NVRM: Xid (PCI:0000:3b:00): 79, x")["events"][0]


def parse(value, **context) -> dict:
    result = given.parse(value, tables=TABLES, **{"boot_id": BOOT, "received": RECEIVED, **context})
    assert all(GOOD(event) for event in result["events"])
    return result


def specs(value, **context) -> list[dict]:
    result = parse(value, **context)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


def one(**changes) -> dict:
    (spec,) = specs({**NVSENTINEL, **changes})
    return spec


def reason(value, **context) -> str:
    result = parse(value, **context)
    assert (result["events"], result["unparsedTotal"]) == ([], 1)
    return result["unparsed"][0]["reason"]


def test_an_event_of_nvsentinel():
    spec = one()
    assert entities(spec) == {"GPU": "0", "PCI": "0002:00:00"}
    assert {key: spec[key] for key in spec if key not in ("source", "metadata", "entitiesImpacted")} == {
        "nodeName": "gpu-0007",
        "agent": "gpu-health-monitor",
        "componentClass": "GPU",
        "checkName": "GpuPcieWatch",
        "isFatal": True,
        "isHealthy": False,
        "state": "sick",
        "severity": "fatal",
        "errorCode": ["DCGM_FR_PCI_REPLAY_RATE"],
        "codeSpace": "dcgm",
        "recommendedAction": "RESTART_VM",
        "message": "GPU lost",
        "generatedTimestamp": "2026-03-06T09:34:56.5Z",
        "receivedTimestamp": RECEIVED,
        "bootId": BOOT,
        "cause": None,
    }
    assert spec["metadata"]["topology.kubernetes.io/zone"] == "b"
    assert spec["metadata"]["count"] == "3"
    assert spec["metadata"]["processingStrategy"] == "EXECUTE_REMEDIATION"


def snake(data):
    if isinstance(data, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake(value) for key, value in data.items()
        }
    return [snake(item) for item in data] if isinstance(data, list) else data


def small(data):
    if isinstance(data, dict):
        return {key.lower(): small(value) for key, value in data.items()}
    return [small(item) for item in data] if isinstance(data, list) else data


@pytest.mark.parametrize(
    "wrapped",
    [
        NVSENTINEL,
        [NVSENTINEL],
        {"version": 1, "events": [NVSENTINEL]},
        {"healthevent": small({**NVSENTINEL, "metadata": {}}), "healtheventstatus": {"nodequarantined": None}},
        {"HealthEvent": NVSENTINEL, "HealthEventStatus": {"userPodsEvictionStatus": {}}},
        {"fullDocument": {"healthevent": snake(NVSENTINEL)}, "operationType": "insert"},
        {"level": "INFO", "msg": "x", "events": {"events": [NVSENTINEL]}},
        {"specversion": "1.0", "type": "com.nvidia.nvsentinel.health.v1", "data": {"healthEvent": NVSENTINEL}},
        {"apiVersion": "healthevents.dgxc.nvidia.com/v1alpha1", "kind": "HealthEventResource", "metadata": {"name": "x"}, "spec": NVSENTINEL},
    ],
)  # fmt: skip
def test_wrappings(wrapped):
    for value in (wrapped, json.dumps(wrapped), json.dumps(wrapped, indent=1).encode(), yamltree.dump(wrapped)):
        (spec,) = specs(value)
        assert (spec["nodeName"], spec["checkName"], spec["isFatal"]) == ("gpu-0007", "GpuPcieWatch", True)
        assert (spec["recommendedAction"], entities(spec)["PCI"]) == ("RESTART_VM", "0002:00:00")
        assert spec["generatedTimestamp"] == "2026-03-06T09:34:56.5Z"


@pytest.mark.parametrize(
    "value, action",
    [
        *[(number, name) for number, name in given.given_foreign.NUMBERS.items() if name != "CUSTOM"],
        (24.0, "RESTART_BM"),
        ("24", "RESTART_BM"),
        ({"$numberInt": "25"}, "REPLACE_VM"),
        ("COMPONENT_RESET", "COMPONENT_RESET"),
        ("restart_vm", "RESTART_VM"),
        (None, "NONE"),
        ("", "NONE"),
        (27, "UNKNOWN"),
        (77, "UNKNOWN"),
        ("REFORMAT", "UNKNOWN"),
        ([1], "NONE"),
    ],
)
def test_actions_are_numbers_or_names(value, action):
    assert one(recommendedAction=value)["recommendedAction"] == action


def test_an_action_that_is_not_known_here_keeps_its_word():
    spec = one(recommendedAction=27, customRecommendedAction="RESEAT_CABLE")
    assert spec["metadata"]["reportedAction"] == "CUSTOM"
    assert spec["metadata"]["customRecommendedAction"] == "RESEAT_CABLE"


def test_what_protobuf_leaves_out_is_false_or_empty():
    spec = specs({"agent": "a", "checkName": "c", "nodeName": "n", "errorCode": None, "entitiesImpacted": None})[0]
    assert (spec["isFatal"], spec["isHealthy"], spec["errorCode"], spec["entitiesImpacted"]) == (False, False, [], [])
    assert (spec["recommendedAction"], spec["generatedTimestamp"], spec["severity"]) == ("NONE", None, "error")


@pytest.mark.parametrize(
    "value, codes, space",
    [
        (["79"], ["79"], "xid"),
        ("79", ["79"], "xid"),
        (79, ["79"], "xid"),
        ([79, None, ""], ["79"], "xid"),
        ([], [], "other"),
        (["DCGM_FR_NVLINK_DOWN"], ["DCGM_FR_NVLINK_DOWN"], "dcgm"),
    ],
)
def test_codes(value, codes, space):
    spec = one(errorCode=value, checkName="SysLogsXIDError")
    assert (spec["errorCode"], spec["codeSpace"]) == (codes, space)


def test_a_healthy_event_is_never_fatal():
    spec = one(isHealthy=True)
    assert (spec["isFatal"], spec["state"], spec["severity"]) == (False, "healthy", "info")


def test_a_monitor_that_cannot_see_makes_no_gpu_sick():
    spec = one(checkName="GpuDcgmConnectivityFailure", errorCode=["DCGM_CONNECTIVITY_ERROR"], recommendedAction=5)
    assert (spec["isFatal"], spec["state"]) == (False, "unknown")


@pytest.mark.parametrize("code", ["13", "31", "43", "45"])
def test_xids_of_applications_and_echoes_take_nothing_out_whatever_their_monitor_says(code):
    spec = one(checkName="SysLogsXIDError", errorCode=[code], recommendedAction=5)
    assert not spec["isFatal"]
    assert spec["metadata"]["reportedFatal"] == "true"
    assert spec["metadata"]["class"] in ("application", "consequence")


@pytest.mark.parametrize("codes", [["31", "79"], ["79", "31"], ["45", "9999"]])
def test_the_gravest_of_several_codes_counts(codes):
    assert one(checkName="SysLogsXIDError", errorCode=codes)["isFatal"]


def test_when_it_came_in_is_when_it_came_in_then():
    """Last month's log, read today, is last month's events."""
    record = {
        "time": "2026-03-06T09:35:00.5Z",
        "msg": "x",
        "event": {"CreatedAt": "2026-03-06T09:34:58Z", "HealthEvent": NVSENTINEL},
    }
    assert specs(record)[0]["receivedTimestamp"] == "2026-03-06T09:34:58Z"
    del record["event"]["CreatedAt"]
    assert specs(record)[0]["receivedTimestamp"] == "2026-03-06T09:35:00.5Z"
    assert one(createdAt={"$date": "2026-03-06T09:34:59Z"})["receivedTimestamp"] == "2026-03-06T09:34:59Z"
    resource = {"kind": "HealthEventResource", "metadata": {"name": "x", "creationTimestamp": "2026-03-06T09:34:57Z"}}
    assert specs({**resource, "spec": NVSENTINEL})[0]["receivedTimestamp"] == "2026-03-06T09:34:57Z"
    assert one()["receivedTimestamp"] == RECEIVED


# our own documents


@pytest.mark.parametrize(
    "write",
    [
        lambda event: event,
        lambda event: [event],
        lambda event: {"events": [event], "unparsed": [], "lines": 1},
        lambda event: json.dumps(event),
        lambda event: json.dumps([event], indent=2),
        lambda event: yamltree.dump(event),
        lambda event: "# note\n---\n" + yamltree.dump(event) + "---\n",
        lambda event: yamltree.dump([event]).encode(),
        lambda event: yamltree.dump({"kind": "List", "items": [event]}),
    ],
)
def test_our_documents_come_out_as_they_went_in(write):
    result = parse(write(OURS))
    assert result["unparsed"] == []
    assert result["events"] == [OURS]


def test_what_a_short_document_leaves_out_is_filled_in():
    spec = {
        "nodeName": "n",
        "agent": "a",
        "componentClass": "GPU",
        "checkName": "c",
        "isFatal": True,
        "isHealthy": False,
    }
    event = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "HealthEvent", "metadata": {"name": "x"}, "spec": spec}
    found = specs(event, source_name="f.yaml")[0]
    assert set(found) == set(OURS["spec"])
    assert (found["severity"], found["state"], found["bootId"], found["receivedTimestamp"]) == (
        "fatal",
        "sick",
        BOOT,
        RECEIVED,
    )
    assert found["source"] == {"name": "f.yaml", "line": None, "text": ""}
    blind = copy.deepcopy(event)
    blind["spec"]["state"] = "unknown"
    assert specs(blind)[0]["isFatal"] is False


def changed(**changes) -> dict:
    event = copy.deepcopy(OURS)
    event["spec"].update(changes)
    return event


@pytest.mark.parametrize(
    "value, words",
    [
        (changed(isFatal="yes"), "spec.isFatal: 'yes' is a string, not a boolean"),
        (changed(recomendedAction="NONE"), "unknown key 'recomendedAction' (did you mean 'recommendedAction'"),
        (changed(recommendedAction="REBOOT"), "'REBOOT' is not allowed"),
        ({**OURS, "apiVersion": "goodput.fleet/v9"}, "apiVersion 'goodput.fleet/v9' is not known"),
        ({**OURS, "kind": "Snapshot"}, "is of kind 'Snapshot', a HealthEvent belongs here"),
        ({key: OURS[key] for key in OURS if key != "spec"}, "'spec' is missing"),
    ],
)
def test_a_broken_document_is_kept_with_what_is_wrong(value, words):
    for form in (value, json.dumps(value), yamltree.dump(value)):
        assert words in reason(form)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"nodeName": ""}, "nodeName missing"),
        ({"checkName": None}, "checkName missing"),
        ({"isFatal": "maybe"}, "isfatal is neither true nor false"),
        ({"isHealthy": 3}, "ishealthy is neither true nor false"),
        ({"entitiesImpacted": {"a": 1}}, "entitiesImpacted"),
        ({"entitiesImpacted": ["x"]}, "entitiesImpacted"),
        ({"entitiesImpacted": [{"entityType": "GPU"}]}, "entitiesImpacted"),
        ({"errorCode": {"a": 1}}, "errorCode"),
    ],
)
def test_a_broken_event_of_others_is_kept_with_what_is_wrong(changes, words):
    assert words in reason({**NVSENTINEL, **changes})


def test_the_node_may_come_from_elsewhere():
    assert specs({**NVSENTINEL, "nodeName": None}, node="gpu-1")[0]["nodeName"] == "gpu-1"


# files


def test_a_file_with_broken_lines_loses_only_those():
    lines = [json.dumps(NVSENTINEL), "{oops}", "", "\x00\x01\xff binary", json.dumps({**NVSENTINEL, "nodeName": ""})]
    lines += [json.dumps({"level": "INFO", "msg": "started"}), json.dumps(OURS), json.dumps(NVSENTINEL)[:80]]
    result = parse("\n".join(lines).encode("utf-8", "replace"))
    assert [event["spec"]["nodeName"] for event in result["events"]] == ["gpu-0007", "gpu-0007"]
    assert [(item["line"], item["reason"].split(":")[0]) for item in result["unparsed"]] == [
        (2, "malformed JSON"),
        (4, "no JSON"),
        (5, "no health event"),
        (8, "cut off"),
    ]
    assert result["ignored"] == {given.NO_EVENT: 1}
    assert result["lines"] == 8


def test_a_file_of_yaml_documents_loses_only_the_broken_ones():
    result = parse(
        "---\n".join([yamltree.dump(OURS), "a: [\n", yamltree.dump(changed(isFatal=7)), yamltree.dump(OURS)])
    )
    assert len(result["events"]) == 2
    assert len({item["line"] for item in result["unparsed"]}) == 2
    listed = yamltree.dump([OURS]) + "- a: [\n" + yamltree.dump([OURS])
    assert (len(parse(listed)["events"]), parse(listed)["unparsedTotal"]) == (2, 1)


def test_a_file_of_nonsense_is_bounded():
    result = parse("\n".join(['{"a": }'] * 5000))
    assert (len(result["unparsed"]), result["unparsedTotal"]) == (1000, 5000)


@pytest.mark.parametrize(
    "value", [b"\x00\x01\xfe\xff" * 100, "hello", "{", "[" * 100_000, '{"a":' * 50_000, "a: [", {"a": 1}, [7]]
)
def test_what_holds_no_event_is_said(value):
    result = parse(value)
    assert result["events"] == []
    assert result["unparsedTotal"] >= 1


def test_nothing_in_nothing_out():
    for value in ("", "\n", "[]", [], {}, {"events": []}):
        assert parse(value)["events"] == []


def test_ten_thousand_events_take_a_moment():
    lines = [json.dumps({**NVSENTINEL, "nodeName": f"n-{number}"}) for number in range(10_000)]
    start = time.process_time()
    result = parse("\n".join(lines))
    assert time.process_time() - start < 10
    assert len({event["metadata"]["name"] for event in result["events"]}) == 10_000


@pytest.mark.parametrize("value", [None, 7])
def test_neither_text_nor_data_is_one_clear_error(value):
    with pytest.raises(InvalidDocument, match="takes health events, as text or data, not "):
        parse(value)


def test_the_same_event_has_the_same_name_wherever_it_is_read():
    (alone,) = parse(NVSENTINEL)["events"]
    assert parse("\n\n" + json.dumps(NVSENTINEL))["events"][0]["metadata"]["name"] == alone["metadata"]["name"]
    assert parse({**NVSENTINEL, "id": "67"})["events"][0]["metadata"]["name"] != alone["metadata"]["name"]
