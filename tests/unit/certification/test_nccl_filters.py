"""parse_nccl and parse_perftest as a play uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_nccl import parse_nccl
from ansible_collections.goodput.fleet.plugins.filter.parse_perftest import parse_perftest

from tests.unit.certification import nccl_output as out

ROOT = Path(__file__).parents[3]


def test_text_and_list_of_lines_give_the_same():
    expected = {"expected_ranks": 16, "expected_hosts": ["node-a", "node-b"], "expected_test": "all_reduce"}
    result = parse_nccl(out.run(), **expected)
    assert result == parse_nccl("\n".join(out.run()), **expected)
    assert result["complete"]


@pytest.mark.parametrize("filter_", [parse_nccl, parse_perftest])
@pytest.mark.parametrize("value", [None, 5, [5], [["a"]]])
def test_no_text(filter_, value):
    with pytest.raises(AnsibleFilterError, match=filter_.__name__):
        filter_(value)


def test_expectations_of_no_use():
    with pytest.raises(AnsibleFilterError, match="expected_ranks='few'"):
        parse_nccl("", expected_ranks="few")


def test_in_a_play(tmp_path):
    log = tmp_path / "nccl.log"
    log.write_text("\n".join(out.run()))
    text = "(lookup('file',log)|goodput.fleet.parse_nccl(expected_ranks=16)).runs[0].metrics.busBandwidthGBps.value"
    command = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-m", "debug", "-e", f"log={log}", "-a"]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"), "ANSIBLE_HOME": str(tmp_path)}
    run = subprocess.run(
        [*command, f"var={text}"], capture_output=True, text=True, env={**os.environ, **paths}, timeout=60
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "396.9" in run.stdout
