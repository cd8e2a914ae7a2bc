# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that a pull request's job runs: its page and its exit codes, on a real API server and a real git."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest

from tests.integration import modules
from tests.simfleet import EmbeddedCluster
from tests.standin import locks

pytestmark = [pytest.mark.cluster, pytest.mark.git]

ROOT = Path(__file__).parents[2]
DRIVER, NEXT = "580.105.08", "580.126.09"
LOCK, TESTS = "clusters/prod-1/recipe.lock.yaml", "certifications/driver.yaml"
NODES = [f"gpu-{number:04}" for number in range(4)]


def lock(driver: str = DRIVER, **tuning: str) -> dict:
    """A recipe that needs no Helm: it fixes the nodes' driver, and has an object of its own."""
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tuning"}, "data": {"a": "1", **tuning}}
    component = locks.component(
        "gpu-driver",
        {"driver": {"version": driver}, "licensing": {"token": "s3cret"}},
        chart=None,
        namespace="default",
        manifests=[locks.manifest("tuning", yaml.safe_dump(data))],
        nodeFacts={"driver": {"valuesPath": "driver.version", "value": driver}},
    )
    return locks.lock(component)


def certification(bandwidth: int) -> dict:
    nccl = {"domain": "communication", "variant": "nccl-all-reduce"}
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Certification",
        "metadata": {"name": "driver"},
        "spec": {
            "target": {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "Exists"}]},
            "categories": [
                {**nccl, "options": {"thresholds": {"busBandwidthGBps": f"value >= {bandwidth}"}}},
                {"domain": "diagnostics", "variant": "dcgm-level1"},
            ],
        },
    }


class Site:
    """A GitOps repository whose main branch is what the cluster runs, and a pull request that is checked out."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path):
        self.cluster, self.folder = cluster, folder
        self.git("init", "-q", "--initial-branch=main")
        self.commit(lock(), certification(300))
        self.git("checkout", "-q", "-b", "pull-request")

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def commit(self, lock_: dict, certification_: dict) -> None:
        for name, document in ((LOCK, lock_), (TESTS, certification_)):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(document))
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "change")

    def review(self, *words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess:
        command = [ROOT / "gitops/ci/review", "--base", "main", "--lock", LOCK, "--certification", TESTS, *words]
        bare = {key: value for key, value in os.environ.items() if not key.startswith(modules.FOREIGN)}
        # as from a checkout: nothing but the command tells where the collection is
        bare.pop("ANSIBLE_COLLECTIONS_PATH", None)
        environment = {**bare, "KUBECONFIG": str(kubeconfig or self.cluster.kubeconfig)}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        assert "s3cret" not in done.stdout + done.stderr
        return done


def module(**options) -> dict:
    """The module itself, for what does not need the command's seconds."""
    usual = {"base": lock(), "head": lock(NEXT), "certifications": [{"head": certification(300)}]}
    return modules.run("change_review", {**usual, "catalog": [str(modules.CATALOG)], **options})


@pytest.fixture(scope="module")
def site(tmp_path_factory, show) -> Iterator[Site]:
    with EmbeddedCluster(nodes=len(NODES), profile="demo", say=show) as cluster:
        yield Site(cluster, tmp_path_factory.mktemp("gitops"))


def reader(site: Site, without: str = "") -> Path:
    """The shipped reader's rights everywhere, less one resource."""
    items = yaml.safe_load((ROOT / "gitops/rbac/reader.yaml").read_text())["items"]
    rules = [
        {**rule, "resources": [each for each in rule["resources"] if each != without]}
        for item in items
        if item["kind"] == "ClusterRole"
        for rule in item["rules"]
    ]
    name = f"no-{without}" if without else "reader"
    return site.cluster.access.service_account(name, cluster_rules=[rule for rule in rules if rule["resources"]])


