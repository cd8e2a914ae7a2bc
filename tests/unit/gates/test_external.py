"""Who else holds a node: what is seen, what is stale, and what holds nothing."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import model
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import node_facts

from tests.unit.gates.nodes import BOOT, FATAL, gate, node
from tests.unit.gates.test_model import held

QUARANTINE = {"quarantineHealthEvent": '[{"checkName":"GpuMemWatch","isFatal":true}]'}
CORDONED = {**QUARANTINE, "quarantineHealthEventIsCordoned": "True"}
STATE = "dgxc.nvidia.com/nvsentinel-state"
CORDON_BY = "k8saas.nvidia.com/cordon-by"


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict:
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def seen(raw: dict, **options) -> list[tuple]:
    return [(each["kind"], each["key"], each["holds"]) for each in model.state(raw, **options)["external"]]


@pytest.mark.parametrize(
    ("found", "kind", "holds"),
    [
        (FATAL, "taint", True),
        (taint("team/x", effect="NoExecute"), "taint", True),
        (taint("ToBeDeletedByClusterAutoscaler", "1764446400"), "taint", True),
        (taint("karpenter.sh/disrupted"), "taint", True),
        (taint("karpenter.sh/disruption", "disrupting"), "taint", True),
        (taint("node.kubernetes.io/not-ready", effect="NoExecute"), "system", True),
        (taint("node.cloudprovider.kubernetes.io/shutdown"), "system", True),
        (taint("nvidia.com/gpu", "present"), "pool", False),
        (taint("node-role.kubernetes.io/control-plane"), "pool", False),
    ],
)
def test_a_foreign_taint(found, kind, holds):
    raw = node(taints=[found])
    assert seen(raw) == [(kind, found["key"], holds)]
    assert model.state(raw)["open"] is not holds


@pytest.mark.parametrize(
    "found",
    [
        taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"),
        taint("node.kubernetes.io/unschedulable"),  # comes and goes with the cordon
    ],
)
def test_a_taint_that_says_nothing(found):
    assert model.state(node(taints=[found])) == {"open": True, "gates": [], "external": []}


def test_a_sites_own_pools():
    raw = node(taints=[taint("acme.io/gpu-h100", "yes"), taint("other")])
    assert seen(raw, pool_taints=["acme.io/gpu-*"]) == [("pool", "acme.io/gpu-h100", False), ("taint", "other", True)]


@pytest.mark.parametrize(
    ("fields", "held_by"),
    [
        # NVSentinel at work
        ({"annotations": CORDONED, "unschedulable": True, "by": "fault-quarantine"}, ["spec.unschedulable", *CORDONED]),
        (
            {
                "annotations": {
                    **QUARANTINE,
                    "quarantineHealthEventAppliedTaints": '[{"Key":"a","Value":"b","Effect":"NoExecute"}]',
                },
                "taints": [taint("a", "b", "NoExecute")],
            },
            ["a", "quarantineHealthEvent"],
        ),
        ({"labels": {STATE: "draining"}, "unschedulable": True}, ["spec.unschedulable", STATE]),
        ({"labels": {CORDON_BY: "NVSentinel"}, "unschedulable": True}, ["spec.unschedulable", CORDON_BY]),
        ({"labels": {"acme.io/cordon-by": "x"}, "unschedulable": True}, ["spec.unschedulable", "acme.io/cordon-by"]),
        (
            {
                "labels": {
                    CORDON_BY: "NVSentinel",
                    "k8saas.nvidia.com/cordon-timestamp": "2026-11-29T12-00-00Z",
                    "k8saas.nvidia.com/uncordon-by": "NVSentinel",
                    "k8saas.nvidia.com/uncordon-timestamp": "2026-11-01T12-00-00Z",
                },
                "unschedulable": True,
            },
            ["spec.unschedulable", CORDON_BY],
        ),
        # released
        ({"annotations": {"quarantineHealthEvent": "[]", "quarantineHealthEventAppliedTaints": ""}}, []),
        ({"annotations": {"quarantineHealthEvent": ""}, "labels": {STATE: "", CORDON_BY: ""}}, []),
        ({"labels": {CORDON_BY: "NVSentinel", "k8saas.nvidia.com/uncordon-by": "NVSentinel"}}, []),
        ({"annotations": {"quarantineHealthEvent": "[]"}, "unschedulable": True}, ["spec.unschedulable"]),
        ({"labels": {"k8saas.nvidia.com/ManagedByNVSentinel": "false"}}, []),
    ],
)
def test_nvsentinels_marks(fields, held_by):
    raw = node(**fields)
    found = model.state(raw)
    assert [each["key"] for each in found["external"] if each["holds"]] == held_by
    assert found["open"] is not bool(held_by)
    # whatever it is, holding and releasing a gate touches none of it
    before = json.dumps([raw["metadata"].get("annotations"), raw["metadata"]["labels"], raw["spec"]])
    after = held(raw, gate(cordon=True))
    change = model.release(after, "quarantine")
    assert set(change.patch["metadata"]["annotations"]) == {"gate.goodput.fleet/quarantine"}
    assert json.loads(before)[2].get("taints") == (change.patch.get("spec") or {"taints": None}).get("taints")


@pytest.mark.parametrize(
    ("kind", "key", "value", "holds"),
    [
        ("label", "nvsentinel.nvidia.com/validation-state", "validating", True),
        ("label", "nvsentinel.nvidia.com/validation-state", "", False),
        ("annotation", "nvsentinel.nvidia.com/validation-session", '[{"name":"v"}]', True),
        ("annotation", "nvsentinel.nvidia.com/validation-session", "[]", False),
        ("label", "nvidia.com/gpu-driver-upgrade-state", "drain-required", True),
        ("label", "nvidia.com/gpu-driver-upgrade-state", "upgrade-failed", True),
        ("label", "nvidia.com/gpu-driver-upgrade-state", "upgrade-done", False),
        ("label", "nvidia.com/ofed-driver-upgrade-state", "cordon-required", True),
        ("label", "nvidia.com/gpu.deploy.device-plugin", "paused-for-driver-upgrade", True),
        ("label", "nvidia.com/gpu.deploy.device-plugin", "true", False),
        ("label", "nvidia.com/mig.config.state", "rebooting", True),
        ("label", "nvidia.com/mig.config.state", "success", False),
        ("annotation", "weave.works/kured-reboot-in-progress", "2026-11-29T12:00:00Z", True),
        ("annotation", "weave.works/kured-most-recent-reboot-needed", "2026-11-29T12:00:00Z", False),
        ("annotation", "skyhook.nvidia.com/cordon_tuning", "true", True),
        ("annotation", "nodeset.slinky.slurm.net/node-cordon-reason", "[T] maintenance", True),
        ("annotation", "machineconfiguration.openshift.io/state", "Working", True),
        ("annotation", "machineconfiguration.openshift.io/state", "Done", False),
    ],
)
def test_marks_of_other_tools(kind, key, value, holds):
    raw = node(**{f"{kind}s": {key: value}})
    assert model.state(raw)["open"] is not holds
    assert seen(raw) == ([(kind, key, True)] if holds else [])
    after = held(raw, gate(cordon=True))
    change = model.release(after, "quarantine")
    assert (change.patch["spec"].get("unschedulable", "stays") == "stays") is holds  # they may count on it


@pytest.mark.parametrize(
    ("annotations", "labels", "detail"),
    [
        (CORDONED, {}, "stale, quarantined by NVSentinel once: the node is neither cordoned nor tainted"),
        (
            {**CORDONED, "quarantinedNodeUncordonedManually": "True"},
            {},
            "stale, quarantined by NVSentinel once: the node is lifted by hand",
        ),
        ({}, {STATE: "remediation-failed"}, "stale, NVSentinel's state is remediation-failed once"),
        ({}, {"nvidia.com/gpu-driver-upgrade-state": "upgrade-required"}, "a driver upgrade is due"),
        (
            # what is read from YAML is no text any more
            {
                "quarantineHealthEvent": [],
                "quarantineHealthEventAppliedTaints": [{"Key": "x", "Value": "y", "Effect": "NoSchedule"}],
                "quarantineHealthEventIsCordoned": True,
                "quarantinedNodeUncordonedManually": True,
            },
            {},
            "stale: NVSentinel's list of events is empty",
        ),
    ],
)
def test_marks_that_were_left_behind_are_told_and_hold_nothing(annotations, labels, detail):
    found = model.state(node(annotations=annotations, labels=labels))
    assert found["open"] is True
    assert found["external"][0]["detail"].startswith(detail.replace("the node is lifted", "the cordon was lifted"))
    assert not any(each["holds"] for each in found["external"])


def test_a_value_without_end_is_shown_in_part():
    events = json.dumps([{"message": "x" * 100_000}])
    raw = node(annotations={"quarantineHealthEvent": events}, unschedulable=True)
    assert max(len(each["value"]) for each in model.state(raw)["external"]) == 256


def test_a_node_that_is_being_deleted():
    raw = node()
    raw["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
    assert seen(raw) == [("system", "metadata.deletionTimestamp", True)]


def test_our_cordon_is_not_external_and_a_second_manager_makes_it_so():
    raw = held(node(), gate(cordon=True))
    assert seen(raw) == []
    entry = {"manager": "argocd", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    raw["metadata"]["managedFields"].append(entry)
    assert model.state(raw)["external"][0]["detail"] == "set by argocd"
    raw["metadata"]["managedFields"] = []  # somebody had them removed: the annotation is all there is
    assert seen(raw) == []


def test_facts_tell_what_of_a_gate_is_gone():
    raw = held(node(), gate(cordon=True), gate("manual"))
    assert node_facts(raw)["gaps"] == {}
    raw["spec"] = {"taints": [each for each in raw["spec"]["taints"] if "manual" in each["key"]]}
    assert node_facts(raw)["gaps"] == {"quarantine": ["taint", "cordon"]}
    raw["metadata"]["annotations"]["gate.goodput.fleet/quarantine"] = "by hand"
    assert node_facts(raw)["gaps"] == {"quarantine": ["text"]}


def test_facts_of_a_node_have_no_holes():
    raw = held(node(taints=[taint("a")], labels={"x": "y"}), gate(), gate("manual"))
    facts = node_facts(raw)
    assert facts["gates"] == ["manual", "quarantine"]
    assert facts["taints"][0] == {"key": "a", "value": "", "effect": "NoSchedule"}
    assert (facts["ready"], facts["bootId"], facts["providerId"]) == ("True", BOOT, "metal://gpu-0000")
    assert facts["conditions"]["Ready"] == {"status": "True", "reason": "KubeletReady", "message": "ok"}
    assert [each["key"] for each in facts["external"]] == ["a"]
    assert node_facts({}) == {
        "name": "",
        "labels": {},
        "annotations": {},
        "taints": [],
        "unschedulable": False,
        "ready": "Unknown",
        "bootId": "",
        "providerId": "",
        "conditions": {},
        "gates": [],
        "gaps": {},
        "external": [],
        "resourceVersion": "",
    }
