"""Air gap: every source is the mirror, the lists say what to copy, and what was not understood is said."""

from __future__ import annotations

import re

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import images
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.mirror import LEFT
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock

from tests.unit.bundles import locks, outputs

OCI = {"mirror_charts": "oci://mirror.internal/charts", "mirror_images": "mirror.internal/images"}
CLUSTER_POLICY = """\
apiVersion: nvidia.com/v1
kind: NicClusterPolicy
metadata: {name: one}  # from nvcr.io/nvidia/doc
spec:
  ofedDriver: {repository: nvcr.io/nvidia/mellanox, image: doca-driver, version: 25.04}
  other:
    registry: "quay.io"
    containers: [{image: "docker.io/library/busybox:1.36"}, {image: busybox:1.36}]
---
""" + locks.CRD.replace("{{ braces }}", "such as ghcr.io/a/b:1")


def lock() -> dict:
    return locks.lock(
        locks.component(
            "operator",
            chart=locks.chart("operator", "v1.0.0+up2", "https://charts.vendor.example/stable"),
            values={
                "init": {"image": "busybox:1.36"},
                "unknown": {"repository": "vendor/thing", "tag": "1"},
                "image": {"registry": "ghcr.io", "repository": "vendor/operator", "tag": "v1"},
                "driver": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580.1"},
                "sidecar": "quay.io/vendor/side:2",
                "own": {"image": "registry.vendor.example:5000/x/own:3"},
                "args": ["--image=quay.io/vendor/side:2", "--url=https://quay.io.example.com/x"],
                "script": "pull quay.io/vendor/side:2\nkeep quay.io.example.com/side\n",
                "globalRegistry": "docker.io",
                "note": "nvcr.io",
                "label": {"nvidia.com/gpu": "nvidia.com/gpu.present"},
                "digest": {"repository": "quay.io/vendor/by", "digest": "sha256:" + "0" * 64},
            },
            manifests=[locks.manifest("policy", CLUSTER_POLICY)],
            images=["ghcr.io/vendor/operator:v1", "ghcr.io/elsewhere/default:9", "busybox:1.36", "gcr.io/hidden/x:1"],
            rendered={"workloads": [{"kind": "Deployment", "namespace": "operator", "name": "x", "images": {
                "main": "ghcr.io/vendor/operator:v1", "side": "gcr.io/hidden/x:1"}}], "crds": []},
        ),
        locks.component("other", "operator", chart=locks.chart("other", "1.0.0", "oci://registry.vendor.example/charts")),
    )  # fmt: skip


HOSTS = ("charts.vendor.example", "registry.vendor.example", "ghcr.io", "nvcr.io", "quay.io", "docker.io", "busybox:1")


def rows(files: dict[str, bytes], path: str) -> list[str]:
    return files[path].decode().splitlines()[1:]


@pytest.mark.parametrize("deployer", outputs.DEPLOYERS)
def test_no_source_is_left_where_a_deployer_reads(deployer):
    for path, text in outputs.deployable(outputs.bundle(lock(), deployer, **OCI)).items():
        for host in HOSTS:
            assert "crds/" in path or not re.findall(rf"(?<![\w./-]){re.escape(host)}(?![\w-]|\.e).*", text), path


@pytest.mark.parametrize("deployer", outputs.DEPLOYERS)
@pytest.mark.parametrize("charts", ["oci://mirror.internal/charts", "https://mirror.internal/charts/"])
def test_charts_come_from_the_mirror_in_the_form_of_the_deployer(deployer, charts):
    text = "\n".join(outputs.deployable(outputs.bundle(lock(), deployer, mirror_charts=charts)).values())
    assert "vendor.example/" not in text.replace("registry.vendor.example:5000/", "")
    stem = "mirror.internal/charts"
    oci = charts.startswith("oci")
    expected = {
        "helm": f'"repository": "{charts.rstrip("/")}"',
        "argocd": f"repoURL: {stem}" if oci else f"repoURL: https://{stem}",
        "argocd-helm": f"repoURL: {stem}" if oci else f"repoURL: https://{stem}",
        "flux": f"url: oci://{stem}/operator" if oci else f"url: https://{stem}",
        "helmfile": f"url: {stem}\n  oci: true" if oci else f"url: https://{stem}",
    }[deployer]
    assert expected in text


