"""What each deployer gets, read by the parsers of its formats."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.render import render
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.bundles import locks, outputs

SAMPLE = locks.sample()
UNITS = [
    "cert-manager",
    "quotas",
    "gpu-operator-pre",
    "gpu-operator",
    "gpu-operator-manifests",
    "kai-scheduler",
    "widgets-pre",
    "widgets",
    "tail",
]
VALUES = {one["name"]: one["values"] for one in SAMPLE["spec"]["components"]}


@pytest.fixture(params=outputs.DEPLOYERS)
def deployer(request):
    return request.param


def test_the_lock_travels_whole_and_loads(deployer, tmp_path):
    files = outputs.bundle(SAMPLE, deployer)
    assert files["recipe.lock.yaml"].decode() == yamltree.dump(SAMPLE)
    path = tmp_path / "recipe.lock.yaml"
    path.write_bytes(files["recipe.lock.yaml"])
    assert lockfile.load_lock(str(path)) == SAMPLE


def test_nothing_is_left_to_fill_in(deployer):
    plain = locks.lock(
        locks.component("a", values={"x": 1}), locks.component("b", manifests=[locks.manifest("q", locks.QUOTA)])
    )
    for path, text in outputs.deployable(outputs.bundle(plain, deployer)).items():
        if path != "templates/applications.yaml":
            assert not re.search(r"\{\{|TODO|REPLACE|CHANGEME|placeholder|<[A-Za-z_ -]+>|example\.com/your", text), path


def test_no_script_and_no_executable(deployer):
    files = outputs.bundle(SAMPLE, deployer)
    assert not [path for path in files if path.endswith((".sh", ".bash")) or files[path].startswith(b"#!")]


def test_versions_stay_as_they_are(deployer):
    """`v` prefixes, and versions that YAML would read as a number, reach the deployer unchanged."""
    lock = locks.lock(
        locks.component("a", chart=locks.chart("a", "v1.20.2")),
        locks.component("b", chart=locks.chart("b", "25.1.0-rc.1+build5")),
        locks.component("c", chart=locks.chart("c", "1.0.0", "oci://registry.example.com/c")),
    )
    files = outputs.bundle(lock, deployer)
    found = {
        "argocd": lambda: [app["spec"]["source"]["targetRevision"] for app in outputs.folder(files, "apps").values()],
        "argocd-helm": lambda: [
            one["application"]["spec"]["source"]["targetRevision"] for one in outputs.read(files, "applications.yaml")
        ],
        "flux": lambda: [
            one["spec"]["chart"]["spec"]["version"] if "chart" in one["spec"] else "1.0.0"
            for one in outputs.folder(files, "releases").values()
        ],
        "helm": lambda: [step["version"] for step in outputs.steps(files)],
        "helmfile": lambda: [one["version"] for one in outputs.read(files, "helmfile.yaml")["releases"]],
    }[deployer]()
    assert found == ["v1.20.2", "25.1.0-rc.1+build5", "1.0.0"]


def test_every_value_arrives(deployer):
    files = outputs.bundle(SAMPLE, deployer)
    for name, values in VALUES.items():
        if not values:
            continue
        if deployer == "argocd":
            helm = outputs.folder(files, "apps")[name]["spec"]["source"]["helm"]
            found = helm["valuesObject"] if "valuesObject" in helm else yaml.safe_load(helm["values"])
        elif deployer == "argocd-helm":
            one = next(one for one in outputs.read(files, "applications.yaml") if one["unit"] == name)
            own = outputs.read(files, "values.yaml")["components"][name]["values"]
            found = own or yaml.safe_load(one["application"]["spec"]["source"]["helm"]["values"])
        elif deployer == "flux":
            found = outputs.folder(files, "releases")[name]["spec"]["values"]
        elif deployer == "helm":
            found = outputs.read(
                files, next(one["values"] for one in outputs.steps(files) if one["component"] == name and one["values"])
            )
        else:
            found = outputs.read(files, f"values/{name}.yaml")
        assert found == values, name


def test_nulls_reach_argo_cd_as_text():
    """Helm needs them to drop a chart's default, and a client-side apply prunes them from an object."""
    helm = outputs.folder(outputs.bundle(SAMPLE, "argocd"), "apps")["kai-scheduler"]["spec"]["source"]["helm"]
    assert "valuesObject" not in helm
    assert yaml.safe_load(helm["values"])["gone"] is None


# ---- helm


