"""The kubelet's side of the API: list and watch that survive anything, and status reports."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from tests.simfleet.api import STRATEGIC_MERGE_PATCH, Kubeconfig

PAGE = 500
WATCH_SECONDS = 240
RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
RETRIED = (408, 429, 500, 502, 503, 504)
CONNECTIONS = 16

logger = logging.getLogger("kubelet")


class Expired(Exception):
    """The watch cannot go on from its resource version; list again."""


class Client:
    """To be made inside a running event loop."""

    def __init__(self, server: str, token: str, ca_file: str | None):
        self._server = server
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS, ssl=ssl.create_default_context(cafile=ca_file)),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Client:
        config = Kubeconfig(path)
        return cls(config.server, config.token, config.ca_file)

    async def close(self) -> None:
        await self._session.close()

    async def request(
        self, method: str, path: str, body: dict[str, Any] | None = None, content_type: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON answer. Tries again for as long as the server cannot be reached or asks for patience."""
        attempt = 0
        while True:
            try:
                async with self._session.request(
                    method,
                    self._server + path,
                    data=None if body is None else json.dumps(body),
                    headers={"Content-Type": content_type},
                    timeout=aiohttp.ClientTimeout(total=30),
                ) as response:
                    text = await response.read()
                    if response.status not in RETRIED:
                        return response.status, json.loads(text or b"{}")
                    problem = f"{response.status}"
            except (aiohttp.ClientError, TimeoutError) as error:
                problem = repr(error)
            logger.info("%s %s: %s; trying again", method, path, problem)
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            attempt += 1

    async def patch_status(self, pod_path: str, body: dict[str, Any]) -> int:
        status, answer = await self.request("PATCH", f"{pod_path}/status", body, STRATEGIC_MERGE_PATCH)
        if status >= 400 and status not in (404, 409):  # gone, or another pod of that name by now
            logger.error("PATCH %s/status: %s %s", pod_path, status, answer.get("message"))
        return status

    async def changes(self, path: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield ("SYNC", all items) first and whenever the watch had to start over, else (event type, object)."""
        failures = 0
        while True:
            try:
                items, version = await self._list(path)
                yield "SYNC", items
                failures = 0
                while True:
                    async for kind, item in self._watch(path, version):
                        version = item["metadata"]["resourceVersion"]
                        if kind != "BOOKMARK":
                            yield kind, item
            except (Expired, aiohttp.ClientError, TimeoutError, OSError, json.JSONDecodeError) as error:
                logger.info("watch of %s starts over: %r", path, error)
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1

    async def _list(self, path: str) -> tuple[list[dict[str, Any]], str]:
        items: list[dict[str, Any]] = []
        token = ""
        while True:
            query = f"limit={PAGE}" + (f"&continue={quote(token)}" if token else "")
            status, page = await self.request("GET", f"{path}{mark(path)}{query}")
            if status != 200:
                raise Expired(f"list: {status} {page.get('message')}")
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items, page["metadata"]["resourceVersion"]

    async def _watch(self, path: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}"
        timeout = aiohttp.ClientTimeout(total=None, sock_read=WATCH_SECONDS + 30)
        async with self._session.get(f"{self._server}{path}{mark(path)}{query}", timeout=timeout) as response:
            if response.status != 200:
                raise Expired(f"watch: {response.status}")
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise Expired(str(event["object"].get("message")))
                    yield event["type"], event["object"]


def mark(path: str) -> str:
    return "&" if "?" in path else "?"


def path_of(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
