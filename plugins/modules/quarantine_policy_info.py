#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: quarantine_policy_info
short_description: Check a quarantine policy, and try it on recorded events
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Checks a C(QuarantinePolicy), with the place of every error down to line and column of a rule's expression, and
    lists its rules.
  - With O(events) it also tells what the policy would have done with them, as if every rule had been enforced; which
    nodes it would have gated, when, by which rule, and when its circuit breaker would have tripped.
  - Needs no cluster and writes nothing.
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
options:
  policy:
    description:
      - A C(QuarantinePolicy), as the path of a file, as a dictionary, or as the name of one that this collection ships
        (V(default), V(gpu-health-monitor)).
    type: raw
    default: default
  events:
    description:
      - Recorded health events; a path, a list of paths, or a list of C(HealthEvent) documents. NVSentinel's form is
        understood as well.
      - A directory stands for all its files C(*.json), C(*.jsonl), C(*.yaml) and C(*.yml), or for the
        C(events-DATE.jsonl) that M(goodput.fleet.node_quarantine) keeps.
    type: raw
  nodes:
    description:
      - The inventory that the breaker's percentages are of; a path or data. A C(Snapshot), the output of C(kubectl get
        nodes -o json), or a list of node names or facts.
      - Without it, the nodes that the events name are taken for all there are.
    type: raw
  step:
    description:
      - How often the policy looks at the events, such as V(5m). Short steps take long.
      - The default is a two-thousandth of the recording, at least a minute.
    type: str
  repair:
    description: How long a gated node is out, after which a new event may gate it again.
    type: str
    default: 4h
  catalog:
    description:
      - Directories of the catalogue's layers, in order; their C(signals/*.yaml) say what the codes of others' events
        mean. The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: str
    default: [shipped]
notes:
  - "A rule's expression is CEL, with the extensions for strings, optional values, math and bindings. It must be true or
    false. Every field below is always there; one that an event does not tell is empty."
  - "C(event) has name, nodeName, agent, componentClass, checkName, isFatal, isHealthy, state, severity, errorCode (a
    list of texts), codeSpace, class, entitiesImpacted (a list of maps with entityType and entityValue), message,
    recommendedAction, generatedTimestamp and receivedTimestamp (timestamps), bootId, cause, source and metadata (a map
    of texts). Where the driver has said what the GPU needs (Xid 154, NVML), isFatal and recommendedAction are that."
  - "C(node) has name, labels, annotations, taints (a list of maps with key, value and effect), unschedulable, ready
    (V(True), V(False) or V(Unknown)), bootId, providerId, conditions (a map of maps with status, reason and message),
    gates (the owners of those that are closed) and external (what others hold the node with)."
  - "C(domain) has name, nodes, gated and sick (numbers of nodes). C(history) has sameCode24h and sameNode24h (reports
    of this node), and gates30d. C(now) is a timestamp."
  - "A key that a map lacks, as in C(event.metadata.slot), leaves the rule undecided for that event. Ask first, with
    C(has(event.metadata.slot)) or C('slot' in event.metadata)."
  - "Events of the classes V(application) and V(consequence) gate nothing, whatever a rule says of them, unless the rule
    names the class in its C(classes)."
requirements:
  - cel-expr-python 0.1.3, jsonschema, PyYAML (Python packages)
seealso:
  - module: goodput.fleet.node_quarantine
"""

EXAMPLES = r"""
- name: Is the policy good?
  goodput.fleet.quarantine_policy_info:
    policy: policies/prod.yaml

- name: What would it have done last month?
  goodput.fleet.quarantine_policy_info:
    policy: policies/prod.yaml
    events: /var/lib/goodput
    nodes: snapshots/prod-1.json
  register: tried

- name: Say so
  ansible.builtin.debug:
    msg: "{{ tried.backtest.summary }}"

- name: Never enforce a policy that would have tripped its breaker
  ansible.builtin.assert:
    that: tried.backtest.trips | length == 0
"""

RETURN = r"""
name:
  description: Name of the policy.
  returned: when the policy is good
  type: str
  sample: default