def test_helm_plan():
    files = outputs.bundle(SAMPLE, "helm", timeouts={"gpu-operator": 1800})
    steps = outputs.steps(files)
    assert [f"{step['release']}" for step in steps] == [name if name != "kai-scheduler" else "kai" for name in UNITS]
    operator = steps[3]
    assert operator == {
        "component": "gpu-operator",
        "release": "gpu-operator",
        "namespace": "gpu-operator",
        "chart": "gpu-operator",
        "repository": "https://helm.ngc.nvidia.com/nvidia",
        "oci": False,
        "version": "v26.7.0",
        "digest": None,
        "values": "004-gpu-operator/values.yaml",
        "path": None,
        "timeout": "1800s",
        "tier": 1,
        "crdsFirst": True,
        "gate": None,
    }
    assert steps[4]["gate"] == {"component": "gpu-operator", "seconds": 1800}
    assert steps[4]["path"] == "005-gpu-operator-manifests"
    assert {"005-gpu-operator-manifests/Chart.yaml", "005-gpu-operator-manifests/templates/tuning.yaml"} <= files.keys()
    assert steps[5]["oci"] and steps[5]["repository"] == "oci://ghcr.io/kai-scheduler/kai-scheduler"
    assert steps[1] | {"gate": 0} == {
        "component": "quotas", "release": "quotas", "namespace": "gpu-operator", "chart": None, "repository": None,
        "oci": False, "version": None, "digest": None, "values": None, "path": "002-quotas-manifests",
        "timeout": "600s", "tier": 0, "crdsFirst": False, "gate": 0,
    }  # fmt: skip
    assert all(step["values"] is None or step["values"] in files for step in steps)


# ---- argocd


