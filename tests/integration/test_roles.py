# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles install and drift_check on a real cluster: what they do, what they leave alone, where they stop."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve

from tests.integration.githttp import GitServer
from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import Kubeconfig
from tests.standin import charts, repository

pytestmark = [pytest.mark.cluster, pytest.mark.helm, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
HEAD = {"apiVersion": "goodput.fleet/v1alpha1"}
NOTHING = {"changed": [], "planned": [], "failed": []}


class Site:
    """Two components in one namespace each, the second depends on the first and has a manifest of its own."""

    def __init__(self, cluster: EmbeddedCluster, namespace: str, folder: Path, programs: dict[str, str]):
        self.cluster, self.api, self.folder, self.programs = cluster, cluster.api, folder, programs
        self.name, self.constraint = namespace, ">= 1.30"
        self.repo = folder / "gitops.git"
        for made in ("catalog/registry", "catalog/overlays", "catalog/manifests"):
            (folder / made).mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", str(self.repo)], check=True)
        self.write()
        repository.store(folder / "charts", charts.archives(self.lock()))

    def write(self) -> None:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tuning"}, "data": {"a": "{{ b }}"}}
        (self.folder / "catalog/manifests/tuning.yaml").write_text(yaml.safe_dump(config))
        components = []
        for name, more in (("first", {}), ("second", {"dependsOn": ["first"]})):
            chart = {"name": f"{self.name}-{name}", "repository": "https://charts.example.com", "version": "1.2.3"}
            health = {"workloads": [{"kind": "Deployment", "name": name}]}
            where = {"namespace": f"{self.name}-{name}", "release": name}
            components.append({"name": name, "chart": chart, "health": health, **where, **more})
        components[1]["manifests"] = [{"name": "tuning", "file": "manifests/tuning.yaml"}]
        registry = {"criteria": {"service": {"values": ["lab"]}}, "components": components}
        overlay = {
            "recipe": True,
            "criteria": {"service": "lab"},
            "components": [{"name": "first"}, {"name": "second"}],
            "constraints": [{"name": "K8s.server.version", "value": self.constraint}],
        }
        for path, kind, spec in (("registry/all", "Registry", registry), ("overlays/lab", "Overlay", overlay)):
            document = {**HEAD, "kind": kind, "metadata": {"name": "lab"}, "spec": spec}
            (self.folder / f"catalog/{path}.yaml").write_text(yaml.safe_dump(document))

    def lock(self) -> dict:
        return resolve(load_catalog([str(self.folder / "catalog")]), {"service": "lab"})

    def role(self, name: str, *arguments: str, environment: dict | None = None, **variables) -> dict:
        """Run a role: what it says of itself, and `stopped`, its last message where it failed."""
        said = {"install": "install_summary", "drift_check": "drift_check_result"}[name]
        results = self.folder / "results.json"
        results.unlink(missing_ok=True)
        keep = f"{{{{ {{'stopped': stopped | default('')}} | combine({said} | default({{}})) | to_json }}}}"
        tasks = [
            {
                "block": [{"ansible.builtin.include_role": {"name": f"goodput.fleet.{name}"}}],
                "rescue": [{"ansible.builtin.set_fact": {"stopped": "{{ ansible_failed_result.msg }}"}}],
            },
            {"ansible.builtin.copy": {"dest": str(results), "content": keep}, "check_mode": False, "diff": False},
        ]
        book = [{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}]
        (self.folder / "play.yml").write_text(yaml.safe_dump(book, sort_keys=False))
        foreign = ("ANSIBLE_", "GIT_", "GOODPUT_", "HELM_", "K8S_AUTH_", "KUBECONFIG")
        command = [str(ROOT / ".venv/bin/ansible-playbook"), "play.yml", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
                "HOME": str(self.folder),
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
                **(environment or {}),
            },
        )
        assert results.exists(), done.stdout + done.stderr
        self.printed = done.stdout
        return json.loads(results.read_text())

    def install(self, mode: str = "enforce", *arguments: str, environment: dict | None = None, **more) -> dict:
        variables = {
            "goodput_mode": mode,
            "install_cluster": "lab",
            "install_criteria": {"service": "lab"},
            "install_catalog": [str(self.folder / "catalog")],
            "install_mirror_charts": self.mirror,
            "install_repo": f"file://{self.repo}",
            "install_apply": True,
            "install_kubeconfig": str(self.cluster.kubeconfig),
            "install_health_interval": 0.3,
            "install_bundle_options": {"timeout": 60},
            **self.programs,
            **more,
        }
        return self.role("install", *arguments, environment=environment, **variables)

    def drift(self, **more) -> dict:
        variables = {
            "drift_check_repo": f"file://{self.repo}",
            "drift_check_path": "clusters/lab",
            "drift_check_kubeconfig": str(self.cluster.kubeconfig),
            **more,
        }
        return self.role("drift_check", **variables)

    def releases(self) -> dict[str, int]:
        """Newest Helm revision of each release in the site's namespaces."""
        found: dict[str, int] = {}
        for name in ("first", "second"):
            secrets = self.api.list(f"/api/v1/namespaces/{self.name}-{name}/secrets", labelSelector="owner=helm")
            for secret in secrets:
                labels = secret["metadata"]["labels"]
                found[labels["name"]] = max(found.get(labels["name"], 0), int(labels["version"]))
        return found

    def commits(self) -> int:
        command = ["git", f"--git-dir={self.repo}", "rev-list", "--all", "--count"]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def deployment(self, name: str) -> str:
        return f"/apis/apps/v1/namespaces/{self.name}-{name}/deployments/{name}"


