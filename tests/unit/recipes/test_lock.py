"""What a resolved recipe looks like: complete, the same every time, and sharing nothing with the catalogue."""

from __future__ import annotations

import copy
import json
import threading

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import version
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, lockfile, yamltree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .layers import DIMENSIONS, Site, chart

EKS, BOTH = {"service": "eks"}, {"service": "eks", "os": "ubuntu"}
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


@pytest.fixture
def full(bare):
    bare.write("values/a.yaml", "driver:\n  version: '580.105.08'\n  env: [{name: X, value: '1'}]\nlist: [1, 2]\n")
    bare.write("values/a-eks.yaml", "driver: {rdma: {enabled: true}}\nonly: file\n")
    bare.write("manifests/tuning.yaml", OBJECT)
    bare.registry(
        chart(
            "a",
            valuesFiles=["values/a.yaml"],
            values={"inline": True, "only": "registry"},
            mergeKeys={"driver.env": "name"},
            crds=["x.example.com"],
            images=["nvcr.io/nvidia/a:v1.0.0"],
            nodeFacts={"driver": "driver.version", "toolkit": "toolkit.version"},
            health={"workloads": [{"kind": "Deployment", "name": "a"}]},
        ),
        chart("b", dependsOn=["a"], dependsOnOptional=["c", "z"]),
        {
            "name": "z",
            "namespace": "kube-system",
            "manifests": [{"name": "tuning", "file": "manifests/tuning.yaml", "phase": "pre"}],
        },
        chart("c"),
    )
    bare.overlay("base", components=["a", "b", "z"], constraints=[{"name": "OS.kernel", "value": ">= 6.8"}])
    bare.overlay(
        "eks",
        EKS,
        components=[
            {
                "name": "a",
                "version": "v1.2.3",
                "valuesFiles": ["values/a-eks.yaml"],
                "values": {"driver": {"env": [{"name": "Y", "value": "2"}]}, "only": "inline"},
            }
        ],
        checks=[{"name": "nccl", "domain": "communication", "expression": "value >= 300", "unit": "GB/s"}],
    )
    bare.overlay("eks-ubuntu", BOTH, components=[{"name": "a", "values": {"list": [3]}}])
    return bare


def test_a_whole_lock(full):
    lock = full.resolve(**EKS)
    values = {
        "driver": {
            "version": "580.105.08",
            "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
            "rdma": {"enabled": True},
        },
        "list": [1, 2],
        "inline": True,
        "only": "inline",
    }
    assert lock["metadata"] == {"name": "eks", "digest": digest.sha256(lock["spec"])}
    spec = lock["spec"]
    assert spec["catalog"] == {"digest": full.load().digest, "version": version.VERSION}
    assert spec["components"][0] == {
        "name": "a",
        "namespace": "a",
        "release": "a",
        "tier": 0,
        "dependsOn": [],
        "chart": {"name": "a", "repository": "https://charts.example.com/stable", "version": "v1.2.3"},
        "values": values,
        "valuesDigest": digest.sha256(values),
        "manifests": [],
        "crds": ["x.example.com"],
        "images": ["nvcr.io/nvidia/a:v1.0.0"],
        "nodeFacts": {"driver": {"valuesPath": "driver.version", "value": "580.105.08"}},
        "health": {"workloads": [{"kind": "Deployment", "name": "a"}]},
    }
    manifest = {
        "name": "tuning",
        "phase": "pre",
        "content": OBJECT,
        "digest": digest.sha256_bytes(OBJECT.encode()),
    }
    assert "chart" not in spec["components"][1]
    assert spec["components"][1]["manifests"] == [manifest]
    assert spec["components"][2]["dependsOn"] == ["a", "z"]
    assert [(one["name"], one["tier"]) for one in spec["components"]] == [("a", 0), ("z", 0), ("b", 1)]
    assert spec["order"] == ["a", "z", "b"]
    assert spec["constraints"] == [{"name": "OS.kernel", "value": ">= 6.8", "severity": "error", "from": "base"}]
    check = {"name": "nccl", "domain": "communication", "expression": "value >= 300", "unit": "GB/s", "from": "eks"}
    assert spec["checks"] == [check]


