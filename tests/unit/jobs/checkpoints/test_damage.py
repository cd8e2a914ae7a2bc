"""Whatever is cut off, taken away or overwritten: never called complete, never an exception."""

from __future__ import annotations

import pathlib
import tempfile

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import pickles, survey, torchfile
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobs.checkpoints import trees

LATER = trees.WRITTEN + 10_000_000  # long after files were written, and before the damage was done


def newest(root: pathlib.Path) -> dict:
    """What is said of the newest checkpoint, with the damage as old as all else."""
    return survey.survey(str(root), settle=0, now=LATER)["checkpoints"][0]


WAYS = [*((trees.RUNS, form) for form in trees.RUNS), *((trees.OTHERS, form) for form in trees.OTHERS)]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: way[1])
def pristine(request):
    """Two checkpoints of one format; the newer one is to be damaged."""
    with tempfile.TemporaryDirectory() as place:
        runs, form = request.param
        older, newer = trees.run(pathlib.Path(place) / "run", form, runs=runs)
        if form == "orbax" and runs is trees.RUNS:
            trees.orbax(older, success=True)
            trees.orbax(newer, success=True)
        assert newest(older.parent)["complete"] is True
        yield older.parent, newer.name


def files(root: pathlib.Path) -> list[str]:
    return sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())


def test_any_file_taken_away(pristine, tmp_path):
    root, name = pristine
    for file in files(root / name):
        copy = trees.again(tmp_path / "copy", root)
        (copy / name / file).unlink()
        found = newest(copy)
        assert found["path"] == str(copy / name)
        assert found["complete"] is not True, file
        assert found["why"]


def test_any_file_emptied_or_cut(pristine, tmp_path):
    root, name = pristine
    for file in files(root / name):
        data = (root / name / file).read_bytes()
        copy = trees.again(tmp_path / "copy", root)
        # every byte of short files and of both ends of long ones
        cuts = [cut for cut in range(len(data)) if cut < 40 or cut > len(data) - 60 or cut % 97 == 0]
        for cut in cuts:
            (copy / name / file).write_bytes(data[:cut])
            assert newest(copy)["complete"] is not True, (file, cut, len(data))


def test_a_torn_one_never_hides_the_one_before(pristine, tmp_path):
    root, name = pristine
    copy = trees.again(tmp_path / "copy", root)
    for file in files(copy / name):
        (copy / name / file).write_bytes(b"")
    found = survey.survey(str(copy), settle=0)
    assert found["newest"]["step"] == 100
    assert [item["step"] for item in found["torn"]] == [200]


@settings(max_examples=40)
@given(data=st.data())
def test_junk_in_any_file_never_raises(pristine, data):
    root, name = pristine
    with tempfile.TemporaryDirectory() as place:
        copy = trees.again(pathlib.Path(place) / "copy", root)
        for file in data.draw(st.lists(st.sampled_from(files(copy / name)), min_size=1, max_size=2, unique=True)):
            whole = (copy / name / file).read_bytes()
            at = data.draw(st.integers(0, len(whole)))
            junk = data.draw(st.binary(max_size=40))
            (copy / name / file).write_bytes(whole[:at] + junk + whole[at + len(junk) :])
        document = newest(copy)
        assert document["complete"] in (True, False, None)
        assert bool(document["why"]) is (document["complete"] is not True)


# fmt: off
NAMES = [
    ".metadata", "metadata.json", "common.pt", "__0_0.distcp",
    "__0.metadata", "trainer_state.json", "optimizer.pt", "rng_state_0.pth",
    "model.safetensors", "model.safetensors.index.json", "model-00001-of-00002.safetensors", "pytorch_model.bin",
    "mp_rank_00/model_optim_rng.pt", "mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "_CHECKPOINT_METADATA",
    "default/_METADATA", "default/manifest.ocdbt", "default/d/aa", "commit_success.txt",
    "weights/.metadata", "weights/metadata.json", "context/io.json", "latest",
    "latest_checkpointed_iteration.txt", "iter_0000007/.metadata", "checkpoint-5/optimizer.pt", "9/default/_METADATA",
    "x-shard0.pt", "step_3.ckpt", "a.pkl", "random_states_0.pkl",
]
# fmt: on
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"{}", b"[]", b"null", b"7", b'"a"', b"1e999", b"[" * 5000, b'{"weight_map": {"a": 1}}']),
    st.sampled_from([b"\x80\x04N.", b"\x80\x04}.", b"PK\x03\x04" + b"\0" * 60, trees.save({}), trees.save([])]),
    st.sampled_from([b"\0" * 100, b"\x0c\xdb\x3a\x2a" + b"\0" * 30, trees.metadata({}), trees.metadata({"a": [-4]})]),
)


@given(tree=st.dictionaries(st.sampled_from(NAMES), CONTENTS, max_size=6))
def test_any_tree_of_junk_never_raises(tree):
    with tempfile.TemporaryDirectory() as place:
        for name, content in tree.items():
            trees.write(pathlib.Path(place) / name, content)
        found = survey.survey(place, every=True, settle=0)
        for item in found["checkpoints"]:
            assert item["complete"] in (True, False, None)
            assert bool(item["why"]) is (item["complete"] is not True)


@given(st.binary(max_size=300))
def test_pickles_of_junk(data):
    for lean in (None, lambda name, state: None):
        try:
            pickles.read(data, built=lean)
        except Damaged:
            continue


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_pickles_with_bytes_overwritten(at, junk):
    data = bytearray(trees.metadata({"a": [1, 2], "b": [3]}))
    at %= len(data)
    data[at : at + len(junk)] = junk
    try:
        pickles.read(bytes(data), built=lambda name, state: None)
    except Damaged:
        return


@given(st.data())
def test_zips_with_bytes_overwritten(data):
    whole = bytearray(trees.save({"a": 1}))
    at = data.draw(st.integers(0, len(whole) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=30))
    whole[at : at + len(junk)] = junk
    with tempfile.TemporaryFile() as file:
        file.write(whole)
        for read in (torchfile.check, torchfile.values):
            try:
                read(file, len(whole))
            except (Damaged, torchfile.Unclear):
                continue
