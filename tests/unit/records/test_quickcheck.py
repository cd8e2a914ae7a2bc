"""The fast judge never says yes where jsonschema says no, and says yes to every good document."""

from __future__ import annotations

import copy
import itertools
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import overlay, recipelock, registry
from hypothesis import given
from hypothesis import strategies as st

CATALOG = Path(__file__).parents[3] / "gitops/catalog"
FILES = [(path, overlay.SCHEMA) for path in sorted(CATALOG.glob("overlays/**/*.yaml"))]
FILES += [(path, registry.SCHEMA) for path in sorted(CATALOG.glob("registry/*.yaml"))]


def test_shipped_documents_need_no_jsonschema():
    judges = {id(schema): quickcheck.compile_schema(schema) for _path, schema in FILES}
    assert [str(path) for path, schema in FILES if not judges[id(schema)](yamltree.load_file(str(path)).data)] == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(allow_nan=False, width=16)
    | st.sampled_from(["", "a", "v1", "A\n", "x y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = [
    {"type": "string", "pattern": "^[a-z]+$(?!\\n)"},
    {"type": ["string", "null"], "minLength": 1},
    {"type": "number", "minimum": 0},
    {"type": "integer"},
    {"enum": ["a", 1, None]},
    {"const": True},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1},
    {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "propertyNames": {"pattern": "^a"}, "additionalProperties": {"enum": ["a"]}, "minProperties": 1},
    {"properties": {"name": {"type": "object", "additionalProperties": {"type": "string"}}}},
    {"type": ["string", "array", "object"], "maxLength": 1, "maxItems": 1, "maxProperties": 1},
    {"minimum": 0, "maximum": 1},
    {"oneOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "string", "format": "date"},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(data=JSON)
def test_yes_is_never_wrong(schema, data):
    if quickcheck.compile_schema(schema)(data):
        assert jsonschema.Draft202012Validator(schema).is_valid(data)


def _mutations(data, path=()):
    """The document with one thing changed, everywhere."""
    for key, value in list(data.items()) if isinstance(data, dict) else list(enumerate(data)):
        for replacement in (None, 1, True, "", "A b\n", [], {}, ["x"], {"x": 1}):
            yield (*path, key), replacement
        if isinstance(value, (dict, list)):
            yield from _mutations(value, (*path, key))


@pytest.mark.parametrize("path, schema", [FILES[0], FILES[-1]], ids=["overlay", "registry"])
def test_judges_agree_on_damaged_documents(path, schema):
    good = yamltree.load_file(str(path)).data
    fast, slow = quickcheck.compile_schema(schema), jsonschema.Draft202012Validator(schema)
    # jsonschema is slow; the first ones reach every part
    for place, replacement in itertools.islice(_mutations(good), 400):
        damaged = copy.deepcopy(good)
        node = damaged
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = replacement
        assert fast(damaged) == slow.is_valid(damaged), (place, replacement)


def test_unknown_keywords_are_left_to_jsonschema():
    assert not quickcheck.compile_schema({"type": "string", "format": "date"})("2026-01-01")
    for schema in (overlay.SCHEMA, registry.SCHEMA, recipelock.SCHEMA):
        assert "oneOf" not in str(schema), "the fast judge would never say yes"


def test_a_good_catalogue_is_read_without_loading_jsonschema():
    code = (
        "import sys\n"
        "from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog\n"
        "load_catalog([sys.argv[1]])\n"
        "assert 'jsonschema' not in sys.modules and 'ansible.module_utils.basic' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(CATALOG)],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
