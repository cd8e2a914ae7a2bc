"""Run one module in a process of its own, without the half second that `ansible` needs around it.

    run("node_gate", {"kubeconfig": str(cluster.kubeconfig), ...}, check=True) -> the result
    start("node_gate", {...}) -> the process, for tests that kill it; finish(process) -> the result

Action plugins are not run: what they fill in (paths of the shipped catalogue) has to be given.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CATALOG = ROOT / "gitops/catalog"
FOREIGN = ("K8S_AUTH_", "KUBECONFIG")


def start(name: str, arguments: dict[str, Any], check: bool = False, diff: bool = False) -> subprocess.Popen:
    bare = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    paths = os.pathsep.join([str(ROOT), str(ROOT / ".build/collections")])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.modules", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**bare, "PYTHONPATH": paths},
    )
    process.stdin.write(json.dumps({**arguments, "_ansible_check_mode": check, "_ansible_diff": diff}))
    process.stdin.close()
    process.stdin = None  # communicate() would flush it
    return process


def finish(process: subprocess.Popen) -> dict[str, Any]:
    """The result; a killed one's is empty. What is not a result is the test's failure."""
    out, errors = process.communicate(timeout=300)
    if process.returncode < 0:
        return {}
    assert out.lstrip().startswith("{") and "Traceback" not in errors, out + errors
    return {"failed": False, **json.loads(out)}


def run(name: str, arguments: dict[str, Any], check: bool = False, diff: bool = False) -> dict[str, Any]:
    return finish(start(name, arguments, check, diff))


if __name__ == "__main__":
    from ansible.module_utils.testing import patch_module_args

    with patch_module_args(json.load(sys.stdin)):
        runpy.run_module(f"ansible_collections.goodput.fleet.plugins.modules.{sys.argv[1]}", run_name="__main__")
