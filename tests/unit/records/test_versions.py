"""Versions compare at full precision, and what a constraint cannot be judged on is unknown, never a pass."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import versions
from hypothesis import given
from hypothesis import strategies as st

ASCENDING = [
    "0",
    "1.33.9",
    "1.34.0-dev",
    "1.34.0-alpha",
    "1.34.0-alpha.1",
    "1.34.0-alpha.12",
    "1.34.0-beta.0",
    "1.34.0-pre.1",
    "1.34.0-rc.0",
    "1.34.0-rc.1",
    "1.34",
    "1.34.0.1",
    "1.34.1-rc.2",
    "1.34.1",
    "1.34.10",
    "1.35",
    "5.14.0-427.13.1.el9",
    "5.14.0-427.20.1.el9_4.x86_64",
    "5.15.0-1053-aws",
    "6.8.0",
    "6.8.0-45-generic",
    "6.8.0-100-generic",
    "6.9.0-rc3",
    "6.9",
    "24.04",
    "580.65.06",
    "580.105.08",
]


@pytest.mark.parametrize("low, high", list(itertools.pairwise(ASCENDING)))
def test_order(low, high):
    assert versions.compare(low, high) == -1
    assert versions.compare(high, low) == 1


@pytest.mark.parametrize(
    "left, right",
    [
        ("v1.34", "1.34.0"),
        ("1.34.2-eks-3025e55", "v1.34.2"),
        ("v1.33.5-gke.1162000", "1.33.5"),
        ("v1.30.4+k3s1", "1.30.4"),
        ("v1.34.0-rc.1+k3s1", "1.34.0-rc.1"),
        ("1.34rc1", "1.34-rc.1"),
        ("580.105.08", "580.105.8"),
        ("6.8.0-45-aws", "6.8.0-45-generic"),
        ("1.34.2-Alpha.1", "1.34.2-alpha.1"),
    ],
)
def test_equal(left, right):
    assert versions.compare(left, right) == 0


@pytest.mark.parametrize(
    "text", ["", "latest", "rolling", "1..2", "1.34.", "1-", "abc 1.2", "1.2 lts", "-1", "1.2\n3", "9" * 300]
)
def test_not_a_version(text):
    assert versions.parse(text) is None
    with pytest.raises(ValueError, match="is not a version"):
        versions.compare(text, "1.0")


# The first lines are what a comparison at the lower precision of both sides gets wrong.
JUDGED = [
    ("<= 1.34", "1.34.1", "fail"),
    ("> 1.34", "1.34.1", "pass"),
    (">= 1.34", "1.34.0-rc.1", "fail"),
    ("== 1.34", "1.34.1", "fail"),
    ("== 1.34", "v1.34.0", "pass"),
    (">= 5.14.0.400", "5.14.0.427", "pass"),
    (">= 5.14.0-427", "5.14.0-362.8.1.el9", "fail"),
    (">= 6.8", "6.8.0-45-generic", "pass"),
    (">= 1.32.4", "v1.32.3-eks-1", "fail"),
    ("1.34.2", "1.34.2", "pass"),
    (">= 1.34, < 1.36", "1.35.9", "pass"),
    (">= 1.34, < 1.36", "1.36", "fail"),
    (">= 1.34,<1.36", "1.36.0-rc.1", "pass"),
    ("!= 1.34.1", "1.34.1-eks-1", "fail"),
    ("!= 1.34.1", "1.34.2", "pass"),
    ("~ 1.34", "1.34.9", "pass"),
    ("~ 1.34", "1.34", "pass"),
    ("~ 1.34", "1.35", "fail"),
    ("~ 1.34", "1.35.0-rc.1", "fail"),
    ("~ 1.34", "1.34.0-rc.1", "fail"),
    ("~ 1.3", "1.34", "fail"),
    ("1.34.*", "1.34.3", "pass"),
    ("1.34.*", "1.33", "fail"),
    ("~ 1.34.0", "1.34.1", "fail"),
    ("~ 6.0", "6.8", "fail"),
    ("!= 1.34.*", "1.34.5", "fail"),
    ("!= 1.34.*", "1.35", "pass"),
    ("in (1.34.1, 1.34.2)", "1.34.2-eks-9", "pass"),
    ("in (1.34.1, 1.34.2)", "1.34.3", "fail"),
    ("not in (1.34.0, 1.34.1)", "1.34.1", "fail"),
    ("not in (1.34.0, 1.34.1), >= 1.34", "1.34.2", "pass"),
    ("ubuntu", "ubuntu", "pass"),
    ("ubuntu", "Ubuntu", "fail"),
    ("in (ubuntu, rhel)", "rhel", "pass"),
    ("!= cos", "cos", "fail"),
    ("24.04", "24.04", "pass"),
    ("24.04", "22.04", "fail"),
    (">= 8", 8, "pass"),
    (">= 8", 7, "fail"),
    ("== v1.34.2-eks-1", "v1.34.2-eks-1", "pass"),
    ("== v1.34.2-eks-1", "v1.34.2-eks-2", "fail"),
    (">= 1.34", None, "unknown"),
    (">= 1.34", "", "unknown"),
    (">= 1.34", "latest", "unknown"),
    ("24.04", "rolling", "unknown"),
    (">= 1.34", True, "unknown"),
    ("!= 1.34", "weird", "unknown"),
    ("ubuntu", None, "unknown"),
    (">= 1.34, ubuntu", "weird", "fail"),
]


@pytest.mark.parametrize("constraint, found, result", JUDGED)
def test_judgement(constraint, found, result):
    status, reason = versions.satisfies(constraint, found)
    assert status == result, reason
    assert reason


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "is empty"),
        ("  ", "is empty"),
        (">=", "lacks a value"),
        (">= ", "lacks a value"),
        ("=> 1.34", "malformed"),
        (">> 1", "malformed"),
        (">= latest", "not a version"),
        ("~ ubuntu", "not a version"),
        ("in ()", "lacks a value"),
        ("in (a,)", "lacks a value"),
        ("in a, b", "malformed|not"),
        (">= 1.34,", "malformed"),
        ("1.34 || 1.35", "malformed"),
        ("^1.34", "malformed"),
        ("= 1", "malformed"),
        ("in (1.x, 2)", "wildcard"),
        (">= $(id)", "malformed"),
        ("a;b", "malformed"),
        ("(a)", "malformed"),
    ],
)
def test_malformed_constraints_say_what_is_wrong(text, words):
    with pytest.raises(ValueError, match=words):
        versions.parse_constraint(text, "version" if text.startswith("in a") else None)


@pytest.mark.parametrize(
    "text, kind, words",
    [
        ("rolling", "version", "not a version"),
        ("in (1.34, abc)", "version", "'abc' is not a version"),
        (">= 1.5", "count", "not a whole number"),
        (">= ubuntu", "text", "needs a fact that is a version"),
        ("v8", "count", "not a whole number"),
    ],
)
def test_a_constraint_fits_its_fact(text, kind, words):
    with pytest.raises(ValueError, match=words):
        versions.parse_constraint(text, kind)


IMPLIED = [
    (">= 1.34", ">= 1.32", None, True),
    (">= 1.30", ">= 1.34", None, False),
    (">= 1.34", "> 1.34", None, False),
    ("> 1.34", ">= 1.34", None, True),
    ("== 1.34.2", ">= 1.34, < 1.35", None, True),
    ("~ 1.34", ">= 1.34", None, True),
    (">= 1.34", "~ 1.34", None, False),
    (">= 1.34, < 1.35", "~ 1.34", None, False),
    ("~ 1.34.1", "1.34.*", None, True),
    ("in (1.34.1, 1.34.2)", "~ 1.34", None, True),
    ("in (1.34.1, 1.35)", "~ 1.34", None, False),
    (">= 1.34, != 1.34.1", ">= 1.34", None, True),
    (">= 1.34", ">= 1.34, != 1.34.1", None, False),
    (">= 1.35", ">= 1.34, != 1.34.1", None, True),
    ("not in (1.1, 1.2)", "!= 1.1", None, True),
    ("!= 1.1", "not in (1.1, 1.2)", None, False),
    ("== 1.34.2-eks-1", "== 1.34.2", None, True),
    ("== 1.34.2", "== 1.34.2-eks-1", None, False),
    ("> 1.34.0-rc.1", ">= 1.34", None, False),
    (">= 1.34", "> 1.34.0-rc.1", None, True),
    ("< 1.34", "<= 1.34.0-rc.9", None, False),
    ("<= 1.34.0-rc.9", "< 1.34", None, True),
    ("ubuntu", "in (ubuntu, rhel)", "text", True),
    ("in (ubuntu, rhel)", "ubuntu", "text", False),
    ("!= cos", "ubuntu", "text", False),
    ("ubuntu", "!= cos", "text", True),
    ("rhel", "ubuntu", "text", False),
    ("24.04", "in (22.04, 24.04)", None, True),
    ("> 7", ">= 8", "count", True),
    (">= 8", "> 7", "count", True),
    (">= 7", ">= 8", "count", False),
    ("8", "in (8, 16)", "count", True),
    (">= 0", "!= 4", "count", False),
]


@pytest.mark.parametrize("child, parent, kind, result", IMPLIED)
def test_implication(child, parent, kind, result):
    assert versions.implies(child, parent, kind) is result


@pytest.mark.parametrize(
    "text, kind, result",
    [
        (">= 1.34, < 1.34", None, False),
        (">= 1.34, <= 1.34", None, True),
        ("> 1.34, < 1.34.0.0.1", None, True),
        ("~ 1.34, >= 1.35", None, False),
        ("> 7, < 8", "count", False),
        ("> 7, < 8", "version", True),
        ("ubuntu, rhel", "text", False),
        ("< 0", "count", False),
    ],
)
def test_a_constraint_that_nothing_satisfies_is_found(text, kind, result):
    assert versions.satisfiable(text, kind) is result


NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
VERSIONS = st.builds(
    "{}{}".format, NUMBERS, st.sampled_from(["", "", "", "-rc.1", "-alpha", "-dev.2", "-eks-1", "+k3s1"])
)
TERMS = st.builds("{} {}".format, st.sampled_from([">=", "<=", ">", "<", "==", "!=", "~"]), VERSIONS)
SETS = st.builds(
    lambda word, items: f"{word} ({', '.join(items)})",
    st.sampled_from(["in", "not in"]),
    st.lists(VERSIONS, min_size=1, max_size=3),
)
CONSTRAINTS = st.lists(TERMS | SETS, min_size=1, max_size=3).map(", ".join)


@given(CONSTRAINTS, CONSTRAINTS, st.lists(VERSIONS, min_size=1, max_size=30))
def test_implication_agrees_with_judgement(child, parent, found):
    if versions.implies(child, parent):
        for version in found:
            if versions.satisfies(child, version)[0] == "pass":
                assert versions.satisfies(parent, version)[0] == "pass", version


@given(CONSTRAINTS, CONSTRAINTS, CONSTRAINTS)
def test_implication_is_an_order(one, two, three):
    assert versions.implies(one, one)
    assert versions.implies(f"{one}, {two}", one), "a conjunction is tighter than its parts"
    if versions.implies(one, two) and versions.implies(two, three):
        assert versions.implies(one, three)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_order_is_total_and_transitive(one, two, three):
    assert versions.compare(one, two) == -versions.compare(two, one)
    if versions.compare(one, two) <= 0 and versions.compare(two, three) <= 0:
        assert versions.compare(one, three) <= 0


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_judged_or_refused(constraint, found):
    try:
        versions.parse_constraint(constraint)
    except ValueError:
        return
    assert versions.satisfies(constraint, found)[0] in ("pass", "fail", "unknown")
    assert isinstance(versions.satisfiable(constraint), bool)
