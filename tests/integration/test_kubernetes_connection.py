# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching a real API server, and what is said when it cannot be reached."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    NotFound,
    Unavailable,
)

pytestmark = pytest.mark.cluster
NODES = "/api/v1/nodes"


def a_client(kubeconfig: Path, **options):
    return connect({"kubeconfig": str(kubeconfig)}, attempts=2, **options)


def said_by(kubeconfig: Path, path: str = NODES, **params) -> FleetError:
    with pytest.raises(FleetError) as caught:
        connect({"kubeconfig": str(kubeconfig), **params}, attempts=2).get(path)
    assert len(caught.value.problems) == 1
    assert "\n" not in str(caught.value)
    return caught.value


def test_an_address_where_nobody_listens(cluster):
    error = said_by(cluster.access.unreachable())
    assert isinstance(error, Unavailable)
    assert "cannot reach the API server 127.0.0.1:1: Connection refused" in str(error)
    assert "unreachable.kubeconfig" in str(error)  # where that address came from


@pytest.mark.parametrize("kind", ["wrong_token", "expired_token"])
def test_a_token_that_does_not_open(cluster, kind):
    kubeconfig = getattr(cluster.access, kind)()
    error = said_by(kubeconfig)
    assert isinstance(error, Denied)
    assert "does not accept the credential (401 Unauthorized)" in str(error)
    assert ("the token expired at 20" in str(error)) == (kind == "expired_token")
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    assert token not in str(error)


def test_a_context_that_does_not_exist(cluster):
    error = said_by(cluster.kubeconfig, context="controlplan")
    assert isinstance(error, NotFound)
    assert "there is no context 'controlplan' (did you mean" in str(error)


def test_a_server_whose_certificate_nobody_vouches_for(cluster):
    error = said_by(cluster.access.untrusted())
    assert isinstance(error, Unavailable)
    assert "TLS with 127.0.0.1:" in str(error) and "self-signed certificate" in str(error).replace(
        "self signed", "self-signed"
    )
    assert "ca_cert" in str(error)


def test_a_ca_that_is_not_the_clusters(cluster, tmp_path):
    other = tmp_path / "ca.crt"
    other.write_text("not a certificate")
    error = said_by(cluster.kubeconfig, ca_cert=str(other))
    assert "TLS with 127.0.0.1:" in str(error)


def test_no_verification_when_told_so(cluster):
    client = connect({"kubeconfig": str(cluster.access.untrusted()), "validate_certs": False})
    assert client.get("/version")["major"] == "1"


def test_plain_http_to_a_tls_port(cluster):
    host = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    error = said_by(cluster.kubeconfig, host=host.replace("https", "http"))
    assert "the host needs https://" in str(error)


def test_an_account_without_rights(cluster):
    error = said_by(cluster.access.service_account("nobody"))
    assert isinstance(error, Denied)
    assert str(error) == (
        "forbidden: cannot list nodes at cluster scope (user system:serviceaccount:default:nobody needs that right)"
    )


def test_a_kind_that_is_not_served_and_an_object_that_is_not_there(cluster):
    error = said_by(cluster.kubeconfig, api_path("example.com/v1", "things"))
    assert isinstance(error, NotFound) and error.problems[0].code == "api-missing"
    assert "does not serve things of example.com/v1" in str(error)
    error = said_by(cluster.kubeconfig, api_path("v1", "nodes", name="gone"))
    assert isinstance(error, NotFound) and error.problems[0].code == "object-missing"
    assert a_client(cluster.kubeconfig).find(api_path("v1", "nodes", name="gone")) is None


def test_pages_make_one_list(cluster):
    client = a_client(cluster.kubeconfig)
    names = [item["metadata"]["name"] for item in client.list(NODES, page=3)]
    assert names == sorted(cluster.fleet.names())
    assert [len(items) for items in client.pages(NODES, page=3)] == [3, 3, 2]
    slim = next(client.list(NODES, metadata_only=True))
    assert set(slim) >= {"metadata"} and "status" not in slim
    slim = client.get(f"{NODES}/gpu-0001", metadata_only=True)
    assert slim["metadata"]["name"] == "gpu-0001" and "status" not in slim
    slim = client.patch(f"{NODES}/gpu-0001", {"metadata": {"labels": {"x": "y"}}}, metadata_only=True)
    assert slim["metadata"]["labels"]["x"] == "y" and "status" not in slim
    client.patch(f"{NODES}/gpu-0001", {"metadata": {"labels": {"x": None}}})
    labelled = client.list(NODES, labelSelector="kubernetes.io/hostname in (gpu-0001, gpu-0002)")
    assert [item["metadata"]["name"] for item in labelled] == ["gpu-0001", "gpu-0002"]


def test_eight_threads_share_a_client(cluster):
    client = a_client(cluster.kubeconfig)
    start = threading.Barrier(8)

    def read(index: int) -> str:
        start.wait()
        for _again in range(10):
            name = client.get(f"{NODES}/gpu-000{index}")["metadata"]["name"]
        return name

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == [f"gpu-000{index}" for index in range(8)]


def test_writing_and_its_conflicts(cluster, namespace):
    client = a_client(cluster.kubeconfig)
    path = api_path("v1", "configmaps", namespace)
    made = client.post(path, {"metadata": {"name": "one"}, "data": {"a": "1"}})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
    assert client.patch(f"{path}/one", {"data": {"a": "2"}})["data"] == {"a": "2"}
    with pytest.raises(Conflict, match="the object has been modified") as caught:
        client.patch(f"{path}/one", stale)
    assert caught.value.status == 409
    with pytest.raises(Conflict, match="already exists"):
        client.post(path, {"metadata": {"name": "one"}})
    with pytest.raises(FleetError, match="cannot create configmaps"):
        client.post(path, {"metadata": {"name": "NOT VALID"}})
    client.delete(f"{path}/one")
    assert client.find(f"{path}/one") is None


def test_awxs_environment(cluster, monkeypatch):
    """AWX's Kubernetes credential sets these four; test_drift_live runs a module under them."""
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
    from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import KUBERNETES_ARGS

    admin = yaml.safe_load(cluster.kubeconfig.read_text())
    monkeypatch.setenv("K8S_AUTH_HOST", admin["clusters"][0]["cluster"]["server"])
    monkeypatch.setenv("K8S_AUTH_API_KEY", admin["users"][0]["user"]["token"])
    monkeypatch.setenv("K8S_AUTH_VERIFY_SSL", "False")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    checked = ArgumentSpecValidator(KUBERNETES_ARGS).validate({})
    assert not checked.error_messages
    assert connect(checked.validated_parameters).get("/version")["major"] == "1"
    assert json.dumps(checked.validated_parameters["validate_certs"]) == "false"
