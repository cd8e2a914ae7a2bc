# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on the nodes of a cluster: many nodes in one call, in parallel, each with a result of its own.

A result is {node, owner, status, changed, reason, gates: [owners], external, open}, for failed nodes with `code`
(not-found, denied, conflict, unavailable, invalid), and with `diff` {before, after} where something changes.
Statuses: held, released, unchanged, refused, failed.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from urllib.parse import quote

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_
from ansible_collections.goodput.fleet.plugins.module_utils.gates import model
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import name_of
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    InvalidDocument,
    NotFound,
    Problem,
    Unavailable,
)

NODES = "/api/v1/nodes"
FEW = 50  # nodes up to this number are read one by one rather than by listing the cluster
CONFLICTS = 10  # times that a node is read again because somebody else wrote it meanwhile
Decide = Callable[[Mapping], model.Change]


def hold_many(
    client,
    wants: Iterable[Mapping],
    *,
    check_mode: bool = False,
    workers: int = 8,
    nodes: Mapping[str, dict] | None = None,
    reclose: bool = False,
    pool_taints: Iterable[str] = (),
) -> list[dict]:
    """Hold gates. `wants`: {node, owner, reason, ..., uid?, reclose?} as in gate.py; results in the same order.

    `nodes`: raw nodes by name that the caller has read already. Raises InvalidDocument, before anything is written,
    when a gate is not valid, and what listing the nodes raises; what fails on one node is that node's result.
    """
    wants = list(wants)
    problems = [each for index, want in enumerate(wants) for each in _wrong(want, f"gates[{index}]")]
    if problems:
        raise InvalidDocument(problems)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def decide(want: Mapping) -> Decide:
        gate = {**want, "since": want.get("since") or now}
        return lambda node: model.hold(node, gate, reclose or want.get("reclose") is True)

    return _Run(client, check_mode, pool_taints).all([(want, decide(want)) for want in wants], workers, nodes)


def release_many(
    client,
    wants: Iterable[Mapping],
    *,
    check_mode: bool = False,
    workers: int = 8,
    nodes: Mapping[str, dict] | None = None,
    pool_taints: Iterable[str] = (),
) -> list[dict]:
    """Release gates. `wants`: {node, owner, ...} with what model.release() expects. As hold_many."""
    wants = list(wants)
    named = ((gates_.annotation_problem(each.get("owner")), _name_problem(each, "release")) for each in wants)
    problems = [problem for pair in named for problem in pair if problem]
    if problems:
        raise InvalidDocument(list(dict.fromkeys(problems)))

    def decide(want: Mapping) -> Decide:
        return lambda node: model.release(node, want["owner"], want)

    return _Run(client, check_mode, pool_taints).all([(want, decide(want)) for want in wants], workers, nodes)


def read_nodes(client, selector: str | None = None) -> dict[str, dict]:
    """Raw nodes by name, all of them or those that a label selector names."""
    return {name_of(node): node for node in client.list(NODES, labelSelector=selector or None)}


def find_nodes(client, names: Iterable[str] | None = None, selector: str | None = None) -> dict[str, dict]:
    """Raw nodes by name: those named that are there, or as read_nodes()."""
    if names is None:
        return read_nodes(client, selector)
    wanted = list(dict.fromkeys(names))
    if len(wanted) > FEW:
        found = read_nodes(client)
        return {name: found[name] for name in wanted if name in found}
    nodes = ((name, client.find(_path(name))) for name in wanted)
    return {name: node for name, node in nodes if node is not None}


def _path(name: str) -> str:
    return f"{NODES}/{quote(name, safe='')}"


def _wrong(want: Mapping, where: str) -> list[Problem]:
    wrong = _name_problem(want, where)
    return gates_.problems(want, where) + ([wrong] if wrong else [])


def _name_problem(want: Mapping, where: str) -> Problem | None:
    name = want.get("node")
    if isinstance(name, str) and name and "/" not in name:
        return None
    return Problem("gate-node", f"{name!r} is not the name of a node", path=f"{where}.node")


