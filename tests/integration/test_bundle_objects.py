"""What bundles hold, judged by those who read it: the API server with the deployers' CRDs, helm and kustomize."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import options, tree
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.render import render
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve

from tests.simfleet.api import ApiError
from tests.unit.bundles import locks, outputs

ROOT = Path(__file__).parents[2]
PLURALS = {
    "Application": "applications",
    "HelmRelease": "helmreleases",
    "HelmRepository": "helmrepositories",
    "OCIRepository": "ocirepositories",
}


def recipes() -> Iterator[tuple[str, dict]]:
    """The sample, and every shipped recipe."""
    yield "sample", locks.sample()
    catalog = load_catalog([str(ROOT / "gitops/catalog")])
    for recipe in catalog.recipes:
        yield recipe.name, json.loads(json.dumps(resolve(catalog, recipe.criteria)))


LOCKS = dict(recipes())


def files_of(lock: dict, deployer: str, namespace: str, **given) -> dict[str, bytes]:
    where = {"argocd_namespace": namespace, "flux_namespace": namespace}
    return render(lock, deployer, options.read({**outputs.GIT, **where, **given}))


def objects(files: dict[str, bytes]) -> list[dict]:
    """The objects that are applied to the deployer's cluster."""
    paths = [
        path for path in files if path.startswith(("apps/", "sources/", "releases/")) or path.startswith("app-of-")
    ]
    return [yaml.safe_load(files[path]) for path in paths]


def dry_run(cluster, body: dict) -> dict:
    """The object as the API server would store it. Unknown and duplicate fields are errors, as they must be."""
    group = f"/apis/{body['apiVersion']}/namespaces/{body['metadata']['namespace']}/{PLURALS[body['kind']]}"
    return cluster.api.create(f"{group}?dryRun=All&fieldValidation=Strict", body)


