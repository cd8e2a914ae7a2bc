"""Builds the stand-in for libnvidia-ml, once for each version of its source.

    path = built()                              .build/cache/nvml-<digest>/libnvidia-ml.so.1
    environment = {"NVML_STANDIN": facts(tmp_path, "3 remap_failure 1")}

Takes the machine's C compiler, or else the one in the PyPI package ziglang.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml.c")
CACHE = Path(__file__).parents[3] / ".build" / "cache"
ZIG = "ziglang==0.17.0"
FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]


def built() -> Path:
    key = hashlib.sha256(SOURCE.read_bytes() + repr(FLAGS).encode()).hexdigest()[:16]
    library = CACHE / f"nvml-{key}" / "libnvidia-ml.so.1"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            fresh = Path(scratch) / library.name
            command, environment = _compiler()
            done = subprocess.run(
                [*command, *FLAGS, "-o", str(fresh), str(SOURCE)], capture_output=True, text=True, env=environment
            )
            assert done.returncode == 0, f"{command[0]} cannot build {SOURCE}:\n{done.stderr}"
            fresh.replace(library)  # tests of several processes may build at once
    return library


def facts(folder: Path, *lines: str) -> str:
    """A file that says what is wrong; its path."""
    path = folder / "nvml-facts"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def _compiler() -> tuple[list[str], dict[str, str]]:
    own = os.environ.get("CC") or next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    return ([own], dict(os.environ)) if own else zig()


def zig() -> tuple[list[str], dict[str, str]]:
    """The compiler of the PyPI package, in a folder of its own: only machines without any other need it."""
    home = CACHE / ZIG.replace("==", "-")
    if not (home / "ziglang").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--target", str(home), ZIG], capture_output=True, text=True)
        assert done.returncode == 0, f"no C compiler on the PATH, and `pip install {ZIG}` failed:\n{done.stderr}"
    return [sys.executable, "-m", "ziglang", "cc"], {**os.environ, "PYTHONPATH": str(home)}
