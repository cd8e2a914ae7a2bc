# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid 144-150: NVLink 5 errors, decoded with the table `nvlink5`.

    NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021169c6 0x00000000 0x00000000 0x00000000)

The first word names unit and cause, the second is the error's status. Where no row fits, the code's entry in the table
`xid` holds, and the line's own word Fatal.
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables, severity

CODES = frozenset(map(str, range(144, 151)))
SECOND_LAYOUT = 575  # the driver's major version from which on the first word is laid out as v2

_LINE = re.compile(
    r"\b(?P<unit>[a-z][\w/]*(?:\s+degraded)?)\s+(?P<word>fatal|non-?fatal)\b"
    r"(?:\s*,?\s*XC\s*(?P<xc>\d+))?(?:\s+i\s*(?P<instance>\d+))?(?:\s+Link\s+(?P<link>-?\d{1,4})\b)?(?P<words>.*)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\b0x([0-9a-f]{8})(?![0-9a-f])", re.IGNORECASE)  # a shorter one may be cut off


def decode(signal: Signal, text: str, tables: Tables, driver: int | None) -> None:
    """Refines the signal of an Xid 144-150."""
    line = _LINE.search(text)
    if not line:
        return
    metadata = signal.metadata
    words = [int(word, 16) for word in _WORD.findall(line["words"])]
    fatal = line["word"].lower() == "fatal"
    metadata.update(unit=line["unit"], lineSays="Fatal" if fatal else "Nonfatal")
    if line["link"] and int(line["link"]) >= 0:
        signal.entities += (("NVLINK", str(int(line["link"]))),)
    for name, word in zip(("intrInfo", "errorStatus"), words, strict=False):
        metadata[name] = f"0x{word:08x}"
    layouts = ("v1", "v2") if driver is None else ("v2",) if driver >= SECOND_LAYOUT else ("v1",)
    row, layout = _find(tables.of("nvlink5").entries.get(signal.code, []), line["unit"], words, layouts)
    if row is None:
        signal.fatal = fatal
        signal.severity = "fatal" if fatal else "error"
        metadata["decoded"] = "no"
    else:
        signal.action, signal.fatal, signal.severity = row["action"], row["fatal"], severity({"class": "link", **row})
        metadata["decoded"] = layout
        for key, name in (("look", "look"), ("note", "note"), ("awaits154", "awaits154")):
            if key in row:
                metadata[name] = "true" if row[key] is True else row[key]
    status, cause = words[1] if len(words) > 1 else None, (row or {}).get("cause")
    signal.kind = (line["unit"].lower(), status, cause, signal.action, signal.fatal, fatal)


def _find(groups: list[dict], unit: str, words: list[int], layouts: tuple[str, ...]) -> tuple[dict | None, str]:
    if not words:
        return None, ""
    names = {" ".join(part.split()) for part in unit.lower().split("/")}
    groups = [group for group in groups if names <= {name.lower() for name in group["units"]}]
    for layout in layouts:
        for group in groups:
            for row in group["rows"]:
                if _fits(row, row.get(layout, group[layout]), words):
                    return row, layout
    return None, ""


def _fits(row: dict, lowest: str, words: list[int]) -> bool:
    status = row.get("status")
    if status and (len(words) < 2 or f"0x{words[1]:08x}" not in status):
        return False
    first = words[0]
    return first & ((1 << len(lowest)) - 1) == int(lowest, 2) and (first >> 20) & 0x3F == int(row.get("cause", "0"), 2)
