"""What node_drain refuses before it asks a cluster: all of it at once, and never a traceback."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.modules import node_drain

HERE = {"nodes": ["gpu-0"], "host": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"gpus": []}, "gpus: names no GPU (leave it out to drain whole nodes)"),
        ({"gpus": ["0"]}, "gpus[0]: '0' is not the UUID of a GPU"),
        ({"gpus": ["MIG-0c1c4d8e-9a57-5d5f-b0f1-eee000000000"]}, "is not the UUID of a GPU"),
        ({"devices": {"pod": ["GPU-x"]}}, "devices.pod: is not a list of device ids of a pod"),
        ({"devices": {"a/b": "GPU-x"}}, "devices.a/b: is not a list"),
        ({"nodes": ["gpu-0", ""]}, "nodes[1]: '' is not the name of a node"),
        ({"nodes": ["a/b"]}, "nodes[0]: 'a/b' is not the name of a node"),
        ({"owner": "Me!"}, "owner: 'Me!' is not the name of an owner"),
        ({"timeout": -1}, "timeout: is -1, not seconds from 0 on"),
        ({"interval": 0}, "interval: is 0.0, not seconds from 0.1 on"),
        ({"interval": "nan"}, "interval: is nan"),
        ({"policies": [{"namespaces": ["a"], "action": "evict", "after": "soon"}]}, "policies[0].after: 'soon'"),
        ({"policies": [{"namespaces": ["a"], "action": "delete"}]}, "value of action must be one of"),
    ],
)
def test_what_is_refused(capsys, given, told):
    with patch_module_args({**HERE, **given}), pytest.raises(SystemExit):
        node_drain.main()
    result = json.loads(capsys.readouterr().out)
    assert result["failed"] and told in result["msg"]


def test_all_at_once(capsys):
    given = {"gpus": ["x"], "timeout": -1, "policies": [{"namespaces": ["a"], "action": "wait", "after": "1h"}]}
    with patch_module_args({**HERE, **given}), pytest.raises(SystemExit):
        node_drain.main()
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [problem["path"] for problem in problems] == ["policies[0].after", "gpus[0]", "timeout"]
