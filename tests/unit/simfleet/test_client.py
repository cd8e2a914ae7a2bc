"""The kubelet's list and watch goes on whatever the API server does."""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from tests.simfleet.kubelet.client import Client

THINGS = "/api/v1/things"


def thing(name: str, version: int) -> dict:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def event(kind: str, item: dict) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


class Server:
    """Answers lists in pages of one, and each watch with the next script of chunks."""

    def __init__(self, watches: list[list[bytes]]):
        self.watches = watches
        self.items = [thing("a", 1), thing("b", 2)]
        self.versions: list[str] = []  # that watches began from
        self.refusals = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.refusals:
            self.refusals -= 1
            return web.Response(status=503)
        if "watch" not in request.query:
            at = int(request.query.get("continue", "0"))
            more = str(at + 1) if at + 1 < len(self.items) else ""
            metadata = {"resourceVersion": "10", "continue": more}
            return web.json_response({"metadata": metadata, "items": self.items[at : at + 1]})
        self.versions.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in self.watches.pop(0) if self.watches else []:
            if chunk == b"CUT":
                request.transport.abort()
                return response
            await response.write(chunk)
        if not self.watches:
            await asyncio.sleep(60)
        return response


def follow(server: Server, count: int) -> list[tuple[str, object]]:
    """The first `count` changes, items as their names."""

    async def run() -> list[tuple[str, object]]:
        app = web.Application()
        app.router.add_get(THINGS, server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        client = Client(f"http://127.0.0.1:{runner.addresses[0][1]}", "token", None)
        found: list[tuple[str, object]] = []
        try:
            async with asyncio.timeout(10):
                async for kind, item in client.changes(THINGS):
                    name = item["metadata"]["name"] if isinstance(item, dict) else [i["metadata"]["name"] for i in item]
                    found.append((kind, name))
                    if len(found) == count:
                        return found
        finally:
            await client.close()
            await runner.cleanup()
        return found

    return asyncio.run(run())


def test_pages_are_put_together_and_events_come_whole_however_they_are_cut():
    line = event("ADDED", thing("c", 11)) + event("MODIFIED", thing("c", 12))
    found = follow(Server([[line[:7], line[7:60], line[60:]]]), 3)
    assert found == [("SYNC", ["a", "b"]), ("ADDED", "c"), ("MODIFIED", "c")]


def test_a_watch_that_ends_goes_on_from_its_last_version_bookmarks_included():
    server = Server(
        [[event("ADDED", thing("c", 11)), event("BOOKMARK", thing("", 20))], [event("ADDED", thing("d", 21))]]
    )
    assert follow(server, 3) == [("SYNC", ["a", "b"]), ("ADDED", "c"), ("ADDED", "d")]
    assert server.versions == ["10", "20"]


def test_an_expired_version_means_a_new_list():
    gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
    server = Server([[event("ADDED", thing("c", 11)), event("ERROR", gone)], [event("DELETED", thing("a", 12))]])
    expected = [("SYNC", ["a", "b"]), ("ADDED", "c"), ("SYNC", ["a", "b"]), ("DELETED", "a")]
    assert follow(server, 4) == expected
    assert server.versions == ["10", "10"]


def test_a_lost_connection_means_a_new_list():
    server = Server([[event("ADDED", thing("c", 11)), b"CUT"], [event("ADDED", thing("d", 12))]])
    assert follow(server, 4) == [("SYNC", ["a", "b"]), ("ADDED", "c"), ("SYNC", ["a", "b"]), ("ADDED", "d")]


def test_a_server_that_is_busy_is_asked_again():
    server = Server([[event("ADDED", thing("c", 11))]])
    server.refusals = 3
    assert follow(server, 2) == [("SYNC", ["a", "b"]), ("ADDED", "c")]
