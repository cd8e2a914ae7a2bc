# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_perftest
short_description: Read the output of ib_write_bw and the other tests of perftest
version_added: 1.1.0
description:
  - Reads the tables of C(ib_write_bw), C(ib_read_bw), C(ib_send_bw), C(ib_atomic_bw) and of C(ib_*_lat), of the
    client, the server or both.
  - Columns are told by the table's header, in whatever unit; bandwidth is given in Gb/s.
  - States what needs no threshold, such as a run that broke off, a peer that does not answer, and a test from a
    port to itself.
options:
  _input:
    description: The output, as one text or as a list of lines.
    type: raw
    required: true
  expected_device:
    description: The network adapter that had to be used, such as V(mlx5_0).
    type: str
  expected_link:
    description: The kind of link, V(IB) or V(Ethernet).
    type: str
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Write to a peer through one adapter
  ansible.builtin.command: ib_write_bw -d mlx5_0 --report_gbits -s 8388608 {{ peer }}
  register: write
  changed_when: false
  failed_when: false

- name: Bandwidth in Gb/s
  ansible.builtin.debug:
    msg: "{{ result.runs[0].metrics.bandwidthAverageGbps.value }}"
  vars:
    result: "{{ write.stdout | goodput.fleet.parse_perftest(expected_device='mlx5_0') }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    tool:
      description: V(perftest).
      type: str
    toolVersion:
      description: None, as the tests print no version.
      type: str
    complete:
      description: There is a run, and every run ends as a finished one does.
      type: bool
    runs:
      description:
        - The runs in their order, each with C(test), C(role), C(bidirectional), C(loopback), C(facts), C(rows) and
          C(metrics).
        - C(metrics) holds C(bandwidthAverageGbps), C(bandwidthPeakGbps) and C(messageRateMpps), or
          C(latencyTypicalUs), C(latencyAverageUs), C(latencyP99Us) and others, each with C(value) and C(unit). What
          was not measured is absent.
        - Of a bidirectional test the bandwidth is that of both directions together.
      type: list
      elements: dict
    findings:
      description:
        - What is wrong, each with C(code), C(severity), C(scope), C(host), C(entity), C(message), C(line), C(text)
          and C(category).
      type: list
      elements: dict
    findingsTotal:
      description: How many findings there are.
      type: int
    unparsed:
      description: Lines that look like the tool's and cannot be read, each with C(line), C(text) and C(reason).
      type: list
      elements: dict
    unparsedTotal:
      description: How many such lines there are.
      type: int
    lines:
      description: How many lines the output has.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import perftest
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_perftest(value, expected_device=None, expected_link=None):
    return perftest.parse(value, expected_device=expected_device, expected_link=expected_link)


class FilterModule:
    def filters(self):
        return {"parse_perftest": parse_perftest}
