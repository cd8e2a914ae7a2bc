# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_dcgm_health
short_description: Read GPU faults out of the health report of DCGM
version_added: 1.1.0
description:
  - Takes what C(dcgmi health -c) printed, with or without C(-j), of DCGM 2 to 4, and gives each error of each GPU,
    NVSwitch, CPU or ConnectX as a HealthEvent.
  - An Xid that DCGM reports has the meaning of the Xid. Errors of a watch that only warns are never fatal.
  - Where DCGM cannot be reached, does not watch, or its report breaks off, the event has the state V(unknown).
options:
  _input:
    description: The output, as one text or as a list of lines, or its JSON as data.
    type: raw
    required: true
  node:
    description: The node the output is of.
    type: str
  boot_id:
    description: The id of the node's current boot.
    type: str
  received:
    description: When the output was taken, in UTC, such as V(2026-03-06T09:34:56Z).
    type: str
  source:
    description: Name of the output in the events.
    type: str
    default: dcgmi health
  expected_gpus:
    description:
      - How many GPUs the node has. The report does not tell how many DCGM sees, so this counts where the output of
        C(dcgmi discovery -l) stands beside it.
    type: int
  index_to_uuid:
    description: UUIDs of the GPUs by DCGM's number, where the output of C(dcgmi discovery -l) is not there.
    type: dict
    default: {}
  catalog:
    description:
      - Directories of the catalogue's layers, in order; their C(signals/*.yaml) say what codes mean.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Ask DCGM
  ansible.builtin.shell: dcgmi discovery -l; dcgmi health -c -j
  register: dcgm
  changed_when: false
  failed_when: false

- name: Which faults does it report?
  ansible.builtin.debug:
    msg: "{{ found.events | map(attribute='spec.message') | list }}"
  vars:
    found: "{{ dcgm.stdout | goodput.fleet.parse_dcgm_health(node=inventory_hostname, expected_gpus=8) }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    events:
      description: HealthEvent documents.
      type: list
      elements: dict
    unparsed:
      description: What cannot be read, each with C(line), C(text) and C(reason); the first 1,000.
      type: list
      elements: dict
    unparsedTotal:
      description: How many of them there are.
      type: int
    lines:
      description: How many lines the output has.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.signals import dcgm_health, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_dcgm_health(
    value,
    node=None,
    boot_id=None,
    received=None,
    source="dcgmi health",
    expected_gpus=None,
    index_to_uuid=None,
    catalog=None,
):
    return dcgm_health.parse(
        value,
        tables.load_catalog(with_shipped(catalog)),
        node=node or "",
        boot_id=boot_id or None,
        received=received or None,
        source_name=source or "",
        expected_gpus=expected_gpus,
        index_to_uuid=index_to_uuid or {},
    )


class FilterModule:
    def filters(self):
        return {"parse_dcgm_health": parse_dcgm_health}
