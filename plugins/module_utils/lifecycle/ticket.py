# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ticket for a node that repair gives up on: what is sent, how it is signed, and what an answer means.

    body = encode(ticket)                            # bytes, the same for the same ticket
    headers(body, key="rr-1/ticket", secret=b"...", now=1764460800)
    meaning(503, {"retry-after": "7"}, ...)          # Answer: done, again (after so many seconds) or refused
    hand_over(post, body, ...)                       # sends until it is taken, refused, or time is up

The receiver checks that HMAC-SHA256 over "<timestamp>.<body>" is the signature, that the timestamp is a recent one, and
makes one ticket only for one Idempotency-Key.
"""

from __future__ import annotations

import email.utils
import hashlib
import hmac
import json
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import canonical
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    FleetError,
    InvalidDocument,
    Unavailable,
)

SIGNATURE, TIMESTAMP, KEY = "X-Goodput-Signature", "X-Goodput-Timestamp", "Idempotency-Key"
LIMIT = 1 << 20  # bytes of a body
SHOWN = 300  # characters of an answer in a message
PAUSE_LIMIT = 60.0  # seconds
REDIRECTS = 3
REFERENCES = ("reference", "key", "number", "id")  # in an answer, or in its `result`

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_AGAIN = frozenset({408, 425, 429})


@dataclass(frozen=True)
class Response:
    """An answer. `headers` with names in lower case; `body` is what was read of it, as text."""

    status: int
    headers: Mapping[str, str]
    body: str = ""


class NoAnswer(Exception):
    """Nothing came back: refused, reset, timed out. The ticket may have arrived all the same."""


@dataclass(frozen=True)
class Outcome:
    """A ticket that was taken. `reference` is the receiver's name for it, empty where it gave none."""

    status: int
    reference: str
    attempts: int


def encode(ticket: Mapping) -> bytes:
    """Canonical JSON. Raises InvalidDocument for a ticket that names no node, or is too large."""
    node = ticket.get("node")
    name = node.get("name") if isinstance(node, Mapping) else node
    if not isinstance(name, str) or not name.strip():
        hint = "what node_repair returns in tickets has the node's name there"
        raise InvalidDocument("a ticket that names no node helps nobody", path="ticket.node", hint=hint)
    try:
        body = canonical(ticket)
    except (TypeError, ValueError) as error:
        raise InvalidDocument(f"is not JSON: {error}", path="ticket") from error
    if len(body) > LIMIT:
        hint = "leave logs where they are, and name the evidence by its path or digest"
        raise InvalidDocument(f"has {len(body)} bytes, more than {LIMIT}", path="ticket", hint=hint)
    return body


def key_of(ticket: Mapping, given: str | None) -> str:
    """The idempotency key: `given`, or the ticket's own. Raises InvalidDocument."""
    key = given or ticket.get("key") or ""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        hint = "1 to 255 printable ASCII characters without blanks, the same for the same fault of the same node"
        raise InvalidDocument(f"{key!r} is no idempotency key" if key else "is missing", path="key", hint=hint)
    return key


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    """As `sha256=<hex>`, over the timestamp in seconds since 1970, a dot, and the body."""
    return "sha256=" + hmac.new(secret, b"%d." % timestamp + body, hashlib.sha256).hexdigest()


def headers(body: bytes, *, key: str, secret: bytes | None, now: int) -> dict[str, str]:
    made = {"Content-Type": "application/json", KEY: key, TIMESTAMP: str(now)}
    return {**made, SIGNATURE: signature(secret, now, body)} if secret else made


def check_url(url: str) -> str:
    """Scheme, host and port, which is what may be shown: paths of webhooks are often secrets. Raises InvalidDocument
    for what is no URL of a web server."""
    hint = "such as https://tickets.example.com/hook"
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidDocument(f"is no URL: {error}", path="url", hint=hint) from error
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidDocument("is no URL of a web server", path="url", hint=hint)
    if parts.username or parts.password:
        raise InvalidDocument("holds a password", path="url", hint="use url_username and url_password")
    if re.search(r"[\x00-\x20\x7f]", url):
        raise InvalidDocument("holds blanks or control characters", path="url", hint="percent-encode them")
    literal = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{literal}{f':{port}' if port else ''}"


