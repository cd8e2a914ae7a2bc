# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node a cloud's instance is: by the node's provider id.

aws:///us-east-1a/i-0123456789abcdef0                                        i-0123456789abcdef0
gce://project/zone/gke-pool-1                                                projects/project/zones/zone/instances/...
azure:///subscriptions/S/.../virtualMachineScaleSets/VMSS/virtualMachines/3  VMSS_3
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

_SET = re.compile(r"/virtualmachinescalesets/([^/]+)/virtualmachines/([^/]+)$")
_GCE = re.compile(r"(?:.*/)?projects/([^/]+)/zones/([^/]+)/instances/([^/]+)$")


class Instances:
    """Of {instance id or provider id: node name}, or of nodes (raw objects, or maps with name and providerId)."""

    def __init__(self, nodes: Mapping | Iterable | None = None):
        self._nodes: dict[str, set[str]] = {}
        for key, node in _pairs(nodes):
            for name in {*_names(key), node.lower()}:
                self._nodes.setdefault(name, set()).add(node)

    def node(self, instance: str) -> tuple[str | None, str]:
        """(node, ''), or (None, why not). The fullest name that leads to a node counts."""
        for name in _names(instance):
            found = self._nodes.get(name)
            if found and len(found) == 1:
                return next(iter(found)), ""
            if found:
                return None, f"{instance} is the name of {len(found)} instances, of {', '.join(sorted(found)[:5])}"
        return None, f"{instance} is no instance of a node that is known"


def _pairs(nodes: object) -> list[tuple[str, str]]:
    if nodes is None:
        return []
    if isinstance(nodes, Mapping):
        if not all(isinstance(name, str) and name for name in nodes.values()):
            raise InvalidDocument("nodes is no map of texts", path="nodes", hint="INSTANCE ID: NODE NAME")
        return [(str(key), name) for key, name in nodes.items()]
    if not isinstance(nodes, (list, tuple)):
        raise InvalidDocument(
            "nodes is neither a map nor a list", path="nodes", hint="INSTANCE ID: NODE NAME, or Nodes"
        )
    pairs = []
    for index, node in enumerate(nodes):
        metadata, spec = (node.get("metadata"), node.get("spec")) if isinstance(node, Mapping) else (None, None)
        if isinstance(metadata, Mapping):
            name, key = metadata.get("name"), spec.get("providerID") if isinstance(spec, Mapping) else None
        elif isinstance(node, Mapping):
            name, key = node.get("name"), node.get("providerId")
        else:
            name, key = None, None
        if not isinstance(name, str) or not name:
            raise InvalidDocument(
                f"item {index} is no Node", path=f"nodes[{index}]", hint="a Node, or name and providerId"
            )
        pairs.append((key if isinstance(key, str) and key else name, name))
    return pairs


def _names(key: str) -> list[str]:
    """All names of one instance, the fullest first, in small letters: Azure writes them both ways."""
    key = key.strip().rstrip("/").lower()
    names = [key]
    scale_set, address = _SET.search(key), _GCE.match(key)
    if scale_set:
        names += [f"{scale_set[1]}_{scale_set[2]}"]
        return names  # the number alone says nothing
    if address:
        names.append("gce://" + "/".join(address.groups()))
    if "/" in key:
        names.append(key.rpartition("/")[2])
    return names