@pytest.fixture
def site(cluster, namespace, tmp_path, helm_binary, kubectl_binary) -> Iterator[Site]:
    programs = {"install_helm": str(helm_binary), "install_kubectl": str(kubectl_binary)}
    made = Site(cluster, namespace, tmp_path, programs)
    with repository.ChartRepository(tmp_path / "charts") as served:
        made.mirror = served.url
        yield made
    for name in ("first", "second"):
        cluster.api.delete(f"/api/v1/namespaces/{namespace}-{name}")


def test_from_nothing_to_installed_and_then_nothing_to_do(site):
    observed = site.install("observe")
    assert (observed["status"], observed["releases"]) == ("planned", NOTHING)
    planned = site.install("dry_run")
    assert planned["releases"]["planned"] == ["first", "second", "second-manifests"]
    checked = site.install("enforce", "--check", "--diff")
    assert (checked["mode"], checked["releases"]["planned"]) == ("check", ["first", "second", "second-manifests"])
    assert site.releases() == {} and site.commits() == 0

    done = site.install()
    assert (done["status"], done["releases"]["changed"]) == ("ok", ["first", "second", "second-manifests"])
    assert done["health"] == {"total": 2, "healthy": 2, "unhealthy": 0, "unknown": 0}
    assert site.releases() == {"first": 1, "second": 1, "second-manifests": 1} and site.commits() == 1
    # braces in a manifest are not Helm's
    config = site.api.get(f"/api/v1/namespaces/{site.name}-second/configmaps/tuning")
    assert config["data"] == {"a": "{{ b }}"}

    again = site.install()
    assert (again["status"], again["releases"]) == ("ok", NOTHING)
    assert site.releases() == {"first": 1, "second": 1, "second-manifests": 1} and site.commits() == 1
    assert site.drift()["status"] == "in_sync"


def test_what_was_changed_by_hand_is_found_and_taken_back(site, tmp_path):
    site.install()
    container = {"name": "main", "image": "registry.example.com/my/try:1"}
    site.api.patch(site.deployment("second"), {"spec": {"template": {"spec": {"containers": [container]}}}})
    found = site.drift(drift_check_report_dir=str(tmp_path / "reports"))
    assert found["status"] == "drifted" and found["exit_code"] == 3
    assert any("my/try:1" in line for line in found["stopped"])
    report = json.loads((tmp_path / "reports/drift.json").read_text())
    assert report["spec"]["exitCode"] == 3 and len(report["spec"]["findings"]) == 1
    assert {path.name for path in (tmp_path / "reports").iterdir()} == {
        "drift.html", "drift.json", "drift.junit.xml", "drift.md", "drift.sarif",
    }  # fmt: skip

    mended = site.install()
    assert mended["releases"]["changed"] == ["second"]
    assert site.drift()["status"] == "in_sync"


def test_a_component_that_does_not_get_healthy_stops_the_run_and_the_next_one_goes_on(site):
    site.cluster.faults.set(site.name, {"namespace": f"{site.name}-first"}, waiting="CrashLoopBackOff")
    try:
        stopped = site.install(install_bundle_options={"timeout": 8})
    finally:
        site.cluster.faults.clear(site.name)
    assert stopped["status"] == "failed" and stopped["releases"]["failed"] == ["first"]
    assert "CrashLoopBackOff" in stopped["stopped"] and "Nothing after it was touched" in stopped["stopped"]
    assert set(site.releases()) == {"first"}
    done = site.install()
    assert done["status"] == "ok" and set(site.releases()) == {"first", "second", "second-manifests"}


