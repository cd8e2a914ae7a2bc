# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the names of files and directories tell: which are checkpoints, of which step, and which are leftovers."""

from __future__ import annotations

import re

_STEP = (
    re.compile(r"(?:^|[^a-z])(?:global_?)?steps?[-_=.]?(\d+)", re.I),
    re.compile(r"(?:^|[^a-z])iter(?:ation)?s?[-_=.]?(\d+)", re.I),
    re.compile(r"(?:^|[^a-z])(?:checkpoint|ckpt)[-_=.]?(?:\d+_)?(\d+)", re.I),
    re.compile(r"^(\d+)(?=$|\.|-)"),
)
# Directories that trainers make for a checkpoint and for nothing else.
_SURE = re.compile(r"iter_\d{7,}|release|checkpoint-\d+|global_step\d+|.*\.orbax-checkpoint-tmp.*")
_LIKELY = re.compile(
    r"\d+|(?:checkpoint|ckpt)[-_=.]?\d+|.*(?:^|[-_=.])(?:global_?)?step[-_=]?\d+.*|iter(?:ation)?[-_=]?\d+|epoch[-_=]?\d+.*"
    r"|.*consumed_samples=.*",
    re.I,
)
_UNFINISHED = re.compile(
    r".*\.orbax-checkpoint-tmp.*|[._]?tmp[-_.].*|.*[-_.](?:tmp|temp|partial|incomplete)|.*[-_.]tmp[-_.]?\w+",
    re.I,
)
SINGLE = (".safetensors", ".pt", ".pth", ".ckpt")
_SHARD = re.compile(r"(.*?)(?:[-_.]?model_part-\d+)?[-_.]shard[-_]?\d+\.pt")
_NUMBERED = re.compile(r"(.+)-\d{5,6}-of-\d{5,6}\.(?:safetensors|bin)")
# Files that belong to a checkpoint's directory and are none by themselves.
_PARTS = re.compile(
    r"(?:optimizer|scheduler|scaler|training_args|common|rng_state|random_states|custom_checkpoint|distrib_optim"
    r"|model_optim_rng|model_rng|.*_(?:model|optim)_states|layer_)[^/]*"
)
_STRONG = re.compile(
    r"\.metadata|__\d+_\d+\.distcp|trainer_state\.json|mp_rank_\d\d\S*|_CHECKPOINT_METADATA|_METADATA|manifest\.ocdbt"
    r"|commit_success\.txt|(?:bf16_)?zero_pp_rank_\S+|layer_\d+-model_\S+"
)
_WEIGHTS = re.compile(r"(?:model|pytorch_model|adapter_model)\S*\.(?:safetensors|bin)|\S+\.index\.json")


def step(name: str) -> int | None:
    """The step in a checkpoint's name; `epoch=3-step=1999` is 1999."""
    for pattern in _STEP:
        found = pattern.findall(name)
        if found and len(found[-1]) <= 18:
            return int(found[-1])
    return None


def sure(name: str) -> bool:
    """Whether a directory called so is a checkpoint or the remains of one."""
    return bool(_SURE.fullmatch(name))


def inner(name: str, beside: set[str]) -> bool:
    """Whether a directory, `sure` by its name, is a part of the checkpoint that the entries `beside` it make up."""
    return name.startswith("global_step") and "trainer_state.json" in beside


def likely(name: str) -> bool:
    """Whether a directory called so may be a checkpoint; its files decide."""
    return bool(_LIKELY.fullmatch(name) or _SURE.fullmatch(name))


def unfinished(name: str) -> bool:
    """Whether the name is one that writers use until a save is over."""
    return bool(_UNFINISHED.fullmatch(name))


def strong(names: set[str]) -> bool:
    """Whether a directory with these entries is a checkpoint, and nothing below it another one."""
    return any(_STRONG.fullmatch(name) for name in names) or {"weights", "context"} <= names


def weak(names: set[str]) -> bool:
    """Whether a directory with these entries holds weights, besides what else it may hold."""
    return any(_WEIGHTS.fullmatch(name) for name in names)


def single(name: str) -> bool:
    """Whether a file called so may be a checkpoint by itself."""
    base = name.removesuffix(".tmp")
    return base.endswith(SINGLE) and not _PARTS.fullmatch(base)


def shard_set(name: str) -> str | None:
    """The common name of a set of files, when `name` is one of them: fairseq's shards, or numbered ones."""
    base = name.removesuffix(".tmp")
    match = _SHARD.fullmatch(base) or _NUMBERED.fullmatch(base)
    return match[1] if match else None
