"""python -m tests.simfleet.kubelet --kubeconfig K --dir D

Writes D/kubelet.json ({"port": N}) when it serves. SIGTERM ends it and every script it runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import resource
import signal
from pathlib import Path

from tests.simfleet.kubelet.client import Client
from tests.simfleet.kubelet.node_agent import NodeAgent
from tests.simfleet.kubelet.server import serve


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--dir", type=Path, required=True, help="state directory of the cluster")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    allow_many_files()
    (args.dir / "scripts").mkdir(exist_ok=True)
    client = Client.from_kubeconfig(args.kubeconfig)
    agent = NodeAgent(client, args.dir)
    runner, port = await serve(agent, args.dir / "certs/apiserver.crt", args.dir / "certs/apiserver.key")
    agent_task = asyncio.create_task(agent.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, agent_task.cancel)
    announce(args.dir / "kubelet.json", port)
    try:
        await agent_task
    except asyncio.CancelledError:
        logging.info("stopping")
    finally:
        await agent.stop()
        await runner.cleanup()
        await client.close()


def allow_many_files() -> None:
    """Each running script takes two descriptors."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def announce(path: Path, port: int) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"port": port}))
    partial.rename(path)


if __name__ == "__main__":
    asyncio.run(main())
