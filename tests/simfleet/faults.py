"""Make pods fail and heal them again; what a rule can say is in kubelet/behaviour.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import yaml

from tests.simfleet.api import Api
from tests.simfleet.kubelet.behaviour import FAULTS_LABEL, read_rules

NAMESPACE = "default"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class Faults:
    def __init__(self, api: Api):
        self._api = api

    def set(self, name: str, match: dict[str, Any], **behaviour: Any) -> None:
        """From now on, pods that look like `match` behave like this, those that run already as well.

        faults.set("bad-driver", {"owner": "DaemonSet/nvidia-*", "exceptNode": "gpu-0000"}, waiting="CrashLoopBackOff")
        """
        change = {key.replace("_", "-"): value for key, value in behaviour.items()}
        rules = yaml.safe_dump([{"match": match, "set": change}])
        read_rules(rules, name)  # refuses here what the kubelet could only log
        self._api.apply(
            f"{PATH}/sim-fault-{name}",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"sim-fault-{name}", "labels": {FAULTS_LABEL: "true"}},
                "data": {"rules": rules},
            },
        )

    def clear(self, name: str) -> None:
        self._api.delete(f"{PATH}/sim-fault-{name}")

    def clear_all(self) -> None:
        for item in self._api.list(PATH, labelSelector=f"{FAULTS_LABEL}=true"):
            self._api.delete(f"{PATH}/{item['metadata']['name']}")

    @contextlib.contextmanager
    def active(self, name: str, match: dict[str, Any], **behaviour: Any) -> Iterator[None]:
        self.set(name, match, **behaviour)
        try:
            yield
        finally:
            self.clear(name)
