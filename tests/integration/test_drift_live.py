# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has this cluster left its recipe? Asked of a real API server with releases that a real helm installed."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.releases import READERS
from ansible_collections.goodput.fleet.plugins.module_utils.drift import diff, expected, facts, observe, run
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, manifests, schema, yamltree

from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import MERGE_PATCH
from tests.standin import charts, locks
from tests.tools import tools

pytestmark = [pytest.mark.cluster, pytest.mark.helm]

ROOT = Path(__file__).resolve().parents[2]
RBAC = ROOT / "gitops/rbac"
DRIVER = "580.105.08"
OPERATOR_VALUES = {
    "driver": {"version": DRIVER, "enabled": True},
    "toolkit": {"env": [{"name": "NGC_API_KEY", "value": "s3cret"}]},
}
CRD = "clusterpolicies.nvidia.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def a_lock() -> dict:
    operator = locks.component(
        "gpu-operator",
        OPERATOR_VALUES,
        crds=[CRD],
        nodeFacts={"driver": {"valuesPath": "driver.version", "value": DRIVER}},
        health={"workloads": [{"kind": "Deployment", "name": "gpu-operator"}, {"kind": "DaemonSet", "name": "agent"}]},
    )
    scattered = [{"kind": "Deployment", "name": name} for name in ("monitoring", "adapter")]
    scattered[1]["namespace"] = "elsewhere"  # as charts do that reach into kube-system
    monitoring = locks.component("monitoring", {"replicas": 1, "gone": None}, health={"workloads": scattered})
    made = locks.lock(operator, monitoring)
    made["spec"]["constraints"] = [
        {"name": name, "value": value, "severity": "error", "from": "kind"}
        for name, value in (
            ("K8s.server.version", ">= 1.30"),
            ("OS.kernel", ">= 6.8"),
            ("GPU.driver.version", ">= 580"),
            ("GPU.count", ">= 8"),
        )
    ]
    made["metadata"]["digest"] = digest.sha256(made["spec"])
    return made


class Site:
    """A cluster with a lock's releases in it, and what tests do to them."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path):
        self.cluster, self.folder = cluster, folder
        self.lock = a_lock()
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        for name, content in charts.archives(self.lock).items():
            (folder / name).write_bytes(content)
        for item in self.lock["spec"]["components"]:
            self.upgrade(item["name"], item["values"])

    def component(self, name: str) -> dict:
        return next(item for item in self.lock["spec"]["components"] if item["name"] == name)

    def helm(self, *arguments: str) -> None:
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        done = subprocess.run([tools.helm(), *arguments], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def upgrade(self, name: str, values: dict) -> None:
        """What the install role does for one component."""
        chart = self.component(name)["chart"]
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(values))
        archive = self.folder / f"{chart['name']}-{chart['version']}.tgz"
        namespace = self.component(name)["namespace"]
        self.helm("upgrade", "--install", name, str(archive), "-n", namespace, "--create-namespace", "-f", str(path))

    def report(self, kubeconfig: Path | None = None, **options) -> dict:
        options = {"lock": self.lock, **options}
        params = {"kubeconfig": str(kubeconfig or self.cluster.kubeconfig)}
        made = run.report(lambda: connect(params), READERS, **options)
        assert schema.validate(yamltree.Document(made, {}, "report"), "DriftReport") == []
        return made

    def snapshot(self, namespaces: list[str] | None = None) -> dict:
        client = connect({"kubeconfig": str(self.cluster.kubeconfig)})
        return observe.take(client, READERS, namespaces or [], taken_at=None)

    def set_image(self, kind: str, namespace: str, name: str, image: str) -> None:
        body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
        self.cluster.api.patch(f"/apis/apps/v1/namespaces/{namespace}/{kind}/{name}", body)


@pytest.fixture(scope="module")
def site(tmp_path_factory, show) -> Iterator[Site]:
    """A cluster of this module's own: tests change its nodes and CRDs, and put them back."""
    with EmbeddedCluster(nodes=8, profile="demo", say=show) as cluster:
        yield Site(cluster, tmp_path_factory.mktemp("charts"))


@pytest.fixture
def undo() -> Iterator[list[Callable[[], object]]]:
    steps: list[Callable[[], object]] = []
    yield steps
    for step in reversed(steps):
        step()


def codes(report: dict) -> list[str]:
    return sorted(item["code"] for item in report["spec"]["findings"])


