# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are there as a whole or not at all, whenever the process dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    Problem,
    Unavailable,
)

# how names begin of what is being written
UNFINISHED = ".unfinished-"


@contextlib.contextmanager
def disk(path: str, what: str = "the evidence"):
    """Faults of the file system as Unavailable, in words."""
    try:
        yield
    except FleetError:
        raise
    except OSError as error:
        fault = f"cannot keep {what}: {error.strerror or error}"
        raise Unavailable(Problem("disk", fault, str(error.filename or path))) from error


def lock(path: str, user: str = "another run of the same certification", wait: float = 0.0) -> int:
    """Held until it is closed, which the system does for a process that dies. Waits so many seconds for it."""
    handle = os.open(path, os.O_RDONLY)
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(0.02)
                continue
            os.close(handle)
            raise Conflict(Problem("in-use", f"is in use by {user}", path, hint="wait for it, or stop it")) from None
        except OSError:
            pass  # some network file systems know no locks
        return handle


def drop_empty(path: str) -> None:
    """A manifest lists files, so that a folder without any would be one too many."""
    for folder, _folders, _names in os.walk(path, topdown=False):
        if folder != path and not os.listdir(folder):
            os.rmdir(folder)


def unfinished(path: str) -> list[str]:
    return [os.path.join(path, name) for name in os.listdir(path) if name.startswith(UNFINISHED)]


def remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def write(path: str, content: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(content)
        flush(stream)


def replace(root: str, name: str, content: bytes) -> None:
    """Makes root/name be the content, at once. What is left when the process dies here is `unfinished`."""
    path = os.path.join(root, name)
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=root)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            flush(stream)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    sync(os.path.dirname(path))


def flush(stream) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def sync_folders(path: str) -> None:
    for folder, _folders, _names in os.walk(path):
        sync(folder)


def sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