def test_a_new_driver_with_the_readers_rights_and_the_same_page_again(site, tmp_path):
    site.commit(lock(NEXT), certification(250))
    account = reader(site)
    done = site.review("--json", str(tmp_path / "review.json"), kubeconfig=account)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| `gpu-driver` | `values.driver.version` | `{DRIVER}` | `{NEXT}` |" in done.stdout
    assert (
        "🟠 **1 bound or test loosened**" in done.stdout
        and "`value >= 300` | `value >= 250` | 🟠 loosened" in done.stdout
    )
    result = json.loads((tmp_path / "review.json").read_text())
    assert [each["node"] for each in result["affected"]] == NODES
    assert result["drift"]["spec"]["status"] == "in_sync"
    # one all-reduce over the nodes, and a diagnostic on each
    assert result["cost"]["jobs"] == 1 + len(NODES) and result["cost"]["nodeHours"] > 0
    assert result["uncovered"] == [] and result["unknown"] == []
    assert site.review(kubeconfig=account).stdout == done.stdout


def test_a_cluster_that_has_left_its_lock(site):
    site.commit(lock(a="2"), certification(300))
    site.cluster.fleet.set_driver(NODES[1], "575.57.08")
    try:
        done = site.review()
    finally:
        site.cluster.fleet.set_driver(NODES[1], DRIVER)
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"it has drifted from the lock: `{NODES[1]}`" in done.stdout
    assert "575.57.08" in done.stdout and "## To certify again: 4 nodes" in done.stdout


def test_what_may_not_be_read_is_unknown(site):
    done = site.review(kubeconfig=reader(site, "nodes"))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "## To certify again: unknown" in done.stdout and "forbidden" in done.stdout


def test_a_cluster_that_does_not_answer_is_unknown(site, tmp_path):
    config = yaml.safe_load(site.cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:9"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    result = module(kubeconfig=str(tmp_path / "kubeconfig"))
    assert result["exit_code"] == 4 and "the cluster cannot be looked at" in result["markdown"]
    # the documents are compared all the same
    assert result["affects"] and result["affected"] is None and result["cost"] is None


def tampered() -> dict:
    edited = copy.deepcopy(lock())
    edited["spec"]["components"][0]["values"]["driver"]["version"] = NEXT
    edited["metadata"]["digest"] = digest.sha256(edited["spec"])
    return edited


def no_such_test() -> dict:
    odd = certification(300)
    odd["spec"]["categories"][1]["variant"] = "dcgm-levle1"
    return odd


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--base", "no-such-branch"), "git knows no commit no-such-branch"),
        (("--base", "--output=/tmp/x"), "expected one argument"),
        (("--base", "main", "--base-lock", LOCK), "give one of the two"),
        (("--lock", "nowhere.yaml"), "there is no file nowhere.yaml"),
        (("--kubeconfig", "nowhere"), "there is no file nowhere"),
    ],
)
def test_words_that_are_wrong(site, words, said):
    done = site.review(*words)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert said in done.stderr


def test_a_lock_that_was_edited_by_hand(site):
    site.commit(tampered(), certification(300))
    done = site.review()
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    (line,) = done.stderr.splitlines()
    assert LOCK in line and "the digest is not that of the values of gpu-driver" in line


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"base": tampered()}, "base: spec.components[0].valuesDigest"),
        ({"head": certification(300)}, "a Certification is not a lock"),
        ({"head": "nowhere.yaml"}, "nowhere.yaml"),
        ({"head": [1]}, "must be the path of a file or a map"),
        ({"certifications": [{"head": no_such_test()}]}, "driver: categories: the catalogue has no test"),
        ({"head": ""}, "head: is empty"),
        ({"certifications": [{"head": lock()}]}, "certifications[0].head"),
        ({"certifications": [{"head": certification(300), "base": {"kind": "Pod"}}]}, "certifications[0].base"),
        ({"snapshot": certification(300)}, "Snapshot"),
        ({"snapshot": "nowhere.json"}, "nowhere.json"),
        ({"ignore": ["code =="]}, "ignore[0]"),
        ({"selector": "pool in"}, "selector"),
        ({"context": "nowhere"}, "nowhere"),
        ({"kubeconfig": "nowhere"}, "no such file"),
        ({"offline": True, "snapshot": {}}, "offline"),
        ({"catalog": ["nowhere"], "certifications": [{"head": certification(300)}]}, "nowhere"),
    ],
)
def test_bad_input_is_one_clear_error(site, given, said):
    result = module(**{"kubeconfig": str(site.cluster.kubeconfig), **given})
    assert (result["failed"], result["exit_code"]) == (True, 2), result
    assert said in result["msg"] and len(result["msg"].splitlines()) < 5


