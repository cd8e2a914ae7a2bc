"""Writing a bundle: exactly these files, nothing of anybody else's, and safe to kill at any point."""

from __future__ import annotations

import itertools
import os
import sys

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import manifest, tree
from ansible_collections.goodput.fleet.plugins.module_utils.records import closedworld
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, InvalidDocument, Unavailable

from tests.unit.bundles import locks, outputs

OLD = outputs.bundle(locks.sample(), "helm")
NEW = outputs.bundle(locks.sample(), "flux", exclude=("tail",))


def content(folder) -> dict[str, bytes]:
    return {
        path: (folder / path).read_bytes()
        for path, _mode in closedworld.entries(str(folder))
        if (folder / path).is_file()
    }


def folders(folder) -> set[str]:
    return {path for path, _mode in closedworld.entries(str(folder)) if (folder / path).is_dir()}


def test_it_makes_the_folder_and_the_second_run_changes_nothing(tmp_path):
    dest = tmp_path / "a/b"
    first = tree.sync(str(dest), OLD)
    assert first["changed"] and first["added"] == sorted(OLD) and not first["updated"] and not first["removed"]
    assert content(dest) == OLD
    times = {path: os.stat(dest / path).st_mtime_ns for path in OLD}
    second = tree.sync(str(dest), OLD)
    assert second == {"changed": False, "added": [], "updated": [], "removed": [], "diff": []}
    assert times == {path: os.stat(dest / path).st_mtime_ns for path in OLD}


def test_nothing_stale_stays(tmp_path):
    tree.sync(str(tmp_path), OLD)
    change = tree.sync(str(tmp_path), NEW)
    assert content(tmp_path) == NEW
    assert "004-gpu-operator" in change["removed"] and "README.md" in change["updated"]
    assert not [path for path in folders(tmp_path) if path.startswith("00")]
    assert manifest.verify(str(tmp_path)) == []


def test_check_mode_tells_the_same_and_writes_nothing(tmp_path):
    dest = tmp_path / "bundle"
    planned = tree.sync(str(dest), OLD, check=True)
    assert not dest.exists()
    assert planned == tree.sync(str(dest), OLD)
    planned = tree.sync(str(dest), NEW, check=True)
    assert content(dest) == OLD
    assert planned == tree.sync(str(dest), NEW)


def test_strangers_in_a_bundle_go(tmp_path):
    tree.sync(str(tmp_path), OLD)
    (tmp_path / "evil.yaml").write_text("x")
    (tmp_path / "old/deeper").mkdir(parents=True)
    (tmp_path / "plan.json").unlink()
    (tmp_path / "plan.json").symlink_to("/etc/passwd")
    (tmp_path / "004-gpu-operator/values.yaml").unlink()
    (tmp_path / "004-gpu-operator").rmdir()
    (tmp_path / "004-gpu-operator").symlink_to(tmp_path / "003-gpu-operator-pre")
    (tmp_path / "README.md").unlink()
    (tmp_path / "README.md").mkdir()
    (tmp_path / "README.md/x").write_text("x")
    change = tree.sync(str(tmp_path), OLD)
    assert change["changed"]
    assert content(tmp_path) == OLD and manifest.verify(str(tmp_path)) == []


@pytest.mark.parametrize("make", [
    lambda dest: (dest / "notes.md").write_text("mine"),
    lambda dest: (dest / "sub").mkdir(),
    lambda dest: (dest / "bundle.sha256").write_text("not a list"),
    lambda dest: (dest / "bundle.sha256").mkdir(),
    lambda dest: (dest / ".goodput-bundle").write_text("a file"),
], ids=["file", "folder", "another list", "list is a folder", "work is a file"])  # fmt: skip
def test_a_folder_of_somebody_else_is_refused(tmp_path, make):
    make(tmp_path)
    before = closedworld.entries(str(tmp_path))
    with pytest.raises(Conflict, match="is not a bundle and holds"):
        tree.sync(str(tmp_path), OLD)
    assert closedworld.entries(str(tmp_path)) == before


def test_a_repository_is_refused_even_with_a_bundle_at_its_root(tmp_path):
    tree.sync(str(tmp_path), OLD)
    (tmp_path / ".git").mkdir()
    with pytest.raises(Conflict, match=r"holds \.git"):
        tree.sync(str(tmp_path), NEW)


