# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a training log that say that something broke. Looked for in many lines at once: nearly none has any."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    HARDWARE,
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
)

# (text, code, category, what it says); the first that fits a line names it
FAULTS = (
    ("system not yet initialized", "fabric-manager-down", INFRASTRUCTURE, ""),
    ("uncorrectable ECC error", "memory-error", HARDWARE, "A GPU reported an uncorrectable memory error"),
    ("Possible persistent error", "wrong-result", HARDWARE, "A step gave a wrong result again on the same GPU"),
    ("Possible transient error", "wrong-result", HARDWARE, "A step gave another result when repeated"),
    ("found NaN in", "nan-loss", UNKNOWN, "A result was not a number"),
    ("out of memory", "out-of-memory", CONFIGURATION, "Memory ran out"),
    ("OutOfMemoryError", "out-of-memory", CONFIGURATION, "Memory ran out"),
    ("Watchdog caught collective operation timeout", "collective-timeout", UNKNOWN, "A collective operation hung"),
    ("ncclSystemError", "nccl-error", UNKNOWN, "NCCL failed"),
    ("ncclInternalError", "nccl-error", UNKNOWN, "NCCL failed"),
    ("ncclRemoteError", "nccl-error", UNKNOWN, "NCCL lost a peer"),
    ("ncclUnhandledCudaError", "nccl-error", UNKNOWN, "NCCL failed"),
    ("NCCL error", "nccl-error", UNKNOWN, "NCCL failed"),
    ("CUDA error:", "cuda-error", UNKNOWN, "CUDA failed"),
    ("No space left on device", "disk-full", INFRASTRUCTURE, "A disk is full"),
    ("srun: error:", "process-ended", INFRASTRUCTURE, "The launcher reports an error"),
    ("slurmstepd: error:", "process-ended", INFRASTRUCTURE, "The launcher reports an error"),
    ("ChildFailedError", "process-ended", UNKNOWN, "A process of the run failed"),
    ("Segmentation fault", "process-ended", UNKNOWN, "A process crashed"),
    ("Traceback (most recent call last)", "program-error", TOOL, "The program ended with an error"),
)
# looked for at the end of a log
FINISHED = ("after training is done]", "`Trainer.fit` stopped: `max_", "exiting program at iteration")
PER_KIND = 20  # findings of one kind that are kept


def search(text: str) -> Iterator[tuple[int, tuple[str, str, str, str]]]:
    """(number of the line from 0, its entry of FAULTS), at most PER_KIND lines of each entry."""
    seen: set[int] = set()
    errors = "rror" in text  # spares most passes
    for fault in FAULTS:
        if not errors and "rror" in fault[0]:
            continue
        position, count = text.find(fault[0]), 0
        while position >= 0 and count < PER_KIND:
            index = text.count("\n", 0, position)
            if index not in seen:
                seen.add(index)
                count += 1
                yield index, fault
            end = text.find("\n", position)
            position = text.find(fault[0], end) if end >= 0 else -1
