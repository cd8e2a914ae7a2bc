"""A strict document names what is wrong, where, and what would be right."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Problem, nearest

OVERLAY = """\
apiVersion: goodput.fleet/v1alpha1
kind: Overlay
metadata:
  name: eks
  description: what it is
spec:
  criteria: {service: eks}
  components:
    - name: gpu-operator
"""


def problems(text: str, kind: str = "Overlay") -> list[Problem]:
    return schema.validate(yamltree.load_text(text, "eks.yaml"), kind)


def test_a_good_document_has_no_problem():
    assert problems(OVERLAY) == []


@pytest.mark.parametrize(
    "old, new, line, path, words",
    [
        ("components:", "componentRefz:", 8, "spec.componentRefz", "unknown key"),
        (
            "    - name: gpu-operator",
            "    - name: gpu-operator\n      versoin: v1",
            10,
            "spec.components[0].versoin",
            "'version'",
        ),
        ("kind: Overlay", "kind: Overlai", 2, "kind", "kind: Overlay"),
        ("v1alpha1", "v1", 1, "apiVersion", "goodput.fleet/v1alpha1"),
        ("  name: eks\n", "", 3, "metadata.name", "missing"),
        ("{service: eks}", "[eks]", 7, "spec.criteria", "a list, not a"),
        ("name: gpu-operator", "name: ../../evil", 9, "spec.components[0].name", "malformed"),
    ],
)
def test_each_fault_has_its_line_and_its_cure(old, new, line, path, words):
    found = problems(OVERLAY.replace(old, new))
    assert [problem.path for problem in found] == [path]
    assert found[0].line == line
    assert words in str(found[0])


def test_all_faults_at_once():
    text = OVERLAY.replace("spec:", "spec:\n  extra: 1").replace("gpu-operator", "UPPER")
    assert [problem.code for problem in problems(text)] == ["unknown-key", "bad-value"]


def test_a_list_where_a_document_belongs():
    assert "not a Overlay document" in str(problems("- a\n")[0]) or "not an Overlay document" in str(
        problems("- a\n")[0]
    )


def test_every_kind_has_a_schema_that_refuses_unknown_keys():
    for kind in schema.KINDS:
        text = f"apiVersion: goodput.fleet/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{surprise: 1}}\n"
        assert "unknown-key" in [problem.code for problem in problems(text, kind)], kind


@pytest.mark.parametrize("word, expected", [("h10", "did you mean 'h100'?"), ("zzz", "valid: a100, h100")])
def test_nearest(word, expected):
    assert expected in nearest(word, ["h100", "a100"])


def test_an_error_prints_one_line_per_problem_and_travels_as_data():
    error = FleetError([Problem("a", "first", "f.yaml", 3, "spec.x", "do this"), Problem("b", "second")])
    assert str(error) == "f.yaml:3: spec.x: first (do this)\nsecond"
    assert error.as_result()["problems"][1] == {"code": "b", "message": "second", "severity": "error"}
