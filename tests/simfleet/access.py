"""Kubeconfigs for tests of access rights: service accounts with given rules, tokens that are wrong or too old."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.simfleet.api import Api, Kubeconfig

RBAC = "rbac.authorization.k8s.io"
Rules = Sequence[dict[str, Any]]


class Access:
    def __init__(self, api: Api, admin_kubeconfig: Path, folder: Path):
        self._api, self._admin, self._folder = api, admin_kubeconfig, folder
        folder.mkdir(exist_ok=True)

    def service_account(
        self, name: str, namespace: str = "default", rules: Rules = (), cluster_rules: Rules = (), seconds: int = 3600
    ) -> Path:
        """Make (or change) a service account that may do this and nothing else; its kubeconfig.

        `rules` hold in its namespace, `cluster_rules` everywhere:
        [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}].
        """
        self._api.apply(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        )
        self._grant("Role", f"/apis/{RBAC}/v1/namespaces/{namespace}/", name, namespace, rules)
        # Cluster roles have no namespace; two accounts of one name in two namespaces are two.
        self._grant("ClusterRole", f"/apis/{RBAC}/v1/", f"{namespace}-{name}", namespace, cluster_rules, subject=name)
        answer = self._api.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}},
        )
        return self.with_token(f"{namespace}-{name}", answer["status"]["token"])

    def _grant(self, kind: str, base: str, name: str, namespace: str, rules: Rules, subject: str | None = None) -> None:
        api_version = f"{RBAC}/v1"
        role = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "rules": list(rules)}
        binding = {
            "apiVersion": api_version,
            "kind": f"{kind}Binding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": subject or name, "namespace": namespace}],
        }
        self._api.apply(f"{base}{kind.lower()}s/{name}", role)
        self._api.apply(f"{base}{kind.lower()}bindings/{name}", binding)

    def wrong_token(self) -> Path:
        return self.with_token("wrong-token", "not-a-token-of-this-cluster")

    def expired_token(self) -> Path:
        """A token that this cluster did sign, and that was valid until an hour ago."""
        then = int(time.time()) - 7200
        header = {"alg": "RS256", "typ": "JWT"}
        claims = {
            "iss": Kubeconfig(self._admin).server,
            "aud": [Kubeconfig(self._admin).server],
            "sub": "system:serviceaccount:default:default",
            "iat": then,
            "nbf": then,
            "exp": then + 3600,
        }
        signed = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
        signature = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", str(self._admin.parent / "sa.key")],
            input=signed.encode(),
            capture_output=True,
            check=True,
        ).stdout
        return self.with_token("expired-token", f"{signed}.{base64url(signature)}")

    def unreachable(self) -> Path:
        """A kubeconfig whose server nobody listens at."""
        return self._write("unreachable", server="https://127.0.0.1:1")

    def untrusted(self) -> Path:
        """A kubeconfig without the cluster's certificate authority."""
        config = yaml.safe_load(self._admin.read_text())
        del config["clusters"][0]["cluster"]["certificate-authority"]
        return self._save("untrusted", config)

    def with_token(self, name: str, token: str) -> Path:
        return self._write(name, token=token)

    def _write(self, name: str, server: str | None = None, token: str | None = None) -> Path:
        config = yaml.safe_load(self._admin.read_text())
        if server:
            config["clusters"][0]["cluster"]["server"] = server
        if token:
            config["users"][0]["user"] = {"token": token}
        return self._save(name, config)

    def _save(self, name: str, config: dict[str, Any]) -> Path:
        path = self._folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
