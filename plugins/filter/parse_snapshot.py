# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_snapshot
short_description: Check a Snapshot and give it as data
version_added: 1.0.0
description:
  - Reads a Snapshot from a YAML or JSON text, or takes it as data, and refuses what is not one.
options:
  _input:
    description: The text or data of a Snapshot, as M(goodput.fleet.cluster_snapshot_info) returns it.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: How many GPU nodes were there?
  ansible.builtin.debug:
    msg: >-
      {{ (lookup('ansible.builtin.file', 'snapshots/prod-1.json') | goodput.fleet.parse_snapshot).spec.nodes
         | selectattr('gpus.capacity', '>', 0) | length }}
"""

RETURN = r"""
_value:
  description: The Snapshot document.
  type: dict
"""

from ansible_collections.goodput.fleet.plugins.module_utils.records import snapshots
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_snapshot(value):
    return snapshots.parse(value, "snapshot") if isinstance(value, str) else snapshots.load(value)


class FilterModule:
    def filters(self):
        return {"parse_snapshot": parse_snapshot}
