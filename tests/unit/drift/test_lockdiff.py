# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of the lock changes: one cause, one change, and whether nodes have to be certified again."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.drift import lockdiff, recertify
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, lockfile
from hypothesis import given
from hypothesis import strategies as st

from tests.standin import locks

DRIVER = {"driver": {"valuesPath": "driver.version", "value": "580.65.06"}}
RENDERED = {
    "workloads": [{"kind": "Deployment", "namespace": "gpu-operator", "name": "op", "images": {"main": "r.io/op:1"}}],
    "crds": [{"name": "policies.nvidia.com", "digest": digest.sha256("a")}],
}


def base() -> dict:
    operator = locks.component(
        "gpu-operator",
        {"driver": {"version": "580.65.06"}, "dcgm": {"enabled": True}, "env": [{"name": "TOKEN", "value": "s3cret"}]},
        nodeFacts=copy.deepcopy(DRIVER),
        images=["r.io/op:1", "r.io/driver:580.65.06"],
        manifests=[locks.manifest("tuning", "a: 1\nb: 2\n"), locks.manifest("later", "c: 3\n")],
        rendered=copy.deepcopy(RENDERED),
    )
    made = locks.lock(
        operator, locks.component("network-operator"), locks.component("monitoring", {"replicas": 1, "gone": None})
    )
    made["spec"]["constraints"] = [
        {"name": "K8s.server.version", "value": ">= 1.30", "severity": "error", "from": "kind"}
    ]
    made["spec"]["checks"] = [
        {"name": "nccl", "domain": "communication", "expression": "value >= 300", "unit": "GB/s", "from": "kind"}
    ]
    return sealed(made)


def sealed(lock: dict) -> dict:
    for component in lock["spec"]["components"]:
        component["valuesDigest"] = digest.sha256(component["values"])
        for manifest in component.get("manifests") or ():
            manifest["digest"] = digest.sha256_bytes(manifest["content"].encode())
    lock["metadata"]["digest"] = digest.sha256(lock["spec"])
    return lock


def changed(*steps) -> list[dict]:
    """The changes that `steps` make, of (component or "", path of keys, value); value ... deletes."""
    new = base()
    for name, keys, value in steps:
        place = new["spec"]
        if name:
            place = next(item for item in new["spec"]["components"] if item["name"] == name)
        for key in keys[:-1]:
            place = place[key]
        if value is ...:
            del place[keys[-1]]
        else:
            place[keys[-1]] = value
    return lockdiff.diff(base(), lockfile.load_lock(sealed(new)))


KEYS = {"component", "path", "before", "after", "change", "kind", "recertify", "why"}


def one(found: list[dict], *fields: str) -> tuple:
    assert len(found) == 1, found
    assert found[0].keys() == KEYS
    return tuple(found[0][field] for field in fields)


def test_a_lock_does_not_differ_from_itself():
    assert lockdiff.diff(base(), base()) == []


OPERATOR, NETWORK, MONITORING = "gpu-operator", "network-operator", "monitoring"


@pytest.mark.parametrize(
    ("step", "kind", "path", "sides", "again"),
    [
        ((OPERATOR, ["chart", "version"], "2.0.0"), "version", "chart.version", ("1.2.3", "2.0.0"), True),
        ((NETWORK, ["chart", "version"], "2.0.0"), "version", "chart.version", ("1.2.3", "2.0.0"), True),
        ((MONITORING, ["chart", "version"], "2.0.0"), "version", "chart.version", ("1.2.3", "2.0.0"), False),
        ((OPERATOR, ["values", "dcgm", "enabled"], False), "value", "values.dcgm.enabled", (True, False), True),
        ((MONITORING, ["values", "replicas"], 3), "value", "values.replicas", (1, 3), False),
        ((MONITORING, ["values", "replicas"], True), "value", "values.replicas", (1, True), False),
        ((MONITORING, ["values", "new"], None), "value", "values.new", (None, None), False),
        ((MONITORING, ["values", "gone"], ...), "value", "values.gone", (None, None), False),
        ((MONITORING, ["namespace"], "other"), "release", "namespace", ("monitoring", "other"), False),
        ((OPERATOR, ["images", 0], "r.io/op:2"), "image", "images", ("r.io/op:1", "r.io/op:2"), True),
        (
            (OPERATOR, ["rendered", "workloads", 0, "images", "main"], "r.io/op:3"),
            "rendered",
            "rendered.workloads['Deployment gpu-operator/op'].main",
            ("r.io/op:1", "r.io/op:3"),
            True,
        ),
        (
            (OPERATOR, ["manifests", 0, "content"], "a: 1\nb: 3\nd: 4\n"),
            "manifest",
            "manifests.tuning",
            ("1 lines less", "2 lines more"),
            True,
        ),
        ((OPERATOR, ["manifests", 1], ...), "manifest", "manifests.later", ("1 lines", None), True),
        ((OPERATOR, ["manifests", 0, "phase"], "pre"), "manifest", "manifests.tuning.phase", ("post", "pre"), True),
        ((MONITORING, ["crds"], ["x.example.com"]), "other", "crds", (None, ["x.example.com"]), False),
        ((OPERATOR, ["crds"], ["x.example.com"]), "other", "crds", (None, ["x.example.com"]), False),
        (
            ("", ["constraints", 0, "value"], ">= 1.33"),
            "constraint",
            "constraints['K8s.server.version'].value",
            (">= 1.30", ">= 1.33"),
            False,
        ),
        (
            ("", ["checks", 0, "expression"], "value >= 250"),
            "check",
            "checks.nccl.expression",
            ("value >= 300", "value >= 250"),
            False,
        ),
        (
            ("", ["order"], [NETWORK, OPERATOR, MONITORING]),
            "order",
            "order",
            ("gpu-operator, network-operator, monitoring", "network-operator, gpu-operator, monitoring"),
            False,
        ),
    ],
)
def test_one_cause_is_one_change(step, kind, path, sides, again):
    found = one(changed(step), "kind", "path", "before", "after", "recertify")
    assert found == (kind, path, *sides, again)


