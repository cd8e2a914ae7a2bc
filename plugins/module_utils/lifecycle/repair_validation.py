# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The validation gate of a repaired node: which ValidationRequests it stands for. Pure.

Its evidence is the sorted digests of the requests, joined by "+"; where that is too long, one digest of them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import requests
from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import sha256

LIMIT = 253
MANY = "vrs-"


def evidence(gate: Mapping | None, add: Mapping, drop: Iterable[Mapping], others: Iterable[Mapping]) -> str:
    """What the gate stands for once `add` is among it, and `drop`, requests that failed and that `add` makes good, are
    not. `others`: open requests that name the node, for a gate whose evidence is one digest of many."""
    told = (gate or {}).get("evidence") or ""
    digests = {requests.digest_of(each["spec"]) for each in others} if told.startswith(MANY) else set(told.split("+"))
    digests -= {requests.digest_of(each["spec"]) for each in drop} | {""}
    return joined(digests | {requests.digest_of(add["spec"])})


def joined(digests: Iterable[str]) -> str:
    text = "+".join(sorted(set(digests)))
    return text if len(text) <= LIMIT else MANY + sha256(sorted(set(digests))).removeprefix("sha256:")[:16]


def stands_for(gate: Mapping | None, request: Mapping) -> bool:
    """Whether the gate stands for this request, among others."""
    told = (gate or {}).get("evidence") or ""
    return told.startswith(MANY) or requests.digest_of(request["spec"]) in told.split("+")