def test_an_installed_recipe_is_in_sync(site):
    spec = site.report()["spec"]
    assert (spec["status"], spec["findings"]) == ("in_sync", [])
    assert {part for part, state in spec["parts"].items() if state["status"] != "ok"} == set()


def test_exactly_what_was_changed_is_found(site, undo):
    values = copy.deepcopy(site.component("monitoring")["values"])
    undo.append(lambda: site.upgrade("monitoring", values))
    site.upgrade("monitoring", {**values, "image": {"tag": "other"}, "replicas": 1})

    undo.append(lambda: site.upgrade("gpu-operator", site.component("gpu-operator")["values"]))
    image = expected_image(site, "DaemonSet", "agent")
    undo.append(lambda: site.set_image("daemonsets", "gpu-operator", "agent", image))
    site.set_image("daemonsets", "gpu-operator", "agent", "nvcr.io/nvidia/agent:debug")

    undo.append(lambda: site.cluster.fleet.set_driver("gpu-0005", DRIVER))
    site.cluster.fleet.set_driver("gpu-0005", "575.57.08")

    whole = site.cluster.api.get(f"{CRDS}/{CRD}")["spec"]["versions"]
    undo.append(lambda: site.cluster.api.patch(f"{CRDS}/{CRD}", {"spec": {"versions": whole}}, MERGE_PATCH))
    edited = copy.deepcopy(whole)
    edited[0]["additionalPrinterColumns"] = [{"name": "State", "type": "string", "jsonPath": ".status.state"}]
    site.cluster.api.patch(f"{CRDS}/{CRD}", {"spec": {"versions": edited}}, MERGE_PATCH)

    report = site.report()
    found = {item["code"]: item for item in report["spec"]["findings"]}
    assert codes(report) == ["crd-differs", "image-differs", "node-not-as-locked", "value-added"]
    assert found["value-added"]["path"] == "releases/monitoring/monitoring/values/image"
    assert found["value-added"]["found"] == {"tag": "other"}
    assert found["image-differs"]["path"] == "workloads/DaemonSet/gpu-operator/agent/images/main"
    assert (found["image-differs"]["expected"], found["image-differs"]["found"]) == (
        image,
        "nvcr.io/nvidia/agent:debug",
    )
    assert found["node-not-as-locked"]["nodes"] == report["spec"]["recertify"] == ["gpu-0005"]
    assert f"version {whole[0]['name']} differs" in found["crd-differs"]["message"]
    assert (report["spec"]["status"], report["spec"]["exitCode"]) == ("drifted", 3)


def expected_image(site: Site, kind: str, name: str) -> str:
    release = next(
        item for item in site.snapshot(["gpu-operator"])["spec"]["releases"] if item["name"] == "gpu-operator"
    )
    return next(item["images"]["main"] for item in release["workloads"] if (item["kind"], item["name"]) == (kind, name))


def test_everything_was_put_back(site):
    assert codes(site.report()) == []


def test_two_snapshots_in_a_row_differ_in_nothing(site):
    first = site.snapshot()
    # what goes on in a cluster all the time
    site.cluster.fleet.reboot("gpu-0001")
    site.cluster.fleet.wait_ready(8)
    site.cluster.api.patch("/api/v1/nodes/gpu-0002", {"metadata": {"labels": {"nvidia.com/gfd.timestamp": "1"}}})
    second = site.snapshot()
    assert first == second
    assert schema.validate(yamltree.Document(first, {}, "snapshot"), "Snapshot") == []
    assert diff.compare(first, second)["spec"]["status"] == "in_sync"


def test_a_stored_snapshot_gives_the_same_report_without_the_cluster(site, tmp_path):
    shot = site.snapshot()
    (tmp_path / "s.json").write_text(json.dumps(shot))
    (tmp_path / "s.yaml").write_text(yamltree.dump(shot))

    def nobody():
        raise AssertionError("no cluster may be contacted")

    for name in ("s.json", "s.yaml"):
        offline = run.report(nobody, READERS, lock=site.lock, snapshot=str(tmp_path / name))
        assert offline["spec"]["findings"] == []
        assert offline["spec"]["status"] == "in_sync"


def test_secrets_of_values_leave_nothing_behind(site):
    assert "s3cret" not in json.dumps(site.snapshot())
    changed = copy.deepcopy(site.lock)
    component = next(item for item in changed["spec"]["components"] if item["name"] == "gpu-operator")
    component["values"]["toolkit"]["env"][0]["value"] = "0ther"
    component["valuesDigest"] = digest.sha256(component["values"])
    changed["metadata"]["digest"] = digest.sha256(changed["spec"])
    report = site.report(lock=changed)
    assert codes(report) == ["value-differs"]
    assert "s3cret" not in json.dumps(report) and "0ther" not in json.dumps(report)


