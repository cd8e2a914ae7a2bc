# ruff: noqa: E501  (tables as wide as kubectl prints them)
"""Node conditions: who is sick by them, and above all who is not."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import conditions

from tests.unit.signals.shipped import BOOT, RECEIVED, TABLES, entities

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
SINCE = "2026-11-29T10:00:00Z"
UUID = "GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708"


def condition(kind, status, reason="", message="", **more) -> dict:
    given = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}
    return {**given, "lastHeartbeatTime": "2026-11-29T17:59:30Z", **more}


def a_node(*given, name="gpu-0007", boot=BOOT) -> dict:
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true"}},
        "status": {"nodeInfo": {"bootID": boot}, "conditions": list(given)},
    }


def parse(value, **context) -> dict:
    result = conditions.parse(value, tables=TABLES, **{"received": RECEIVED, **context})
    assert all(GOOD(event) for event in result["events"])
    return result


def specs(value, **context) -> list[dict]:
    result = parse(value, **context)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


def one(*arguments, **more) -> dict:
    (spec,) = specs(a_node(condition(*arguments, **more)))
    return spec


def test_an_event_names_node_boot_condition_and_since_when():
    spec = one("KernelDeadlock", "True", "DockerHung", "task docker:11 blocked for more than 300 seconds")
    assert {key: spec[key] for key in spec if key not in ("source", "metadata")} == {
        "nodeName": "gpu-0007",
        "agent": "node-condition",
        "componentClass": "NODE",
        "checkName": "KernelDeadlock",
        "isFatal": True,
        "isHealthy": False,
        "state": "sick",
        "severity": "fatal",
        "errorCode": ["KernelDeadlock"],
        "codeSpace": "condition",
        "entitiesImpacted": [],
        "recommendedAction": "RESTART_VM",
        "message": "KernelDeadlock is True: DockerHung: task docker:11 blocked for more than 300 seconds",
        "generatedTimestamp": SINCE,
        "receivedTimestamp": RECEIVED,
        "bootId": BOOT,
        "cause": None,
    }
    assert spec["metadata"]["conditionReason"] == "DockerHung"
    assert spec["metadata"]["family"] == "node-problem-detector"


@pytest.mark.parametrize(
    "kind, status, reason, state, fatal, severity",
    [
        ("Ready", "True", "KubeletReady", "healthy", False, "info"),
        ("Ready", "False", "KubeletNotReady", "sick", False, "error"),
        ("Ready", "Unknown", "NodeStatusUnknown", "unknown", False, "warning"),
        ("MemoryPressure", "True", "KubeletHasInsufficientMemory", "sick", False, "warning"),
        ("DiskPressure", "Unknown", "NodeStatusUnknown", "unknown", False, "warning"),
        ("ReadonlyFilesystem", "True", "FilesystemIsReadOnly", "sick", True, "fatal"),
        ("ReadonlyFilesystem", "False", "FilesystemIsReadOnly", "healthy", False, "info"),  # the reason tells nothing
        ("FrequentKubeletRestart", "True", "FrequentKubeletRestart", "sick", False, "warning"),
        ("FrequentContainerdRestart", "False", "NoFrequentContainerdRestart", "healthy", False, "info"),
        ("KernelDeadlock", "Unknown", "", "unknown", False, "warning"),
        ("GPUMissing", "True", "GPUMissing", "sick", True, "fatal"),
        ("GPUMissing", "False", "GPUsArePresent", "healthy", False, "info"),
        ("UnhealthyNvidiaDevicePlugin", "True", "x", "sick", False, "warning"),
        ("UnhealthyNvidiaDevicePlugin", "Unknown", "", "unknown", False, "warning"),
        ("UnhealthyNvidiaDCGMServices", "True", "x", "unknown", False, "warning"),  # the observer is down, not the GPU
        ("VMEventScheduled", "True", "VMEventScheduled", "sick", False, "warning"),
        ("AcceleratedHardwareReady", "True", "NvidiaAcceleratedHardwareIsReady", "healthy", False, "info"),
        ("AcceleratedHardwareReady", "False", "NvidiaDoubleBitError", "sick", True, "fatal"),
        ("AcceleratedHardwareReady", "False", "DCGMError", "unknown", False, "warning"),  # lost its connection
        ("AcceleratedHardwareReady", "Unknown", "", "unknown", False, "warning"),
        ("NetworkingReady", "False", "IPAMDNotRunning", "sick", False, "error"),
        ("StorageReady", "True", "DiskIsReady", "healthy", False, "info"),
        ("GpuDcgmConnectivityFailure", "True", "GpuDcgmConnectivityFailureIsNotHealthy", "unknown", False, "warning"),
        ("GpuPcieWatch", "False", "GpuPcieWatchIsHealthy", "healthy", False, "info"),
        ("InodesPressure", "True", "", "sick", False, "warning"),  # only its name tells
        ("InodesPressure", "False", "", "healthy", False, "info"),
        ("RackControllerReady", "False", "", "sick", False, "warning"),
        ("RackControllerReady", "True", "", "healthy", False, "info"),
        ("RackNotReady", "True", "", "sick", False, "warning"),
        ("RackReady", "True", "RackReadyIsNotHealthy", "sick", False, "warning"),  # NVSentinel's True is always sick
        ("Frobnicated", "True", "Yes", "unknown", False, "warning"),  # nobody knows which status is the bad one
        ("Frobnicated", "False", "No", "unknown", False, "warning"),
        ("Frobnicated", "Unknown", "", "unknown", False, "warning"),
    ],
)
def test_what_a_status_means(kind, status, reason, state, fatal, severity):
    spec = one(kind, status, reason)
    assert (spec["state"], spec["isFatal"], spec["severity"]) == (state, fatal, severity)
    assert spec["isHealthy"] == (state == "healthy")
    assert spec["errorCode"] == [kind] and spec["checkName"] == kind


@pytest.mark.parametrize("word", ["Preempt", "terminate"])
def test_a_machine_that_azure_takes_away_is_fatal(word):
    spec = one("VMEventScheduled", "True", "VMEventScheduled", f"VM has a {word} event")
    assert (spec["isFatal"], spec["recommendedAction"]) == (True, "REPLACE_VM")


# Xids in conditions


def test_gke_names_xids_in_the_reason_and_their_boot_in_the_message():
    earlier = "11111111-2222-3333-4444-555555555555"
    spec = one("XidCriticalError", "True", '{"79": true}', earlier)
    assert (spec["errorCode"], spec["codeSpace"], spec["componentClass"]) == (["79"], "xid", "GPU")
    assert (spec["isFatal"], spec["recommendedAction"]) == (True, "RESTART_BM")
    assert spec["bootId"] == earlier  # not the node's current one: history


def test_a_users_xid_that_gke_calls_critical_takes_nothing_out():
    found = specs(a_node(condition("XidCriticalError", "True", '{"31":true,"48":false,"13":true}', BOOT)))
    assert [(spec["errorCode"], spec["isFatal"]) for spec in found] == [(["31"], False), (["13"], False)]
    assert all(spec["metadata"]["class"] == "application" for spec in found)


@pytest.mark.parametrize("reason", ["{", "{}", "NoXids", '{"x": true}', "[" * 3000, '{"a":' * 3000])
def test_a_reason_that_is_no_map_of_xids_leaves_the_condition(reason):
    spec = one("XidCriticalError", "True", reason, BOOT)
    assert (spec["codeSpace"], spec["state"], spec["isFatal"]) == ("condition", "sick", False)


def test_xids_as_a_list():
    found = specs(a_node(condition("XidCriticalError", "True", '["79", 48]', "b-1")))
    assert [(spec["errorCode"], spec["bootId"]) for spec in found] == [(["79"], "b-1"), (["48"], "b-1")]


def test_a_message_about_xids_that_names_none_leaves_the_condition():
    spec = one("XIDErrors", "True", "XIDErrors", "2 Xid errors in the last 24 hours, see 79-page guide")
    assert (spec["errorCode"], spec["codeSpace"], spec["isFatal"]) == (["XIDErrors"], "condition", False)


def test_gke_healthy_takes_the_check_back():
    spec = one("XidCriticalError", "False", "NoXids", "")
    assert (spec["isHealthy"], spec["checkName"], spec["bootId"]) == (True, "XidCriticalError", BOOT)


@pytest.mark.parametrize(
    "kind, status, reason, message, codes",
    [
        ("AcceleratedHardwareReady", "False", "NvidiaXID79Error", "fell off", ["79"]),
        ("XIDError", "True", "XIDErrorIsPresent", "Found Xid: 48, 63 in the kernel log", ["48", "63"]),
        ("XIDErrors", "True", "XIDErrors", "XID 79 seen; Xid 79 seen", ["79"]),
        ("XIDErrors", "True", "XIDErrors", "GPU Xid errors detected: 79,48", ["79", "48"]),
        ("NvidiaXid64Error", "True", "x", "y", ["64"]),
        ("NodeHasXIDErrors", "True", "x", "Xid 62", ["62"]),
        ("GPUXIDErrors", "True", "x", "NVRM: Xid (PCI:0001:00:00): 119, pid=7, name=x, Timeout", ["119"]),
    ],
)
def test_xids_in_words(kind, status, reason, message, codes):
    found = specs(a_node(condition(kind, status, reason, message)))
    assert [spec["errorCode"] for spec in found] == [[code] for code in codes]
    assert all(spec["codeSpace"] == "xid" for spec in found)
    assert [spec["isFatal"] for spec in found] == [TABLES.meaning("xid", code).fatal for code in codes]


# NVSentinel's messages


def nvsentinel(kind, message) -> list[dict]:
    return specs(a_node(condition(kind, "True", f"{kind}IsNotHealthy", message)))


def test_two_errors_in_one_message_and_a_semicolon_in_the_text():
    first, second = nvsentinel(
        "SysLogsXIDError",
        f"ErrorCode:79 PCI:0001:00:00 GPU_UUID:{UUID} GPU lost; see log Recommended Action=RESTART_BM;"
        "ErrorCode:94 PCI:0002:00:00 Contained Recommended Action=CONTACT_SUPPORT;",
    )
    assert (first["errorCode"], first["isFatal"], first["recommendedAction"]) == (["79"], True, "RESTART_BM")
    assert entities(first) == {"PCI": "0001:00:00", "GPU_UUID": UUID}
    assert first["message"] == "SysLogsXIDError: 79 GPU lost; see log"
    assert (second["errorCode"], second["isFatal"], second["recommendedAction"]) == (["94"], False, "CONTACT_SUPPORT")
    assert first["checkName"] == second["checkName"] == "SysLogsXIDError"


def test_the_drivers_own_line_in_a_message_is_decoded():
    line = "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x0 0x0 0x0 0x0 0x0)"
    (spec,) = nvsentinel("SysLogsXIDError", f"ErrorCode:149 PCI:0008:01:00 kernel: {line} Recommended Action=;")
    assert entities(spec) == {"PCI": "0008:01:00", "NVLINK": "8"}
    assert spec["metadata"]["decoded"]


@pytest.mark.parametrize("tail", ["Recommended Action=;", "Recommended Action=", "Recommended", "Recomm...", ""])
def test_an_empty_or_cut_off_action_is_the_catalogues(tail):
    (spec,) = nvsentinel("SysLogsXIDError", f"ErrorCode:79 PCI:0001:00:00 GPU lost {tail}")
    assert entities(spec) == {"PCI": "0001:00:00"}
    assert (spec["errorCode"], spec["recommendedAction"], spec["isFatal"]) == (["79"], "RESTART_BM", True)


@pytest.mark.parametrize(
    "kind, message, code, fatal, action",
    [
        # the check made it fatal there; an application's Xid is not
        ("GpuMemWatch", "ErrorCode:DCGM_FR_XID_ERROR GPU:4 Detected XID 31 Recommended Action=NONE;", "31", False, "NONE"),
        ("SysLogsXIDError", "ErrorCode:45 PCI:0:1:0 x Recommended Action=CONTACT_SUPPORT;", "45", False, "CONTACT_SUPPORT"),
        ("SysLogsXIDError", "ErrorCode:79 PCI:0:1:0 x Recommended Action=NONE;", "79", True, "RESTART_BM"),
        ("GpuNvlinkWatch", "ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:0 x", "DCGM_FR_IMEX_UNHEALTHY", False, None),
        ("InfiniBandStateCheck", "ErrorCode:LINK_DOWN NIC:mlx5_0 x Recommended Action=REPLACE_VM;", "LINK_DOWN", True, "REPLACE_VM"),
        ("OurOwnCheck", "Memory: 5 MB below 6 MB Recommended", "OurOwnCheck", False, "CONTACT_SUPPORT"),
        ("SysLogsXIDError", "ErrorCode:31 ErrorCode:79 PCI:0:1:0 x Recommended Action=NONE;", "79", True, "RESTART_BM"),
        ("OurOwnCheck", "", "OurOwnCheck", False, "CONTACT_SUPPORT"),
        ("OurOwnCheck", "ErrorCode:79 PCI:0:1:0 x Recommended Action=RESTART_BM;", "79", True, "RESTART_BM"),
    ],
)  # fmt: skip
def test_what_nvsentinel_says_and_what_the_catalogue_knows(kind, message, code, fatal, action):
    (spec,) = nvsentinel(kind, message)
    assert (spec["errorCode"][-1], spec["isFatal"], spec["state"]) == (code, fatal, "sick")
    assert action in (None, spec["recommendedAction"])
    assert not (spec["isFatal"] and spec["recommendedAction"] == "NONE")


# forms of the input

NODES = [a_node(condition("Ready", "True"), name="a"), a_node(condition("Ready", "False"), name="b")]
WANTED = [("a", "healthy"), ("b", "sick")]


@pytest.mark.parametrize(
    "value",
    [
        NODES,
        {"kind": "NodeList", "apiVersion": "v1", "items": NODES},
        {"kind": "List", "items": [{**node, "kind": "Node"} for node in NODES]},
        {"resources": NODES, "changed": False},
        {"results": None, "items": [NODES[0], {"items": [NODES[1]]}]},
        json.dumps(NODES),
        json.dumps({"items": NODES}, indent=2).encode(),
        "\ufeff" + "\n".join(json.dumps(node) for node in NODES) + "\n",
        yaml.safe_dump({"items": NODES}),
        yaml.safe_dump_all(NODES, explicit_start=True),
    ],
)
def test_nodes_in_every_wrapping(value):
    assert [(spec["nodeName"], spec["state"]) for spec in specs(value)] == WANTED


def test_conditions_alone_belong_to_the_node_that_is_named():
    for value in (
        [condition("Ready", "False")],
        condition("Ready", "False"),
        {"conditions": [condition("Ready", "False")]},
    ):
        (spec,) = specs(value, node="gpu-9", boot_id="b-1")
        assert (spec["nodeName"], spec["bootId"], spec["state"]) == ("gpu-9", "b-1", "sick")


def test_booleans_of_unquoted_yaml_are_statuses():
    (spec,) = specs("- type: KernelDeadlock\n  status: True\n  reason: x\n", node="n")
    assert spec["isFatal"] and spec["source"]["line"] == 1


def test_lines_of_yaml():
    text = yaml.safe_dump(a_node(condition("Ready", "True"), condition("KernelDeadlock", "True")), sort_keys=False)
    lines = text.splitlines()
    for spec in specs(text):
        at = spec["source"]["line"] - 1
        assert lines[at] == f"  - type: {spec['checkName']}"


DESCRIBED = """\
Name:               {name}
Roles:              <none>
Labels:             a=True
                    b=c
