# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_node_conditions
short_description: Read what the conditions of Kubernetes nodes say about their health
version_added: 1.1.0
description:
  - Gives each condition of a node as a HealthEvent. Knows those of Kubernetes, of node-problem-detector, of AKS, GKE
    and the EKS node monitoring agent, and of NVSentinel, whose messages hold a list of errors.
  - Which status means sick is the catalogue's, condition by condition. A condition that is not in it becomes a warning
    with the state V(unknown). A status V(Unknown) is the state V(unknown); neither is ever fatal.
  - Xids in conditions have the meaning of the Xid, whatever the condition is called.
options:
  _input:
    description:
      - Nodes, as data or as JSON or YAML - one, a list, or what C(kubectl get nodes -o json) and
        M(kubernetes.core.k8s_info) give - or only their conditions.
      - Or the text of C(kubectl describe node).
    type: raw
    required: true
  node:
    description: The node the conditions are of, where the input does not tell.
    type: str
  boot_id:
    description: The node's current boot id, where the input does not tell.
    type: str
  received:
    description: When the input was read, in UTC, such as V(2026-03-06T09:34:56Z).
    type: str
  source:
    description: Name of the input in the events.
    type: str
    default: node conditions
  catalog:
    description:
      - Directories of the catalogue's layers, in order; their C(signals/*.yaml) say what conditions mean.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Read the nodes
  kubernetes.core.k8s_info:
    kind: Node
    label_selectors: [nvidia.com/gpu.present=true]
  register: nodes

- name: Which conditions are fatal?
  ansible.builtin.debug:
    msg: "{{ found.events | selectattr('spec.isFatal') | map(attribute='spec.message') | list }}"
  vars:
    found: "{{ nodes.resources | goodput.fleet.parse_node_conditions }}"
"""

RETURN = r"""
_value:
  description: What the input holds.
  type: dict
  contains:
    events:
      description: HealthEvent documents, in the order of the input, healthy ones too.
      type: list
      elements: dict
    unparsed:
      description:
        - What is no condition of a node. Each has C(line), C(text) and C(reason).
        - The first 1,000 of them.
      type: list
      elements: dict
    unparsedTotal:
      description: How many such there are.
      type: int
    lines:
      description: How many lines the input has, V(0) where it is data.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.signals import conditions, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_node_conditions(value, node=None, boot_id=None, received=None, source="node conditions", catalog=None):
    return conditions.parse(
        value,
        tables=tables.load_catalog(with_shipped(catalog)),
        node=node or "",
        boot_id=boot_id or None,
        received=received or None,
        source_name=source or "",
    )


class FilterModule:
    def filters(self):
        return {"parse_node_conditions": parse_node_conditions}
