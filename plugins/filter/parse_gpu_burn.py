# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_gpu_burn
short_description: Read the output of gpu_burn
version_added: 1.1.0
description:
  - Takes the output of gpu_burn with its progress line, which is written over and over, and the verdicts at the end.
  - Neither the exit status nor a final C(OK) decides. A GPU without one finished round of work is a finding, and so is
    every counted error.
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
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Burn for ten minutes
  ansible.builtin.command: gpu_burn 600
  register: burn
  changed_when: false

- name: Every GPU worked and made no mistake
  ansible.builtin.assert:
    that: found.complete and not found.findings
    fail_msg: "{{ found.findings | map(attribute='message') | join('; ') }}"
  vars:
    found: "{{ burn.stdout | goodput.fleet.parse_gpu_burn(expected_gpus=8) }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    tool:
      description: V(gpu-burn).
      type: str
    toolVersion:
      description: The tool's version, none where it prints none.
      type: str
    complete:
      description: There is a burn, and every one ends with its verdicts.
      type: bool
    runs:
      description:
        - The burns in their order, each with C(test), C(seconds), C(percent), C(precision), C(gpus), C(hosts) and
          C(metrics).
        - A GPU has C(gpu), C(name), C(uuid), C(verdict), C(died), C(iterations), C(gflops), C(errors),
          C(errorsOverflow) and C(temperature).
        - C(metrics) holds C(gflopsPerGpu.min), C(gflopsPerGpu.mean), C(iterations.min), C(errors.sum) and
          C(temperature.max), where they are known.
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

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import gpu_burn
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_gpu_burn(value, expected_gpus=None):
    return gpu_burn.parse(value, expected_gpus=expected_gpus)


class FilterModule:
    def filters(self):
        return {"parse_gpu_burn": parse_gpu_burn}
