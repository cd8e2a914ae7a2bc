"""What a stand-in chart holds follows from the lock alone."""

from __future__ import annotations

import io
import tarfile

import pytest
import yaml

from tests.standin import charts, kinds, repository
from tests.standin.locks import component, lock, manifest

READY = {"name": "ready", "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "plural": "clusterpolicies"}
READY |= {"namespaced": False, "expression": "status.state == 'ready'"}


def read(archive: bytes, path: str) -> dict:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return yaml.safe_load(tar.extractfile(path).read())


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.getnames()


def test_the_same_lock_gives_the_same_bytes_and_index(tmp_path):
    document = lock(component("a", {"x": 1}, crds=["things.example.com"]), component("b", tier=1))
    first, second = charts.archives(document), charts.archives(document)
    assert first == second and sorted(first) == ["a-1.2.3.tgz", "b-1.2.3.tgz"]
    repository.store(tmp_path, first)
    index = (tmp_path / "index.yaml").read_bytes()
    (tmp_path / "stale-1.0.0.tgz").write_bytes(first["a-1.2.3.tgz"])
    repository.store(tmp_path, second)
    assert (tmp_path / "index.yaml").read_bytes() == index
    assert not (tmp_path / "stale-1.0.0.tgz").exists()
    assert yaml.safe_load(index)["entries"]["a"][0]["urls"] == ["a-1.2.3.tgz"]


def test_kind_version_and_scope_come_from_the_checks():
    made = charts.archives(lock(component("gpu", crds=["clusterpolicies.nvidia.com"], health={"checks": [READY]})))
    crd = read(made["gpu-1.2.3.tgz"], "gpu/crds/clusterpolicies.nvidia.com.yaml")
    assert crd["spec"]["names"]["kind"] == "ClusterPolicy" and crd["spec"]["scope"] == "Cluster"
    assert read(made["gpu-1.2.3.tgz"], "gpu/standin.yaml")["objects"] == [
        {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy"}
    ]


def test_a_kind_in_a_manifest_is_known_and_its_object_is_not_made_twice():
    content = "apiVersion: nvidia.com/v1beta1\nkind: ClusterPolicy\nmetadata: {name: ours}\n"
    document = lock(
        component("crds", crds=["clusterpolicies.nvidia.com"]),
        component("gpu", tier=1, manifests=[manifest("policy", content)], health={"checks": [READY]}),
    )
    made = charts.archives(document)
    crd = read(made["crds-1.2.3.tgz"], "crds/crds/clusterpolicies.nvidia.com.yaml")
    assert [version["name"] for version in crd["spec"]["versions"]] == ["v1beta1"]
    assert not [name for name in names(made["gpu-1.2.3.tgz"]) if "/crds/" in name]
    assert read(made["gpu-1.2.3.tgz"], "gpu/standin.yaml")["objects"] == []


def test_a_crd_that_only_a_check_names_comes_with_that_component():
    made = charts.archives(lock(component("gpu", health={"checks": [READY]})))
    assert "gpu/crds/clusterpolicies.nvidia.com.yaml" in names(made["gpu-1.2.3.tgz"])


def test_kinds_of_kubernetes_itself_need_nothing():
    check = READY | {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "plural": "deviceclasses"}
    made = charts.archives(lock(component("dra", health={"checks": [check]})))
    assert read(made["dra-1.2.3.tgz"], "dra/standin.yaml")["objects"] == []


@pytest.mark.parametrize(
    ("workload", "image"),
    [
        ("cert-manager", "quay.io/jetstack/cert-manager-controller:v1"),
        ("cert-manager-webhook", "quay.io/jetstack/cert-manager-webhook:v2"),
        ("trust", "charts.example.com/trust:1.2.3"),
    ],
)
def test_the_default_image_is_the_one_that_is_named_like_the_workload(workload, image):
    images = ["quay.io/jetstack/cert-manager-webhook:v2", "quay.io/jetstack/cert-manager-controller:v1"]
    made = charts.default_image(workload, component("x", images=images))
    assert "{folder}/{name}:{tag}".format(**made) == image


@pytest.mark.parametrize(
    ("plural", "singular"), [("policies", "policy"), ("classes", "class"), ("queues", "queue"), ("nodes", "node")]
)
def test_made_up_kinds(plural, singular):
    assert kinds.made_up(f"{plural}.example.com").kind == singular.capitalize()


def test_what_a_stand_in_cannot_do_is_told():
    with pytest.raises(ValueError, match="job: a stand-in makes DaemonSet, Deployment, StatefulSet, no Job"):
        charts.archives(lock(component("job", health={"workloads": [{"kind": "Job", "name": "j"}]})))
    one = component("one")
    with pytest.raises(ValueError, match=r"two components use the chart one-1\.2\.3\.tgz"):
        charts.archives(lock(one, component("two", chart=one["chart"])))
