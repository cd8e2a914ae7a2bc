# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_reset_verdict
short_description: Has the reset of a GPU helped?
version_added: 1.1.0
description:
  - Compares the GPUs of a node before and after a reset, as P(goodput.fleet.parse_nvidia_smi#filter) gives them.
  - A reset is verified when the GPU is there, the driver asks for nothing more, no row remap, page retirement or repair
    is pending or has failed, and no uncorrected memory error is counted since. No other GPU may have gone meanwhile.
  - That the command of the reset ended well is no proof, so it is not asked for.
options:
  _input:
    description: The GPUs after the reset, C(gpus) of P(goodput.fleet.parse_nvidia_smi#filter).
    type: list
    elements: dict
    required: true
  before:
    description: The GPUs before it.
    type: list
    elements: dict
    default: []
  entity:
    description: UUID or PCI address of the GPU. Without it, all GPUs of the node were reset.
    type: str
    default: ''
  expected_gpus:
    description: How many GPUs the node has. V(0) does not check it.
    type: int
    default: 0
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Ask the driver after the reset
  ansible.builtin.command: nvidia-smi -q -x
  register: nvidia_smi
  changed_when: false

- name: Has it helped?
  ansible.builtin.debug:
    msg: "{{ (nvidia_smi.stdout | goodput.fleet.parse_nvidia_smi).gpus | goodput.fleet.gpu_reset_verdict }}"
"""

RETURN = r"""
_value:
  description: What came of it.
  type: dict
  contains:
    verified:
      description: Whether the reset has helped.
      type: bool
    detail:
      description: Why not. Empty when it has.
      type: str
    serials:
      description: Serial number of the GPU, or of all GPUs where all were reset.
      type: list
      elements: str
"""

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import resets
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def gpu_reset_verdict(value, before=None, entity="", expected_gpus=0):
    return resets.verdict(before or [], value, str(entity or ""), int(expected_gpus or 0))


class FilterModule:
    def filters(self):
        return {"gpu_reset_verdict": gpu_reset_verdict}