def check_headers(given: Mapping) -> dict[str, str]:
    """Headers of the site's own. Raises InvalidDocument for what is none, and for those that are made here."""
    made = {name.lower() for name in (SIGNATURE, TIMESTAMP, KEY, "Content-Type", "Content-Length", "Host")}
    for name, value in given.items():
        if not _TOKEN.fullmatch(str(name)) or name.lower() in made:
            hint = "such as Authorization; signature, timestamp, key and content type are made by this module"
            raise InvalidDocument(f"{shown(str(name), 64)!r} cannot be given", path="headers", hint=hint)
        if not isinstance(value, str | int) or not str(value).isprintable() or not str(value).isascii():
            hint = "one line of ASCII text"
            raise InvalidDocument("has a value that is no header's", path=f"headers.{name}", hint=hint)
    return {str(name): str(value) for name, value in given.items()}


def meaning(response: Response, accepted: Iterable[int], pause: float, now: float) -> float | None:
    """None: the ticket is taken. A number: try again after so many seconds. Raises Denied or FleetError: refused.

    `pause` is what would be waited without Retry-After, `now` the time in seconds since 1970.
    """
    status = response.status
    if status in accepted:
        return None
    if status in _AGAIN or status >= 500:
        return max(pause, _retry_after(response.headers.get("retry-after", ""), now))
    told = f": {shown(response.body)}" if response.body.strip() else ""
    if status in (401, 403):
        hint = "secret, url_username, url_password or headers are not what the receiver expects"
        raise Denied(f"the receiver answered {status}{told}", hint=hint)
    if 300 <= status < 400:
        where = _host_of(response.headers.get("location", ""))
        hint = "give the URL that it leads to; a ticket with its signature is not carried to another host"
        raise FleetError(f"the receiver answered {status}, a redirect{f' to {where}' if where else ''}", hint=hint)
    hint = "if this answer means that it has the ticket, name the number in status_code"
    raise FleetError(f"the receiver refused the ticket with {status}{told}", hint=hint)


def redirected(url: str, response: Response) -> str | None:
    """Where to send the same request instead: 307 and 308 within the same scheme, host and port; else None."""
    if response.status not in (307, 308) or not response.headers.get("location"):
        return None
    there = urllib.parse.urljoin(url, response.headers["location"])
    return there if _origin(there) == _origin(url) else None


def hand_over(
    post: Callable[[str, bytes, Mapping[str, str], float], Response],
    url: str,
    body: bytes,
    *,
    key: str,
    secret: bytes | None,
    accepted: Iterable[int],
    more: Mapping[str, str],
    retries: int,
    timeout: float,
    give_up_after: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Outcome:
    """Send until the ticket is taken. Every attempt has the same body and key, and a timestamp of its own.

    Times are in seconds. Raises Unavailable when `retries` or `give_up_after` are used up, Denied or FleetError when
    the receiver refuses.
    """
    began, accepted, last = clock(), frozenset(accepted), ""
    for attempt in range(1, retries + 2):
        pause = min(2.0 ** (attempt - 1), PAUSE_LIMIT / 2)
        left = give_up_after - (clock() - began)
        try:
            response = _post(post, url, body, key, secret, more, max(0.1, min(timeout, left)), clock)
        except NoAnswer as error:
            last = str(error)
        else:
            again = meaning(response, accepted, pause, clock())
            if again is None:
                return Outcome(response.status, reference_of(response), attempt)
            pause, last = again, f"it answered {response.status}"
        if attempt > retries or clock() - began + pause > give_up_after:
            break
        sleep(pause)
    hint = "the same ticket can be sent again with the same key"
    times = "once" if attempt == 1 else f"{attempt} times"
    raise Unavailable(f"the ticket was not taken, tried {times}; last, {last}", hint=hint)


def _post(post, url, body, key, secret, more, timeout, clock) -> Response:
    for _hop in range(REDIRECTS):
        response = post(url, body, {**more, **headers(body, key=key, secret=secret, now=int(clock()))}, timeout)
        there = redirected(url, response)
        if there is None:
            return response
        url = there
    return response


def reference_of(response: Response) -> str:
    """What the receiver calls the ticket, from JSON such as {"key": "OPS-12"} or {"result": {"number": "INC7"}}."""
    try:
        told = json.loads(response.body)
    except (ValueError, RecursionError):
        return ""
    for place in (told, told.get("result") if isinstance(told, dict) else None):
        for name in REFERENCES if isinstance(place, dict) else ():
            value = place.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                return shown(str(value), 128)
    return ""


def shown(text: str, limit: int = SHOWN) -> str:
    """One line of it, without control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _retry_after(text: str, now: float) -> float:
    """Seconds that a Retry-After header asks for; 0 where there is none or it cannot be read."""
    text = text.strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _origin(url: str) -> tuple:
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)


def _host_of(url: str) -> str:
    return shown(urllib.parse.urlsplit(url).netloc.rpartition("@")[2], 128)
