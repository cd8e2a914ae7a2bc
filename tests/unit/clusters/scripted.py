"""An HTTP server that answers as a script says, one entry a request, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Answer(NamedTuple):
    status: int = 200
    body: object = {}
    headers: dict = {}
    hang_up: bool = False  # close the connection without an answer


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict
    body: bytes


@contextmanager
def serving(*answers: Answer):
    """(host, asked): the address, and the list of requests so far. After the script's end the last entry repeats."""
    asked: list[Asked] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self):
            length = int(self.headers.get("Content-Length") or 0)
            asked.append(Asked(self.command, self.path, dict(self.headers), self.rfile.read(length)))
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer.hang_up:
                self.close_connection = True
                return
            content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for key, value in {"Content-Length": str(len(content)), **answer.headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_one

        def log_message(self, *_unused):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
