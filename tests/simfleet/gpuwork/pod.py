"""A pod of a run, played: `pod.py STATE`, in the environment that the simulated kubelet gives."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpuwork import work

POLL_SECONDS = 0.3
RUN, INDEX = "goodput.fleet/run", "batch.kubernetes.io/job-completion-index"
WRAPPED_BY = "goodput"  # the name that a launcher's shell script has; the command comes after it


def main(state_file: str) -> None:
    state = json.loads(Path(state_file).read_text())
    me, peers = look_around(state)
    container = me["spec"]["containers"][0]
    command = container.get("command", []) + container.get("args", [])
    if WRAPPED_BY in command:
        command = command[command.index(WRAPPED_BY) + 1 :]
    limits = container.get("resources", {}).get("limits", {})
    played = work.act(
        work.work_of(
            command,
            {entry["name"]: entry.get("value", "") for entry in container.get("env", [])},
            me["metadata"]["labels"][RUN],
            [pod["spec"]["nodeName"] for pod in peers],
            [host_of(pod) for pod in peers],
            [pod["metadata"]["uid"] for pod in peers].index(me["metadata"]["uid"]),
            int(limits.get("nvidia.com/gpu", 0)),
            work.Fleet(state["faults"], state["pairs"]),
        )
    )
    text = "".join(f"{line}\n" for line in played.lines)
    sys.stdout.write(text)
    sys.stdout.flush()
    if played.hang:
        os.execvp("sleep", ["sleep", "infinity"])
    time.sleep(state["seconds"])
    sys.exit(played.code)


def look_around(state: dict) -> tuple[dict, list[dict]]:
    """This pod, and those of its run in their order, as soon as they all run."""
    server = urlsplit(state["server"])
    tls = ssl.create_default_context(cafile=state["ca"])
    connection = http.client.HTTPSConnection(server.netloc, context=tls, timeout=60)
    namespace, name = os.environ["POD_NAMESPACE"], os.environ["POD_NAME"]
    count = len(os.environ.get("GOODPUT_HOSTS", "alone").split(","))

    def get(path: str) -> dict:
        connection.request("GET", path, headers={"Authorization": f"Bearer {state['token']}"})
        return json.loads(connection.getresponse().read())

    base = f"/api/v1/namespaces/{namespace}/pods"
    me = get(f"{base}/{name}")
    if count == 1:
        return me, [me]
    while True:
        run = quote(f"{RUN}={me['metadata']['labels'][RUN]}")
        pods = get(f"{base}?labelSelector={run}")["items"]
        if len(pods) >= count and all(pod.get("status", {}).get("phase") != "Pending" for pod in pods):
            return me, sorted(pods, key=lambda pod: int(pod["metadata"]["annotations"][INDEX]))
        time.sleep(POLL_SECONDS)


def host_of(pod: dict) -> str:
    spec = pod["spec"]
    return spec["nodeName"] if spec.get("hostNetwork") else spec.get("hostname") or pod["metadata"]["name"]


if __name__ == "__main__":
    main(sys.argv[1])
