# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One kernel message, without what stands before it: which kind it is and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Union

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event, nic, sxid, xid
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal, Unreadable
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

FALLEN_CHECK = "SysLogsGPUFallenOff"
RESET_WRITER = "nvsentinel-gpu-reset"  # the one process whose word counts beside the kernel's

# where a message of interest begins in a line; host names have no underscore
MARK = re.compile(
    r"NVRM:|nvidia-nvswitch\d*\s*:|(?<![\w.-])mlx5_|infiniband mlx5_|NETDEV WATCHDOG:|GPU reset executed:"
    r"|Linux version \d",
    re.IGNORECASE,
)
_ADDRESS = r"(?P<device>(?:PCI:)?[0-9a-f]{1,8}(?::[0-9a-f]{1,4}){1,2}(?:\.[0-9a-f])?)"
_UUID = re.compile(rf"NVRM:\s*GPU at {_ADDRESS}:?\s*(?P<uuid>GPU-[0-9a-f-]{{8,64}})", re.IGNORECASE)
_ANNOUNCED = re.compile(rf"NVRM:\s*The NVIDIA GPU {_ADDRESS}(?![\w:.])", re.IGNORECASE)
_FALLEN = re.compile(r"NVRM:.*\bfallen off the\s+(?:NVRM:\s*)?bus\b", re.IGNORECASE | re.DOTALL)
_FALLEN_GPU = re.compile(rf"\bGPU (?:at )?{_ADDRESS}(?![\w])|\bGPU\s?(?P<index>\d{{1,3}})\b", re.IGNORECASE)
_RESET = re.compile(
    r"GPU reset executed:\s*(?P<uuid>GPU-[\w-]{1,64}),\s*success:\s*(?P<good>true|false)\b", re.IGNORECASE
)
_DRIVER = re.compile(r"NVRM: loading .*?\s(\d{3})\.\d", re.IGNORECASE)


@dataclass(slots=True)
class Uuid:
    """The driver tells a GPU's UUID once, before its first Xid."""

    pci: str
    uuid: str


@dataclass(slots=True)
class Announced:
    """The first line of a message of several lines about this GPU."""

    pci: str


@dataclass(slots=True)
class Fallen:
    """A GPU fell off the bus; which one may stand in a line before."""

    pci: str | None
    index: str | None = None


@dataclass(slots=True)
class Reset:
    """A job reset this GPU."""

    uuid: str
    good: bool


@dataclass(slots=True)
class Driver:
    """Major version of the GPU driver that was loaded."""

    major: int


@dataclass(slots=True)
class NewBoot:
    """The first message of a kernel."""


# evaluated when read, so in the form that every tool knows
Message = Optional[  # noqa: UP045
    Union[Signal, sxid.Line, Unreadable, Uuid, Announced, Fallen, Reset, Driver, NewBoot]  # noqa: UP007
]


def read(body: str, tables: Tables, driver: int | None) -> Message:
    """Of a message that begins with a MARK. None: of no interest."""
    first = body[0]
    if first in "mMiI" or body[:6].upper() == "NETDEV":
        return nic.read(body)
    if first in "lL":
        return NewBoot()
    if first in "gG":
        return _reset(body)
    if body[:5].upper() != "NVRM:":
        return sxid.read(body, tables)
    return _gpu(body, tables, driver)


def _gpu(body: str, tables: Tables, driver: int | None) -> Message:
    found: Message = xid.read(body, tables, driver)
    if found is not None:
        return found
    told = _UUID.match(body)
    if told:
        pci = _pci(told["device"])
        return Uuid(pci, told["uuid"]) if pci else None
    announced = _ANNOUNCED.match(body)
    pci = _pci(announced["device"]) if announced else None
    if _FALLEN.match(body):
        if pci:
            return Fallen(pci)
        gpu = _FALLEN_GPU.search(body)
        return Fallen(_pci(gpu["device"]) if gpu and gpu["device"] else None, gpu["index"] if gpu else None)
    if pci:
        return Announced(pci)
    loading = _DRIVER.match(body)
    return Driver(int(loading[1])) if loading else None


def _reset(body: str) -> Reset | Unreadable:
    found = _RESET.match(body)
    if not found:
        return Unreadable("looks like a GPU reset and does not say which or how it ended")
    return Reset("GPU-" + found["uuid"][4:], found["good"].lower() == "true")


def fallen(message: Fallen, tables: Tables) -> Signal:
    """As the Xid 79 that comes with it, or instead of it where the driver never had the GPU."""
    meaning = tables.meaning("xid", xid.FALLEN)
    entities = [("PCI", message.pci)] if message.pci else [("GPU", message.index)]
    return Signal(
        check=FALLEN_CHECK,
        component="GPU",
        space="xid",
        code=xid.FALLEN,
        entities=tuple(entities),
        action=meaning.action,
        fatal=meaning.fatal,
        severity=meaning.severity,
        message=f"GPU fell off the PCIe bus at {message.pci or 'index ' + str(message.index)}",
        metadata=meaning.metadata(),
    )


def reset(message: Reset) -> Signal:
    """A reset that worked takes back what Xids said of the GPU; one that did not is a fault of its own."""
    return Signal(
        check=xid.CHECK,
        component="GPU",
        space="xid" if message.good else "other",
        code="" if message.good else "GPU_RESET_FAILED",
        entities=(("GPU_UUID", message.uuid),),
        action="NONE" if message.good else "CONTACT_SUPPORT",
        fatal=not message.good,
        healthy=message.good,
        severity="info" if message.good else "fatal",
        message=f"{message.uuid} was reset" if message.good else f"the reset of {message.uuid} failed",
        metadata={"acknowledges": "gpu-reset", "class": "recovery"},
    )


def _pci(text: str) -> str | None:
    return event.pci(text[4:] if text[:4].lower() == "pci:" else text)
