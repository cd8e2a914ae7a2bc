"""The module and the filter."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.filter.newest_checkpoint import newest_checkpoint
from ansible_collections.goodput.fleet.plugins.modules import checkpoint_info

from tests.unit.jobs.checkpoints import trees


def run(capsys, **given):
    with patch_module_args(given), pytest.raises(SystemExit):
        checkpoint_info.main()
    return json.loads(capsys.readouterr().out)


def test_module(tmp_path, capsys):
    paths = trees.run(tmp_path, "deepspeed", (100, 200, 300))
    trees.tag_of(paths[2])
    (paths[2] / "mp_rank_00_model_states.pt").write_bytes(b"")
    result = run(capsys, path=str(tmp_path))
    assert result["changed"] is False
    assert result["newest"]["path"] == str(paths[1])
    assert [item["step"] for item in result["torn"]] == [300]
    assert result["pointers"][0]["complete"] is False
    assert newest_checkpoint(result) == result["newest"]
    assert newest_checkpoint(run(capsys, path=str(tmp_path), all=True), before=200)["step"] == 100


def test_module_fails_in_words(tmp_path, capsys):
    result = run(capsys, path=str(tmp_path / "nope"))
    assert result["failed"]
    assert "no such file or directory" in result["msg"]
    assert result["problems"][0]["path"] == "path"
    assert "value of formats must be one or more of" in run(capsys, path=str(tmp_path), formats=["x"])["msg"]


def item(step, complete=True, at="2026-11-29T02:41:07Z"):
    return {"step": step, "complete": complete, "writtenAt": at, "path": f"/c/{step}"}


def test_filter():
    found = [item(5), item(9, False), item(8, None), item(7), item(None)]
    assert newest_checkpoint(found)["step"] == 7
    assert newest_checkpoint(found, before=7)["step"] == 5
    assert newest_checkpoint(found, before=5) is None
    assert newest_checkpoint([item(None)])["path"] == "/c/None"
    assert newest_checkpoint([]) is None
    later = item(7, at="2026-11-30T00:00:00Z")
    assert newest_checkpoint([later, *found]) == later == newest_checkpoint([*found, later])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x", "not a list of checkpoints but str"),
        (None, "not a list of checkpoints but NoneType"),
        ({"newest": None}, "not a list of checkpoints but dict"),
        ([7], "[0]: not a checkpoint"),
        ([item(5), {"step": 5}], "[1].complete: is missing"),
        ([item(5, "yes")], "[0].complete: is missing or no answer"),
        ([item(5, 1)], "[0].complete: is missing or no answer"),
        ([item("5")], "[0].step: not a step: '5'"),
        ([item(5, at=7)], "[0].writtenAt: not a time: 7"),
    ],
)
def test_filter_refuses(value, told):
    with pytest.raises(AnsibleFilterError) as caught:
        newest_checkpoint(value)
    assert told in str(caught.value)


def test_filter_refuses_a_bound_that_is_no_step():
    with pytest.raises(AnsibleFilterError, match="before: not a step: 'soon'"):
        newest_checkpoint([], before="soon")
