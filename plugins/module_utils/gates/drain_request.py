# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain is asked to do, read from a module's options: every problem at once, before a cluster is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_gpus, drain_policy
from ansible_collections.goodput.fleet.plugins.module_utils.gates.gate import owner_problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem


@dataclass
class Request:
    """Times in seconds."""

    nodes: list[str]
    policies: drain_policy.Policies
    gpus: list[str] | None = None  # None: the whole node
    devices: dict[str, list[str]] = field(default_factory=dict)  # "namespace/pod": device ids
    owner: str | None = None  # whose gate must be there, and tells the time
    allow_open: bool = False
    timeout: float = 600.0
    interval: float = 5.0
    wait: bool = True


def read(params: dict) -> Request:
    """The options of node_drain as a Request. Raises InvalidDocument."""
    problems: list[Problem] = []
    policies = drain_policy.Policies()
    try:
        policies = drain_policy.load(params["policies"], params["system_namespaces"])
    except InvalidDocument as error:
        problems += error.problems
    for index, name in enumerate(params["nodes"]):
        if not name.strip() or "/" in name:
            problems.append(Problem("node", f"{name!r} is not the name of a node", path=f"nodes[{index}]"))
    gpus = _gpus(params["gpus"], problems)
    for pod, ids in params["devices"].items():
        if str(pod).count("/") != 1 or not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
            hint = '"namespace/pod": [GPU-...]'
            problems.append(
                Problem("devices", "is not a list of device ids of a pod", path=f"devices.{pod}", hint=hint)
            )
    if params["owner"] is not None and (problem := owner_problem(params["owner"])):
        problems.append(problem)
    for name, least in (("timeout", 0), ("interval", 0.1)):
        if not least <= params[name] < float("inf"):
            problems.append(Problem("time", f"is {params[name]}, not seconds from {least} on", path=name))
    if problems:
        raise InvalidDocument(problems)
    return Request(
        nodes=list(dict.fromkeys(name.strip() for name in params["nodes"])),
        policies=policies,
        gpus=gpus,
        **{name: params[name] for name in ("devices", "owner", "allow_open", "timeout", "interval", "wait")},
    )


def _gpus(given: list[str] | None, problems: list[Problem]) -> list[str] | None:
    if given is None:
        return None
    if not given:  # nothing would be in the way of a reset of nothing
        problems.append(Problem("gpu", "names no GPU", path="gpus", hint="leave it out to drain whole nodes"))
    for index, text in enumerate(given):
        if not drain_gpus.GPU_UUID.match(drain_gpus.normal(text)):
            hint = "as nvidia-smi -L prints it, GPU-455d8f70-2051-db6c-0430-ffc457bff834"
            problems.append(Problem("gpu", f"{text!r} is not the UUID of a GPU", path=f"gpus[{index}]", hint=hint))
    return [drain_gpus.normal(text) for text in given]