def holds(stored, sent) -> bool:
    """Whether all that was sent is in what is stored; defaults may come on top."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and holds(stored[key], sent[key]) for key in sent)
    if isinstance(sent, list):
        return isinstance(stored, list) and len(stored) == len(sent) and all(map(holds, stored, sent))
    return stored == sent


@pytest.mark.cluster
@pytest.mark.parametrize("deployer", ["argocd", "flux"])
def test_the_api_server_accepts_every_object_and_keeps_all_of_it(cluster, deployer_crds, namespace, deployer):
    for name, lock in LOCKS.items():
        for body in objects(files_of(lock, deployer, namespace)):
            stored = dry_run(cluster, body)
            assert holds(stored["spec"], body["spec"]), (name, body["metadata"]["name"])


@pytest.mark.cluster
@pytest.mark.parametrize("deployer, given", [
    ("argocd", {"cascade": True, "prune": False, "name_prefix": "prod-1-"}),
    ("argocd", {"mirror_charts": "oci://10.0.0.1:5000/charts", "mirror_images": "10.0.0.1:5000/images"}),
    ("flux", {"retries": -1, "interval": "1h30m", "drift_detection": "disabled", "source_namespace": "elsewhere"}),
    ("flux", {"mirror_charts": "https://charts.internal:8443/all"}),
    ("flux", {"mirror_charts": "oci://10.0.0.1:5000/charts"}),
])  # fmt: skip
def test_so_it_does_with_any_option(cluster, deployer_crds, namespace, deployer, given):
    for body in objects(files_of(LOCKS["sample"], deployer, namespace, **given)):
        assert holds(dry_run(cluster, body)["spec"], body["spec"]), body["metadata"]["name"]


@pytest.mark.cluster
@pytest.mark.parametrize("deployer, harm", [
    ("argocd", lambda spec: spec["source"].update(targetRevison="x")),
    ("argocd", lambda spec: spec.update(project=7)),
    ("flux", lambda spec: spec.update(dependsOn=["a"])),
    ("flux", lambda spec: spec["install"].update(crds="Replace")),
    ("flux", lambda spec: spec.update(storageNamespce="x")),
])  # fmt: skip
def test_the_judge_is_strict(cluster, deployer_crds, namespace, deployer, harm):
    body = next(one for one in objects(files_of(LOCKS["sample"], deployer, namespace))
                if one["metadata"]["name"] == "gpu-operator")  # fmt: skip
    harm(body["spec"])
    with pytest.raises(ApiError):
        dry_run(cluster, body)


# ---- helm


def run(*command, **given) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(text: str) -> dict[tuple[str, str], dict]:
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


@pytest.mark.helm
@pytest.mark.parametrize("name", LOCKS)
def test_argocd_helm_renders_what_argocd_is(helm_binary, tmp_path, name):
    tree.sync(str(tmp_path / "chart"), files_of(LOCKS[name], "argocd-helm", "argocd", name_prefix="p-"))
    rendered = documents(run(helm_binary, "template", "x", tmp_path / "chart", "--namespace", "argocd"))
    plain = objects(files_of(LOCKS[name], "argocd", "argocd", name_prefix="p-"))
    expected = {
        (one["kind"], one["metadata"]["name"]): one for one in plain if one["metadata"]["name"] != "p-goodput-fleet"
    }
    for one in expected.values():
        source = one["spec"]["source"]
        if "path" in source:
            source["path"] = source["path"].replace("/charts/", "/manifests/")
    assert rendered == expected


@pytest.mark.helm
def test_argocd_helm_is_set_at_install_time(helm_binary, tmp_path):
    chart = tmp_path / "chart"
    tree.sync(str(chart), render(LOCKS["sample"], "argocd-helm"))
    (tmp_path / "site.yaml").write_text(yaml.safe_dump({
        "repoURL": "https://git.other.example/x.git", "targetRevision": "v7", "path": "a/b/", "project": "gpu",
        "namePrefix": "site-", "destination": {"server": "https://10.0.0.9:6443"}, "automated": {"prune": False},
        "components": {
            "gpu-operator": {"values": {"driver": {"version": "590.1"}, "alert": "{{ $site }}", "tolerations": []}},
            "kai-scheduler": {"values": {"global": {"registry": "registry.other.example"}, "more": True}},
        },
    }))  # fmt: skip
    command = [helm_binary, "template", "x", chart, "--namespace", "gitops", "--values", tmp_path / "site.yaml"]
    found = documents(run(*command))
    operator = found["Application", "site-gpu-operator"]
    assert operator["metadata"]["namespace"] == "gitops"
    assert (operator["spec"]["project"], operator["spec"]["destination"]["server"]) == ("gpu", "https://10.0.0.9:6443")
    assert operator["spec"]["syncPolicy"]["automated"] == {"prune": False, "selfHeal": True}
    values = operator["spec"]["source"]["helm"]["valuesObject"]
    assert values["driver"] == {"version": "590.1", "repository": "nvcr.io/nvidia", "image": "driver"}
    assert (values["alert"], values["tolerations"]) == ("{{ $site }}", [])
    kai = yaml.safe_load(found["Application", "site-kai-scheduler"]["spec"]["source"]["helm"]["values"])
    assert kai == {
        "global": {"registry": "registry.other.example"}, "more": True, "gone": None, "deep": [{"also": None, "n": 1}],
    }  # fmt: skip
    assert found["Application", "site-quotas"]["spec"]["source"] == {
        "repoURL": "https://git.other.example/x.git", "path": "a/b/manifests/quotas", "targetRevision": "v7",
        "helm": {"releaseName": "quotas"},
    }  # fmt: skip


@pytest.mark.helm
@pytest.mark.parametrize("setting, words", [
    ("path=x", "set repoURL: the manifests of this recipe are read from the Git repository"),
    ("repoURL=https://git.example.com/x.git", "set path: the folder of this bundle in the Git repository"),
    ("components.gpu-operatr.values.a=1", "gpu-operatr"),
    ("repoUrl=x", "repoUrl"),
])  # fmt: skip
def test_argocd_helm_says_what_is_missing_or_misspelt(helm_binary, tmp_path, setting, words):
    tree.sync(str(tmp_path / "chart"), render(LOCKS["sample"], "argocd-helm"))
    command = [str(helm_binary), "template", "x", str(tmp_path / "chart"), "--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and words in done.stderr


@pytest.mark.helm
@pytest.mark.parametrize("name", LOCKS)
def test_charts_of_manifests_render_as_they_were_written(helm_binary, tmp_path, name):
    tree.sync(str(tmp_path / "bundle"), files_of(LOCKS[name], "helm", "x"))
    rendered: list[dict] = []
    for chart in sorted((tmp_path / "bundle").glob("*/Chart.yaml")):
        run(helm_binary, "lint", chart.parent)
        rendered += yaml.safe_load_all(run(helm_binary, "template", "x", chart.parent, "--include-crds"))
    texts = [one["content"] for part in LOCKS[name]["spec"]["components"] for one in part.get("manifests") or ()]
    written = [one for text in texts for one in yaml.safe_load_all(text)]

    def key(one: dict) -> str:
        return json.dumps(one, sort_keys=True)

    assert sorted(map(key, filter(None, rendered))) == sorted(map(key, filter(None, written)))


@pytest.mark.helm
@pytest.mark.cluster
def test_helm_installs_crds_before_what_needs_them(helm_binary, cluster, kubeconfig, namespace, tmp_path):
    """On a cluster that has never seen the kind, in the order of the plan, and a second time."""
    lock = locks.lock(
        locks.component(
            "all-in-one", namespace=namespace, manifests=[locks.manifest("x", locks.CRD + "---\n" + locks.WIDGET)]
        ),
        locks.component(
            "text", "all-in-one", namespace=namespace, manifests=[locks.manifest("alert", locks.ALERT, "pre")]
        ),
    )
    bundle = tmp_path / "bundle"
    tree.sync(str(bundle), files_of(lock, "helm", "x"))
    for _time in range(2):
        for step in outputs.steps(files_of(lock, "helm", "x")):
            where = ["--kubeconfig", kubeconfig, "--namespace", step["namespace"], "--create-namespace"]
            how = ["--install", "--wait", "--timeout", step["timeout"]]
            run(helm_binary, "upgrade", step["release"], bundle / step["path"], *how, *where)
    try:
        assert cluster.api.find(f"/apis/example.com/v1/namespaces/{namespace}/widgets/one")
        found = cluster.api.get(f"/api/v1/namespaces/{namespace}/configmaps/alerts")
        assert found["data"] == yaml.safe_load(locks.ALERT)["data"]
    finally:
        cluster.api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")


# ---- kustomize


@pytest.mark.helm
@pytest.mark.parametrize("name", LOCKS)
def test_kustomize_builds_the_bundle_for_flux(kubectl_binary, tmp_path, name):
    files = files_of(LOCKS[name], "flux", "flux-system")
    tree.sync(str(tmp_path / "bundle"), files)
    built = documents(run(kubectl_binary, "kustomize", tmp_path / "bundle"))
    assert built == {(one["kind"], one["metadata"]["name"]): one for one in objects(files)}
