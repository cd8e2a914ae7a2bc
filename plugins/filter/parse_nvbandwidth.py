# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_nvbandwidth
short_description: Read the output of nvbandwidth
version_added: 1.1.0
description:
  - Takes the text and the JSON (C(-j)) of nvbandwidth, also with other text around it.
  - Gives every measured pair. Cells without a value, and a GPU's cell for itself, count for nothing.
  - A waived test is not passed.
options:
  _input:
    description: The output, as one text or as a list of lines.
    type: raw
    required: true
  expected_gpus:
    description:
      - How many GPUs each node has, or a list of their numbers.
      - A missing one is a finding, and so is an output that does not tell.
    type: raw
  expected_tests:
    description: Tests that must have been measured, such as V(device_to_device_memcpy_read_ce).
    type: list
    elements: str
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Measure the copies between host and GPUs
  ansible.builtin.command: nvbandwidth -t host_to_device_memcpy_ce
  register: copies
  changed_when: false

- name: The slowest pair
  ansible.builtin.debug:
    msg: "{{ found.runs[0].metrics['host_to_device_memcpy_ce.min'].value }} GB/s"
  vars:
    found: "{{ copies.stdout | goodput.fleet.parse_nvbandwidth(expected_gpus=8) }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    tool:
      description: V(nvbandwidth).
      type: str
    toolVersion:
      description: The tool's version, none where it prints none.
      type: str
    complete:
      description: There is a report, and every one ends as a finished one does.
      type: bool
    runs:
      description:
        - The reports in their order, each with C(test), C(format), C(driver), C(devices), C(tests), C(rows), C(gpus),
          C(hosts) and C(metrics).
        - C(rows) are the measured pairs, with C(test), C(source), C(target), C(value) and C(unit).
        - C(metrics) holds the C(min), C(max), C(mean) and C(sum) of each test's pairs, such as
          C(host_to_device_memcpy_ce.min).
      type: list
      elements: dict
    findings:
      description:
        - What is wrong without any threshold, each with C(code), C(severity), C(scope), C(host), C(entity),
          C(message), C(line), C(text) and C(category).
        - The first 1,000 of them.
      type: list
      elements: dict
    findingsTotal:
      description: How many findings there are.
      type: int
    unparsed:
      description: Lines that do not belong to the tool's output, each with C(line), C(text) and C(reason).
      type: list
      elements: dict
    unparsedTotal:
      description: How many such lines there are.
      type: int
    lines:
      description: How many lines the output has.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nvbandwidth
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_nvbandwidth(value, expected_gpus=None, expected_tests=None):
    return nvbandwidth.parse(value, expected_gpus=expected_gpus, expected_tests=expected_tests)


class FilterModule:
    def filters(self):
        return {"parse_nvbandwidth": parse_nvbandwidth}
