"""The modules, as Ansible runs them: arguments in, result out, errors for people."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import manifest, signature
from ansible_collections.goodput.fleet.plugins.module_utils.records import closedworld, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.modules import bundle, bundle_info
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from tests.unit.bundles import locks

PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


def pair(key) -> tuple[str, str]:
    private = key.private_bytes(PEM, PKCS8, serialization.NoEncryption()).decode()
    public = key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    return private, public


PRIVATE, PUBLIC = pair(ed25519.Ed25519PrivateKey.generate())
_OTHER, OTHER_PUBLIC = pair(ed25519.Ed25519PrivateKey.generate())
RSA, RSA_PUBLIC = pair(rsa.generate_private_key(65537, 2048))


class Done(Exception):
    pass


def run(monkeypatch, module, **arguments) -> dict:
    """The module's result; `failed` is set where it failed."""
    result: dict = {}

    def end(_self, **given):
        result.update(given)
        raise Done

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", lambda self, **given: end(self, failed=True, **given))
    with patch_module_args(arguments), pytest.raises(Done):
        module.main()
    return json.loads(json.dumps(result))


@pytest.fixture
def render(monkeypatch, tmp_path):
    def go(**arguments):
        given = {"lock": locks.sample(), "deployer": "helm", "dest": str(tmp_path / "bundle"), **arguments}
        return run(monkeypatch, bundle, **given)

    return go


@pytest.fixture
def info(monkeypatch, tmp_path):
    return lambda **arguments: run(monkeypatch, bundle_info, path=str(tmp_path / "bundle"), **arguments)


def test_render_and_verify(render, info, tmp_path):
    result = render()
    assert (
        result["changed"] and result["deployer"] == "helm" and result["recipe"] == "eks-h100" and not result["signed"]
    )
    assert result["lock_digest"] == locks.sample()["metadata"]["digest"]
    assert result["files"] == len(result["added"]) and "diff" not in result
    assert not render()["changed"]
    seen = info()
    assert seen["valid"] and not seen["changed"] and seen["problems"] == []
    assert (seen["deployer"], seen["lock"], seen["rendered_from"]) == (
        "helm",
        result["lock_digest"],
        result["lock_digest"],
    )
    assert [one["name"] for one in seen["components"]] == seen["order"]
    assert seen["components"][2] == {
        "name": "gpu-operator", "namespace": "gpu-operator", "release": "gpu-operator", "tier": 1,
        "chart": "gpu-operator", "version": "v26.7.0", "repository": "https://helm.ngc.nvidia.com/nvidia/",
    }  # fmt: skip
    assert (seen["signed"], seen["signature"]) == (False, "absent")


def test_the_lock_may_be_a_file(render, tmp_path):
    path = tmp_path / "recipe.lock.yaml"
    path.write_text(yamltree.dump(locks.sample()))
    assert render(lock=str(path))["changed"]
    assert (tmp_path / "bundle/recipe.lock.yaml").read_bytes() == path.read_bytes()
    assert not render()["changed"], "a path and a dictionary are the same"


def test_check_mode_and_diff(render, tmp_path):
    planned = render(_ansible_check_mode=True, _ansible_diff=True)
    assert planned["changed"] and not (tmp_path / "bundle").exists()
    assert {entry["after_header"] for entry in planned["diff"]} >= {"README.md", "plan.json"}
    done = render(_ansible_diff=True)
    assert done == planned


def test_bad_input_is_told_whole(render):
    bad = locks.sample()
    bad["spec"]["components"][0]["namespace"] = "a b"
    bad["spec"]["components"][1]["chart" if "chart" in bad["spec"]["components"][1] else "tier"] = 7
    result = render(lock=bad)
    assert result["failed"] and len(result["problems"]) >= 3 and "the lock was changed by hand" in result["msg"]
    assert "no such file" in render(lock="/nowhere.yaml")["msg"]
    assert "repo_url is needed" in render(deployer="argocd")["msg"]
    assert "depend" in render(exclude=["cert-manager"])["msg"]
    assert "is not a lock" in render(lock={"kind": "Overlay"})["msg"]


def test_an_overlay_is_no_lock(render, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("apiVersion: goodput.fleet/v1alpha1\nkind: Overlay\nmetadata: {name: x}\nspec: {}\n")
    assert "is not a lock" in render(lock=str(path))["msg"]


def test_options_reach_the_renderer(render, tmp_path):
    render(deployer="flux", path="x", options={"interval": "1h", "timeouts": {"gpu-operator": 1800}})
    text = (tmp_path / "bundle/releases/gpu-operator.yaml").read_text()
    assert "interval: 1h" in text and "timeout: 1800s" in text


def test_mirror_warns_of_what_it_left(render, monkeypatch):
    warnings = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda _self, text: warnings.append(text))
    result = render(mirror={"charts": "oci://mirror.internal/charts", "images": "mirror.internal/images"})
    assert result["lock_digest"] != locks.sample()["metadata"]["digest"]
    assert warnings == ["some sources are not rewritten to the mirror: see mirror/not-rewritten.txt"]
    assert "failed" not in render(mirror={"charts": "oci://mirror.internal/charts"})
    assert len(warnings) == 1


# ---- signatures


