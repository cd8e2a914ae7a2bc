# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain sees of a cluster in one look: its nodes, their pods, the budgets of those pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_pods import Pod, read
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    FleetError,
    NotFound,
    Unavailable,
)

WORKERS = 8
FEW = 24  # nodes; for more, one list of all pods is cheaper than one request a node
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
T = TypeVar("T")


@dataclass
class Look:
    nodes: dict[str, dict | None] = field(default_factory=dict)  # raw, None: there is no such node
    pods: dict[str, list[Pod]] = field(default_factory=dict)
    budgets: list[dict] = field(default_factory=list)  # raw
    errors: dict[str, FleetError] = field(default_factory=dict)  # by node: it could not be seen
    budgets_error: FleetError | None = None  # the API server still holds to them; only their names are not known


def look(client, names: list[str], devices: dict[str, list[str]], moved: Callable[[Pod], bool]) -> Look:
    """One look at these nodes. Budgets are read where `moved` says that a pod may be evicted."""
    seen = Look()
    with ThreadPoolExecutor(WORKERS) as pool:
        for name, node in zip(names, _nodes(client, names, pool), strict=True):
            _sort_in(seen, name, node, seen.nodes)
        there = [name for name in names if name in seen.nodes]
        if len(there) <= FEW:
            answers = pool.map(lambda name: _tried(_pods_of, client, name, devices), there)
        else:
            answers = _pods_of_all(client, there, devices)
        for name, pods in zip(there, answers, strict=True):
            _sort_in(seen, name, pods, seen.pods)
        spaces = sorted({pod.namespace for pods in seen.pods.values() for pod in pods if moved(pod)})
        try:
            seen.budgets = list(_budgets(client, spaces, pool))
        except FleetError as error:
            seen.budgets_error = error
    return seen


def _tried(ask: Callable[..., T], *arguments) -> T | FleetError:
    try:
        return ask(*arguments)
    except FleetError as error:
        return error


def _sort_in(seen: Look, name: str, answer, good: dict) -> None:
    if isinstance(answer, FleetError):
        seen.errors[name] = answer
    else:
        good[name] = answer


def concerns_all(error: FleetError) -> bool:
    """Whether it is the server that does not answer or does not know us, rather than a matter of one node."""
    return isinstance(error, (Denied, Unavailable)) and getattr(error, "status", None) in (None, 401)


def _nodes(client, names: list[str], pool: ThreadPoolExecutor) -> list[dict | FleetError | None]:
    """The first is asked for alone: a server that does not answer is not waited for once a node."""
    if not names:
        return []
    first = _tried(_node, client, names[0])
    if isinstance(first, FleetError) and concerns_all(first):
        return [first] * len(names)
    return [first, *pool.map(lambda name: _tried(_node, client, name), names[1:])]


def _node(client, name: str) -> dict | None:
    try:
        return client.get(f"/api/v1/nodes/{name}")
    except NotFound:
        return None


def _pods_of(client, name: str, devices: dict) -> list[Pod]:
    found = client.list("/api/v1/pods", fieldSelector=f"spec.nodeName={name},{UNFINISHED}")
    return [read(raw, devices) for raw in found]


def _pods_of_all(client, names: list[str], devices: dict) -> list[list[Pod] | FleetError]:
    found: dict[str, list[Pod]] = {name: [] for name in names}
    try:
        for raw in client.list("/api/v1/pods", fieldSelector=f"spec.nodeName!=,{UNFINISHED}"):
            if (name := (raw.get("spec") or {}).get("nodeName")) in found:
                found[name].append(read(raw, devices))
    except FleetError as error:
        return [error] * len(names)
    return list(found.values())


def _budgets(client, namespaces: list[str], pool: ThreadPoolExecutor) -> Iterable[dict]:
    if len(namespaces) > FEW:
        return client.list("/apis/policy/v1/poddisruptionbudgets")
    paths = [f"/apis/policy/v1/namespaces/{name}/poddisruptionbudgets" for name in namespaces]
    return [item for items in pool.map(lambda path: list(client.list(path)), paths) for item in items]
