"""A status is found for the checks that catalogues hold, and never a wrong one."""

from __future__ import annotations

import pytest

from tests.standin import satisfy


@pytest.mark.parametrize(
    ("expressions", "status"),
    [
        (["status.state == 'ready'"], {"state": "ready"}),
        (["status.ready == `true`"], {"ready": True}),
        (["status.readyReplicas >= `3`"], {"readyReplicas": 3}),
        (["status.phase == 'Ready' && status.failed < `1`"], {"phase": "Ready", "failed": 0}),
        (["status.state == 'ready' || status.phase == 'Ready'"], {"state": "ready"}),
        (
            ["length(status.conditions[?type == 'Ready' && status == 'True']) > `0`"],
            {"conditions": [{"type": "Ready", "status": "True"}]},
        ),
        (
            ["status.conditions[?type == 'Ready'].status | [0] == 'True'"],
            {"conditions": [{"type": "Ready", "status": "True"}]},
        ),
        (
            ["status.conditions[?type == 'Ready'] | [0].status == 'True'"],
            {"conditions": [{"type": "Ready", "status": "True"}]},
        ),
        (["length(status.nodes) == `2`"], None),
        (
            [
                "length(status.conditions[?type == 'A' && status == 'True']) > `0`",
                "length(status.conditions[?type == 'B' && status == 'True']) > `0`",
            ],
            {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
        ),
    ],
)
def test_found(expressions, status):
    if status is None:
        with pytest.raises(ValueError):
            satisfy.status(expressions)
    else:
        assert satisfy.status(expressions) == status


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("status.state == 'a' && status.state == 'b'", "no status found"),
        ("spec.paused == `false`", "a status alone"),
        ("status.a == status.b", "only comparisons"),
        ("contains(status.tags, 'x')", "not understood"),
    ],
)
def test_refused(expression, what):
    with pytest.raises(ValueError, match=what):
        satisfy.status([expression])
