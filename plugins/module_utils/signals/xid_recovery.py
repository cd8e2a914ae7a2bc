# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid 154: the driver's own verdict on what a GPU needs. It comes before what the table says of the GPU's other Xids.

    GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)

The hexadecimal code counts. The words change from driver to driver ("OS Reboot"), and a wrong pair is only noted.
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables, severity

CODE = "154"

_CHANGE = re.compile(
    r"from\s+0x([0-9a-f]{1,8})\b\s*(?:\(([^()]*)\))?\s*to\s+0x([0-9a-f]{1,8})\b\s*(?:\(([^()]*)\)?)?", re.IGNORECASE
)


def decode(signal: Signal, text: str, tables: Tables) -> None:
    """Sets action and severity from the code in the text. Without one, what the table says of 154 stays."""
    changes = _CHANGE.findall(text)
    signal.exclusive = True
    if not changes:
        signal.metadata["recoveryUnread"] = "true"
        return
    before, _words, after, words = changes[-1]  # a process name could carry an earlier one
    code = int(after, 16)
    metadata = signal.metadata
    metadata.update(recoveryFrom=f"0x{int(before, 16):x}", recoveryTo=f"0x{code:x}", overrides="true")
    if words.strip():
        metadata["recoveryWords"] = words.strip()
    signal.kind = ("recovery", code)
    known = tables.of("xid").recovery
    row = known.get(code)
    if row is None:
        unknown = tables.of("xid").unknown
        signal.action, signal.fatal, signal.severity = unknown["action"], unknown["fatal"], severity(unknown)
        metadata["unknownRecoveryAction"] = "true"
        signal.message = f"{signal.message} (recovery action 0x{code:x} is not known)"
        return
    other = [f"0x{one:x}" for one, entry in known.items() if one != code and words.strip().lower() in entry["words"]]
    if other:
        metadata["wordsBelongTo"] = " ".join(other)
    signal.action, signal.fatal, signal.severity = row["action"], row["fatal"], severity(row)
    signal.state = row.get("state")
    signal.healthy = signal.state == "healthy"
    signal.message = f"Xid 154, the driver asks for: {row['title']}: {text}"
