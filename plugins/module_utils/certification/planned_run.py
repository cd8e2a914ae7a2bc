# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of a plan: everything that a launcher needs, as plain data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.certification import catalogue
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest

EFA = "vpc.amazonaws.com/efa"
# which argument of a parser tells it what was launched
_GPU_PARSERS = ("dcgm_diag", "nvbandwidth", "gpu_burn")


@dataclass
class Team:
    """The nodes of a run, of one kind, and what each gives to it."""

    names: list[str]
    domains: list[str | None]
    accelerator: str
    product: str
    gpus_per_node: int
    gpu_resource: str
    nics_per_node: int
    borrowed: list[str] = field(default_factory=list)
    tolerated: list[dict] = field(default_factory=list)

    @property
    def scope(self) -> str:
        """domain: within one NVLink domain or rack; cross: several; "": not told."""
        if len(self.names) == 1:
            return "domain"
        if None in self.domains:
            return ""
        return "domain" if len(set(self.domains)) == 1 else "cross"


def build(resolved: Mapping, team: Team, repeat: int, purpose: str) -> dict:
    """A Run.

    {id, category, categories, test, nodes (sorted), borrowed, repeat (from 1), purpose: screen|isolate|confirm,
    launcher: job|indexed-job|mpijob|trainjob, image, command, env: {name: value}, resources: {limits, requests} of each
    pod with GPUs and NICs, shm: None | "unlimited" | quantity, capabilities, privileged, hostNetwork,
    imagePullSecrets: [names], labels, schedulerName, tolerations, limits: {start, run, silence} in seconds,
    parser: {tool, …}, arguments: of the parser, expected: {ranks, hosts, gpusPerNode, transport}, metrics, bounds,
    accelerator, product, scope: domain | cross | "", spec: digest of what runs}

    The id is made of what runs, on which nodes, and the repeat; bounds, labels and tolerations change none of that.
    """
    nodes = sorted(team.names)
    command, env = catalogue.fill(resolved, len(nodes), team.gpus_per_node)
    expected = {
        "ranks": len(nodes) * team.gpus_per_node,
        "hosts": len(nodes),
        "gpusPerNode": team.gpus_per_node,
        "transport": _transport(resolved, team),
    }
    what = {
        "test": resolved["test"] if not resolved["test"].startswith("workload/") else "workload",
        # one pod starts its processes itself
        "launcher": resolved["launcher"] if len(nodes) > 1 else "job",
        "image": resolved["image"],
        "command": command,
        "env": env,
        "resources": _resources(resolved, team),
        "shm": resolved["shm"],
        "capabilities": resolved["capabilities"],
        "privileged": resolved["privileged"],
        "hostNetwork": resolved["hostNetwork"],
        "limits": resolved["limits"],
        "expected": expected,
    }
    identity = digest.sha256({"run": what, "nodes": nodes, "repeat": repeat})
    return {
        "id": identity.removeprefix("sha256:")[:12],
        "category": resolved["category"],
        "categories": [resolved["category"]],
        **what,
        "test": resolved["test"],
        "nodes": nodes,
        "borrowed": sorted(team.borrowed),
        "repeat": repeat,
        "purpose": purpose,
        "imagePullSecrets": resolved["imagePullSecrets"],
        "labels": resolved["labels"],
        "schedulerName": resolved["schedulerName"],
        "tolerations": _tolerations(team.tolerated),
        "parser": {key: value for key, value in resolved["parser"].items() if key != "expects"},
        "arguments": _arguments(resolved, expected),
        "metrics": resolved["metrics"],
        "bounds": resolved["bounds"],
        "accelerator": team.accelerator,
        "product": team.product,
        "scope": team.scope,
        "spec": digest.sha256(what),
    }


def _resources(resolved: Mapping, team: Team) -> dict:
    """Extended resources: the request is the limit."""
    devices = {team.gpu_resource: team.gpus_per_node}
    if resolved["nics"] and team.nics_per_node:
        devices[resolved["nics"]["resource"]] = team.nics_per_node
    given = resolved["resources"]
    return {part: {**given.get(part, {}), **devices} for part in ("limits", "requests")}


def _tolerations(taints: list[dict]) -> list[dict]:
    """One for each taint, and for no other."""
    unique = sorted({(taint["key"], taint["value"], taint["effect"]) for taint in taints})
    return [
        {"key": key, "operator": "Equal", "value": value, "effect": effect}
        if value
        else {"key": key, "operator": "Exists", "effect": effect}
        for key, value, effect in unique
    ]


def _transport(resolved: Mapping, team: Team) -> str:
    """What NCCL must use: as asked for, or as the network devices that the pods get."""
    if resolved["parser"]["tool"] != "nccl":
        return ""
    if resolved["transport"]:
        return resolved["transport"]
    crosses = resolved["usesNetwork"] or (len(team.names) > 1 and team.scope != "domain")
    if not crosses or not resolved["nics"] or not team.nics_per_node:
        return ""
    return "EFA" if resolved["nics"]["resource"] == EFA else "IB"


def _arguments(resolved: Mapping, expected: Mapping) -> dict:
    given = dict(resolved["parser"].get("expects", {}))
    tool = resolved["parser"]["tool"]
    if tool == "nccl":
        given |= {"expected_ranks": expected["ranks"], "expected_hosts": expected["hosts"]}
        if expected["transport"]:
            given["expected_transport"] = expected["transport"]
    elif tool in _GPU_PARSERS:
        given["expected_gpus"] = expected["gpusPerNode"]
    return given