Annotations:        x: y
Taints:             <none>
Unschedulable:      false
Conditions:
  Type                     Status   LastHeartbeatTime                 LastTransitionTime                Reason                   Message
  ----                     ------   -----------------                 ------------------                ------                   -------
  XidCriticalError         True     Sun, 29 Nov 2026 17:59:00 +0100   Sun, 29 Nov 2026 11:00:00 +0100   {{"79":true}}              {boot}
  ReadonlyFilesystem       False    Sun, 29 Nov 2026 17:59:00 +0100   Sun, 29 Nov 2026 11:00:00 +0100   FilesystemIsReadOnly     Filesystem is read-only
  Odd                      Unknown  Sun, 29 Nov 2026 17:59:00 +0100   Sun, 29 Nov 2026 11:00:00 +0100
  GpuMemWatch              True     <unknown>                         Sun, 29 Nov 2026 11:00:00 +0100   GpuMemWatchIsNotHealthy
ErrorCode:DCGM_FR_XID_ERROR GPU:4 Detected XID 95 for GPU 4 Recommended Action=COMPONENT_RESET;
  Ready                    False    Sun, 29 Nov 2026 17:59:00 +0100   Sun, 29 Nov 2026 11:00:00 +0100   KubeletNotReady          PLEG is not healthy