def test_lists():
    files = outputs.bundle(lock(), "flux", **OCI)
    assert rows(files, "mirror/charts.txt") == [
        "https://charts.vendor.example/stable operator v1.0.0+up2 oci://mirror.internal/charts/operator:v1.0.0_up2",
        "oci://registry.vendor.example/charts other 1.0.0 oci://mirror.internal/charts/other:1.0.0",
    ]
    assert rows(files, "mirror/images.txt") == [
        "docker.io/library/busybox:1.36 mirror.internal/images/library/busybox:1.36",
        "gcr.io/hidden/x:1 mirror.internal/images/hidden/x:1",
        "ghcr.io/elsewhere/default:9 mirror.internal/images/elsewhere/default:9",
        "ghcr.io/vendor/operator:v1 mirror.internal/images/vendor/operator:v1",
        "nvcr.io/nvidia/driver:580.1 mirror.internal/images/nvidia/driver:580.1",
        f"quay.io/vendor/by@sha256:{'0' * 64} mirror.internal/images/vendor/by@sha256:{'0' * 64}",
        "quay.io/vendor/side:2 mirror.internal/images/vendor/side:2",
        "registry.vendor.example:5000/x/own:3 mirror.internal/images/x/own:3",
    ]
    assert "`mirror/images.txt`" in files["README.md"].decode()


def test_what_was_rewritten_and_what_was_not():
    files = outputs.bundle(lock(), "flux", **OCI)
    rewritten = rows(files, "mirror/rewritten.txt")
    assert "operator image.registry: ghcr.io -> mirror.internal/images" in rewritten
    assert (
        "operator args[0]: --image=quay.io/vendor/side:2 -> --image=mirror.internal/images/vendor/side:2" in rewritten
    )
    assert (
        "operator script line 1: pull quay.io/vendor/side:2 -> pull mirror.internal/images/vendor/side:2" in rewritten
    )
    assert not [line for line in rewritten if "quay.io.example.com" in line or "nvidia.com/gpu" in line]
    assert rows(files, LEFT) == [
        "operator gcr.io/hidden/x:1: no value of the recipe names it, the chart's default does",
        "operator ghcr.io/elsewhere/default:9: no value of the recipe names it, the chart's default does",
        "operator unknown.repository: names no registry, the chart's default does",
    ]


def test_the_mirrored_lock_is_a_lock_and_is_what_is_deployed(tmp_path):
    files = outputs.bundle(lock(), "helm", **OCI)
    path = tmp_path / "recipe.lock.yaml"
    path.write_bytes(files["recipe.lock.yaml"])
    found = load_lock(str(path))["spec"]["components"][0]
    step = next(one for one in outputs.steps(files) if one["values"])
    assert found["values"] == outputs.read(files, step["values"])
    assert found["values"]["image"] == {
        "registry": "mirror.internal/images",
        "repository": "vendor/operator",
        "tag": "v1",
    }
    assert found["values"]["driver"]["repository"] == "mirror.internal/images/nvidia"
    assert found["values"]["own"]["image"] == "mirror.internal/images/x/own:3"
    assert found["values"]["label"] == {"nvidia.com/gpu": "nvidia.com/gpu.present"}
    images_now = found["rendered"]["workloads"][0]["images"]
    assert images_now == {"main": "mirror.internal/images/vendor/operator:v1", "side": "gcr.io/hidden/x:1"}


