"""What passes are told of a raw node, where the words of the API could be taken for something else."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import hosts
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import nodefacts, repair_attempt, rollout_bounds

from .repairing import START
from .validating import raw


def facts(**change) -> dict:
    node = raw("n0")
    node["status"].update(change)
    return nodefacts.facts(node, hosts.host(node)["facts"])


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([], False),
    ],
)
def test_only_a_node_that_is_ready_is_taken_for_one(conditions, ready):
    node = facts(conditions=conditions)
    assert node["ready"] is ready
    attempt = {"rung": "reboot", "bootBefore": "boot-0", "requestedAt": "2026-03-06T09:00:00Z"}
    state, why, _attempt = repair_attempt.judge(attempt, {}, node, "", 3600, START)
    assert state == (repair_attempt.VERIFIED if ready else repair_attempt.OPEN), why
    assert rollout_bounds.is_out(node) is not ready
