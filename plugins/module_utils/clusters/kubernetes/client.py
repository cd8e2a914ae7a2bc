# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw JSON to and from one API server, over a keep-alive pool that threads may share.

Typed models and API discovery are left out on purpose: they cost ten times what the request costs.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Iterator
from urllib.parse import quote, urlencode, urlsplit

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import failures
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, NotFound, Unavailable

JSON = "application/json"
# an object and a list are asked for by different names, and asking for both is an error for an object
METADATA_OF_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA_OF_ONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
PAGE = 500
STREAMED = 1 << 16  # bytes of one piece
ATTEMPTS = 5
MAX_WAIT = 30.0  # seconds that a Retry-After is obeyed for
TRANSIENT = (429, 500, 502, 503, 504)


def api_path(
    api_version: str, plural: str, namespace: str | None = None, name: str | None = None, sub: str | None = None
) -> str:
    """('apps/v1', 'deployments', 'x') as '/apis/apps/v1/namespaces/x/deployments'."""
    path = ("/apis/" if "/" in api_version else "/api/") + api_version
    if namespace:
        path += f"/namespaces/{quote(namespace, safe='')}"
    path += f"/{plural}"
    for part in (name, sub):
        path += f"/{quote(part, safe='')}" if part else ""
    return path


class Client:
    """One API server. Every method may be called from several threads.

    Reads, patches and deletes are tried again, a bounded number of times, after 429 (obeying Retry-After), 5xx and
    lost connections. A POST is tried again only when it surely did nothing (429, 503, no connection at all).
    Failures raise FleetError: Unavailable, Denied, NotFound, Conflict or failures.Refused, with `status` when
    the server answered.
    """

    def __init__(
        self,
        settings,
        threads: int = 8,
        connect_timeout: float = 10.0,
        read_timeout: float = 60.0,
        attempts: int = ATTEMPTS,
    ):
        import urllib3

        self.settings = settings
        self._attempts = attempts
        self._sleep = time.sleep
        self._timeout = urllib3.Timeout(connect=connect_timeout, read=read_timeout)
        self._base = settings.host.rstrip("/")
        self._manager = _manager(settings, threads)
        # the server's own pool spares a request a third of its cost here; behind a proxy the manager is needed
        self._pool = self._manager if settings.proxy else _pool(self._manager, settings)
        self._prefix = self._base if settings.proxy else urlsplit(self._base).path

    @property
    def host(self) -> str:
        return self.settings.host

    @property
    def context(self) -> str:
        """Name of the kubeconfig's context, else the server's address."""
        return self.settings.context or urlsplit(self.settings.host).netloc

    def get(self, path: str, *, metadata_only: bool = False, **query) -> dict:
        """One object (or whatever JSON the path serves)."""
        return self._json("GET", path, query, accept=METADATA_OF_ONE if metadata_only else JSON)

    def find(self, path: str, **options) -> dict | None:
        """One object, None when it or its kind is not there."""
        try:
            return self.get(path, **options)
        except NotFound:
            return None

    def list(self, path: str, *, metadata_only: bool = False, page: int = PAGE, **query) -> Iterator[dict]:
        """Every item, raw, one page in memory at a time. `query`: labelSelector, fieldSelector.

        Items carry no kind or apiVersion. When the server forgets the list half way (410), it is begun anew and
        what was given already is left out.
        """
        for items in self.pages(path, metadata_only=metadata_only, page=page, **query):
            yield from items

    def pages(self, path: str, *, metadata_only: bool = False, page: int = PAGE, **query) -> Iterator[list[dict]]:
        """Like list(), page by page."""
        accept = METADATA_OF_LIST if metadata_only else JSON
        seen: set[tuple] = set()
        token, restarts, again = "", 0, False
        while True:
            try:
                answer = self._json("GET", path, {**query, "limit": page, "continue": token or None}, accept=accept)
            except FleetError as error:
                if getattr(error, "status", None) != 410 or not token or restarts >= self._attempts:
                    raise
                token, restarts, again = "", restarts + 1, True
                continue
            items = answer.get("items") or []
            token = (answer.get("metadata") or {}).get("continue") or ""
            if again:
                items = [item for item in items if _key(item) not in seen]
            if token or again:
                seen.update(map(_key, items))
            if items:
                yield items
            if not token:
                return

    def post(self, path: str, body: dict, **query) -> dict:
        return self._json("POST", path, query, body)

    def put(self, path: str, body: dict, **query) -> dict:
        return self._json("PUT", path, query, body)

    def patch(self, path: str, body: dict | list, kind: str = "merge", *, metadata_only: bool = False, **query) -> dict:
        """`kind`: merge, strategic, json, or apply (needs fieldManager). `metadata_only`: a short answer."""
        accept = METADATA_OF_ONE if metadata_only else JSON
        return self._json("PATCH", path, query, body, content_type=PATCH_TYPES[kind], accept=accept)

    def delete(self, path: str, body: dict | None = None, **query) -> dict:
        return self._json("DELETE", path, query, body)

    def text(self, path: str, **query) -> str:
        """What the path serves, as text (logs, /readyz)."""
        return self._request("GET", path, query, None, JSON, "*/*").decode(errors="replace")

    def stream(self, path: str, **query) -> Iterator[bytes]:
        """What the path serves, in pieces as they come; for what may not fit into memory."""
        import urllib3

        response = self._request("GET", path, query, None, JSON, "*/*", whole=False)
        try:
            yield from response.stream(STREAMED)
        except urllib3.exceptions.HTTPError as error:
            raise failures.from_transport(error, self.settings) from error
        finally:
            response.close()  # what is not read yet is of no use to the next request
            response.release_conn()

    def close(self) -> None:
        self._manager.clear()

    def _json(
        self, method: str, path: str, query: dict, body=None, content_type: str = JSON, accept: str = JSON
    ) -> dict:
        content = self._request(method, path, query, body, content_type, accept)
        try:
            return json.loads(content)
        except ValueError as error:
            raise Unavailable(
                f"{self.host}{path} answered something that is not JSON; is it a Kubernetes API server?",
                code="not-kubernetes",
            ) from error

    def _request(self, method: str, path: str, query: dict, body, content_type: str, accept: str, whole: bool = True):
        """The content, or the response itself, still to be read, where it is not wanted as a whole."""
        import urllib3

        url = self._prefix + path
        pairs = {key: value for key, value in query.items() if value is not None}
        if pairs:
            url += "?" + urlencode(pairs, doseq=True)
        payload = None if body is None else json.dumps(body).encode()
        renewed = False
        attempt = 0
        while True:
            attempt += 1
            headers = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": "goodput.fleet"}
            authorization = self.settings.authorization()
            if authorization:
                headers["Authorization"] = authorization
            if payload is not None:
                headers["Content-Type"] = content_type
            try:
                response = self._pool.request(
                    method,
                    url,
                    body=payload,
                    headers=headers,
                    timeout=self._timeout,
                    retries=False,
                    redirect=False,
                    preload_content=whole,
                )
            except urllib3.exceptions.HTTPError as error:
                failure, wait = failures.from_transport(error, self.settings), 0.0
                again = _lost(error) and (method != "POST" or _never_sent(error))
            else:
                if response.status < 300:
                    return response.data if whole else response
                failure = failures.from_status(method, path, response.status, response.data, self.settings)
                response.release_conn()
                if response.status == 401 and not renewed and self.settings.renew():
                    renewed, attempt = True, attempt - 1
                    continue
                again = response.status in TRANSIENT and isinstance(failure, Unavailable)
                again = again and (method != "POST" or response.status in (429, 503))
                failure.retry_after = wait = _retry_after(response.headers.get("Retry-After"))
            if not again or attempt >= self._attempts:
                failure.attempts = attempt  # after the first, an earlier one may have been carried out unnoticed
                raise failure
            self._sleep(min(MAX_WAIT, wait or 0.2 * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)))


