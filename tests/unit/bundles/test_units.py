"""How a lock becomes releases: charts, manifests around them, manifests alone."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import localchart, units, yamltext
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.bundles import locks

JSON_CRD = (
    '{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}}\n'
)


def shape(*manifests: dict, **fields) -> list[tuple[str, int, list[str]]]:
    """(name, phase, files) of the units of one component."""
    planned = units.plan(locks.lock(locks.component("a", manifests=list(manifests), **fields)))
    return [(unit.name, unit.phase, sorted(unit.files)) for unit in planned]


QUOTA, CRD, WIDGET = locks.QUOTA, locks.CRD, locks.WIDGET
CHART = {"chart": locks.chart("a")}


@pytest.mark.parametrize("manifests, fields, expected", [
    ([], CHART, [("a", 1, [])]),
    ([("x", QUOTA, "post")], CHART, [("a", 1, []), ("a-manifests", 2, ["Chart.yaml", "templates/x.yaml"])]),
    ([("x", QUOTA, "pre")], CHART, [("a-pre", 0, ["Chart.yaml", "templates/x.yaml"]), ("a", 1, [])]),
    ([("x", CRD, "post")], CHART, [("a-pre", 0, ["Chart.yaml", "crds/x.yaml"]), ("a", 1, [])]),
    ([("x", CRD + "---\n" + WIDGET, "post")], CHART,
     [("a-pre", 0, ["Chart.yaml", "crds/x.yaml"]), ("a", 1, []),
      ("a-manifests", 2, ["Chart.yaml", "templates/x.yaml"])]),
    ([("x", QUOTA, "post")], {}, [("a", 1, ["Chart.yaml", "templates/x.yaml"])]),
    ([("x", QUOTA, "pre")], {}, [("a", 1, ["Chart.yaml", "templates/x.yaml"])]),
    ([("x", CRD + "---\n" + WIDGET, "post")], {}, [("a", 1, ["Chart.yaml", "crds/x.yaml", "templates/x.yaml"])]),
    ([("x", QUOTA, "pre"), ("y", CRD + "---\n" + WIDGET, "post")], {},
     [("a-pre", 0, ["Chart.yaml", "crds/y.yaml", "templates/x.yaml"]), ("a", 1, ["Chart.yaml", "templates/y.yaml"])]),
    ([("x", CRD, "pre"), ("y", CRD, "post")], {}, [("a", 1, ["Chart.yaml", "crds/x.yaml", "crds/y.yaml"])]),
])  # fmt: skip
def test_releases_of_a_component(manifests, fields, expected):
    assert shape(*[locks.manifest(*one) for one in manifests], **fields) == expected


@pytest.mark.parametrize("text, crds, others", [
    (CRD, 1, 0),
    (CRD + "---\n" + CRD + "---\n" + WIDGET, 2, 1),
    ("# licence\n---\n" + CRD, 1, 0),
    ("--- # first\n" + WIDGET + "---\n\n---\n" + CRD.replace("kind: C", 'kind:   C', 1), 1, 1),
    (CRD.replace("kind: CustomResourceDefinition", "'kind': \"CustomResourceDefinition\"  # x"), 1, 0),
    (JSON_CRD + "---\n" + WIDGET, 1, 1),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    kind: CustomResourceDefinition\n", 0, 1),
    (CRD.replace("\n", "\r\n") + "---\r\n" + WIDGET.replace("\n", "\r\n"), 1, 1),
    ("---\nkind: A\n...\n---\nkind: B", 0, 2),
])  # fmt: skip
def test_documents_are_told_apart(text, crds, others):
    found = localchart._documents(text)
    assert tuple(map(len, found)) == (crds, others)
    kept = [one for part in (*found[0], *found[1]) for one in yaml.safe_load_all(part) if one]
    original = [one for one in yaml.safe_load_all(text) if one]
    assert sorted(map(str, kept)) == sorted(map(str, original)), "nothing lost, nothing changed"


def test_a_local_chart_gets_a_new_version_only_with_new_content():
    def version(text: str) -> str:
        return yaml.safe_load(localchart.chart("a", {"templates/x.yaml": text})["Chart.yaml"])["version"]

    assert version("a: 1\n") == version("a: 1\n") != version("a: 2\n")


@pytest.mark.parametrize("components, words", [
    ([locks.component("a", manifests=[locks.manifest("x", QUOTA)], **CHART), locks.component("a-manifests")],
     "the name a-manifests is needed by a-manifests and for manifests of a"),
    ([locks.component("a", namespace="n", manifests=[locks.manifest("x", QUOTA)]),
      locks.component("b", namespace="n", release="a")], "a and b are both the Helm release n/a"),
    ([locks.component("a", release="r" * 50, manifests=[locks.manifest("x", QUOTA)], **CHART)], "is longer than 53"),
])  # fmt: skip
def test_names_that_cannot_be(components, words):
    with pytest.raises(InvalidDocument, match=words):
        units.plan(locks.lock(*components))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@example({"a": "ends with blank lines\n\n", "b": {"\n": ["\n"]}}, 2)
@given(st.dictionaries(st.text(), PLAIN, min_size=1, max_size=5), st.integers(1, 4))
def test_values_shifted_to_the_right_are_the_same_values(values, depth):
    head = current = {}
    for level in range(depth):
        current["a"] = level
        current["in"] = current = {}
    current["a"] = 0
    text = yamltext.document(head, yamltree.dump(values), (2 * depth, "values")).decode()
    found = yaml.safe_load(text)
    for _level in range(depth):
        found = found["in"]
    assert found["values"] == values
