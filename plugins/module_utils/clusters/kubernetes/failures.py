# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server, or the way to it, answered: as one error in words for people."""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from urllib.parse import urlsplit

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    NotFound,
    Unavailable,
)

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
PATH = re.compile(
    r"^/(?:api/(?P<core>v\w+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>.+))?$"
)


class Refused(FleetError):
    """The API server understood the request and says no (400, 422, or a disruption budget's 429)."""

    code = "refused"


def describe(method: str, path: str) -> str:
    """'list deployments.apps in namespace x', as RBAC would name the right that the request needs."""
    match = PATH.match(path)
    if not match:
        return f"{method.lower()} {path}"
    resource = match["resource"] + (f"/{match['sub']}" if match["sub"] else "")
    if match["group"]:
        resource += f".{match['group']}"
    verb = VERBS.get(method) or ("get" if match["name"] else "list")
    scope = f"in namespace {match['namespace']}" if match["namespace"] else "at cluster scope"
    return f"{verb} {resource}{' ' + match['name'] if match['name'] else ''} {scope}"


def from_status(method: str, path: str, status: int, body: bytes, settings) -> FleetError:
    """The error for an HTTP status. It carries `status` (the number) and `reason` (Kubernetes' word for it)."""
    answer = _status_object(body)
    said = " ".join(str(answer.get("message") or body[:300].decode(errors="replace")).split())
    what = describe(method, path)
    if status == 401:
        error = Denied(
            f"{settings.host} does not accept the credential (401 Unauthorized): {_token_state(settings)}",
            code="unauthorized",
            hint=f"log in again or renew the token; it came from {settings.origin}",
        )
    elif status == 403:
        user = re.search(r'User "([^"]*)"', said)
        error = Denied(
            f"forbidden: cannot {what}", code="forbidden", hint=(f"user {user[1]} needs that right" if user else said)
        )
    elif status == 404:
        error = _not_found(what, path, answer, settings)
    elif status == 409:
        error = Conflict(f"cannot {what}: {said}", code="conflict")
    elif status in (400, 405, 406, 413, 415, 422, 429) and status != 429:
        error = Refused(f"cannot {what}: {said}", code="refused", hint=_scheme_hint(said))
    elif status == 429 and is_disruption_budget(answer):
        error = Refused(f"cannot {what}: {said} {_causes(answer)}".rstrip(), code="disruption-budget")
    else:
        error = Unavailable(f"{settings.host} answered {status} to {what}: {said}", code="server-error")
    error.status, error.reason = status, str(answer.get("reason") or "")
    return error


def _not_found(what: str, path: str, answer: dict, settings) -> NotFound:
    match = PATH.match(path)
    # an object that is not there is named in the answer's details; a kind that is not there is not
    if (answer.get("details") or {}).get("name") or not match:
        return NotFound(f"cannot {what}: it is not there", code="object-missing")
    group = f"{match['group']}/{match['version']}" if match["group"] else match["core"]
    return NotFound(
        f"{settings.host} does not serve {match['resource']} of {group}",
        code="api-missing",
        hint="the CRD or API server extension is not installed",
    )


def is_disruption_budget(answer: dict) -> bool:
    """Whether a 429 is an eviction that a PodDisruptionBudget forbids, which waiting a second does not cure."""
    causes = (answer.get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)


def _causes(answer: dict) -> str:
    """Which budget it is, and how many pods it needs."""
    return " ".join(cause.get("message") or "" for cause in answer["details"]["causes"]).strip()


def _status_object(body: bytes) -> dict:
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _scheme_hint(said: str) -> str:
    return "the host needs https://" if "HTTP request to an HTTPS server" in said else ""


def _token_state(settings) -> str:
    """Why a credential may be refused; a JWT tells its own end."""
    token = (settings.authorization() or "").partition(" ")[2]
    if not token:
        return "no token was sent" if not settings.cert_file else "the client certificate is not valid here"
    parts = token.split(".")
    if len(parts) == 3:
        try:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
            end = int(claims["exp"])
        except (ValueError, KeyError, TypeError, binascii.Error):
            end = None
        if end is not None and end < time.time():
            return time.strftime("the token expired at %Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    return "the token is expired or not valid here"


def bare(url: str) -> str:
    """An address without the user and password that it may hold."""
    return re.sub(r"^(\w+://)?[^/]*@", r"\1", url)


def password(url: str) -> str:
    """The password that an address holds, as it is written there; "" without one."""
    match = re.match(r"(?:\w+://)?[^/@:]*:([^/@]*)@", url)
    return match[1] if match else ""


def from_transport(error: Exception, settings) -> FleetError:
    """The error for a request that got no answer."""
    import urllib3

    place = urlsplit(settings.host).netloc or settings.host
    inner = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason else error
    text = " ".join(str(getattr(inner, "original_error", inner)).split())
    text = re.sub(r"^<[^>]*>:? ?|\w+\(host='[^']*', port=\d+\): ?", "", text)
    from_host = f"came from {settings.origin}"
    if isinstance(inner, urllib3.exceptions.ProxyError) or isinstance(error, urllib3.exceptions.ProxyError):
        return Unavailable(f"the proxy {bare(settings.proxy)} does not let through to {place}: {text}", code="proxy")
    if isinstance(inner, urllib3.exceptions.SSLError):
        reason = re.sub(r"\s*\(_ssl\.c:\d+\)|^\[[^]]*\]\s*", "", text)
        hint = (
            "check host and port"
            if "WRONG_VERSION" in text
            else ("give the cluster's CA (ca_cert), and a host name that its certificate carries")
        )
        return Unavailable(f"TLS with {place} fails: {reason}", code="tls", hint=hint)
    if isinstance(inner, urllib3.exceptions.NameResolutionError):
        return Unavailable(
            f"cannot reach the API server {place}: the name cannot be resolved", code="unreachable", hint=from_host
        )
    # a refused connection counts as a connect timeout, too, in urllib3's family tree
    late = (urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.ReadTimeoutError)
    if isinstance(inner, late) and not isinstance(inner, urllib3.exceptions.NewConnectionError):
        kind = "no connection" if isinstance(inner, urllib3.exceptions.ConnectTimeoutError) else "no answer"
        return Unavailable(f"cannot reach the API server {place}: {kind} in time", code="timeout", hint=from_host)
    reason = re.sub(r"^.*\[Errno -?\d+\] ?", "", text).strip("()'\" ") or text
    return Unavailable(f"cannot reach the API server {place}: {reason}", code="unreachable", hint=from_host)