def test_argocd_applications():
    files = outputs.bundle(
        SAMPLE, "argocd", project="gpu", name_prefix="prod-1-", destination_server="https://10.0.0.1:6443"
    )
    apps = outputs.folder(files, "apps")
    assert set(apps) == set(UNITS)
    for name, app in apps.items():
        assert (app["apiVersion"], app["kind"]) == ("argoproj.io/v1alpha1", "Application")
        assert app["metadata"]["name"] == f"prod-1-{name}"
        assert app["spec"]["project"] == "gpu"
        assert app["spec"]["destination"]["server"] == "https://10.0.0.1:6443"
        assert app["spec"]["destination"]["namespace"]
        assert app["spec"]["source"]["repoURL"] and app["spec"]["source"]["targetRevision"]
        assert ("chart" in app["spec"]["source"]) != ("path" in app["spec"]["source"])
        assert {"CreateNamespace=true", "SkipDryRunOnMissingResource=true"} <= set(
            app["spec"]["syncPolicy"]["syncOptions"]
        )
        assert app["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}
    kai = apps["kai-scheduler"]["spec"]["source"]
    assert kai["repoURL"] == "ghcr.io/kai-scheduler/kai-scheduler", "Argo CD refuses oci:// with a chart"
    assert (kai["chart"], kai["targetRevision"], kai["helm"]["releaseName"]) == ("kai-scheduler", "v0.16.9", "kai")
    local = apps["quotas"]["spec"]["source"]
    assert (local["repoURL"], local["targetRevision"]) == ("https://git.example.com/fleet.git", "release-7")
    assert local["path"] == "clusters/prod-1/charts/quotas"
    assert "charts/quotas/Chart.yaml" in files
    assert "ServerSideApply=true" in apps["gpu-operator"]["spec"]["syncPolicy"]["syncOptions"]
    assert "ServerSideApply=true" in apps["widgets-pre"]["spec"]["syncPolicy"]["syncOptions"]
    assert "ServerSideApply=true" not in apps["tail"]["spec"]["syncPolicy"]["syncOptions"]


def test_argocd_app_of_apps_syncs_the_folder_of_applications():
    root = outputs.read(outputs.bundle(SAMPLE, "argocd"), "app-of-apps.yaml")["spec"]["source"]
    assert root == {
        "repoURL": "https://git.example.com/fleet.git",
        "targetRevision": "release-7",
        "path": "clusters/prod-1/apps",
    }
    assert (
        outputs.read(outputs.bundle(SAMPLE, "argocd", path="."), "app-of-apps.yaml")["spec"]["source"]["path"] == "apps"
    )


def test_argocd_says_how_waves_come_to_wait():
    files = outputs.bundle(SAMPLE, "argocd", argocd_namespace="gitops")
    patch = outputs.read(files, "argocd-cm.yaml")
    assert patch["metadata"] == {"name": "argocd-cm", "namespace": "gitops"}
    assert "obj.status.health.status" in patch["data"]["resource.customizations.health.argoproj.io_Application"]
    assert "--namespace gitops --patch-file argocd-cm.yaml" in files["README.md"].decode()


def test_argocd_options():
    app = outputs.folder(outputs.bundle(SAMPLE, "argocd", prune=False, self_heal=False, cascade=True), "apps")["tail"]
    assert app["spec"]["syncPolicy"]["automated"] == {"prune": False, "selfHeal": False}
    assert app["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]


@pytest.mark.parametrize("deployer, missing, words", [
    ("argocd", "repo_url", "repo_url is needed: the deployer reads apps, charts/quotas, charts/gpu-operator-pre"),
    ("argocd", "path", "path is needed: the deployer reads apps"),
    ("argocd-helm", "path", "path is needed: the deployer reads the chart, manifests/quotas"),
    ("flux", "path", "path is needed: the deployer reads charts/quotas"),
])  # fmt: skip
def test_what_needs_the_repository_is_named(deployer, missing, words):
    with pytest.raises(InvalidDocument) as caught:
        outputs.bundle(SAMPLE, deployer, **{missing: None})
    assert words in str(caught.value)
    assert [problem.path for problem in caught.value.problems] == [missing]


@pytest.mark.parametrize("deployer", ["helm", "helmfile"])
def test_others_need_no_repository(deployer):
    assert "README.md" in render(SAMPLE, deployer)


def test_flux_without_manifests_needs_no_repository():
    assert "kustomization.yaml" in render(locks.lock(locks.component("a")), "flux")


# ---- argocd-helm


def test_argocd_helm_keeps_braces_out_of_templates():
    files = outputs.bundle(SAMPLE, "argocd-helm")
    templates = [path for path in files if path.startswith("templates/")]
    assert templates == ["templates/applications.yaml"]
    other = outputs.bundle(locks.lock(locks.component("a")), "argocd-helm")
    assert files["templates/applications.yaml"] == other["templates/applications.yaml"], "no data in it"
    assert not [path for path in files if path.startswith("charts/")], "those would be parts of the chart"


def test_argocd_helm_needs_no_repository_before_it_is_installed():
    files = render(SAMPLE, "argocd-helm")
    values = outputs.read(files, "values.yaml")
    assert (values["repoURL"], values["path"], values["targetRevision"]) == ("", "", "main")
    assert "application.yaml" not in files


def test_argocd_helm_schema_knows_every_value():
    files = outputs.bundle(SAMPLE, "argocd-helm")
    import jsonschema

    schema = json.loads(files["values.schema.json"])
    values = outputs.read(files, "values.yaml")
    jsonschema.validate(values, schema)
    assert set(values) | {"global"} == set(schema["properties"])
    with pytest.raises(jsonschema.ValidationError, match="gpu-operatr"):
        jsonschema.validate({"components": {"gpu-operatr": {}}}, schema)


# ---- flux


def test_flux_kustomization_lists_every_object_once():
    files = outputs.bundle(SAMPLE, "flux")
    listed = outputs.read(files, "kustomization.yaml")
    there = [path for path in files if path.startswith(("sources/", "releases/"))]
    assert sorted(listed["resources"]) == sorted(there)
    assert set(listed) == {"apiVersion", "kind", "resources"}, "a namespace here would move every object"


def test_flux_objects_live_in_one_namespace():
    files = outputs.bundle(SAMPLE, "flux", flux_namespace="gitops")
    for folder in ("sources", "releases"):
        for one in outputs.folder(files, folder).values():
            assert one["metadata"]["namespace"] == "gitops"
            assert one["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"] == "disabled"
    chart = outputs.folder(files, "releases")["quotas"]["spec"]["chart"]["spec"]
    assert chart["sourceRef"] == {"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}


def test_flux_sources():
    files = outputs.bundle(SAMPLE, "flux", source_name="fleet", source_namespace="flux-system")
    sources = outputs.folder(files, "sources")
    releases = outputs.folder(files, "releases")
    oci = sources["ocirepository-kai-scheduler"]["spec"]
    assert oci["url"] == "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"
    assert oci["ref"] == {"tag": "v0.16.9"}
    assert oci["layerSelector"] == {
        "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        "operation": "copy",
    }
    assert releases["kai-scheduler"]["spec"]["chartRef"] == {"kind": "OCIRepository", "name": "kai-scheduler"}
    assert "chart" not in releases["kai-scheduler"]["spec"]
    chart = releases["gpu-operator"]["spec"]["chart"]["spec"]
    assert (chart["chart"], chart["version"]) == ("gpu-operator", "v26.7.0")
    source = sources[f"helmrepository-{chart['sourceRef']['name']}"]
    assert source["spec"]["url"] == "https://helm.ngc.nvidia.com/nvidia"
    assert source["metadata"]["name"] == chart["sourceRef"]["name"]
    local = releases["widgets"]["spec"]["chart"]["spec"]
    assert local == {
        "chart": "./clusters/prod-1/charts/widgets",
        "sourceRef": {"kind": "GitRepository", "name": "fleet"},
    }


def test_flux_releases():
    files = outputs.bundle(SAMPLE, "flux", interval="1h", retries=-1, drift_detection="enabled", timeout=60)
    for name, one in outputs.folder(files, "releases").items():
        spec = one["spec"]
        assert one["apiVersion"] == "helm.toolkit.fluxcd.io/v2"
        assert spec["releaseName"] == ("kai" if name == "kai-scheduler" else name)
        assert spec["targetNamespace"] == spec["storageNamespace"]
        assert spec["install"] == {"createNamespace": True, "crds": "CreateReplace", "remediation": {"retries": -1}}
        assert spec["upgrade"] == {"crds": "CreateReplace", "remediation": {"retries": -1}}
        assert (spec["interval"], spec["timeout"], spec["driftDetection"]) == ("1h", "60s", {"mode": "enabled"})


def test_flux_takes_an_oci_tag_without_a_plus():
    lock = locks.lock(locks.component("a", chart=locks.chart("a", "1.0.0+up1", "oci://registry.example.com")))
    source = outputs.folder(outputs.bundle(lock, "flux"), "sources")["ocirepository-a"]["spec"]
    assert source["ref"]["tag"] == "1.0.0_up1"
    assert source["url"] == "oci://registry.example.com/a"


def test_two_repositories_never_share_a_name():
    urls = ["https://a.example.com/x", "https://a.example.com/X", "https://a-example.com/x", "http://a.example.com/x"]
    long = [f"https://{'a' * 60}.example.com/{end}" for end in "xy"]
    lock = locks.lock(
        *[locks.component(f"c{n}", chart=locks.chart("c", repository=url)) for n, url in enumerate(urls + long)]
    )
    names = [one["metadata"]["name"] for one in outputs.folder(outputs.bundle(lock, "flux"), "sources").values()]
    assert len(set(names)) == len(urls + long)
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names)


# ---- helmfile


def test_helmfile():
    files = outputs.bundle(SAMPLE, "helmfile", timeouts={"gpu-operator": 1800})
    state = outputs.read(files, "helmfile.yaml")
    repositories = {one["name"]: one for one in state["repositories"]}
    releases = {f"{one['namespace']}/{one['name']}": one for one in state["releases"]}
    kai = releases["kai-scheduler/kai"]
    alias, chart = kai["chart"].split("/")
    assert repositories[alias] == {"name": alias, "url": "ghcr.io/kai-scheduler/kai-scheduler", "oci": True}
    assert (chart, kai["version"]) == ("kai-scheduler", "v0.16.9")
    assert kai["needs"] == ["gpu-operator/gpu-operator-manifests"]
    operator = releases["gpu-operator/gpu-operator"]
    assert operator["timeout"] == 1800
    assert repositories[operator["chart"].partition("/")[0]]["url"] == "https://helm.ngc.nvidia.com/nvidia"
    assert releases["gpu-operator/quotas"]["chart"] == "./charts/quotas"
    assert state["helmDefaults"] == {"createNamespace": True, "wait": True, "timeout": 600}
    for one in releases.values():
        assert one["disableValidationOnInstall"] is True
        assert all(path in files for path in one.get("values", []))
        assert one["chart"].startswith("./charts/") or one["chart"].partition("/")[0] in repositories
        assert all(key in releases for key in one.get("needs", []))


def test_the_readme_is_for_people(deployer):
    text = outputs.bundle(SAMPLE, deployer)["README.md"].decode()
    assert "| gpu-operator | gpu-operator | gpu-operator | gpu-operator v26.7.0 | gpu-operator-pre |" in text
    assert "| K8s.server.version | >= 1.34 | error |" in text
    assert "Copy these there first" not in text
    assert not re.search(r"--version\s+-|--repo\s+-", text)