def test_what_is_resolved_is_a_valid_lock_also_when_written(full, tmp_path):
    path = tmp_path / "x.lock.yaml"
    lock = full.resolve(**BOTH)
    path.write_text(yamltree.dump(lock))
    assert lockfile.load_lock(str(path)) == lock


def test_same_input_same_bytes(full):
    texts = {yamltree.dump(full.resolve(**dict(order))) for order in (BOTH.items(), reversed(BOTH.items()))}
    loaded = full.load()
    texts |= {yamltree.dump(resolve(loaded, BOTH)) for _ in range(5)}
    assert len(texts) == 1


def test_no_query_changes_what_the_next_one_gets(full):
    """A merge into the cached catalogue would leave the specific recipe's values in every later generic one."""
    loaded = full.load()
    before = yamltree.dump(resolve(loaded, EKS))
    _scribble(resolve(loaded, BOTH))
    _scribble(resolve(loaded, EKS))
    assert yamltree.dump(resolve(loaded, EKS)) == before


def _scribble(data) -> None:
    for value in data.values() if isinstance(data, dict) else data:
        if isinstance(value, (dict, list)):
            _scribble(value)
    if isinstance(data, dict):
        data["scribble"] = 1
    else:
        data.append("scribble")


def test_queries_in_threads_do_not_meet(full):
    loaded = full.load()
    expected = {name: json.dumps(resolve(loaded, query)) for name, query in (("eks", EKS), ("both", BOTH))}
    wrong = []

    def work():
        for name, query in (("eks", EKS), ("both", BOTH)) * 20:
            if json.dumps(resolve(loaded, query)) != expected[name]:
                wrong.append(name)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    "name", ["values/a.yaml", "values/a-eks.yaml", "manifests/tuning.yaml", "overlays/eks.yaml", "registry/main.yaml"]
)
def test_every_file_counts_in_the_catalogue_digest(full, name):
    before = full.load().digest
    path = full.root / name
    path.write_text(path.read_text() + "# a remark\n")
    assert full.load().digest != before


def test_files_that_cannot_reach_a_recipe_do_not_count(full):
    before = full.load().digest
    full.write("README.md", "about")
    full.write("values/.hidden.swp", "x")
    full.write("rules/x.yaml", "x")
    assert full.load().digest == before


def test_the_digest_of_values_changes_with_them(full):
    one, other = full.component("a", **EKS), full.component("a", **BOTH)
    assert one["valuesDigest"] != other["valuesDigest"]
    assert full.component("b", **EKS)["valuesDigest"] == full.component("b", **BOTH)["valuesDigest"]


@pytest.mark.parametrize(
    "entry, listed, code, words",
    [
        ({"chart": {"name": "a", "repository": "https://h"}}, {}, "no-chart", "component a has no chart version"),
        ({}, {}, "nothing-to-install", "neither a chart nor manifests"),
        ({}, {"version": "1.0.0"}, "no-chart", "has no chart name"),
        (
            {"chart": {"name": "a", "repository": "https://h", "version": "1.0.0"}, "nodeFacts": {"driver": "driver"}},
            {"values": {"driver": {"version": "1"}}},
            "bad-node-fact",
            "driver is not a single value",
        ),
    ],
)
def test_incomplete_components(bare, entry, listed, code, words):
    bare.registry({"name": "a", "namespace": "a", **entry})
    bare.overlay("eks", EKS, components=[{"name": "a", **listed}])
    problems = bare.problems(**EKS)
    assert problems[0].code == code
    assert any(words in one.message for one in problems)


