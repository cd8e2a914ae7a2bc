"""Each format: whole, and torn in the ways in which its saves are seen to break."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import survey

from tests.unit.jobs.checkpoints import trees


def look(path, **more):
    return survey.survey(str(path), every=True, **more)["checkpoints"]


def only(path, **more):
    found = look(path, **more)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("form", trees.RUNS)
def test_a_whole_checkpoint_is_complete(tmp_path, form):
    (path,) = trees.run(tmp_path, form, (300,))
    files = [file for file in path.rglob("*") if file.is_file()]
    assert only(tmp_path) == {
        "format": form,
        "step": 300,
        "path": str(path),
        "complete": True,
        "why": "",
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
        "writtenAt": "2026-09-21T14:13:20Z",
    }
    assert look(path)[0]["complete"] is True  # asked for by itself


@pytest.mark.parametrize(
    ("form", "lost", "why"),
    [
        ("pytorch-dcp", ".metadata", ".metadata is missing"),
        ("pytorch-dcp", "__1_0.distcp", "__1_0.distcp missing, of 2 files"),
        ("megatron-torch-dist", "metadata.json", "not finalised"),
        ("megatron-torch-dist", ".metadata", ".metadata is missing"),
        ("megatron-legacy", "mp_rank_01", "mp_rank_01 missing, of 2"),
        ("megatron-legacy", "mp_rank_01/distrib_optim.pt", "mp_rank_01: the optimizer file is missing"),
        ("megatron-legacy", "mp_rank_00/model_optim_rng.pt", "mp_rank_00: the model file is missing"),
        ("nemo2", "context/io.json", "context/io.json is missing"),
        ("nemo2", "weights/.metadata", "weights/.metadata is missing"),
        ("deepspeed", "mp_rank_00_model_states.pt", "mp_rank_*_model_states.pt is missing"),
        ("deepspeed", "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt", "optim partitions 3 of"),
        ("deepspeed", "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "optim partitions 1 of"),
        ("huggingface", "optimizer.pt", "optimizer.pt is missing"),
        ("huggingface", "scheduler.pt", "scheduler.pt is missing"),
        ("huggingface", "trainer_state.json", "trainer_state.json is missing"),
        ("huggingface", "model.safetensors", "the weights are missing"),
        ("orbax", "default", "default is missing"),
        ("orbax", "default/d", "missing"),
        ("orbax", "default/manifest.ocdbt", "manifest.ocdbt is there, and it is not"),
        ("orbax", "default/d/" + "b" * 32, "b" * 32 + " missing"),
        ("safetensors", "model-00002-of-00003.safetensors", "missing, of 3 shards"),
        ("safetensors", "model.safetensors.index.json", "index.json is missing"),
    ],
)
def test_a_lost_part_makes_it_torn(tmp_path, form, lost, why):
    (path,) = trees.run(tmp_path, form, (300,))
    gone = path / lost
    for file in [gone, *gone.rglob("*")]:
        if file.is_file():
            file.unlink()
    if gone.is_dir():
        trees.shutil.rmtree(gone)
    found = only(tmp_path)
    assert found["complete"] is False
    assert why in found["why"]


def test_zeros_at_the_end_of_a_shard_are_seen(tmp_path):
    path = trees.dcp(tmp_path / "step_1")
    data = (path / "__0_0.distcp").read_bytes()
    trees.write(path / "__0_0.distcp", data[: len(data) // 2] + b"\0" * (len(data) - len(data) // 2))
    assert only(tmp_path)["complete"] is False
    trees.write(path / "__0_0.distcp", b"\0" * len(data))
    found = only(tmp_path)
    assert (found["complete"], "never written" in found["why"]) == (False, True)


def test_a_shard_that_is_longer_than_metadata_says_was_overwritten(tmp_path):
    path = trees.dcp(tmp_path / "step_1")
    trees.write(path / "__0_0.distcp", (path / "__0_0.distcp").read_bytes() + b"more")
    assert "by .metadata" in only(tmp_path)["why"]


def test_a_shard_of_a_larger_job_that_metadata_does_not_name_is_no_matter(tmp_path):
    path = trees.dcp(tmp_path / "step_1")
    trees.write(path / "__7_0.distcp", b"".join(trees.shard(1)))
    assert only(tmp_path)["complete"] is True


def test_metadata_that_names_a_file_elsewhere_is_not_followed(tmp_path):
    trees.write(tmp_path / "secret", b"x" * 10)
    trees.write(tmp_path / "step_1" / ".metadata", trees.metadata({"../secret": [10]}))
    found = only(tmp_path)
    assert (found["complete"], "outside of the checkpoint" in found["why"]) == (None, True)


def test_a_pickle_with_foreign_names_is_refused_and_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return trees.os.mkdir, (str(tmp_path / "ran"),)

    trees.write(tmp_path / "step_1" / ".metadata", trees.pickle.dumps(Bomb()))
    trees.write(tmp_path / "step_1" / "__0_0.distcp", b"x")
    found = only(tmp_path)
    assert found["complete"] is None
    assert "mkdir" in found["why"]
    assert not (tmp_path / "ran").exists()


def test_the_state_of_each_rank_may_have_metadata_of_its_own(tmp_path):
    path = tmp_path / "step_1"
    for rank in range(3):
        (part,) = trees.shard(1)
        trees.write(path / f"__{rank}_0.distcp", part)
        trees.write(path / f"__{rank}.metadata", trees.metadata({f"__{rank}_0.distcp": [len(part)]}))
    assert only(tmp_path)["complete"] is True
    (path / "__1.metadata").unlink()
    assert "metadata of rank 1 is missing" in only(tmp_path)["why"]


def test_common_state_may_be_inside_of_a_newer_megatron_checkpoint(tmp_path):
    path = trees.megatron_dist(tmp_path / "iter_0000010")
    (path / "common.pt").unlink()
    assert only(tmp_path)["complete"] is None
    parts = trees.shard(1)
    trees.write(path / "common_state.distcp", parts[0])
    trees.write(path / ".metadata", trees.metadata({"common_state.distcp": [len(parts[0])]}))
    assert only(tmp_path)["complete"] is True


def test_another_backend_of_megatron_is_left_open(tmp_path):
    path = trees.megatron_dist(tmp_path / "iter_0000010")
    trees.write(path / "metadata.json", {"sharded_backend": "zarr"})
    found = only(tmp_path)
    assert (found["complete"], "'zarr'" in found["why"]) == (None, True)


def test_legacy_parts_of_both_axes(tmp_path):
    path = trees.megatron_legacy(tmp_path / "iter_0000005", tensor=2, pipeline=3)
    assert only(tmp_path)["complete"] is True
    trees.shutil.rmtree(path / "mp_rank_01_002")
    assert "mp_rank_01_002 missing, of 6 model parts" in only(tmp_path)["why"]


def test_legacy_without_arguments_needs_the_tracker(tmp_path):
    path = trees.megatron_legacy(tmp_path / "iter_0000005", told=False)
    assert only(tmp_path)["complete"] is None
    trees.tracker(path)
    assert only(tmp_path)["complete"] is True


def test_nemo_marks_what_is_not_finished(tmp_path):
    path = trees.run(tmp_path, "nemo2", (300,))[0]
    trees.write(path.parent / f"{path.name}-unfinished", "")
    found = only(tmp_path)
    assert (found["format"], found["complete"]) == ("nemo2", False)
    assert "-unfinished lies beside it" in found["why"]


def test_nemo_marker_before_anything_was_written(tmp_path):
    path = tmp_path / "model--step=300"
    path.mkdir()
    trees.write(tmp_path / "model--step=300-unfinished", "")
    assert only(tmp_path)["complete"] is False


def test_partitions_on_other_nodes_are_missed(tmp_path):
    path = trees.deepspeed(tmp_path / "global_step10", ranks=32)
    trees.tag_of(path)
    for rank in range(8, 32):
        (path / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").unlink()
    found = only(tmp_path)
    assert found["complete"] is False
    assert "of 32" in found["why"]


def test_partitions_that_nobody_counts_need_the_pointer(tmp_path):
    path = trees.deepspeed(tmp_path / "step_5" / "pytorch_model", told=False)
    found = only(tmp_path)
    assert (found["complete"], found["step"]) == (None, 5)
    trees.tag_of(path)
    assert only(tmp_path)["complete"] is True


@pytest.mark.parametrize(("stage", "parts"), [(0, 2), (1, 2), (3, 1)])
def test_stages_of_zero(tmp_path, stage, parts):
    path = trees.deepspeed(tmp_path / "global_step10", parts=parts, stage=stage)
    assert only(tmp_path)["complete"] is True
    for file in path.glob("*_optim_states.pt"):
        file.unlink()
    found = only(tmp_path)
    assert found["complete"] is (stage == 0)


def test_shards_of_hugging_face(tmp_path):
    path = trees.huggingface(tmp_path / "checkpoint-10", shards=3, ranks=4)
    assert only(tmp_path)["complete"] is True
    index = json.loads((path / "model.safetensors.index.json").read_text())
    index["weight_map"]["layer.9"] = "model-00001-of-00003.safetensors"
    trees.write(path / "model.safetensors.index.json", index)
    assert "layer.9 not in the shard" in only(tmp_path)["why"]


def test_shards_of_pytorch_model(tmp_path):
    path = trees.sharded(tmp_path / "export", 2, "pytorch_model", "bin")
    trees.write(path / "config.json", {})
    assert only(tmp_path)["complete"] is True
    (path / "pytorch_model-00001-of-00002.bin").unlink()
    assert only(tmp_path)["complete"] is False


def test_a_step_that_is_not_the_one_of_the_name(tmp_path):
    path = trees.huggingface(tmp_path / "checkpoint-10", step=9)
    assert "says step 9" in only(tmp_path)["why"]
    assert path.name == "checkpoint-10"


def test_world_size(tmp_path):
    trees.huggingface(tmp_path / "a" / "checkpoint-10", ranks=4)
    trees.deepspeed(tmp_path / "b" / "global_step10", ranks=4)
    assert [item["complete"] for item in look(tmp_path, world_size=4)] == [True, True]
    assert [item["complete"] for item in look(tmp_path, world_size=8)] == [None, None]
    (tmp_path / "a" / "checkpoint-10" / "rng_state_1.pth").unlink()
    assert "rng_state of rank 1 missing" in only(tmp_path / "a")["why"]


def test_trainer_with_deepspeed(tmp_path):
    path = trees.huggingface(tmp_path / "checkpoint-10", shards=2)
    (path / "optimizer.pt").unlink()
    inner = trees.deepspeed(path / "global_step10")
    found = only(tmp_path)
    assert "latest is missing" in found["why"]
    trees.tag_of(inner)
    assert only(tmp_path)["complete"] is True
    assert only(path)["complete"] is True
    (inner / "mp_rank_00_model_states.pt").unlink()
    assert only(tmp_path)["complete"] is False


def test_trainer_with_fsdp(tmp_path):
    path = trees.huggingface(tmp_path / "checkpoint-10")
    for name in ("model.safetensors", "optimizer.pt", "generation_config.json", "config.json"):
        (path / name).unlink()
    trees.dcp(path / "pytorch_model_fsdp_0")
    trees.dcp(path / "optimizer_0")
    assert only(tmp_path)["complete"] is True
    (path / "optimizer_0" / "__0_0.distcp").unlink()
    assert "optimizer_0/__0_0.distcp missing" in only(tmp_path)["why"]


def test_the_final_model_beside_its_checkpoints(tmp_path):
    trees.huggingface(tmp_path / "checkpoint-10")
    trees.write(tmp_path / "model.safetensors", trees.safetensors(["a"]))
    trees.write(tmp_path / "config.json", {})
    found = look(tmp_path)
    assert [(item["step"], item["complete"]) for item in found] == [(10, True), (None, True)]
    assert found[1]["files"] == 2
    trees.write(tmp_path / "trainer_state.json", {"global_step": 10})
    assert [(item["step"], item["complete"]) for item in look(tmp_path)] == [(10, True), (None, None)]


def test_orbax_needs_its_commit_time(tmp_path):
    path = trees.orbax(tmp_path / "300")
    trees.write(path / "_CHECKPOINT_METADATA", {"item_handlers": {"default": "x"}, "commit_timestamp_nsecs": None})
    assert "no commit time" in only(tmp_path)["why"]


def test_orbax_needs_commit_success_where_others_have_it(tmp_path):
    trees.orbax(tmp_path / "100")
    trees.orbax(tmp_path / "200")
    assert [item["complete"] for item in look(tmp_path)] == [True, True]
    trees.orbax(tmp_path / "100", success=True)
    found = look(tmp_path)
    assert [item["complete"] for item in found] == [False, True]
    assert found[0]["why"] == "commit_success.txt missing, 100 has it"


def test_orbax_temporary_directories(tmp_path):
    trees.orbax(tmp_path / "200.orbax-checkpoint-tmp-17", success=True)
    found = only(tmp_path)
    assert (found["step"], found["complete"], found["format"]) == (200, False, "orbax")
    path = trees.orbax(tmp_path / "300")
    (path / "default").rename(path / "default.orbax-checkpoint-tmp-3")
    assert look(tmp_path)[0]["complete"] is False


def test_orbax_items_that_were_committed_without_their_step(tmp_path):
    paths = [trees.orbax(tmp_path / name, success=True) for name in ("100", "200")]
    for path in paths:
        trees.write(path / "default" / "commit_success.txt", "Checkpoint commit was successful to /ck/default")
    (paths[1] / "commit_success.txt").unlink()
    assert [item["complete"] for item in look(tmp_path)] == [False, True]
    (paths[0] / "commit_success.txt").unlink()
    assert [item["complete"] for item in look(tmp_path)] == [None, None]


def test_orbax_without_ocdbt(tmp_path):
    path = trees.orbax_zarr(tmp_path / "100")
    assert only(tmp_path)["complete"] is True
    (path / "default" / "params.w" / "1.0").unlink()
    assert "chunk 1.0 missing, of 4" in only(tmp_path)["why"]
    trees.write(path / "default" / "params.w" / "1.0", trees.frame(b"x" * 16)[:-1])
    assert "breaks off" in only(tmp_path)["why"]
    trees.orbax_zarr(path)
    trees.write(path / "default" / "b" / "0", b"x" * 15)
    assert "has 15 bytes, 16 by .zarray" in only(tmp_path)["why"]
    trees.orbax_zarr(path)
    trees.shutil.rmtree(path / "default" / "b")
    assert "b/.zarray is missing" in only(tmp_path)["why"]


def test_data_files_of_single_processes(tmp_path):
    """The merged tree names what it needs of them; the rest may go."""
    trees.orbax(tmp_path / "200")
    path = trees.orbax(tmp_path / "100")
    inner = path / "default" / "ocdbt.process_0"
    trees.store(inner)
    trees.write(inner / "d" / ("c" * 32), b"of a version that was replaced")
    assert [item["complete"] for item in look(tmp_path)] == [True, True]
    (inner / "d" / ("c" * 32)).unlink()
    assert [item["complete"] for item in look(tmp_path)] == [True, True]
    (inner / "d" / ("b" * 32)).unlink()
    assert [item["complete"] for item in look(tmp_path)] == [True, None]
    trees.store(inner)
    (inner / "manifest.ocdbt").unlink()
    assert [item["complete"] for item in look(tmp_path)] == [True, None]
    trees.shutil.rmtree(inner)
    assert [item["complete"] for item in look(tmp_path)] == [True, True]


def test_items_of_orbax_that_hold_json(tmp_path):
    path = trees.orbax(tmp_path / "100")
    handlers = {"default": "a", "meta": "b"}
    trees.write(path / "_CHECKPOINT_METADATA", {"item_handlers": handlers, "commit_timestamp_nsecs": 2})
    assert "meta is missing" in only(tmp_path)["why"]
    trees.write(path / "meta" / "metadata", '{"a": 1}')
    assert only(tmp_path)["complete"] is True
    trees.write(path / "meta" / "metadata", '{"a": ')
    assert "meta/metadata is broken off" in only(tmp_path)["why"]


def test_orbax_without_zstandard_compares_with_the_step_before(tmp_path, monkeypatch):
    monkeypatch.setattr(survey.orbax.ocdbt, "_body", lambda *args, **more: None)
    trees.orbax(tmp_path / "100")
    path = trees.orbax(tmp_path / "200")
    assert [item["complete"] for item in look(tmp_path)] == [True, True]
    (path / "default" / "d" / ("b" * 32)).unlink()
    assert [item["complete"] for item in look(tmp_path)] == [None, True]
    (path / "default" / "d" / ("a" * 32)).unlink()
    assert [item["complete"] for item in look(tmp_path)] == [False, True]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"\0" * 400, "never written"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n", "git-lfs"),
        (b"{}", "breaks off"),
        (trees.struct.pack("<Q", 1 << 40) + b"x" * 100, "a header of 1099511627776 bytes"),
        (trees.struct.pack("<Q", 2) + b"[]", "broken header"),
        (trees.struct.pack("<Q", 100_000) + b"[" * 100_000, "broken header"),
        (trees.safetensors(["a"]) + b"x", "by its header"),
    ],
)
def test_single_safetensors_files(tmp_path, data, why):
    trees.write(tmp_path / "step_5.safetensors", data)
    found = only(tmp_path)
    assert (found["format"], found["step"], found["complete"]) == ("safetensors", 5, False)
    assert why in found["why"]


def test_gaps_between_tensors(tmp_path):
    header = json.dumps({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, "b": _bytes(6, 8)}).encode()
    trees.write(tmp_path / "a.safetensors", trees.struct.pack("<Q", len(header)) + header + b"x" * 8)
    assert "gap or overlap" in only(tmp_path)["why"]


def _bytes(begin, end):
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


def test_single_files_of_lightning(tmp_path):
    trees.write(tmp_path / "epoch=3-step=1999.ckpt", trees.save({"state_dict": {}}))
    trees.write(tmp_path / "epoch=4-step=2499.ckpt", trees.save({"state_dict": {}})[:-1])
    assert [(item["step"], item["complete"]) for item in look(tmp_path)] == [(2499, False), (1999, True)]


def test_torch_save_before_zip_is_left_open(tmp_path):
    trees.write(tmp_path / "step_3.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + b"rest" * 20)
    assert only(tmp_path)["complete"] is None


def test_files_of_accelerate(tmp_path):
    """Its random states are files of torch.save, though they are called .pkl; others are plain pickles."""
    path = trees.sharded(tmp_path / "checkpoint_3", 2)
    trees.write(path / "random_states_0.pkl", trees.save({"step": 3}))
    trees.write(path / "custom_checkpoint_0.pkl", trees.dump({"a": 1}) + trees.dump([2]))
    trees.write(path / "sampler.pt", trees.dump({"a": 1}))
    assert only(tmp_path)["complete"] is True
    for name in ("random_states_0.pkl", "custom_checkpoint_0.pkl", "sampler.pt"):
        whole = (path / name).read_bytes()
        trees.write(path / name, whole[:-1])
        assert name in only(tmp_path)["why"]
        trees.write(path / name, whole)


def test_shards_in_files_of_their_own(tmp_path):
    def put(name, data):
        trees.write(tmp_path / name, data)

    for number in range(4):
        put(f"checkpoint_23_22750-model_part-0-shard{number}.pt", trees.save({}))
        put(f"checkpoint_last-model_part-0-shard{number}.pt", b"" if number == 2 else trees.save({}))
    found = look(tmp_path)
    assert [(item["step"], item["complete"], item["files"]) for item in found] == [(22750, True, 4), (None, False, 4)]
    put("checkpoint_23_22750-model_part-0-shard3.pt.tmp", trees.save({}))
    (tmp_path / "checkpoint_23_22750-model_part-0-shard3.pt").unlink()
    assert "never renamed" in look(tmp_path)[0]["why"]
    put("checkpoint_last-model_part-0-shard2.pt", trees.save({}, b"1" * 900))
    assert "odd size" in look(tmp_path)[1]["why"]
    (tmp_path / "checkpoint_last-model_part-0-shard1.pt").unlink()
    assert "shard 1 missing, of 4" in look(tmp_path)[1]["why"]


def test_unfinished_files_beside_finished_ones(tmp_path):
    path = trees.huggingface(tmp_path / "checkpoint-10")
    trees.write(path / "optimizer.pt.tmp", b"x")
    assert only(tmp_path)["complete"] is None
    (path / "optimizer.pt").unlink()
    assert only(tmp_path)["complete"] is False
