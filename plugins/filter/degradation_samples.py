# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: degradation_samples
short_description: Read counters of GPUs, NVLinks and NICs out of what tools say, for a history
version_added: 1.1.0
description:
  - Takes the outputs of C(nvidia-smi -q -x), of C(nvidia-smi nvlink -e) and C(nvlink -s), and of C(grep -H) over the
    counters in C(/sys/class/infiniband), and gives lines as M(goodput.fleet.node_degradation_info) takes them.
  - What a tool does not tell is left out. Temperatures are taken where a GPU is busy and near its power limit only, and
    clocks where it is busy and not held down by its power limit.
options:
  _input:
    description: The outputs, by the names V(nvidia_smi), V(nvlink) and V(ports). Each may be missing or empty.
    type: dict
    required: true
  node:
    description: Name of the node.
    type: str
    required: true
  boot_id:
    description: Its boot id. Counters of different boots are not compared.
    type: str
    default: ''
  at:
    description: When the outputs were made, in UTC, such as V(2026-11-29T12:00:00Z).
    type: str
    required: true
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Ask the driver
  ansible.builtin.command: nvidia-smi -q -x
  register: nvidia_smi
  changed_when: false

- name: What is measured?
  ansible.builtin.debug:
    msg: "{{ {'nvidia_smi': nvidia_smi.stdout} | goodput.fleet.degradation_samples(
      node=inventory_hostname, at=now(utc=true, fmt='%Y-%m-%dT%H:%M:%SZ')) }}"
"""

RETURN = r"""
_value:
  description: What was measured.
  type: dict
  contains:
    lines:
      description: Lines of a history, each with C(node), C(bootId), C(at), C(entity) and C(values).
      type: list
      elements: dict
    unreadable:
      description: Which output could not be read, and why.
      type: list
      elements: str
"""

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import collected
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.series import seconds
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.signals import xmltree
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded

READERS = {
    "nvidia_smi": lambda text: collected.of_gpus(xmltree.read(text[text.find("<?xml") if "<?xml" in text else 0 :])),
    "nvlink": collected.of_links,
    "ports": collected.of_ports,
}


@guarded
def degradation_samples(value, node, at, boot_id=""):
    if not isinstance(value, dict):
        raise TypeError(f"takes a map of outputs, such as {', '.join(READERS)}")
    if not isinstance(at, str) or seconds(at) is None:
        raise ValueError(f"at: {at!r} is no time with a zone")
    found, unreadable = [], []
    for name, text in value.items():
        if name not in READERS:
            raise ValueError(f"{name}: no known output; {nearest(name, READERS)}")
        if not text:
            continue
        if not isinstance(text, str):
            raise TypeError(f"{name}: is no text")
        try:
            found.append(READERS[name](text))
        except InvalidDocument as error:
            unreadable.append(f"{name}: {error}")
    return {"lines": collected.lines(node, boot_id or "", at, found), "unreadable": unreadable}


class FilterModule:
    def filters(self):
        return {"degradation_samples": degradation_samples}
