# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SXid: the NVSwitch driver's error messages, one error in up to three lines.

nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): 20034, Fatal, Link 22 LTSSM Fault Up
nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): 20034, Severity 1 Engine instance 22 Sub-engine instance 00
nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): 20034, Data {0x41720003, 0x20200048}
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal, Unreadable
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Meaning, Tables

CHECK = "SysLogsSXIDError"

_LOOKS = re.compile(r"nvidia-nvswitch\d*\s*:\s*SXid\b", re.IGNORECASE)
_HEAD = re.compile(
    r"nvidia-nvswitch(?P<switch>\d{0,4})\s*:\s*SXid\s*\((?P<device>[^()]*)\)\s*:\s*"
    r"(?P<code>[0-9]{1,6})(?!\w)\s*,?\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"(Fatal|Non-?fatal)\b", re.IGNORECASE)
_LINK = re.compile(r"\bLink\s+(\d{1,4})\b", re.IGNORECASE)
_SEVERITY = re.compile(
    r"Severity\s+(\d{1,3})(?:\s+Engine instance\s+(\d{1,6}))?(?:\s+Sub-engine instance\s+(\d{1,6}))?", re.IGNORECASE
)
_DATA = re.compile(r"Data\s*\{([^{}]*)\}?", re.IGNORECASE)


@dataclass(slots=True)
class Line:
    """`group` says which lines belong together. Without `head`, `details` go to the last head of the group."""

    signal: Signal
    group: tuple[str, str, str]
    head: bool
    details: dict[str, str]


def read(body: str, tables: Tables) -> Line | Unreadable | None:
    """Of a message that begins with `nvidia-nvswitch`. None: no SXid at all."""
    head = _HEAD.match(body)
    if not head:
        return Unreadable("looks like an SXid and has no code that can be read") if _LOOKS.match(body) else None
    code, rest = str(int(head["code"])), " ".join(head["rest"].split())
    meaning = tables.meaning("sxid", code)
    metadata = meaning.metadata()
    address = re.sub(r"^\s*pci:", "", head["device"], flags=re.IGNORECASE).strip().lower()
    pci = event.pci(address)
    entities = [("PCI", pci)] if pci else []
    if head["switch"]:
        entities.append(("NVSWITCH", str(int(head["switch"]))))
    if not pci and address:
        metadata["device"] = address
    group = (head["switch"], pci or address, code)

    severity, data = _SEVERITY.match(rest), _DATA.match(rest)
    if severity or data:
        details = _details(severity, data)
        fatal = severity[1] != "0" if severity else None
        signal = _signal(meaning, code, entities, {**metadata, **details, "partial": "true"}, fatal, rest)
        signal.kind = ("partial",)
        return Line(signal, group, False, details)
    word, link = _WORD.match(rest), _LINK.search(rest)
    fatal = word[1].lower() == "fatal" if word else None
    if link:
        entities.append(("NVLINK", str(int(link[1]))))
    return Line(_signal(meaning, code, entities, metadata, fatal, rest), group, True, {})


def _details(severity: re.Match | None, data: re.Match | None) -> dict[str, str]:
    if data:
        return {"data": " ".join(data[1].replace(",", " ").split())}
    names = ("severityLevel", "engineInstance", "subEngineInstance")
    return {name: str(int(value)) for name, value in zip(names, severity.groups(), strict=True) if value}


def _signal(
    meaning: Meaning, code: str, entities: list, metadata: dict[str, str], fatal: bool | None, text: str
) -> Signal:
    """The driver's own word comes before the table's `fatal`."""
    action, severity = meaning.action, meaning.severity
    if fatal is None:
        fatal = meaning.fatal
    elif fatal:
        severity = "fatal"
        action = "CONTACT_SUPPORT" if action == "NONE" else action
    elif meaning.fatal:
        # the table's action is for the fatal case
        action, severity = "CONTACT_SUPPORT", "error"
    if fatal != meaning.fatal and meaning.known:
        metadata["tableSays"] = "Fatal" if meaning.fatal else "Non-fatal"
    return Signal(
        check=CHECK,
        component="NVSWITCH",
        space="sxid",
        code=code,
        entities=tuple(entities),
        action=action,
        fatal=fatal,
        severity=severity,
        state=meaning.state,
        message=f"SXid {code}, {meaning.title}: {text}",
        kind=(fatal,),
        metadata=metadata,
    )
