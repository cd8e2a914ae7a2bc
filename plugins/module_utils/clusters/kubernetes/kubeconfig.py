# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a kubeconfig, or the pod's own service account, to what a client needs.

The kubernetes package is used for what it is good at: exec plugins, token files, inline certificates, in-cluster
tokens that rotate. What is wrong with a kubeconfig is found before it gets there, so that the message names the
file, the line and the context that was meant.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    InvalidDocument,
    NotFound,
    Problem,
    nearest,
)

HEADER_SECONDS = 5  # between two questions whether the token is still good, which cost as much as a request
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PATH_FIELDS = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key", "tokenFile")}
PLAIN_CLUSTER = {
    "server",
    "certificate-authority",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "proxy-url",
    "extensions",
}
PLAIN_USER = {"token", "client-certificate", "client-key"}
SECRET_FIELDS = ("token", "password", "client-key-data", "id-token", "refresh-token", "access-token", "client-secret")


@dataclass
class Settings:
    """How to reach one API server. `origin` says in words where this came from, for messages."""

    host: str
    origin: str
    ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    proxy: str | None = None
    no_proxy: str | None = None
    context: str = ""
    static_token: str | None = None
    source: object = None  # kubernetes.client.Configuration, refreshes its token by itself
    reload: Callable[[], object] | None = None  # loads it anew, when the server says 401 before the token's own end
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _header: tuple[float, str | None] = field(default=(0.0, None), repr=False)  # good until, the header

    def authorization(self) -> str | None:
        """The Authorization header for the next request."""
        if self.static_token:
            return f"Bearer {self.static_token}"
        if self.source is None:
            return None
        until, header = self._header
        if time.monotonic() < until:
            return header
        with self._lock:  # the refresh may start a program: once is enough
            if self.source.refresh_api_key_hook:
                self.source.refresh_api_key_hook(self.source)
            header = _token_of(self.source)
            self._header = time.monotonic() + HEADER_SECONDS, header
            return header

    def renew(self) -> bool:
        """Fetches the credential again. True when that gave another one."""
        if self.static_token or self.reload is None:
            return False
        with self._lock:
            before = _token_of(self.source)
            self.source = self.reload()
            self._header = 0.0, None
            return _token_of(self.source) not in (None, before)


def _token_of(configuration) -> str | None:
    # the key's name changed between versions of the package
    return configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization")


def from_service_account() -> Settings | None:
    """The pod's own account, None outside a pod."""
    if not os.environ.get("KUBERNETES_SERVICE_HOST") or not os.path.isfile(f"{SERVICE_ACCOUNT}/token"):
        return None
    from kubernetes import config
    from kubernetes.client import Configuration

    def load():
        configuration = Configuration()
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException as error:
            raise InvalidDocument(f"the pod's service account cannot be used: {error}", file=SERVICE_ACCOUNT) from error
        return configuration

    loaded = load()
    return Settings(loaded.host, "the pod's service account", ca_cert=loaded.ssl_ca_cert, source=loaded, reload=load)


def default_paths() -> list[str]:
    """Where kubectl would look: KUBECONFIG's files, else ~/.kube/config; only those that exist."""
    named = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = [os.path.expanduser(path) for path in named or ["~/.kube/config"]]
    present = [path for path in paths if os.path.exists(path)]
    if named and not present:
        raise NotFound("no such file", file=paths[0], hint="KUBECONFIG names it")
    return present


def from_kubeconfig(kubeconfig: str | dict, context: str | None = None) -> Settings:
    """Settings of one context (default: the current one) of a kubeconfig: path, paths joined by ':', or its data."""
    if isinstance(kubeconfig, dict):
        documents = [yamltree.Document(kubeconfig, {(): None}, "kubeconfig (inline)")]
    else:
        paths = [os.path.expanduser(path) for path in str(kubeconfig).split(os.pathsep) if path]
        documents = [yamltree.load_file(path) for path in paths]
    merged, places = _merge(documents)
    name, cluster, user = _select(merged, places, context, documents)
    origin = f"context {name!r} of {documents[0].source}"
    return _plain(name, cluster, user, origin) or _load(merged, name, cluster, user, origin)


def _merge(documents: list) -> tuple[dict, dict]:
    """One kubeconfig of several, the first definition of a name wins; and where each entry stands."""
    merged: dict = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}
    places: dict = {}
    for document in documents:
        data = document.data
        if not isinstance(data, dict) or not any(key in data for key in ("clusters", "contexts", "users")):
            raise InvalidDocument(
                document.problem((), "not-a-kubeconfig", "is not a kubeconfig", "it needs clusters, contexts and users")
            )
        if data.get("current-context"):
            merged.setdefault("current-context", data["current-context"])
        base = os.path.dirname(os.path.abspath(document.source)) if os.path.exists(document.source) else os.getcwd()
        for section in ("clusters", "contexts", "users"):
            known = {entry["name"] for entry in merged[section]}
            for index, entry in enumerate(_entries(document, section)):
                if entry["name"] in known:
                    continue
                known.add(entry["name"])
                merged[section].append({**entry, section[:-1]: _absolute(entry[section[:-1]], section, base)})
                places[section, entry["name"]] = (document, (section, index))
    return merged, places


def _entries(document, section: str) -> list[dict]:
    entries = document.data.get(section) or []
    if not isinstance(entries, list):
        raise InvalidDocument(document.problem((section,), "wrong-type", f"{section} is not a list"))
    problems = []
    for index, entry in enumerate(entries):
        inner = section[:-1]
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            problems.append(document.problem((section, index), "missing-key", "has no name"))
        elif section == "users" and entry.get(inner) is None:
            entry[inner] = {}  # kubectl config set-credentials writes this
        elif not isinstance(entry.get(inner), dict):
            problems.append(document.problem((section, index), "missing-key", f"has no map {inner!r}"))
    if problems:
        raise InvalidDocument(problems)
    return entries


