"""Where a job's checkpoints are on this host, and which of them it can go on from."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import resume_point

from tests.unit.jobs.checkpoints import trees

ROOTS = {"/checkpoints": "/mnt/a", "/checkpoints/llm": "/mnt/llm/", "/": "/srv"}


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/checkpoints/x/y", "/mnt/a/x/y"),
        ("/checkpoints/llm", "/mnt/llm"),
        ("/checkpoints/llm/../x", "/mnt/a/x"),
        ("/checkpointsX/x", "/srv/checkpointsX/x"),
    ],
)
def test_the_longest_root_counts(path, local):
    assert resume_point.here(path, ROOTS) == local


def test_without_a_root_nothing_is_said_but_that():
    found, unknown = resume_point.look("/elsewhere", {"/checkpoints": "/mnt"})
    assert found is None and "no root of checkpoint_roots covers it" in unknown


def test_the_newest_whole_one_is_told_by_the_jobs_own_path_with_the_torn_before_it(tmp_path):
    trees.huggingface(tmp_path / "llm/checkpoint-100")
    torn = trees.huggingface(tmp_path / "llm/checkpoint-200")
    (torn / "optimizer.pt").write_bytes(b"")
    found, unknown = resume_point.look("/checkpoints/llm", {"/checkpoints": str(tmp_path)}, settle=0)
    assert unknown == ""
    assert (found["path"], found["step"], found["complete"]) == ("/checkpoints/llm/checkpoint-100", 100, True)
    assert [one["path"] for one in found["torn"]] == ["/checkpoints/llm/checkpoint-200"] and found["torn"][0]["why"]


def test_what_cannot_be_read_is_unknown_and_not_absent(tmp_path):
    found, unknown = resume_point.look("/checkpoints/none", {"/checkpoints": str(tmp_path)})
    assert found is None and "cannot be read" in unknown
    (tmp_path / "empty").mkdir()
    assert resume_point.look("/checkpoints/empty", {"/checkpoints": str(tmp_path)}) == (None, "")
