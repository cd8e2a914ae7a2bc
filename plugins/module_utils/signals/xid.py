# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid: the GPU driver's error messages.

NVRM: Xid (PCI:0000:3b:00): 79, pid=3344, name=python3, GPU has fallen off the bus.
NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:01): 94, Contained: ... caused by previous Xid 48
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event, xid_nvlink5, xid_recovery
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal, Unreadable
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

CHECK = "SysLogsXIDError"
FALLEN = "79"

_LOOKS = re.compile(r"NVRM:\s*(?:GPU\s?\d+:?\s+)?Xid\b", re.IGNORECASE)
_HEAD = re.compile(
    r"NVRM:\s*(?:GPU\s?\d+:?\s+)?Xid\s*\((?P<device>[^()]*)\)\s*:\s*(?P<code>[0-9]{1,6})(?!\w)\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_REST = re.compile(
    r""",?\s*
    (?: pid\s*=\s*(?P<pid>'[^']*'|"[^"]*"|[^,]*),?\s* )?
    (?: name\s*=\s*(?P<name>'[^']*'|"[^"]*"|[^,]*),?\s* )?
    (?P<text>.*)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_INSTANCE = re.compile(r"GPU-(C?I):(\d{1,6})", re.IGNORECASE)
_CAUSED = re.compile(r"caused by previous Xid (\d{1,6})\W*$", re.IGNORECASE)
_SM = re.compile(r"\bGPC\s*(\d{1,4})\b(?:,\s*TPC\s*(\d{1,4})\b)?(?:,\s*SM\s*(\d{1,4})\b)?", re.IGNORECASE)
_LINK = re.compile(r"\blink\s*(\d{1,4})\b", re.IGNORECASE)
_REGISTERS = re.compile(r"\((0x[0-9a-f]+(?:\s*,\s*0x[0-9a-f]+)+)\)", re.IGNORECASE)


def read(body: str, tables: Tables, driver: int | None = None) -> Signal | Unreadable | None:
    """Of a message that begins with `NVRM:`. `driver` is the driver's major version. None: no Xid at all."""
    head = _HEAD.match(body)
    if not head:
        return Unreadable("looks like an Xid and has no code that can be read") if _LOOKS.match(body) else None
    code = str(int(head["code"]))
    meaning = tables.meaning("xid", code)
    rest = _REST.match(head["rest"])
    text = " ".join(rest["text"].split())
    metadata = meaning.metadata()
    entities, device = _device(head["device"], metadata)
    _process(rest, metadata)
    caused = _CAUSED.search(text)
    if caused:
        metadata["causeCode"] = str(int(caused[1]))
    entities += _places(code, text, metadata)
    signal = Signal(
        check=CHECK,
        component="GPU",
        space="xid",
        code=code,
        entities=tuple(entities),
        action=meaning.action,
        fatal=meaning.fatal,
        severity=meaning.severity,
        state=meaning.state,
        message=f"Xid {code}, {meaning.title}{device}" + (f": {text}" if text else ""),
        metadata=metadata,
    )
    if code in xid_nvlink5.CODES:
        xid_nvlink5.decode(signal, text, tables, driver)
    elif code == xid_recovery.CODE:
        xid_recovery.decode(signal, text, tables)
    return signal


def _device(text: str, metadata: dict[str, str]) -> tuple[list[tuple[str, str]], str]:
    """The PCI entity, and the device in words. A device that is no PCI address stays as metadata: the fault is real."""
    address = text.strip()
    if address[:4].lower() == "pci:":
        address = address[4:]
    address, _blank, instances = address.strip().partition(" ")
    for kind, number in _INSTANCE.findall(instances):
        metadata["gpuInstance" if kind.upper() == "I" else "computeInstance"] = str(int(number))
    pci = event.pci(address)
    if pci:
        return [("PCI", pci)], f" at {pci}"
    if text.strip():
        metadata["device"] = text.strip()
    return [], ""


def _process(rest: re.Match, metadata: dict[str, str]) -> None:
    for key, name in (("pid", "pid"), ("name", "process")):
        value = (rest[key] or "").strip().strip("'\"")
        if value and value != "<unknown>":
            metadata[name] = value


def _places(code: str, text: str, metadata: dict[str, str]) -> list[tuple[str, str]]:
    """Where in the GPU: processing cluster, or NVLink."""
    if code in xid_nvlink5.CODES:
        return []  # decoded there
    found = _SM.search(text)
    if found:
        return [
            (kind, str(int(value))) for kind, value in zip(("GPC", "TPC", "SM"), found.groups(), strict=True) if value
        ]
    if code == "74":
        registers, link = _REGISTERS.search(text), _LINK.search(text)
        if registers:
            metadata["registers"] = " ".join(registers[1].replace(",", " ").split())
        return [("NVLINK", str(int(link[1])))] if link else []
    return []