Addresses:
  InternalIP:  10.0.0.1
System Info:
  Boot ID:                    {boot}
Non-terminated Pods:          (1 in total)
  kube-system   x   True  0
Events:
  Type     Reason    Age   From     Message
  Warning  True      1m    kubelet  KernelDeadlock   True
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n    "])
def test_kubectl_describe(ends):
    text = "\n\n".join(DESCRIBED.format(name=name, boot=boot) for name, boot in (("a", BOOT), ("b", "b-2")))
    found = specs(("    " if " " in ends else "") + text.replace("\n", ends))
    assert [spec["checkName"] for spec in found[:5]] == [
        "XidCriticalError",
        "ReadonlyFilesystem",
        "Odd",
        "GpuMemWatch",
        "Ready",
    ]
    assert len(found) == 10
    assert [spec["nodeName"] for spec in found] == ["a"] * 5 + ["b"] * 5
    assert {spec["bootId"] for spec in found[5:]} == {"b-2"}
    assert [spec["state"] for spec in found[:5]] == ["sick", "healthy", "unknown", "sick", "sick"]
    assert [spec["errorCode"] for spec in found[:4]] == [["79"], ["ReadonlyFilesystem"], ["Odd"], ["95"]]
    assert {spec["generatedTimestamp"] for spec in found} == {SINCE}
    assert [spec["source"]["line"] for spec in found[:2]] == [11, 12]
    assert found[4]["message"] == "Ready is False: KubeletNotReady: PLEG is not healthy"