def test_two_charts_are_not_one_release(bare):
    bare.registry(chart("a", namespace="x", release="r"), chart("b", namespace="x", release="r"))
    bare.overlay("eks", EKS, components=["a", "b"])
    (problem,) = bare.problems(**EKS)
    assert "components a and b are both release r in namespace x" in problem.message


def test_an_overlay_may_pin_what_the_registry_leaves_open(bare):
    bare.registry({"name": "a", "namespace": "a", "chart": {"name": "a", "repository": "oci://r.example.com/x"}})
    bare.overlay("eks", EKS, components=[{"name": "a", "version": "v0.1.0-alpha.12", "namespace": "n", "release": "r"}])
    component = bare.component("a", **EKS)
    assert component["chart"] == {"name": "a", "repository": "oci://r.example.com/x", "version": "v0.1.0-alpha.12"}
    assert (component["namespace"], component["release"]) == ("n", "r")


def test_intermediate_values_files_are_not_lost(bare):
    """Each overlay of a chain adds its file; none replaces the list of files."""
    for name, text in {"one": "a: 1\nx: 1\n", "two": "b: 2\nx: 2\n", "three": "c: 3\nx: 3\n"}.items():
        bare.write(f"values/{name}.yaml", text)
    bare.registry(chart("a", valuesFiles=["values/one.yaml"]))
    bare.overlay("eks", EKS, components=[{"name": "a", "valuesFiles": ["values/two.yaml"]}])
    bare.overlay("both", BOTH, components=[{"name": "a", "valuesFiles": ["values/three.yaml"]}])
    assert bare.component("a", **BOTH)["values"] == {"a": 1, "b": 2, "c": 3, "x": 3}


SUBSETS = st.dictionaries(st.sampled_from(sorted(DIMENSIONS)), st.sampled_from([0, 1]), min_size=1, max_size=4).map(
    lambda picks: {name: DIMENSIONS[name]["values"][index] for name, index in picks.items()}
)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(
    st.lists(
        st.tuples(SUBSETS, st.dictionaries(st.sampled_from("pqr"), st.integers(0, 2), max_size=2)),
        min_size=1,
        max_size=6,
    ),
    SUBSETS,
    st.randoms(use_true_random=False),
)
def test_any_catalogue_gives_a_lock_or_a_reason_and_file_names_do_not_matter(tmp_path_factory, overlays, query, random):
    """Each stated criterion is carried, what holds comes from a most specific overlay, and order on disk is nothing."""

    def outcome(names: list[str]):
        site = Site(tmp_path_factory.mktemp("layer"))
        site.registry(chart("a"))
        site.overlay("base", components=["a"])
        for (criteria, values), number, file in zip(overlays, range(len(overlays)), names, strict=True):
            site.overlay(
                f"o{number}", criteria, components=[{"name": "a", "values": values}], file=f"overlays/{file}.yaml"
            )
        try:
            lock = site.resolve(**query)
        except Exception as error:
            return type(error).__name__, sorted(one.code for one in error.problems)
        return lock["spec"]["components"], [one["name"] for one in lock["spec"]["overlays"]]

    names = [f"f{number}" for number in range(len(overlays))]
    shuffled = copy.copy(names)
    random.shuffle(shuffled)
    first, second = outcome(names), outcome(shuffled)
    assert first == second
    matching = [(criteria, values) for criteria, values in overlays if criteria.items() <= query.items()]
    covered = {pair for criteria, _values in matching for pair in criteria.items()}
    if covered != set(query.items()):
        assert first == ("NotCovered", ["not-covered"] * (len(query) - len(covered)))
        return
    holding = {}
    for key in "pqr":
        writers = [(set(criteria.items()), values[key]) for criteria, values in matching if key in values]
        holding[key] = {value for items, value in writers if not any(items < other for other, _value in writers)}
    if any(len(values) > 1 for values in holding.values()):
        assert first[0] == "Conflict"
    else:
        assert first[0][0]["values"] == {key: values.pop() for key, values in sorted(holding.items()) if values}
