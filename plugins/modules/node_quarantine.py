#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_quarantine
short_description: Gate the nodes that health signals and a policy call sick, within bounds
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - "One pass: health events and the conditions of the nodes go in, the rules of a C(QuarantinePolicy) decide, and gates
    are held on the nodes that a rule names, within the policy's circuit breaker. What was decided is returned with its
    reasons."
  - The pass looks at what is true now, not at what an earlier one did. Run again, it changes nothing; killed at any
    point and run again, it ends in the same state.
  - Nothing is written unless O(mode) is V(enforce) B(and) the policy and the rule allow it. Check mode is the plan.
  - It never opens a gate. Nodes are released by whoever repaired and certified them, or with
    M(goodput.fleet.node_gate).
  - When the breaker is at its bound, nothing further is gated. What would have been is in C(blocked) of RV(decision),
    and the module fails, after the gates inside the bound were held and everything was recorded.
options:
  policy:
    description:
      - A C(QuarantinePolicy), as the path of a file, as a dictionary, or as the name of one that this collection ships.
      - V(default) has rules for what no GPU should go on with, in mode observe. V(gpu-health-monitor) is the
        well-known taint for fatal events of the GPU health monitor.
    type: raw
    default: default
  mode:
    description:
      - V(observe) decides and reports, V(dry_run) also writes the record of what would be done, V(enforce) does it.
      - It can only lower what the policy and its rules say.
    type: str
    choices: [observe, dry_run, enforce]
    default: observe
  events:
    description:
      - C(HealthEvent) documents, such as the filters P(goodput.fleet.parse_kernel_log#filter),
        P(goodput.fleet.parse_dcgm_health#filter) and M(goodput.fleet.gpu_health_info) give them.
    type: list
    elements: dict
    default: []
  event_files:
    description:
      - Files with health events, as JSON, lines of JSON, or YAML. NVSentinel's form is understood as well.
      - What cannot be read in them is kept in RV(unparsed).
    type: list
    elements: path
    default: []
  node_conditions:
    description: Whether the conditions of the nodes are signals as well.
    type: bool
    default: true
  selector:
    description:
      - Labels of the nodes that belong to the fleet. Their number is what the breaker's percentages are of, so it must
        not depend on labels that come and go.
      - Without it, the nodes that have GPUs do, by label C(nvidia.com/gpu.present) or by capacity.
    type: str
    default: ''
  ledger_namespace:
    description: Namespace of the ConfigMap that holds the breaker's window. It must exist.
    type: str
    default: goodput-fleet
  ledger_name:
    description: Name of that ConfigMap. It is made when it is not there.
    type: str
    default: goodput-quarantine
  record_dir:
    description:
      - Directory, on the host that runs the module, for the record. C(quarantine.json) holds the last decision, and
        C(events-DATE.jsonl) every event that was seen, which M(goodput.fleet.quarantine_policy_info) can try another
        policy against.
      - Writing it does not count as a change. In check mode nothing is written; with O(mode=observe) the events are.
    type: path
  fail_on:
    description:
      - What the module fails for. V(tripped) is a breaker at its bound, V(failed) a node that could not be gated,
        V(unreadable) a rule that could not be evaluated for an event.
    type: list
    elements: str
    choices: [tripped, failed, unreadable]
    default: [tripped, failed, unreadable]
  concurrency:
    description: How many nodes are written at a time.
    type: int
    default: 8
  catalog:
    description: Layers of the catalogue that hold the signal tables. V(shipped) is the one of this collection.
    type: list
    elements: str
    default: [shipped]
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.action_group
  - goodput.fleet.kubernetes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - cel-expr-python (Python package)
  - jsonschema (Python package)
seealso:
  - module: goodput.fleet.quarantine_policy_info
  - module: goodput.fleet.node_gate
  - module: goodput.fleet.node_drain
"""

EXAMPLES = r"""
- name: What would be gated now? Nothing is written
  goodput.fleet.node_quarantine:
    policy: policies/prod.yaml
  register: plan

- name: Gate what the policy says, by the conditions of the nodes and by a kernel log
  goodput.fleet.node_quarantine:
    policy: policies/prod.yaml
    mode: enforce
    events: "{{ (kernel_log.stdout | goodput.fleet.parse_kernel_log(node='gpu-0007')).events }}"
    record_dir: /var/lib/goodput

- name: Which nodes of fatal events of the GPU health monitor would be tainted? Shipped policies only observe
  goodput.fleet.node_quarantine:
    policy: gpu-health-monitor
    event_files: [/var/lib/nvsentinel/events.jsonl]
"""

RETURN = r"""
msg:
  description: What was decided, in one line.
  returned: always
  type: str
  sample: "enforce: 1 incident; gated gpu-0007 (xid-fatal: Xid 79); breaker 1 of 5"
summary:
  description: The decision in lines, one for each node that something was decided for.
  returned: when a decision was reached
  type: list
  elements: str
  sample: ["gpu-0007: gate quarantine by xid-fatal: Xid 79, GPU has fallen off the bus"]
decision:
  description:
    - What was decided and why. The keys are C(incidents), C(gates), C(held), C(blocked), C(observed), C(released),
      C(unknown), C(ignored), C(breaker) and C(counts).
  returned: when a decision was reached
  type: dict
results:
  description: What became of each gate, as in the result of M(goodput.fleet.node_gate).
  returned: when a decision was reached
  type: list
  elements: dict
  sample: [{node: gpu-0007, status: held, changed: true}]
gated:
  description: Nodes of RV(results) that are closed now, or would be in check mode.
  returned: when a decision was reached
  type: list
  elements: str
  sample: [gpu-0007]
failures:
  description: What of V(tripped), V(failed) and V(unreadable) there was, whether or not the module fails for it.
  returned: when a decision was reached
  type: list
  elements: str
  sample: []
tripped:
  description: Whether the breaker is at its bound and kept something from being gated.
  returned: when a decision was reached
  type: bool
  sample: false
unparsed:
  description: What looked like a signal and could not be read, with its source and line.
  returned: when a decision was reached
  type: list
  elements: dict
  sample: [{source: events.jsonl, line: 12, reason: is not JSON}]
recorded:
  description: How many events were new in the record.
  returned: when a decision was reached
  type: int
  sample: 3
"""

import json
import os
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates import ledger, request
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import node_facts
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import decide, outcome
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.policy import Policy, load
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import conditions, eventlog, given, tables

FAILURES = ["tripped", "failed", "unreadable"]


class Pass:
    """One pass over the fleet: observe, decide, act, record."""

    def __init__(self, module: AnsibleModule):
        self.module, self.params, self.now = module, module.params, datetime.now(UTC)
        self.policy: Policy = load(self.params["policy"]).capped(self.params["mode"])
        self.tables = tables.load_catalog(self.params["catalog"])
        self.client = connect(self.params, module.no_log_values, threads=self.params["concurrency"])
        self.where = (self.client, self.params["ledger_namespace"], self.params["ledger_name"])

    def run(self) -> dict:
        found = gates.read_nodes(self.client, self.params["selector"])
        nodes = {name: node for name, node in found.items() if self.params["selector"] or is_gpu_node(node)}
        if not nodes:
            which = f"has the labels {self.params['selector']}" if self.params["selector"] else "has GPUs"
            self.module.warn(f"no node of the cluster {which}, so that nothing can be gated")
        events, unparsed = self.signals(nodes)
        facts = [node_facts(node) for node in nodes.values()]
        window = ledger.read(*self.where).entries
        decision = decide.decide(self.policy, events, facts, window, self.now)
        results = self.act(decision, nodes, facts, window)
        return {
            "decision": decision,
            "results": results,
            "unparsed": unparsed,
            "recorded": self.record(events, decision, results),
        }

    def signals(self, nodes: dict[str, dict]) -> tuple[list[dict], list[dict]]:
        """Events of all sources, and what could not be read in them."""
        context = {"tables": self.tables, "received": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        parsed = [("events", given.parse(self.params["events"], source_name="events", **context))]
        for path in self.params["event_files"]:
            parsed.append((path, given.parse(eventlog.read(path), source_name=path, **context)))
        if self.params["node_conditions"]:
            parsed.append(("node conditions", conditions.parse(list(nodes.values()), **context)))
        events = [event for _source, result in parsed for event in result["events"]]
        unparsed = [{"source": source, **item} for source, result in parsed for item in result["unparsed"]]
        return events, unparsed

    def act(self, decision: dict, nodes: dict[str, dict], facts: list[dict], window: list[dict]) -> list[dict]:
        """Hold the gates decided on. Entries of the ledger come first, so that a run killed in between has counted."""
        workers = self.params["concurrency"]
        if self.module.check_mode:
            return gates.hold_many(self.client, decision["gates"], check_mode=True, workers=workers, nodes=nodes)
        wanted, seconds = decide.entries(decision), self.policy.breaker.window
        if wanted:
            admit = decide.admission(self.policy, facts, self.now)
            reserved = ledger.reserve(*self.where, wanted, admit, self.now, window=seconds)
            outcome.withdraw(decision, reserved.blocked)
        results = gates.hold_many(self.client, decision["gates"], workers=workers, nodes=nodes)
        written = outcome.written(decision, results, window)
        if written:
            ledger.confirm(*self.where, written, self.now, window=seconds)
        return results

    def record(self, events: list[dict], decision: dict, results: list[dict]) -> int:
        directory = self.params["record_dir"]
        if directory is None or self.module.check_mode:
            return 0
        # what a condition says of a healthy node is said of all nodes at every pass
        told = [each for each in events if not (each["spec"]["isHealthy"] and each["spec"]["codeSpace"] == "condition")]
        fresh = eventlog.append(directory, told, self.now)
        if self.params["mode"] != "observe":
            text = json.dumps({"decision": decision, "results": results}, indent=2, sort_keys=True) + "\n"
            eventlog.replace(os.path.join(directory, "quarantine.json"), text)
        return fresh


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "policy": {"type": "raw", "default": "default"},
            "mode": {"type": "str", "choices": ["observe", "dry_run", "enforce"], "default": "observe"},
            "events": {"type": "list", "elements": "dict", "default": []},
            "event_files": {"type": "list", "elements": "path", "default": []},
            "node_conditions": {"type": "bool", "default": True},
            "selector": {"type": "str", "default": ""},
            "ledger_namespace": {"type": "str", "default": "goodput-fleet"},
            "ledger_name": {"type": "str", "default": "goodput-quarantine"},
            "record_dir": {"type": "path"},
            "fail_on": {"type": "list", "elements": "str", "choices": FAILURES, "default": FAILURES},
            "concurrency": {"type": "int", "default": 8},
            "catalog": {"type": "list", "elements": "str", "default": ["shipped"]},
        },
        supports_check_mode=True,
    )
    try:
        if not 1 <= module.params["concurrency"] <= 64:
            raise InvalidDocument(f"is {module.params['concurrency']}", path="concurrency", hint="from 1 to 64")
        answer = Pass(module).run()
    except FleetError as error:
        module.fail_json(**error.as_result())
    decision, results = answer["decision"], answer["results"]
    failures = outcome.failures(decision, results)
    if module._diff:
        answer["diff"] = request.differences(results)
    for each in results:
        each.pop("diff", None)
    answer.update(
        msg=outcome.line(decision, results, module.check_mode, module.params["mode"]),
        summary=outcome.lines(decision, results, answer["unparsed"]),
        changed=any(each["changed"] for each in results),
        gated=outcome.nodes_of(results, outcome.SHUT),
        tripped=decision["breaker"]["tripped"],
        failures=failures,
    )
    if set(failures) & set(module.params["fail_on"]):
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
