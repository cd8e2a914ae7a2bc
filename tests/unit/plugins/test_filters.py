"""What all filters have in common."""

from __future__ import annotations

import datetime

import pytest
from ansible.errors import AnsibleFilterError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded, plain

NESTED = {"names": ["a", "{{ word }}"], "deep": {"count": 3, "share": 0.5, "on": True, "none": None}}


def types(value: object) -> set[type]:
    found = {type(value)}
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found |= types(each)
    return found | ({type(key) for key in value} if isinstance(value, dict) else set())


def test_what_the_templating_engine_hands_over_is_plain_afterwards():
    word = trust_as_template("{{ word }}")
    variables = {"word": "b", "nested": {**NESTED, "names": ["a", word]}}
    given = Templar(DataLoader(), variables=variables).template(trust_as_template("{{ nested }}"))
    result = plain(given)
    assert result == {**NESTED, "names": ["a", "b"]}
    assert types(result) == {dict, list, str, int, float, bool, type(None)}


@pytest.mark.parametrize(
    ("value", "is_"),
    [
        ({0: "a"}, {"0": "a"}),
        ({True: 1}, {"true": 1}),
        ((1, 2), [1, 2]),
        (b"raw", b"raw"),
        (float("inf"), float("inf")),
    ],
)
def test_odd_data(value, is_):
    assert plain(value) == is_


@pytest.mark.parametrize("value", [{1, 2}, datetime.date(2026, 1, 1), {(1, 2): 3}, object()])
def test_what_json_does_not_know_is_named(value):
    with pytest.raises(TypeError, match=r"takes .*, not (set|date|tuple|object)"):
        plain([value])


@pytest.mark.parametrize(
    "error",
    [InvalidDocument("is odd", path="a.b"), TypeError("is odd"), ValueError("is odd"), RecursionError("is odd")],
)
def test_what_is_wrong_is_one_error_with_the_filters_name(error):
    @guarded
    def parse_thing(value, option=None):
        raise error

    with pytest.raises(AnsibleFilterError, match=r"^parse_thing: .*is odd"):
        parse_thing("x", option=1)


def test_an_option_that_does_not_exist_is_named():
    @guarded
    def parse_thing(value, option=None):
        return option

    assert parse_thing("x", option=(1,)) == [1]
    with pytest.raises(AnsibleFilterError, match=r"parse_thing: .*'optoin'"):
        parse_thing("x", optoin=1)
