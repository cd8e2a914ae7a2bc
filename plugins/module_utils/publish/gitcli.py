# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The git command line, shut off from the caller's repository, hooks and prompts."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.publish import faults
from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import Access
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Unavailable

REMOTE = "goodput-site"  # a name of its own: users configure things for "origin"
MINIMUM = (2, 31)  # the first that takes settings from GIT_CONFIG_COUNT

# what the user's own configuration may not change; transport settings (proxy, CA, insteadOf) stay theirs
_SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.attributesFile", os.devnull),
    ("core.autocrlf", "false"),
    ("core.fsmonitor", "false"),
    ("core.fsync", "none"),  # the repository is thrown away after the push
    ("core.fsyncObjectFiles", "false"),
    ("core.quotePath", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("i18n.commitEncoding", "UTF-8"),
    ("maintenance.auto", "false"),
    ("push.followTags", "false"),
    ("push.gpgSign", "false"),
    ("push.recurseSubmodules", "no"),
    ("submodule.recurse", "false"),
)
# of the caller's GIT_* variables only these mean the transport
_KEPT = ("GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_SSL_VERSION")


@dataclass(frozen=True)
class Output:
    """What a command left: exit status, stdout as bytes, stderr without secrets."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")

    @property
    def fields(self) -> list[str]:
        """What a command with -z listed."""
        return self.text.split("\0")[:-1]


class Git:
    """Runs git on one bare repository in `folder`. Every command must end before `deadline` (monotonic seconds)."""

    def __init__(self, folder: str, access: Access, deadline: float, settings: tuple[tuple[str, str], ...] = ()):
        self.folder = folder
        self.access = access
        self.deadline = deadline
        self.program = shutil.which("git") or ""
        if not self.program:
            raise Unavailable(
                "git is not installed where this module runs",
                hint="install git 2.31 or newer there, or add it to PATH",
                code="git-missing",
            )
        remote = (f"remote.{REMOTE}.url", access.url)
        self._env = environment(folder, access, (*_SETTINGS, remote, *access.config, *settings))

    def check_version(self) -> None:
        """Raises Unavailable when git is too old."""
        found = re.search(r"(\d+)\.(\d+)", self("version").text)
        if not found or (int(found[1]), int(found[2])) < MINIMUM:
            raise Unavailable(
                f"git {found[0] if found else '?'} is too old", hint="2.31 or newer is needed", code="git-too-old"
            )

    def __call__(self, *args: str, doing: str = "", **more) -> Output:
        """The output of a command that must succeed. Raises FleetError; `doing` says what for, such as "reach"."""
        output = self.run(*args, **more)
        if output.status:
            if doing:
                raise faults.explain(doing, self.access.redact(self.access.url), output.err)
            raise FleetError(
                f"git {args[0]} failed: {faults.complaint(output.err) or output.status}", code="git-failed"
            )
        return output

    def run(
        self, *args: str, stdin: bytes | None = None, env: dict[str, str] | None = None, cwd: str | None = None
    ) -> Output:
        """The output of a command, whatever its exit status. Raises Unavailable when the time is up."""
        process = self._start(args, env, cwd, stdin is not None, subprocess.PIPE)
        left = self.deadline - time.monotonic()
        try:
            out, err = process.communicate(stdin, timeout=max(left, 0.1))
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"git {args[0]} on {self.access.redact(self.access.url)} did not end in time",
                path="timeout",
                hint="check that the server answers, or raise timeout",
                code="timeout",
            ) from None
        finally:
            _end(process)
        return Output(process.returncode, out, self.access.redact(err.decode("utf-8", "replace")))

    def first(self, limit: int, *args: str) -> tuple[bytes, bool]:
        """At most `limit` bytes of a command's stdout, and whether there was more. Ended when the time is up."""
        process = self._start(args, None, None, False, subprocess.DEVNULL)
        timer = threading.Timer(max(self.deadline - time.monotonic(), 0.1), _end, [process])
        timer.start()
        try:
            content = process.stdout.read(limit + 1)
        finally:
            timer.cancel()
            _end(process)
            process.stdout.close()
        return content[:limit], len(content) > limit

    def _start(self, args, env, cwd, feed: bool, stderr) -> subprocess.Popen:
        # own process group: ending git must also end its transport helpers
        return subprocess.Popen(
            [self.program, *args],
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**self._env, **(env or {})},
            cwd=cwd or self.folder,
            start_new_session=True,
        )


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(folder: str, access: Access, settings: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The caller's environment minus its GIT_* variables, plus what this run needs.

    Settings travel here and not in arguments, because some are secret.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key in _KEPT}
    for variable in ("SSH_ASKPASS", "DISPLAY", "LANGUAGE"):
        env.pop(variable, None)
    env |= {
        "LC_ALL": "C",
        "GIT_DIR": folder,
        "GIT_ASKPASS": "",  # empty: nobody is asked
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ADVICE": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for index, (key, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return env | access.env