def test_a_file_is_no_place_for_a_bundle(tmp_path):
    (tmp_path / "x").write_text("x")
    with pytest.raises(Conflict, match="is not a folder"):
        tree.sync(str(tmp_path / "x"), OLD)
    with pytest.raises(Unavailable, match="cannot write the bundle: Not a directory"):
        tree.sync(str(tmp_path / "x/y"), OLD)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", "a//b", "a/.git/b", "./a"])
def test_no_file_is_written_elsewhere(tmp_path, path):
    with pytest.raises(InvalidDocument, match="the file"):
        tree.sync(str(tmp_path / "bundle"), {**OLD, path: b"x"})
    assert not (tmp_path / "bundle").exists()


def test_the_diff_is_per_file_and_bounded(tmp_path):
    tree.sync(str(tmp_path), OLD)
    diff = tree.sync(str(tmp_path), NEW, check=True)["diff"]
    by_name = {(entry["before_header"], entry["after_header"]): entry for entry in diff}
    assert by_name["plan.json", "plan.json (absent)"]["after"] == ""
    assert by_name["kustomization.yaml (absent)", "kustomization.yaml"]["after"] == NEW["kustomization.yaml"].decode()
    assert by_name["README.md", "README.md"]["before"] == OLD["README.md"].decode()
    assert not [entry for entry in diff if "bundle.sha256" in entry["before_header"]]
    long = {**NEW, "big.yaml": b"x" * (tree.MAX_TEXT + 1), **{f"many/{n}.yaml": b"y" * 90_000 for n in range(20)}}
    diff = tree.sync(str(tmp_path), long, check=True)["diff"]
    assert next(entry for entry in diff if entry["after_header"] == "big.yaml")["after"] == "(too long to show)\n"
    assert sum(len(entry["before"]) + len(entry["after"]) for entry in diff) < tree.MAX_DIFF + 10_000
    assert diff[-1]["after_header"] == "further files"


class Killed(BaseException):
    """Nothing in the code catches it: what follows it is what follows a kill."""


WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
armed: list[int] = []  # writes that are still allowed


def audit(event: str, arguments: tuple) -> None:
    if armed and (event in WRITES or (event == "open" and arguments[1] == "wb")):
        if armed[0] == 0:
            raise Killed
        armed[0] -= 1


sys.addaudithook(audit)


def killed_after(writes: int, dest, files) -> bool:
    armed[:] = [writes]
    try:
        tree.sync(str(dest), files)
    except Killed:
        return True
    finally:
        armed.clear()
    return False


SMALL_OLD = {
    **{key: OLD[key] for key in ("recipe.lock.yaml", "bundle.json")},
    "a/x": b"1",
    "a/y": b"2",
    "b": b"3",
    "c/d/e": b"4",
}
SMALL_NEW = {
    **{key: OLD[key] for key in ("recipe.lock.yaml", "bundle.json")},
    "a/x": b"9",
    "b/new": b"5",
    "c": b"6",
    "f/g": b"7",
}
for files in (SMALL_OLD, SMALL_NEW):
    files[manifest.LIST] = manifest.listing(files)
    files[manifest.SIGNATURE] = b"signature of " + files[manifest.LIST]


@pytest.mark.parametrize("before", [None, SMALL_OLD], ids=["fresh", "update"])
def test_killed_at_any_write_it_never_verifies_half_done_and_converges(tmp_path, before):
    for writes in itertools.count():
        dest = tmp_path / str(writes)
        if before:
            tree.sync(str(dest), before)
        if not killed_after(writes, dest, SMALL_NEW):
            break
        there = content(dest) if dest.exists() else {}
        if not manifest.verify(str(dest)):
            assert there in (before, SMALL_NEW), writes
        again = tree.sync(str(dest), SMALL_NEW)
        assert again["changed"], writes
        assert content(dest) == SMALL_NEW and manifest.verify(str(dest)) == [], writes
        assert not tree.sync(str(dest), SMALL_NEW)["changed"]
    assert writes > 10, "the sweep went through the writes"
    assert content(dest) == SMALL_NEW


def test_killed_twice(tmp_path):
    tree.sync(str(tmp_path), SMALL_OLD)
    for first, second in itertools.product(range(2, 20, 3), range(0, 20, 3)):
        dest = tmp_path.parent / f"{first}-{second}"
        tree.sync(str(dest), SMALL_OLD)
        killed_after(first, dest, SMALL_NEW)
        killed_after(second, dest, SMALL_OLD)
        tree.sync(str(dest), SMALL_NEW)
        assert content(dest) == SMALL_NEW and manifest.verify(str(dest)) == []
