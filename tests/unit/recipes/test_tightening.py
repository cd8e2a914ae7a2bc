"""A constraint may only be tightened by a more specific overlay, unless it says that it loosens it, and why."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, InvalidDocument

from .layers import chart

EKS, UBUNTU, BOTH = {"service": "eks"}, {"os": "ubuntu"}, {"service": "eks", "os": "ubuntu"}
NAME = "K8s.server.version"


def limit(value: str, name: str = NAME, **fields) -> dict:
    return {"constraints": [{"name": name, "value": value, **fields}]}


def chain(bare, base: dict, eks: dict, both: dict | None = None):
    bare.registry(chart("a"))
    bare.overlay("base", components=["a"], **base)
    bare.overlay("eks", EKS, **eks)
    if both:
        bare.overlay("eks-ubuntu", BOTH, **both)
    return bare


@pytest.mark.parametrize(
    "name, parent, child",
    [
        (NAME, ">= 1.32", ">= 1.34"),
        (NAME, ">= 1.32", ">= 1.32, < 1.36"),
        (NAME, "~ 1.34", "== 1.34.2"),
        (NAME, ">= 1.32", "in (1.33.1, 1.34.2)"),
        ("OS.release.ID", "in (ubuntu, rhel)", "ubuntu"),
        ("GPU.count", "> 7", ">= 8"),
        ("OS.kernel", ">= 5.14.0-427", ">= 6.8"),
    ],
)
def test_tightening(bare, name, parent, child):
    lock = chain(bare, limit(parent, name), limit(child, name)).resolve(**EKS)
    expected = {"name": name, "value": child, "severity": "error", "from": "eks"}
    assert lock["spec"]["constraints"] == [expected]


@pytest.mark.parametrize(
    "name, parent, child",
    [
        (NAME, ">= 1.34", ">= 1.30"),
        (NAME, ">= 1.34, < 1.36", ">= 1.34"),
        (NAME, "~ 1.34", ">= 1.34"),
        (NAME, "!= 1.34.1", ">= 1.32"),
        ("OS.release.ID", "ubuntu", "in (ubuntu, rhel)"),
        ("OS.release.ID", "ubuntu", "rhel"),
        ("GPU.count", ">= 8", ">= 7"),
        ("OS.kernel", ">= 5.14.0-427", ">= 5.14.0-300"),
    ],
)
def test_loosening_is_refused_with_both_places(bare, name, parent, child):
    site = chain(bare, limit(parent, name), limit(child, name))
    with pytest.raises(InvalidDocument) as caught:
        site.resolve(**EKS)
    (problem,) = caught.value.problems
    assert problem.code == "loosened"
    assert problem.file.endswith("eks.yaml")
    assert problem.line
    assert "overlays/base.yaml:" in problem.message
    assert "loosen: true" in problem.hint
    site.overlay("eks", EKS, **limit(child, name, loosen=True, reason="the provider lags behind"))
    assert site.resolve(**EKS)["spec"]["constraints"][0]["value"] == child


def test_a_severity_may_only_rise(bare):
    site = chain(bare, limit(">= 1.34"), limit(">= 1.34", severity="warning"))
    site.overlay("base", components=["a"], **limit(">= 1.34", severity="error"))
    assert [one.code for one in site.problems(**EKS)] == ["loosened"]
    site.overlay("base", components=["a"], **limit(">= 1.34", severity="warning"))
    site.overlay("eks", EKS, **limit(">= 1.34", severity="error"))
    assert site.resolve(**EKS)["spec"]["constraints"][0]["severity"] == "error"


def test_an_unstated_severity_is_an_error_that_may_not_be_lowered(bare):
    site = chain(bare, limit(">= 1.34"), limit(">= 1.34", severity="warning"))
    assert [one.code for one in site.problems(**EKS)] == ["loosened"]


def test_remediation_is_inherited_and_severity_is_an_error_unless_stated(bare):
    site = chain(bare, limit(">= 1.32", severity="warning", remediation="upgrade"), limit(">= 1.34"))
    (found,) = site.resolve(**EKS)["spec"]["constraints"]
    assert found == {"name": NAME, "value": ">= 1.34", "severity": "error", "remediation": "upgrade", "from": "eks"}


def test_error_and_unstated_warning_of_incomparable_overlays_conflict(bare):
    site = chain(bare, {}, limit(">= 1.34"))
    site.overlay("ubuntu", UBUNTU, **limit(">= 1.34", severity="warning"))
    (problem,) = site.problems(**BOTH)
    assert problem.message.startswith("constraints.K8s.server.version.severity: ")


def test_after_loosening_the_loosened_value_counts(bare):
    loose = limit(">= 1.30", loosen=True, reason="x")
    site = chain(bare, limit(">= 1.34"), loose, limit(">= 1.32"))
    assert site.resolve(**BOTH)["spec"]["constraints"][0]["value"] == ">= 1.32"
    site.overlay("eks-ubuntu", BOTH, **limit(">= 1.29"))
    (problem,) = site.problems(**BOTH)
    assert "'>= 1.30', which eks sets" in problem.message


def test_removal_needs_a_reason_and_frees_the_name(bare):
    remove = {"constraints": [{"name": NAME, "remove": True, "reason": "managed"}]}
    site = chain(bare, limit(">= 1.34"), remove)
    assert site.resolve(**EKS)["spec"]["constraints"] == []
    site.overlay("eks-ubuntu", BOTH, **limit(">= 1.30"))
    assert site.resolve(**BOTH)["spec"]["constraints"][0]["value"] == ">= 1.30"


def test_a_settler_must_be_as_tight_as_both(bare):
    site = chain(bare, {}, limit(">= 1.34"), limit(">= 1.33"))
    site.overlay("ubuntu", UBUNTU, **limit(">= 1.32"))
    problems = site.problems(**BOTH)
    assert ["'>= 1.34', which eks sets" in one.message for one in problems] == [True]
    site.overlay("eks-ubuntu", BOTH, **limit(">= 1.34"))
    assert site.resolve(**BOTH)["spec"]["constraints"][0]["value"] == ">= 1.34"


def test_incomparable_limits_are_a_conflict_even_if_one_is_tighter(bare):
    site = chain(bare, {}, limit(">= 1.34"))
    site.overlay("ubuntu", UBUNTU, **limit(">= 1.32"))
    with pytest.raises(Conflict):
        site.resolve(**BOTH)


@pytest.mark.parametrize(
    "constraint, words",
    [
        ({"name": NAME, "value": ">= latest"}, "not a version"),
        ({"name": NAME, "value": "=> 1.34"}, "malformed"),
        ({"name": NAME, "value": ">= 1.34, < 1.30"}, "can never be satisfied"),
        ({"name": NAME, "value": "^1.34"}, "malformed"),
        ({"name": NAME, "value": ">= 1.34 || 1.36"}, "malformed|not a value"),
        ({"name": "GPU.count", "value": ">= 7.5"}, "not a whole number"),
        ({"name": "OS.release.ID", "value": ">= ubuntu"}, "needs a fact that is a version"),
        ({"name": "K8s.server.versoin", "value": ">= 1"}, "did you mean 'K8s.server.version'"),
        ({"name": NAME, "value": 1.34}, "put it in quotes"),
        ({"name": NAME, "value": ""}, "empty"),
        ({"name": NAME}, "exactly one of value and remove"),
        ({"name": NAME, "value": ">= 1", "remove": True, "reason": "x"}, "exactly one of value and remove"),
        ({"name": NAME, "value": ">= 1", "loosen": True}, "loosens .* without a reason"),
        ({"name": NAME, "remove": True}, "removes .* without a reason"),
        ({"name": NAME, "value": ">= 1", "severity": "fatal"}, "valid: error, warning"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_malformed_constraints_are_found_at_load(bare, constraint, words):
    """Skipped at run time, each of these would pass."""
    site = chain(bare, {"constraints": [constraint]}, {})
    (problem,) = site.problems()
    assert problem.file.endswith("base.yaml")
    assert problem.line > 5
    with pytest.raises(InvalidDocument, match=words):
        site.load()
