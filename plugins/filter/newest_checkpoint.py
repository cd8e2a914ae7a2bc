# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: newest_checkpoint
short_description: The newest complete one of a list of checkpoints
version_added: 1.1.0
description:
  - Takes checkpoints as M(goodput.fleet.checkpoint_info) returns them, of one host or of several put together, and
    gives the complete one with the highest step. Among equal steps it is the one written last.
  - Torn checkpoints, and those of which it cannot be told, are never given.
options:
  _input:
    description: A list of checkpoints, or the result of M(goodput.fleet.checkpoint_info).
    type: raw
    required: true
  before:
    description: Only a checkpoint of a lower step, such as one from before the loss went up.
    type: int
author:
  - goodput.fleet contributors (@goodput)
seealso:
  - module: goodput.fleet.checkpoint_info
"""

EXAMPLES = r"""
- name: Look at all checkpoints
  goodput.fleet.checkpoint_info:
    path: /mnt/checkpoints/llm-7b
    all: true
  register: found

- name: Where was the run before step 12000?
  ansible.builtin.debug:
    msg: "{{ (found | goodput.fleet.newest_checkpoint(before=12000)).path }}"

- name: The newest of two file systems
  ansible.builtin.debug:
    msg: "{{ (fast.checkpoints + archive.checkpoints) | goodput.fleet.newest_checkpoint }}"
"""

RETURN = r"""
_value:
  description: The checkpoint, as it was given. Null when none is complete.
  type: dict
"""

import json

from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.newest import newest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def newest_checkpoint(value, before=None):
    try:
        # plain data: the templating engine hands filters containers of its own
        value, before = json.loads(json.dumps([value, before]))
        return newest(value, before)
    except (FleetError, TypeError, ValueError, RecursionError) as error:
        raise AnsibleFilterError(f"newest_checkpoint: {error}") from error


class FilterModule:
    def filters(self):
        return {"newest_checkpoint": newest_checkpoint}
