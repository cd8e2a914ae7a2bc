"""An embedded cluster: control plane, kwok and the simulated kubelet, under a supervisor that outlives nobody."""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.build import MODULE, PACKAGES, build, say_to_stderr
from tests.simfleet import rundir
from tests.simfleet.access import Access
from tests.simfleet.api import Api
from tests.simfleet.faults import Faults
from tests.simfleet.nodes import Fleet

STOP_SECONDS = 20


class ClusterFailed(RuntimeError):
    """The cluster did not come up or has ended; the message carries the end of the log that says why."""


class EmbeddedCluster:
    """
    with EmbeddedCluster(nodes=8, profile="demo") as cluster:
        cluster.kubeconfig   path of the administrator's kubeconfig
        cluster.api          a small client with all rights (tests.simfleet.api.Api)
        cluster.fleet        the nodes: create, set_driver, reboot, set_not_ready... (tests.simfleet.nodes.Fleet)
        cluster.access       kubeconfigs with fewer rights (tests.simfleet.access.Access)
        cluster.faults       make pods fail, and heal them (tests.simfleet.faults.Faults)
        cluster.nodes        names of the nodes made at the start
        cluster.scripts      folder of the scripts that pods may name

    nodes=None takes the profile's own number, nodes=0 makes none. With detach=True it stays up when this process
    ends, until stop() or `python -m tests.simfleet down`. `controlplane_flags` go to the control plane's program,
    such as "--apiserver=--feature-gates=X=true".
    """

    def __init__(
        self,
        nodes: int | None = None,
        profile: str | dict[str, Any] = "demo",
        name: str | None = None,
        detach: bool = False,
        controlplane_flags: Sequence[str] = (),
        say: Callable[[str], None] = say_to_stderr,
    ):
        self._count, self._profile, self._detach = nodes, profile, detach
        self._name = name or f"test-{os.getpid()}-{secrets.token_hex(3)}"
        self._flags, self._say = controlplane_flags, say
        self._supervisor: subprocess.Popen[str] | None = None
        self.nodes: list[str] = []

    def __enter__(self) -> EmbeddedCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> EmbeddedCluster:
        programs = build(MODULE, PACKAGES, self._say)
        try:
            self._connect(self._run(programs))
        except ClusterFailed as failure:
            if "not ready" not in str(failure):
                raise
            # An API server that starts can get stuck (seen once in some hundreds of starts): a second one says whether
            # that was it.
            self._say(f"the cluster did not come up, and is started once more: {failure}")
            self._connect(self._run(programs))
        try:
            if self._count != 0:
                self.nodes = self.fleet.create(self._profile, self._count)
                self.fleet.wait_ready(len(self.nodes))
        except BaseException:
            self.stop()
            raise
        return self

    def _run(self, programs: dict[str, Path]) -> dict[str, Any]:
        self.dir, lock = rundir.claim(rundir.run_root(), self._name)
        try:
            self._start_supervisor(programs, lock)
        finally:
            os.close(lock)  # the supervisor has it now
        try:
            return self._await_ready()
        except BaseException:
            self.stop()
            raise

    @classmethod
    def attach(cls, name: str) -> EmbeddedCluster:
        """A cluster that is up already. Raises ClusterFailed when there is none of that name."""
        folder = rundir.run_root() / name
        state = rundir.read_state(folder)
        if not rundir.is_alive(folder) or "pid" not in state:
            raise ClusterFailed(f"no cluster named {name} is up")
        cluster = cls(name=name, detach=True)
        cluster.dir = folder
        cluster._connect(state)
        cluster.nodes = cluster.fleet.names()
        return cluster

    def _start_supervisor(self, programs: dict[str, Path], lock: int) -> None:
        command = [sys.executable, "-m", "tests.simfleet.supervisor", f"--dir={self.dir}", f"--lock-fd={lock}"]
        command += [f"--{program}={path}" for program, path in programs.items()]
        command += [f"--controlplane-flag={flag}" for flag in self._flags]
        with (self.dir / "supervisor.log").open("wb") as log:
            self._supervisor = subprocess.Popen(
                command + (["--detached"] if self._detach else []),
                stdin=subprocess.DEVNULL if self._detach else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=rundir.ROOT,
                text=True,
                pass_fds=(lock,),
                env={**os.environ, rundir.MARKER: str(self.dir)},
                start_new_session=True,  # Ctrl-C is for the tests, which then stop it in good order
            )

    def _await_ready(self) -> dict[str, Any]:
        assert self._supervisor is not None and self._supervisor.stdout is not None
        with self._supervisor.stdout as output:
            # Its own deadline comes first, and says more; this one is for a supervisor that hangs.
            ready, _, _ = select.select([output], [], [], rundir.READY_SECONDS + 10)
            line = output.readline() if ready else ""
        if not line:
            raise ClusterFailed(f"the supervisor said nothing\n{tail(self.dir / 'supervisor.log')}")
        state = json.loads(line)
        if "error" in state:
            raise ClusterFailed(state["error"])
        return state

    def _connect(self, state: dict[str, Any]) -> None:
        self.pid: int = state["pid"]
        self.kubeconfig = Path(state["kubeconfig"])
        self.scripts = self.dir / "scripts"
        self.api = Api(self.kubeconfig)
        self.fleet = Fleet(self.api, state["kubelet_port"])
        self.access = Access(self.api, self.kubeconfig, self.dir / "access")
        self.faults = Faults(self.api)

    def script(self, name: str, text: str) -> str:
        """Write a script that pods can name in the annotation sim.goodput.fleet/script; returns the name."""
        path = self.scripts / name
        path.write_text(text)
        path.chmod(0o755)
        return name

    def check(self) -> None:
        """Raise ClusterFailed when one of its processes has ended since."""
        if not rundir.is_alive(self.dir):
            error = rundir.read_state(self.dir).get("error", "it was stopped from outside")
            raise ClusterFailed(f"cluster {self._name} is gone: {error}")

    def stop(self) -> None:
        """End every process and remove the state. Fine to call twice."""
        supervisor = self._supervisor
        if supervisor is None:
            stop_by_name(self.dir)
            return
        if supervisor.stdin is not None:
            supervisor.stdin.close()
        else:
            supervisor.terminate()
        try:
            supervisor.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
        rundir.end_processes_of(self.dir)


def stop_by_name(folder: Path) -> None:
    """End a cluster that another process started."""
    pid = rundir.read_state(folder).get("pid")
    if pid is not None and rundir.is_alive(folder):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while rundir.is_alive(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    with rundir.cleaning(folder.parent):
        rundir.remove(folder)


def tail(path: Path, lines: int = 20) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
