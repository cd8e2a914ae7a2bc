"""Documents know the line of every field, refuse what hides mistakes, and are written the same way every time."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument, NotFound
from hypothesis import given
from hypothesis import strategies as st

TEXT = """\
a: 1
b:
  c: [x, {d: 2}]
  e: |
    two
    lines
f: &base {g: 1, h: 2}
i: {<<: *base, h: 3}
"""

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_lines_of_fields():
    document = yamltree.load_text(TEXT, "x.yaml")
    assert document.data["i"] == {"g": 1, "h": 3}
    assert [document.line(path) for path in [("a",), ("b", "c", 1, "d"), ("b", "e"), ("i", "h")]] == [1, 3, 4, 8]
    assert document.line(("b", "absent", "deeper")) == 2, "a missing field is at its nearest parent"


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("a: 1\nb: 2\na: 3\n", 3, "twice"),
        ("a: 1\nb:\n\t- x\n", 3, "malformed YAML"),
        ("a: 1\nb: {c: 1, c: 2}\n", 2, "twice"),
        ("a: 1\n\nb: 'open\n", 3, "malformed YAML"),
        ("a: !!python/object:os.system x\n", 1, "not allowed"),
        ("a: 1\n? [b]\n: 2\n", 2, "not a string"),
        ("a: 1\nb: .nan\n", 2, "not a number that JSON can hold"),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("a: 1\n---\nb: 2\n", 3, "2 documents"),
        ("# nothing\n", 1, "no document"),
        ("a: 1\nb: *gone\n", 2, "undefined alias"),
        ("a: 1\nb: \x07\n", 2, "malformed YAML"),
    ],
)
def test_malformed_yaml_names_the_right_line(text, line, words):
    with pytest.raises(InvalidDocument) as caught:
        yamltree.load_text(text, "x.yaml")
    problem = caught.value.problems[0]
    assert problem.file == "x.yaml"
    assert problem.line == line
    assert words in problem.message


def test_what_breaks_further_down_names_its_beginning():
    with pytest.raises(InvalidDocument, match=r"x.yaml:2: malformed YAML: .* \(it begins on line 1\)"):
        yamltree.load_text("metadata: {name: c\nspec: {}\n", "x.yaml")


def test_all_duplicates_are_reported_at_once():
    with pytest.raises(InvalidDocument) as caught:
        yamltree.load_text("a: 1\na: 2\nb: {c: 1, c: 2}\n", "x.yaml")
    assert [problem.path for problem in caught.value.problems] == ["a", "b.c"]


def test_alias_bomb_is_refused():
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(FleetError, match="too many values"):
        yamltree.load_text("\n".join(lines), "bomb.yaml")


@pytest.mark.parametrize(
    "content, error, words",
    [
        (None, NotFound, "no such file"),
        (b"\xff\xfe\x00", InvalidDocument, "UTF-8"),
        (b"x" * (yamltree.MAX_BYTES + 1), InvalidDocument, "larger than"),
    ],
)
def test_unreadable_files(tmp_path, content, error, words):
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=words) as caught:
        yamltree.load_file(str(path))
    assert str(path) in str(caught.value)


def test_byte_order_mark_and_crlf(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert yamltree.load_file(str(path)).data == {"a": 1, "b": 2}


@given(PLAIN)
def test_dump_is_read_back_as_it_was(data):
    text = yamltree.dump(data)
    assert text == yamltree.dump(json.loads(json.dumps(data)))
    assert yaml.safe_load(text) == data
    if isinstance(data, dict) and data:
        assert yamltree.load_text(text, "x").data == data


@pytest.mark.parametrize(
    "value",
    [
        "1e3",
        "0o17",
        "1.20",
        "12e5",
        "y",
        "N",
        "on",
        "0x1F",
        "1_000",
        "22:30",
        "+1",
        "2026-01-01",
        "null",
        "~",
        ".5",
        "-.5",
    ],
)
def test_strings_that_other_parsers_read_as_numbers_are_quoted(value):
    assert yamltree.dump({"k": value}) in (f"k: '{value}'\n", f'k: "{value}"\n')


def test_the_same_list_twice_is_not_written_as_an_alias():
    shared = ["x"]
    assert "&" not in yamltree.dump({"a": shared, "b": shared})
