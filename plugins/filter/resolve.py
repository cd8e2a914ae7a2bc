# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: resolve
short_description: Resolve criteria to a recipe lock
version_added: 1.0.0
description:
  - The same as M(goodput.fleet.recipe) without a file, for templates and assertions.
  - Resolving many recipes in one play reads the catalogue once.
options:
  _input:
    description: The criteria, as a map of dimension to value.
    type: dict
    required: true
  catalog:
    description:
      - Directories of the catalogue's layers, in order.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
seealso:
  - module: goodput.fleet.recipe
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Which GPU operator does the recipe pin?
  ansible.builtin.debug:
    msg: "{{ (lock.spec.components | selectattr('name', 'eq', 'gpu-operator') | first).chart.version }}"
  vars:
    lock: "{{ {'service': 'kind', 'accelerator': 'h100', 'intent': 'training'} | goodput.fleet.resolve }}"
"""

RETURN = r"""
_value:
  description: The RecipeLock document.
  type: dict
  sample: {"apiVersion": "goodput.fleet/v1alpha1", "kind": "RecipeLock", "metadata": {"name": "kind-h100"}, "spec": {}}
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_cached
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve as resolve_criteria
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def resolve(criteria, catalog=None):
    return resolve_criteria(load_cached(with_shipped(catalog)), criteria)


class FilterModule:
    def filters(self):
        return {"resolve": resolve}
