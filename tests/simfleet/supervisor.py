"""Runs one cluster's processes and sees to it that none outlives it.

    python -m tests.simfleet.supervisor --dir D --lock-fd N --controlplane BIN --kwok BIN [--detached]

Started by EmbeddedCluster. Its standard input is a lifeline: at its end, which also comes when the parent is killed,
everything stops. Children get a signal when the supervisor itself dies, and, since it adopts orphans, it finds what
they left. One JSON line on standard output says that the cluster is ready, or why it is not.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.simfleet import rundir
from tests.simfleet.rundir import READY_SECONDS

STOP_SECONDS = 3
LOG_TAIL_LINES = 15
STAGES = Path(__file__).with_name("stages.yaml")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

LIBC = ctypes.CDLL(None, use_errno=True)


class Failed(RuntimeError):
    """The cluster did not come up, or one of its processes ended."""


class StopRequested(Exception):
    """A signal, or the lifeline's end."""


class Supervisor:
    def __init__(self, args: argparse.Namespace):
        self.dir: Path = args.dir
        self.args = args
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.poll = select.poll()
        self.wakeup = wake_on_signals()
        self.poll.register(self.wakeup, select.POLLIN)
        self.lifeline = None if args.detached else sys.stdin.fileno()
        if self.lifeline is not None:
            self.poll.register(self.lifeline, select.POLLIN)

    # ---- start ----

    def start(self) -> dict[str, Any]:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        began = time.monotonic()
        kubeconfig = self.dir / "kubeconfig"
        self.spawn(
            "controlplane",
            [
                self.args.controlplane,
                f"--dir={self.dir}",
                f"--kubeconfig={kubeconfig}",
                # Simulated nodes send no heartbeats; a test that wants a NotReady node makes one.
                "--controller-manager=--node-monitor-grace-period=24h",
                # It writes an annotation to every node, anew whenever their number passes 100, 500, 1,000.
                "--controller-manager=--controllers=*,-ttl-controller",
                *self.args.controlplane_flag,
            ],
        )
        self.await_file(kubeconfig, "the control plane")
        self.spawn(
            "kubelet",
            [sys.executable, "-m", "tests.simfleet.kubelet", f"--kubeconfig={kubeconfig}", f"--dir={self.dir}"],
            on_parent_death=signal.SIGTERM,  # it has scripts of its own to end
        )
        self.spawn(
            "kwok",
            [
                self.args.kwok,
                f"--config={STAGES}",
                f"--kubeconfig={kubeconfig}",
                "--manage-all-nodes=true",
                "--node-lease-duration-seconds=0",
            ],
        )
        self.await_file(self.dir / "kubelet.json", "the simulated kubelet")
        return {
            "name": self.dir.name,
            "pid": os.getpid(),
            "detached": bool(self.args.detached),
            "kubeconfig": str(kubeconfig),
            "kubelet_port": json.loads((self.dir / "kubelet.json").read_text())["port"],
            "seconds": round(time.monotonic() - began, 2),
        }

    def spawn(self, name: str, command: list[str], on_parent_death: signal.Signals = signal.SIGKILL) -> None:
        parent = os.getpid()

        def die_with_parent() -> None:
            # Bound to the thread that starts it, which is this program's only one.
            LIBC.prctl(PR_SET_PDEATHSIG, on_parent_death, 0, 0, 0)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

        # kwok and client libraries look for settings in HOME, which must not matter.
        env = {**os.environ, rundir.MARKER: str(self.dir), "HOME": str(self.dir), "KWOK_WORKDIR": str(self.dir)}
        env.pop("KUBECONFIG", None)
        with self.log_path(name).open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=rundir.ROOT,
                preexec_fn=die_with_parent,
            )
        self.children[name] = child
        self.poll.register(os.pidfd_open(child.pid), select.POLLIN)

    def await_file(self, path: Path, what: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not path.exists():
            self.check(pause=0.02)
            if time.monotonic() > deadline:
                raise Failed(f"{what} is not ready after {READY_SECONDS} s\n{self.log_tails()}")

    # ---- watch ----

    def check(self, pause: float | None) -> None:
        """Wait up to `pause` seconds (None: for ever); raises when something ended."""
        for descriptor, _ in self.poll.poll(None if pause is None else pause * 1000):
            if descriptor in (self.wakeup, self.lifeline):
                raise StopRequested
        for name, child in self.children.items():
            if child.poll() is not None:
                how = f"exit code {child.returncode}" if child.returncode >= 0 else f"signal {-child.returncode}"
                raise Failed(f"{name} ended ({how})\n{self.log_tail(name)}")

    def log_path(self, name: str) -> Path:
        return self.dir / f"{name}.log"

    def log_tail(self, name: str) -> str:
        lines = self.log_path(name).read_text(errors="replace").splitlines()
        return "\n".join([f"--- end of {self.log_path(name)}", *lines[-LOG_TAIL_LINES:]])

    def log_tails(self) -> str:
        return "\n".join(self.log_tail(name) for name in self.children)

    # ---- stop ----

    def stop(self) -> None:
        """The kubelet first, so that it can end its scripts; then what is left, whoever started it."""
        for child in reversed(self.children.values()):
            child.terminate()
        give_up = time.monotonic() + STOP_SECONDS
        for child in self.children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, give_up - time.monotonic()))
        while left := descendants(os.getpid()):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.01)


def descendants(of: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # pid (name) state parent ...; a name may hold blanks and brackets
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {of}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {of})


def wake_on_signals() -> int:
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--lock-fd", type=int, required=True)
    parser.add_argument("--controlplane", required=True)
    parser.add_argument("--kwok", required=True)
    parser.add_argument("--controlplane-flag", action="append", default=[])
    parser.add_argument("--detached", action="store_true")
    args = parser.parse_args()
    os.set_inheritable(args.lock_fd, False)
    supervisor = Supervisor(args)

    problem = None
    try:
        state = supervisor.start()
        rundir.write_state(supervisor.dir, state)
        print(json.dumps(state), flush=True)
        while True:
            supervisor.check(pause=None)
    except StopRequested:
        pass
    except Failed as error:
        problem = str(error)
    finally:
        supervisor.stop()
    if problem is None:
        shutil.rmtree(supervisor.dir, ignore_errors=True)
        return 0
    # The logs stay until the next start, for whoever wants to know why.
    rundir.write_state(supervisor.dir, {**rundir.read_state(supervisor.dir), "error": problem})
    with contextlib.suppress(OSError):
        print(json.dumps({"error": problem}), flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
