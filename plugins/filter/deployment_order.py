# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: deployment_order
short_description: Order components so that each comes after all it depends on
version_added: 1.0.0
description:
  - Names of the components in a serial order of deployment. Alphabetical where the dependencies leave a choice.
  - A cycle, or a dependency that is not among the components, is an error.
options:
  _input:
    description: A recipe lock, or the list of its components (maps with C(name) and C(dependsOn)).
    type: raw
    required: true
seealso:
  - module: goodput.fleet.recipe
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: What comes first?
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'x.lock.yaml') | from_yaml | goodput.fleet.deployment_order | first }}"
"""

RETURN = r"""
_value:
  description: The names, in order.
  type: list
  elements: str
  sample: [cert-manager, gpu-operator]
"""

from ansible_collections.goodput.fleet.plugins.module_utils.recipes import order
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def deployment_order(value):
    try:
        return order.deployment_order(value["spec"]["components"] if isinstance(value, dict) else value)
    except (KeyError, TypeError) as error:
        raise TypeError("needs a recipe lock, or a list of components with name and dependsOn") from error


class FilterModule:
    def filters(self):
        return {"deployment_order": deployment_order}
