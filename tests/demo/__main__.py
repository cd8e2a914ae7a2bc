"""`make demo`: the whole way from criteria to drift on an embedded cluster. KEEP=1 leaves the cluster up."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".build/collections"
sys.path.insert(0, str(COLLECTIONS))

from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

from tests.controlplane.build import BuildFailed
from tests.controlplane.gotool import GoMissing
from tests.simfleet import ClusterFailed, EmbeddedCluster, rundir
from tests.simfleet.nodes import driver_labels
from tests.standin import charts, repository
from tests.tools import tools

SITE = ROOT / "gitops/clusters/demo"
REPORTS = Path(os.environ.get("DEMO_REPORTS") or ROOT / "reports/demo")
NAME = "demo"
NODES = 8
PATIENCE = 10  # seconds
OTHER_DRIVER = "580.105.08"
WORKLOAD = ("gpu-operator", "daemonset/nvidia-dcgm-exporter", "main=registry.example.com/debug/dcgm-exporter:my-try")

PLAN = f"""\
What happens now, on this machine only (loopback, nothing outside is changed):
  1. a real Kubernetes control plane with {NODES} simulated H100 nodes starts
  2. a recipe is resolved from the catalogue: EKS, H100, Ubuntu, inference, Dynamo, and this site's overlay
  3. it is rendered as a Helm bundle whose charts come from a mirror, and committed to a Git repository
  4. helm installs it, one release after the other, each healthy before the next
  5. the cluster is compared with the lock file in Git: in sync
  6. somebody changes a node's driver and an image by hand: both are found, with the node to certify again
