# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making a folder be exactly the rendered bundle, in a way that may be killed at any point.

While files move, the folder has no bundle.sha256, so a half-written bundle never verifies; a work folder inside
marks it as one, so that the next run knows it for its own and finishes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import manifest
from ansible_collections.goodput.fleet.plugins.module_utils.records import closedworld
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    InvalidDocument,
    Problem,
    Unavailable,
)

WORK = ".goodput-bundle"
MAX_TEXT = 100_000  # characters of one file, in a diff
MAX_DIFF = 500_000  # of all files


def sync(dest: str, files: dict[str, bytes], check: bool = False) -> dict:
    """Makes `dest` hold the files (path -> content) and nothing else; with `check` only says what would be done.

    Returns {changed, added, updated, removed, diff}: sorted paths, and a list in the form of Ansible's diff.
    Raises Conflict when dest is not a bundle's, InvalidDocument for an unsafe path, Unavailable when the disk refuses.
    """
    faults = [Problem("unsafe-path", f"the file {fault}") for fault in map(manifest.unsafe, files) if fault]
    if faults:
        raise InvalidDocument(faults)
    if not dest.strip() or "\0" in dest:
        raise InvalidDocument(Problem("bad-dest", f"{dest!r} is not the path of a folder", path="dest"))
    try:
        there = _entries(dest)
        _own(dest, there)
        change = _compare(dest, files, there)
        if change["changed"] and not check:
            _write(dest, files, change, there)
    except OSError as error:
        what = f"cannot write the bundle: {error.strerror}"
        raise Unavailable(Problem("disk", what, str(error.filename or dest), path="dest")) from error
    return change


def _entries(dest: str) -> dict[str, int]:
    """path -> mode of what is there, but not what is in the work folder."""
    if not os.path.lexists(dest):
        return {}
    if not os.path.isdir(dest):
        raise Conflict(Problem("not-a-folder", "is not a folder", dest, path="dest"))
    return {path: mode for path, mode in closedworld.entries(dest) if not path.startswith(f"{WORK}/")}


def _own(dest: str, there: dict[str, int]) -> None:
    """Raises Conflict unless everything in the folder may go."""
    git = [path for path in there if ".git" in path.split("/")]
    interrupted = stat.S_ISDIR(there.get(WORK, 0))
    bundle = stat.S_ISREG(there.get(manifest.LIST, 0)) and manifest.parse(_read(dest, manifest.LIST, 1 << 24))[0]
    if git or (there and not bundle and not interrupted):
        names = sorted({path.split("/")[0] for path in git or there})
        shown = ", ".join(map(closedworld.shown, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise Conflict(
            Problem(
                "foreign-folder",
                f"is not a bundle and holds {shown}: rendering here would delete that",
                dest,
                path="dest",
                hint="name a folder of the bundle's own, empty or not there yet",
            )
        )


def _compare(dest: str, files: dict[str, bytes], there: dict[str, int]) -> dict:
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    added, updated, diff = [], [], []
    for path in sorted(files):
        mode = there.get(path)
        before = _read(dest, path, len(files[path])) if mode is not None and stat.S_ISREG(mode) else None
        if before != files[path]:
            (added if mode is None else updated).append(path)
            diff.append((path, before, files[path]))
    extra = [path for path, mode in there.items() if path not in files and not (path in folders and stat.S_ISDIR(mode))]
    removed = [path for path in extra if path != WORK]
    diff += [(path, _read(dest, path), None) for path in removed if stat.S_ISREG(there[path])]
    return {
        "changed": bool(added or updated or extra),
        "added": added,
        "updated": updated,
        "removed": removed,
        "diff": _diff(sorted(diff, key=lambda entry: entry[0])),
    }


def _read(dest: str, path: str, size: int = 0) -> bytes:
    """The content, cut off where it is certainly longer than `size` and too long to show."""
    with open(os.path.join(dest, path), "rb") as stream:
        return stream.read(max(size, 4 * MAX_TEXT) + 1)


def _write(dest: str, files: dict[str, bytes], change: dict, there: dict[str, int]) -> None:
    work = os.path.join(dest, WORK)
    if WORK in there and not stat.S_ISDIR(there[WORK]):
        os.unlink(work)
    os.makedirs(work, exist_ok=True)
    for name in os.listdir(work):  # of a run that was killed; the folder itself stays, it is the mark
        _remove(os.path.join(work, name))
    last = [path for path in (manifest.SIGNATURE, manifest.LIST) if path in files]
    moves = [path for path in (*change["added"], *change["updated"]) if path not in last] + last
    for number, path in enumerate(moves):
        with open(os.path.join(work, str(number)), "wb") as stream:
            stream.write(files[path])
    for path in (manifest.LIST, manifest.SIGNATURE):  # from here on it does not verify
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(dest, path))
    for path in change["removed"]:
        _remove(os.path.join(dest, path))
    for number, path in enumerate(moves):
        target = os.path.join(dest, path)
        if path in there and stat.S_ISDIR(there[path]):
            _remove(target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(os.path.join(work, str(number)), target)
    os.rmdir(work)


def _remove(path: str) -> None:
    """A file, a link or a folder with all that is in it; fine when it is gone already."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _diff(entries: list[tuple[str, bytes | None, bytes | None]]) -> list[dict]:
    """Before and after of each file, as text, within bounds. The lists of digests say nothing to a person."""
    result, left = [], MAX_DIFF
    entries = [entry for entry in entries if entry[0] not in (manifest.LIST, manifest.SIGNATURE)]
    for number, (path, before, after) in enumerate(entries):
        texts = {"before": _text(before), "after": _text(after)}
        left -= sum(map(len, texts.values()))
        if left < 0:
            rest = "".join(f"{closedworld.shown(entry[0])}\n" for entry in entries[number:])
            headers = dict.fromkeys(("before_header", "after_header"), "further files")
            result.append({**headers, "before": "", "after": rest})
            break
        name = closedworld.shown(path)
        headers = {
            "before_header": name if before is not None else f"{name} (absent)",
            "after_header": name if after is not None else f"{name} (absent)",
        }
        result.append({**headers, **texts})
    return result


def _text(content: bytes | None) -> str:
    if content is None:
        return ""
    text = content.decode(errors="replace")
    return text if len(text) <= MAX_TEXT else "(too long to show)\n"
