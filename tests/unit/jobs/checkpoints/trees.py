"""Small checkpoints of every format, written as their trainers write them, without the trainers.

Every function writes one below a directory and gives its path. Files get the time `WRITTEN`, long ago.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import pickle
import shutil
import struct
import sys
import types
import zipfile

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import ocdbt

WRITTEN = 1_790_000_000.0


def _class(module: str, name: str) -> type:
    return type(name, (), {"__module__": module, "__qualname__": name})


_METADATA = "torch.distributed.checkpoint.metadata"
CLASSES = {
    (_METADATA, name): _class(_METADATA, name)
    for name in ("Metadata", "TensorStorageMetadata", "ChunkStorageMetadata", "MetadataIndex", "StorageMeta")
}
CLASSES[("torch.distributed.checkpoint.filesystem", "_StorageInfo")] = _class(
    "torch.distributed.checkpoint.filesystem", "_StorageInfo"
)
CLASSES[("torch", "Size")] = type("Size", (tuple,), {"__module__": "torch", "__qualname__": "Size"})
CLASSES[("argparse_like", "Namespace")] = _class("argparse_like", "Namespace")


@contextlib.contextmanager
def _importable():
    """Lets pickle find the stand-ins under the names of the real classes."""
    saved = dict(sys.modules)
    for (module, name), cls in CLASSES.items():
        parts = module.split(".")
        for i in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
        setattr(sys.modules[module], name, cls)
    try:
        yield
    finally:
        for name in set(sys.modules) - set(saved):
            del sys.modules[name]


def dump(value: object, protocol: int = 4) -> bytes:
    with _importable():
        return pickle.dumps(value, protocol)


def make(module: str, name: str, **state: object) -> object:
    made = CLASSES[(module, name)]()
    made.__dict__.update(state)
    return made


def save(value: object, tensor: bytes = b"\1" * 64) -> bytes:
    """What torch.save writes: a zip, not compressed, with a pickle and the tensors."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", dump(value, 2))
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", tensor)
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def write(path: pathlib.Path, data: bytes | str | dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, dict):
        data = json.dumps(data)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(path, (WRITTEN, WRITTEN))


def shard(slices: int, tensor: bytes = b"\2" * 64) -> list[bytes]:
    return [save({"slice": i}, tensor) for i in range(slices)]


def metadata(files: dict[str, list[int]], **more: object) -> bytes:
    """.metadata for files with slices of the given lengths."""
    size = CLASSES[("torch", "Size")]
    tensors, storage = {}, {}
    for file, lengths in files.items():
        at = 0
        for number, length in enumerate(lengths):
            name = f"model.layer.{file}.{number}"
            chunk = make(_METADATA, "ChunkStorageMetadata", offsets=size((0, 0)), sizes=size((8, 8)))
            tensors[name] = make(_METADATA, "TensorStorageMetadata", size=size((8, 8)), chunks=[chunk])
            index = make(_METADATA, "MetadataIndex", fqn=name, offset=size((0, 0)), index=0)
            storage[index] = make(
                "torch.distributed.checkpoint.filesystem",
                "_StorageInfo",
                relative_path=file,
                offset=at,
                length=length,
            )
            at += length
    whole = make(_METADATA, "Metadata", state_dict_metadata=tensors, planner_data={}, storage_data=storage, **more)
    return dump(whole)


def dcp(path: pathlib.Path, ranks: int = 2, slices: int = 3) -> pathlib.Path:
    files = {}
    for rank in range(ranks):
        parts = shard(slices)
        files[f"__{rank}_0.distcp"] = list(map(len, parts))
        write(path / f"__{rank}_0.distcp", b"".join(parts))
    write(path / ".metadata", metadata(files))
    return path


def megatron_dist(path: pathlib.Path, ranks: int = 2) -> pathlib.Path:
    dcp(path, ranks)
    write(path / "common.pt", save({"iteration": 10}))
    write(path / "metadata.json", {"sharded_backend": "torch_dist", "sharded_backend_version": 1})
    return path


def megatron_legacy(
    path: pathlib.Path, tensor: int = 2, pipeline: int = 1, optimizer: bool = True, told: bool = True
) -> pathlib.Path:
    arguments = make(
        "argparse_like",
        "Namespace",
        tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline,
        use_distributed_optimizer=optimizer,
    )
    for t in range(tensor):
        for p in range(pipeline):
            part = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pipeline > 1 else "")
            write(path / part / "model_optim_rng.pt", save({"args": arguments, "iteration": 5} if told else {"a": 1}))
            if optimizer:
                write(path / part / "distrib_optim.pt", save({"optimizer": 1}))
    return path


