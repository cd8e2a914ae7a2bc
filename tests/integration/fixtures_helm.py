# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that install bundles, and ansible-playbook.

helm_binary     path of helm
kubectl_binary  path of kubectl, which also builds kustomizations
run_play        run_play(folder, [task...], **variables) -> {registered name: result}; fails with what was printed
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.tools import tools

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ("ANSIBLE_", "GIT_", "GOODPUT_", "HELM_", "K8S_AUTH_", "KUBECONFIG")


@pytest.fixture(scope="session")
def helm_binary() -> Path:
    return tools.helm()


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    return tools.kubectl()


@pytest.fixture(scope="session")
def run_play() -> Callable[..., dict]:
    return play


def play(folder: Path, tasks: list[dict], **variables: object) -> dict:
    """The results of the tasks that have `register`, under that name; those of roles under the role's own names.

    A task that ends in an error is the test's failure, with everything that was printed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.json"
    results.unlink(missing_ok=True)
    names = ", ".join(f"'{task['register']}': {task['register']}" for task in tasks if "register" in task)
    keep = {"ansible.builtin.copy": {"dest": str(results), "content": "{{ {" + names + "} | to_json }}"}}
    book = [{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": [*tasks, keep]}]
    (folder / "play.yml").write_text(yaml.safe_dump(book, sort_keys=False))
    env = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    env |= {
        "HOME": str(folder),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build" / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOLOR": "True",
    }
    command = [str(ROOT / ".venv" / "bin" / "ansible-playbook"), "play.yml"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(results.read_text())
