"""What component_health_info refuses before it asks a cluster."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.modules import component_health_info

ONE = [{"name": "a", "namespace": "a"}]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"components": []}, "components: names no component"),
        ({"components": ONE, "only": []}, "only: names no component"),
        ({"lock": ""}, "no such file"),
    ],
)
def test_nothing_to_judge_is_never_healthy(capsys, given, told):
    with patch_module_args(given), pytest.raises(SystemExit):
        component_health_info.main()
    result = json.loads(capsys.readouterr().out)
    assert result["failed"]
    assert told in result["msg"]
