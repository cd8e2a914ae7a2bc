"""The kubelet's HTTPS port: what the API server asks of it, which is container logs."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from tests.simfleet.kubelet.logs import BadLogRequest, ContainerLog, LogOptions
from tests.simfleet.kubelet.node_agent import NodeAgent


class NoLog(Exception):
    """There is no such log; the message is for the one who asked."""


async def serve(agent: NodeAgent, certificate: Path, key: Path) -> tuple[web.AppRunner, int]:
    """Listen on a free loopback port; the API server does not verify who answers there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", log_handler(agent))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    return runner, runner.addresses[0][1]


def log_handler(agent: NodeAgent):
    async def handle(request: web.Request) -> web.StreamResponse:
        names = request.match_info
        try:
            options = LogOptions.from_query(request.query, datetime.now(UTC))
            log = find_log(agent, names, request.query.get("previous") == "true")
        except (NoLog, BadLogRequest) as error:
            return web.Response(status=400, text=str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        async for text in log.read(options):
            await response.write(text)
        return response

    return handle


def find_log(agent: NodeAgent, names: web.UrlMappingMatchInfo, previous: bool) -> ContainerLog:
    run = agent.find(names["namespace"], names["pod"])
    container = run and run.container(names["container"])
    if not run or not container:
        raise NoLog(f"container {names['container']} not found in pod {names['namespace']}_{names['pod']}")
    log = container.log_for(previous)
    if log is None and previous:
        raise NoLog(f'previous terminated container "{container.name}" in pod "{run.name}" not found')
    if log is None:
        waiting = container.state.state.get("waiting", {})
        why = waiting.get("message") or waiting.get("reason") or "it has not run"
        raise NoLog(f'container "{container.name}" in pod "{run.name}" is waiting to start: {why}')
    return log
