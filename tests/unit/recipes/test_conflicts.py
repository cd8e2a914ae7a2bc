"""Two overlays, neither more specific than the other, that contradict each other: an error, never a tie."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict

from .layers import chart

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
EKS, H100, BOTH = {"service": "eks"}, {"accelerator": "h100"}, {"service": "eks", "accelerator": "h100"}


def two(site, left: dict, right: dict, both: dict | None = None):
    """Overlays of EKS and H100 with these contents, on a base with a, and perhaps one that outranks them."""
    site.registry(chart("a", values={"set": 0}, manifests=[{"name": "m", "content": OBJECT}]), chart("b"))
    site.overlay("base", components=["a"], constraints=[{"name": "GPU.count", "value": ">= 1"}])
    site.overlay("eks", EKS, **left)
    site.overlay("h100", H100, **right)
    if both is not None:
        site.overlay("h100-eks", BOTH, **both)
    return site


def a(**fields) -> dict:
    return {"components": [{"name": "a", **fields}]}


def limit(value: str, **fields) -> dict:
    return {"constraints": [{"name": "GPU.count", "value": value, **fields}]}


CHECK = {"name": "nccl", "expression": "value >= 300"}
CONFLICTS = [
    pytest.param(a(version="1.1.0"), a(version="1.2.0"), "a.chart.version", id="version"),
    pytest.param(a(version="1.1.0"), a(chart={"version": "1.2.0"}), "a.chart.version", id="both-spellings-of-version"),
    pytest.param(a(chart={"name": "x"}), a(chart={"name": "y"}), "a.chart.name", id="chart"),
    pytest.param(a(namespace="x"), a(namespace="y"), "a.namespace", id="namespace"),
    pytest.param(a(release="x"), a(release="y"), "a.release", id="release"),
    pytest.param(a(values={"d": {"v": 1}}), a(values={"d": {"v": 2}}), "a.values.d.v", id="value"),
    pytest.param(a(values={"d": 1}), a(values={"d": True}), "a.values.d", id="one-and-true-differ"),
    pytest.param(a(values={"d": 1}), a(values={"d": "1"}), "a.values.d", id="one-and-text-differ"),
    pytest.param(a(values={"d": [1]}), a(values={"d": [1, 2]}), "a.values.d", id="list"),
    pytest.param(a(values={"d": None}), a(values={"d": 1}), "a.values.d", id="delete-and-set"),
    pytest.param(a(values={"d": None}), a(values={"d": {"v": 1}}), "a.values.d.v", id="delete-above"),
    pytest.param(a(values={"d": {"e": {"f": 1}}}), a(values={"d": [1]}), "a.values.d.e.f", id="list-above"),
    pytest.param(
        a(manifests=[{"name": "m", "content": OBJECT + "y: 1"}]),
        a(manifests=[{"name": "m", "content": OBJECT + "z: 1"}]),
        "a.manifests.m",
        id="manifest",
    ),
    pytest.param(
        a(manifests=[{"name": "m", "remove": True}]),
        a(manifests=[{"name": "m", "content": OBJECT + "z: 1"}]),
        "a.manifests.m",
        id="manifest-removed",
    ),
    pytest.param(
        a(health={"selector": {"app": "x"}}), a(health={"selector": {"app": "y"}}), "a.health.selector.app", id="health"
    ),
    pytest.param(
        a(health={"workloads": [{"kind": "Job", "name": "j", "optional": True}]}),
        a(health={"workloads": [{"kind": "Job", "name": "j", "optional": False}]}),
        "a.health.workloads.Job/j.optional",
        id="workload",
    ),
    pytest.param(a(images=["x:1"]), a(images=["x:2"]), "a.images", id="images"),
    pytest.param(a(nodeFacts={"driver": "x"}), a(nodeFacts={"driver": "y"}), "a.nodeFacts.driver", id="node-fact"),
    pytest.param(limit("== 8"), limit("== 4"), "constraints.GPU.count.value", id="constraint"),
    pytest.param(
        limit(">= 1", severity="error", remediation="buy"),
        limit(">= 1", severity="error", remediation="rent"),
        "constraints.GPU.count.remediation",
        id="remediation",
    ),
    pytest.param(
        {"constraints": [{"name": "GPU.count", "remove": True, "reason": "x"}]},
        limit(">= 4"),
        "constraints.GPU.count",
        id="constraint-removed",
    ),
    pytest.param({"checks": [CHECK]}, {"checks": [{**CHECK, "unit": "GB/s"}]}, "checks.nccl", id="check"),
    pytest.param({"components": [{"name": "a", "remove": True}]}, a(version="1.1.0"), "a", id="component-removed"),
]


@pytest.mark.parametrize("left, right, path", CONFLICTS)
def test_conflict_names_both_files_lines_and_the_key(bare, left, right, path):
    with pytest.raises(Conflict) as caught:
        two(bare, left, right).resolve(**BOTH)
    (problem,) = caught.value.problems
    assert problem.message.startswith(f"{path}: ")
    assert problem.file.endswith("overlays/eks.yaml")
    assert problem.line > 1
    assert "overlays/h100.yaml:" in problem.message
    assert "service: eks" in problem.hint
    assert "accelerator: h100" in problem.hint


@pytest.mark.parametrize("left, right, path", CONFLICTS)
def test_a_conflict_is_found_by_lint_before_anybody_asks(bare, left, right, path):
    found = [one for one in two(bare, left, right).lint() if one.code == "conflict"]
    assert [one.message.split(": ")[0] for one in found] == [path]


@pytest.mark.parametrize("left, right, path", CONFLICTS)
def test_each_alone_is_fine(bare, left, right, path):
    site = two(bare, left, right)
    if left != {"components": [{"name": "a", "remove": True}]}:
        site.resolve(**EKS)
    site.resolve(**H100)


@pytest.mark.parametrize(
    "left, right",
    [
        (a(version="1.1.0"), a(version="1.1.0")),
        (a(values={"d": {"v": 1}}), a(values={"d": {"w": 2}})),
        (a(values={"d": {}}), a(values={"d": {"w": 2}})),
        (a(values={"d": None}), a(values={"d": None})),
        (a(dependsOn=["b"]), a(dependsOnOptional=["b"])),
        (
            a(manifests=[{"name": "x", "content": OBJECT + "y: 1"}]),
            a(manifests=[{"name": "z", "content": OBJECT + "z: 1"}]),
        ),
        (limit(">= 4"), limit(">= 4")),
    ],
    ids=str,
)
def test_agreement_is_no_conflict(bare, left, right):
    site = two(bare, left, right)
    site.overlay("base", components=["a", "b"], constraints=[{"name": "GPU.count", "value": ">= 1"}])
    site.resolve(**BOTH)


def test_what_outranks_both_settles_it(bare):
    site = two(bare, a(version="1.1.0"), a(version="1.2.0"), a(version="1.3.0"))
    assert site.component("a", **BOTH)["chart"]["version"] == "1.3.0"
    assert [one for one in site.lint() if one.severity == "error"] == []


@pytest.mark.parametrize(
    "settler, settled",
    [
        ({"values": {"d": {"v": 3}}}, False),
        ({"values": {"d": None}}, True),
        ({"values": {"d": {"v": 3, "w": 4}}}, True),
        ({"namespace": "x"}, False),
    ],
    ids=str,
)
def test_a_settler_must_say_every_value_that_is_in_doubt(bare, settler, settled):
    site = two(bare, a(values={"d": None}), a(values={"d": {"v": 1, "w": 2}}), a(**settler))
    if settled:
        site.resolve(**BOTH)
    else:
        assert {one.code for one in site.problems(**BOTH)} == {"conflict"}


def test_who_outranks_only_one_of_them_settles_nothing(bare):
    site = two(bare, a(version="1.1.0"), a(version="1.2.0"))
    site.overlay("eks-ubuntu", {"service": "eks", "os": "ubuntu"}, **a(version="1.4.0"))
    (problem,) = site.problems(**BOTH, os="ubuntu")
    assert "a.chart.version: eks-ubuntu sets '1.4.0', and h100 sets '1.2.0'" in problem.message


def test_what_is_outranked_no_longer_counts(bare):
    site = two(bare, a(version="1.1.0"), a(version="1.2.0"))
    site.overlay("eks-ubuntu", {"service": "eks", "os": "ubuntu"}, **a(version="1.2.0"))
    assert site.component("a", **BOTH, os="ubuntu")["chart"]["version"] == "1.2.0", "the two that hold agree"
    assert [one.code for one in site.problems(**BOTH)] == ["conflict"]


def test_two_bases_may_not_conflict(bare):
    bare.registry(chart("a"))
    bare.overlay("eks", EKS)
    bare.overlay("base-one", **a(version="1.1.0"))
    bare.overlay("base-two", **a(version="1.2.0"))
    (problem,) = bare.problems(**EKS)
    assert "base-one" in problem.message
    assert "base-two" in problem.message


def test_overlays_that_no_query_matches_together_may_differ(bare):
    site = two(bare, a(version="1.1.0"), {})
    site.overlay("aks", {"service": "aks"}, **a(version="1.2.0"))
    assert [one for one in site.lint() if one.severity == "error"] == []


def test_removing_a_component_that_another_changes_is_one_conflict_not_many(bare):
    right = {"components": [{"name": "a", "version": "1.2.0", "values": {"x": 1, "y": {"z": 2}}}]}
    assert len(two(bare, {"components": [{"name": "a", "remove": True}]}, right).problems(**BOTH)) == 1


def test_all_conflicts_at_once(bare):
    problems = two(bare, a(version="1.1.0", namespace="x"), a(version="1.2.0", namespace="y")).problems(**BOTH)
    assert len(problems) == 2
