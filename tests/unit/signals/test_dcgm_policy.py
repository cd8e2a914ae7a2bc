"""What DCGM's policy listener prints."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_dcgm_health import parse_dcgm_health
from ansible_collections.goodput.fleet.plugins.filter.parse_dcgm_policy import parse_dcgm_policy
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import dcgm_policy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.signals.shipped import BOOT, RECEIVED, TABLES, entities

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
LOG = """\
Listening for violations.
Timestamp: Wed Jan 28 00:34:23 2026
XID error 79 detected.
Timestamp: Wed Jan 28 00:34:24 2026
The maximum number of retired pages has violated policy manager values.
SBE page retirement count: 64
DBE page retirement count: 0
"""
SETTINGS = """\
Policy information
+---------------------------+------------------------------------------------+
| GPU_Group                 | Policy Information                             |
+===========================+================================================+
| Violation conditions      | Double-bit ECC errors, PCI errors and replays  |
| Isolation mode            | Manual                                         |
+---------------------------+------------------------------------------------+
**** Non-homogenous settings across group. Use with -v flag to see details.
Policy successfully set.
"""


def parse(text, **options) -> dict:
    result = dcgm_policy.parse(text, TABLES, **{"node": "gpu-7", "boot_id": BOOT, "received": RECEIVED, **options})
    assert all(GOOD(event) for event in result["events"])
    return result


def specs(text, **options) -> list[dict]:
    result = parse(text, **options)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


@pytest.mark.parametrize(
    "lines, code, fatal, action, metadata",
    [
        ("A double-bit ECC error has violated policy manager values.\nDBE error count: 2",
         "DCGM_FR_VOLATILE_DBE_DETECTED", True, "COMPONENT_RESET", {"dbeErrorCount": "2"}),
        ("A PCIe replay event has violated policy manager values.\nPCIe replay count: 99999",
         "DCGM_FR_PCI_REPLAY_RATE", False, "CONTACT_SUPPORT", {"pcieReplayCount": "99999"}),
        ("A PCIe error has violated policy manager values.", "DCGM_FR_PCI_REPLAY_RATE", False, "CONTACT_SUPPORT", {}),
        ("The maximum number of retired pages has violated policy manager values.\nSBE page retirement count: 64",
         "DCGM_FR_RETIRED_PAGES_LIMIT", False, "CONTACT_SUPPORT", {"sbePageRetirementCount": "64"}),
        ("The maximum thermal limit has violated policy manager values.\nTemperature: 91", "DCGM_FR_TEMP_VIOLATION",
         False, "CONTACT_SUPPORT", {"temperature": "91"}),
        ("The maximum power limit has violated policy manager values.\nPower: 712", "DCGM_FR_CLOCKS_EVENT_POWER", False,
         "NONE", {"power": "712"}),
        ("NVLink Counter 409 has violated policy manager values.\nNVLink Counter value: 3",
         "DCGM_FR_NVLINK_ERROR_THRESHOLD", False, "CONTACT_SUPPORT", {"nvlinkCounterValue": "3"}),
        ("An unknown error has violated policy manager values.", None, False, "CONTACT_SUPPORT", {}),
    ],
)  # fmt: skip
def test_each_condition(lines, code, fatal, action, metadata):
    (spec,) = specs(f"Listening for violations.\nTimestamp: Wed Jan 28 00:34:23 2026\n{lines}\n")
    assert spec["errorCode"] == ([code] if code else [])
    assert (spec["codeSpace"], spec["isFatal"], spec["recommendedAction"]) == ("dcgm", fatal, action)
    assert spec["generatedTimestamp"] == "2026-01-28T00:34:23Z"
    assert metadata.items() <= spec["metadata"].items()
    assert spec["source"]["line"] == 3


@pytest.mark.parametrize(
    "xid, fatal, action",
    [("79", True, "RESTART_BM"), ("31", False, "RESTART_APP"), ("99999", False, "CONTACT_SUPPORT")],
)
def test_an_xid_means_what_it_means(xid, fatal, action):
    (spec,) = specs(f"Timestamp: Wed Jan 28 00:34:23 2026\r\nXID error {xid} detected.\r\n", utc_offset="+01:00")
    assert (spec["codeSpace"], spec["errorCode"]) == ("xid", [xid])
    assert (spec["isFatal"], spec["recommendedAction"]) == (fatal, action)
    assert spec["generatedTimestamp"] == "2026-01-27T23:34:23Z"


def test_violations_follow_each_other_and_the_gpu_is_named_where_it_is_told():
    xid, pages = specs(LOG)
    assert (xid["errorCode"], pages["errorCode"]) == (["79"], ["DCGM_FR_RETIRED_PAGES_LIMIT"])
    assert "SBE page retirement count 64, DBE page retirement count 0" in pages["message"]
    (spec,) = specs("GPU ID: 3\nXID error 79 detected.\n", index_to_uuid={"3": "GPU-3f"})
    assert entities(spec) == {"GPU": "3", "GPU_UUID": "GPU-3f"}


def test_settings_hold_no_violation():
    assert specs(SETTINGS) == []
    assert specs('{"body": {"GPU_Group": {"children": {}}}, "header": ["Policy information"]}') == []
    assert specs("Listening for violations\n...\n") == []


def test_a_listener_that_lost_dcgm_is_blind():
    (spec,) = specs("Error: Cannot register to receive policy violations from the remote node. Return: Timeout\n")
    assert (spec["state"], spec["isFatal"], spec["errorCode"]) == ("unknown", False, ["DCGM_FR_HOSTENGINE_CONN"])
    assert specs(f"{LOG}Error: Host engine connection invalid/disconnected\n")[2]["state"] == "unknown"


def test_violations_as_json():
    xid = {"Condition": "XID error", "Timestamp": "2026-01-28T00:34:23Z", "Data": {"ErrNum": 79}}
    ecc = {"Condition": "Double-bit ECC error", "Data": {"Location": "Device", "NumErrors": 2}}
    for text in (json.dumps([xid, ecc]), f"{json.dumps(xid)}\n{json.dumps(ecc)}\n", [xid, ecc]):
        first, second = specs(text)
        assert (first["codeSpace"], first["errorCode"], first["isFatal"]) == ("xid", ["79"], True)
        assert first["generatedTimestamp"] == "2026-01-28T00:34:23Z"
        assert (second["errorCode"], second["metadata"]["numErrors"]) == (["DCGM_FR_VOLATILE_DBE_DETECTED"], "2")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("PCIe replay count: 99999\n", "without the violation"),
        ("XID error detected.\n", "no code that can be read"),
        ("XID error 7", "no code that can be read"),
        ('{"Condition": "XID error", "Data": {}}', "an Xid without number"),
        ('{"Condition": "XID error", "Data": {"ErrNum": "-1"}}', "an Xid without number"),
        ('{"Condition": "XID er', "malformed or breaks off"),
        ('{"Timestamp": 1}', "without Condition"),
    ],
)
def test_what_looks_like_a_violation_and_cannot_be_read_is_told(text, reason):
    result = parse(text)
    assert result["events"] == []
    assert [reason in item["reason"] for item in result["unparsed"]] == [True]


def test_a_cut_log_tells_no_other_xid():
    known = [[spec["errorCode"] for spec in specs(LOG)][:count] for count in range(3)]
    for end in range(len(LOG)):
        assert [event["spec"]["errorCode"] for event in parse(LOG[:end])["events"]] in known


@settings(deadline=None)  # machines under load
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@example(b"[" * 20_000)
@example('{"Condition": "Power limit", "Data": {"Power": ' + "9" * 5000 + "}}")
@example("XID error 00000000000000079 detected")
@example("Timestamp: Wed Jan 99 00:34:23 2026\nXID error 79 detected")
def test_any_bytes_are_read_or_told(data):
    parse(data)


@settings(deadline=None)
@given(st.integers(0, 5000), st.binary(max_size=6))
def test_a_damaged_log_is_read_or_told(at, piece):
    log = LOG.encode()
    at %= len(log)
    parse(log[:at] + piece + log[at:])


# the filters


def test_filters_give_what_the_parsers_give():
    result = parse_dcgm_policy(LOG, node="gpu-7", boot_id=BOOT, received=RECEIVED)
    assert result == parse(LOG)
    assert parse_dcgm_policy(LOG.split("\n"), node="gpu-7", boot_id=BOOT, received=RECEIVED) == result
    result = parse_dcgm_health("0 GPUs found.", node="gpu-7", expected_gpus=8)
    assert [event["spec"]["errorCode"] for event in result["events"]] == [["GPU_COUNT_LOW"]]


@pytest.mark.parametrize("parse_filter", [parse_dcgm_health, parse_dcgm_policy])
@pytest.mark.parametrize(
    "value, options, words",
    [
        (None, {}, "a text or a list of lines, not NoneType"),
        (7, {}, "a text or a list of lines, not int"),
        ("x", {"received": "today"}, "received is 'today'"),
        ("x", {"catalog": ["/nowhere"]}, "no signal tables"),
        ("x", {"index_to_uuid": [1]}, "index_to_uuid is [1]"),
    ],
)
def test_bad_input_of_a_filter_is_one_clear_error(parse_filter, value, options, words):
    with pytest.raises(AnsibleFilterError, match=parse_filter.__name__) as caught:
        parse_filter(value, **options)
    assert words in str(caught.value)
