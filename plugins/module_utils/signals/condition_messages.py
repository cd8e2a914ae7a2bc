# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the reason and message of a condition: Xids, and NVSentinel's lists of errors.

ErrorCode:119 PCI:0002:00:00 GPU_UUID:GPU-... TEXT Recommended Action=COMPONENT_RESET;ErrorCode:94 ...
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event

_ACTION = re.compile(r"Recommended\s+Action\s*=\s*([A-Za-z_]*)\s*(?:;|$)")
_CODE = re.compile(r"\s*ErrorCode:(\S*)")
_ENTITY = re.compile(r"\s*([A-Z][A-Z0-9_]*):(\S+)")
_CUT = re.compile(r"\s*(?:Recommended(?:\s+Action?=?\w*)?)?(?:\.\.\.|…)?\s*$")
_XID = re.compile(
    r"Xids?(?:\s*(?:error|code)s?)?(?:\s+(?:detected|found|reported|seen))?[\s:=#(\[]*"
    r"(\d{1,4}(?:\s*,\s*\d{1,4})*)(?![\w-]|:\w)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"Xid(?:Code)?(\d{1,4})(?!\d)", re.IGNORECASE)  # NvidiaXID79Error
_LINE = re.compile(r"NVRM:\s*(?:GPU\s?\d+:?\s+)?Xid\s*\(", re.IGNORECASE)
LIMIT = 64  # errors of one condition; a message has 1,024 characters


@dataclass(slots=True)
class Reported:
    """One error of NVSentinel's list. `action` is '' where it is empty or was cut off."""

    codes: list[str]
    entities: list[tuple[str, str]]
    text: str
    action: str

    @property
    def kernel_line(self) -> str:
        """The driver's own line, from `NVRM:` on, where the text holds one."""
        found = _LINE.search(self.text)
        return self.text[found.start() :] if found else ""


def errors(message: str) -> list[Reported]:
    """Every error of the list. The text of an error may hold semicolons; the end may be cut off."""
    found, at = [], 0
    for mark in _ACTION.finditer(message):
        found.append(_one(message[at : mark.start()], mark[1].upper()))
        at = mark.end()
        if len(found) == LIMIT:
            return found
    rest = message[at:]
    if rest.strip(" ;.…"):
        found.append(_one(_CUT.sub("", rest), ""))
    return found


def _one(text: str, action: str) -> Reported:
    codes, entities, at = [], [], 0
    while match := _CODE.match(text, at):
        codes += [match[1]] if match[1] else []
        at = match.end()
    while codes and (match := _ENTITY.match(text, at)):
        value = event.pci(match[2]) if match[1] == "PCI" else match[2]
        if value:  # half an address, where the message was cut off, names no device
            entities.append((match[1], value))
        at = match.end()
    return Reported(codes, entities, text[at:].strip(" ;"), action)


def xids(kind: str, reason: str, message: str) -> list[str]:
    """The Xids that a condition names: GKE's map of them as reason, or in words (NvidiaXID79Error, `Xid: 48, 63`)."""
    if reason.lstrip().startswith(("{", "[")):
        try:
            named = json.loads(reason)
        except (ValueError, RecursionError):
            return []
        codes = [code for code, there in named.items() if there] if isinstance(named, dict) else map(str, named)
        return [str(int(code)) for code in codes if code.isascii() and code.isdecimal()][:LIMIT]
    found = _LINE.search(message) and re.search(r"\)\s*:\s*(\d{1,6})", message)
    if found:
        return [str(int(found[1]))]
    codes = [str(int(code)) for code in _NAMED.findall(f"{kind} {reason}")]
    codes += [str(int(code)) for match in _XID.finditer(message) for code in match[1].split(",")]
    return list(dict.fromkeys(codes))[:LIMIT]
