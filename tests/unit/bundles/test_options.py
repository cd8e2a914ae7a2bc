"""Options are judged as a whole, and never carry a secret or something that a file could not hold."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import options
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.render import render
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock

from tests.unit.bundles import locks, outputs


@pytest.mark.parametrize("name, value", [
    ("repo_url", "https://git.example.com/a/b.git"),
    ("repo_url", "ssh://git@git.example.com:2222/a/b.git"),
    ("repo_url", "git@github.com:org/repo.git"),
    ("revision", "feature/x-1"),
    ("revision", "v1.2.3"),
    ("revision", "0123456789abcdef0123456789abcdef01234567"),
    ("path", "."),
    ("path", "clusters/prod-1/"),
    ("path", "./clusters/prod-1"),
    ("mirror_charts", "oci://10.0.0.1:5000/charts"),
    ("mirror_images", "registry.example.com:5000/a/b"),
])  # fmt: skip
def test_good(name, value):
    assert getattr(options.read({name: value}), name) == value


@pytest.mark.parametrize("name, value", [
    ("repo_url", "https://user:secret@git.example.com/a.git"),
    ("repo_url", "https://git.example.com/a.git; touch x"),
    ("repo_url", "{{ .RepoURL }}"),
    ("repo_url", "../repo"),
    ("revision", "-x"),
    ("revision", "a..b"),
    ("revision", "$(id)"),
    ("revision", ""),
    ("path", "/etc"),
    ("path", "../up"),
    ("path", "a/../../b"),
    ("path", "a\nb"),
    ("mirror_charts", "registry.example.com/charts"),
    ("mirror_charts", "oci://user:pw@registry.example.com"),
    ("mirror_images", "https://registry.example.com"),
    ("mirror_images", "registry.example.com/UPPER"),
    ("mirror_images", "registry/mirror"),
    ("project", "Default"),
    ("interval", "10"),
    ("drift_detection", "on"),
    ("timeout", 0),
    ("timeout", True),
    ("timeouts", {"a": "10m"}),
    ("retries", -2),
    ("projekt", "x"),
])  # fmt: skip
def test_bad(name, value):
    with pytest.raises(InvalidDocument) as caught:
        options.read({name: value})
    assert caught.value.problems[0].path.split(".")[0] == name
    assert "secret" not in str(caught.value)


def test_all_at_once_with_the_nearest_name():
    with pytest.raises(InvalidDocument) as caught:
        options.read({"projekt": "x", "path": "/x", "timeout": -1})
    assert [problem.path for problem in caught.value.problems] == ["projekt", "path", "timeout"]
    assert "did you mean 'project'" in str(caught.value)


@pytest.mark.parametrize("path, expected", [("", "x"), (".", "x"), ("./a/", "a/x"), ("a/b", "a/b/x")])
def test_folder(path, expected):
    assert options.Options(path=path).folder("x") == expected


@pytest.mark.parametrize("given", [{"exclude": ("cert-manger",)}, {"timeouts": {"cert-manger": 1}}])
def test_unknown_components(given):
    with pytest.raises(InvalidDocument, match="did you mean 'cert-manager'"):
        outputs.bundle(locks.sample(), "helm", **given)


def test_unknown_deployer():
    with pytest.raises(InvalidDocument, match="did you mean 'flux'"):
        render(locks.sample(), "fluxx")


# ---- components that are left out


def test_what_others_need_cannot_be_left_out():
    with pytest.raises(Conflict) as caught:
        outputs.bundle(locks.sample(), "flux", exclude=("cert-manager", "gpu-operator"))
    assert str(caught.value).startswith("exclude: gpu-operator cannot be left out: kai-scheduler, widgets depend on it")
    assert len(caught.value.problems) == 1, "cert-manager is needed only by what goes as well"


def test_nothing_cannot_be_rendered():
    with pytest.raises(Conflict, match="every component is left out"):
        outputs.bundle(locks.lock(locks.component("a")), "helm", exclude=("a",))


def test_left_out_components_leave_no_trace(tmp_path):
    lock = locks.sample()
    for deployer in outputs.DEPLOYERS:
        files = outputs.bundle(lock, deployer, exclude=("widgets", "tail"))
        path = tmp_path / f"{deployer}.yaml"
        path.write_bytes(files["recipe.lock.yaml"])
        deployed = load_lock(str(path))
        assert deployed["spec"]["order"] == ["cert-manager", "quotas", "gpu-operator", "kai-scheduler"]
        assert deployed["metadata"]["digest"] != lock["metadata"]["digest"]
        for file, text in outputs.deployable(files).items():
            assert "widgets-pre" not in text + file and "name: tail" not in text, file


# ---- locks that nobody should trust


def fault(change) -> str:
    lock = locks.sample()
    spec = {**lock["spec"], "components": [dict(one) for one in lock["spec"]["components"]]}
    change(spec["components"], spec)
    with pytest.raises(InvalidDocument) as caught:
        load_lock(locks.sealed(spec))
    return str(caught.value)


@pytest.mark.parametrize("field, value", [
    ("version", "1.0.0; touch x #"),
    ("version", "$(id)"),
    ("version", ""),
    ("version", "latest"),
    ("version", "1.2.3\n"),
    ("repository", "https://charts.example.com/$(id)"),
    ("repository", ""),
    ("name", "../evil"),
])  # fmt: skip
def test_a_lock_with_a_chart_that_is_code_or_nothing_is_refused(field, value):
    def change(components, _spec):
        components[0]["chart"] = {**components[0]["chart"], field: value}

    assert f"spec.components[0].chart.{field}" in fault(change)


@pytest.mark.parametrize("field, value", [
    ("namespace", ""), ("namespace", "cm$(id)"), ("name", "../../evil"), ("release", "a b"),
])  # fmt: skip
def test_a_lock_with_an_unsafe_name_is_refused(field, value):
    def change(components, _spec):
        components[0][field] = value

    assert f"spec.components[0].{field}" in fault(change)


def test_a_lock_with_a_reversed_order_a_ghost_or_a_double_is_refused():
    assert "which it depends on" in fault(lambda _components, spec: spec.update(order=spec["order"][::-1]))
    assert "not in the lock" in fault(lambda components, _spec: components[-1].update(dependsOn=["ghost"]))
    assert "is there twice" in fault(lambda components, _spec: components.append(components[0]))
