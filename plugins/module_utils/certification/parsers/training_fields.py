# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a step line, by the names that the training frameworks give them.

    NeMo 2               train_step_timing in s, reduced_train_loss, TFLOPS_per_GPU, tokens_per_sec_per_gpu
    Megatron-LM          elapsed time per iteration (ms), lm loss, throughput per GPU (TFLOP/s/GPU)
    Megatron-DeepSpeed   the same, TFLOPs, samples per second
    nanotron             elapsed_time_per_iteration_ms: 4.71K, lm_loss, model_tflops_per_gpu

Values come out in seconds, TFLOP/s, tokens per second, bytes. A unit stands in the name, after the value, or both.
"""

from __future__ import annotations

import math
import re

STEP_TIME, LOSS, TFLOPS, TOKENS, TOKENS_PER_GPU, SAMPLES, MEMORY, RESERVED, SKIPPED, NANS, GLOBAL_STEP = range(11)
COUNT = 11

_NAMES = {
    "train step timing": STEP_TIME,
    "elapsed time per iteration": STEP_TIME,
    "iteration time": STEP_TIME,
    "step time": STEP_TIME,
    "time per iteration": STEP_TIME,
    "reduced train loss": LOSS,
    "lm loss": LOSS,
    "loss": LOSS,
    "train loss": LOSS,
    "tflops per gpu": TFLOPS,
    "tflops": TFLOPS,
    "throughput per gpu": TFLOPS,
    "model tflops per gpu": TFLOPS,
    "model tflop/s/gpu": TFLOPS,
    "tokens per sec per gpu": TOKENS_PER_GPU,
    "tokens per second per gpu": TOKENS_PER_GPU,
    "tokens/sec/gpu": TOKENS_PER_GPU,
    "tokens/s/gpu": TOKENS_PER_GPU,
    "tokens per gpu per second": TOKENS_PER_GPU,
    "tokens per sec": TOKENS,
    "tokens per second": TOKENS,
    "tokens/sec": TOKENS,
    "samples per second": SAMPLES,
    "peak memory usage": MEMORY,
    "cuda max memory reserved": RESERVED,
    "max memory allocated": MEMORY,
    "number of skipped iterations": SKIPPED,
    "number of nan iterations": NANS,
    "global step": GLOBAL_STEP,
}
_TIMES = {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
_BYTES = {"b": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_BYTES |= {"kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3, "tib": 1024.0**4}
_FACTORS = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_UNIT = re.compile(r"\s*(?:\(([^)]*)\)|\bin (\w+))\s*$")
_VALUE = re.compile(
    r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?))\s*([A-Za-z/]*)\s*$", re.I
)


def field(key: str) -> tuple[int, float] | None:
    """(field, factor to its unit) of a name as printed, None for one that is of no use here."""
    name, unit = key.strip().lower().replace("_", " "), ""
    if found := _UNIT.search(name):
        unit, name = (found[1] or found[2] or "").strip(), name[: found.start()].strip()
    words = name.split()
    if words and words[-1] in _TIMES and " ".join(words) not in _NAMES:
        unit, words = words[-1], words[:-1]
    kind = _NAMES.get(" ".join(words))
    if kind is None:
        return None
    if kind == STEP_TIME:
        return kind, _TIMES.get(unit, 1.0)
    if kind in (MEMORY, RESERVED):
        return kind, _BYTES.get(unit, 1.0)
    if kind == TFLOPS and "flop" not in name and "flop" not in unit:
        return None  # a throughput of something else
    return kind, 1.0


def value(text: str, kind: int) -> float | None:
    """The number, with a suffix like 4.71K, 9.09s or 66.9GB applied; NaN and infinity are kept. None for no number."""
    try:
        return float(text)
    except ValueError:
        pass
    match = _VALUE.match(text)
    if not match:
        return None
    number, suffix = float(match[1]), match[2].lower()
    if kind == STEP_TIME and suffix in _TIMES:
        return number * _TIMES[suffix]
    if kind in (MEMORY, RESERVED) and suffix in _BYTES and suffix != "b":
        return number * _BYTES[suffix]
    if suffix in _FACTORS:
        return number * _FACTORS[suffix]
    return number if not suffix or "flop" in suffix or suffix.startswith("tok") else None


def finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)
