#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_degradation_info
short_description: Tell which GPU nodes get worse before they fail, and what may be done about it now
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Compares what was measured of nodes, GPUs and NICs with their own earlier measurements and with their peers, which
    are the nodes with the same product and the same role. It looks at rates of correctable memory errors, remapped
    rows, errors and flaps of NVLinks and NICs, PCIe lanes, temperature, clocks, throttling, step time, bandwidth, and
    what certifications measured.
  - Both comparisons are robust ones, by medians and median absolute deviations. A degradation takes several bad windows
    of time in a row, and ends after several good ones. Everything is computed anew from the history in each run, and
    equal histories give equal answers.
  - What most peers show together is a shift of the fleet, and no node is blamed for it. What most nodes of a rack show
    together is to be watched, for it is likelier what they share. What was not measured lately is unknown.
  - Says for each degraded node what is suggested, and whether it may be done now, within the bounds, inside a
    maintenance window, and not on a node that others hold or whose GPUs are in use.
  - Reads only; C(list) on nodes and pods is enough.
options:
  history:
    description:
      - Files with lines of JSON, and directories with such files that end in C(.jsonl).
      - A line has C(node), C(at) (a time with its zone) and C(values) (a map of metrics), and may have C(entity) (the
        UUID of a GPU, the port of a NIC), C(workload), C(bootId), and C(uid) or C(machineId) of the node. Instead of
        C(values), C(metric) and C(value) will do.
      - What was measured under different workloads is never compared. Step times need it, such as the name of the model
        and its number of nodes, or else each new job is a change of all its nodes.
      - Lines that cannot be read are told, and cost no other. Lines of an earlier node of the same name are left out,
        which are those with another C(uid) or C(machineId), and those with neither that are older than the node.
    type: list
    elements: path
    default: []
  samples:
    description: Further lines, as in O(history).
    type: list
    elements: dict
    default: []
  evidence_dirs:
    description:
      - Directories with evidence of certifications. What was measured of single nodes is compared as well, as
        C(certification:CATEGORY/METRIC). Evidence that does not verify is left out, with a warning.
    type: list
    elements: path
    default: []
  public_key:
    description: Public key, as PEM, that the evidence must be signed with.
    type: str
  selector:
    description: Labels of the nodes that belong to the fleet. Without it, the nodes that have GPUs do.
    type: str
    default: ''
  role_label:
    description: Label that tells nodes of one product apart, such as that of a pool, when they do different work.
    type: str
    default: ''
  domain_labels:
    description: Labels that name a node's rack or NVLink domain; the first that it has counts. There is a usual list.
    type: list
    elements: str
  metrics:
    description:
      - Changes to the metrics that are known, and metrics of the site's own, by name. V(null) leaves a metric out.
      - The fields are C(kind) (V(gauge), V(counter) or V(total), which is a counter that survives boots), C(worse)
        (V(up) or V(down)), C(unit), C(words), C(floor) (the least spread that is believed), C(effect) (the least change
        that matters), C(relative) (whether these two are shares of the usual value), C(limit) (what is too much by
        itself), C(suggestion) (V(certify), V(maintenance) or V(watch)), C(hours) (of a window), C(baseline) (windows
        that a history needs), C(confirm) (bad windows in a row) and C(partial) (whether the window counts that is not
        over). For counters, C(floor) and C(effect) are per hour.
    type: dict
    default: {}
  keep_days:
    description: Days of the history that count.
    type: float
    default: 60
  enter:
    description: How many spreads worse both comparisons have to be.
    type: float
    default: 4
  strong:
    description: How many spreads worse are enough for one comparison alone.
    type: float
    default: 8
  exit_windows:
    description: Windows in a row that end a degradation; they must not even be half as bad.
    type: int
    default: 4
  recent_windows:
    description: The last windows, which are judged by those before them.
    type: int
    default: 28
  min_peers:
    description: Other nodes without which there is no comparison with peers.
    type: int
    default: 5
  max_out:
    description:
      - How many nodes may be out of service together, whoever took them out. Beyond that nothing is to be done.
      - A share that is less than one node is one node.
    type: dict
    default: {}
    suboptions:
      nodes:
        description: A number of nodes.
        type: int
      percent:
        description: A share of the fleet.
        type: float
        default: 5
      domain_nodes:
        description: A number of nodes of each domain.
        type: int
      domain_percent:
        description: A share of each domain.
        type: float
        default: 25
  window:
    description:
      - When work on nodes is welcome, such as V(22:00-05:00 UTC) or V(Sat,Sun 08:00-20:00 Europe/Berlin). V(always) is
        always. One of several is enough.
    type: list
    elements: str
    default: [always]
  busy:
    description: Whether nodes may be taken whose GPUs are in use by pods.
    type: bool
    default: false
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
seealso:
  - module: goodput.fleet.gpu_health_info
  - module: goodput.fleet.node_gate
