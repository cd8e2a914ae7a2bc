# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_nccl
short_description: Read the output of nccl-tests or rccl-tests
version_added: 1.1.0
description:
  - Reads what C(all_reduce_perf) and its siblings print, in the tables of all versions, and the report of their
    C(-J) option.
  - Columns are told by the table's header. The average at the end, which mixes all sizes, is reported and never used.
  - States what needs no threshold, such as wrong values, ranks that are not joined, a run that broke off, TCP where
    RDMA was expected, and why a run did not start.
  - Takes logs of mpirun, srun, kubectl and others with their prefixes, with lines of NCCL and other programs
    between the rows.
options:
  _input:
    description: The output, as one text or as a list of lines; or the document of C(-J).
    type: raw
    required: true
  expected_ranks:
    description:
      - How many ranks were launched. Another number, or none that can be told, is an error among the findings.
    type: int
  expected_hosts:
    description: How many hosts took part, or their names.
    type: raw
  expected_transport:
    description:
      - The way data had to go, such as V(IB), V(EFA), V(Socket), V(P2P), V(SHM) or V(NVLS), or a list of them.
      - NCCL only tells it with C(NCCL_DEBUG=INFO); without, an error among the findings says that it is not known.
    type: raw
  expected_test:
    description: The collective that had to run, such as V(all_reduce).
    type: str
  plateau_bytes:
    description: Sizes from this one on count for the plateau's bandwidth.
    type: int
    default: 268435456
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: All-reduce on the GPUs of this node
  ansible.builtin.command: all_reduce_perf -b 8 -e 8G -f 2 -g 8
  register: all_reduce
  changed_when: false
  failed_when: false

- name: Stop unless every value was right and the big messages were fast
  ansible.builtin.assert:
    that:
      - result.complete
      - result.findings | selectattr('severity', 'eq', 'error') | list | length == 0
      - result.runs[0].metrics.busBandwidthPlateauGBps.value >= 400
  vars:
    result: "{{ (all_reduce.stdout_lines + all_reduce.stderr_lines) | goodput.fleet.parse_nccl(expected_ranks=8) }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    tool:
      description: V(nccl-tests) or V(rccl-tests).
      type: str
    toolVersion:
      description: Its version, none where it prints none.
      type: str
    complete:
      description: There is a run, and every run ends as a finished one does.
      type: bool
    runs:
      description:
        - The runs in their order, each with C(test), C(config), C(ranks), C(rankCount), C(hosts), C(rows),
          C(sizes), C(transports) and C(metrics).
        - C(metrics) holds C(busBandwidthGBps), C(algBandwidthGBps), C(busBandwidthPlateauGBps),
          C(busBandwidthTopSizeGBps), C(wrongValues) and others, each with C(value) and C(unit). What was not
          measured is absent.
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
    launcher:
      description: C(rank) and C(exitCode) of the process that ended first with an error, where mpirun tells.
      type: dict
    lines:
      description: How many lines the output has.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nccl
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_nccl(
    value, expected_ranks=None, expected_hosts=None, expected_transport=None, expected_test=None, plateau_bytes=None
):
    return nccl.parse(
        value,
        expected_ranks=expected_ranks,
        expected_hosts=expected_hosts,
        expected_transport=expected_transport,
        expected_test=expected_test,
        plateau_bytes=plateau_bytes,
    )


class FilterModule:
    def filters(self):
        return {"parse_nccl": parse_nccl}
