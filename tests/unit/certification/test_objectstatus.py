"""The status of a Certification that is an object."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import objectstatus

OBJECT = {
    "apiVersion": "goodput.fleet/v1alpha1",
    "kind": "Certification",
    "metadata": {"name": "accept", "namespace": "team", "uid": "1-2-3"},
}


def test_only_an_object_has_a_status():
    path = "/apis/goodput.fleet/v1alpha1/namespaces/team/certifications/accept/status"
    assert objectstatus.path_of(OBJECT) == path
    for missing in ("uid", "namespace"):
        metadata = {key: value for key, value in OBJECT["metadata"].items() if key != missing}
        assert objectstatus.path_of({**OBJECT, "metadata": metadata}) is None


@pytest.mark.parametrize(
    ("status", "phase"),
    [("pass", "Succeeded"), ("pass_unbounded", "Succeeded"), ("fail", "Failed"), ("incomplete", "Failed")],
)
def test_the_end(status, phase):
    results = {
        "status": status,
        "started": "2026-03-06T09:00:00Z",
        "finished": "2026-03-06T10:00:00Z",
        "counts": {"nodes": {"pass": 1, "fail": 1}},
        "nodes": [
            {"node": "a", "verdict": "pass", "reasons": []},
            {"node": "b", "verdict": "fail", "reasons": ["x", "y"]},
        ],
    }
    found = objectstatus.over(results, {"path": "/e", "digest": "sha256:1"}, "accept: done")
    assert (found["phase"], found["counts"], found["evidence"]["digest"]) == (phase, {"pass": 1, "fail": 1}, "sha256:1")
    assert found["nodes"][1] == {"name": "b", "verdict": "fail", "why": "x; y"}
    conditions = {each["type"]: each["status"] for each in found["conditions"]}
    assert conditions == {"InProgress": "False", phase: "True"}
