"""An API server that has bad days: a proxy on loopback that forwards to a real one, and does otherwise where told.

    with ApiProxy(cluster.kubeconfig) as proxy:
        proxy.rule("PATCH", "/nodes/gpu-0003", status=403)                      # always
        proxy.rule("PATCH", "/nodes/", status=429, headers={"Retry-After": "1"}, times=5)
        proxy.rule("PATCH", "/nodes/gpu-0004", before=lambda request: ...)      # someone else is quicker
        proxy.rule("PUT", "", lose_answer=True, times=1)                        # done, and the connection breaks
        run(kubeconfig=proxy.kubeconfig)
        proxy.requests                                                          # [Request(method, path, status), ...]

Only what a test names differs from the real server: whatever no rule takes is forwarded as it is.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import yaml

from tests.simfleet.api import Kubeconfig

TIMEOUT_SECONDS = 60
WRITES = ("POST", "PUT", "PATCH", "DELETE")
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "authorization"}
_REASONS = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}


@dataclass
class Request:
    method: str
    path: str  # with its query
    body: bytes = b""
    status: int = 0  # what was answered; 0: nothing was


@dataclass
class Rule:
    method: str
    path: re.Pattern
    times: int | None
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    delay: float = 0
    drop: bool = False
    lose_answer: bool = False
    before: Callable[[Request], None] | None = None
    after: Callable[[Request], None] | None = None


class ApiProxy:
    def __init__(self, kubeconfig: Path | str):
        upstream = Kubeconfig(kubeconfig)
        self._address = urlsplit(upstream.server).netloc
        self._tls = ssl.create_default_context(cafile=upstream.ca_file)
        self._token = upstream.token
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._folder = TemporaryDirectory(prefix="apiproxy-")
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.kubeconfig = self._write_kubeconfig()

    def __enter__(self) -> ApiProxy:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def rule(self, method: str, path: str, times: int | None = None, **what) -> Rule:
        """Do otherwise for requests of that method ("*": all, "write": all that write) whose path matches.

        status, headers, message: answer so without asking the server. delay: seconds to wait before. drop: break
        the connection without asking the server. lose_answer: ask the server, then break the connection. before,
        after: call this with the Request before it is sent, or after it was answered. `times`: how often, by default
        always. Of several rules the first one that matches is taken.
        """
        rule = Rule(method, re.compile(path), times, **what)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()
            self.requests.clear()

    def count(self, method: str, path: str = "") -> int:
        return sum(_is(method, request.method) and bool(re.search(path, request.path)) for request in self.requests)

    @property
    def writes(self) -> int:
        return self.count("write")

    def _write_kubeconfig(self) -> Path:
        path = Path(self._folder.name) / "kubeconfig"
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "proxied", "cluster": {"server": self.url}}],
                    "users": [{"name": "test", "user": {}}],
                    "contexts": [{"name": "proxied", "context": {"cluster": "proxied", "user": "test"}}],
                    "current-context": "proxied",
                }
            )
        )
        return path

    def _take(self, request: Request) -> Rule | None:
        with self._lock:
            self.requests.append(request)
            for rule in self._rules:
                if rule.times != 0 and _is(rule.method, request.method) and rule.path.search(request.path):
                    if rule.times is not None:
                        rule.times -= 1
                    return rule
        return None


def _is(wanted: str, method: str) -> bool:
    return wanted in ("*", method) or (wanted == "write" and method in WRITES)


def _handler(proxy: ApiProxy):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1
        upstream: http.client.HTTPSConnection | None = None

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, body)
            rule = proxy._take(request) or Rule("*", re.compile(""), None)
            time.sleep(rule.delay)
            if rule.before:
                rule.before(request)
            if rule.drop:
                return self._break()
            if rule.status:
                request.status = rule.status
                return self._answer(rule.status, dict(rule.headers), _status(rule))
            status, headers, answer = self._forward(body)
            request.status = status
            if rule.after:
                rule.after(request)
            if rule.lose_answer:
                return self._break()
            return self._answer(status, headers, answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

        def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            headers = {key: value for key, value in self.headers.items() if key.lower() not in _HOP_BY_HOP}
            headers["Authorization"] = f"Bearer {proxy._token}"
            for last_try in (False, True):
                if self.upstream is None:
                    self.upstream = http.client.HTTPSConnection(
                        proxy._address, context=proxy._tls, timeout=TIMEOUT_SECONDS
                    )
                    last_try = True
                try:
                    self.upstream.request(self.command, self.path, body or None, headers)
                    response = self.upstream.getresponse()
                    kept = {key: value for key, value in response.getheaders() if key.lower() not in _HOP_BY_HOP}
                    return response.status, kept, response.read()
                except (http.client.HTTPException, OSError):
                    self.upstream.close()
                    self.upstream = None
                    if last_try:
                        raise
            raise AssertionError("not reached")

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            try:
                self.send_response_only(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
            except OSError:  # the client has been killed, or has given up
                self.close_connection = True

        def _break(self) -> None:
            self.close_connection = True
            self.connection.close()

        def log_message(self, *_: object) -> None:
            pass

        def finish(self) -> None:
            if self.upstream is not None:
                self.upstream.close()
            with contextlib.suppress(OSError, ValueError):
                super().finish()

    return Handler


def _status(rule: Rule) -> bytes:
    reason = _REASONS.get(rule.status, "")
    message = rule.message or f"the server was told to answer {rule.status}"
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}
    return json.dumps({**body, "reason": reason, "code": rule.status}).encode()