@pytest.mark.parametrize(
    "text",
    [
        "Type:KernelDeadlock Status:True LastHeartbeatTime:2026-11-29 11:00:00 +0100 CET "
        "LastTransitionTime:2026-11-29 11:00:00 +0100 CET Reason:Hung Message:task Reason:x blocked",
        "[{Type:KernelDeadlock Status:True LastHeartbeatTime:2026-11-29 10:00:00 +0000 UTC "
        "LastTransitionTime:2026-11-29 10:00:00 +0000 UTC Reason:Hung Message:task Reason:x blocked}]",
        'Taints: [] Conditions: [{"type":"KernelDeadlock","status":"True","lastTransitionTime":"2026-11-29T10:00:00Z",'
        '"reason":"Hung","message":"task Reason:x blocked"}] Addresses: []',
        "KernelDeadlock True Sun, 29 Nov 2026 17:59:00 +0100 Sun, 29 Nov 2026 11:00:00 +0100 Hung task Reason:x blocked",
        "KernelDeadlock  True  2026-11-29T17:59:00Z  2026-11-29T10:00:00Z  Hung  task Reason:x blocked",
        "KernelDeadlock\tTrue\tSun, 29 Nov 2026 17:59:00 +0100\tSun, 29 Nov 2026 11:00:00 +0100\tHung\ttask Reason:x blocked",
        "KernelDeadlock  True  Sun, 29 Nov 2026 17:59:00 +0100   Sun, 29 Nov 2026 11:00:00 +0100  Hung  task Reason:x blocked",
    ],
)  # fmt: skip
def test_what_logs_and_people_print(text):
    (spec,) = specs(text, node="n")
    assert spec["message"] == "KernelDeadlock is True: Hung: task Reason:x blocked"
    assert (spec["isFatal"], spec["generatedTimestamp"], spec["source"]["line"]) == (True, SINCE, 1)


