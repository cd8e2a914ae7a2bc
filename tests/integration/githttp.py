"""Real git repositories over smart HTTP on loopback, served by git's own http-backend."""

from __future__ import annotations

import base64
import http.server
import os
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit


class GitServer:
    """Serves the bare repositories of `folder` as `url`/NAME.git while the context is open.

    With a `token`, every request needs basic authorization with it, whatever the user name. `requests` notes
    (method, path, status). For tests of failures: the answers of the next `lose_answers` pushes are lost after the push
    was done, and with `read_only` pushes get 403.
    """

    def __init__(self, folder: str | Path, token: str = "", lose_answers: int = 0, read_only: bool = False):
        self.folder, self.token = os.path.abspath(folder), token
        self.lose_answers, self.read_only = lose_answers, read_only
        self.requests: list[tuple[str, str, int]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> GitServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_error) -> None:
        self._server.shutdown()
        self._server.server_close()

    def refuses(self, path: str, authorization: str) -> int:
        """Status to refuse a request with, or 0."""
        if self.token:
            given = base64.b64decode(authorization.removeprefix("Basic ").encode() or b"Og==").decode()
            if given.partition(":")[2] != self.token:
                return 401
        return 403 if self.read_only and "git-receive-pack" in path else 0


def _handler(server: GitServer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            content = self.body()
            status = server.refuses(self.path, self.headers.get("Authorization", ""))
            if status:
                return self.answer(status, {"WWW-Authenticate": 'Basic realm="git"'} if status == 401 else {}, b"")
            fields, body = self.backend(content)
            if server.lose_answers and self.command == "POST" and self.path.endswith("git-receive-pack"):
                server.lose_answers -= 1
                self.close_connection = True
                return None
            return self.answer(int(fields.pop("Status", "200").split()[0]), fields, body)

        do_POST = do_GET

        def body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def backend(self, content: bytes) -> tuple[dict[str, str], bytes]:
            """What git answers: header fields and body."""
            url = urlsplit(self.path)
            env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
            env |= {
                "GIT_PROJECT_ROOT": server.folder,
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.receivepack",
                "GIT_CONFIG_VALUE_0": "true",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": url.path,
                "QUERY_STRING": url.query,
                "CONTENT_LENGTH": str(len(content)),
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            output = subprocess.run(["git", "http-backend"], input=content, env=env, capture_output=True).stdout
            head, _blank, body = output.partition(b"\r\n\r\n")
            return dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line), body

        def answer(self, status: int, fields: dict[str, str], body: bytes) -> None:
            server.requests.append((self.command, self.path, status))
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    return Handler