def test_manifests_are_moved_and_crds_are_not():
    files = outputs.bundle(lock(), "flux", **OCI)
    policy = files["charts/operator-manifests/templates/policy.yaml"].decode()
    assert "repository: mirror.internal/images/nvidia/mellanox, image: doca-driver" in policy
    assert 'registry: "mirror.internal/images"' in policy
    assert 'image: "mirror.internal/images/library/busybox:1.36"' in policy
    assert "{image: mirror.internal/images/library/busybox:1.36}" in policy
    assert "such as ghcr.io/a/b:1" in files["charts/operator-pre/crds/policy.yaml"].decode()


def test_nodes_can_be_told_to_pull_from_the_mirror():
    import tomllib

    files = outputs.bundle(lock(), "flux", **OCI)
    assert {path.split("/")[2] for path in files if path.startswith("mirror/containerd/")} == {
        "docker.io", "gcr.io", "ghcr.io", "nvcr.io", "quay.io", "registry.vendor.example_5000_",
    }  # fmt: skip
    found = tomllib.loads(files["mirror/containerd/docker.io/hosts.toml"].decode())
    assert found["server"] == "https://registry-1.docker.io"
    # containerd appends NAME/manifests/TAG: the places are those of images.txt
    assert found["host"] == {
        "https://mirror.internal/v2/images": {"capabilities": ["pull", "resolve"], "override_path": True}
    }
    assert "`mirror/containerd`" in files["README.md"].decode()


def test_without_a_mirror_there_are_no_lists():
    assert not [path for path in outputs.bundle(lock(), "flux") if path.startswith("mirror/")]


def test_two_sources_for_one_place_are_a_conflict():
    twice = locks.lock(
        locks.component("a", chart=locks.chart("x", "1.0.0", "https://one.example.com"), images=["quay.io/x/y:1"]),
        locks.component("b", chart=locks.chart("x", "1.0.0", "https://two.example.com"), images=["ghcr.io/x/y:1"]),
    )
    with pytest.raises(Conflict, match=r"chart x 1.0.0 comes from https://one.example.com and from https://two"):
        outputs.bundle(twice, "helm", mirror_charts="oci://mirror.internal")
    with pytest.raises(Conflict, match=r"mirror.internal/x/y:1 comes from ghcr.io/x/y:1 and from quay.io/x/y:1"):
        outputs.bundle(twice, "helm", mirror_images="mirror.internal")


@pytest.mark.parametrize("reference, expected", [
    ("busybox", "docker.io/library/busybox"),
    ("busybox:1.36", "docker.io/library/busybox:1.36"),
    ("bitnami/kubectl:1", "docker.io/bitnami/kubectl:1"),
    ("docker.io/busybox", "docker.io/library/busybox"),
    ("quay.io/a/b@sha256:" + "0" * 64, "quay.io/a/b@sha256:" + "0" * 64),
    ("registry:5000/a/b:1", "registry:5000/a/b:1"),
    ("localhost/a", "localhost/a"),
])  # fmt: skip
def test_full_references(reference, expected):
    assert images.full(reference) == expected


@pytest.mark.parametrize("data, expected", [
    ({"image": "quay.io/a/b:1"}, ["quay.io/a/b:1"]),
    ({"image": "quay.io/a/b"}, []),
    ({"registry": "quay.io", "repository": "a/b", "tag": "1"}, ["quay.io/a/b:1"]),
    ({"registry": "quay.io", "image": "a/b", "tag": "1"}, []),
    ({"repository": "a/b", "tag": "1"}, []),
    ({"repository": "quay.io/a/b", "tag": 1}, []),
    ({"repository": "nvcr.io/nvidia", "image": "x", "version": "2"}, ["nvcr.io/nvidia/x:2"]),
    ({"url": "https://quay.io/a/b:1"}, []),
    ([{"x": ["ghcr.io/a/b:1", 5, None]}], ["ghcr.io/a/b:1"]),
    ({"initImage": "busybox:1.36", "image": "gpu-operator", "name": "a:1"}, ["busybox:1.36"]),
])  # fmt: skip
def test_references(data, expected):
    assert list(images.references(data)) == expected
