# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gate `validation` says: which requests it stands for, and what is written when it opens. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import CERTIFIED
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest

LIMIT = 253  # characters of a gate's evidence
_AHEAD = 600  # seconds that clocks may differ
_MANY = "vrs-"  # a digest of digests, where those are too many to be told


def text(digests: Iterable[str]) -> str:
    """The gate's evidence: digests of requests, sorted, joined by "+"."""
    named = sorted(set(digests))
    joined = "+".join(named)
    return joined if len(joined) <= LIMIT else _MANY + digest.sha256(named).removeprefix("sha256:")[:16]


def digests(evidence: str) -> list[str] | None:
    """The digests that it names; None where it only names what they come to."""
    return None if evidence.startswith(_MANY) else [each for each in evidence.split("+") if each]


def closes(gate: Mapping) -> bool:
    """Whether it can be read, and keeps pods off: somebody may have made its taint a mere preference."""
    return gate["readable"] and gate["taint"]["effect"] in ("NoSchedule", "NoExecute")


def age(gate: Mapping, now: datetime) -> float:
    """Seconds that it stands; without end where it does not tell since when, or a time that is far ahead: nobody shall
    wait for a clock that was wrong."""
    try:
        seconds = (now - datetime.fromisoformat(gate["since"])).total_seconds()
    except (ValueError, TypeError):
        return float("inf")
    return seconds if seconds > -_AHEAD else float("inf")


def certified(node: Mapping, entries: Iterable[tuple], now: str) -> dict[str, str]:
    """{annotation: record} of a node that all its requests are proven for. entries: (Track, entry)."""
    pairs = list(entries)
    record = {
        **{key: node[key] for key in ("uid", "bootId", "driver", "kernel")},
        "at": now,
        "request": ",".join(sorted({track.name for track, _entry in pairs})),
        "certification": ",".join(sorted({entry["batch"] for _track, entry in pairs})),
        "evidence": ",".join(sorted({entry["evidence"] for _track, entry in pairs})),
    }
    return {CERTIFIED: json.dumps(record, separators=(",", ":"))}
