"""Label selectors mean what they mean to the API server."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import labels
from hypothesis import given
from hypothesis import strategies as st

POD = {"app": "web", "tier": "", "example.com/team": "ml"}


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=db", False),
        ("app!=db", True),
        ("other!=db", True),  # what is not there differs
        ("app!=web", False),
        ("app in (db, web)", True),
        ("app notin (db,web)", False),
        ("other notin (x)", True),
        ("other in (x)", False),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("!app", False),
        ("tier=", True),
        ("example.com/team=ml,app in (web,db),!canary", True),
        ("example.com/team=ml,app in (web,db),canary", False),
    ],
)
def test_what_a_selector_takes(text, taken):
    assert labels.matches(labels.parse(text), POD) is taken


@pytest.mark.parametrize("text", ["", " ", "a=b=c", "=x", "a in x", "a in (x", "a,,b", "a>1", "a=b c", "-a=b", "a=(x)"])
def test_what_is_no_selector(text):
    with pytest.raises(ValueError, match=r"selector|label value"):
        labels.parse(text)


def test_of_a_budget():
    assert labels.matches({}, POD)  # policy/v1: everything in the namespace
    assert not labels.matches(None, POD)
    assert labels.matches({"matchLabels": {"app": "web"}, "matchExpressions": []}, POD)
    assert not labels.matches(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, POD
    )
    assert not labels.matches({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}, POD)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ValueError):
        labels.matches(labels.parse(text), POD)
