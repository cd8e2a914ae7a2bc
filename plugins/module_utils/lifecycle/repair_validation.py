# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The validation gate of a repaired node: which ValidationRequests it stands for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import requests
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.validation_gate import digests, text


def evidence(gate: Mapping | None, add: Mapping, drop: Iterable[Mapping], others: Iterable[Mapping]) -> str:
    """What the gate stands for once `add` is among it, and `drop`, requests that failed and that `add` makes good, are
    not. `others`: open requests that name the node, for a gate whose evidence does not tell what it stands for."""
    told = digests((gate or {}).get("evidence") or "")
    stands = {requests.digest_of(each["spec"]) for each in others} if told is None else set(told)
    stands -= {requests.digest_of(each["spec"]) for each in drop}
    return text(stands | {requests.digest_of(add["spec"])})


def stands_for(gate: Mapping | None, request: Mapping) -> bool:
    """Whether the gate stands for this request, among others; one that does not tell may."""
    told = digests((gate or {}).get("evidence") or "")
    return told is None or requests.digest_of(request["spec"]) in told
