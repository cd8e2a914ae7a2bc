# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the catalogue says of codes that other monitors report."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.signals import xid_nvlink5, xid_recovery
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Meaning, Tables

_XID = re.compile(r"\bXID\s*(?:error\s*)?:?\s*(\d{1,4})\b", re.IGNORECASE)
_NIC = ("nic", "infiniband", "ethernet", "roce", "ib")
NOT_THE_GPU = ("application", "consequence")
UNDECODED = (*xid_nvlink5.CODES, xid_recovery.CODE)  # what the code means stands in the line's other words


def space(check: str, code: str) -> str:
    """The code space, by the code's own form and the name of the check that reports it."""
    lower = check.lower()
    if code.isascii() and code.isdecimal():
        if "SXID" in check or "SXid" in check:  # as written: SysLogsXIDError is about Xids
            return "sxid"
        return "xid" if "xid" in lower or lower.startswith("syslogs") else "other"
    if code.startswith("DCGM_"):
        return "dcgm"
    if lower.startswith(_NIC):
        return "nic"
    return "cloud" if lower.startswith("csp") else "other"


def resolve(check: str, code: str, text: str) -> tuple[str, str]:
    """(space, code), where DCGM's word for any Xid is replaced by the Xid that the text names."""
    found = _XID.search(text) if code == "DCGM_FR_XID_ERROR" else None
    return ("xid", str(int(found[1]))) if found else (space(check, code), code)


def known(tables: Tables, where: str, code: str) -> Meaning | None:
    """None where the tables, or the code alone, do not tell."""
    if where not in ("xid", "sxid", "dcgm") or (where == "xid" and code in UNDECODED):
        return None
    meaning = tables.meaning(where, code)
    return meaning if meaning.known else None


def worst(tables: Tables, resolved: list[tuple[str, str]]) -> Meaning | None:
    """Of several (space, code) of one report the gravest; None where one of them is not known: it may be graver."""
    found = [known(tables, where, code) for where, code in resolved]
    if not found or None in found:
        return None
    return max(found, key=lambda meaning: (meaning.fatal, meaning.cls not in NOT_THE_GPU, not meaning.state))
