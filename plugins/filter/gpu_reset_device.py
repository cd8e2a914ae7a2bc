# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_reset_device
short_description: What nvidia-smi calls a GPU that is to be reset
version_added: 1.1.0
description:
  - Takes the UUID or the PCI address of a GPU, as gates and health events have it, and gives what C(nvidia-smi -i)
    understands. An empty text, which stands for the whole node, stays empty.
options:
  _input:
    description: The UUID, such as V(GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708), or the address, such as V(0000:3b:00).
    type: str
    required: true
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Reset one GPU
  ansible.builtin.command:
    argv: [nvidia-smi, --gpu-reset, -i, "{{ '0000:3b:00' | goodput.fleet.gpu_reset_device }}"]
  changed_when: true
"""

RETURN = r"""
_value:
  description: The UUID, or the address with domain and function.
  type: str
  sample: 00000000:3b:00.0
"""

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import resets
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def gpu_reset_device(value):
    return resets.device(str(value or ""))


class FilterModule:
    def filters(self):
        return {"gpu_reset_device": gpu_reset_device}