"""

EXAMPLES = r"""
- name: Which nodes get worse?
  goodput.fleet.node_degradation_info:
    history: [/var/lib/goodput/history]
    evidence_dirs: [/var/lib/goodput/evidence]
  register: degradation

- name: Show it
  ansible.builtin.debug:
    msg: "{{ degradation.lines }}"

- name: What may be done tonight, with a bound of our own for temperature
  goodput.fleet.node_degradation_info:
    history: [/var/lib/goodput/history]
    metrics:
      gpu_temperature: {effect: 8}
      fan_speed: {kind: gauge, worse: up, unit: rpm, floor: 100, effect: 1500}
    window: ["22:00-05:00 Europe/Berlin"]
    max_out: {nodes: 4}
"""

RETURN = r"""
msg:
  description: What was found, in one line.
  returned: success
  type: str
  sample: 2 of 512 nodes degrade; 1 may be acted on now
lines:
  description: The result for people, one line for each shift, suggestion and gate that is no longer needed.
  returned: success
  type: list
  elements: str
  sample: ["gpu-0007: degrades: temperature under load 74 C, usual for it 62 (score 11), its peers 61.5 (score 9), since
      2026-11-26T00:00:00Z, 12 windows of 6 h -> maintenance"]
suggestions:
  description:
    - What is suggested, by node, the worst first. C(suggestion) is V(maintenance), V(certify) or V(watch). C(act) says
      whether it may be done now, and C(why) why not. C(evidence) and C(cause) stay as long as the same degrades on the
      same machine. C(findings) are those of RV(findings) that are the node's.
  returned: success
  type: list
  elements: dict
  sample:
    - node: gpu-0007
      uid: 4c1f5f0e-7d0c-4a55-8a1c-1d7a35a9a0c1
      bootId: 1b4e28ba-2fa1-41d2-883f-0016d3cca427
      suggestion: maintenance
      act: false
      why: its GPUs are in use by train/llm-0
      evidence: degradation-2c26b46b68ffc68f
      reason: "degrades: PCIe lanes 8 lanes, usual for it 16 (score 32), its peers 16 (score 32)"
      cause: "degradation-2c26b46b68ffc68f: pcie_width of GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708"
      domain: goodput.fleet/rack=rack-07
findings:
  description: Each metric of each GPU, port or node that degrades, the worst first.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      returned: success
      type: str
    entity:
      description: The GPU or port; empty for the whole node.
      returned: success
      type: str
    workload:
      description: What it was measured under; empty where that does not matter.
      returned: success
      type: str
    metric:
      description: What got worse.
      returned: success
      type: str
    score:
      description: Spreads worse than its C(own) history and than its C(peers); null where that cannot be told.
      returned: success
      type: dict
    value:
      description: The last window's.
      returned: success
      type: float
    usual:
      description: What was usual for it; null where there is too little history.
      returned: success
      type: float
    peers:
      description: The peers' median in the last window; null where there are too few.
      returned: success
      type: float
    since:
      description: When it began.
      returned: success
      type: str
    windows:
      description: Windows that were measured since.
      returned: success
      type: int
    perDay:
      description: Its trend, as the median slope of a day.
      returned: success
      type: float
    evidence:
      description: All that in words.
      returned: success
      type: str
    suggestion:
      description: What the metric suggests.
      returned: success
      type: str
    shared:
      description: The domain, where most of its nodes show the same.
      returned: success
      type: str
shifts:
  description: What most nodes of a product and role show together.
  returned: success
  type: list
  elements: dict
  sample:
    - {metric: gpu_temperature, product: NVIDIA-H100-80GB-HBM3, role: '', change: 10, unit: C, nodes: 512}
stale:
  description: As RV(findings), of what was degraded when it was measured last, but was not measured lately.
  returned: success
  type: list
  elements: dict
unknown:
  description: Nodes of which nothing was measured lately, each with C(node) and C(why).
  returned: success
  type: list
  elements: dict
  sample: [{node: gpu-0042, why: nothing was measured}]
gates:
  description:
    - The suggestions V(maintenance) that may be done now, as O(goodput.fleet.node_gate#module:nodes) takes them.
  returned: success
  type: list
  elements: dict
  sample:
    - name: gpu-0007
      reason: "degrades: PCIe lanes 8 lanes, usual for it 16 (score 32), its peers 16 (score 32)"
      evidence: degradation-2c26b46b68ffc68f
      boot_id: 1b4e28ba-2fa1-41d2-883f-0016d3cca427
cleared:
  description: Nodes with a gate for a degradation that is no longer there.
  returned: success
  type: list
  elements: dict
  sample: [{node: gpu-0009, evidence: degradation-0123456789abcdef}]
in_window:
  description: Whether a maintenance window is open.
  returned: success
  type: bool
unreadable:
  description: Lines that could not be read; the first of them.
  returned: success
  type: list
  elements: dict
  sample: [{code: unreadable-sample, message: tells no node, file: history/a.jsonl, line: 3}]
counts:
  description: Of nodes, series, samples, degraded nodes, suggestions, those that may be acted on, and lines left out.
  returned: success
  type: dict
  sample: {nodes: 512, series: 36864, samples: 6193152, degraded: 2, suggestions: 2, act: 1, unreadable: 0}
problems:
  description: Everything that is wrong with the input.
  returned: when the input was bad
  type: list
  elements: dict
"""

import json
import os
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.certification import evidence
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_gpus, hosts
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_look import UNFINISHED
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    collected,
    degradation,
    maintenance,
    maintenance_window,
    nodefacts,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import metrics as metrics_
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.series import History, seconds
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument, NotFound

DAY = 86400.0
INSTANCE_TYPE = "node.kubernetes.io/instance-type"  # where nothing tells the GPUs' product
BOUNDS = {
    "nodes": {"type": "int"},
    "percent": {"type": "float", "default": 5},
    "domain_nodes": {"type": "int"},
    "domain_percent": {"type": "float", "default": 25},
}


class Look:
    """One look: the input checked, the fleet read once, the history judged."""

    def __init__(self, module: AnsibleModule):
        self.module, self.params, self.now = module, module.params, datetime.now(UTC)
        given = self.params
        self.metrics = metrics_.table(given["metrics"])
        self.settings = degradation.Settings.checked(
            recent=given["recent_windows"],
            **{name: given[name] for name in ("enter", "strong", "exit_windows", "min_peers")},
        )
        self.bounds = maintenance.Bounds(**(given["max_out"] or {}))
        self.in_window = maintenance_window.is_open(given["window"], self.now)
        if not 1 <= given["keep_days"] <= 3650:
            raise InvalidDocument(f"is {given['keep_days']:g}", path="keep_days", hint="from 1 to 3650")

    def run(self) -> dict:
        client = connect(self.params, self.module.no_log_values)
        raw = gates.read_nodes(client, self.params["selector"])
        raw = {name: node for name, node in raw.items() if self.params["selector"] or is_gpu_node(node)}
        nodes = {name: self.facts(node) for name, node in raw.items()}
        history = self.history(raw, nodes)
        places = {name: self.place(raw[name], node) for name, node in nodes.items()}
        decision = degradation.decide(history, places, self.now.timestamp(), self.settings)
        pods = users(client) if decision["findings"] else {}
        standing = {
            name: {
                **node,
                "ready": node["ready"] and not node["deleted"],
                "external": nodefacts.holders(node, [gate["owner"] for gate in node["gates"]]),
                "pods": sorted(pods.get(name, ())),
            }
            for name, node in nodes.items()
        }
        planned = maintenance.plan(decision, standing, self.bounds, self.in_window, self.params["busy"])
        return self.told(history, decision, planned)

    def facts(self, raw: dict) -> dict:
        labels = self.params["domain_labels"]
        seen = hosts.host(raw)["facts"]
        return nodefacts.facts(raw, seen, gpu=True, domain_labels=nodefacts.DOMAIN_LABELS if labels is None else labels)

    def place(self, raw: dict, node: dict) -> dict:
        labels = raw["metadata"].get("labels") or {}
        product = node["product"] or labels.get(INSTANCE_TYPE) or ""
        return {"product": product, "role": labels.get(self.params["role_label"], ""), "domain": node["domain"]}

    def machine(self, raw: dict, node: dict) -> dict:
        info = (raw.get("status") or {}).get("nodeInfo") or {}
        machine_id, created = info.get("machineID") or "", seconds(node["created"]) or 0.0
        return {"uid": node["uid"], "machineId": machine_id, "created": created}

    def history(self, raw: dict[str, dict], nodes: dict[str, dict]) -> History:
        machines = {name: self.machine(raw[name], node) for name, node in nodes.items()}
        history = History(self.metrics, self.now.timestamp(), self.params["keep_days"] * DAY, machines)
        history.read(self.params["history"])
        for number, line in enumerate(self.params["samples"], 1):
            history.add(line, "samples", number)
        for base in self.params["evidence_dirs"]:
            for folder in folders(base):
                self.certification(history, folder)
        return history

    def certification(self, history: History, folder: str) -> None:
        problems = evidence.verify(folder, self.params["public_key"])
        if problems:
            self.module.warn(f"evidence that is left out: {problems[0]}")
            return
        results, about, inventory = (
            document(folder, name) for name in ("results.json", "certification.json", "inventory.json")
        )
        ids = {run for row in results.get("rows") or () for run in row["runs"]}
        runs = {run: document(folder, "runs", run, "run.json") for run in ids}
        for one in collected.of_certification(results, about, runs, inventory):
            name, metric = metrics_.of_certification(one["category"], one["metric"], one["unit"], one["worse"])
            if self.params["metrics"].get(name, metric) is not None:
                history.metrics.setdefault(name, metric)
                history.add({**one["line"], "metric": name}, folder)

    def told(self, history: History, decision: dict, planned: dict) -> dict:
        if history.counts["unreadable"]:
            first = history.problems[0]
            self.module.warn(f"{history.counts['unreadable']} lines of the history cannot be read, such as {first}")
        for words in history.unknown_words():
            self.module.warn(words)
        counts = {**decision["counts"], **planned["counts"], "out": planned["out"]}
        left_out = {name: history.counts[name] for name in ("unreadable", "old", "strangers", "otherMachine")}
        return {
            "msg": f"{counts['degraded']} of {counts['nodes']} nodes degrade; {counts['act']} may be acted on now",
            "lines": maintenance.lines(decision, planned),
            "suggestions": planned["suggestions"],
            "gates": planned["gates"],
            "cleared": planned["cleared"],
            "in_window": self.in_window,
            "unreadable": [problem.as_dict() for problem in history.problems],
            "counts": {**counts, **left_out},
            **{name: decision[name] for name in ("findings", "stale", "shifts", "unknown")},
        }


def users(client) -> dict[str, list[str]]:
    """Pods that use GPUs, by node."""
    found: dict[str, list[str]] = {}
    for pod in client.list("/api/v1/pods", fieldSelector=f"spec.nodeName!=,{UNFINISHED}"):
        if drain_gpus.usage(pod)["uses"]:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            found.setdefault(pod["spec"]["nodeName"], []).append(name)
    return found


def folders(base: str) -> list[str]:
    """Sealed evidence below a directory."""
    if not os.path.isdir(base):
        raise NotFound("no such directory", file=base, hint="where certifications leave their evidence")
    found = (os.path.join(base, name) for name in sorted(os.listdir(base)))
    return [folder for folder in found if os.path.isfile(os.path.join(folder, evidence.MANIFEST))]


def document(folder: str, *parts: str) -> dict:
    """Of evidence that was verified; nothing where there is none."""
    path = os.path.join(folder, *parts)
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "history": {"type": "list", "elements": "path", "default": []},
            "samples": {"type": "list", "elements": "dict", "default": []},
            "evidence_dirs": {"type": "list", "elements": "path", "default": []},
            "public_key": {"type": "str", "no_log": False},
            "selector": {"type": "str", "default": ""},
            "role_label": {"type": "str", "default": ""},
            "domain_labels": {"type": "list", "elements": "str"},
            "metrics": {"type": "dict", "default": {}},
            "keep_days": {"type": "float", "default": 60},
            "enter": {"type": "float", "default": 4},
            "strong": {"type": "float", "default": 8},
            "exit_windows": {"type": "int", "default": 4},
            "recent_windows": {"type": "int", "default": 28},
            "min_peers": {"type": "int", "default": 5},
            "max_out": {"type": "dict", "default": {}, "options": BOUNDS},
            "window": {"type": "list", "elements": "str", "default": ["always"]},
            "busy": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        result = Look(module).run()
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
