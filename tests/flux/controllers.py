# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flux's source-controller and kustomize-controller against an embedded cluster, as processes on loopback.

    with Flux(cluster):
        cluster.api.create(...)          GitRepository, Kustomization, HelmRepository... are reconciled

The controllers end with the test run, however that ends, and with the cluster.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.controlplane.build import build, say_to_stderr
from tests.flux import consumers
from tests.flux.install import install
from tests.simfleet import EmbeddedCluster, rundir
from tests.simfleet.api import wait_until
from tests.simfleet.supervisor import LIBC, PR_SET_PDEATHSIG

MODULE = Path(__file__).resolve().parent
PROGRAMS = {
    "source-controller": "github.com/fluxcd/source-controller",
    "kustomize-controller": "github.com/fluxcd/kustomize-controller",
}
NAMESPACE = "flux-system"
START_SECONDS, STOP_SECONDS = 60, 5


class FluxFailed(RuntimeError):
    """A controller ended; the message carries the end of its log."""


class Flux:
    """Installs Flux's CRDs on the cluster and runs both controllers. There is no helm-controller."""

    def __init__(self, cluster: EmbeddedCluster, say: Callable[[str], None] = say_to_stderr):
        self.cluster, self._say = cluster, say
        self.dir = cluster.dir / "flux"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Flux:
        programs = build(MODULE, PROGRAMS, self._say)
        install(self.cluster.api, consumers.crds(self._say)["flux"])
        self.cluster.api.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace(NAMESPACE))
        (self.dir / "artifacts").mkdir(parents=True)
        port = free_port()
        storage = [f"--storage-path={self.dir / 'artifacts'}", f"--storage-addr=127.0.0.1:{port}"]
        try:
            self._start(programs["source-controller"], *storage, f"--storage-adv-addr=127.0.0.1:{port}")
            # what depends on something not ready yet is looked at again so soon
            self._start(programs["kustomize-controller"], "--requeue-dependency=1s")
            wait_until(lambda: self.check() or listens(port), START_SECONDS, "source-controller serves its artifacts")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _start(self, program: Path, *flags: str) -> None:
        parent = os.getpid()

        def die_with_parent() -> None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.dir),
            "TMPDIR": str(self.dir),
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "RUNTIME_NAMESPACE": NAMESPACE,
            rundir.MARKER: str(self.cluster.dir),  # so that they are found should they outlive the cluster
        }
        # every address is set: the defaults listen on all interfaces
        common = ["--metrics-addr=0", "--health-addr=127.0.0.1:0", "--enable-leader-election=false"]
        with self.log(program.name).open("wb") as log:
            self.processes[program.name] = subprocess.Popen(
                [str(program), *common, *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=self.dir,
                preexec_fn=die_with_parent,
            )

    def log(self, name: str) -> Path:
        return self.dir / f"{name}.log"

    def check(self) -> None:
        """Raise FluxFailed when a controller has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                end = self.log(name).read_text(errors="replace").splitlines()[-15:]
                raise FluxFailed("\n".join([f"{name} ended ({process.returncode})", *end]))

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def namespace(name: str) -> dict:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