def test_a_snapshot_and_no_cluster(site, tmp_path):
    taken = modules.run(
        "cluster_snapshot_info", {"kubeconfig": str(site.cluster.kubeconfig), "namespaces": ["default"]}
    )
    (tmp_path / "snapshot.json").write_text(json.dumps(taken["snapshot"]))
    nobody = tmp_path / "nobody"
    nobody.write_text("not to be read")
    stored = module(snapshot=str(tmp_path / "snapshot.json"), kubeconfig=str(nobody))
    assert stored["exit_code"] == 0 and stored["cost"]["jobs"] == 1 + len(NODES)
    assert stored["drift"]["spec"]["status"] == "in_sync"
    alone = module(offline=True, kubeconfig=str(nobody))
    assert alone["exit_code"] == 0 and alone["drift"] is None
    assert "the GPU nodes, which are not known here" in alone["markdown"]


def test_a_lock_without_one_before_is_new(site):
    result = module(base=None, kubeconfig=str(site.cluster.kubeconfig))
    assert (result["exit_code"], result["drift"]) == (0, None)
    assert [each["node"] for each in result["affected"]] == NODES


def test_only_nodes_of_the_change_and_the_target_are_planned(site):
    narrow = {**certification(300), "metadata": {"name": "narrow"}}
    narrow["spec"] = {**narrow["spec"], "target": {"nodeNames": NODES[:1]}}
    narrow["spec"]["categories"] = narrow["spec"]["categories"][1:]
    given = {"kubeconfig": str(site.cluster.kubeconfig), "certifications": [{"head": narrow}]}
    result = module(**given)
    assert (result["cost"]["jobs"], result["uncovered"]) == (1, NODES[1:])
    # a label that snapshots leave out, since the product has a field of its own
    every = module(**given, selector="nvidia.com/gpu.product,kubernetes.io/hostname notin (x)")
    assert [each["node"] for each in every["affected"]] == NODES
    nowhere = module(**given, selector="no-such=label")
    assert (nowhere["exit_code"], nowhere["affected"]) == (4, [])
    assert "the selector no-such=label fits none" in nowhere["markdown"]


def test_a_change_of_everything_gives_a_page(site):
    other = lock(NEXT)
    other["spec"]["catalog"]["version"] = "1.1.0"
    other["spec"]["constraints"] = [
        {"name": "K8s.server.version", "value": ">= 1.30", "severity": "error", "from": "kind"}
    ]
    other["spec"]["checks"] = [
        {"name": "nccl", "domain": "communication", "expression": "value >= 300", "unit": "GB/s", "from": "kind"}
    ]
    other["metadata"]["digest"] = digest.sha256(other["spec"])
    result = module(head=other, offline=True)
    kinds = [each["kind"] for each in result["lock_changes"]]
    assert (result["exit_code"], kinds) == (0, ["nodeFact", "constraint", "check", "catalog"])
    assert "| the recipe | `constraints['K8s.server.version']` |" in result["markdown"]


def test_a_change_that_touches_no_node_costs_nothing(site):
    result = module(head=lock(), kubeconfig=str(site.cluster.kubeconfig))
    assert (result["exit_code"], result["lock_changes"], result["affected"]) == (0, [], [])
    assert "The lock does not change." in result["markdown"]
