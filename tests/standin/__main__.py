# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in charts for a recipe, as a repository on loopback, and the operators that go with them.

    python -m tests.standin build   --lock LOCK --dir DIR                    only writes the archives and the index
    python -m tests.standin serve   --lock LOCK --dir DIR [--port N]         and serves them; prints the URL
    python -m tests.standin operate --lock LOCK --kubeconfig K               writes the status that checks wait for

serve and operate end at the end of their standard input, which comes when whoever started them is gone;
with --detached they run until they get a signal.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".build" / "collections"))  # the collection, by its name

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock

from tests.simfleet.api import Api
from tests.standin import charts, operators, repository


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("build", "serve", "operate"):
        command = commands.add_parser(name)
        command.add_argument("--lock", required=True, help="a RecipeLock file")
        if name in ("build", "serve"):
            command.add_argument("--dir", required=True, help="folder for the archives; others in it are removed")
        if name == "serve":
            command.add_argument("--port", type=int, default=0, help="0: a free one")
        if name == "operate":
            command.add_argument("--kubeconfig", required=True)
        if name != "build":
            command.add_argument("--detached", action="store_true")
    args = parser.parse_args()
    try:
        lock = load_lock(args.lock)
        return {"build": build, "serve": serve, "operate": operate}[args.command](lock, args)
    except (FleetError, ValueError, OSError) as error:
        print(f"standin: {error}", file=sys.stderr)
        return 1


def build(lock: dict, args: argparse.Namespace) -> int:
    repository.store(args.dir, charts.archives(lock))
    return 0


def serve(lock: dict, args: argparse.Namespace) -> int:
    repository.store(args.dir, charts.archives(lock))
    with repository.ChartRepository(args.dir, args.port) as served:
        print(served.url, flush=True)
        wait_for_end(args.detached)
    return 0


def operate(lock: dict, args: argparse.Namespace) -> int:
    with operators.Operators(lock, Api(args.kubeconfig)).at_work():
        print("ready", flush=True)
        wait_for_end(args.detached)
    return 0


def wait_for_end(detached: bool) -> None:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if not detached:
        threading.Thread(target=lambda: (drain_stdin(), ended.set()), daemon=True).start()
    ended.wait()


def drain_stdin() -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.buffer.read1(4096):
            pass


if __name__ == "__main__":
    sys.exit(main())
