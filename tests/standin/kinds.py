# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which custom kinds a recipe speaks of, as CRDs that accept anything.

A recipe names CRDs only as PLURAL.GROUP. Kind, version and scope come from its health checks and from the custom
resources in its manifests; for a CRD that nothing else mentions they do not matter and are made up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True)
class Kind:
    """A custom kind. `manifested`: the recipe's own manifests hold an object of it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    manifested: bool = False

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def path(self) -> str:
        """Where the API server lists the objects of all namespaces."""
        return f"/apis/{self.api_version}/{self.plural}"


class Kinds:
    """The custom kinds of a lock, and which component brings which."""

    def __init__(self, lock: dict):
        components = lock["spec"]["components"]
        self._listed = {crd: item["name"] for item in reversed(components) for crd in item.get("crds") or []}
        self.kinds: dict[str, Kind] = {}  # by CRD name
        for name in self._listed:
            self._add(made_up(name))
        for component in components:
            for check in checks(component):
                self._add(from_check(check))
        for component in components:
            for manifest in component.get("manifests") or []:
                for obj in yaml.safe_load_all(manifest["content"]):
                    if isinstance(obj, dict):
                        self._manifested(obj)

    def _add(self, kind: Kind) -> None:
        self.kinds[kind.crd_name] = kind

    def _manifested(self, obj: dict) -> None:
        group, _slash, version = obj.get("apiVersion", "").rpartition("/")
        for known in list(self.kinds.values()):
            if known.group == group and obj["kind"].lower() in (known.kind.lower(), *singulars(known.plural)):
                spaced = known.namespaced if known.kind == obj["kind"] else "namespace" in obj["metadata"]
                self._add(Kind(group, version, obj["kind"], known.plural, spaced, manifested=True))

    def brought_by(self, component: dict) -> list[dict]:
        """The CRDs of a component's chart: those it lists, and those of its checks that no component lists."""
        names = set(component.get("crds") or [])
        names |= {from_check(check).crd_name for check in checks(component)} - set(self._listed)
        return [crd(self.kinds[name]) for name in sorted(names)]

    def needed_by(self, component: dict) -> list[dict[str, str]]:
        """Objects without which a check of the component could not pass, unless a manifest brings one."""
        needed = {}
        for check in checks(component):
            kind = self.kinds[from_check(check).crd_name]
            if not kind.manifested and not check.get("optional"):
                name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.kind).lower()
                needed[kind.crd_name] = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
        return [needed[name] for name in sorted(needed)]


def checks(component: dict) -> list[dict]:
    """The component's checks on custom resources; kinds of Kubernetes itself need nothing from a stand-in."""
    found = (component.get("health") or {}).get("checks") or []
    return [check for check in found if is_custom(check["apiVersion"].rpartition("/")[0])]


def is_custom(group: str) -> bool:
    return "." in group and not group.endswith((".k8s.io", ".kubernetes.io"))


def from_check(check: dict) -> Kind:
    group, _slash, version = check["apiVersion"].rpartition("/")
    return Kind(group, version, check["kind"], check["plural"], check.get("namespaced", True))


def made_up(crd_name: str) -> Kind:
    plural, _dot, group = crd_name.partition(".")
    return Kind(group, "v1", singulars(plural)[-1].capitalize(), plural, not plural.startswith("cluster"))


def singulars(plural: str) -> list[str]:
    """What an English plural may be the plural of, the likeliest last."""
    found = [plural.removesuffix("s")]
    if plural.endswith(("sses", "xes", "ches", "shes")):
        found.append(plural.removesuffix("es"))
    if plural.endswith("ies"):
        found.append(plural.removesuffix("ies") + "y")
    return found


def crd(kind: Kind) -> dict:
    metadata: dict = {"name": kind.crd_name}
    if not is_custom(kind.group):  # the API server guards these groups
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": ANYTHING},
                }
            ],
        },
    }
