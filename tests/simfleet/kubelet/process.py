"""A script that plays a container: a process group of its own, its output going to a log, no thread per process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.simfleet.kubelet.logs import ContainerLog


class ContainerProcess:
    def __init__(self, command: list[str], env: Mapping[str, str], folder: Path, log: ContainerLog):
        """Start it. Raises OSError when the command cannot be run."""
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._popen = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        self._output = self._popen.stdout.fileno()
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)
        self._pidfd = os.pidfd_open(self._popen.pid)
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._pidfd, self._reap)

    async def wait(self) -> int:
        """Exit code as a container runtime gives it: 128 + n after signal n."""
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        """As container runtimes do it, ask the first process only."""
        self._popen.terminate()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def _read(self) -> bool:
        """Move what is there into the log; False at the end of the output."""
        try:
            data = os.read(self._output, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            self._log.write(data)
            return True
        self._loop.remove_reader(self._output)
        return False

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        code = self._popen.wait()
        while self._read():
            pass
        self._loop.remove_reader(self._output)
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        # What it left in the background dies with its container.
        self.kill()
        if not self._ended.done():
            self._ended.set_result(code if code >= 0 else 128 - code)
