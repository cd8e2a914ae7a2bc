# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository's address and the credentials for it.

Credentials go to git only through its environment: never into an argument, a URL or a file. A token is offered by a
credential helper that is bound to the repository's own host, so a redirect to another host does not carry it along.
"""

from __future__ import annotations

import base64
import re
import shlex
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

SCHEMES = ("file", "git", "http", "https", "ssh")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# the shell expands the variables, so that no process has the token among its arguments
HELPER = (
    '!f() { test "$1" != get || printf "username=%s\\npassword=%s\\n" '
    '"$GOODPUT_GIT_USERNAME" "$GOODPUT_GIT_PASSWORD"; }; f'
)
_USERINFO = re.compile(r"(?<=://)[^/\s'\"@]*@")


@dataclass(frozen=True)
class Access:
    """How git reaches the remote: its address without credentials, settings, environment, and what must stay secret."""

    url: str
    config: tuple[tuple[str, str], ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def redact(self, text: str) -> str:
        """The text without credentials."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "********")
        return _USERINFO.sub("", text)


def access(
    repo: str,
    token: str = "",
    username: str = "",
    ssh_command: str = "ssh",
    ssh_key_file: str = "",
    ssh_known_hosts_file: str = "",
    ssh_accept_new_host_key: bool = False,
    ca_file: str = "",
) -> Access:
    """The access that the options describe. Raises InvalidDocument for an address that git should not be given."""
    scheme, fault = _scheme(repo)
    if fault:
        raise InvalidDocument(fault)
    config, env, warnings, secrets = [], {}, [], set()
    url = repo
    if scheme in ("http", "https"):
        parts = urlsplit(repo)
        host = parts.netloc.rpartition("@")[2]
        url = parts._replace(netloc=host).geturl()
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        secrets = {part for part in (password, token) if part} | ({user} if len(user) >= 16 else set())
        username = username or user
        scope = f"credential.{scheme}://{host}"
        if token or password:
            env = {"GOODPUT_GIT_USERNAME": username or "x-access-token", "GOODPUT_GIT_PASSWORD": token or password}
            # the empty value drops the helpers of the user's own configuration: they would store what they see
            config += [("credential.helper", ""), (f"{scope}.helper", ""), (f"{scope}.helper", HELPER)]
            if scheme == "http" and parts.hostname not in LOOPBACK:
                warnings.append(f"the token travels unencrypted to {host}: use https")
        elif username:
            config.append((f"{scope}.username", username))
        if ca_file:
            config.append(("http.sslCAInfo", ca_file))
    elif token:
        warnings.append(f"the token is not used with {_USERINFO.sub('', repo)}: it is for http:// and https://")
    if scheme == "ssh":
        command = [ssh_command or "ssh", "-o BatchMode=yes", "-o ConnectTimeout=20"]
        if ssh_key_file:
            command += ["-i", shlex.quote(ssh_key_file), "-o IdentitiesOnly=yes"]
        if ssh_known_hosts_file:
            command += ["-o", shlex.quote("UserKnownHostsFile=" + _ssh_quote(ssh_known_hosts_file))]
        command.append(f"-o StrictHostKeyChecking={'accept-new' if ssh_accept_new_host_key else 'yes'}")
        env["GIT_SSH_COMMAND"] = " ".join(command)
        env["GIT_SSH_VARIANT"] = "ssh"
    return Access(url, tuple(config), env, frozenset(_forms(secrets, username)), tuple(warnings))


def _scheme(repo: str) -> tuple[str, Problem | None]:
    """Scheme of the address, or why it is none."""
    shown = _USERINFO.sub("", repo)
    hint = "https://host/path.git, ssh://git@host/path.git, git@host:path.git, file:///path or /path"
    forbidden = r"[\x00-\x1f\x7f]" if repo.startswith(("/", "file:")) else r"[\x00-\x20\x7f]"
    if not repo or repo.startswith("-") or re.search(forbidden, repo):
        return "", Problem("bad-value", f"{shown!r} is not the address of a repository", path="repo", hint=hint)
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", repo)
    if match:
        scheme = match[1].lower()
        if scheme not in SCHEMES:
            return "", Problem("bad-value", f"{scheme}:// is not supported", path="repo", hint=nearest(scheme, SCHEMES))
        try:
            parts = urlsplit(repo)
            usable = scheme == "file" or (parts.hostname and (parts.port or True))
        except ValueError:
            usable = False
        return scheme, None if usable else Problem("bad-value", f"{shown!r} names no host", path="repo", hint=hint)
    if repo.startswith("/"):
        return "file", None
    if re.match(r"[^/:]+:(?!:)", repo):
        return "ssh", None
    return "", Problem("bad-value", f"{shown!r} is not the address of a repository", path="repo", hint=hint)


def _ssh_quote(path: str) -> str:
    # ssh splits the option's value at blanks by itself
    return f'"{path}"' if " " in path else path


def _forms(secrets: set[str], username: str) -> set[str]:
    """The secrets as they may turn up in messages: plain, percent-encoded, in a basic authorization header."""
    forms = set(secrets)
    for secret in secrets:
        forms |= {quote(secret, safe=""), quote(secret)}
        for user in (username or "x-access-token", "x-access-token"):
            forms.add(base64.b64encode(f"{user}:{secret}".encode()).decode())
    return forms