class _Run:
    """One call for many nodes. When the API server fails for node after node, the rest is not tried."""

    def __init__(self, client, check_mode: bool, pool_taints: Iterable[str]):
        self.client, self.check_mode, self.pool_taints = client, check_mode, tuple(pool_taints)
        self.lock, self.failed_in_a_row, self.give_up_after = threading.Lock(), 0, 0

    def all(self, wants: list[tuple[Mapping, Decide]], workers: int, nodes: Mapping[str, dict] | None) -> list[dict]:
        by_node: dict[str, list[int]] = {}
        for index, (want, _decide) in enumerate(wants):
            by_node.setdefault(want["node"], []).append(index)
        workers = max(1, min(workers, len(by_node) or 1))
        self.give_up_after = 3 * workers
        if nodes is None and len(by_node) > FEW:
            nodes = read_nodes(self.client)
        known: Mapping[str, dict] | None = nodes
        results: list[dict] = [{} for _want in wants]

        def one(name: str) -> None:
            node = None if known is None else known.get(name)
            if known is not None and node is None:
                missing = NotFound("there is no such node")
                self._fail(name, by_node[name], wants, results, missing)
                return
            for index in by_node[name]:  # one after the other: they are one object
                want, decide = wants[index]
                results[index], node = self._one(name, want, decide, node)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, by_node))
        return results

    def _fail(self, name: str, indexes: list[int], wants: list, results: list[dict], error: FleetError) -> None:
        for index in indexes:
            results[index] = _failure(name, wants[index][0], error)

    def _one(self, name: str, want: Mapping, decide: Decide, node: dict | None) -> tuple[dict, dict | None]:
        if self.failed_in_a_row >= self.give_up_after:
            error = Unavailable("not tried, since the API server failed for one node after the other")
            return _failure(name, want, error), node
        try:
            change, node = self._write(name, decide, node)
        except FleetError as error:
            with self.lock:
                self.failed_in_a_row = self.failed_in_a_row + 1 if isinstance(error, Unavailable) else 0
            return _failure(name, want, error), None
        self.failed_in_a_row = 0
        seen = model.state(node, self.pool_taints)
        result = {
            "node": name,
            "owner": want["owner"],
            "status": change.status,
            "changed": change.status in ("held", "released"),
            "reason": change.reason,
            "gates": [each["owner"] for each in seen["gates"]],
            "external": seen["external"],
            "open": seen["open"],
        }
        if change.before != change.after:
            result["diff"] = {"before": change.before, "after": change.after}
        return result, node

    def _write(self, name: str, decide: Decide, node: dict | None) -> tuple[model.Change, dict]:
        """Read, decide, write; from the start when somebody else wrote in between."""
        path, maybe_done = _path(name), None
        for attempt in range(CONFLICTS + 1):
            if node is None:
                node = self.client.get(path)
            change = decide(node)
            if change.patch is None:
                if maybe_done and change.status == "unchanged":
                    return maybe_done, node  # ours was in, only its answer was lost
                return change, node
            if self.check_mode:
                return change, model.applied(node, change.patch)
            try:
                answer = self.client.patch(path, change.patch, metadata_only=True, fieldManager=gates_.MANAGER)
            except Conflict as error:
                if attempt == CONFLICTS:
                    raise
                maybe_done = change if getattr(error, "attempts", 1) > 1 else maybe_done
                node = None
                time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 5)))
                continue
            node = model.applied(node, change.patch)
            node["metadata"] = answer.get("metadata") or node["metadata"]
            return change, node
        raise AssertionError("not reached")


def _failure(name: str, want: Mapping, error: FleetError) -> dict:
    kinds = ((NotFound, "not-found"), (Denied, "denied"), (Conflict, "conflict"), (Unavailable, "unavailable"))
    code = next((code for kind, code in kinds if isinstance(error, kind)), "invalid")
    result = {"node": name, "owner": want.get("owner"), "status": "failed", "changed": False, "code": code}
    reason = "there is no such node" if error.problems[0].code == "object-missing" else str(error)
    return {**result, "reason": reason, "gates": [], "external": [], "open": False}
