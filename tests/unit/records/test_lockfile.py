"""A lock that somebody edited is refused, and every reason is told at once."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound


def component(name: str, tier: int = 0, *before: str) -> dict:
    values = {"driver": {"version": "580"}}
    content = "kind: ConfigMap\n"
    return {
        "name": name,
        "namespace": name,
        "release": name,
        "tier": tier,
        "dependsOn": list(before),
        "chart": {"name": name, "repository": "https://charts.example.com", "version": "v1.0.0"},
        "values": values,
        "valuesDigest": digest.sha256(values),
        "manifests": [
            {"name": "m", "phase": "post", "content": content, "digest": digest.sha256_bytes(content.encode())}
        ],
        "crds": [],
        "images": [],
        "nodeFacts": {},
        "health": {},
    }


def lock() -> dict:
    spec = {
        "criteria": {"service": "eks", "accelerator": "h100"},
        "catalog": {"digest": digest.sha256("x"), "version": "1.0.0"},
        "overlays": [{"name": "base", "criteria": {}}],
        "components": [component("a"), component("b", 1, "a"), component("c", 2, "a", "b")],
        "constraints": [{"name": "OS.kernel", "value": ">= 6.8", "severity": "error", "from": "base"}],
        "checks": [{"name": "nccl", "expression": "value >= 300", "from": "base"}],
        "order": ["a", "b", "c"],
    }
    return sealed(
        {"apiVersion": "goodput.fleet/v1alpha1", "kind": "RecipeLock", "metadata": {"name": "eks-h100"}, "spec": spec}
    )


def sealed(document: dict) -> dict:
    """With the digest that its spec has: what a careful forger would write."""
    document["metadata"]["digest"] = digest.sha256(document["spec"])
    return document


def codes(document: dict) -> list[str]:
    with pytest.raises(InvalidDocument) as caught:
        lockfile.load_lock(document)
    return sorted(one.code for one in caught.value.problems)


def test_a_good_lock_is_read_from_data_and_from_a_file(tmp_path):
    path = tmp_path / "x.lock.yaml"
    path.write_text(yamltree.dump(lock()))
    assert lockfile.load_lock(lock()) == lockfile.load_lock(str(path)) == lockfile.load_lock(path) == lock()


def edit(*path, to):
    def change(document: dict) -> None:
        for key in path[:-1]:
            document = document[key]
        if to is ...:
            del document[path[-1]]
        else:
            document[path[-1]] = to

    return change


def twice(document: dict) -> None:
    document["spec"]["components"].insert(1, component("a"))


B = ("spec", "components", 1)
EDITS = [
    pytest.param(edit("spec", "order", to=["c", "b", "a"]), ["wrong-order"] * 3, id="reversed-order"),
    pytest.param(edit("spec", "order", to=["a", "c"]), ["wrong-order"], id="missing-from-the-order"),
    pytest.param(edit("spec", "order", to=["a", "b", "c", "d"]), ["wrong-order"], id="unknown-in-the-order"),
    pytest.param(
        edit("spec", "order", to=["a", "b", "c", "b"]), ["wrong-order", "wrong-order"], id="twice-in-the-order"
    ),
    pytest.param(edit(*B, "dependsOn", to=["ghost"]), ["unknown-dependency", "wrong-tier", "wrong-tier"], id="ghost"),
    pytest.param(edit("spec", "components", 0, "dependsOn", to=["c"]), ["cycle"], id="cycle"),
    pytest.param(edit(*B, "dependsOn", to=["b"]), ["cycle"], id="depends-on-itself"),
    pytest.param(edit(*B, "tier", to=0), ["wrong-tier"], id="tier"),
    pytest.param(twice, ["duplicate-name"], id="component-twice"),
    pytest.param(edit(*B, "release", to="a"), [], id="same-release-elsewhere"),
    pytest.param(edit(*B, "chart", "version", to=...), ["missing-key"], id="no-version"),
    pytest.param(edit(*B, "chart", "version", to="latest"), ["bad-value"], id="floating-version"),
    pytest.param(edit(*B, "chart", "version", to="1.0.0; touch x #"), ["bad-value"], id="shell-in-a-version"),
    pytest.param(edit(*B, "namespace", to="cm$(id)"), ["bad-value"], id="shell-in-a-namespace"),
    pytest.param(edit(*B, "release", to="a\n"), ["bad-value"], id="newline-in-a-release"),
    pytest.param(edit(*B, "chart", "repository", to="https://h/$(id)"), ["bad-value"], id="shell-in-a-repository"),
    pytest.param(edit(*B, "chart", "name", to="../x"), ["bad-value"], id="path-in-a-chart"),
    pytest.param(edit(*B, "values", "driver", "version", to="1"), ["digest-mismatch"], id="values"),
    pytest.param(edit(*B, "manifests", 0, "content", to="kind: Secret\n"), ["digest-mismatch"], id="manifest"),
    pytest.param(edit(*B, "surprise", to=1), ["unknown-key"], id="unknown-key"),
    pytest.param(edit("spec", "constraints", 0, "value", to="=> 6.8"), ["bad-constraint"], id="constraint"),
    pytest.param(edit("spec", "criteria", "service", to="aks"), ["wrong-name"], id="criteria"),
    pytest.param(edit("spec", "components", to=[]), ["empty", "wrong-order", "wrong-order", "wrong-order"], id="empty"),
]


@pytest.mark.parametrize("change, expected", EDITS)
def test_each_edit_has_its_message_even_with_a_fresh_digest(change, expected):
    document = lock()
    change(document)
    if expected:
        assert codes(sealed(document)) == expected
    else:
        lockfile.load_lock(sealed(document))


@pytest.mark.parametrize("change, expected", EDITS)
def test_any_edit_breaks_the_digest(change, expected):
    document = lock()
    change(document)
    assert codes(document) == sorted([*expected, "digest-mismatch"])


def test_one_namespace_has_a_release_once():
    document = lock()
    document["spec"]["components"][1] |= {"namespace": "a", "release": "a"}
    assert codes(sealed(document)) == ["duplicate-name"]


def test_a_component_needs_something_to_install():
    document = lock()
    del document["spec"]["components"][1]["chart"]
    lockfile.load_lock(sealed(document))
    document["spec"]["components"][1]["manifests"] = []
    assert codes(sealed(document)) == ["nothing-to-install"]


def test_everything_at_once_with_places():
    document = lock()
    for change in (twice, edit(*B, "chart", "version", to="latest"), edit("spec", "order", to=["c"])):
        change(document)
    with pytest.raises(InvalidDocument) as caught:
        lockfile.load_lock(document)
    found = {one.code: one for one in caught.value.problems}
    assert found.keys() == {"digest-mismatch", "duplicate-name", "bad-value", "wrong-order"}
    assert found["bad-value"].path == "spec.components[1].chart.version"
    assert "goodput.fleet.recipe" in found["digest-mismatch"].hint


def test_a_cycle_prints_its_path():
    document = lock()
    document["spec"]["components"][0]["dependsOn"] = ["c"]
    with pytest.raises(InvalidDocument, match="a -> c -> a"):
        lockfile.load_lock(sealed(document))


@pytest.mark.parametrize(
    "data, words",
    [
        (
            {"apiVersion": "goodput.fleet/v1alpha1", "kind": "Overlay", "metadata": {"name": "x"}, "spec": {}},
            "a Overlay is not a lock",
        ),
        ({"foo": "bar"}, "this is not a lock"),
        ({}, "this is not a lock"),
    ],
)
def test_another_document_is_called_what_it_is(tmp_path, data, words):
    path = tmp_path / "overlay.yaml"
    path.write_text(yamltree.dump(data))
    with pytest.raises(InvalidDocument, match=words) as caught:
        lockfile.load_lock(str(path))
    assert "goodput.fleet.recipe" in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    "spec", [None, [], {"components": "x", "order": 3, "criteria": []}, {"components": [1, {"name": 2}, {}]}]
)
def test_broken_shapes_are_problems_never_a_crash(spec):
    document = {**lock(), "spec": spec}
    assert codes(document)


def test_every_single_deletion_is_found():
    """Whatever is left out of a lock, it is no longer that lock."""

    def paths(data, path=()):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield (*path, key)
            if isinstance(value, (dict, list)):
                yield from paths(value, (*path, key))

    whole = lock()
    for path in list(paths(whole)):
        document = copy.deepcopy(whole)
        edit(*path, to=...)(document)
        assert codes(document), path


def test_no_file(tmp_path):
    with pytest.raises(NotFound):
        lockfile.load_lock(str(tmp_path / "gone.yaml"))
