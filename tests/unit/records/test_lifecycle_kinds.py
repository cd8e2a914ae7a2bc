"""ValidationRequest and RepairRequest: what their schemas take and refuse, and that the quick judge knows them."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import repairrequest, validationrequest

VALIDATION = """
apiVersion: goodput.fleet/v1alpha1
kind: ValidationRequest
metadata: {name: repaired-1a2b3c4d, namespace: goodput-fleet}
spec:
  reason: repaired
  cause: reboot of gpu-1 after Xid 79
  nodes: [{name: gpu-1, uid: 8f0c, bootId: b2}, {name: gpu-2}]
  tests: [{domain: communication, variant: nccl-loopback-nvswitch}]
  options: {timeoutPerJob: 10m}
  retries: 2
status:
  phase: Running
  digest: vr-0011223344556677
  startedAt: "2026-11-30T00:00:00Z"
  counts: {Running: 1, Pending: 1}
  nodes:
    - {name: gpu-1, uid: 8f0c, phase: Running, attempts: 1, batch: vr-1, basis: {bootId: b2, gpus: {capacity: 8}}}
    - {name: gpu-2, phase: Pending, attempts: 0, basis: null, why: waits for gpu-1}
"""
REPAIR = """
apiVersion: goodput.fleet/v1alpha1
kind: RepairRequest
metadata: {name: gpu-1-xid-79}
spec:
  node: {name: gpu-1, uid: 8f0c, bootId: b1}
  gate: quarantine
  evidence: 9f86d081884c7d65
  fault: {code: xid-79, action: RESTART_BM, entity: "0000:65:00.0", since: "2026-11-30T00:00:00Z"}
status:
  phase: Repairing
  rung: reboot
  attempts:
    - {rung: reset, key: k1, requestedAt: "2026-11-30T00:00:00Z", executed: true, verified: false, validated: null}
    - {rung: reboot, key: k2, bootBefore: b1, executedAt: null, executed: null, verified: null, validation: ""}
  serials: [SN1]
  ticket: {}
"""
KINDS = {
    "ValidationRequest": (VALIDATION, validationrequest.SCHEMA),
    "RepairRequest": (REPAIR, repairrequest.SCHEMA),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_document_needs_no_jsonschema(kind):
    text, rules = KINDS[kind]
    document = yamltree.load_text(text, "x.yaml")
    assert quickcheck.compile_schema(rules)(document.data)
    assert schema.validate(document, kind) == []


def changed(kind: str, path: tuple, value: object) -> list[str]:
    data = copy.deepcopy(yamltree.load_text(KINDS[kind][0], "x.yaml").data)
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return [problem.path for problem in schema.validate(yamltree.Document(data, {}, "x.yaml"), kind)]


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("ValidationRequest", ("spec", "nodes"), []),
        ("ValidationRequest", ("spec", "nodes"), [{"name": f"n{i}"} for i in range(validationrequest.MAX_NODES + 1)]),
        ("ValidationRequest", ("spec", "nodes", 0, "name"), "GPU 1"),
        ("ValidationRequest", ("spec", "nodes", 0, "uid"), ""),
        ("ValidationRequest", ("spec", "tests"), []),
        ("ValidationRequest", ("spec", "tests"), None),
        ("ValidationRequest", ("spec", "reason"), "because"),
        ("ValidationRequest", ("spec", "cause"), "x" * 513),
        ("ValidationRequest", ("spec", "retries"), 6),
        ("ValidationRequest", ("spec", "retries"), True),
        ("ValidationRequest", ("spec", "node"), "gpu-1"),
        ("ValidationRequest", ("status", "phase"), "Done"),
        ("ValidationRequest", ("status", "nodes", 0, "phase"), "Open"),
        ("ValidationRequest", ("status", "nodes", 0, "attempts"), -1),
        ("RepairRequest", ("spec", "node", "uid"), None),
        ("RepairRequest", ("spec", "fault", "code"), ""),
        ("RepairRequest", ("spec", "fault", "action"), "PRAY"),
        ("RepairRequest", ("status", "attempts", 0, "executed"), "yes"),
        ("RepairRequest", ("status", "attempts", 0, "rung"), "hammer"),
        ("RepairRequest", ("status", "attempts", 0, "requestedAt"), "yesterday"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_stands(kind, path, value):
    dotted = yamltree.dotted(path)
    problems = changed(kind, path, value)
    assert problems and all(problem == dotted or problem.startswith(dotted) for problem in problems), problems
