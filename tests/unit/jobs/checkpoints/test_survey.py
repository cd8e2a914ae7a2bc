"""Which checkpoints are found, in which order, and what is left alone."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import find, names, survey, tree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, NotFound, Unavailable

from tests.unit.jobs.checkpoints import trees


def steps(found):
    return [(item["step"], item["complete"]) for item in found["checkpoints"]]


def tear(path):
    next(file for file in sorted(path.rglob("*")) if file.is_file()).unlink()


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("iter_0004000", 4000),
        ("checkpoint-500", 500),
        ("global_step1200", 1200),
        ("step_77", 77),
        ("step-77", 77),
        ("step77", 77),
        ("epoch=3-step=1999.ckpt", 1999),
        ("model--val_loss=1.25-step=999-consumed_samples=640.0", 999),
        ("model--val_loss=1.25-step=999-consumed_samples=640.0-last", 999),
        ("checkpoint_23_22750", 22750),
        ("200.orbax-checkpoint-tmp-17", 200),
        ("200", 200),
        ("release", None),
        ("footsteps", None),
        ("model.safetensors", None),
        ("step_" + "9" * 5000, None),
    ],
)
def test_steps_of_names(name, step):
    assert names.step(name) == step


@pytest.mark.parametrize(
    "name", ["tmp-checkpoint-5", "checkpoint-5.tmp", "step_5.incomplete", "5.orbax-checkpoint-tmp-1"]
)
def test_names_of_saves_that_are_not_over(tmp_path, name):
    trees.huggingface(tmp_path / "checkpoint-4")
    trees.huggingface(tmp_path / name, step=5)
    found = survey.survey(str(tmp_path))
    assert steps(found) == [(5, False), (4, True)]
    assert found["newest"]["step"] == 4


def test_the_newest_complete_one_and_the_torn_ones_before_it(tmp_path):
    paths = trees.run(tmp_path, "megatron-torch-dist", (100, 200, 300, 1000))
    tear(paths[3])
    tear(paths[2])
    found = survey.survey(str(tmp_path))
    assert steps(found) == [(1000, False), (300, False), (200, True)]
    assert found["newest"]["path"] == str(paths[1])
    assert [item["step"] for item in found["torn"]] == [1000, 300]
    assert found["more"] == 1
    assert steps(survey.survey(str(tmp_path), every=True))[-1] == (100, True)
    assert survey.survey(str(tmp_path), limit=2)["newest"] is None


def test_none_complete(tmp_path):
    (path,) = trees.run(tmp_path, "huggingface", (5,))
    (path / "optimizer.pt").unlink()
    (tmp_path / "checkpoint-9").mkdir()
    found = survey.survey(str(tmp_path))
    assert found["newest"] is None
    assert [(item["step"], item["format"]) for item in found["torn"]] == [(9, "huggingface"), (5, "huggingface")]
    assert found["torn"][0]["writtenAt"] is None


def test_an_empty_directory_has_none(tmp_path):
    assert survey.survey(str(tmp_path)) == {
        "newest": None, "torn": [], "checkpoints": [], "pointers": [], "unread": [], "more": 0
    }  # fmt: skip


def test_thousands_of_steps_are_not_all_opened(tmp_path, monkeypatch):
    for step in range(3000):
        (tmp_path / f"iter_{step:07d}").mkdir()
    trees.run(tmp_path, "megatron-torch-dist", (2990, 2995))
    opened = []
    read = tree.read
    monkeypatch.setattr(tree, "read", lambda path, *args, **more: opened.append(path) or read(path, *args, **more))
    found = survey.survey(str(tmp_path))
    assert found["newest"]["step"] == 2995
    assert len(found["torn"]) == 4
    assert found["more"] == 2995
    assert len(opened) < 40


def test_other_directories_are_no_checkpoints(tmp_path):
    for name in ("logs/train.log", "step_5/notes.txt", "tensorboard/events.out", "2026/readme.md", "data/a.bin"):
        trees.write(tmp_path / name, "x")
    assert survey.survey(str(tmp_path))["checkpoints"] == []


def test_runs_in_numbered_directories(tmp_path):
    trees.run(tmp_path / "0", "huggingface", (5,))
    trees.run(tmp_path / "1" / "ckpt", "orbax", (7,))
    assert steps(survey.survey(str(tmp_path), every=True)) == [(7, True), (5, True)]


def test_formats_are_told_apart(tmp_path):
    for form in trees.RUNS:
        trees.run(tmp_path / form, form, (10,))
    found = survey.survey(str(tmp_path), every=True)
    assert {item["format"] for item in found["checkpoints"]} == set(trees.RUNS)
    assert all(item["complete"] for item in found["checkpoints"])
    found = survey.survey(str(tmp_path), every=True, only=["orbax", "nemo2"])
    assert {item["format"] for item in found["checkpoints"]} == {"orbax", "nemo2"}


def test_links(tmp_path):
    root = tmp_path / "root"
    paths = trees.run(root, "huggingface", (5, 6))
    (root / "last").symlink_to(paths[1])
    elsewhere = trees.huggingface(tmp_path / "elsewhere" / "checkpoint-9")
    (root / "checkpoint-9").symlink_to(elsewhere)
    found = survey.survey(str(root), every=True)
    assert steps(found) == [(6, True), (5, True)]
    assert len(found["unread"]) == 1
    assert "leads out of" in found["unread"][0]
    # weights in a store of blobs, as Hugging Face's hub keeps them: inside of the directory, then outside of it
    (root / "blobs").mkdir()
    (paths[1] / "model.safetensors").rename(root / "blobs" / "abc")
    (paths[1] / "model.safetensors").symlink_to("../blobs/abc")
    assert steps(survey.survey(str(root)))[0] == (6, True)
    (paths[1] / "model.safetensors").unlink()
    (paths[1] / "model.safetensors").symlink_to(elsewhere / "model.safetensors")
    found = survey.survey(str(root))["checkpoints"][0]
    assert "leads out of the directory" in found["why"]
    assert found["complete"] is not True
    (paths[1] / "model.safetensors").unlink()
    (paths[1] / "model.safetensors").symlink_to("gone")
    assert "is a link to nothing" in survey.survey(str(root))["checkpoints"][0]["why"]


def test_links_in_circles_and_things_that_are_no_files(tmp_path):
    (path,) = trees.run(tmp_path, "huggingface", (5,))
    (path / "circle").symlink_to("circle")
    (path / "up").symlink_to(path)
    os.mkfifo(path / "pipe.pt")
    os.mkfifo(tmp_path / "latest")
    found = survey.survey(str(tmp_path))
    assert found["checkpoints"][0]["complete"] is None
    assert found["pointers"][0]["complete"] is None


def test_a_path_that_is_a_link_is_given_back_as_asked(tmp_path):
    trees.run(tmp_path / "real", "huggingface", (5,))
    (tmp_path / "mounted").symlink_to(tmp_path / "real")
    assert survey.survey(str(tmp_path / "mounted"))["newest"]["path"] == str(tmp_path / "mounted" / "checkpoint-5")


def test_what_cannot_be_read_is_unknown(tmp_path, monkeypatch):
    newer = trees.run(tmp_path, "pytorch-dcp", (5, 6))[1]
    scandir = os.scandir

    def refuse(place):
        if str(place) == str(newer):
            raise OSError(116, "Stale file handle")
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    found = survey.survey(str(tmp_path))
    assert steps(found)[0][1] is not True
    assert "Stale file handle" in found["checkpoints"][0]["why"]
    assert found["newest"]["step"] == 5

    def refuse_all(place):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", refuse_all)
    with pytest.raises(Unavailable, match="stays unknown"):
        survey.survey(str(tmp_path))


def test_a_file_that_cannot_be_read_is_a_doubt(tmp_path, monkeypatch):
    (path,) = trees.run(tmp_path, "pytorch-dcp", (5,))
    opened = tree.open_regular

    def refuse(name):
        if name.endswith(".metadata"):
            raise PermissionError(13, "Permission denied")
        return opened(name)

    monkeypatch.setattr(tree, "open_regular", refuse)
    found = survey.survey(str(tmp_path))["checkpoints"][0]
    assert found["complete"] is None
    assert found["why"] == ".metadata cannot be read: Permission denied"
    assert path.name == "step_5"


@pytest.mark.parametrize(
    ("path", "more", "told"),
    [
        ("nope", {}, "no such file or directory"),
        (".", {"limit": 0}, "limit: 0 is too small"),
        (".", {"settle": -1}, "settle: -1 is too small"),
        (".", {"only": ["orbacks"]}, "did you mean 'orbax'"),
        ("a\0b", {}, "cannot be read"),
    ],
)
def test_bad_questions(tmp_path, path, more, told):
    with pytest.raises(FleetError) as caught:
        survey.survey(os.path.join(str(tmp_path), path), **more)
    assert told in str(caught.value)
    assert isinstance(caught.value, NotFound) is (path == "nope")


def test_names_that_are_not_utf8(tmp_path):
    (path,) = trees.run(tmp_path, "huggingface", (5,))
    (path / os.fsdecode(b"\xff.pt")).write_bytes(b"x")
    (tmp_path / os.fsdecode(b"step_\xfe7")).mkdir()
    found = survey.survey(str(tmp_path))
    assert found["torn"][0]["why"].startswith("\\udcff.pt breaks off")
    json.dumps(found, ensure_ascii=False).encode()


def test_one_file(tmp_path):
    trees.write(tmp_path / "step_9.safetensors", trees.safetensors(["a"]))
    assert steps(survey.survey(str(tmp_path / "step_9.safetensors"))) == [(9, True)]


def test_files_from_just_now(tmp_path):
    """The file that is written last vouches; without such a file, only time does."""
    now = trees.WRITTEN + 10
    trees.run(tmp_path / "dcp", "pytorch-dcp", (5,))
    assert survey.survey(str(tmp_path / "dcp"), now=now)["newest"]
    path = tmp_path / "dcp" / "step_5" / "__0_0.distcp"
    os.utime(path, (now, now))  # written again, after .metadata was
    assert "after .metadata" in survey.survey(str(tmp_path), now=now)["checkpoints"][0]["why"]
    assert survey.survey(str(tmp_path), now=now + 600)["newest"]
    for number in range(3):
        trees.write(tmp_path / "shards" / f"a-shard{number}.pt", trees.save({}))
    found = survey.survey(str(tmp_path / "shards"), now=now)["checkpoints"][0]
    assert (found["complete"], found["why"]) == (
        None, "its newest file was written 10 s ago, it may not be the last"
    )  # fmt: skip
    assert survey.survey(str(tmp_path / "shards"), now=now, settle=5)["newest"]


def test_torn_just_now_may_be_in_progress(tmp_path):
    (path,) = trees.run(tmp_path, "pytorch-dcp", (5,))
    (path / ".metadata").unlink()
    found = survey.survey(str(tmp_path), now=trees.WRITTEN + 1)["checkpoints"][0]
    assert found["complete"] is False
    assert found["why"].endswith("may still be being written, its newest file is from just now")


def test_the_tracker(tmp_path):
    paths = trees.run(tmp_path, "megatron-torch-dist", (100, 200))
    trees.tracker(paths[1])
    (pointer,) = survey.survey(str(tmp_path))["pointers"]
    assert pointer == {
        "path": str(tmp_path / "latest_checkpointed_iteration.txt"), "names": str(paths[1]), "complete": True, "why": ""
    }  # fmt: skip
    (paths[1] / "metadata.json").unlink()
    (pointer,) = survey.survey(str(tmp_path))["pointers"]
    assert (pointer["complete"], "not finalised" in pointer["why"]) == (False, True)
    trees.tracker(paths[0])  # not looked at otherwise
    (paths[1] / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    assert survey.survey(str(tmp_path))["pointers"][0]["complete"] is True


@pytest.mark.parametrize(("form", "why"), [("megatron-torch-dist", "random weights"), ("deepspeed", "only a tag")])
def test_a_pointer_that_is_missing(tmp_path, form, why):
    (path,) = trees.run(tmp_path, form, (10,))
    found = survey.survey(str(tmp_path))
    assert found["newest"]["step"] == 10
    (pointer,) = found["pointers"]
    assert (pointer["names"], pointer["complete"], why in pointer["why"]) == (None, False, True)
    assert survey.survey(str(path))["pointers"] == []  # what lies beside it was not asked for


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("latest_checkpointed_iteration.txt", "", "is empty"),
        ("latest_checkpointed_iteration.txt", "soon", "which is no iteration"),
        ("latest_checkpointed_iteration.txt", "9", "iter_0000009, which is not there"),
        ("latest_checkpointed_iteration.txt", "release", "release, which is not there"),
        ("latest", "../../etc", "no directory beside it"),
        ("latest", "global_step7\n", "global_step7, which is not there"),
        ("latest", "\0\0\0\0", "is empty"),
    ],
)
def test_pointers_to_nothing(tmp_path, name, text, why):
    trees.write(tmp_path / name, text)
    (pointer,) = survey.survey(str(tmp_path))["pointers"]
    assert (pointer["complete"], why in pointer["why"]) == (False, True)


def test_fewer_ranks_than_before_are_a_doubt(tmp_path):
    trees.huggingface(tmp_path / "checkpoint-5", ranks=8)
    trees.huggingface(tmp_path / "checkpoint-6", ranks=4)
    trees.huggingface(tmp_path / "checkpoint-7", ranks=8)
    found = survey.survey(str(tmp_path), every=True)
    assert steps(found) == [(7, True), (6, None), (5, True)]
    assert "checkpoint-5 has them" in found["checkpoints"][1]["why"]


def test_a_tree_without_end_is_left_open(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "MOST_FILES", 20)
    (path,) = trees.run(tmp_path, "pytorch-dcp", (5,))
    for number in range(30):
        trees.write(path / f"more{number}", "x")
    found = survey.survey(str(tmp_path))["checkpoints"][0]
    assert (found["complete"] is True, "more than 20 files" in found["why"]) == (False, True)
    monkeypatch.setattr(find, "MOST_LISTED", 5)
    for number in range(30):
        (tmp_path / "deep" / f"dir{number}").mkdir(parents=True)
    assert "only 5 directories" in survey.survey(str(tmp_path))["unread"][0]