def test_a_condition_of_type_and_status_alone():
    for text in ("Type:KernelDeadlock Status:True", "KernelDeadlock = True", "KernelDeadlock  True"):
        (spec,) = specs(text, node="n")
        assert (spec["isFatal"], spec["message"]) == (True, "KernelDeadlock is True")


# what cannot be used


@pytest.mark.parametrize(
    "value, reason",
    [
        ({"kind": "Pod", "metadata": {"name": "x"}, "status": {}}, "is a Pod, not a Node"),
        ("status:\n  conditions:\n  - {type: Ready, status: 'True'}\n  phase: Succeeded\n", "no Node"),
        ({"kind": "Node", "metadata": {"name": "x"}}, "the Node has no status"),
        ([a_node("x")], "not a map"),
        ([a_node({"status": "True"})], "without a type"),
        ([a_node({"type": "Ready"})], "no status"),
        ([a_node({"type": "Ready", "status": "Maybe"})], "no status"),
        ({"kind": "Node", "status": {"conditions": 7}}, "no list"),
        ("{", "cut off"),
        ("a: [", "malformed YAML"),
        (b"\x00\xff\xfe", "malformed"),
        ("what is this", "no Node"),
        ([7, None], "no Node"),
        ("Conditions: [{", "malformed"),
    ],
)
def test_what_is_no_condition_is_kept_with_its_reason(value, reason):
    result = parse(value, node="n")
    assert result["events"] == []
    assert result["unparsedTotal"] >= 1
    assert reason in result["unparsed"][0]["reason"]


