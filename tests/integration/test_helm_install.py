# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From criteria to a cluster without the internet: the role install, a real helm, a chart repository over http.

The charts are stand-ins that show what reached them; everything else is what a site runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve

from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH
from tests.standin import charts, operators, repository

pytestmark = [pytest.mark.cluster, pytest.mark.helm, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
CRITERIA = {"service": "kind", "accelerator": "h100", "intent": "training", "platform": "kueue", "cluster": "lab"}
REGISTRY = """\
apiVersion: goodput.fleet/v1alpha1
kind: Registry
metadata: {name: site}
spec: {criteria: {cluster: {values: [lab]}}}
"""
OVERLAY = {
    "apiVersion": "goodput.fleet/v1alpha1",
    "kind": "Overlay",
    "metadata": {"name": "lab"},
    "spec": {"recipe": True, "criteria": CRITERIA},
}


class Site:
    """A cluster, the site's own catalogue layer, the mirror of its charts, and what its people run."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path, play: Callable[..., dict], programs: dict[str, str]):
        self.cluster, self.folder, self.play, self.programs = cluster, folder, play, programs
        self.api = cluster.api
        (folder / "catalog" / "registry").mkdir(parents=True)
        (folder / "catalog" / "overlays").mkdir()
        (folder / "catalog" / "registry" / "site.yaml").write_text(REGISTRY)
        self.set({"kueue": {"replicas": 2}})
        self.lock = self.resolve()
        repository.store(folder / "charts", charts.archives(self.lock))

    def set(self, values: dict[str, dict]) -> None:
        """The site's own values, by component."""
        components = [{"name": name, "values": content} for name, content in values.items()]
        overlay = {**OVERLAY, "spec": {**OVERLAY["spec"], "components": components}}
        (self.folder / "catalog" / "overlays" / "lab.yaml").write_text(yaml.safe_dump(overlay))

    def resolve(self) -> dict:
        return resolve(load_catalog([str(ROOT / "gitops" / "catalog"), str(self.folder / "catalog")]), CRITERIA)

    def install(self, mirror: str) -> dict:
        """Run the role; its summary, with the seconds it took."""
        variables = {
            "goodput_mode": "enforce",
            "install_cluster": "lab",
            "install_criteria": CRITERIA,
            "install_catalog": ["shipped", str(self.folder / "catalog")],
            "install_deployer": "helm",
            "install_dest": str(self.folder / "out"),
            "install_mirror_charts": mirror,
            "install_apply": True,
            "install_kubeconfig": str(self.cluster.kubeconfig),
            "install_health_interval": 0.5,
            **self.programs,
        }
        role = {"ansible.builtin.include_role": {"name": "goodput.fleet.install"}}
        summary = {"ansible.builtin.set_fact": {"summary": "{{ install_summary }}"}, "register": "told"}
        began = time.monotonic()
        told = self.play(self.folder / "install", [role, summary], **variables)["told"]["ansible_facts"]["summary"]
        return {**told, "seconds": time.monotonic() - began}

    def ask(self, module: str, **options) -> dict:
        """Run an info module against the cluster with the lock that was deployed."""
        lock = str(self.folder / "out" / "bundle" / "recipe.lock.yaml")
        options = {"lock": lock, "kubeconfig": str(self.cluster.kubeconfig), **options}
        return self.play(self.folder / "ask", [{f"goodput.fleet.{module}": options, "register": "answer"}])["answer"]

    def revisions(self) -> dict[str, int]:
        """Newest Helm revision of each release."""
        found: dict[str, int] = {}
        for secret in self.api.list("/api/v1/secrets", labelSelector="owner=helm"):
            labels = secret["metadata"]["labels"]
            found[labels["name"]] = max(found.get(labels["name"], 0), int(labels["version"]))
        return found

    def values(self, component: dict) -> dict:
        """What reached the component's chart."""
        path = f"/api/v1/namespaces/{component['namespace']}/configmaps/{component['release']}-values"
        return yaml.safe_load(self.api.get(path)["data"]["values.yaml"]) or {}

    def workload(self, kind: str, namespace: str, name: str) -> dict | None:
        return self.api.find(f"/apis/apps/v1/namespaces/{namespace}/{kind}/{name}")


@pytest.fixture(scope="module")
def site(tmp_path_factory, show, run_play, helm_binary, kubectl_binary) -> Iterator[Site]:
    """Installed once; `site.first` is the role's summary of that, `site.mirror` the chart repository."""
    programs = {"install_helm": str(helm_binary), "install_kubectl": str(kubectl_binary)}
    with EmbeddedCluster(nodes=3, say=show) as cluster:
        made = Site(cluster, tmp_path_factory.mktemp("site"), run_play, programs)
        with (
            repository.ChartRepository(made.folder / "charts") as made.mirror,
            operators.Operators(made.lock, cluster.api).at_work() as made.operators,
        ):
            made.first = made.install(made.mirror.url)
            show(f"install: {len(made.first['releases']['changed'])} releases in {made.first['seconds']:.0f} s")
            yield made


def components(lock: dict) -> Iterator[dict]:
    return (item for item in lock["spec"]["components"] if "chart" in item)


def without_nulls(values: object) -> object:
    """null takes a key away, in Helm as in a recipe."""
    if isinstance(values, dict):
        return {key: without_nulls(value) for key, value in values.items() if value is not None}
    return values


def test_every_release_is_there_once_and_every_chart_came_from_the_mirror(site):
    assert site.first["status"] == "ok"
    wanted = {item["release"] for item in components(site.lock)}
    assert wanted <= set(site.first["releases"]["changed"])
    assert set(site.revisions().values()) == {1} and wanted <= set(site.revisions())
    for item in components(site.lock):
        assert f"/{item['chart']['name']}-{item['chart']['version']}.tgz" in site.mirror.requests


def test_values_of_the_recipe_stand_on_the_objects(site):
    for item in components(site.lock):
        assert site.values(item) == without_nulls(item["values"]), item["name"]
    policy = site.api.get("/apis/nvidia.com/v1/clusterpolicies/cluster-policy")
    assert policy["spec"]["driver"]["enabled"] is False
    # the host brings the driver: its DaemonSet is not there, the others are
    assert site.workload("daemonsets", "gpu-operator", "nvidia-driver-daemonset") is None
    assert site.workload("daemonsets", "gpu-operator", "nvidia-dcgm")["status"]["numberReady"] == 3
    # what the site's overlay sets
    kueue = site.workload("deployments", "kueue-system", "kueue-controller-manager")
    assert kueue["spec"]["replicas"] == kueue["status"]["readyReplicas"] == 2


def test_manifests_of_the_recipe_are_installed_after_the_chart_that_knows_their_kind(site):
    queue = site.api.get("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/fleet")
    assert queue["spec"]["resourceGroups"][0]["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu"]
    assert queue["metadata"]["annotations"]["meta.helm.sh/release-name"] == "kueue-manifests"


def test_everything_is_healthy_and_in_sync(site):
    health = site.ask("component_health_info")
    assert {item["name"]: item["status"] for item in health["components"]} == {
        item["name"]: "healthy" for item in site.lock["spec"]["components"]
    }
    drift = site.ask("drift_info", fail_on=[])
    assert (drift["status"], [item["message"] for item in drift["findings"] if item["severity"] == "error"]) == (
        "in_sync",
        [],
    )


def test_a_status_that_no_operator_writes_is_not_healthy(site):
    site.operators.held.add("ClusterPolicy")
    path = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy/status"
    site.api.patch(path, {"status": {"state": "notReady"}}, MERGE_PATCH)
    try:
        health = site.ask("component_health_info", fail_on_unhealthy=False)
        sick = {item["name"]: item["reasons"] for item in health["components"] if item["status"] != "healthy"}
        assert list(sick) == ["gpu-operator"] and len(sick["gpu-operator"]) == 1
        assert "cluster-policy-ready" in str(sick["gpu-operator"])
    finally:
        site.operators.held.clear()


def test_a_second_run_changes_nothing(site):
    before = site.revisions()
    again = site.install(site.mirror.url)
    assert again["releases"] == {"changed": [], "planned": [], "failed": []}
    assert site.revisions() == before


def test_one_changed_value_upgrades_one_release(site, show):
    before = site.revisions()
    site.set({"kueue": {"replicas": 1, "image": {"tag": "site-7"}}})
    changed = site.install(site.mirror.url)
    show(f"upgrade of one release: {changed['seconds']:.0f} s")
    assert changed["releases"]["changed"] == ["kueue"]
    assert site.revisions() == before | {"kueue": 2}
    kueue = site.workload("deployments", "kueue-system", "kueue-controller-manager")
    assert kueue["spec"]["replicas"] == 1
    assert kueue["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":site-7")
    assert site.ask("drift_info", fail_on=[])["status"] == "in_sync"
