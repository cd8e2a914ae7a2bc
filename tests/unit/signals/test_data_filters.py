"""parse_node_conditions, parse_cloud_notice and parse_health_events as plays use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_cloud_notice import parse_cloud_notice
from ansible_collections.goodput.fleet.plugins.filter.parse_health_events import parse_health_events
from ansible_collections.goodput.fleet.plugins.filter.parse_node_conditions import parse_node_conditions

ROOT = Path(__file__).parents[3]
NODE = {
    "metadata": {"name": "gpu-7"},
    "spec": {"providerID": "aws:///us-east-1a/i-0a1b2c3d4e5f60718"},
    "status": {"nodeInfo": {"bootID": "b-7"}, "conditions": [{"type": "KernelDeadlock", "status": "True"}]},
}
NOTICE = {"detail-type": "x", "detail": {"instance-id": "i-0a1b2c3d4e5f60718"}}
EVENT = {"agent": "a", "checkName": "c", "nodeName": "gpu-7", "isFatal": True}


@pytest.mark.parametrize(
    "parse, value, options",
    [
        (parse_node_conditions, [NODE], {}),
        (parse_cloud_notice, NOTICE, {"nodes": [NODE]}),
        (parse_cloud_notice, NOTICE, {"nodes": {"i-0a1b2c3d4e5f60718": "gpu-7"}}),
        (parse_health_events, [EVENT], {}),
    ],
)
def test_data_text_lines_and_bytes_give_the_same(parse, value, options):
    found = [
        parse(form, received="2026-11-29T18:00:00Z", source="s", **options)
        for form in (value, json.dumps(value), json.dumps(value).encode(), json.dumps(value, indent=1).splitlines())
    ]
    specs = [result["events"][0]["spec"] for result in found]
    assert {spec["nodeName"] for spec in specs} == {"gpu-7"}
    assert {spec["receivedTimestamp"] for spec in specs} == {"2026-11-29T18:00:00Z"}
    assert {spec["source"]["name"] for spec in specs} == {"s"}
    assert len({event["metadata"]["name"] for result in found for event in result["events"]}) == 1


@pytest.mark.parametrize("parse", [parse_node_conditions, parse_cloud_notice, parse_health_events])
def test_data_nested_without_end_is_one_clear_error(parse):
    value: list = []
    for _level in range(20_000):
        value = [value]
    with pytest.raises(AnsibleFilterError, match=f"{parse.__name__}: maximum recursion depth"):
        parse(value)


@pytest.mark.parametrize("parse", [parse_node_conditions, parse_cloud_notice, parse_health_events])
@pytest.mark.parametrize(
    "value, options, words",
    [
        (None, {}, "not NoneType"),
        (7, {}, "not int"),
        ({"a": {1, 2}}, {}, "takes data as JSON has it, not set"),
        ("{}", {"received": "today"}, "received is 'today', which is no time (such as 2026-03-06T09:34:56Z)"),
        ("{}", {"catalog": ["/nowhere"]}, "no signal tables"),
    ],
)
def test_bad_input_is_one_clear_error(parse, value, options, words):
    with pytest.raises(AnsibleFilterError, match=parse.__name__) as caught:
        parse(value, **options)
    assert words in str(caught.value)


def test_in_a_play(tmp_path):
    """With the containers and strings that the templating engine makes."""
    (tmp_path / "nodes.json").write_text(json.dumps([NODE]))
    (tmp_path / "notice.json").write_text(json.dumps(NOTICE))
    play = """
- hosts: localhost
  gather_facts: false
  vars:
    nodes: "{{ lookup('file', 'nodes.json') | from_json }}"
    conditions: "{{ nodes | goodput.fleet.parse_node_conditions }}"
    notices: "{{ lookup('file', 'notice.json') | goodput.fleet.parse_cloud_notice(nodes=nodes) }}"
    again: "{{ (conditions.events + notices.events) | goodput.fleet.parse_health_events }}"
  tasks:
    - ansible.builtin.assert:
        that:
          - conditions.events[0].spec.bootId == 'b-7'
          - notices.events[0].spec.agent == 'cloud-aws'
          - again.events == conditions.events + notices.events
"""
    (tmp_path / "play.yml").write_text(play)
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"), "ANSIBLE_HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "localhost,",
        "-c",
        "local",
        str(tmp_path / "play.yml"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **paths}, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
