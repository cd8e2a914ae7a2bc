# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the reset of a GPU has helped, by what nvidia-smi shows before and after it.

    verdict(before, after, entity="GPU-3f1c…", expected=8)    # {verified, detail, serials}

`before` and `after` are lists of GPUs as the filter parse_nvidia_smi gives them. That the command of the reset ended
well is no proof: the GPU has to be there, ask for nothing, and have nothing pending. What a reset cannot heal, such as
heat or a slow link, is for the certification to find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

_PCI = re.compile(r"(?:PCI:)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?", re.IGNORECASE)
_UUID = re.compile(r"GPU-[0-9a-f]+(?:-[0-9a-f]+)*", re.IGNORECASE)

# Fields that are true, or not 0, while a GPU is not well after its reset, in words.
_LEFT = {
    "reset_required": "it requires a reset",
    "drain_and_reset": "it recommends another reset",
    "row_remap_pending": "a row remap is pending",
    "row_remap_failure": "a row remap has failed",
    "retired_pages_pending": "the retirement of a page is pending",
    "repair_pending": "a repair is pending",
    "ecc_volatile_uncorrected": "it counts uncorrected memory errors",
    "inforom_corrupted": "its infoROM is corrupted",
}


def device(entity: str) -> str:
    """What `nvidia-smi -i` calls the GPU; empty for the whole node. Raises InvalidDocument."""
    if not entity:
        return ""
    if _UUID.fullmatch(entity):
        return entity
    place = _place(entity)
    if place:
        return f"{place}.0"
    raise InvalidDocument(f"{entity!r} is no GPU", path="entity", hint="a UUID such as GPU-3f1c…, or 0000:3b:00")


def verdict(before: Iterable[Mapping], after: Iterable[Mapping], entity: str = "", expected: int = 0) -> dict:
    """{verified: bool, detail: why not, serials: of the GPU, or of all GPUs where `entity` is empty}.

    `expected`: how many GPUs the node has, 0 where that is not known. Raises InvalidDocument.
    """
    before, after = list(before), list(after)
    device(entity)
    meant = [gpu for gpu in after if _is(gpu, entity)]
    known = meant + [gpu for gpu in before if _is(gpu, entity)]
    serials = sorted({str(gpu["serial"]) for gpu in known if gpu.get("serial")})
    troubles = []
    if not after:
        troubles.append("nvidia-smi shows no GPU")
    elif entity and not meant:
        troubles.append(f"{entity} has not come back")
    lost = [gpu for gpu in before if not any(_same(gpu, other) for other in after)] if after else []
    troubles += [f"{_name(gpu)} has not come back" for gpu in lost if not (entity and _is(gpu, entity))]
    if after and len(after) < expected:
        troubles.append(f"{len(after)} of {expected} GPUs are there")
    for gpu in meant:
        troubles += [f"{_name(gpu)}: {trouble}" for trouble in _troubles(gpu)]
    return {"verified": not troubles, "detail": "; ".join(troubles), "serials": serials}


def _troubles(gpu: Mapping) -> list[str]:
    if gpu.get("fault"):
        return [f"it cannot be read ({gpu['fault']})"]
    if gpu.get("recovery_action") or (gpu.get("recovery_words") and gpu.get("recovery_action") is None):
        return [f"the driver asks for {gpu.get('recovery_words') or gpu['recovery_action']}"]
    return [words for name, words in _LEFT.items() if gpu.get(name)]


def _is(gpu: Mapping, entity: str) -> bool:
    if not entity:
        return True
    if _UUID.fullmatch(entity):
        return str(gpu.get("uuid", "")).lower() == entity.lower()
    return _place(str(gpu.get("pci", ""))) == _place(entity)


def _same(one: Mapping, other: Mapping) -> bool:
    return any(one.get(name) and one.get(name) == other.get(name) for name in ("uuid", "pci"))


def _place(address: str) -> str:
    """A PCI address as dddddddd:bb:dd; empty for what is none."""
    match = _PCI.fullmatch(address)
    return f"{int(match[1] or '0', 16):08x}:{match[2].lower()}:{match[3].lower()}" if match else ""


def _name(gpu: Mapping) -> str:
    return str(gpu.get("uuid") or gpu.get("pci") or f"GPU {gpu.get('index', '?')}")
