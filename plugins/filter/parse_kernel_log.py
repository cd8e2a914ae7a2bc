# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_kernel_log
short_description: Read GPU and NIC faults out of a kernel log
version_added: 1.0.0
description:
  - Finds Xid and SXid messages of the NVIDIA drivers, GPUs that fell off the bus, faults of network drivers, and resets
    of GPUs that a job acknowledged, and gives each as a HealthEvent.
  - Takes the output of C(dmesg) in any of its forms, C(journalctl) as text or C(-o json), C(/dev/kmsg), syslog files,
    pstore records and Talos logs, also mixed.
  - Repeats of one fault within three minutes are one event with a count.
  - Lines that another process than the kernel wrote do not count, where the log tells.
options:
  _input:
    description: The log, as one text or as a list of lines.
    type: raw
    required: true
  node:
    description:
      - The node the log is of.
      - Without it, the host that each line names.
    type: str
  boot_id:
    description:
      - The node's current boot id.
      - What the log holds of earlier boots gets V(before:) and this id.
    type: str
  received:
    description:
      - When the log was read, in UTC, such as V(2026-03-06T09:34:56Z).
      - Also tells the year of syslog times, which have none.
    type: str
  boot_time:
    description: When the node's current boot began; gives messages that only tell the seconds since then a time.
    type: str
  utc_offset:
    description: Where the log's clock stands, for times without a zone.
    type: str
    default: "+00:00"
  pci_to_uuid:
    description: UUIDs of the GPUs by PCI address, where the log does not tell.
    type: dict
    default: {}
  driver_version:
    description: Version of the GPU driver, where the log does not tell; NVLink messages changed with 575.
    type: str
  source:
    description: Name of the log in the events.
    type: str
    default: kernel log
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
- name: Read the kernel's messages
  ansible.builtin.command: dmesg --time-format=iso
  register: kernel_messages
  changed_when: false
  become: true

- name: Read the id of the boot they are from
  ansible.builtin.command: cat /proc/sys/kernel/random/boot_id
  register: boot
  changed_when: false

- name: Which faults does the node report?
  ansible.builtin.debug:
    msg: "{{ found.events | map(attribute='spec.message') | list }}"
  vars:
    found: "{{ kernel_messages.stdout | goodput.fleet.parse_kernel_log(node=inventory_hostname, boot_id=boot.stdout) }}"
"""

RETURN = r"""
_value:
  description: What the log holds.
  type: dict
  contains:
    events:
      description: HealthEvent documents, in the order of the log.
      type: list
      elements: dict
    unparsed:
      description:
        - Lines that look like a fault and cannot be read, each with C(line), C(text) and C(reason).
        - The first 1,000 of them.
      type: list
      elements: dict
    unparsedTotal:
      description: How many such lines there are.
      type: int
    ignored:
      description: How many lines were left out, by reason.
      type: dict
    lines:
      description: How many lines the log has.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_kernel_log(
    value,
    node=None,
    boot_id=None,
    received=None,
    boot_time=None,
    utc_offset="+00:00",
    pci_to_uuid=None,
    driver_version=None,
    source="kernel log",
    catalog=None,
):
    if not isinstance(value, (bytes, str, list)) or (
        isinstance(value, list) and not all(isinstance(line, str) for line in value)
    ):
        raise TypeError(f"takes a text or a list of lines, not {type(value).__name__}")
    context = kernel.Context(
        node=node or "",
        boot_id=boot_id or None,
        received=received or None,
        boot_time=boot_time or None,
        utc_offset=utc_offset or "+00:00",
        pci_to_uuid=pci_to_uuid or {},
        driver_version=driver_version or None,
        source=source or "",
    )
    return kernel.parse(value, tables.load_catalog(with_shipped(catalog)), context)


class FilterModule:
    def filters(self):
        return {"parse_kernel_log": parse_kernel_log}
