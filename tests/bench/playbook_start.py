"""`ansible-playbook` from start to a rendered bundle: the whole command, and how much of it is Ansible's own start."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOUND = 2.0
EMPTY = "- hosts: localhost\n  gather_facts: false\n  tasks: []\n"
BUNDLE = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - goodput.fleet.recipe:
        criteria: {service: eks, accelerator: h100, os: ubuntu, intent: inference, platform: dynamo}
        dest: recipe.lock.yaml
    - goodput.fleet.bundle:
        lock: recipe.lock.yaml
        deployer: helm
        dest: bundle
"""


def seconds(text: str) -> float:
    """Wall time of one run in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "play.yml").write_text(text)
        env = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
            "ANSIBLE_LOCALHOST_WARNING": "False",
        }
        began = time.perf_counter()
        done = subprocess.run(
            [ROOT / ".venv/bin/ansible-playbook", "play.yml"], cwd=folder, env=env, capture_output=True, text=True
        )
        took = time.perf_counter() - began
        if done.returncode or (text is BUNDLE and not Path(folder, "bundle", "bundle.sha256").is_file()):
            sys.exit(done.stdout + done.stderr)
        return took


def main() -> int:
    seconds(BUNDLE)  # warms the file cache, not the program
    bundle = statistics.median(seconds(BUNDLE) for _ in range(5))
    empty = statistics.median(seconds(EMPTY) for _ in range(5))
    verdict = "ok" if bundle < BOUND else "MISSED"
    print(f"playbook_to_bundle {bundle:.2f} s {bundle / empty:.1f}x-empty-play {BOUND} {verdict}")
    return int(bundle >= BOUND)


if __name__ == "__main__":
    sys.exit(main())
