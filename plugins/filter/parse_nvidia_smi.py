# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_nvidia_smi
short_description: Read GPU faults out of nvidia-smi
version_added: 1.1.0
description:
  - Takes what C(nvidia-smi -q -x) printed and gives what is wrong with each GPU as a HealthEvent. That is memory
    errors, retired pages and remapped rows, the recovery action of the driver, slowed-down clocks, PCIe links below
    what slot and GPU can, temperature limits, the state of the NVLink fabric, and GPUs that are lost or missing.
  - The form without C(-x) and sections of it, such as of C(nvidia-smi -q -d ECC,ROW_REMAPPER), are read too.
  - A reading that a GPU does not have (V(N/A)) says nothing; it is not zero.
  - Where the driver cannot be asked or the output breaks off, the event has the state V(unknown).
options:
  _input:
    description: The output, as one text or as a list of lines, errors included.
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
    default: nvidia-smi
  expected_gpus:
    description: How many GPUs the node has. Fewer is a fault, none at all too.
    type: int
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
- name: Ask the driver
  ansible.builtin.command: nvidia-smi -q -x
  register: nvidia_smi
  changed_when: false
  failed_when: false

- name: What is wrong?
  ansible.builtin.debug:
    msg: "{{ found.events | map(attribute='spec.message') | list }}"
  vars:
    output: "{{ nvidia_smi.stdout ~ nvidia_smi.stderr }}"
    found: "{{ output | goodput.fleet.parse_nvidia_smi(node=inventory_hostname, expected_gpus=8) }}"
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
    gpus:
      description: The GPUs with their readings, in the order of the output.
      type: list
      elements: dict
    driver_version:
      description: Version of the driver; empty where it is not told.
      type: str
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.signals import nvidia_smi, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_nvidia_smi(
    value,
    node=None,
    boot_id=None,
    received=None,
    source="nvidia-smi",
    expected_gpus=None,
    catalog=None,
):
    return nvidia_smi.parse(
        value,
        tables.load_catalog(with_shipped(catalog)),
        node=node or "",
        boot_id=boot_id or None,
        received=received or None,
        source_name=source or "",
        expected_gpus=expected_gpus,
    )


class FilterModule:
    def filters(self):
        return {"parse_nvidia_smi": parse_nvidia_smi}
