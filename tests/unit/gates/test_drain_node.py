"""A node is drained only while nothing new is placed on it; deadlines count from its gate."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_node

from tests.unit.gates.drain_things import NOW, node, stamp

TAINT = {"key": "gate.goodput.fleet/quarantine", "value": "x", "effect": "NoSchedule"}
OTHER = {"key": "nvidia.com/gpu-error", "value": "fatal", "effect": "NoSchedule"}


def gate(since: float | str = NOW - 600, taint=TAINT) -> str:
    text = since if isinstance(since, str) else stamp(since)
    return json.dumps({"reason": "x", "since": text, "taint": taint, "taintOurs": True})


def gated(taints=(TAINT,), cordoned=False, **gates: str) -> dict:
    notes = {f"gate.goodput.fleet/{owner}": text for owner, text in gates.items()}
    return node(cordoned=cordoned, annotations=notes, taints=list(taints))


@pytest.mark.parametrize(
    ("raw", "owner", "told"),
    [
        (node(), None, ""),
        (gated(quarantine=gate()), None, ""),
        (gated(quarantine=gate()), "quarantine", ""),
        (gated([OTHER], quarantine=gate(taint=OTHER)), None, ""),
        (node(cordoned=False), None, "it has no gate and is not cordoned"),
        (node(cordoned=False, taints=[OTHER]), None, "it has no gate and is not cordoned"),
        (gated([], quarantine=gate()), None, "the taint of its gate (quarantine) is gone"),
        (gated([], True, quarantine=gate()), None, ""),
        (node(), "quarantine", "it has no gate of quarantine"),
        (gated(validation=gate()), "quarantine", "it has no gate of quarantine (gates there: validation)"),
        (gated(quarantine="not json"), None, "the taint of its gate (quarantine) is gone"),
    ],
)
def test_whether_it_is_open(raw, owner, told):
    why = drain_node.is_open(raw, owner)
    assert why.startswith(told) and bool(why) == bool(told)


@pytest.mark.parametrize(
    ("raw", "owner", "expected"),
    [
        (node(), None, NOW),
        (gated(quarantine=gate(NOW - 600)), None, NOW - 600),
        (gated(quarantine=gate(NOW - 600), manual=gate(NOW - 60)), None, NOW - 60),
        (gated(quarantine=gate(NOW - 600), manual=gate(NOW - 60)), "quarantine", NOW - 600),
        (gated(quarantine=gate(NOW + 3600)), None, NOW),  # a clock that is ahead
        (gated(quarantine=gate("yesterday")), None, NOW),
        (gated(quarantine=gate("2025-11-29T10:00:00")), None, NOW),  # of which zone?
        (gated(quarantine="{}"), None, NOW),
        (gated(quarantine="7"), "quarantine", NOW),
    ],
)
def test_what_deadlines_count_from(raw, owner, expected):
    assert drain_node.since(raw, owner, NOW) == expected


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_unknown_is_not_ready(status, ready):
    assert drain_node.is_ready(node(ready=status)) is ready
