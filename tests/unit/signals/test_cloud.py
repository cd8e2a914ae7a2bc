# ruff: noqa: E501  (notices as clouds write them)
"""Notices of clouds: which node, what is coming and when, and what is over."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import cloud

from tests.unit.signals.shipped import BOOT, RECEIVED, TABLES, entities

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
INSTANCE = "i-0a1b2c3d4e5f60718"
NODES = {
    f"aws:///us-east-1a/{INSTANCE}": "aws-1",
    "gce://fleet/europe-west4-b/gke-h100-7": "gcp-1",
    "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/aks-gpu-vmss/virtualMachines/3": "azure-1",
    "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm-gpu-02": "azure-2",
}


def parse(value, **context) -> dict:
    given = {"node": "here", "nodes": NODES, "boot_id": BOOT, "received": RECEIVED, **context}
    result = cloud.parse(value, tables=TABLES, **given)
    assert all(GOOD(event) for event in result["events"])
    return result


def specs(value, **context) -> list[dict]:
    result = parse(value, **context)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


def one(value, **context) -> dict:
    (spec,) = specs(value, **context)
    return spec


def scheduled(code="system-reboot", **more) -> dict:
    return {
        "Code": code,
        "Description": "words",
        "EventId": "instance-event-07",
        "NotBefore": "2 Dec 2026 09:00:43 GMT",
        **more,
    }


def bridge(kind, detail, **more) -> dict:
    return {
        "detail-type": kind,
        "source": "aws.ec2",
        "id": "e-1",
        "time": "2026-11-29T17:00:00Z",
        "detail": detail,
        **more,
    }


def health(code="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", entities=({"entityValue": INSTANCE},), **more) -> dict:
    detail = {"eventTypeCode": code, "service": "EC2", "startTime": "Wed, 2 Dec 2026 09:00:00 GMT", **more}
    return bridge("AWS Health Event", {**detail, "affectedEntities": list(entities)}, source="aws.health")


def azure(kind="Redeploy", resources=("aks-gpu-vmss_3",), **more) -> dict:
    given = {"EventId": "e-7", "EventType": kind, "ResourceType": "VirtualMachine", "Resources": list(resources)}
    return {
        "DocumentIncarnation": 4,
        "Events": [{**given, "EventStatus": "Scheduled", "NotBefore": "Wed, 02 Dec 2026 09:00:00 GMT", **more}],
    }


def gcp(**more) -> dict:
    given = {"type": "SCHEDULED", "maintenanceStatus": "PENDING", "windowStartTime": "2026-12-02T09:00:00Z", **more}
    return {"name": "gke-h100-7", "machineType": "a3-highgpu-8g", "resourceStatus": {"upcomingMaintenance": given}}


def test_an_event_says_which_node_what_and_when():
    spec = one({"InstanceStatuses": [{"InstanceId": INSTANCE, "Events": [
        {"InstanceEventId": "instance-event-07", "Code": "system-reboot", "Description": "planned", "NotBefore": "2026-12-02T09:00:00.000Z",
         "NotAfter": "2026-12-02T11:00:00+00:00", "NotBeforeDeadline": "2026-12-09T09:00:00Z"}]}]})  # fmt: skip
    assert (spec["nodeName"], spec["agent"], spec["codeSpace"], spec["errorCode"]) == (
        "aws-1",
        "cloud-aws",
        "cloud",
        ["system-reboot"],
    )
    assert (spec["isFatal"], spec["severity"], spec["recommendedAction"]) == (False, "warning", "RESTART_VM")
    assert entities(spec) == {"INSTANCE": INSTANCE, "NOTICE": "instance-event-07"}
    times = {key: spec["metadata"][key] for key in ("notBefore", "notAfter", "deadline")}
    assert times == {
        "notBefore": "2026-12-02T09:00:00Z",
        "notAfter": "2026-12-02T11:00:00Z",
        "deadline": "2026-12-09T09:00:00Z",
    }
    assert spec["message"] == "system-reboot: host will be rebooted, from 2026-12-02T09:00:00Z: planned"
    assert (spec["checkName"], spec["bootId"], spec["receivedTimestamp"]) == ("CSPMaintenance", BOOT, RECEIVED)


@pytest.mark.parametrize(
    "value, node, fatal, action",
    [
        ([scheduled()], "here", False, "RESTART_VM"),
        (scheduled("instance-reboot"), "here", False, "RESTART_VM"),
        (scheduled("system-maintenance"), "here", False, "NONE"),
        (scheduled("instance-retirement"), "here", True, "REPLACE_VM"),
        ({"Events": [scheduled("instance-stop")]}, "here", True, "REPLACE_VM"),
        ({"InstanceId": INSTANCE, "Events": [scheduled("instance-stop")]}, "aws-1", True, "REPLACE_VM"),
        (health(), "aws-1", True, "REPLACE_VM"),
        (health("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"), "aws-1", True, "REPLACE_VM"),
        (health("AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"), "aws-1", False, "RESTART_VM"),
        (health("AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED"), "aws-1", False, "NONE"),
        (health("AWS_EC2_SOMETHING_NEW"), "aws-1", False, "CONTACT_SUPPORT"),
        (health(entities=[{"entityValue": f"arn:aws:ec2:us-east-1:1:instance/{INSTANCE}"}]), "aws-1", True, "REPLACE_VM"),
        ({**health(entities=[]), "resources": [INSTANCE]}, "aws-1", True, "REPLACE_VM"),
        ({"action": "terminate", "time": "2026-12-02T09:00:00Z"}, "here", True, "REPLACE_VM"),
        ({"action": "stop", "time": "2026-12-02T09:00:00Z"}, "here", True, "REPLACE_VM"),
        ({"noticeTime": "2026-11-29T17:00:00Z"}, "here", False, "NONE"),
        (bridge("EC2 Spot Instance Interruption Warning", {"instance-id": INSTANCE, "instance-action": "terminate"}), "aws-1", True, "REPLACE_VM"),
        (bridge("EC2 Instance Rebalance Recommendation", {"instance-id": INSTANCE}), "aws-1", False, "NONE"),
        (bridge("EC2 Something New", {"instance-id": INSTANCE}), "aws-1", False, "CONTACT_SUPPORT"),
        (gcp(), "gcp-1", False, "RESTART_VM"),
        (gcp(maintenanceReasons=["FAILURE_GPU_XID"]), "gcp-1", True, "REPLACE_VM"),
        (gcp(type="UNSCHEDULED"), "gcp-1", False, "RESTART_VM"),
        ({"upcoming_maintenance": {"type": "SCHEDULED", "window_start_time": "2026-12-02T09:00:00Z"}}, "here", False, "RESTART_VM"),
        ("MIGRATE_ON_HOST_MAINTENANCE\n", "here", False, "NONE"),
        ("TERMINATE_ON_HOST_MAINTENANCE", "here", True, "REPLACE_VM"),
        ("TRUE", "here", True, "REPLACE_VM"),
        ({"maintenance-event": "TERMINATE_ON_HOST_MAINTENANCE"}, "here", True, "REPLACE_VM"),
        ({"instance": {"preempted": True}}, "here", True, "REPLACE_VM"),
        ({"protoPayload": {"methodName": "v1.compute.instances.preempted", "resourceName": "projects/fleet/zones/europe-west4-b/instances/gke-h100-7"}}, "gcp-1", True, "REPLACE_VM"),
        (azure(), "azure-1", False, "RESTART_VM"),
        (azure("Reboot", ["AKS-GPU-VMSS_3"]), "azure-1", False, "RESTART_VM"),
        (azure("Freeze", ["VM-GPU-02"], NotBefore="", EventStatus="Started", DurationInSeconds=-1), "azure-2", False, "NONE"),
        (azure("Preempt"), "azure-1", True, "REPLACE_VM"),
        (azure("Terminate"), "azure-1", True, "REPLACE_VM"),
        (azure("NewKind"), "azure-1", False, "CONTACT_SUPPORT"),
    ],
)  # fmt: skip
def test_what_a_notice_means(value, node, fatal, action):
    for form in (value, value if isinstance(value, str) else json.dumps(value, indent=2), yaml.safe_dump(value)):
        spec = one(form if not isinstance(value, str) else value)
        assert (spec["nodeName"], spec["isFatal"], spec["recommendedAction"]) == (node, fatal, action)
        assert (spec["isHealthy"], spec["state"]) == (False, "sick")
        assert spec["severity"] == "fatal" if fatal else spec["severity"] in ("warning", "error")


@pytest.mark.parametrize(
    "value",
    [
        scheduled(State="completed"),
        scheduled("instance-retirement", State="canceled", Description="[Canceled] words"),
        scheduled("instance-stop", Description="[Completed] words"),
        scheduled("instance-stop", Description="[Cancelled] words", State="active"),
        health(statusCode="closed"),
        health(entities=[{"entityValue": INSTANCE, "status": "RESOLVED"}]),
        health("AWS_EC2_ULTRASERVER_MAINTENANCE_COMPLETED"),
        azure("Terminate", EventStatus="Canceled"),
        azure("Reboot", EventStatus="Completed"),
        gcp(maintenanceStatus="COMPLETED", maintenanceReasons=["FAILURE_GPU"]),
        "NONE",
        "NONE\n",
        {"instance": {"maintenanceEvent": "NONE", "name": "x"}},
        "preempted: FALSE\n",
        "FALSE",
    ],
)
def test_what_is_over_is_healthy(value):
    spec = one(value)
    assert (spec["isHealthy"], spec["isFatal"], spec["recommendedAction"], spec["severity"]) == (
        True,
        False,
        "NONE",
        "info",
    )


@pytest.mark.parametrize(
    "value",
    [
        {"DocumentIncarnation": 3, "Events": []},
        {"Events": []},
        [],
        "[]",
        "",
        {"InstanceStatuses": [{"InstanceId": INSTANCE}, {"InstanceId": "i-99999999", "Events": []}]},
        {"items": [{"name": "a", "machineType": "x", "resourceStatus": {}}]},
        '<?xml version="1.0"?>\n<html><head><title>404 - Not Found</title></head></html>',
    ],
)
def test_nothing_is_announced(value):
    assert specs(value) == []


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("21 Jan 2019 09:00:43 GMT", "2019-01-21T09:00:43Z"),
        ("Thu, 17 Jan 2019 05:57:06 GMT", "2019-01-17T05:57:06Z"),
        ("2019-01-17T05:57:06Z", "2019-01-17T05:57:06Z"),
        ("2019-01-17T06:57:06.000+01:00", "2019-01-17T05:57:06Z"),
        (1547704626, "2019-01-17T05:57:06Z"),
        ("soon", "soon"),  # kept as it is written
    ],
)
def test_forms_of_times(given, wanted):
    assert one(scheduled(NotBefore=given))["metadata"]["notBefore"] == wanted


def test_the_metadata_server_of_google_in_text():
    flat = (
        "can_reschedule false\nlatest_window_start_time 2026-12-03T09:00:00+00:00\nmaintenance_status ONGOING\ntype UNSCHEDULED\n"
        "maintenance_reasons FAILURE_NVLINK\nwindow_end_time 2026-12-02T13:00:00+00:00\nwindow_start_time 2026-12-02T09:00:00+00:00\n"
    )
    spec = one(flat)
    assert (spec["isFatal"], spec["metadata"]["noticeStatus"], spec["nodeName"]) == (True, "ongoing", "here")
    assert spec["metadata"]["deadline"] == "2026-12-03T09:00:00Z"
    cut_out = '"Upcoming maintenance": {\n"can_reschedule": "true",\n"maintenance_status": "PENDING",\n"type": "SCHEDULED",\n"window_start_time": "2026-12-02T09:00:00Z"\n}\n'
    assert one(cut_out)["metadata"]["canReschedule"] == "true"


# which node


def test_one_notice_of_several_instances_is_an_event_of_each_node_that_is_known():
    result = parse(azure("Freeze", ["aks-gpu-vmss_3", "vm-gpu-02", "vm-of-others"]))
    assert [event["spec"]["nodeName"] for event in result["events"]] == ["azure-1", "azure-2"]
    (unknown,) = result["unparsed"]
    assert "vm-of-others is no instance of a node that is known" in unknown["reason"]


@pytest.mark.parametrize(
    "value", [health(entities=[{"entityValue": "i-0123456789abcdef0"}]), health(entities=[]), gcp()]
)
def test_an_instance_that_no_node_is_known_for_is_kept(value):
    result = parse(value, nodes={}, node="here")
    assert result["events"] == []
    assert result["unparsedTotal"] == 1


def test_a_notice_without_an_instance_needs_to_know_where_it_was_read():
    (unknown,) = parse(scheduled(), node="")["unparsed"]
    assert unknown["reason"] == "system-reboot: the notice names no instance: say which node it was read on"


def test_the_same_name_in_two_zones_is_nobodys():
    nodes = {"gce://p/zone-a/gke-h100-7": "a", "gce://p/zone-b/gke-h100-7": "b"}
    (unknown,) = parse(gcp(), nodes=nodes)["unparsed"]
    assert "the name of 2 instances, of a, b" in unknown["reason"]
    link = {"selfLink": "https://www.googleapis.com/compute/v1/projects/p/zones/zone-b/instances/gke-h100-7"}
    assert one({**gcp(), **link}, nodes=nodes)["nodeName"] == "b"


def test_nodes_of_the_api_and_facts_of_nodes_say_which_instance_they_are():
    raw = [
        {"metadata": {"name": "n-1"}, "spec": {"providerID": f"aws:///us-east-1a/{INSTANCE}"}},
        {"metadata": {"name": "n-2"}, "spec": {}},
    ]
    facts = [{"name": "n-1", "providerId": f"aws:///us-east-1a/{INSTANCE}"}]
    assert one(health(), nodes=raw)["nodeName"] == one(health(), nodes=facts)["nodeName"] == "n-1"
    assert one(health(), nodes={INSTANCE: "n-1"})["nodeName"] == "n-1"


@pytest.mark.parametrize("nodes", [7, [7], ["x"], {"i-1": 7}, [{"metadata": {}}]])
def test_nodes_that_are_none_are_one_clear_error(nodes):
    with pytest.raises(InvalidDocument) as caught:
        parse(health(), nodes=nodes)
    assert caught.value.problems[0].path.startswith("nodes")


# what cannot be used


@pytest.mark.parametrize(
    "value, reason",
    [
        ({"kind": "Pod"}, "no notice of AWS"),
        ([7], "no notice of AWS"),
        ("hello", "no notice of AWS"),
        ("{", "cut off"),
        ({"DocumentIncarnation": 1, "Events": 7}, "Events is no list"),
        ({"DocumentIncarnation": 1, "Events": [{"EventId": "x"}]}, "without an EventType"),
        (azure(resources=[]), "names no resource"),
        ({"upcomingMaintenance": 7}, "is no map"),
        ({"maintenanceEvent": "LATER"}, "maintenance_event is 'LATER'"),
        (bridge("EC2 Something", 7), "without a detail"),
        (bridge("EC2 Something", {}), "names no instance"),
        ({"InstanceStatuses": [{"Events": []}]}, "without an InstanceId"),
        ({"InstanceStatuses": [{"InstanceId": INSTANCE, "Events": [7]}]}, "without a Code"),
    ],
)
def test_what_is_no_notice_is_kept_with_its_reason(value, reason):
    result = parse(value)
    assert result["events"] == []
    assert reason in result["unparsed"][0]["reason"]


def test_neither_text_nor_data_is_one_clear_error():
    with pytest.raises(InvalidDocument, match="takes notices of a cloud, as text or data, not NoneType"):
        parse(None)


def test_lines_of_json_have_their_number_and_a_broken_one_costs_itself_only():
    lines = [json.dumps(health()), "{oops", json.dumps(azure())]
    result = parse("\n".join(lines))
    assert [event["spec"]["source"]["line"] for event in result["events"]] == [1, 3]
    assert [item["line"] for item in result["unparsed"]] == [2]


def test_the_same_notice_has_the_same_name_at_every_reading_and_another_one_when_it_moves():
    def name(**more):
        return parse(azure(**more))["events"][0]["metadata"]["name"]

    assert name() == name() == name(Description="told later")
    assert name() != name(NotBefore="Thu, 03 Dec 2026 09:00:00 GMT")


def test_every_entry_of_the_table_asks_for_something_when_it_is_fatal():
    for entries in TABLES.of("cloud").entries.values():
        for entry in entries:
            assert entry["family"] in ("aws", "gcp", "azure")
            assert not entry["fatal"] or entry["action"] == "REPLACE_VM"