def test_a_helm_that_was_killed_half_way(site):
    site.install()
    half_done(site, "second", "pending-upgrade")
    stopped = site.install()
    assert stopped["status"] == "failed" and "install_recover=true" in stopped["stopped"]
    done = site.install(install_recover=True)
    assert done["status"] == "ok" and done["releases"]["changed"] == ["second"]
    assert site.install()["releases"] == NOTHING


def half_done(site: Site, release: str, status: str) -> None:
    """What a killed `helm upgrade` leaves: its newest revision says that it is still at work."""
    path = f"/api/v1/namespaces/{site.name}-{release}/secrets"
    old = site.api.get(f"{path}/sh.helm.release.v1.{release}.v1")
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(old["data"]["release"]))))
    record["version"], record["info"]["status"] = 2, status
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
    labels = {**old["metadata"]["labels"], "version": "2", "status": status}
    metadata = {"name": f"sh.helm.release.v1.{release}.v2", "labels": labels}
    site.api.create(path, {"metadata": metadata, "type": old["type"], "data": {"release": packed}})


def test_a_cluster_that_does_not_meet_the_constraints_is_not_touched(site):
    site.constraint = ">= 1.99"
    site.write()
    stopped = site.install()
    assert stopped["status"] == "failed"
    assert any(">= 1.99" in line for line in stopped["stopped"])
    assert site.releases() == {} and site.commits() == 0
    assert site.install("observe")["status"] == "planned"


def test_without_a_cluster_the_bundle_is_still_committed(site):
    nowhere = str(site.cluster.access.unreachable())
    done = site.install(install_apply=False, install_kubeconfig=nowhere)
    assert (done["status"], done["drift_before"]) == ("ok", "not read") and site.commits() == 1
    stopped = site.install(install_apply=False, install_kubeconfig=nowhere, install_live="required")
    assert stopped["status"] == "failed" and "cannot reach the API server" in stopped["stopped"]
    wrong = site.install(install_apply=False, install_context="prod")
    assert wrong["status"] == "failed" and "there is no context 'prod'" in wrong["stopped"]


def test_helm_gets_the_credential_of_awx(site):
    config = Kubeconfig(site.cluster.kubeconfig)
    environment = {
        "K8S_AUTH_HOST": config.server,
        "K8S_AUTH_API_KEY": config.token,
        "K8S_AUTH_SSL_CA_CERT": config.ca_file,
        "K8S_AUTH_VERIFY_SSL": "true",
        "TMPDIR": str(site.folder),
    }
    done = site.install(install_kubeconfig="", environment=environment)
    assert done["status"] == "ok" and set(site.releases()) == {"first", "second", "second-manifests"}
    assert config.token not in site.printed
    assert not list(site.folder.glob("goodput-*"))  # neither the kubeconfig nor the bundle is left lying about


def test_what_may_not_be_read_is_unknown_and_fails(site):
    site.install()
    rules = [{"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": ["get", "list"]}]
    account = site.cluster.access.service_account(f"blind-{site.name}", cluster_rules=rules)
    found = site.drift(drift_check_kubeconfig=str(account))
    assert found["status"] == "unknown" and found["exit_code"] == 4
    assert any("forbidden" in line for line in found["stopped"])
    assert site.drift(drift_check_kubeconfig=str(account), drift_check_fail_on=["drifted"])["stopped"] == ""


def test_the_lock_file_comes_from_a_repository_that_wants_a_token(site):
    site.install(install_apply=False)
    with GitServer(site.folder, token="s3cret-t0ken") as server:
        repo = f"{server.url}/gitops.git"
        found = site.drift(drift_check_repo=repo, environment={"GOODPUT_GIT_TOKEN": "s3cret-t0ken"})
        assert found["status"] == "drifted"  # nothing is installed
        assert "s3cret-t0ken" not in site.printed
        refused = site.drift(drift_check_repo=repo, environment={"GIT_TERMINAL_PROMPT": "0"})
        assert refused["stopped"] and refused.get("status") is None


def test_bad_input_is_one_message(site):
    assert "drift_check_lock" in site.role("drift_check")["stopped"]
    missing = site.role("drift_check", drift_check_lock="/no/such/lock.yaml")
    assert "/no/such/lock.yaml: no such file" in missing["stopped"] and missing.get("status") is None
    other = site.install(install_deployer="flux", install_repo="")
    assert "only a Helm bundle can be installed from here" in other["stopped"]
