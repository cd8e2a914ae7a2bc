# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the signal tables that judging GPUs needs, as plain data: nodes have neither the catalogue nor a YAML
reader, so the controller sends it along with the module."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables


def pack(tables: Tables) -> dict:
    nvml, xid, dcgm = tables.of("nvml"), tables.of("xid"), tables.of("dcgm")
    return {
        "nvml": {"entries": [entry for (entry,) in nvml.entries.values()], "unknown": nvml.unknown},
        "xid": {"entries": [], "recoveryActions": list(xid.recovery.values())},
        "dcgm": {"entries": [], "watches": dcgm.watches},
    }


def unpack(parcel: object) -> Tables:
    """Raises InvalidDocument where it is not what `pack` gave."""
    tables = Tables()
    try:
        for space in ("nvml", "xid", "dcgm"):
            tables.of(space).extend(parcel[space])
        for code in tables.of("nvml").entries:
            tables.meaning("nvml", code)
    except (KeyError, TypeError, AttributeError) as error:
        given = type(parcel).__name__ if not isinstance(parcel, Mapping) else f"{error!r} is missing or wrong"
        raise InvalidDocument(
            f"tables cannot be used: {given}", path="tables", hint="leave it out; the action plugin fills it in"
        ) from error
    return tables
