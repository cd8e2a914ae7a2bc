# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is committed reaches the cluster: Flux's real source- and kustomize-controller read the published bundle.

From a bare repository over http: the first commit, a change, its revert, a component that goes. Flux's third part, the
helm-controller, is not there, so the HelmReleases stay requests; what it would ask of the source-controller for them
is asked here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.flux.compare import lost
from tests.flux.controllers import NAMESPACE, Flux
from tests.integration.githttp import GitServer
from tests.integration.gitsite import Site, git
from tests.integration.test_embedded_cluster import listening
from tests.simfleet import rundir
from tests.simfleet.api import ApiError, wait_until
from tests.standin import charts, locks, repository

pytestmark = [pytest.mark.cluster, pytest.mark.git, pytest.mark.flux, pytest.mark.slow]

SOURCES = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}"
RELEASES = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{NAMESPACE}/helmreleases"
KUSTOMIZATIONS = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations"
FOLDER = "clusters/lab"
INTERVAL = "2s"
SECONDS = 60  # before a wait is given up; what is measured is far below

QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: critical-pods}
spec: {hard: {pods: "100"}}
"""


def lock(driver: str = "595.91.07", *, monitoring: bool = True) -> dict:
    """Two charts, one of them with a manifest, and an edge."""
    operator = locks.component(
        "gpu-operator",
        {"driver": {"version": driver}, "note": "keep ${THIS} as it is"},
        tier=1,
        dependsOn=["cert-manager"],
        manifests=[locks.manifest("quota", QUOTA, "pre")],
    )
    issuer = locks.component("cert-manager", {"crds": {"enabled": True}})
    watcher = locks.component("monitoring", {"replicas": 2})
    return locks.lock(issuer, *([watcher] if monitoring else []), operator)


class GitOps:
    """A site: its repository, its mirror of charts, the cluster with Flux, and the pipeline that publishes."""

    def __init__(self, flux: Flux, folder: Path, play: Callable[..., dict]):
        self.flux, self.api, self.folder, self.play = flux, flux.cluster.api, folder, play
        self.repo = Site(folder / "srv")
        self.repo.push({"README.md": "The site's repository.\n"})
        self.repo.hook("post-receive", "date +%s.%N >> pushed")
        repository.store(folder / "charts", charts.archives(lock()))
        self.seconds: dict[str, float] = {}
        self.applied: dict[str, float] = {}  # when each revision was first seen to be on the cluster

    def bootstrap(self) -> None:
        """What a site sets up once: where the repository is, and that its folder is to be on the cluster."""
        source = {"url": f"{self.git_url}/site.git", "interval": INTERVAL, "ref": {"branch": "main"}}
        self.create("GitRepository", f"{SOURCES}/gitrepositories", NAMESPACE, source)
        bundle = {
            "interval": "10m",
            "path": f"./{FOLDER}",
            "prune": True,
            "sourceRef": {"kind": "GitRepository", "name": NAMESPACE},
        }
        self.create("Kustomization", KUSTOMIZATIONS, "lab", bundle)

    def create(self, kind: str, path: str, name: str, spec: dict) -> None:
        api_version = "/".join(path.split("/")[2:4])
        self.api.create(path, {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})

    def publish(self, document: dict) -> str:
        """Render and commit, as a pipeline does; the commit."""
        dest = str(self.folder / "bundle")
        render = {"lock": "{{ document }}", "deployer": "flux", "dest": dest, "path": FOLDER}
        commit = {"repo": f"{self.git_url}/site.git", "branch": "main", "path": FOLDER, "src": dest, "cluster": "lab"}
        tasks = [
            {"goodput.fleet.bundle": {**render, "mirror": {"charts": self.mirror_url}, "options": {"interval": "1m"}}},
            {"goodput.fleet.bundle_info": {"path": dest}},
            {"goodput.fleet.gitops_publish": commit, "register": "published"},
        ]
        published = self.play(self.folder / "play", tasks, document=document)["published"]
        assert published["changed"] is True
        return published["commit"]

    def revert(self) -> str:
        """Somebody takes the last commit back, by hand."""
        git("fetch", "-q", "origin", cwd=self.repo.work)
        git("checkout", "-q", "-f", "-B", "main", "origin/main", cwd=self.repo.work)
        git("revert", "--no-edit", "HEAD", cwd=self.repo.work)
        git("push", "-q", "origin", "HEAD:refs/heads/main", cwd=self.repo.work)
        return git("rev-parse", "HEAD", cwd=self.repo.work)

    def watch(self, stop: threading.Event) -> None:
        """Note when Flux says that a revision is on the cluster, also while a playbook still runs."""
        while not stop.wait(0.1):
            status = (self.api.find(f"{KUSTOMIZATIONS}/lab") or {}).get("status") or {}
            if ready(status) and status.get("lastAppliedRevision"):
                self.applied.setdefault(status["lastAppliedRevision"], time.time())

    def await_applied(self, commit: str, what: str, since: float = 0.0) -> None:
        """Until the newest commit is on the cluster; notes the seconds since it was pushed, or since that time."""
        revision = f"main@sha1:{commit}"

        def applied() -> bool:
            self.flux.check()
            return revision in self.applied

        wait_until(applied, SECONDS, lambda: str(self.api.get(f"{KUSTOMIZATIONS}/lab").get("status")))
        pushed = float((self.repo.bare / "pushed").read_text().split()[-1])
        self.seconds[what] = self.applied[revision] - (since or pushed)

    def release(self, name: str) -> dict | None:
        return self.api.find(f"{RELEASES}/{name}")

    def await_fetched(self, path: str) -> dict:
        """The source, once source-controller says that it is ready and serves it."""

        def check() -> dict | None:
            self.flux.check()
            found = self.api.find(path) or {}
            status = found.get("status") or {}
            return found if ready(status) and "artifact" in status else None

        return wait_until(check, SECONDS, lambda: f"{path}: {(self.api.find(path) or {}).get('status')}")


def ready(status: dict) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or [])


@pytest.fixture(scope="module")
def site(flux, tmp_path_factory, run_play, show) -> Iterator[GitOps]:
    """With the first commit on the cluster."""
    made = GitOps(flux, tmp_path_factory.mktemp("gitops"), run_play)
    with GitServer(made.repo.bare.parent) as served, repository.ChartRepository(made.folder / "charts") as mirror:
        made.git_url, made.mirror_url = served.url, mirror.url
        made.first = made.publish(lock())
        stop = threading.Event()
        watcher = threading.Thread(target=made.watch, args=(stop,), daemon=True)
        watcher.start()
        began = time.time()
        made.bootstrap()
        made.await_applied(made.first, "first commit", began)
        yield made
        stop.set()
        watcher.join()
    show("flux: " + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in made.seconds.items()))


def test_the_cluster_holds_what_was_committed(site):
    """Every object of the bundle, field by field."""
    files = site.repo.read(path=FOLDER)
    listed = yaml.safe_load(files["kustomization.yaml"])["resources"]
    assert [name for name in listed if name.startswith("releases/")] == [
        f"releases/{name}.yaml" for name in ("cert-manager", "monitoring", "gpu-operator-pre", "gpu-operator")
    ]
    for name in listed:
        sent = yaml.safe_load(files[name])
        path = RELEASES if sent["kind"] == "HelmRelease" else f"{SOURCES}/{sent['kind'].lower()[:-1]}ies"
        found = site.api.get(f"{path}/{sent['metadata']['name']}")
        assert not lost(sent["spec"], found["spec"]), name
        # Flux owns it: what leaves the repository leaves the cluster
        assert found["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] == "lab"


def test_releases_carry_values_and_edges_of_the_recipe(site):
    spec = site.release("gpu-operator")["spec"]
    assert spec["values"] == {"driver": {"version": "595.91.07"}, "note": "keep ${THIS} as it is"}
    assert spec["dependsOn"] == [{"name": "gpu-operator-pre"}]
    assert site.release("gpu-operator-pre")["spec"]["dependsOn"] == [{"name": "cert-manager"}]
    assert "dependsOn" not in site.release("cert-manager")["spec"]


def test_the_mirror_is_read(site):
    """source-controller fetches the index of the chart repository that the bundle names."""
    (found,) = site.api.list(f"{SOURCES}/helmrepositories")
    assert found["spec"]["url"] == site.mirror_url
    stored = site.await_fetched(f"{SOURCES}/helmrepositories/{found['metadata']['name']}")
    assert stored["status"]["artifact"]["size"] > 0


def test_every_chart_of_a_release_can_be_fetched(site):
    """What helm-controller does first with a release: ask for its chart, from the mirror or from the repository."""
    releases = site.api.list(RELEASES)
    assert len(releases) == 4
    for release in releases:
        name, spec = release["metadata"]["name"], release["spec"]["chart"]["spec"]
        site.create("HelmChart", f"{SOURCES}/helmcharts", name, {"interval": "1m", **spec})
    for release in releases:
        chart = site.await_fetched(f"{SOURCES}/helmcharts/{release['metadata']['name']}")
        wanted = release["spec"]["chart"]["spec"]
        if wanted["sourceRef"]["kind"] == "HelmRepository":
            assert chart["status"]["observedChartName"] == wanted["chart"]
            assert f"version '{wanted['version']}'" in chart["status"]["conditions"][0]["message"]
        else:  # the manifests before gpu-operator, a chart in the bundle itself
            assert chart["status"]["observedChartName"] == "gpu-operator-pre"


def test_a_chart_that_the_mirror_lacks_is_told(site):
    """The check above can fail."""
    (source,) = site.api.list(f"{SOURCES}/helmrepositories")
    reference = {"kind": "HelmRepository", "name": source["metadata"]["name"]}
    spec = {"interval": "1m", "chart": "gpu-operator", "version": "9.9.9", "sourceRef": reference}
    site.create("HelmChart", f"{SOURCES}/helmcharts", "lacking", spec)

    def refusal() -> list[str]:
        found = (site.api.get(f"{SOURCES}/helmcharts/lacking").get("status") or {}).get("conditions") or []
        return [each["message"] for each in found if each["type"] == "Ready" and each["status"] == "False"]

    assert "no 'gpu-operator' chart with version matching '9.9.9' found" in wait_until(refusal, SECONDS, "a word")[0]


class TestTheWayOfAChange:
    """In this order: each test begins where the one before ended."""

    def test_a_second_commit_is_on_the_cluster_in_seconds(self, site):
        began = time.time()
        commit = site.publish(lock("600.10.01"))
        site.await_applied(commit, "change")
        assert site.release("gpu-operator")["spec"]["values"]["driver"] == {"version": "600.10.01"}
        assert site.seconds["change"] < 30
        site.await_applied(commit, "change with rendering and publishing", began)

    def test_git_revert_rolls_back(self, site):
        commit = site.revert()
        site.await_applied(commit, "revert")
        assert site.release("gpu-operator")["spec"]["values"]["driver"] == {"version": "595.91.07"}
        # the tree is that of the first commit again, integrity list included
        assert site.repo.read(path=FOLDER) == files_at(site, site.first)

    def test_a_component_that_leaves_the_recipe_leaves_the_cluster(self, site):
        assert site.release("monitoring") is not None
        commit = site.publish(lock(monitoring=False))
        site.await_applied(commit, "removal")
        wait_until(lambda: site.release("monitoring") is None, SECONDS, "the release is pruned")
        assert {each["metadata"]["name"] for each in site.api.list(RELEASES)} == {
            "cert-manager",
            "gpu-operator-pre",
            "gpu-operator",
        }

    def test_a_change_by_hand_on_the_cluster_is_put_right(self, site):
        path = f"{RELEASES}/gpu-operator"
        site.api.patch(path, {"spec": {"values": {"driver": {"version": "1.2.3"}}}}, "application/merge-patch+json")
        asked = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}}
        site.api.patch(f"{KUSTOMIZATIONS}/lab", asked, "application/merge-patch+json")
        wait_until(
            lambda: site.release("gpu-operator")["spec"]["values"]["driver"] == {"version": "595.91.07"},
            SECONDS,
            "the recipe's value is back",
        )

    def test_a_file_that_is_no_object_stops_the_commit_and_nothing_else(self, site):
        """A bundle damaged by hand in the repository: the cluster stays as the last good commit has it."""
        listed = yaml.safe_load(site.repo.read(path=FOLDER)["kustomization.yaml"])
        listed["resources"].append("releases/not-there.yaml")
        site.repo.push({f"{FOLDER}/kustomization.yaml": yaml.safe_dump(listed)})

        def refusal() -> list[str]:
            found = site.api.get(f"{KUSTOMIZATIONS}/lab")["status"]["conditions"]
            return [each["message"] for each in found if each["type"] == "Ready" and each["status"] == "False"]

        assert "not-there.yaml" in wait_until(refusal, SECONDS, "Flux's complaint")[0]
        assert site.release("gpu-operator")["spec"]["values"]["driver"] == {"version": "595.91.07"}
        site.await_applied(site.revert(), "back to good")


def files_at(site: GitOps, commit: str) -> dict[str, bytes]:
    return site.repo.read(branch=commit, path=FOLDER)


def test_flux_itself_refuses_what_its_schema_refuses(site):
    with pytest.raises(ApiError, match=r"spec\.interval"):
        site.create(
            "HelmRelease", RELEASES, "x", {"interval": "forever", "chartRef": {"kind": "OCIRepository", "name": "x"}}
        )


class TestProcesses:
    def test_they_listen_on_loopback_only(self, flux):
        listeners = listening([process.pid for process in flux.processes.values()])
        assert len(listeners) >= 3  # artifacts, and the health of both
        assert {address for address, _port in listeners} == {"127.0.0.1"}

    def test_kill_9_of_the_run_leaves_none(self):
        program = (
            "from tests.simfleet import EmbeddedCluster; from tests.flux.controllers import Flux; import time\n"
            "with EmbeddedCluster(nodes=0) as own, Flux(own):\n"
            "    print(own.dir, flush=True); time.sleep(300)\n"
        )
        run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=rundir.ROOT)
        folder = Path(run.stdout.readline().strip())
        names = {Path(f"/proc/{pid}/exe").readlink().name for pid in rundir.processes_of(folder)}
        assert {"source-controller", "kustomize-controller", "controlplane"} <= names
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()
        wait_until(lambda: not rundir.processes_of(folder), 15, "the end of every process")