def _pool(manager, settings):
    import urllib3

    try:
        pool = manager.connection_from_url(settings.host)
        pool.ConnectionCls = _one_write(pool.ConnectionCls)
        return pool
    except (ValueError, urllib3.exceptions.HTTPError) as error:
        raise Unavailable(
            f"{settings.host!r} is not the address of a server: {error}", code="unreachable", hint="https://HOST:PORT"
        ) from error


def _one_write(connection: type) -> type:
    """The connection, sending a request's head and body in one piece: one TLS record, and the server wakes up once."""

    class OneWrite(connection):
        _parts: list | None = None

        def request(self, *args, **options):
            self._parts = []
            try:
                super().request(*args, **options)
                parts = self._parts
            finally:
                self._parts = None
            self.send(b"".join(parts))

        def send(self, data):
            if self._parts is None:
                super().send(data)
            else:
                self._parts.append(data)

    return OneWrite


def _manager(settings, threads: int):
    import urllib3

    options: dict = {"num_pools": 2, "maxsize": threads, "block": False}
    if settings.host.startswith("https"):
        options["cert_reqs"] = ssl.CERT_REQUIRED if settings.verify else ssl.CERT_NONE
        options.update(
            ca_certs=settings.ca_cert if settings.verify else None,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
        )
        if settings.server_name:
            options.update(
                server_hostname=settings.server_name, assert_hostname=settings.server_name if settings.verify else False
            )
        if not settings.verify:
            options["assert_hostname"] = False
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    try:
        return urllib3.ProxyManager(settings.proxy, **options) if settings.proxy else urllib3.PoolManager(**options)
    except (ValueError, urllib3.exceptions.HTTPError) as error:
        raise Unavailable(
            f"the proxy {failures.bare(settings.proxy)!r} cannot be used: "
            f"{str(error).replace(settings.proxy, failures.bare(settings.proxy))}",
            code="proxy",
            hint="http://HOST:PORT",
        ) from error


def _key(item: dict) -> tuple:
    metadata = item.get("metadata") or {}
    return metadata.get("namespace"), metadata.get("name")


def _lost(error: Exception) -> bool:
    """Whether another try may go better. A certificate or a proxy's refusal stays what it is."""
    import urllib3

    return not isinstance(
        getattr(error, "reason", None) or error,
        (urllib3.exceptions.SSLError, urllib3.exceptions.ProxyError, urllib3.exceptions.LocationParseError),
    )


def _never_sent(error: Exception) -> bool:
    import urllib3

    return isinstance(error, (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError))


def _retry_after(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0
