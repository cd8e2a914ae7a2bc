# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_dcgm_diag
short_description: Read the output of a DCGM diagnostic
version_added: 1.1.0
description:
  - Takes the output of C(dcgmi diag) of DCGM 2, 3 and 4, as JSON or as tables, and of C(dcgmi mndiag).
  - Text around the JSON, tables that end in the middle, and the marks that launchers put before lines do no harm.
  - A skipped test is not passed. A test that fails while all of its GPUs pass is the tool's fault, a missing fabric
    manager is one fault of a service, and DCGM's category and severity of an error tell hardware, configuration and
    tool apart.
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
    description:
      - Tests that must have run, by the names of DCGM 4 such as V(memory), or by their titles.
      - A missing or skipped one is an error.
    type: list
    elements: str
  exit_code:
    description:
      - How C(dcgmi) ended, as V(226) for its return code -30.
      - Explains a failure, and is one where all tests pass; V(0) says nothing.
    type: int
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Run the diagnostic of level 2
  ansible.builtin.command: dcgmi diag -r 2 -j
  register: diagnostic
  changed_when: false
  failed_when: false

- name: What is wrong with the node?
  ansible.builtin.debug:
    msg: "{{ found.findings | map(attribute='message') | list }}"
  vars:
    found: "{{ diagnostic.stdout | goodput.fleet.parse_dcgm_diag(expected_gpus=8, exit_code=diagnostic.rc) }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    tool:
      description: V(dcgm-diag).
      type: str
    toolVersion:
      description: The tool's version, none where it prints none.
      type: str
    complete:
      description: There is a diagnostic, and every one ends as a finished one does.
      type: bool
    runs:
      description:
        - The diagnostics in their order, each with C(test), C(format), C(generation), C(level), C(driver), C(tests),
          C(gpus), C(devices), C(hosts), C(measurements) and C(metrics).
        - The C(status) of a test and of its results is V(pass), V(fail), V(warn), V(skip), V(not_run) or V(unknown).
        - C(metrics) holds the least and the most of each number over the GPUs, such as
          C(pcie.gpu_to_host_bandwidth.min).
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

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import dcgm_diag
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_dcgm_diag(value, expected_gpus=None, expected_tests=None, exit_code=None):
    return dcgm_diag.parse(value, expected_gpus=expected_gpus, expected_tests=expected_tests, exit_code=exit_code)


class FilterModule:
    def filters(self):
        return {"parse_dcgm_diag": parse_dcgm_diag}
