#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_gate_info
short_description: Tell which Kubernetes nodes are open, and who holds those that are not
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Lists the gates of this collection on nodes, and everything by which others hold them, such as cordons of people,
    foreign taints, and the marks of NVSentinel, the GPU operator, Cluster Autoscaler, Karpenter, kured and others.
  - Tells where somebody took a gate's taint off or lifted its cordon, and which annotations cannot be read.
  - Reads only; C(get) and C(list) on nodes are enough.
options:
  nodes:
    description: Names of the nodes. The default is all nodes.
    type: list
    elements: str
  selector:
    description: Labels of the nodes, as C(kubectl -l) takes them.
    type: str
  only:
    description:
      - V(gated) gives nodes with a gate of this collection, V(closed) those that are held by anybody, V(open) the
        others.
      - RV(counts) is about all nodes that were looked at.
    type: str
    choices: [all, gated, closed, open]
    default: all
  owner:
    description: Only nodes with a gate of this owner.
    type: str
  pool_taints:
    description:
      - Keys of taints, as globs, that reserve pools of the site's for their workloads and therefore close no node.
      - V(nvidia.com/gpu), V(dedicated), V(sku) and C(node-role.kubernetes.io/*) are among those known already.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
seealso:
  - module: goodput.fleet.node_gate
"""

EXAMPLES = r"""
- name: Which nodes are closed, and by whom?
  goodput.fleet.node_gate_info:
    only: closed
  register: closed

- name: Show it
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.gates | map(attribute='owner') | join(', ') }}"
  loop: "{{ closed.nodes }}"
  loop_control:
    label: "{{ item.name }}"

- name: Everything that quarantine holds in one rack
  goodput.fleet.node_gate_info:
    selector: goodput.fleet/rack=rack-07
    owner: quarantine
"""

RETURN = r"""
nodes:
  description: The nodes, by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the node.
      type: str
      returned: always
      sample: gpu-0007
    open:
      description: Whether it has no gate and nobody else holds it.
      type: bool
      returned: always
      sample: false
    ready:
      description: Status of its condition C(Ready), V(True), V(False) or V(Unknown).
      type: str
      returned: always
      sample: 'True'
    unschedulable:
      description: Whether it is cordoned, by whomever.
      type: bool
      returned: always
      sample: false
    bootId:
      description: The boot that it is in.
      type: str
      returned: always
      sample: 1b4e28ba-2fa1-41d2-883f-0016d3cca427
    gates:
      description:
        - Its gates. C(missing) lists what of a gate somebody took off, V(taint) or V(cordon). A gate that cannot be
          read has C(readable) V(false) and a C(problem). C(fault), C(action) and C(entity) are what is broken, what is
          recommended, and the GPU, where health signals told.
      type: list
      elements: dict
      returned: always
      sample:
        - owner: quarantine
          reason: Xid 79, the GPU fell off the bus
          rule: gpu-fatal
          ruleDigest: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
          evidence: 9f86d081884c7d65
          fault: xid-79
          action: RESTART_BM
          entity: 0000:0f:00
          since: '2026-11-29T12:00:00Z'
          bootId: 1b4e28ba-2fa1-41d2-883f-0016d3cca427
          cordon: false
          cordonOurs: false
          taint: {key: nvidia.com/gpu-error, value: fatal, effect: NoSchedule}
          taintOurs: true
          readable: true
          missing: []
    external:
      description:
        - Who else holds it. C(kind) is V(cordon), V(taint), V(system), V(pool), V(annotation) or V(label). Entries with
          C(holds) V(false) are told only, such as marks that a tool left behind.
      type: list
      elements: dict
      returned: always
      sample:
        - kind: label
          key: dgxc.nvidia.com/nvsentinel-state
          value: quarantined
          detail: NVSentinel's state is quarantined
          holds: true
counts:
  description: Of all nodes that were looked at, how many are open, have a gate, are held by others, are not ready.
  returned: success
  type: dict
  sample: {nodes: 1000, open: 990, gated: 8, external: 3, notReady: 1}
owners:
  description: Number of gates by owner.
  returned: success
  type: dict
  sample: {quarantine: 7, maintenance: 1}
missing:
  description: Names out of O(nodes) for which there is no node.
  returned: success
  type: list
  elements: str
  sample: []
problems:
  description: Everything that is wrong with the input.
  returned: when the input was bad
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes, report
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "nodes": {"type": "list", "elements": "str"},
            "selector": {"type": "str"},
            "only": {"type": "str", "choices": ["all", "gated", "closed", "open"], "default": "all"},
            "owner": {"type": "str"},
            "pool_taints": {"type": "list", "elements": "str", "default": []},
        },
        mutually_exclusive=[("nodes", "selector")],
        supports_check_mode=True,
    )
    params = module.params
    try:
        client = connect(params, module.no_log_values)
        nodes = kubernetes.find_nodes(client, params["nodes"], params["selector"])
    except FleetError as error:
        module.fail_json(**error.as_result())
    found = report.describe(nodes.values(), params["pool_taints"])
    result = {"counts": report.counts(found), "owners": report.owners(found)}
    result["missing"] = sorted(set(params["nodes"] or ()) - set(nodes))
    if result["missing"]:
        module.warn("there is no such node: " + ", ".join(result["missing"][:20]))
    result["nodes"] = report.only(found, params["only"], params["owner"])
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
