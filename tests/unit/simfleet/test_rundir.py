"""Directories of clusters: one per name, and the dead are removed with what they left running."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simfleet import rundir


def test_a_name_is_taken_while_its_lock_is_held(tmp_path):
    folder, lock = rundir.claim(tmp_path, "demo")
    assert rundir.is_alive(folder)
    with pytest.raises(rundir.NameTaken, match="demo is up"):
        rundir.claim(tmp_path, "demo")
    os.close(lock)
    assert not rundir.is_alive(folder)
    (folder / "left-over").touch()
    folder, lock = rundir.claim(tmp_path, "demo")
    assert not (folder / "left-over").exists()
    os.close(lock)


def test_the_lock_goes_to_a_child_and_ends_with_it(tmp_path):
    folder, lock = rundir.claim(tmp_path, "demo")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    os.close(lock)
    assert rundir.is_alive(folder)
    child.communicate(b"\n")
    assert not rundir.is_alive(folder)


def test_the_dead_are_removed_with_their_processes_and_the_living_stay(tmp_path):
    living, lock = rundir.claim(tmp_path, "living")
    dead, dead_lock = rundir.claim(tmp_path, "dead")
    orphan = subprocess.Popen(["sleep", "60"], env={rundir.MARKER: str(dead)}, start_new_session=True)
    other = subprocess.Popen(["sleep", "60"], env={rundir.MARKER: f"{dead}-not"})
    try:
        assert rundir.processes_of(dead) == [orphan.pid]
        os.close(dead_lock)
        assert rundir.clean_dead(tmp_path) == ["dead"]
        assert orphan.wait(5) == -9 and other.poll() is None
        assert living.exists() and not dead.exists()
    finally:
        orphan.kill()
        other.kill()
        os.close(lock)


def test_state_that_is_not_there_yet_is_empty(tmp_path):
    assert rundir.read_state(tmp_path) == {}
    rundir.write_state(tmp_path, {"pid": 1})
    assert rundir.read_state(tmp_path) == {"pid": 1}
    assert rundir.read_state(tmp_path / "nowhere") == {}
