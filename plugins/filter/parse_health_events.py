# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_health_events
short_description: Read health events that others made
version_added: 1.1.0
description:
  - Takes C(HealthEvent) documents of this collection, and health events of NVSentinel as its logs, its database, its
    resources and its event exporter hold them, and gives C(HealthEvent) documents with every field set.
  - An event that is broken costs itself only, and is listed with what is wrong in it.
  - An event that is healthy, or of a monitor that could not see, is never fatal; nor is an Xid that the catalogue lays
    on the application or on another fault.
options:
  _input:
    description: The events, as data or as JSON, lines of JSON or YAML.
    type: raw
    required: true
  node:
    description: The node the events are of, where they do not tell.
    type: str
  boot_id:
    description: The node's boot id, where the events do not tell.
    type: str
  received:
    description:
      - When the input was read, in UTC, such as V(2026-03-06T09:34:56Z).
      - It holds for events that do not tell when they came in.
    type: str
  source:
    description: Name of the input in the events.
    type: str
    default: health events
  catalog:
    description:
      - Directories of the catalogue's layers, in order; their C(signals/*.yaml) say what codes mean.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Which nodes had fatal events last month?
  ansible.builtin.debug:
    msg: "{{ found.events | selectattr('spec.isFatal') | map(attribute='spec.nodeName') | unique }}"
  vars:
    found: "{{ lookup('ansible.builtin.file', 'events-2026-02.jsonl') | goodput.fleet.parse_health_events }}"
"""

RETURN = r"""
_value:
  description: What the input holds.
  type: dict
  contains:
    events:
      description: HealthEvent documents, in the order of the input.
      type: list
      elements: dict
    unparsed:
      description:
        - What is no event, or a broken one. Each has C(line), C(text) and C(reason).
        - The first 1,000 of them.
      type: list
      elements: dict
    unparsedTotal:
      description: How many such there are.
      type: int
    ignored:
      description: How many documents were left out, by reason.
      type: dict
    lines:
      description: How many lines the input has, V(0) where it is data.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.signals import given, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_health_events(value, node=None, boot_id=None, received=None, source="health events", catalog=None):
    return given.parse(
        value,
        tables=tables.load_catalog(with_shipped(catalog)),
        node=node or "",
        boot_id=boot_id or None,
        received=received or None,
        source_name=source or "",
    )


class FilterModule:
    def filters(self):
        return {"parse_health_events": parse_health_events}