def test_signed(render, info, tmp_path):
    assert render(signing_key=PRIVATE)["signed"]
    assert not render(signing_key=PRIVATE)["changed"], "the signature is the same each time"
    key = tmp_path / "key.pem"
    key.write_text(PRIVATE)
    assert not render(signing_key_path=str(key))["changed"]
    assert info()["signature"] == "unchecked"
    seen = info(public_key=PUBLIC)
    assert (seen["valid"], seen["signed"], seen["signature"]) == (True, True, "valid")
    seen = info(public_key=OTHER_PUBLIC)
    assert seen["failed"] and seen["signature"] == "invalid" and "is not the signature" in seen["msg"]
    assert render()["removed"] == [manifest.SIGNATURE], "an unsigned rendering keeps no old signature"


def test_a_missing_signature_fails_where_one_is_asked_for(render, info):
    render()
    seen = info(public_key=PUBLIC)
    assert seen["failed"] and [one["code"] for one in seen["problems"]] == ["not-signed"]
    assert (seen["signed"], seen["signature"]) == (False, "absent")


def test_rewriting_the_list_does_not_help_without_the_key(render, info, tmp_path):
    render(signing_key=PRIVATE)
    root = tmp_path / "bundle"
    (root / "plan.json").write_text('{"steps": []}\n')
    files = {
        path: (root / path).read_bytes() for path, _mode in closedworld.entries(str(root)) if (root / path).is_file()
    }
    files.pop(manifest.SIGNATURE)
    files.pop(manifest.LIST)
    (root / manifest.LIST).write_bytes(manifest.listing(files))
    assert info(public_key=PUBLIC)["signature"] == "invalid"


@pytest.mark.parametrize("key, words", [
    ("nonsense", "is not a private key in PEM form"),
    (PUBLIC, "is not a private key in PEM form"),
    (RSA, "is not an Ed25519 key"),
])  # fmt: skip
def test_bad_private_keys(render, key, words, tmp_path):
    result = render(signing_key=key)
    assert result["failed"] and words in result["msg"] and key not in result["msg"]
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("key", ["nonsense", PRIVATE, RSA_PUBLIC])
def test_bad_public_keys(key):
    with pytest.raises(InvalidDocument, match="public_key: the key is not"):
        signature.check(b"x", b"eA==", key)


@pytest.mark.parametrize("text", [b"", b"!!!", b"AAAA", b"\xff"])
def test_bad_signatures(text):
    assert [one.code for one in signature.check(b"x", text, PUBLIC)] == ["bad-signature"]


# ---- what bundle_info says of a bundle that is not one


def test_invalid_without_failing(render, info, tmp_path):
    render()
    (tmp_path / "bundle/evil.yaml").write_text("x")
    seen = info(fail_on_invalid=False)
    assert "failed" not in seen and not seen["valid"]
    assert seen["problems"] == [{
        "code": "extra-file", "message": "is not listed", "file": "evil.yaml", "severity": "error",
        "hint": "remove it: a deployer would apply it",
    }]  # fmt: skip
    assert info()["failed"]


def test_no_bundle_at_all(info, tmp_path):
    assert [one["code"] for one in info(fail_on_invalid=False)["problems"]] == ["no-bundle"]
    (tmp_path / "bundle").mkdir()
    seen = info(fail_on_invalid=False)
    assert [one["code"] for one in seen["problems"]] == ["no-bundle"]
    assert (seen["deployer"], seen["lock"], seen["components"], seen["order"]) == (None, None, [], [])


@pytest.mark.parametrize("name, content, code", [
    ("bundle.json", "[]", "bad-about"),
    ("bundle.json", '{"deployer": "x"}', "bad-about"),
    ("bundle.json", '{"deployer": "flux", "lock": "x", "recipe": "eks-h100", "order": []}', "bad-about"),
    ("recipe.lock.yaml", "kind: Overlay\n", "not-a-lock"),
    ("recipe.lock.yaml", "a: [\n", "malformed-yaml"),
])  # fmt: skip
def test_a_listed_file_may_still_be_wrong(render, info, tmp_path, name, content, code):
    render()
    root = tmp_path / "bundle"
    (root / name).write_text(content)
    files = {
        path: (root / path).read_bytes() for path, _mode in closedworld.entries(str(root)) if (root / path).is_file()
    }
    files.pop(manifest.LIST)
    (root / manifest.LIST).write_bytes(manifest.listing(files))
    assert code in [one["code"] for one in info(fail_on_invalid=False)["problems"]]


@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_key_never_leaves_a_bundle_unsigned_or_unchecked(render, monkeypatch, tmp_path, key):
    empty = tmp_path / "empty.pem"
    empty.write_text(key)
    for given in ({"signing_key": key}, {"signing_key_path": str(empty)}, {"signing_key_path": ""}):
        assert render(**given)["failed"]
        assert not (tmp_path / "bundle").exists()
    for signed in ({}, {"signing_key": PRIVATE}):
        render(**signed)
        for given in ({"public_key": key}, {"public_key_path": str(empty)}, {"public_key_path": ""}):
            assert run(monkeypatch, bundle_info, path=str(tmp_path / "bundle"), **given)["failed"]


@pytest.mark.parametrize("dest", ["", "a\0b"])
@pytest.mark.parametrize("check", [True, False])
def test_a_folder_without_a_name_is_refused_in_check_mode_too(render, dest, check):
    result = render(dest=dest, _ansible_check_mode=check)
    assert result["failed"]
    assert "is not the path of a folder" in result["msg"]