def test_a_release_that_is_gone_and_one_that_failed(site, undo):
    values = site.component("monitoring")["values"]
    undo.append(lambda: site.upgrade("monitoring", values))
    site.helm("uninstall", "monitoring", "-n", "monitoring")
    assert codes(site.report()) == ["release-missing"]
    site.upgrade("monitoring", values)
    with pytest.raises(AssertionError):  # an image that never comes, and helm waits for it
        site.helm(
            "upgrade",
            "monitoring",
            str(site.folder / "monitoring-1.2.3.tgz"),
            "-n",
            "monitoring",
            "--reuse-values",
            "--wait",
            "--timeout",
            "1s",
            "--set",
            "nodeSelector.none=here",
        )
    report = site.report()
    assert "release-failed" in codes(report)


def test_what_a_release_put_into_another_namespace_counts(site, undo):
    path = "/apis/apps/v1/namespaces/elsewhere/deployments/adapter"
    undo.append(lambda: site.upgrade("monitoring", site.component("monitoring")["values"]))
    site.cluster.api.delete(path)
    assert codes(site.report()) == ["workload-missing"]


def test_old_revisions_do_not_count(site):
    values = site.component("monitoring")["values"]
    for number in range(3):
        site.upgrade("monitoring", {**values, "number": number})
    site.upgrade("monitoring", values)
    assert codes(site.report()) == []


# rights


def rules_without(resource: str) -> tuple[list[dict], list[dict]]:
    """(in a namespace, everywhere): what the shipped roles grant, less one resource."""
    roles = {item["metadata"]["name"]: item for item in shipped("reader.yaml") if item["kind"] == "ClusterRole"}

    def left(name: str) -> list[dict]:
        rules = [
            {**rule, "resources": [each for each in rule["resources"] if each != resource]}
            for rule in roles[name]["rules"]
        ]
        return [rule for rule in rules if rule["resources"]]

    return left("goodput-fleet-namespace-reader"), left("goodput-fleet-reader-cluster")


def shipped(name: str) -> list[dict]:
    data = yaml.safe_load((RBAC / name).read_text())
    return data["items"] if data["kind"] == "List" else [data]


@pytest.mark.parametrize(
    ("denied", "part"),
    [
        ("nodes", "nodes"),
        ("customresourcedefinitions", "crds"),
        ("secrets", "releases"),
        ("deployments", "workloads"),
    ],
)
def test_one_kind_that_may_not_be_read_is_unknown_and_the_rest_is_judged(site, denied, part):
    inside, everywhere = rules_without(denied)
    name = f"no-{denied}"
    kubeconfig = site.cluster.access.service_account(name, cluster_rules=inside + everywhere)
    spec = site.report(kubeconfig)["spec"]
    assert (spec["status"], spec["exitCode"], spec["findings"]) == ("unknown", 4, [])
    assert spec["parts"][part]["status"] == "unknown"
    assert (
        "forbidden: cannot list" in spec["parts"][part]["reason"]
        or "forbidden: cannot get" in spec["parts"][part]["reason"]
    )
    assert denied in spec["parts"][part]["reason"]
    others = {"nodes", "crds", "releases", "workloads"} - {part}
    assert {spec["parts"][each]["status"] for each in others} == {"ok"}


def test_drift_outranks_what_is_unknown_and_both_are_told(site, undo):
    inside, everywhere = rules_without("customresourcedefinitions")
    kubeconfig = site.cluster.access.service_account("no-crds", cluster_rules=inside + everywhere)
    undo.append(lambda: site.cluster.fleet.set_driver("gpu-0005", DRIVER))
    site.cluster.fleet.set_driver("gpu-0005", "575.57.08")
    spec = site.report(kubeconfig)["spec"]
    assert (spec["status"], spec["exitCode"], spec["parts"]["crds"]["status"]) == ("drifted", 3, "unknown")


