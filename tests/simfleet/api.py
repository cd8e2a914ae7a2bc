"""The few requests that tests make to an API server, over plain http.client; one kept connection per thread."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import yaml

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TIMEOUT_SECONDS = 30
T = TypeVar("T")


class ApiError(RuntimeError):
    """The API server's refusal: its HTTP status, its reason ("NotFound"), its message."""

    def __init__(self, status: int, body: dict[str, Any], request: str):
        self.status, self.reason = status, body.get("reason", "")
        super().__init__(f"{request}: {status} {self.reason}: {body.get('message', '')}")


class Kubeconfig:
    """Server, trust and token of a kubeconfig's current (and only) context."""

    def __init__(self, path: Path | str):
        config = yaml.safe_load(Path(path).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server = cluster["server"]
        self.ca_file = str(Path(path).parent / cluster["certificate-authority"])
        self.token = config["users"][0]["user"]["token"]


class Api:
    def __init__(self, kubeconfig: Path | str):
        config = Kubeconfig(kubeconfig)
        self._address = urlsplit(config.server).netloc
        self._tls = ssl.create_default_context(cafile=config.ca_file)
        self._headers = {"Authorization": f"Bearer {config.token}", "Accept": "application/json"}
        self._local = threading.local()

    def get(self, path: str, **params: str) -> dict[str, Any]:
        return self.request("GET", with_query(path, params))

    def find(self, path: str) -> dict[str, Any] | None:
        """The object, or None where there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, **params: str) -> list[dict[str, Any]]:
        return self.get(path, **params)["items"]

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.request("POST", path, body)

    def patch(self, path: str, body: dict[str, Any], content_type: str = STRATEGIC_MERGE_PATCH) -> dict[str, Any]:
        return self.request("PATCH", path, body, content_type)

    def apply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply: create the object, or make it look like this."""
        return self.request("PATCH", path + "?fieldManager=tests&force=true", body, APPLY_PATCH)

    def delete(self, path: str, missing_ok: bool = True, **options: Any) -> None:
        try:
            self.request("DELETE", path, options or None)
        except ApiError as error:
            if not (missing_ok and error.status == 404):
                raise

    def logs(self, namespace: str, pod: str, **params: str) -> str:
        """A container's log, by way of the API server and its kubelet; params such as container=, tailLines=."""
        path = with_query(f"/api/v1/namespaces/{namespace}/pods/{pod}/log", params)
        status, body = self._send("GET", path)
        if status >= 400:
            raise ApiError(status, as_json(body), f"GET {path}")
        return body.decode()

    def request(
        self, method: str, path: str, body: dict[str, Any] | None = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        status, answer = self._send(method, path, body, content_type)
        if status >= 400:
            raise ApiError(status, as_json(answer), f"{method} {path}")
        return as_json(answer)

    def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": content_type}
        for last_try in (False, True):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = http.client.HTTPSConnection(self._address, context=self._tls, timeout=TIMEOUT_SECONDS)
                self._local.connection, last_try = connection, True
            try:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
                return response.status, response.read()
            except (http.client.HTTPException, OSError):
                connection.close()
                self._local.connection = None
                if last_try:  # a kept connection may have been closed meanwhile; a new one fails for a reason
                    raise
        raise AssertionError("not reached")


def as_json(body: bytes) -> dict[str, Any]:
    try:
        return json.loads(body or b"{}")
    except json.JSONDecodeError:
        return {"message": body.decode(errors="replace")}


def with_query(path: str, params: dict[str, str]) -> str:
    if not params:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(params, quote_via=quote)}"


def wait_until(check: Callable[[], T], seconds: float, what: str | Callable[[], str], pause: float = 0.1) -> T:
    """Return check()'s first true value; TimeoutError names what did not come."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(pause)