digest:
  description: Digest of the policy's spec.
  returned: when the policy is good
  type: str
  sample: sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
mode:
  description: Highest mode of any rule.
  returned: when the policy is good
  type: str
  sample: observe
rules:
  description: The rules in the order in which they are asked. C(mode) is what the policy's mode leaves of it.
  returned: when the policy is good
  type: list
  elements: dict
  sample:
    - name: xid-fatal
      mode: observe
      priority: 80
      owner: quarantine
      taint: {key: gate.goodput.fleet/quarantine, value: xid-fatal, effect: NoSchedule}
      cordon: false
      digest: sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
      expression: event.isFatal && event.codeSpace == 'xid'
breaker:
  description: The breaker's bounds and its window in seconds.
  returned: when the policy is good
  type: dict
  sample: {window: 3600, fleet: {max: 20, percent: 5}, domain: {max: 2, percent: 50}, labels: [nvidia.com/gpu.clique]}
backtest:
  description:
    - What the policy would have done. Its C(timeline) has one entry for each gate (C(at), C(node), C(domain), C(owner),
      C(rule), C(reason), C(evidence), C(code)), C(trips) one for each time that the breaker was open, C(byRule) the
      gates and nodes of each rule, C(unknown) what could not be decided, C(ignored) what never counted.
    - C(summary) says it in lines for people, RV(backtest.days) over how many days.
  returned: when events were given
  type: dict
  contains:
    days:
      description: Days from the first event to the last.
      type: float
      returned: always
      sample: 30.0
    wouldGate:
      description: How many gates would have been closed.
      type: int
      returned: always
      sample: 17
    gatedNodes:
      description: On how many nodes.
      type: int
      returned: always
      sample: 14
    timeline:
      description: The gates in order of time.
      type: list
      elements: dict
      returned: always
      sample: [{at: "2026-11-03T08:12:00Z", node: gpu-0007, rule: xid-fatal, code: Xid 79}]
    trips:
      description: When the breaker would have been open, in which scope, and which nodes it would have kept back.
      type: list
      elements: dict
      returned: always
      sample: [{at: "2026-11-09T02:00:00Z", scope: fleet, used: 14, bound: 14, nodes: [gpu-0120]}]
    summary:
      description: All of it in lines for people.
      type: list
      elements: str
      returned: always
      sample: ["default: 31877 events over 30 days, 288 nodes: 17 gates on 14 nodes, 0.6 a day"]
unparsed:
  description: What looked like an event and could not be read, with its source and line.
  returned: when events were given
  type: list
  elements: dict
  sample: [{source: events.jsonl, line: 12, reason: is not JSON}]
problems:
  description: Everything that is wrong with the input.
  returned: when the input was bad
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import node_facts
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import backtest, inventory, moments, policy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.signals import given, recordings, tables


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "policy": {"type": "raw", "default": "default"},
            "events": {"type": "raw"},
            "nodes": {"type": "raw"},
            "step": {"type": "str"},
            "repair": {"type": "str", "default": "4h"},
            "catalog": {"type": "list", "elements": "str", "default": ["shipped"]},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        rules = policy.load(params["policy"])
        answer = policy.describe(rules)
        if params["events"] is not None:
            answer.update(replay(rules, params))
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, **answer)


def replay(rules: policy.Policy, params: dict) -> dict:
    known = tables.load_catalog(params["catalog"])
    events, unparsed = recordings.read(
        params["events"], lambda data, name: given.parse(data, tables=known, source_name=name)
    )
    nodes = params["nodes"]
    found = inventory.of_events(events) if nodes is None else inventory.load(nodes, node_facts)
    step = moments.duration(params["step"], "step") if params["step"] else None
    result = backtest.backtest(rules, events, found, step=step, repair=moments.duration(params["repair"], "repair"))
    result["summary"] = backtest.summary(result, assumed=nodes is None).splitlines()
    return {"backtest": result, "unparsed": unparsed}


if __name__ == "__main__":
    main()
