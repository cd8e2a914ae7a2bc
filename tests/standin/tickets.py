# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service desk on loopback that takes tickets by webhook, checks their signature, and can be had to misbehave.

    with TicketDesk(secret="s3cret", answers=[Answer(503), Answer(0)]) as desk:
        ...                 # the first request gets 503, the second no answer at all, the others are dealt with
        desk.tickets        # {idempotency key: the ticket}
        desk.requests       # every request that came, with its headers

It says 401 to a signature that is wrong or older than five minutes, and 200 instead of 201 to a key that it knows.
"""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

AGE = 300  # seconds


@dataclass(frozen=True)
class Answer:
    """What one request gets instead of being dealt with. Status 0 is none: the connection is closed after `delay`."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    delay: float = 0.0
    keep: bool = False  # the ticket is taken all the same, only the answer is lost


@dataclass(frozen=True)
class Seen:
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


class TicketDesk:
    def __init__(self, secret: str = "", answers: Iterable[Answer] = ()):
        self.secret, self.answers = secret, list(answers)
        self.requests: list[Seen] = []
        self.tickets: dict[str, Any] = {}
        desk = self

        class Handler(_Handler):
            owner = desk

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.host}/hooks/goodput"

    def __enter__(self) -> TicketDesk:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, seen: Seen) -> tuple[int, dict]:
        """Status and answer of a request that is dealt with."""
        if self.secret:
            stamp = seen.headers.get("x-goodput-timestamp", "")
            signed = hmac.new(self.secret.encode(), stamp.encode() + b"." + seen.body, hashlib.sha256).hexdigest()
            if not hmac.compare_digest(seen.headers.get("x-goodput-signature", ""), f"sha256={signed}"):
                return 401, {"error": "the signature is wrong"}
            if abs(time.time() - int(stamp)) > AGE:
                return 401, {"error": "the timestamp is old"}
        key = seen.headers["idempotency-key"]
        known = key in self.tickets
        self.tickets.setdefault(key, json.loads(seen.body))
        return 200 if known else 201, {"key": f"OPS-{list(self.tickets).index(key) + 1}"}


class _Handler(http.server.BaseHTTPRequestHandler):
    owner: TicketDesk

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen = Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.owner.requests.append(seen)
        answer = self.owner.answers.pop(0) if self.owner.answers else None
        if answer is None:
            status, told = self.owner.take(seen)
            return self._say(status, {"Content-Type": "application/json"}, json.dumps(told))
        if answer.keep:
            self.owner.take(seen)
        time.sleep(answer.delay)
        if answer.status:
            return self._say(answer.status, answer.headers, answer.body)
        self.close_connection = True
        return None

    def do_GET(self):
        self.owner.requests.append(Seen(self.path, {}, b""))
        self._say(200, {}, "{}")

    def _say(self, status: int, headers: dict[str, str], body: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body.encode())), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass
