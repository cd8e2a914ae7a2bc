"""Pickles are read as data, whatever they ask for, in bounded memory."""

from __future__ import annotations

import os
import struct
import tracemalloc

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import pickles
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged

from tests.unit.jobs.checkpoints import trees


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values(protocol):
    value = {
        "int": 7, "big": 1 << 70, "minus": -5, "wide": 70_000, "float": 1.5, "none": None, "yes": True, "no": False,
        "text": "é" * 300, "bytes": [1, "a", (1, 2), (1, 2, 3), (1,), (), (1, 2, 3, 4)], "in": {"a": {"b": ["c"]}},
    }  # fmt: skip
    read, end = pickles.read(data := trees.dump(value, protocol))
    assert read == value
    assert end == len(data)


@pytest.mark.parametrize("protocol", range(6))
def test_objects_are_inert(protocol):
    arguments = trees.make("argparse_like", "Namespace", tensor_model_parallel_size=8)
    read, _ = pickles.read(trees.dump({"args": arguments}, protocol))
    assert read["args"].name.endswith("Namespace") or protocol < 2
    assert type(read["args"]) is pickles.Inert
    assert read["args"].state == {"tensor_model_parallel_size": 8}


def test_nothing_is_called(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    for protocol in range(6):
        pickles.read(trees.pickle.dumps({"a": Bomb()}, protocol))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04\x96" + struct.pack("<Q", 1 << 40) + b".",  # a bytearray of a tebibyte
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b".",
        b"\x80\x04\x8b" + struct.pack("<i", 1 << 30) + b".",
        b"\x80\x04\x8b" + struct.pack("<i", -4) + b".",
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b".",
        b"I" + b"9" * 70_000 + b"\n.",
        b"\x80\x04" + b"\x85" * 9 + b".",
        b"\x80\x04(((((.",
        b"",
        b".",
    ],
)
def test_what_is_no_pickle(data):
    with pytest.raises(Damaged):
        pickles.read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04Nr" + struct.pack("<I", (1 << 32) - 1) + b".",  # a memo of four billion places
        b"\x80\x04N" + b"\x85" * 50_000 + b".",  # tuples nested so deep that hashing one would end the process
        b"\x80\x04}N" + b"\x85" * 50_000 + b"Ns.",
        b"\x80\x04]" + b"2\x61" * 1000 + b".",
    ],
)
def test_bombs_are_small(data):
    tracemalloc.start()
    pickles.read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def test_a_large_save_needs_little_memory():
    entries = 4_000
    data = trees.metadata({"__0_0.distcp": [10] * entries})
    seen = []
    tracemalloc.start()
    pickles.read(data, built=lambda name, state: seen.append(1) if name.endswith("_StorageInfo") else None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(seen) == entries
    assert peak < 3 * len(data)
