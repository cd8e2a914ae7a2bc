# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass over the jobs reads of a cluster: one paged list of each kind, whatever their number.

found = jobs(client)                     # of all kinds that the cluster has, with those that jobs made
pods, used = job_pods(client, found)     # their raw pods, and the GPUs in use on each node
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import kinds

_OVER = ("Succeeded", "Failed")
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi")


def jobs(client, namespaces: Iterable[str] = (), selector: str = "") -> list[dict]:
    """Raw jobs of every kind that the cluster knows, with apiVersion and kind. `namespaces`: patterns; none are all."""
    patterns = tuple(namespaces)
    found = []
    for kind, told in kinds.KINDS.items():
        try:
            for item in client.list(api_path(told.api_version, told.plural), labelSelector=selector or None):
                if wanted(item["metadata"]["namespace"], patterns):
                    item["metadata"].pop("managedFields", None)
                    found.append({**item, "apiVersion": told.api_version, "kind": kind})
        except NotFound:  # the cluster has no such kind
            continue
    return found


def namespaces(client) -> list[dict]:
    """Metadata only."""
    return list(client.list("/api/v1/namespaces", metadata_only=True))


def nodes(client, selector: str = "") -> dict[str, dict]:
    """Raw nodes by name, without what is long and tells nothing about jobs."""
    found = {}
    for node in client.list("/api/v1/nodes", labelSelector=selector or None):
        node["metadata"].pop("managedFields", None)
        (node.get("status") or {}).pop("images", None)
        found[node["metadata"]["name"]] = node
    return found


def job_pods(client, of: Iterable[Mapping]) -> tuple[list[dict], dict[str, int]]:
    """(raw pods of these jobs, {node: GPUs that the pods there ask for}). Of all other pods only GPUs are kept."""
    places = {job["metadata"]["namespace"] for job in of}
    kept, used = [], {}
    for pod in client.list("/api/v1/pods"):
        spec, metadata = pod.get("spec") or {}, pod["metadata"]
        node = spec.get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in _OVER:
            asked = gpus(spec)
            if asked:
                used[node] = used.get(node, 0) + asked
        if metadata["namespace"] in places and _made_by_a_job(metadata):
            metadata.pop("managedFields", None)
            spec.pop("volumes", None)
            kept.append(pod)
    return kept, used


def pods_of(client, job: Mapping) -> Iterator[dict]:
    """The raw pods of one raw job."""
    path = api_path("v1", "pods", job["metadata"]["namespace"])
    return client.list(path, labelSelector=kinds.pod_selector(job))


def gpus(spec: Mapping) -> int:
    """GPUs that a pod asks for: all of its containers run at the same time."""
    total = 0
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
        total += sum(int(n) for name, n in asked.items() if name in _GPUS and str(n).isdecimal())
    return total


def allocatable(node: Mapping) -> int:
    """GPUs that a raw node offers."""
    told = (node.get("status") or {}).get("allocatable") or {}
    return sum(int(told[name]) for name in _GPUS if str(told.get(name, "")).isdecimal())


def wanted(namespace: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(namespace, pattern) for pattern in patterns)


def _made_by_a_job(metadata: Mapping) -> bool:
    owners = metadata.get("ownerReferences") or ()
    return any(each.get("kind") in kinds.KINDS for each in owners) or not owners
