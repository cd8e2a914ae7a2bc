# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    """Options of every module that talks to a Kubernetes API server."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, or its content as a dictionary.
      - Several paths are joined by V(:), as in the environment variable E(KUBECONFIG).
      - Falls back to E(K8S_AUTH_KUBECONFIG). If neither this nor O(host) is given, the files of E(KUBECONFIG), then
        C(~/.kube/config), then the service account of the pod that runs the module are used.
    type: raw
  context:
    description:
      - Context of the kubeconfig. The default is its current context.
      - Falls back to E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - Address of the API server. With it no default kubeconfig is read.
      - Falls back to E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token.
      - Falls back to E(K8S_AUTH_API_KEY).
    type: str
  validate_certs:
    description:
      - Whether the certificate of the API server is verified. The default is what the kubeconfig says, else V(true).
      - Falls back to E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  ca_cert:
    description:
      - File with the CA certificates that the API server is verified with.
      - Falls back to E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description:
      - File with a client certificate.
      - Falls back to E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - File with the key of the client certificate.
      - Falls back to E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description:
      - URL of an HTTP proxy. The default is what the kubeconfig says, else the environment variable E(HTTPS_PROXY).
      - Falls back to E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description:
      - Comma-separated hosts that are reached without the proxy.
      - Falls back to E(K8S_AUTH_NO_PROXY).
    type: str
requirements:
  - kubernetes >= 28 (Python package; only its credential handling is used)
"""
