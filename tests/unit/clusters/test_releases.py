"""Records of Helm, Argo CD and Flux, as they lie in clusters."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import gitops_apps, helm_releases
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound


class FakeCluster:
    """Objects by the path of their list, and what was asked for."""

    def __init__(self, lists: dict[str, list[dict]]):
        self.lists, self.asked = lists, []

    def list(self, path: str, **options):
        self.asked.append((path, options))
        if path not in self.lists:
            raise NotFound("not served", code="api-missing")
        yield from self.lists[path]

    def get(self, path: str, **_options) -> dict:
        self.asked.append((path, {}))
        parent, _slash, name = path.rpartition("/")
        for item in self.lists.get(parent, ()):
            if item["metadata"]["name"] == name:
                return item
        raise NotFound("it is not there", code="object-missing")


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def packed(data: object) -> str:
    return base64.b64encode(base64.b64encode(gzip.compress(json.dumps(data).encode(), mtime=0))).decode()


def stored(name: str, revision: int, status: str = "deployed", **fields) -> dict:
    """Helm's JSON of a revision, and the Secret around it."""
    data = {
        "name": name,
        "namespace": "ns",
        "version": revision,
        "info": {"status": status, "first_deployed": "2026-11-29T12:00:00Z"},
        "chart": {
            "metadata": {"name": name, "version": "v1.0.0", "apiVersion": "v2"},
            "templates": [{"name": "templates/x.yaml", "data": b64("x")}],
            "files": [
                {"name": "crds/a.yaml", "data": b64("kind: CustomResourceDefinition")},
                {"name": "crds/README.md", "data": b64("no")},
                {"name": "README.md", "data": b64("no")},
            ],
        },
        "config": {"revision": revision},
        "manifest": "---\nkind: Deployment\n",
        **fields,
    }
    labels = {"owner": "helm", "name": name, "version": str(revision), "status": status}
    return {
        "metadata": {"namespace": "ns", "name": f"sh.helm.release.v1.{name}.v{revision}", "labels": labels},
        "data": {"release": packed(data)},
    }


def test_the_newest_revision_of_each_release_is_the_only_one_fetched():
    cluster = FakeCluster(
        {"/api/v1/namespaces/ns/secrets": [stored("a", 9), stored("a", 10, "failed"), stored("a", 2), stored("b", 1)]}
    )
    found = list(helm_releases.read(cluster, ["ns"]))
    assert [(item["name"], item["revision"], item["status"], item["values"]) for item in found] == [
        ("a", 10, "failed", {"revision": 10}),
        ("b", 1, "deployed", {"revision": 1}),
    ]
    listing, *fetched = cluster.asked
    assert listing[1] == {"metadata_only": True, "labelSelector": "owner=helm"}
    assert [path.rpartition("/")[2] for path, _options in fetched] == [
        "sh.helm.release.v1.a.v10",
        "sh.helm.release.v1.b.v1",
    ]


def test_what_a_release_tells():
    cluster = FakeCluster({"/api/v1/namespaces/ns/secrets": [stored("a", 1)]})
    assert list(helm_releases.read(cluster, ["ns"])) == [
        {
            "source": "helm",
            "name": "a",
            "namespace": "ns",
            "status": "deployed",
            "revision": 1,
            "chart": "a",
            "version": "v1.0.0",
            "values": {"revision": 1},
            "manifest": "---\nkind: Deployment\n",
            "crds": ["kind: CustomResourceDefinition"],
        }
    ]


def test_releases_that_are_gone_but_kept_in_history_and_ones_without_values():
    secrets = [stored("gone", 3, "uninstalled"), stored("bare", 1, config=None, manifest="")]
    found = list(helm_releases.read(FakeCluster({"/api/v1/namespaces/ns/secrets": secrets}), ["ns"]))
    assert [(item["name"], item["values"], item["manifest"]) for item in found] == [("bare", {}, "")]


def test_without_namespaces_the_whole_cluster_is_read():
    cluster = FakeCluster({"/api/v1/secrets": [stored("a", 1)], "/api/v1/namespaces/ns/secrets": [stored("a", 1)]})
    assert [item["name"] for item in helm_releases.read(cluster)] == ["a"]


def test_a_revision_pruned_meanwhile_is_left_out():
    cluster = FakeCluster({"/api/v1/namespaces/ns/secrets": [stored("a", 1)]})

    def gone(_path: str):
        raise NotFound("gone")

    cluster.get = gone
    assert list(helm_releases.read(cluster, ["ns"])) == []


def test_a_record_that_is_not_packed_is_read_too():
    plain = base64.b64encode(base64.b64encode(b'{"name": "old"}')).decode()
    assert helm_releases.decode(plain, "x") == {"name": "old"}


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("", "damaged"),
        ("%%%", "damaged"),
        (base64.b64encode(b"not base64!").decode(), "damaged"),
        (packed({"name": "a"})[:40], "damaged"),
        (base64.b64encode(base64.b64encode(b"\x1f\x8bbroken")).decode(), "damaged"),
        (packed([1]), "holds no release"),
        (packed({"version": 1}), "holds no release"),
        (packed("x" * (65 << 20)), "unpacks to more than 64 MiB"),
    ],
)
def test_a_damaged_record_is_named(payload, text):
    with pytest.raises(InvalidDocument, match=f"release ns/a revision 1: .*{text}"):
        helm_releases.decode(payload, "release ns/a revision 1")


