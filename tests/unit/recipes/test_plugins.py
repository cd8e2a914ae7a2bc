"""The modules and filters as a playbook sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.filter.deployment_order import deployment_order
from ansible_collections.goodput.fleet.plugins.filter.resolve import resolve
from ansible_collections.goodput.fleet.plugins.filter.version_satisfies import version_satisfies
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import version
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.snapshot import PARTS
from ansible_collections.goodput.fleet.plugins.modules import recipe, recipe_info

EKS = {"service": "eks"}
ROOT = Path(__file__).parents[3]


@pytest.fixture
def run(capsys, monkeypatch, site):
    def call(module, check=False, diff=False, **arguments) -> dict:
        arguments = {"catalog": [str(site.root)], **arguments, "_ansible_check_mode": check, "_ansible_diff": diff}
        warned: list[str] = []
        # beside a controller's code, warnings go to its display and not into the result
        monkeypatch.setattr(AnsibleModule, "warn", lambda self, text: warned.append(text))
        with patch_module_args(arguments), pytest.raises(SystemExit) as caught:
            module.main()
        result = json.loads(capsys.readouterr().out)
        assert bool(result.get("failed")) == bool(caught.value.code)
        return result | {"warned": warned}

    return call


# recipe


def test_it_writes_once_and_then_leaves_the_file_alone(run, tmp_path):
    dest = tmp_path / "x.lock.yaml"
    first = run(recipe, criteria=EKS, dest=str(dest))
    assert first["changed"]
    assert first["path"] == str(dest)
    assert lockfile.load_lock(str(dest)) == first["lock"]
    before = dest.stat()
    again = run(recipe, criteria=EKS, dest=str(dest))
    assert not again["changed"]
    assert (dest.stat().st_mtime_ns, dest.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_check_mode_predicts_and_writes_nothing(run, tmp_path):
    dest = tmp_path / "x.lock.yaml"
    predicted = run(recipe, check=True, diff=True, criteria=EKS, dest=str(dest))
    assert predicted["changed"]
    assert not dest.exists()
    real = run(recipe, diff=True, criteria=EKS, dest=str(dest))
    assert predicted.items() <= real.items(), "the real run adds owner and mode of the file"
    assert predicted["diff"] == real["diff"] == {
        "before": "", "after": dest.read_text(), "before_header": str(dest), "after_header": str(dest)
    }  # fmt: skip
    assert not run(recipe, check=True, criteria=EKS, dest=str(dest))["changed"]


def test_the_diff_is_between_what_is_there_and_what_comes(run, site, tmp_path):
    dest = tmp_path / "x.lock.yaml"
    run(recipe, criteria=EKS, dest=str(dest))
    old = dest.read_text()
    site.overlay("eks", EKS, components=[{"name": "a", "version": "1.2.3"}])
    result = run(recipe, diff=True, criteria=EKS, dest=str(dest))
    assert result["diff"]["before"] == old
    assert "1.2.3" in result["diff"]["after"]


def test_the_summary(run):
    result = run(recipe, criteria=EKS)
    assert not result["changed"]
    assert (result["name"], result["overlays"]) == ("eks", ["base", "eks"])
    assert result["digest"] == result["lock"]["metadata"]["digest"]
    assert result["components"] == [
        {"name": "a", "namespace": "a", "tier": 0, "version": "1.0.0"},
        {"name": "b", "namespace": "b", "tier": 1, "version": "1.0.0"},
    ]
    assert "path" not in result


def test_a_lock_is_verified_from_a_file_or_data(run, tmp_path):
    dest = tmp_path / "x.lock.yaml"
    lock = run(recipe, criteria=EKS, dest=str(dest))["lock"]
    assert run(recipe, lock=str(dest))["path"] == str(dest)
    assert run(recipe, lock=lock)["digest"] == lock["metadata"]["digest"]
    dest.write_text(dest.read_text().replace("1.0.0", "9.9.9", 1))
    result = run(recipe, lock=str(dest))
    assert result["failed"]
    assert "changed by hand" in result["msg"]
    assert result["problems"][0]["code"] == "digest-mismatch"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"criteria": {"service": "ekss"}}, "did you mean 'eks'?"),
        ({"criteria": {}}, "no criteria are stated"),
        ({"criteria": EKS, "catalog": ["/nowhere"]}, "is not a directory"),
        ({"criteria": EKS, "catalog": []}, "no catalogue"),
        ({"criteria": EKS, "dest": "/nowhere/x.yaml"}, "directory of dest does not exist"),
        ({"criteria": EKS, "dest": "/"}, "is a directory"),
        ({"criteria": EKS, "charts": "/nowhere"}, "not a directory of chart archives"),
        ({"criteria": EKS, "snapshot": {"foo": "bar"}}, "Snapshot"),
        ({"lock": "/nowhere/lock.yaml"}, "no such file"),
        ({"lock": {"kind": "Overlay"}}, "a Overlay is not a lock"),
        ({"lock": []}, "is not a lock|must be"),
        ({"lock": 3}, "is not a lock|must be|no such file"),
        ({}, "one of the following is required: criteria, lock"),
        ({"criteria": EKS, "lock": "x"}, "mutually exclusive"),
    ],
)
def test_bad_input_fails_with_a_message_and_never_a_traceback(run, arguments, words):
    result = run(recipe, **arguments)
    assert result["failed"]
    assert "Traceback" not in json.dumps(result)
    assert any(word in result["msg"] for word in words.split("|")), result["msg"]


def test_all_violated_constraints_at_once_and_no_lock_is_written(run, site, tmp_path):
    limits = {"OS.kernel": ">= 7", "K8s.server.version": ">= 1.36", "GPU.count": "8", "OS.release.ID": "ubuntu"}
    site.overlay("eks", EKS, constraints=[{"name": name, "value": value} for name, value in limits.items()])
    spec = {
        "parts": {part: {"status": "ok"} for part in PARTS},
        "server": {"version": "v1.34.1"},
        "nodes": [{"name": "n1", "labels": {}, "kernel": "6.8.0", "osId": "ubuntu"}],
        **{key: [] for key in ("releases", "workloads", "crds")},
    }
    snapshot = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "Snapshot", "metadata": {"name": "x"}, "spec": spec}
    dest = tmp_path / "x.lock.yaml"
    result = run(recipe, criteria=EKS, snapshot=snapshot, dest=str(dest))
    assert result["failed"]
    assert result["code"] == "constraint-violated"
    assert [one["path"] for one in result["problems"]] == [
        "constraints.GPU.count",
        "constraints.K8s.server.version",
        "constraints.OS.kernel",
    ]
    assert {one["name"]: one["status"] for one in result["constraints"]}["OS.release.ID"] == "pass"
    assert not dest.exists()
    limits |= {"OS.kernel": ">= 6", "K8s.server.version": ">= 1.34"}
    site.overlay("eks", EKS, constraints=[{"name": name, "value": value} for name, value in limits.items()])
    lenient = run(recipe, criteria=EKS, snapshot=snapshot, dest=str(dest), fail_on_unknown=False)
    assert lenient["changed"]
    assert any("GPU.count" in warning for warning in lenient["warned"])


# recipe_info


def test_list(run, site):
    site.overlay("eks", EKS, recipe=True)
    result = run(recipe_info)
    assert result["recipes"] == [
        {"name": "eks", "description": "", "criteria": EKS, "file": str(site.root / "overlays/eks.yaml")}
    ]
    assert result["dimensions"]["service"] == {
        "values": ["eks", "aks", "gke"],
        "aliases": {"self-managed": "any", "amazon": "eks"},
    }
    assert not result["changed"]


def test_explain(run):
    result = run(recipe_info, query="explain", criteria=EKS, path="a.version")
    assert result["explanation"]["value"] == "1.0.0"
    assert run(recipe_info, query="explain", path="a.version")["failed"]
    assert "did you mean 'a.version'" in run(recipe_info, query="explain", criteria=EKS, path="a.vers")["msg"]


def test_lint(run, site):
    result = run(recipe_info, query="lint")
    assert result["counts"]["error"] == 0
    assert result["counts"]["warning"] == len(result["problems"]) > 0
    site.overlay("eks", EKS, components=[{"name": "aa"}])
    site.overlay("gke", {"service": "gkee"})
    result = run(recipe_info, query="lint")
    assert result["failed"]
    assert result["counts"]["error"] == 2
    assert {one["code"] for one in result["problems"]} == {"unknown-component", "unknown-value"}


# the shipped catalogue and the filters


def test_the_word_shipped_is_the_shipped_catalogue():
    shipped = with_shipped(None)
    assert [Path(one).resolve() for one in shipped] == [ROOT / "gitops/catalog"]
    assert with_shipped(["shipped", "mine"]) == [*shipped, "mine"]
    assert with_shipped("mine") == ["mine"]


def test_the_version_in_locks_is_the_collections():
    assert yamltree.load_file(str(ROOT / "galaxy.yml")).data["version"] == version.VERSION


def test_resolve_filter(site):
    lock = resolve(EKS, [str(site.root)])
    assert deployment_order(lock) == deployment_order(lock["spec"]["components"]) == ["a", "b"]
    lock["spec"].clear()
    assert resolve(EKS, str(site.root))["spec"], "the cached catalogue is not what was handed out"
    with pytest.raises(AnsibleFilterError, match="did you mean 'eks'"):
        resolve({"service": "ek"}, [str(site.root)])
    with pytest.raises(AnsibleFilterError, match="resolve:"):
        resolve({"service": object()}, [str(site.root)])


@pytest.mark.parametrize("value", [{}, {"spec": {}}, [1], "x", 3, None, [{"dependsOn": []}]])
def test_order_of_what_is_no_recipe(value):
    with pytest.raises(AnsibleFilterError, match="needs a recipe lock"):
        deployment_order(value)


def test_order_of_a_cycle():
    with pytest.raises(AnsibleFilterError, match="a -> b -> a"):
        deployment_order([{"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a"]}])


def test_version_satisfies():
    assert version_satisfies("1.34.2", ">= 1.34") is True
    assert version_satisfies("1.34.0-rc.1", ">= 1.34") is False
    assert version_satisfies("", ">= 1.34") is False
    with pytest.raises(AnsibleFilterError, match="malformed"):
        version_satisfies("1.34", "=> 1")


@pytest.mark.parametrize("check", [False, True])
def test_a_pipe_or_device_is_never_replaced(run, tmp_path, check):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run(recipe, check=check, criteria=EKS, dest=str(pipe))
    assert result["failed"]
    assert "is a device, a pipe or a socket" in result["msg"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_written(run, tmp_path, there):
    link, target = tmp_path / "link.yaml", tmp_path / "target.yaml"
    if there:
        target.write_text("old: true\n")
    link.symlink_to("target.yaml")
    assert run(recipe, criteria=EKS, dest=str(link))["changed"]
    assert link.is_symlink()
    assert not target.is_symlink()
    assert lockfile.load_lock(str(target))
    assert not run(recipe, criteria=EKS, dest=str(link))["changed"]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("dest", ["", "  ", "a\0b"])
def test_a_dest_that_names_no_file_is_refused(run, dest, check):
    result = run(recipe, check=check, criteria=EKS, dest=dest)
    assert result["failed"]
    assert "dest: " in result["msg"]


@pytest.mark.parametrize("check", [False, True])
def test_a_directory_that_cannot_be_written_is_told_in_check_mode_too(run, tmp_path, monkeypatch, check):
    monkeypatch.setattr(recipe.os, "access", lambda path, mode: False)
    result = run(recipe, check=check, criteria=EKS, dest=str(tmp_path / "x.yaml"))
    assert result["failed"]
    assert "its directory is not writable" in result["msg"]


def test_a_refused_rename_is_an_error_and_no_traceback(run, tmp_path, monkeypatch):
    def refuse(self, source, target):
        raise Exception("read-only file system")

    monkeypatch.setattr(AnsibleModule, "atomic_move", refuse)
    result = run(recipe, criteria=EKS, dest=str(tmp_path / "x.yaml"))
    assert result["failed"]
    assert "cannot be written: read-only file system" in result["msg"]


@pytest.mark.parametrize("option", ["lock", "snapshot"])
def test_a_name_with_a_nul_byte_is_an_error_and_no_traceback(run, tmp_path, option):
    dest = tmp_path / "x.yaml"
    run(recipe, criteria=EKS, dest=str(dest))
    result = run(recipe, **{"lock": str(dest), option: "a\0b"})
    assert result["failed"]
    assert "cannot be read: embedded null byte" in result["msg"]
