"""The whole catalogue is judged at once, not only what one query matches."""

from __future__ import annotations

import pytest

from .layers import Site, chart

EKS, H100 = {"service": "eks"}, {"accelerator": "h100"}
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
ALL_VALUES = {"service": {"values": ["eks"]}, "accelerator": {"values": ["h100"]}}


@pytest.fixture
def clean(bare):
    bare.write("values/a.yaml", "x: 1\n")
    bare.write("manifests/m.yaml", OBJECT)
    bare.registry(
        chart("a", valuesFiles=["values/a.yaml"], manifests=[{"name": "m", "file": "manifests/m.yaml"}]),
        criteria=ALL_VALUES,
    )
    bare.overlay("base", components=["a"])
    bare.overlay("eks", EKS, recipe=True)
    bare.overlay("h100", H100)
    return bare


def found(site: Site) -> list[tuple[str, str]]:
    return [(one.severity, one.code) for one in site.lint()]


def test_a_clean_catalogue(clean):
    assert found(clean) == []


def test_values_that_no_overlay_uses(clean):
    clean.registry(name="more", criteria={"service": {"values": ["eks", "oke"]}, "os": {"values": ["rhel", "any"]}})
    problems = clean.lint()
    assert [one.message for one in problems] == [
        "service oke is carried by no overlay",
        "os rhel is carried by no overlay",
    ]
    assert {one.severity for one in problems} == {"warning"}
    assert all(one.line for one in problems)


def test_files_that_nothing_names(clean):
    clean.write("values/old.yaml", "x: 1\n")
    clean.write("manifests/old.yaml", OBJECT)
    clean.write("overlays/old.yaml.bak", "x")
    clean.write("overlays/README.md", "about")
    assert sorted(found(clean)) == [("warning", "unread-file"), ("warning", "unused-file"), ("warning", "unused-file")]


def test_components_that_nothing_lists(clean):
    clean.registry(chart("b"), name="more", criteria={})
    assert found(clean) == [("warning", "unused-component")]


def test_a_recipe_that_does_not_resolve(clean):
    clean.registry(chart("b", dependsOn=["a"]), name="more", criteria={})
    clean.overlay("h100", H100, components=["b"])
    clean.overlay("h100-eks", {**EKS, **H100}, recipe=True, components=[{"name": "a", "remove": True}])
    (problem,) = clean.lint()
    assert problem.code == "needed"
    assert problem.file.endswith("h100-eks.yaml")


def test_a_recipe_must_carry_its_own_criteria(clean):
    clean.registry(name="main2", criteria={})
    clean.overlay("eks", EKS, recipe=True, components=[{"name": "a", "remove": True}])
    (problem,) = clean.lint()
    assert (problem.code, "does not resolve" in problem.message) == ("empty-recipe", True)
    assert problem.line


def test_without_declared_recipes_the_most_specific_overlays_must_resolve(clean):
    clean.overlay("eks", EKS, components=[{"name": "a", "remove": True}])
    assert ("error", "empty-recipe") in found(clean)


def test_a_conflict_that_only_some_queries_would_meet(clean):
    clean.overlay("eks", EKS, recipe=True, components=[{"name": "a", "values": {"y": 1}}])
    clean.overlay("h100", H100, components=[{"name": "a", "values": {"y": 2}}])
    assert found(clean) == [("error", "conflict")]
    clean.resolve(**EKS)
    clean.overlay("h100-eks", {**EKS, **H100}, components=[{"name": "a", "values": {"y": 3}}])
    assert found(clean) == []


def test_a_conflict_of_mixins_at_their_places(clean):
    clean.mixin("one", components=[{"name": "a", "values": {"y": 1}}])
    clean.mixin("two", components=[{"name": "a", "values": {"y": 2}}])
    clean.overlay("eks", EKS, recipe=True, include=["one"])
    clean.overlay("h100", H100, include=["two"])
    assert found(clean) == [("error", "conflict")]


@pytest.mark.parametrize(
    "text, code",
    [
        ("a: [\n", "malformed-yaml"),
        ("- x\n", "not-an-object"),
        ("kind: X\n", "not-an-object"),
        ("# nothing\n", "empty"),
    ],
)
def test_manifests_are_kubernetes_objects(clean, text, code):
    clean.write("manifests/m.yaml", text)
    problems = clean.lint()
    assert {(one.severity, one.code) for one in problems} == {("error", code)}
    assert all(one.file.endswith("manifests/m.yaml") for one in problems)


def test_manifests_inside_a_document_are_judged_there(clean):
    clean.overlay(
        "eks", EKS, recipe=True, components=[{"name": "a", "manifests": [{"name": "n", "content": "a: [\n"}]}]
    )
    (problem,) = clean.lint()
    assert problem.file.endswith("eks.yaml")
    assert "manifest 'n': malformed YAML" in problem.message


def test_health_checks_are_jmespath(clean):
    check = {"name": "c", "apiVersion": "v1", "kind": "Node", "plural": "nodes", "expression": "status.[ == 'x'"}
    clean.overlay("eks", EKS, recipe=True, components=[{"name": "a", "health": {"checks": [check]}}])
    (problem,) = clean.lint()
    assert problem.code == "bad-expression"
    assert problem.line


def test_a_health_check_that_stays_incomplete_is_found(clean):
    check = {"name": "c", "expression": "status.ready"}
    clean.overlay("eks", EKS, recipe=True, components=[{"name": "a", "health": {"checks": [check]}}])
    problems = clean.lint()
    assert {one.code for one in problems} == {"missing-key"}
    assert "resolves to a bad lock" in problems[0].message


def test_what_cannot_be_read_is_reported_and_the_rest_waits(clean):
    clean.write("overlays/bad.yaml", "a: [\n")
    clean.write("values/old.yaml", "x: 1\n")
    assert found(clean) == [("error", "malformed-yaml")]