"""


CONFIG = f"""\
[defaults]
collections_path = {COLLECTIONS}
stdout_callback = demo
callback_plugins = {Path(__file__).parent / "callback"}
localhost_warning = false
log_path = {REPORTS / "ansible.log"}
[inventory]
inventory_unparsed_warning = false
"""


class DemoFailed(Exception):
    """The demo cannot go on; the text says why, for people."""


def main() -> int:
    keep = os.environ.get("KEEP", "") not in ("", "0")
    began = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started this in the background
        signal.signal(number, signal.default_int_handler)
    print(PLAN, flush=True)
    try:
        with demo(keep) as (cluster, folder, found):
            passed = playbook(cluster, folder)
            end(cluster, folder, keep or found, passed, time.monotonic() - began)
            return 0 if passed else 1
    except KeyboardInterrupt:
        return 130
    except (
        BuildFailed,
        GoMissing,
        ClusterFailed,
        DemoFailed,
        FleetError,
        tools.ToolError,
        TimeoutError,
        OSError,
    ) as error:
        print(f"\nThe demo could not run: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def demo(keep: bool) -> Iterator[tuple[EmbeddedCluster, Path, bool]]:
    """The cluster, its folder for the demo, and whether an earlier run had left it up."""
    say("The stage")
    try:
        lock = recipe()
        cluster, found = start(lock, keep)
    except KeyboardInterrupt:  # a cluster that has not started takes itself away
        print("\nStopped before the cluster was up.", file=sys.stderr)
        raise
    try:
        folder = cluster.dir / "demo"
        folder.mkdir(exist_ok=True)
        with contextlib.ExitStack() as stack:
            for helper in helpers(cluster, folder, lock, keep or found):
                stack.callback(end_helper, helper)
            yield cluster, folder, found
    except KeyboardInterrupt:
        keep = False  # only a demo that has run its course leaves something behind
        print(
            f"\nStopped. The cluster {'of the earlier run stays up' if found else 'is being ended'}.", file=sys.stderr
        )
        raise
    finally:
        if not keep and not found:
            cluster.stop()


def recipe() -> dict:
    """The lock that the playbook will resolve: the stand-in charts are made for it."""
    site = yamltree.load_file(str(SITE / "cluster.yaml")).data
    layers = [
        str(ROOT / "gitops/catalog") if layer == "shipped" else str(SITE / layer) for layer in site["install_catalog"]
    ]
    return resolve(load_catalog(layers), site["install_criteria"])


def driver_of(lock: dict) -> str:
    facts = (component.get("nodeFacts") or {} for component in lock["spec"]["components"])
    return next(fact["driver"]["value"] for fact in facts if "driver" in fact)


def start(lock: dict, keep: bool) -> tuple[EmbeddedCluster, bool]:
    driver = driver_of(lock)
    if rundir.is_alive(rundir.run_root() / NAME):
        with timed("the cluster that an earlier run left up (make clean ends it)"):
            cluster = EmbeddedCluster.attach(NAME)
            for node in cluster.nodes:
                cluster.fleet.set_driver(node, driver)  # the node of the earlier run was repaired
        return cluster, True
    group = {"prefix": "gpu", "accelerator": "h100", "service": "eks", "os": "ubuntu-24.04", "driver": driver,
             "perRack": 4, "zones": ["us-east-1a", "us-east-1b"]}  # fmt: skip
    with timed(f"Kubernetes control plane and {NODES} nodes"):
        profile = {"nodes": NODES, "groups": [group]}
        return EmbeddedCluster(profile=profile, name=NAME, detach=keep, say=say_more).start(), False


def helpers(cluster: EmbeddedCluster, folder: Path, lock: dict, detached: bool) -> Iterator[subprocess.Popen]:
    """The chart repository, which stands in for a mirror, and what plays the operators; those that must be ended."""
    with timed("chart repository, Git repository"):
        lock_file = folder / "recipe.lock.yaml"
        lock_file.write_text(yamltree.dump(lock))
        if not (folder / "gitops.git").exists():
            run("git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder / "gitops.git"))
        address = folder / "mirror"
        if address.exists():
            repository.store(folder / "charts", charts.archives(lock))  # the one that still runs serves it
            return
        arguments = ["--lock", str(lock_file), *(["--detached"] if detached else [])]
        serve = helper(cluster, folder, "serve", "--dir", str(folder / "charts"), *arguments)
        address.write_text(first_line(serve, folder / "serve.log"))
        operate = helper(cluster, folder, "operate", "--kubeconfig", str(cluster.kubeconfig), *arguments)
        first_line(operate, folder / "operate.log")
    if not detached:
        yield serve
        yield operate


def helper(cluster: EmbeddedCluster, folder: Path, *arguments: str) -> subprocess.Popen:
    """A process of tests.standin. It carries the cluster's mark, so that it ends with the cluster at the latest."""
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.standin", *arguments],
            stdin=subprocess.DEVNULL if "--detached" in arguments else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(COLLECTIONS), rundir.MARKER: str(cluster.dir)},
        )


def first_line(process: subprocess.Popen, log: Path) -> str:
    line = process.stdout.readline().strip()
    if not line:
        raise DemoFailed(f"{' '.join(process.args[1:4])} ended: {log.read_text()[-1000:]}")
    return line


def end_helper(process: subprocess.Popen) -> None:
    process.terminate()
    process.wait(10)


def playbook(cluster: EmbeddedCluster, folder: Path) -> bool:
    """Run playbooks/demo.yml; whether it passed."""
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    namespace, workload, image = WORKLOAD
    labels = driver_labels(OTHER_DRIVER)
    variables = {
        "demo_kubeconfig": str(cluster.kubeconfig),
        "demo_reports": str(REPORTS),
        "demo_node": cluster.nodes[-2],
        "demo_driver": OTHER_DRIVER,
        "demo_driver_labels": [f"{key}={value}" for key, value in labels.items()],
        "demo_namespace": namespace,
        "demo_workload": workload,
        "demo_image": image,
    }
    command = [
        str(ROOT / ".venv/bin/ansible-playbook"),
        "goodput.fleet.demo",
        "-e",
        "@cluster.yaml",
        "-e",
        f"@{settings(cluster, folder)}",
        "-e",
        json.dumps(variables),
    ]
    complaints = folder / "stderr.log"
    with (
        complaints.open("w") as log,
        subprocess.Popen(command, cwd=SITE, env=environment(folder), stderr=log) as running,
    ):
        try:
            passed = running.wait() == 0
        except KeyboardInterrupt:
            # a terminal has told it already; in any case it must end its own children
            running.send_signal(signal.SIGINT)
            try:
                running.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                running.kill()
            raise
    print(complaints.read_text(), end="", file=sys.stderr, flush=True)
    return passed


