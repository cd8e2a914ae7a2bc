"""All the pods of all the nodes: follows the API server, runs pods, reports their status, removes them."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.simfleet.kubelet.behaviour import FAULTS_LABEL, BadBehaviour, Rule, read_rules
from tests.simfleet.kubelet.client import Client, path_of
from tests.simfleet.kubelet.podrun import Host, PodRun

REPORTERS = 8
POD_NETWORK = ipaddress.ip_network("10.128.0.0/9")
PODS = "/api/v1/pods?fieldSelector=" + quote("spec.nodeName!=")
FAULTS = "/api/v1/configmaps?labelSelector=" + quote(f"{FAULTS_LABEL}=true")

logger = logging.getLogger("kubelet")


class NodeAgent:
    def __init__(self, client: Client, folder: Path):
        self._client = client
        self._host = Host(
            logs=folder / "logs",
            scripts=folder / "scripts",
            scratch=folder / "pods",
            report=self._report,
            rules=self._rules,
        )
        self._runs: dict[str, PodRun] = {}  # by uid
        self._by_name: dict[tuple[str, str], PodRun] = {}
        self._addresses = POD_NETWORK.hosts()
        self._fault_maps: dict[str, list[Rule]] = {}
        # A pod waits here once at most, and what is sent is its state by then.
        self._queue: asyncio.Queue[PodRun] = asyncio.Queue()
        self._queued: set[str] = set()
        self._removing: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(REPORTERS):
                group.create_task(self._send_reports())
            first_faults = asyncio.Event()
            group.create_task(self._follow_faults(first_faults))
            await first_faults.wait()  # else pods would start as if there were no rules
            group.create_task(self._follow_pods())

    async def stop(self) -> None:
        """Kill what runs; nobody is told."""
        await asyncio.gather(*(run.stop(grace=0) for run in self._runs.values()))

    def find(self, namespace: str, name: str) -> PodRun | None:
        return self._by_name.get((namespace, name))

    # ---- pods ----

    async def _follow_pods(self) -> None:
        async for kind, item in self._client.changes(PODS):
            if kind == "SYNC":
                there = {pod["metadata"]["uid"] for pod in item}
                for uid in [uid for uid in self._runs if uid not in there]:
                    self._forget(uid)
                for pod in item:
                    self._notice(pod)
            elif kind == "DELETED":
                self._forget(item["metadata"]["uid"])
            else:
                self._notice(item)

    def _notice(self, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        run = self._runs.get(uid)
        if pod["metadata"].get("deletionTimestamp"):
            if uid not in self._removing:
                self._removing.add(uid)
                self._keep(self._remove(pod, run))
        elif run is None and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            run = PodRun(pod, self._host, str(next(self._addresses)))
            self._runs[uid] = self._by_name[run.namespace, run.name] = run
            run.start()

    async def _remove(self, pod: dict[str, Any], run: PodRun | None) -> None:
        """End a pod that is being deleted, tell how it ended, let go of it."""
        uid = pod["metadata"]["uid"]
        try:
            if run is not None:
                await run.stop(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
                await self._send(run)
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            await self._client.request("DELETE", path_of(pod), body)
        finally:
            self._removing.discard(uid)

    def _forget(self, uid: str) -> None:
        run = self._runs.pop(uid, None)
        if run is None:
            return
        if self._by_name.get((run.namespace, run.name)) is run:
            del self._by_name[run.namespace, run.name]
        self._keep(self._let_go(run))

    async def _let_go(self, run: PodRun) -> None:
        await run.stop(grace=0)
        run.clean_up()

    def _keep(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # ---- faults ----

    def _rules(self) -> list[Rule]:
        return [rule for name in sorted(self._fault_maps) for rule in self._fault_maps[name]]

    async def _follow_faults(self, first: asyncio.Event) -> None:
        async for kind, item in self._client.changes(FAULTS):
            before = self._rules()
            if kind == "SYNC":
                self._fault_maps = {name_of(entry): self._read(entry) for entry in item}
            elif kind == "DELETED":
                self._fault_maps.pop(name_of(item), None)
            else:
                self._fault_maps[name_of(item)] = self._read(item)
            first.set()
            if self._rules() != before:
                for run in list(self._runs.values()):
                    run.reconsider()

    def _read(self, config_map: dict[str, Any]) -> list[Rule]:
        rules = []
        for key, text in sorted((config_map.get("data") or {}).items()):
            try:
                rules += read_rules(text, f"ConfigMap {name_of(config_map)}, {key}")
            except BadBehaviour as error:
                logger.error("fault rules ignored: %s", error)
        return rules

    # ---- reports ----

    def _report(self, run: PodRun) -> None:
        if run.uid not in self._queued:
            self._queued.add(run.uid)
            self._queue.put_nowait(run)

    async def _send_reports(self) -> None:
        while True:
            run = await self._queue.get()
            self._queued.discard(run.uid)
            if run.uid in self._runs and run.uid not in self._removing:
                await self._send(run)

    async def _send(self, run: PodRun) -> None:
        async with run.reporting:  # one at a time, so that an older state never overtakes a newer one
            body = {"metadata": {"uid": run.uid}, "status": run.as_status()}
            await self._client.patch_status(path_of(run.pod), body)


def name_of(item: dict[str, Any]) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"
