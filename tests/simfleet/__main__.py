"""Simulated GPU clusters by hand.

    python -m tests.simfleet up --name demo --nodes 8 --profile demo --detach
    python -m tests.simfleet list
    python -m tests.simfleet kubeconfig --name demo
    python -m tests.simfleet down --name demo | --all

Without --detach a cluster lives until Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys

from tests.controlplane.build import BuildFailed
from tests.controlplane.gotool import GoMissing
from tests.simfleet import rundir
from tests.simfleet.cluster import ClusterFailed, EmbeddedCluster, stop_by_name
from tests.simfleet.nodes import BadProfile, load_profile

EXPECTED = (BuildFailed, GoMissing, ClusterFailed, BadProfile, rundir.NameTaken, TimeoutError)


def up(args: argparse.Namespace) -> None:
    load_profile(args.profile)  # a wrong name should not cost a start
    cluster = EmbeddedCluster(nodes=args.nodes, profile=args.profile, name=args.name, detach=args.detach).start()
    print(f"{args.name}: {len(cluster.nodes)} nodes Ready, kubeconfig {cluster.kubeconfig}", flush=True)
    if args.detach:
        print(f"end it with: python -m tests.simfleet down --name {args.name}")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            signal.pause()
    cluster.stop()


def down(args: argparse.Namespace) -> None:
    root = rundir.run_root()
    if args.all:
        for folder in rundir.folders(root):
            if rundir.is_alive(folder):
                stop_by_name(folder)
                print(f"{folder.name}: ended")
        if root.is_dir():
            with rundir.cleaning(root):
                rundir.clean_dead(root)
        return
    if not rundir.is_alive(root / args.name):
        print(f"{args.name}: was not up")
        return
    stop_by_name(root / args.name)
    print(f"{args.name}: ended")


def show_list(_: argparse.Namespace) -> None:
    for folder in rundir.folders(rundir.run_root()):
        if rundir.is_alive(folder):
            state = rundir.read_state(folder)
            kind = "starting" if not state else "detached" if state["detached"] else "belongs to a running program"
            print(f"{folder.name}\t{kind}\t{state.get('kubeconfig', '')}")


def show_kubeconfig(args: argparse.Namespace) -> None:
    print(EmbeddedCluster.attach(args.name).kubeconfig)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simfleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("up", help="start a cluster")
    command.add_argument("--name", required=True)
    command.add_argument("--nodes", type=int, help="number of nodes (the profile's own)")
    command.add_argument("--profile", default="demo")
    command.add_argument("--detach", action="store_true", help="leave it up until `down`")
    command.set_defaults(run=up)
    command = commands.add_parser("down", help="end a cluster and remove its state")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--name")
    which.add_argument("--all", action="store_true", help="every cluster of this checkout")
    command.set_defaults(run=down)
    command = commands.add_parser("list", help="name, kind and kubeconfig of the clusters that are up")
    command.set_defaults(run=show_list)
    command = commands.add_parser("kubeconfig", help="path of a cluster's kubeconfig")
    command.add_argument("--name", required=True)
    command.set_defaults(run=show_kubeconfig)
    args = parser.parse_args()
    try:
        args.run(args)
    except EXPECTED as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
