# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: it runs to its end, tells what it found, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simfleet import rundir

pytestmark = [pytest.mark.cluster, pytest.mark.helm, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def start(tmp_path):
    """Start the demo with its cluster in a folder of the test's own."""

    def begin(**environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.demo"],
            cwd=ROOT,
            env={
                **os.environ,
                "GOODPUT_RUN_DIR": str(tmp_path / "run"),
                "DEMO_REPORTS": str(tmp_path / "reports"),
                "KEEP": "",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return begin


def left(folder: Path) -> list[int]:
    """Processes that still carry the mark of a cluster in the folder."""
    return rundir.processes_of(folder / "run" / "demo")


def test_it_installs_compares_and_finds_what_was_changed(start, tmp_path):
    with start() as demo:
        printed = demo.stdout.read()
    assert demo.returncode == 0, printed
    for words in (
        "13 of 13 components healthy",
        "demo: in sync",
        "demo: drifted (2 errors)",
        "to certify again: gpu-0006",
        "reports/index.html",
    ):
        assert words in printed
    assert "gpu-0006" in (tmp_path / "reports/index.html").read_text()
    assert left(tmp_path) == []


def test_ctrl_c_ends_everything(start, tmp_path):
    with start() as demo:
        for line in demo.stdout:
            if "Let Helm install" in line:
                break
        began = time.monotonic()
        os.killpg(demo.pid, signal.SIGINT)
        printed = demo.stdout.read()
    assert demo.returncode == 130
    assert "Stopped. The cluster is being ended." in printed
    assert "Traceback" not in printed and "[ERROR]" not in printed
    assert time.monotonic() - began < 15
    assert left(tmp_path) == []