def test_the_driver_is_told_once_and_calls_for_certifying():
    found = changed(
        (OPERATOR, ["values", "driver", "version"], "580.105.08"),
        (OPERATOR, ["nodeFacts", "driver", "value"], "580.105.08"),
    )
    fields = one(found, "kind", "path", "before", "after", "why")
    assert fields == (
        "nodeFact",
        "values.driver.version",
        "580.65.06",
        "580.105.08",
        "the driver of GPU nodes changes",
    )


def test_one_new_image_is_told_once():
    found = changed(
        (OPERATOR, ["images", 0], "r.io/op:2"),
        (OPERATOR, ["rendered", "workloads", 0, "images", "main"], "r.io/op:2"),
    )
    assert one(found, "kind", "after") == ("image", "r.io/op:2")


def test_components_that_come_and_go():
    new = base()
    gone = new["spec"]["components"].pop(0)
    new["spec"]["components"].append(locks.component("aws-efa"))
    new["spec"]["components"].sort(key=lambda item: (item["tier"], item["name"]))
    new["spec"]["order"] = [item["name"] for item in new["spec"]["components"]]
    found = {row["component"]: row for row in lockdiff.diff(base(), sealed(new)) if row["kind"] in ("added", "removed")}
    assert (
        found["aws-efa"] | {"before": None, "after": "aws-efa 1.2.3", "kind": "added", "recertify": True}
        == found["aws-efa"]
    )
    assert (found[gone["name"]]["kind"], found[gone["name"]]["before"]) == ("removed", f"{gone['name']} 1.2.3")


def test_without_a_lock_before_all_is_added():
    found = lockdiff.diff(None, base())
    assert {row["component"] for row in found if row["kind"] == "added"} == {OPERATOR, NETWORK, MONITORING}
    assert [row["component"] for row in found if row["recertify"]] == [OPERATOR, NETWORK]


def test_what_a_site_says_of_its_components_counts():
    step = (MONITORING, ["values", "replicas"], 3)
    assert one(changed(step), "recertify") == (False,)
    new = base()
    next(item for item in new["spec"]["components"] if item["name"] == MONITORING)["values"]["replicas"] = 3
    assert one(lockdiff.diff(base(), sealed(new), hardware=["moni*"]), "recertify") == (True,)
    spared = lockdiff.diff(base(), sealed(new), hardware=["moni*"], harmless=["monitoring/values.repl*"])
    assert one(spared, "recertify", "why") == (False, "")


def test_a_secret_is_told_to_change_and_not_what_it_is():
    found = changed((OPERATOR, ["values", "env", 0, "value"], "0ther"))
    assert one(found, "path", "before", "after") == ("values.env[0].value", "(redacted)", "(redacted)")
    more = [{"name": "TOKEN", "value": "s3cret"}, {"name": "A_TOKEN", "value": "hidden"}]
    text = json.dumps(changed((OPERATOR, ["values", "env"], more), (OPERATOR, ["values", "password"], "pa55")))
    assert not any(word in text for word in ("s3cret", "hidden", "pa55", "redacted:"))


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text("ab|`<", max_size=3))
VALUES = st.recursive(
    st.dictionaries(st.text("abc.", min_size=1, max_size=2), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.text("abc.", min_size=1, max_size=2), st.one_of(LEAVES, inner, st.lists(inner))),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_other_values_are_always_told_and_the_same_never(one_, other):
    old, new = (sealed(locks.lock(locks.component("gpu-operator", values))) for values in (one_, other))
    found = lockdiff.diff(old, new)
    assert bool(found) is (old["metadata"]["digest"] != new["metadata"]["digest"])
    assert all(row["recertify"] for row in found)
    assert found == lockdiff.diff(copy.deepcopy(old), copy.deepcopy(new))


# which nodes

CHANGES = [{"recertify": True, "why": "the driver changes"}, {"recertify": False, "why": ""}]


def test_the_nodes_of_the_change_and_those_that_drifted():
    report = {"spec": {"recertify": ["gpu-1", "gpu-3"]}}
    found, odd = recertify.affected(CHANGES, report, ["gpu-3", "gpu-2"], "pool=b")
    assert odd == ""
    assert found == [
        {"node": "gpu-1", "why": [recertify.DRIFTED]},
        {"node": "gpu-2", "why": ["the driver changes"]},
        {"node": "gpu-3", "why": ["the driver changes", recertify.DRIFTED]},
    ]


def test_no_change_that_matters_touches_no_node():
    assert recertify.affected(CHANGES[1:], None, ["gpu-1"]) == ([], "")


@pytest.mark.parametrize(
    ("selector", "said"), [("pool=7", "the selector pool=7 fits none"), ("", "the cluster has none")]
)
def test_a_change_that_finds_no_node_is_odd(selector, said):
    found, odd = recertify.affected(CHANGES, None, [], selector)
    assert found == [] and odd.endswith(said)
