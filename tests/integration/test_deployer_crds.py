# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge of rendered objects is a good one: it knows every kind, takes what is right and refuses what is not.

test_bundle_objects.py puts real bundles before it.
"""

from __future__ import annotations

import copy
import subprocess

import pytest
import yaml

from tests.flux.compare import lost
from tests.flux.install import PATH
from tests.simfleet.api import ApiError

pytestmark = pytest.mark.cluster

RIGHT = {
    "Application": (
        "argoproj.io/v1alpha1",
        {
            "project": "default",
            "source": {
                "repoURL": "https://charts.example.com",
                "chart": "gpu-operator",
                "targetRevision": "v26.7.0",
                "helm": {"releaseName": "gpu-operator", "valuesObject": {"driver": {"enabled": True}}},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "gpu-operator"},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"]},
        },
    ),
    "AppProject": ("argoproj.io/v1alpha1", {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}),
    "HelmRelease": (
        "helm.toolkit.fluxcd.io/v2",
        {
            "interval": "10m",
            "chart": {"spec": {"chart": "x", "version": "1.2.3", "sourceRef": {"kind": "HelmRepository", "name": "x"}}},
            "dependsOn": [{"name": "cert-manager"}],
            "install": {"crds": "CreateReplace", "createNamespace": True},
            "values": {"anything": [{"goes": None}]},
        },
    ),
    "HelmRepository": ("source.toolkit.fluxcd.io/v1", {"interval": "10m", "url": "https://charts.example.com"}),
    "OCIRepository": (
        "source.toolkit.fluxcd.io/v1",
        {"interval": "10m", "url": "oci://ghcr.io/nvidia/nvsentinel", "ref": {"tag": "v1.20.0"}},
    ),
    "GitRepository": (
        "source.toolkit.fluxcd.io/v1",
        {"interval": "1m", "url": "https://git.example.com/gitops.git", "ref": {"branch": "main"}},
    ),
    "Kustomization": (
        "kustomize.toolkit.fluxcd.io/v1",
        {"interval": "10m", "path": "./clusters/x", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "x"}},
    ),
}


def made(kind: str, namespace: str) -> dict:
    api_version, spec = RIGHT[kind]
    metadata = {"name": "x", "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": copy.deepcopy(spec)}


def dry_run(cluster, body: dict) -> dict:
    """What the API server would store; its strictest reading."""
    plural = {
        "HelmRepository": "helmrepositories",
        "OCIRepository": "ocirepositories",
        "GitRepository": "gitrepositories",
    }
    kind = body["kind"]
    path = (
        f"/apis/{body['apiVersion']}/namespaces/{body['metadata']['namespace']}/{plural.get(kind, kind.lower() + 's')}"
    )
    return cluster.api.create(f"{path}?dryRun=All&fieldValidation=Strict", body)


def test_every_kind_is_served_in_the_version_that_bundles_use(cluster, deployer_crds):
    assert len(deployer_crds) == 11
    served = {
        (crd["spec"]["names"]["kind"], f"{crd['spec']['group']}/{version['name']}")
        for crd in (cluster.api.get(f"{PATH}/{name}") for name in deployer_crds)
        for version in crd["spec"]["versions"]
        if version["served"]
    }
    assert {(kind, api_version) for kind, (api_version, _spec) in RIGHT.items()} <= served


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_right_is_accepted_whole(cluster, deployer_crds, namespace, kind):
    body = made(kind, namespace)
    assert not lost(body["spec"], dry_run(cluster, body)["spec"])


@pytest.mark.parametrize("kind", RIGHT)
def test_a_misspelt_field_is_refused_by_name(cluster, deployer_crds, namespace, kind):
    body = made(kind, namespace)
    body["spec"]["speling"] = 1
    with pytest.raises(ApiError, match=r'unknown field "spec\.speling"'):
        dry_run(cluster, body)


WRONG = [
    ("Application", {"syncPolicy": {"automated": {"prune": "yes"}}}, "automated.prune.*boolean"),
    ("Application", {"destination": None}, "spec.destination.*Required"),
    ("HelmRelease", {"interval": "forever"}, "spec.interval"),
    ("HelmRelease", {"dependsOn": ["cert-manager"]}, r"dependsOn\[0\].*object"),
    ("HelmRelease", {"install": {"crds": "Replace"}}, "spec.install.crds.*Unsupported value"),
    ("HelmRelease", {"chart": None}, "chart or .*chartRef"),
    ("HelmRepository", {"url": "ftp://charts.example.com"}, "spec.url"),
    ("OCIRepository", {"url": "https://ghcr.io/nvidia"}, "spec.url"),
    ("GitRepository", {"url": "git://git.example.com/x"}, "spec.url"),
    ("Kustomization", {"prune": None}, "spec.prune.*Required"),
    ("Kustomization", {"sourceRef": {"kind": "HelmRepository", "name": "x"}}, "sourceRef.kind.*Unsupported value"),
]


@pytest.mark.parametrize(("kind", "harm", "words"), WRONG)
def test_what_is_wrong_is_refused(cluster, deployer_crds, namespace, kind, harm, words):
    body = made(kind, namespace)
    for key, value in harm.items():
        body["spec"].pop(key)
        if value is not None:
            body["spec"][key] = value
    with pytest.raises(ApiError, match=words) as refusal:
        dry_run(cluster, body)
    assert refusal.value.status in (400, 422)


def test_kubectl_judges_alike(cluster, deployer_crds, namespace, kubectl_binary, kubeconfig):
    """What a person would type to check a file of a bundle."""
    command = [kubectl_binary, f"--kubeconfig={kubeconfig}", "apply", "--server-side", "--dry-run=server"]
    command += ["--validate=strict", "--filename=-"]

    def apply(body: dict) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(part) for part in command], input=yaml.safe_dump(body), capture_output=True, text=True
        )

    body = made("Application", namespace)
    assert apply(body).stdout == "application.argoproj.io/x serverside-applied (server dry run)\n"
    body["spec"]["syncPolicy"]["automated"]["prunee"] = True
    refused = apply(body)
    assert refused.returncode == 1 and "field not declared in schema" in refused.stderr