def apply(site: Site, name: str, *more: str) -> None:
    command = [
        tools.kubectl(),
        "--kubeconfig",
        site.cluster.kubeconfig,
        "apply",
        "-f",
        RBAC / name,
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def reader(site) -> Path:
    """A kubeconfig of the shipped service account, bound as the shipped files say."""
    apply(site, "reader.yaml")
    for name in ("gpu-operator", "monitoring", "elsewhere"):
        apply(site, "namespace-binding.yaml", "-n", name)
    answer = site.cluster.api.create(
        "/api/v1/namespaces/goodput-fleet/serviceaccounts/goodput-fleet-reader/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
    )
    return site.cluster.access.with_token("reader", answer["status"]["token"])


def test_the_shipped_roles_suffice(site, reader):
    from tests.simfleet.api import wait_until

    wait_until(lambda: site.report(reader)["spec"]["status"] != "unknown", 10, "the aggregated role")
    assert site.report(reader)["spec"]["status"] == "in_sync"


def test_the_shipped_roles_write_nothing():
    for name in ("reader.yaml", "namespace-binding.yaml"):
        for item in shipped(name):
            for rule in item.get("rules") or ():
                assert set(rule["verbs"]) <= {"get", "list"}, item["metadata"]["name"]
                assert "*" not in rule["apiGroups"] + rule["resources"]


def test_the_shipped_account_is_refused_to_write_and_to_read_elsewhere(site, reader):
    client = connect({"kubeconfig": str(reader)})
    for path in ("/api/v1/nodes/gpu-0000", "/apis/apps/v1/namespaces/gpu-operator/deployments/gpu-operator"):
        with pytest.raises(Exception, match="forbidden: cannot patch"):
            client.patch(path, {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(Exception, match="forbidden: cannot list secrets in namespace kube-system"):
        list(client.list("/api/v1/namespaces/kube-system/secrets"))


def test_the_shipped_roles_cover_the_shipped_checks():
    rules = [rule for item in shipped("reader.yaml") for rule in item.get("rules") or ()]
    granted = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    for path in sorted((ROOT / "gitops/catalog/registry").glob("*.yaml")):
        for component in yaml.safe_load(path.read_text())["spec"].get("components") or ():
            for check in (component.get("health") or {}).get("checks") or ():
                group = check["apiVersion"].rpartition("/")[0]
                assert (group, check["plural"]) in granted, f"{path.name}: {check['name']}"


# CRDs


def test_an_untouched_crd_is_what_its_chart_said(site):
    text = (ROOT / "tests/unit/drift/odd_crd.yaml").read_text()
    wanted = yaml.safe_load(text)
    site.cluster.api.create(CRDS, json.loads(json.dumps(wanted, default=str)))
    live = site.cluster.api.get(f"{CRDS}/{wanted['metadata']['name']}")
    assert live["spec"]["names"]["listKind"]  # the API server did fill in defaults
    assert facts.crd(live) == manifests.from_texts([text], "x", "x")["crds"][0]
    site.cluster.api.delete(f"{CRDS}/{wanted['metadata']['name']}")


def test_only_wanted_crds_are_read(site):
    shot = site.snapshot()
    wanted = expected.wanted(site.lock, shot["spec"]["releases"])
    assert wanted == ({CRD}, {"gpu-operator", "monitoring", "elsewhere"})


# modules


def module(name: str, arguments: dict, **environment: str) -> dict:
    """One task, as `ansible localhost -m` runs it."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "KUBECONFIG"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ansible",
            "adhoc",
            "localhost",
            "-m",
            f"goodput.fleet.{name}",
            "-a",
            json.dumps(arguments),
        ],
        env={
            **bare,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_STDOUT_CALLBACK": "oneline",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    head, arrow, result = done.stdout.partition("=> ")
    assert arrow, done.stdout + done.stderr
    return {"failed": "SUCCESS" not in head, **json.loads(result)}


def test_the_module_in_awxs_environment(site, tmp_path):
    admin = yaml.safe_load(site.cluster.kubeconfig.read_text())
    environment = {
        "K8S_AUTH_HOST": admin["clusters"][0]["cluster"]["server"],
        "K8S_AUTH_API_KEY": admin["users"][0]["user"]["token"],
        "K8S_AUTH_VERIFY_SSL": "True",
        "K8S_AUTH_SSL_CA_CERT": str(
            (site.cluster.kubeconfig.parent / admin["clusters"][0]["cluster"]["certificate-authority"]).resolve()
        ),
    }
    path = tmp_path / "recipe.lock.yaml"
    path.write_text(yamltree.dump(site.lock))
    result = module("drift_info", {"lock": str(path)}, **environment)
    assert (result["failed"], result["status"], result["exit_code"], result["changed"]) == (
        False,
        "in_sync",
        0,
        False,
    )
    shot = module("cluster_snapshot_info", {"namespaces": ["monitoring"], "name": "prod-1"}, **environment)
    assert shot["snapshot"]["metadata"]["name"] == "prod-1"
    assert [item["name"] for item in shot["snapshot"]["spec"]["releases"]] == ["monitoring"]
    assert shot["unknown"] == {}
    unverified = {**environment, "K8S_AUTH_VERIFY_SSL": "False", "K8S_AUTH_SSL_CA_CERT": ""}
    assert module("drift_info", {"lock": str(path)}, **unverified)["status"] == "in_sync"


def test_the_module_fails_by_default_and_says_why(site, undo):
    kubeconfig = {"kubeconfig": yaml.safe_load(site.cluster.kubeconfig.read_text())}
    kubeconfig["kubeconfig"]["clusters"][0]["cluster"]["certificate-authority"] = str(
        site.cluster.kubeconfig.parent / "certs/apiserver.crt"
    )
    undo.append(lambda: site.cluster.fleet.set_driver("gpu-0005", DRIVER))
    site.cluster.fleet.set_driver("gpu-0005", "575.57.08")
    result = module("drift_info", {**kubeconfig, "lock": site.lock})
    assert (result["failed"], result["status"], result["exit_code"]) == (True, "drifted", 3)
    assert "driver is 575.57.08 on 1 node, gpu-operator pins 580.105.08: gpu-0005" in result["msg"]
    allowed = module(
        "drift_info", {**kubeconfig, "lock": site.lock, "fail_on": ["unknown"], "ignore": ["component == 'x'"]}
    )
    assert (allowed["failed"], allowed["status"], allowed["recertify"]) == (False, "drifted", ["gpu-0005"])
    token = kubeconfig["kubeconfig"]["users"][0]["user"]["token"]
    assert token not in json.dumps(allowed)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"lock": {"foo": "bar"}}, "not a lock"),
        ({"lock": "/nowhere/lock.yaml"}, "/nowhere/lock.yaml: no such file"),
        ({"snapshot": {"foo": "bar"}}, "a Snapshot belongs here"),
        ({"snapshot": {"apiVersion": "goodput.fleet/v1alpha1", "kind": "Snapshot"}}, "'spec' is missing"),
        ({"ignore": ["code =="]}, "is not a rule that can be used"),
        ({"baseline": {"foo": "bar"}}, "mutually exclusive"),
    ],
)
def test_bad_input_is_told_apart_from_drift(site, arguments, text):
    result = module("drift_info", {"lock": site.lock, "kubeconfig": str(site.cluster.kubeconfig), **arguments})
    assert result["failed"] is True
    assert text in result["msg"]
    assert result.get("exit_code", 1) == 1
    assert "Traceback" not in json.dumps(result)


# GitOps deployers


def test_argo_cds_and_fluxs_objects_are_read_where_their_apis_are_served(cluster, deployer_crds, namespace):
    client = connect({"kubeconfig": str(cluster.kubeconfig)})
    source = {
        "repoURL": "https://charts.example.com",
        "chart": "gpu-operator",
        "targetRevision": "v26.7.0",
        "helm": {"releaseName": "one", "valuesObject": {"driver": {"enabled": True}}},
    }
    destination = {"server": "https://kubernetes.default.svc", "namespace": namespace}
    client.post(
        f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications",
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "one"},
            "spec": {"project": "default", "source": source, "destination": destination},
            "status": {"sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"}},
        },
    )
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{namespace}/helmreleases"
    chart = {"spec": {"chart": "x", "version": "1.2.3", "sourceRef": {"kind": "HelmRepository", "name": "x"}}}
    spec = {"interval": "10m", "chart": chart, "releaseName": "two", "targetNamespace": namespace, "values": {"a": 1}}
    head = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "two"}}
    client.post(path, {**head, "spec": spec})
    ready = {"type": "Ready", "status": "False", "reason": "UpgradeFailed", "message": "x"}
    ready["lastTransitionTime"] = "2026-11-29T12:00:00Z"
    client.patch(f"{path}/two/status", {"status": {"conditions": [ready]}})
    spec = observe.take(client, READERS, [namespace])["spec"]
    found = [[item[key] for key in ("source", "name", "chart", "version", "status")] for item in spec["releases"]]
    assert found == [
        ["argocd", "one", "gpu-operator", "v26.7.0", "out-of-sync"],
        ["flux", "two", "x", "1.2.3", "failed"],
    ]
    assert [item["values"] for item in spec["releases"]] == [{"driver": {"enabled": True}}, {"a": 1}]
    assert {state["status"] for state in spec["parts"].values()} == {"ok"}