def _absolute(entry: dict, section: str, base: str) -> dict:
    """File names in a kubeconfig are relative to that file."""
    changed = {key: os.path.join(base, entry[key]) for key in PATH_FIELDS.get(section, ()) if entry.get(key)}
    run = entry.get("exec")
    if isinstance(run, dict) and "/" in str(run.get("command", "")):
        changed["exec"] = {**run, "command": os.path.join(base, run["command"])}
    return {**entry, **changed} if changed else entry


def _select(merged: dict, places: dict, context: str | None, documents: list) -> tuple[str, dict, dict]:
    contexts = {entry["name"]: entry["context"] for entry in merged["contexts"]}
    source = documents[0].source
    name = context or merged.get("current-context")
    if not name:
        raise NotFound(
            Problem(
                "no-context",
                "no context was asked for and the kubeconfig has no current-context",
                source,
                hint=nearest("", contexts),
            )
        )
    if name not in contexts:
        what = "context" if context else "current-context"
        line = None if context else documents[0].line(("current-context",))
        raise NotFound(
            Problem("unknown-context", f"there is no {what} {name!r}", source, line, hint=nearest(name, contexts))
        )
    document, path = places["contexts", name]
    found = []
    for kind in ("cluster", "user"):
        wanted = contexts[name].get(kind)
        if kind == "user" and not wanted:
            found.append({})
            continue
        named = {entry["name"]: entry[kind] for entry in merged[f"{kind}s"]}
        if wanted not in named:
            raise NotFound(
                document.problem(
                    (*path, "context", kind),
                    f"unknown-{kind}",
                    f"context {name!r} names the {kind} {wanted!r}, which is not there",
                    nearest(wanted, named),
                )
            )
        found.append(named[wanted])
    if not found[0].get("server"):
        document, path = places["clusters", contexts[name]["cluster"]]
        raise InvalidDocument(
            document.problem(
                (*path, "cluster", "server"), "missing-key", "the cluster has no server", "server: https://HOST:PORT"
            )
        )
    for key, entry in (
        *((key, found[0]) for key in PATH_FIELDS["clusters"]),
        *((key, found[1]) for key in PATH_FIELDS["users"]),
    ):
        if entry.get(key) and not entry.get(f"{key}-data") and not os.path.isfile(entry[key]):
            raise NotFound(f"the kubeconfig's {key} is not there: {entry[key]}", file=source)
    return name, found[0], found[1]


class _Messages(logging.Handler):
    """The kubernetes package tells an exec plugin's failure only to the log."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def _plain(name: str, cluster: dict, user: dict, origin: str) -> Settings | None:
    """Settings out of a token and files alone, None when there is more to it. Importing the kubernetes package costs a
    third of a second, which is what a whole run of a module takes."""
    kinds = {"insecure-skip-tls-verify": bool, "extensions": list}
    if not set(cluster) <= PLAIN_CLUSTER or not set(user) <= PLAIN_USER:
        return None
    if not all(isinstance(value, kinds.get(key, str)) for key, value in (*cluster.items(), *user.items())):
        return None
    return Settings(
        host=cluster["server"],
        origin=origin,
        ca_cert=cluster.get("certificate-authority"),
        cert_file=user.get("client-certificate"),
        key_file=user.get("client-key"),
        verify=not cluster.get("insecure-skip-tls-verify", False),
        server_name=cluster.get("tls-server-name"),
        proxy=cluster.get("proxy-url"),
        context=name,
        static_token=user.get("token", "").strip() or None,
    )


def _load(merged: dict, name: str, cluster: dict, user: dict, origin: str) -> Settings:
    from kubernetes import config
    from kubernetes.client import Configuration

    def load():
        configuration, messages = Configuration(), _Messages()
        logging.getLogger().addHandler(messages)
        try:
            config.load_kube_config_from_dict(
                merged, context=name, client_configuration=configuration, persist_config=False
            )
        except (config.ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidDocument(f"{origin} cannot be used: {error}", code="bad-kubeconfig") from error
        finally:
            logging.getLogger().removeHandler(messages)
        if user.get("exec") and not _token_of(configuration) and not configuration.cert_file:
            why = "; ".join(messages.texts) or "it gave neither a token nor a certificate"
            raise Denied(
                f"{origin}: the credential plugin {user['exec'].get('command')!r} failed: {why}",
                code="exec-plugin",
                hint="run it by hand, or log in again",
            )
        return configuration

    loaded = load()
    return Settings(
        host=loaded.host,
        origin=origin,
        ca_cert=loaded.ssl_ca_cert,
        cert_file=loaded.cert_file,
        key_file=loaded.key_file,
        verify=loaded.verify_ssl,
        server_name=loaded.tls_server_name,
        proxy=cluster.get("proxy-url"),
        context=name,
        source=loaded,
        reload=load,
    )


def secrets_of(kubeconfig: object) -> set[str]:
    """Every secret text inside kubeconfig data, for Ansible to blank in results and logs."""
    if isinstance(kubeconfig, dict):
        found = {
            value for key, value in kubeconfig.items() if key in SECRET_FIELDS and isinstance(value, str) and value
        }
        return found.union(*(secrets_of(value) for value in kubeconfig.values()))
    if isinstance(kubeconfig, list):
        return set().union(*(secrets_of(value) for value in kubeconfig))
    return set()