ARGO = "/apis/argoproj.io/v1alpha1/applications"
HEALTHY = {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}


def application(source: dict | None = None, status: dict | None = None, **spec) -> dict:
    source = {"chart": "op", "targetRevision": "v1", **(source or {})}
    destination = {"namespace": "gpu-operator"}
    return {
        "metadata": {"name": "app", "namespace": "argocd"},
        "spec": {"source": source, "destination": destination, **spec},
        "status": HEALTHY if status is None else status,
    }


def one_app(**fields) -> dict:
    return next(iter(gitops_apps.argo_applications(FakeCluster({ARGO: [application(**fields)]}))))


def test_an_argo_application():
    helm = {"releaseName": "gpu-operator", "valuesObject": {"a": 1}}
    assert one_app(source={"helm": helm}) == {
        "source": "argocd",
        "name": "gpu-operator",
        "namespace": "gpu-operator",
        "status": "deployed",
        "chart": "op",
        "version": "v1",
        "values": {"a": 1},
        "manifest": "",
        "crds": [],
    }


@pytest.mark.parametrize(
    ("helm", "values"),
    [
        ({}, {}),
        ({"values": "a: {b: 1}\n"}, {"a": {"b": 1}}),
        ({"values": "a: null\n"}, {"a": None}),
        ({"values": "a: ["}, None),
        ({"values": "- a"}, None),
        ({"valueFiles": ["$values/x.yaml"]}, None),
        ({"parameters": [{"name": "a", "value": "1"}]}, None),
    ],
)
def test_where_argo_keeps_values(helm, values):
    assert one_app(source={"helm": helm})["values"] == values


@pytest.mark.parametrize(
    ("sync", "health", "status"),
    [
        ("Synced", "Healthy", "deployed"),
        ("OutOfSync", "Healthy", "out-of-sync"),
        ("OutOfSync", "Degraded", "failed"),
        ("Synced", "Progressing", "pending"),
        ("Unknown", "Healthy", "unknown"),
        (None, None, "unknown"),
    ],
)
def test_what_argo_says(sync, health, status):
    assert one_app(status={"sync": {"status": sync}, "health": {"status": health}})["status"] == status


def test_the_chart_of_several_sources_and_an_application_from_git():
    sources = [{"ref": "values", "repoURL": "git"}, {"chart": "op", "targetRevision": "2"}]
    assert (one_app(sources=sources)["chart"], one_app(sources=sources)["version"]) == ("op", "2")
    assert one_app(source={"chart": None, "path": "charts/x", "targetRevision": "main"})["chart"] == ""


FLUX = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"


def helm_release(ready: str | None = "True", **spec) -> dict:
    chart = {"spec": {"chart": "op", "version": "v1"}}
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": {"name": "op", "namespace": "flux-system", "generation": 2},
        "spec": {"chart": chart, "values": {"a": 1}, **spec},
        "status": {"conditions": conditions, "observedGeneration": 2},
    }


def flux(*items: dict, namespaces=()) -> list[dict]:
    return list(gitops_apps.flux_releases(FakeCluster({FLUX: list(items)}), namespaces))


def test_a_flux_helm_release():
    found = flux(helm_release(targetNamespace="gpu-operator", releaseName="gpu-operator"))[0]
    assert found == {
        "source": "flux",
        "name": "gpu-operator",
        "namespace": "gpu-operator",
        "status": "deployed",
        "chart": "op",
        "version": "v1",
        "values": {"a": 1},
        "manifest": "",
        "crds": [],
    }
    assert flux(helm_release(targetNamespace="x"))[0]["name"] == "x-op"  # Flux's own default
    assert flux(helm_release())[0]["namespace"] == "flux-system"
    assert flux(helm_release(valuesFrom=[{"kind": "ConfigMap", "name": "v"}]))[0]["values"] is None


@pytest.mark.parametrize(
    ("ready", "spec", "status"),
    [
        ("True", {}, "deployed"),
        ("False", {}, "failed"),
        ("Unknown", {}, "pending"),
        (None, {}, "unknown"),
        ("True", {"suspend": True}, "suspended"),
    ],
)
def test_what_flux_says(ready, spec, status):
    assert flux(helm_release(ready, **spec))[0]["status"] == status


def test_a_flux_release_that_has_not_seen_its_newest_change_is_pending():
    item = helm_release()
    item["metadata"]["generation"] = 3
    assert flux(item)[0]["status"] == "pending"


def test_namespaces_narrow_gitops_too_and_an_absent_api_is_nothing():
    assert flux(helm_release(targetNamespace="x"), namespaces=["y"]) == []
    assert list(gitops_apps.flux_releases(FakeCluster({}), [])) == []
    assert list(gitops_apps.argo_applications(FakeCluster({}), [])) == []
    older = FakeCluster({"/apis/helm.toolkit.fluxcd.io/v2beta2/helmreleases": [helm_release()]})
    assert len(list(gitops_apps.flux_releases(older))) == 1