def settings(cluster: EmbeddedCluster, folder: Path) -> Path:
    """What cluster.yaml leaves open, as the roles' variables: addresses, tools and patience on this machine."""
    repository_url, kubeconfig = f"file://{folder / 'gitops.git'}", str(cluster.kubeconfig)
    variables = {
        "install_repo": repository_url,
        "install_mirror_charts": (folder / "mirror").read_text(),
        "install_mirror_images": "registry.example.com/mirror",
        "install_charts": str(folder / "charts"),
        "install_helm": str(tools.helm()),
        "install_kubectl": str(tools.kubectl()),
        "install_kubeconfig": kubeconfig,
        "install_live": "required",
        "install_apply": True,
        "install_health_interval": 0.5,
        "install_health_timeout": 120,
        "install_bundle_options": {"timeout": 120},
        "drift_check_repo": repository_url,
        "drift_check_path": f"clusters/{NAME}",
        "drift_check_kubeconfig": kubeconfig,
        "drift_check_cluster": NAME,
    }
    path = folder / "settings.yaml"
    path.write_text(yamltree.dump(variables))
    return path


def environment(folder: Path) -> dict[str, str]:
    """Nothing of the user's own settings of Ansible, Helm, Git or Kubernetes."""
    config, temporary = folder / "ansible.cfg", folder / "tmp"
    config.write_text(CONFIG)
    temporary.mkdir(exist_ok=True)
    foreign = ("ANSIBLE_", "HELM_", "K8S_AUTH_", "GIT_", "GOODPUT_")
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
        "HOME": str(folder),
        "TMPDIR": str(temporary),  # goes with the cluster, also when the playbook was interrupted
        "KUBECONFIG": os.devnull,
        "ANSIBLE_CONFIG": str(config),
        "DEMO_TASKS": str(REPORTS / "tasks.jsonl"),
    }


def end(cluster: EmbeddedCluster, folder: Path, stays: bool, passed: bool, seconds: float) -> None:
    print()
    if passed:
        print(f"Done in {seconds:.0f} s.")
        print(f"  report    {os.path.relpath(REPORTS / 'index.html')}")
        print(f"  drift     {os.path.relpath(REPORTS / 'drift.md')}, .json, .junit.xml, .sarif")
    else:
        print("The demo failed; the last message above says at what.", file=sys.stderr)
        print(f"  log       {os.path.relpath(REPORTS / 'ansible.log')}", file=sys.stderr)
        print(f"  results   {os.path.relpath(REPORTS / 'tasks.jsonl')}", file=sys.stderr)
    if not stays:
        if passed:
            print("The cluster is gone. make demo KEEP=1 leaves it up.")
        return
    print(f"""
The cluster is up. Look around:
  export KUBECONFIG={cluster.kubeconfig}
  export PATH={ROOT / ".venv/bin"}:{tools.kubectl().parent}:$PATH
  kubectl get nodes,pods -A
  git --git-dir {folder / "gitops.git"} log --stat
Compare it, see what would be done, put the image right (the driver is not for Helm to change):
  export ANSIBLE_COLLECTIONS_PATH={COLLECTIONS} DEMO={folder / "settings.yaml"}
  cd {SITE}
  ansible-playbook goodput.fleet.drift -e @$DEMO
  ansible-playbook goodput.fleet.install -e @cluster.yaml -e @$DEMO -e goodput_mode=dry_run --diff
  ansible-playbook goodput.fleet.install -e @cluster.yaml -e @$DEMO -e goodput_mode=enforce
In {ROOT}, the demo once more on this cluster, and its end:
  make demo KEEP=1
  make clean""")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise DemoFailed(f"{' '.join(command)}: {done.stderr.strip()}")


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"  + {what:<70} {time.monotonic() - began:5.1f} s", flush=True)


def say(text: str) -> None:
    print(text, flush=True)


def say_more(text: str) -> None:
    print(f"    {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
