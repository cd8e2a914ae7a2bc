"""State directories of clusters: who lives, who is dead, and what the dead left behind.

A cluster's supervisor holds a lock on its directory for as long as it lives, so that a crash, a kill -9 or a reboot
all look the same: a directory without a lock, which the next start removes. Every process of a cluster carries the
directory in its environment, so that even what outlived its supervisor is found.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MARKER = "GOODPUT_SIM_RUN"
LOCK = "lock"
STATE = "state.json"
READY_SECONDS = 120  # for each of a cluster's processes, on a machine that is busy with other things


def run_root() -> Path:
    return Path(os.environ.get("GOODPUT_RUN_DIR") or ROOT / ".build" / "run").resolve()


class NameTaken(RuntimeError):
    """A cluster of that name lives."""


def claim(root: Path, name: str) -> tuple[Path, int]:
    """Make the directory of a new cluster and lock it: (directory, descriptor that holds the lock).

    The lock goes with the descriptor, also to a child that inherits it. Removes what dead clusters left.
    """
    root.mkdir(parents=True, exist_ok=True)
    with cleaning(root):
        clean_dead(root)
        folder = root / name
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise NameTaken(f"a cluster named {name} is up ({folder})") from None
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return folder, descriptor


@contextlib.contextmanager
def cleaning(root: Path) -> Iterator[None]:
    """Nobody else makes or removes directories meanwhile."""
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_alive(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def write_state(folder: Path, state: dict[str, Any]) -> None:
    partial = folder / f"{STATE}.partial"
    partial.write_text(json.dumps(state, indent=2) + "\n")
    partial.rename(folder / STATE)


def read_state(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / STATE).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def living(root: Path) -> Iterator[Path]:
    for folder in folders(root):
        if is_alive(folder):
            yield folder


def clean_dead(root: Path) -> list[str]:
    """Remove what dead clusters left: processes first, then the directory. Returns their names.

    Call it under cleaning().
    """
    removed = []
    for folder in folders(root):
        if remove(folder):
            removed.append(folder.name)
    return removed


def remove(folder: Path) -> bool:
    """Remove a dead cluster's directory and what still runs of it; False when it lives."""
    if is_alive(folder):
        return False
    end_processes_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def folders(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(entry for entry in root.iterdir() if entry.is_dir())


def processes_of(folder: Path) -> list[int]:
    """Process ids that carry the directory in their environment."""
    wanted = f"{MARKER}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it ended meanwhile, or it is somebody else's
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end_processes_of(folder: Path) -> None:
    for pid in processes_of(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
