# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_dcgm_policy
short_description: Read the violations that the policy listener of DCGM printed
version_added: 1.1.0
description:
  - Takes what C(dcgmi policy --reg) printed so far and gives each violation as a HealthEvent, with its figures as
    metadata.
  - A violation by an Xid has the meaning of the Xid.
  - A listener that lost its connection gives an event with the state V(unknown).
  - Settings, as C(dcgmi policy --get) prints them, hold no violation.
options:
  _input:
    description: The output, as one text or as a list of lines, or violations as data.
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
    default: dcgmi policy
  utc_offset:
    description: Where the node's clock stands; the listener prints local times.
    type: str
    default: "+00:00"
  index_to_uuid:
    description: UUIDs of the GPUs by DCGM's number, which is all that DCGM prints.
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
- name: Read what the listener wrote into its file
  ansible.builtin.slurp:
    src: /var/log/dcgm-policy.log
  register: listener

- name: Which policies were violated?
  ansible.builtin.debug:
    msg: "{{ found.events | map(attribute='spec.message') | list }}"
  vars:
    found: "{{ listener.content | b64decode | goodput.fleet.parse_dcgm_policy(node=inventory_hostname) }}"
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
from ansible_collections.goodput.fleet.plugins.module_utils.signals import dcgm_policy, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_dcgm_policy(
    value,
    node=None,
    boot_id=None,
    received=None,
    source="dcgmi policy",
    utc_offset="+00:00",
    index_to_uuid=None,
    catalog=None,
):
    return dcgm_policy.parse(
        value,
        tables.load_catalog(with_shipped(catalog)),
        node=node or "",
        boot_id=boot_id or None,
        received=received or None,
        source_name=source or "",
        utc_offset=utc_offset or "+00:00",
        index_to_uuid=index_to_uuid or {},
    )


class FilterModule:
    def filters(self):
        return {"parse_dcgm_policy": parse_dcgm_policy}
