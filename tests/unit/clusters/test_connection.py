"""From options, environment and kubeconfigs to an address and a credential; and what is said when that fails."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import failures
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import kubeconfig as configs
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, FleetError

from tests.unit.clusters.scripted import Answer, serving


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, tmp_path):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def config(server: str = "https://one.example.com:6443", user: dict | None = None, **cluster) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c1", "user": "u1"}},
            {"name": "two", "context": {"cluster": "c2", "user": "u1"}},
        ],
        "clusters": [
            {"name": "c1", "cluster": {"server": server, **cluster}},
            {"name": "c2", "cluster": {"server": "https://two.example.com"}},
        ],
        "users": [{"name": "u1", "user": user or {"token": "sesame"}}],
    }


def written(path: Path, data: dict) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return str(path)


def test_argument_names_and_environment_are_those_of_kubernetes_core():
    environment = {name: spec["fallback"][1][0] for name, spec in KUBERNETES_ARGS.items()}
    assert environment == {
        "kubeconfig": "K8S_AUTH_KUBECONFIG",
        "context": "K8S_AUTH_CONTEXT",
        "host": "K8S_AUTH_HOST",
        "api_key": "K8S_AUTH_API_KEY",
        "validate_certs": "K8S_AUTH_VERIFY_SSL",
        "ca_cert": "K8S_AUTH_SSL_CA_CERT",
        "client_cert": "K8S_AUTH_CERT_FILE",
        "client_key": "K8S_AUTH_KEY_FILE",
        "proxy": "K8S_AUTH_PROXY",
        "no_proxy": "K8S_AUTH_NO_PROXY",
    }
    assert KUBERNETES_ARGS["api_key"]["no_log"] is True


def test_a_host_and_a_token_need_no_kubeconfig(tmp_path):
    written(tmp_path / "home/.kube/config", config())
    settings = connect({"host": "10.0.0.1:6443", "api_key": "k", "validate_certs": False}).settings
    assert (settings.host, settings.authorization(), settings.verify) == ("https://10.0.0.1:6443", "Bearer k", False)


def test_kubeconfig_then_its_context(tmp_path):
    path = written(tmp_path / "kc", config())
    assert connect({"kubeconfig": path}).settings.host == "https://one.example.com:6443"
    client = connect({"kubeconfig": path, "context": "two"})
    assert client.settings.host == "https://two.example.com"
    assert client.settings.authorization() == "Bearer sesame"
    assert client.context == "two"


def test_options_override_the_kubeconfig(tmp_path):
    ca = tmp_path / "ca.crt"
    ca.write_text("x")
    path = written(tmp_path / "kc", config(**{"insecure-skip-tls-verify": True}))
    assert connect({"kubeconfig": path}).settings.verify is False
    params = {"kubeconfig": path, "api_key": "mine", "validate_certs": True, "ca_cert": str(ca), "proxy": "http://p:1"}
    settings = connect({**params, "host": "https://lb.example.com"}).settings
    assert (settings.host, settings.authorization()) == ("https://lb.example.com", "Bearer mine")
    assert (settings.verify, settings.proxy) == (True, "http://p:1")


def test_the_default_kubeconfigs(tmp_path, monkeypatch):
    written(tmp_path / "home/.kube/config", config())
    assert connect({}).settings.host == "https://one.example.com:6443"
    other = config("https://other.example.com")
    monkeypatch.setenv("KUBECONFIG", f"{written(tmp_path / 'a', other)}:{tmp_path / 'absent'}")
    assert connect({}).settings.host == "https://other.example.com"


def test_several_kubeconfigs_are_merged_and_the_first_wins(tmp_path, monkeypatch):
    first, second = config("https://first.example.com"), config("https://second.example.com")
    second["contexts"].append({"name": "three", "context": {"cluster": "c3", "user": "u1"}})
    second["clusters"].append({"name": "c3", "cluster": {"server": "https://three.example.com"}})
    monkeypatch.setenv("KUBECONFIG", f"{written(tmp_path / 'a', first)}:{written(tmp_path / 'b', second)}")
    assert connect({}).settings.host == "https://first.example.com"
    assert connect({"context": "three"}).settings.host == "https://three.example.com"


def test_files_named_in_a_kubeconfig_are_relative_to_it(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/token").write_text("from-file")
    (tmp_path / "deep/ca.crt").write_text("x")
    data = config(user={"tokenFile": "token"}, **{"certificate-authority": "ca.crt"})
    settings = configs.from_kubeconfig(written(tmp_path / "deep/kc", data))
    assert settings.authorization() == "Bearer from-file"
    assert settings.ca_cert == str(tmp_path / "deep/ca.crt")


def test_a_kubeconfig_as_data_and_its_secrets():
    data = config(user={"token": "sesame", "client-key-data": base64.b64encode(b"key").decode(), "username": "jo"})
    blanked: set = set()
    assert connect({"kubeconfig": data}, blanked).settings.authorization() == "Bearer sesame"
    assert blanked == {"sesame", base64.b64encode(b"key").decode()}
    text: set = set()
    assert connect({"kubeconfig": yaml.safe_dump(data)}, text).settings.authorization() == "Bearer sesame"
    assert text == blanked


def plugin(tmp_path: Path, body: str) -> dict:
    path = tmp_path / "plugin.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh", "interactiveMode": "Never"}
    return config(user={"exec": run})


def credential(token: str, **fields) -> str:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token, **fields},
    }
    return f"echo '{json.dumps(answer)}'"


def test_an_exec_plugin_gives_the_token(tmp_path):
    path = written(tmp_path / "kc", plugin(tmp_path, credential("fresh")))
    assert connect({"kubeconfig": path}).settings.authorization() == "Bearer fresh"


def test_an_exec_plugin_that_fails_is_named_with_what_it_said(tmp_path):
    path = written(tmp_path / "kc", plugin(tmp_path, "echo 'your session is over' >&2; exit 3"))
    with pytest.raises(Denied, match=r"credential plugin '.*/plugin\.sh' failed: .*your session is over"):
        connect({"kubeconfig": path})


def test_a_token_that_died_early_is_fetched_anew_once(tmp_path):
    count = tmp_path / "count"
    numbered = credential("tNUMBER") + ' | sed "s/NUMBER/$N/"'
    body = f"echo x >> {count}; N=$(wc -l < {count}); {numbered}"
    with serving(Answer(401, {"message": "Unauthorized"}), Answer(body={"ok": True})) as (host, asked):
        data = plugin(tmp_path, body)
        data["clusters"][0]["cluster"]["server"] = host
        assert connect({"kubeconfig": written(tmp_path / "kc", data)}).get("/version") == {"ok": True}
    assert [request.headers["Authorization"] for request in asked] == ["Bearer t1", "Bearer t2"]


def jwt(claims: dict) -> str:
    return "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".sig"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (jwt({"exp": 1_000_000_000}), "the token expired at 2001-09-09T01:46:40Z"),
        (jwt({"exp": 99_999_999_999}), "the token is expired or not valid here"),
        ("opaque", "the token is expired or not valid here"),
        (None, "no token was sent"),
    ],
)
def test_a_refused_token_is_explained(token, text):
    with (
        serving(Answer(401, {"message": "Unauthorized"})) as (host, _asked),
        pytest.raises(Denied, match=text) as caught,
    ):
        connect({"host": host, "api_key": token}).get("/version")
    assert "K8S_AUTH_HOST" in str(caught.value)
    assert token is None or token not in str(caught.value)


def broken(**changes) -> dict:
    return {**config(), **changes}


@pytest.mark.parametrize(
    ("data", "context", "text"),
    [
        (config(), "ones", r"kc: there is no context 'ones' \(did you mean 'one'\? valid: one, two\)"),
        (broken(**{"current-context": "gone"}), None, r"kc:3: there is no current-context 'gone'"),
        (broken(**{"current-context": ""}), None, "no context was asked for"),
        (broken(clusters=[]), None, "context 'one' names the cluster 'c1', which is not there"),
        (broken(users=[{"name": "other", "user": {}}]), None, r"the user 'u1', which is not there \(valid: other\)"),
        (broken(clusters=[{"name": "c1", "cluster": {}}]), None, "the cluster has no server"),
        (broken(contexts=[{"nam": "x"}]), None, r"contexts\[0\]: has no name"),
        (broken(contexts="none"), None, "contexts is not a list"),
        ({"hello": "world"}, None, "is not a kubeconfig"),
        (config(user={"client-certificate": "gone.crt", "client-key": "k"}), None, "client-certificate is not there"),
        (config(server="ftp://x"), None, "is not the address of an API server"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig(tmp_path, data, context, text):
    path = written(tmp_path / "kc", data)
    with pytest.raises(FleetError, match=text):
        connect({"kubeconfig": path, "context": context})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("apiVersion: v1\nclusters: [\n", r"kc:3: malformed YAML"),
        ("", "holds no document"),
        ("clusters: []\nclusters: []\n", "kc:2: .*the key 'clusters' stands here twice"),
    ],
)
def test_a_malformed_kubeconfig_is_told_by_line(tmp_path, content, text):
    path = tmp_path / "kc"
    path.write_text(content)
    with pytest.raises(FleetError, match=text):
        connect({"kubeconfig": str(path)})


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "no cluster is named: there is no kubeconfig"),
        ({"kubeconfig": "/nowhere/kc"}, "/nowhere/kc: no such file"),
        ({"kubeconfig": 7}, "kubeconfig is a int"),
        ({"host": "https://h", "ca_cert": "/nowhere/ca"}, "/nowhere/ca: ca_cert: no such file"),
        ({"host": "https://h", "proxy": "socks9://x"}, "the proxy 'socks9://x' cannot be used"),
        ({"host": "https://h", "proxy": "socks9://me:secret@x"}, "the proxy 'socks9://x' cannot be used"),
        ({"host": "https://me:secret@h"}, "the address of https://h holds a user or password"),
        ({"host": "https://"}, "is not the address"),
        ({"host": "https://[bad"}, "is not the address"),
        ({"host": "https://a b"}, "is not the address of a server"),
    ],
)
def test_what_is_wrong_with_options(params, text):
    with pytest.raises(FleetError, match=text):
        connect(params)


def test_kubeconfig_in_the_environment_that_is_not_there(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kc")
    with pytest.raises(FleetError, match="KUBECONFIG names it"):
        connect({})


@pytest.mark.parametrize(
    ("environment", "params", "proxy"),
    [
        ({"HTTPS_PROXY": "http://p:1"}, {"host": "https://api.example.com"}, "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example.com"}, {"host": "https://api.example.com"}, None),
        ({"HTTPS_PROXY": "http://p:1"}, {"host": "https://127.0.0.1:6443"}, None),
        ({}, {"host": "https://api.example.com", "proxy": "http://q:2", "no_proxy": "api.example.com"}, None),
        ({}, {"host": "https://api.example.com", "proxy": "http://q:2"}, "http://q:2"),
    ],
)
def test_proxies(monkeypatch, environment, params, proxy):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert connect(params).settings.proxy == proxy


def test_in_a_pod_its_service_account_is_used(monkeypatch, tmp_path):
    from kubernetes.config import incluster_config

    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("x")
    monkeypatch.setattr(configs, "SERVICE_ACCOUNT", str(tmp_path))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    settings = connect({}).settings
    assert (settings.host, settings.ca_cert) == ("https://10.0.0.1:443", str(tmp_path / "ca.crt"))
    assert settings.authorization().lower() == "bearer pod-token"
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(FleetError, match="the pod's service account cannot be used"):
        connect({})


@pytest.mark.parametrize("url", ["http://me:secret@p:1", "me:secret@p:1"])
def test_messages_hold_no_password_of_a_proxy(url):
    import urllib3

    settings = configs.Settings("https://h", "the option host", proxy=url)
    error = failures.from_transport(urllib3.exceptions.ProxyError("no", OSError("refused")), settings)
    assert "cret" not in str(error) and "p:1 does not let through to h" in str(error)


def test_the_password_of_a_proxy_is_blanked_in_results():
    blanked: set[str] = set()
    connect({"host": "https://h", "proxy": "http://me:secret@p:1"}, blanked)
    assert blanked == {"secret"}
    connect({"host": "https://h:6443", "proxy": "http://me@p:1"}, blanked)
    assert blanked == {"secret"}
