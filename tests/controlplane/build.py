"""Build the Go programs the tests run, once per content.

    build(Path("tests/controlplane"), {"controlplane": ".", "kwok": "sigs.k8s.io/kwok/cmd/kwok"})

returns the path of each program. The result is kept under a key of everything that goes into it (go.mod, go.sum, all
.go files, the flags, the Go version), so a second call costs a few milliseconds. Builders that run at the same time
wait for each other. Modules and compiled packages are kept in the project's own folder, so a clone can be thrown
away whole, unless GOMODCACHE or GOCACHE say otherwise. GOODPUT_CACHE moves it all.

    python -m tests.controlplane.build            builds the control plane and kwok, and prints their paths
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.controlplane import gotool

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path(__file__).resolve().parent
PACKAGES = {"controlplane": ".", "kwok": "sigs.k8s.io/kwok/cmd/kwok"}
# -modcacherw: so that removing the cache needs no chmod first
FLAGS = ("-mod=readonly", "-modcacherw", "-buildvcs=false", "-trimpath")
PROGRESS_SECONDS = 15
PATIENCE = 10  # seconds


class BuildFailed(RuntimeError):
    """The Go build failed; the message carries the end of what `go` said."""


def say_to_stderr(line: str) -> None:
    print(f"build: {line}", file=sys.stderr, flush=True)


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    return Path(environ.get("GOODPUT_CACHE") or ROOT / ".build" / "cache").resolve()


def build(module_dir: Path, packages: Mapping[str, str], say: Callable[[str], None] = say_to_stderr) -> dict[str, Path]:
    """Return {program name: executable} for {program name: Go package}, building what is not there yet.

    Raises BuildFailed, or gotool.GoMissing when there is no Go to build with.
    """
    module_dir = module_dir.resolve()
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    needed = go_line(module_dir)
    go, version = gotool.find_go(needed, cache, say)
    name = module_dir.name
    folder = cache / f"{name}-{content_key(module_dir, packages, version)[:16]}"
    programs = {program: folder / "bin" / program for program in packages}
    if folder.exists():
        return programs
    with only_one(cache / f"{name}.lock", lambda: say(f"waiting for another build of {name}")):
        if not folder.exists():  # else the other builder has just made it
            compile_all(go, module_dir, packages, folder, say)
    return programs


def go_line(module_dir: Path) -> str:
    match = re.search(r"^go (\S+)", (module_dir / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildFailed(f"{module_dir / 'go.mod'} has no `go` line")
    return match.group(1)


def flags_for(module_dir: Path) -> list[str]:
    """Small binaries; and Kubernetes itself learns its version only from the linker."""
    linker = ["-s", "-w"]
    kubernetes = re.search(
        r"^(?:require)?\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", (module_dir / "go.mod").read_text(), re.M
    )
    if kubernetes:
        names = zip(("gitVersion", "gitMajor", "gitMinor"), kubernetes.groups(), strict=True)
        linker += [f"-X=k8s.io/component-base/version.{name}={value}" for name, value in names]
    return [*FLAGS, f"-ldflags={' '.join(linker)}"]


def content_key(module_dir: Path, packages: Mapping[str, str], go_version: str) -> str:
    digest = hashlib.sha256()
    for part in (
        go_version,
        *flags_for(module_dir),
        *(f"{name}={package}" for name, package in sorted(packages.items())),
    ):
        digest.update(part.encode() + b"\0")
    for path in sorted([module_dir / "go.mod", module_dir / "go.sum", *module_dir.rglob("*.go")]):
        digest.update(f"{path.relative_to(module_dir)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@contextlib.contextmanager
def only_one(lock_path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    with lock_path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go_environment(cache: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Caches lie beside each other at a fixed place, so every module's build finds what another one compiled."""
    defaults = {
        "GOPATH": str(cache / "go"),
        "GOMODCACHE": str(cache / "go" / "pkg" / "mod"),
        "GOCACHE": str(cache / "go-build"),
    }
    forced = {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}
    return {**defaults, **environ, **forced}


def compile_all(
    go: Path, module_dir: Path, packages: Mapping[str, str], folder: Path, say: Callable[[str], None]
) -> None:
    began = time.monotonic()
    env = go_environment(folder.parent)
    say(f"{', '.join(packages)} with {go} (the first time takes minutes, later changes take seconds)")
    total = count_packages(go, module_dir, packages, env)
    with TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        for program, package in packages.items():
            command = [str(go), "build", "-v", *flags_for(module_dir), "-o", str(made / "bin" / program), package]
            run_with_progress(command, module_dir, env, f"{program}: {{}} of at most {total} packages compiled", say)
        with contextlib.suppress(FileExistsError):
            made.rename(folder)
    say(f"{', '.join(packages)} built in {time.monotonic() - began:.0f} s")


def count_packages(go: Path, module_dir: Path, packages: Mapping[str, str], env: Mapping[str, str]) -> int:
    command = [str(go), "list", "-mod=readonly", "-modcacherw", "-deps", *packages.values()]
    listed = subprocess.run(command, cwd=module_dir, env=env, capture_output=True, text=True)
    if listed.returncode:
        raise BuildFailed(f"`go list` failed in {module_dir}:\n{tail(listed.stderr.splitlines())}")
    return len(listed.stdout.splitlines())


def run_with_progress(
    command: list[str], cwd: Path, env: Mapping[str, str], progress: str, say: Callable[[str], None]
) -> None:
    """`go build -v` names each package on stderr as it is compiled; everything else it says is an error."""
    began = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(command, cwd=cwd, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
        reader.start()
        try:
            while True:
                reader.join(PROGRESS_SECONDS)
                if not reader.is_alive():
                    break
                say(f"{progress.format(len(lines))}, {time.monotonic() - began:.0f} s")
        except BaseException:
            process.send_signal(signal.SIGINT)  # a terminal has told it already; go then ends its compilers
            reader.join(PATIENCE)  # before the pipe is closed that it reads
            raise
    if process.returncode:
        raise BuildFailed(f"`{' '.join(command)}` failed in {cwd}:\n{tail(lines)}")


def tail(lines: list[str], count: int = 30) -> str:
    return "\n".join(line.rstrip() for line in lines[-count:])


def main() -> int:
    try:
        for program, path in build(MODULE, PACKAGES).items():
            print(f"{program} {path}")
    except (BuildFailed, gotool.GoMissing) as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
