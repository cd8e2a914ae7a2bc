# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From module options (or the environment AWX and kubectl users know) to a client.

module = AnsibleModule(argument_spec={**KUBERNETES_ARGS, ...}, supports_check_mode=True)
client = connect(module.params, module.no_log_values)
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ansible.module_utils.basic import env_fallback
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import failures
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import kubeconfig as configs
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import Client
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument, NotFound


def _env(name: str) -> tuple:
    return (env_fallback, [name])


# Names, aliases and environment variables are kubernetes.core's: users and AWX's credential type know them.
KUBERNETES_ARGS: dict = {
    # not no_log, or messages could not name the file; connect() has the secrets inside inline data blanked
    "kubeconfig": {"type": "raw", "no_log": False, "fallback": _env("K8S_AUTH_KUBECONFIG")},
    "context": {"type": "str", "fallback": _env("K8S_AUTH_CONTEXT")},
    "host": {"type": "str", "fallback": _env("K8S_AUTH_HOST")},
    "api_key": {"type": "str", "no_log": True, "fallback": _env("K8S_AUTH_API_KEY")},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"], "fallback": _env("K8S_AUTH_VERIFY_SSL")},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"], "fallback": _env("K8S_AUTH_SSL_CA_CERT")},
    "client_cert": {"type": "path", "aliases": ["cert_file"], "fallback": _env("K8S_AUTH_CERT_FILE")},
    "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False, "fallback": _env("K8S_AUTH_KEY_FILE")},
    "proxy": {"type": "str", "fallback": _env("K8S_AUTH_PROXY")},
    "no_proxy": {"type": "str", "fallback": _env("K8S_AUTH_NO_PROXY")},
}


def connect(params: dict, no_log_values: set | None = None, **client_options) -> Client:
    """A client for the cluster that the options name. Nothing is sent yet.

    Order: `host` (with `api_key`), then `kubeconfig`, then KUBECONFIG or ~/.kube/config, then the pod's own
    service account. The other options override what a kubeconfig says. Secrets found in an inline kubeconfig are
    added to `no_log_values`. Raises InvalidDocument, NotFound or Denied.
    """
    given = params.get("kubeconfig")
    if isinstance(given, str) and given.lstrip().startswith(("{", "apiVersion:")):
        from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree

        given = yamltree.load_text(given, "kubeconfig (inline)").data
    if isinstance(given, dict) and no_log_values is not None:
        no_log_values.update(configs.secrets_of(given))
    if no_log_values is not None:
        addresses = (str(params.get(option) or "") for option in ("host", "proxy"))
        no_log_values.update(secret for each in addresses if (secret := failures.password(each)))
    try:
        settings = _settings(given or None, params)
    except ImportError as error:
        raise FleetError(
            f"the Python package {error.name} is not installed",
            code="missing-library",
            hint="pip install kubernetes, for the Python that runs the module",
        ) from error
    return Client(_override(settings, params), **client_options)


def _settings(given: str | dict | None, params: dict) -> configs.Settings:
    context = params.get("context") or None
    if given is not None and not isinstance(given, (str, dict)):
        raise InvalidDocument(f"kubeconfig is a {type(given).__name__}, not a path or a map", path="kubeconfig")
    if given:
        return configs.from_kubeconfig(given, context)
    if params.get("host") and not context:
        return configs.Settings(params["host"], "the option host or K8S_AUTH_HOST")
    paths = configs.default_paths()
    if paths:
        return configs.from_kubeconfig(os.pathsep.join(paths), context)
    settings = configs.from_service_account()
    if settings is None or context:
        raise NotFound(
            "no cluster is named: there is no kubeconfig, no host and no pod's service account",
            code="no-cluster",
            hint="set kubeconfig or host, K8S_AUTH_KUBECONFIG or K8S_AUTH_HOST, KUBECONFIG, or write ~/.kube/config",
        )
    return settings


def _override(settings: configs.Settings, params: dict) -> configs.Settings:
    if params.get("host"):
        host = params["host"] if "://" in params["host"] else f"https://{params['host']}"
        settings.host = host.rstrip("/")
    if not _is_address(settings.host):
        raise InvalidDocument(
            f"{settings.host!r} is not the address of an API server", path="host", hint="https://HOST:PORT"
        )
    if failures.bare(settings.host) != settings.host:
        raise InvalidDocument(
            f"the address of {failures.bare(settings.host)} holds a user or password, which no API server takes",
            path="host",
            hint="api_key, or client_cert and client_key",
        )
    for option, attribute in (
        ("api_key", "static_token"),
        ("ca_cert", "ca_cert"),
        ("client_cert", "cert_file"),
        ("client_key", "key_file"),
        ("proxy", "proxy"),
        ("no_proxy", "no_proxy"),
    ):
        if params.get(option):
            setattr(settings, attribute, params[option])
    if params.get("validate_certs") is not None:
        settings.verify = params["validate_certs"]
    for option, path in (
        ("ca_cert", settings.ca_cert),
        ("client_cert", settings.cert_file),
        ("client_key", settings.key_file),
    ):
        if path and not os.path.isfile(path):
            raise NotFound("no such file", file=path, path=option)
    settings.proxy = _proxy(settings)
    return settings


def _is_address(host: str) -> bool:
    try:
        return bool(urlsplit(host).hostname) and urlsplit(host).scheme in ("http", "https")
    except ValueError:
        return False


def _proxy(settings: configs.Settings) -> str | None:
    """The proxy to use: the one given, else the environment's, neither for an address that needs none."""
    from urllib.request import getproxies, proxy_bypass_environment

    where = urlsplit(settings.host)
    environment = getproxies()
    excluded = {"no": settings.no_proxy or environment.get("no", "")}
    if settings.proxy is None:
        settings.proxy = environment.get(where.scheme)
        if settings.proxy and where.hostname in ("localhost", "127.0.0.1", "::1"):
            return None
    return None if settings.proxy and proxy_bypass_environment(where.netloc, excluded) else settings.proxy
