# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_cloud_notice
short_description: Read maintenance and end-of-life notices of clouds
version_added: 1.1.0
description:
  - Gives each notice as a HealthEvent for each node it is about. The times are in the event's metadata, in UTC, as
    C(notBefore), C(notAfter) and C(deadline).
  - Reads scheduled events of AWS (API and metadata server), AWS Health events and spot notices as EventBridge or the
    metadata server give them, C(upcomingMaintenance) of Google Cloud (API, metadata server and audit log) with
    C(maintenance-event) and C(preempted), and Scheduled Events of Azure.
  - Planned work on a machine that stays is a warning. A machine that is retired, terminated or preempted is a fatal
    event. Notices that are completed or cancelled are healthy events.
options:
  _input:
    description: The answer of the API or metadata server, as text or as data; also a list or lines of such.
    type: raw
    required: true
  node:
    description: The node the notices were read on, for those that name no instance.
    type: str
  nodes:
    description:
      - Which node an instance is, as a map of instance ids or provider ids to names of nodes.
      - Or a list of Nodes, whose C(spec.providerID) tells.
      - A notice of an instance that is no node here is listed in C(unparsed).
    type: raw
  boot_id:
    description: The current boot id of O(node).
    type: str
  received:
    description: When the input was read, in UTC, such as V(2026-03-06T09:34:56Z).
    type: str
  source:
    description: Name of the input in the events.
    type: str
    default: cloud notice
  catalog:
    description:
      - Directories of the catalogue's layers, in order; their C(signals/*.yaml) say what notices mean.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Ask the metadata server of Azure for scheduled events
  ansible.builtin.uri:
    url: http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01
    headers: {Metadata: "true"}
    return_content: true
  register: notices

- name: What is coming for which node?
  ansible.builtin.debug:
    msg: "{{ found.events | map(attribute='spec.message') | list }}"
  vars:
    found: "{{ notices.content | goodput.fleet.parse_cloud_notice(nodes=nodes.resources) }}"
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
        - What is no notice, or about an instance that is no node here. Each has C(line), C(text) and C(reason).
        - The first 1,000 of them.
      type: list
      elements: dict
    unparsedTotal:
      description: How many such there are.
      type: int
    lines:
      description: How many lines the input has, V(0) where it is data.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.signals import cloud, tables
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_cloud_notice(value, node=None, nodes=None, boot_id=None, received=None, source="cloud notice", catalog=None):
    return cloud.parse(
        value,
        tables=tables.load_catalog(with_shipped(catalog)),
        node=node or "",
        nodes=nodes,
        boot_id=boot_id or None,
        received=received or None,
        source_name=source or "",
    )


class FilterModule:
    def filters(self):
        return {"parse_cloud_notice": parse_cloud_notice}
