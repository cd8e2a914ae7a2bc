# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints without a directory of their own: a safetensors or torch.save file, or a set of shards of either."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Finding, listed
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

SAFETENSORS = "safetensors"
TORCH = "torch-save"
_SHARD = re.compile(r"(?P<part>.*?)[-_.]shard[-_]?(?P<number>\d+)\.pt(?:\.tmp)?")
_NUMBERED = re.compile(r".+-(\d{5,6})-of-(\d{5,6})\.(?:safetensors|bin)(?:\.tmp)?")
_ALIKE = 0.05  # how far the sizes of fairseq's shards may lie apart


def format_of(tree: Tree) -> str:
    """The format, going by names."""
    return SAFETENSORS if any(".safetensors" in name for name in tree.files) else TORCH


def check(tree: Tree, finding: Finding) -> None:
    """What `contents.check` cannot see: shards that are missing, and shards of an odd size."""
    parts: dict[str, dict[int, int]] = {}
    counts: dict[int, set[int]] = {}
    for name, file in tree.files.items():
        if match := _SHARD.fullmatch(name):
            parts.setdefault(match["part"], {})[int(match["number"])] = file.size
        elif match := _NUMBERED.fullmatch(name):
            counts.setdefault(int(match[2]), set()).add(int(match[1]))
    for count, numbers in counts.items():
        if len(numbers) < count:
            finding.fault(f"{count - len(numbers)} of {count} shards are missing")
    widest = max((max(shards) + 1 for shards in parts.values()), default=0)
    for part, shards in sorted(parts.items()):
        missing = [number for number in range(min(widest, 1 << 20)) if number not in shards]
        if missing:
            finding.fault(f"{part}: shard {listed([str(number) for number in missing])} missing, of {widest}")
        usual = sorted(shards.values())[len(shards) // 2]
        odd = sorted(number for number, size in shards.items() if abs(size - usual) > usual * _ALIKE)
        if odd and len(shards) > 2:
            names = listed([str(number) for number in odd])
            finding.doubt(f"{part}: shard {names} has an odd size, most have {usual} bytes")
