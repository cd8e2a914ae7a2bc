"""parse_kernel_log as a play uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_kernel_log import parse_kernel_log

ROOT = Path(__file__).parents[3]
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=x, GPU has fallen off the bus."


def test_text_and_list_of_lines_give_the_same():
    given = {
        "node": "gpu-7",
        "boot_id": "b",
        "received": "2026-11-29T18:00:00Z",
        "pci_to_uuid": {"0000:3b:00": "GPU-1"},
    }
    result = parse_kernel_log(f"noise\n{XID}", **given)
    assert result == parse_kernel_log(["noise", XID], **given)
    spec = result["events"][0]["spec"]
    assert (spec["nodeName"], spec["bootId"], spec["source"]["name"]) == ("gpu-7", "b", "kernel log")
    assert spec["entitiesImpacted"][1]["entityValue"] == "GPU-1"


def test_in_a_play(tmp_path):
    log = tmp_path / "kern.log"
    log.write_bytes(b"noise \xff\n" + XID.encode())
    text = "(lookup('file', log) | goodput.fleet.parse_kernel_log(node='n', boot_id=none)).events"
    command = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-m", "debug", "-e", f"log={log}"]
    command += ["-a", f"var={text.replace(' ', '')}"]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"), "ANSIBLE_HOME": str(tmp_path)}
    environment = {**os.environ, **paths}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    assert '"recommendedAction": "RESTART_BM"' in run.stdout


@pytest.mark.parametrize(
    "value, options, words",
    [
        (None, {}, "a text or a list of lines, not NoneType"),
        ({"a": 1}, {}, "a text or a list of lines"),
        ([1], {}, "a text or a list of lines"),
        (XID, {"received": "today"}, "received is 'today'"),
        (XID, {"pci_to_uuid": {"gpu0": "x"}}, "gpu0"),
        (XID, {"catalog": ["/nowhere"]}, "no signal tables"),
    ],
)
def test_bad_input_is_one_clear_error(value, options, words):
    with pytest.raises(AnsibleFilterError, match="parse_kernel_log") as caught:
        parse_kernel_log(value, **options)
    assert words in str(caught.value)


def test_a_sites_table_counts(tmp_path):
    (tmp_path / "signals").mkdir()
    (tmp_path / "signals" / "ours.yaml").write_text(
        "apiVersion: goodput.fleet/v1alpha1\nkind: SignalTable\nmetadata: {name: ours}\nspec:\n  codeSpace: xid\n"
        '  entries:\n    - {code: "79", name: X, class: hardware, action: REPLACE_VM, fatal: true}\n'
    )
    result = parse_kernel_log(XID, catalog=["shipped", str(tmp_path)])
    assert result["events"][0]["spec"]["recommendedAction"] == "REPLACE_VM"
