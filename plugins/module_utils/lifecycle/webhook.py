# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One POST, with the proxies and certificates that Ansible's own URL modules know."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
from collections.abc import Callable, Mapping

from ansible.module_utils.urls import SSLValidationError, open_url
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.ticket import NoAnswer, Response, shown
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Unavailable

READ = 65536  # bytes of an answer


def poster(options: Mapping) -> Callable[[str, bytes, Mapping[str, str], float], Response]:
    """post(url, body, headers, timeout) -> Response, with options of `open_url` such as ca_path and url_username.

    It raises NoAnswer where trying again may help, and Unavailable where it cannot.
    """

    def post(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> Response:
        try:
            with open_url(
                url,
                method="POST",
                data=body,
                headers=dict(headers),
                timeout=timeout,
                follow_redirects="none",
                **options,
            ) as answer:
                return _response(answer.status, answer)
        except urllib.error.HTTPError as error:
            with error:
                return _response(error.code, error)
        except (SSLValidationError, ssl.SSLError, urllib.error.URLError, OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(error, SSLValidationError) or isinstance(reason, ssl.SSLCertVerificationError):
                hint = "ca_path names the bundle of your authority"
                raise Unavailable(f"the receiver's certificate: {shown(str(reason))}", hint=hint) from error
            raise NoAnswer(_words(reason)) from error
        except ValueError as error:
            raise InvalidDocument(f"cannot be asked: {shown(str(error))}", path="url") from error

    return post


def _response(status: int, answer) -> Response:
    try:
        body = answer.read(READ).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException, ValueError):
        body = ""  # the status says it all
    return Response(status, {name.lower(): value for name, value in answer.headers.items()}, body)


def _words(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "it did not answer in time"
    if isinstance(reason, ConnectionRefusedError):
        return "the connection was refused"
    return f"{type(reason).__name__}: {shown(str(reason))}" if isinstance(reason, Exception) else shown(str(reason))