def nemo(path: pathlib.Path) -> pathlib.Path:
    megatron_dist(path / "weights")
    write(path / "context" / "io.json", {"a": 1})
    write(path / "context" / "model.yaml", "a: 1\n")
    return path


def deepspeed(path: pathlib.Path, ranks: int = 4, parts: int = 1, told: bool = True, stage: int = 1) -> pathlib.Path:
    states = {"module": {"a": 1}, "global_steps": 10, "ds_config": {"zero_optimization": {"stage": stage}}}
    if told:
        states.update(dp_world_size=ranks, mp_world_size=parts)
    for part in range(parts):
        if stage < 3:
            write(path / f"mp_rank_{part:02d}_model_states.pt", save(states))
        for rank in range(ranks):
            name = f"zero_pp_rank_{rank}_mp_rank_{part:02d}"
            if stage == 3:
                write(path / f"{name}_model_states.pt", save(states))
            write(path / f"bf16_{name}_optim_states.pt", save({"optimizer_state_dict": 1}))
    return path


def safetensors(names: list[str], size: int = 4) -> bytes:
    header: dict = {"__metadata__": {"format": "pt"}}
    for i, name in enumerate(names):
        header[name] = {"dtype": "F32", "shape": [size], "data_offsets": [i * 4 * size, (i + 1) * 4 * size]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\3" * (4 * size * len(names))


def sharded(path: pathlib.Path, shards: int = 3, stem: str = "model", form: str = "safetensors") -> pathlib.Path:
    places = {}
    for i in range(1, shards + 1):
        file = f"{stem}-{i:05d}-of-{shards:05d}.{form}"
        places[f"layer.{i}"] = file
        write(path / file, safetensors([f"layer.{i}"]) if form == "safetensors" else save({f"layer.{i}": 1}))
    write(path / f"{stem}.{form}.index.json", {"metadata": {"total_size": 16 * shards}, "weight_map": places})
    return path


def huggingface(path: pathlib.Path, shards: int = 1, ranks: int = 1, step: int | None = None) -> pathlib.Path:
    step = int(path.name.rpartition("-")[2]) if step is None else step
    if shards > 1:
        sharded(path, shards)
    else:
        write(path / "model.safetensors", safetensors(["a", "b"]))
    write(path / "config.json", {"model_type": "llama"})
    write(path / "generation_config.json", {"eos_token_id": 2})
    for name in ("optimizer.pt", "scheduler.pt", "training_args.bin"):
        write(path / name, save({"name": name}))
    for rank in range(ranks):
        write(path / ("rng_state.pth" if ranks == 1 else f"rng_state_{rank}.pth"), save({"python": rank}))
    write(path / "trainer_state.json", {"global_step": step, "log_history": []})
    return path


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _block(magic: str, body: bytes) -> bytes:
    length = 14 + len(body) + 4
    data = bytes.fromhex(magic) + struct.pack("<Q", length) + b"\0\0" + body
    return data + struct.pack("<I", ocdbt.crc32c(data))


def _table(files: list[str]) -> bytes:
    out = _varint(len(files)) + b"".join(_varint(0) for _ in files[1:])
    out += b"".join(_varint(len(file)) for file in files) + b"\0" * len(files)
    return out + "".join(files).encode()


def store(path: pathlib.Path, root: str = "a" * 32, values: str = "b" * 32, sizes: tuple[int, ...] = (300, 20)) -> None:
    """An OCDBT store, not compressed: an inner node over a leaf, with values in a file of their own."""
    keys = [f"w{i}/0.0" for i in range(len(sizes))]
    offsets = [sum(sizes[:i]) for i in range(len(sizes))]
    leaf = b"\0" + _table([f"d/{values}"]) + _varint(len(keys)) + b"\0" * (len(keys) - 1)
    leaf += b"".join(_varint(len(key)) for key in keys) + "".join(keys).encode()
    leaf += b"".join(map(_varint, sizes)) + b"\1" * len(sizes) + b"\0" * len(sizes) + b"".join(map(_varint, offsets))
    leaf = _block("0cdb20de", leaf)
    inner = b"\1" + _table([f"d/{root}"]) + _varint(1) + _varint(1) + b"\0" + b"w"
    inner += b"\0" + b"\0" + _varint(len(leaf)) + _varint(len(keys)) + _varint(len(leaf)) + _varint(sum(sizes))
    inner = _block("0cdb20de", inner)
    write(path / "d" / root, leaf + inner)
    write(path / "d" / values, b"\4" * sum(sizes))
    body = b"u" * 16 + b"\0" + _varint(1024) + _varint(100_000_000) + b"\4" + b"\0" + _table([f"d/{root}"])
    body += _varint(1) + _varint(1) + b"\1" + b"\0" + _varint(len(leaf)) + _varint(len(inner))
    body += _varint(len(keys)) + _varint(len(inner) + len(leaf)) + _varint(sum(sizes)) + b"\0" * 8 + b"\0"
    write(path / "manifest.ocdbt", _block("0cdb3a2a", body))


def orbax(path: pathlib.Path, success: bool = False) -> pathlib.Path:
    write(
        path / "_CHECKPOINT_METADATA",
        {"item_handlers": {"default": "Handler"}, "init_timestamp_nsecs": 1, "commit_timestamp_nsecs": 2},
    )
    write(path / "default" / "_METADATA", {"tree_metadata": {}, "use_ocdbt": True})
    write(path / "default" / "_sharding", {"a": "b"})
    write(path / "default" / "array_metadatas" / "process_0", {"array_metadatas": []})
    store(path / "default")
    if success:
        write(path / "commit_success.txt", f"Checkpoint commit was successful to /ck/{path.name}")
    return path


def frame(data: bytes) -> bytes:
    """A Zstandard frame with the data as it is, in one block."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + (len(data) << 3 | 1).to_bytes(3, "little") + data


def orbax_zarr(path: pathlib.Path) -> pathlib.Path:
    """A step without OCDBT: one array of four compressed chunks, one that is not compressed."""
    write(path / "_CHECKPOINT_METADATA", {"item_handlers": {"default": "Handler"}, "commit_timestamp_nsecs": 2})
    arrays = {"params.w": ([4, 4], [2, 2], {"id": "zstd", "level": 1}), "b": ([8], [4], None)}
    listed = {}
    for name, (shape, chunks, compressor) in arrays.items():
        head = {"shape": shape, "chunks": chunks, "compressor": compressor, "dtype": "<f4", "filters": None}
        write(path / "default" / name / ".zarray", head)
        keys = [{"key": key, "key_type": 2} for key in name.split(".")]
        listed[name] = {"key_metadata": keys, "value_metadata": {"value_type": "jax.Array"}}
    for place in ("0.0", "0.1", "1.0", "1.1"):
        write(path / "default" / "params.w" / place, frame(b"\5" * 16))
    for place in ("0", "1"):
        write(path / "default" / "b" / place, b"\6" * 16)
    said = {"tree_metadata": listed, "use_ocdbt": False, "store_array_data_equal_to_fill_value": True}
    write(path / "default" / "_METADATA", said)
    return path


def tag_of(path: pathlib.Path, name: str = "latest") -> None:
    write(path.parent / name, path.name)


def tracker(path: pathlib.Path) -> None:
    name = path.name.removeprefix("iter_")
    write(path.parent / "latest_checkpointed_iteration.txt", name if name == "release" else str(int(name)))


def again(root: pathlib.Path, source: pathlib.Path) -> pathlib.Path:
    """A fresh copy of a directory, with the times of its files."""
    shutil.rmtree(root, ignore_errors=True)
    return pathlib.Path(shutil.copytree(source, root))


# Per format: the name of a checkpoint at a step, and how it is written.
RUNS = {
    "pytorch-dcp": ("step_{}", dcp),
    "megatron-torch-dist": ("iter_{:07d}", megatron_dist),
    "megatron-legacy": ("iter_{:07d}", megatron_legacy),
    "nemo2": ("model--val_loss=1.25-step={}-consumed_samples=640.0", nemo),
    "deepspeed": ("global_step{}", deepspeed),
    "huggingface": ("checkpoint-{}", huggingface),
    "orbax": ("{}", orbax),
    "safetensors": ("step_{}", sharded),
}
# More ways of writing one of these formats.
OTHERS = {
    "orbax": ("{}", orbax_zarr),
    "huggingface": ("checkpoint-{}", lambda path: huggingface(path, shards=2, ranks=3)),
    "deepspeed": ("global_step{}", lambda path: deepspeed(path, parts=2, stage=3)),
    "megatron-legacy": ("iter_{:07d}", lambda path: megatron_legacy(path, pipeline=2, optimizer=False)),
}


def run(
    root: pathlib.Path, form: str, steps: tuple[int, ...] = (100, 200), runs: dict | None = None
) -> list[pathlib.Path]:
    name, build = (RUNS if runs is None else runs)[form]
    return [build(root / name.format(step)) for step in steps]