def test_one_bad_condition_does_not_cost_the_others():
    result = parse(a_node({"type": ""}, condition("Ready", "False"), 7))
    assert [event["spec"]["checkName"] for event in result["events"]] == ["Ready"]
    assert result["unparsedTotal"] == 2


@pytest.mark.parametrize("value", [None, 7, True])
def test_neither_text_nor_data_is_one_clear_error(value):
    with pytest.raises(InvalidDocument, match="takes Nodes, or text of their conditions, not "):
        parse(value)


def test_nothing_in_nothing_out():
    for value in ([], {"items": []}, "", "[]", a_node()):
        assert parse(value)["events"] == []


def test_the_same_condition_has_the_same_name_at_every_reading_and_another_one_when_it_changes():
    def name(**more):
        return parse(a_node(condition("Ready", "False", "x", **more)))["events"][0]["metadata"]["name"]

    assert name() == name(lastHeartbeatTime="2026-11-29T18:00:30Z")
    assert name() != name(lastTransitionTime="2026-11-29T10:00:01Z")
    twins = nvsentinel(
        "SysLogsXIDError", "ErrorCode:79 x Recommended Action=NONE;ErrorCode:79 y Recommended Action=NONE;"
    )
    assert len(twins) == 2


def test_every_condition_of_the_table_is_reached_and_none_is_fatal_without_a_way_out():
    table = TABLES.of("condition")
    for code, entries in table.entries.items():
        for entry in entries:
            name = code.replace("*", "Some")
            match = {key: [value] if isinstance(value, str) else value for key, value in entry.get("match", {}).items()}
            words = {key: patterns[0].replace("*", "") for key, patterns in match.items()}
            for status in ("True", "False", "Unknown"):
                spec = one(name, status, words.get("reason", "Why"), words.get("message", "words"))
                if status not in entry.get("sickWhen", ["True"]):
                    assert not spec["isFatal"]
                    assert spec["state"] == ("unknown" if status == "Unknown" else "healthy")
                else:
                    assert (spec["isFatal"], spec["recommendedAction"]) == (entry["fatal"], entry["action"])
                    assert spec["state"] == entry.get("state", "sick")
                assert spec["metadata"].get("family") == entry.get("family")
