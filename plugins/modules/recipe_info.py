#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List, explain and lint recipes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recipe_info
short_description: List recipes, explain any value of one, or lint the whole catalogue
version_added: 1.0.0
description:
  - Reads a catalogue and answers one question about it. Changes nothing.
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
options:
  query:
    description:
      - V(list) - the recipes that the catalogue declares, and the dimensions and values that criteria may use.
      - V(explain) - which overlay set the value at O(path) of the recipe for O(criteria), in which file and line, and
        what it replaced. Works for what was removed as well.
      - V(lint) - judges every file, not only what one recipe uses - conflicts that some criteria would meet, recipes
        that do not resolve, missing and unused files, dead criteria values and more. Fails when there is an error.
    type: str
    choices: [list, explain, lint]
    default: list
  criteria:
    description: The recipe to explain; as in M(goodput.fleet.recipe). Required for O(query=explain).
    type: dict
  path:
    description:
      - What to explain, such as V(gpu-operator.values.driver.version), V(gpu-operator.version), V(gpu-operator),
        V(constraints.K8s.server.version) or V(checks.nccl-all-reduce). Required for O(query=explain).
    type: str
  catalog:
    description:
      - Directories of the catalogue's layers, in order. The word V(shipped) stands for the catalogue of this
        collection, which is also the default.
    type: list
    elements: path
notes:
  - Reads files of the host that the task runs on. Run it on the controller, where the shipped catalogue is.
seealso:
  - module: goodput.fleet.recipe
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Which recipes are there?
  goodput.fleet.recipe_info:
  register: known

- name: Why is the driver at this version?
  goodput.fleet.recipe_info:
    query: explain
    criteria: {service: eks, accelerator: h100, os: ubuntu, intent: inference, platform: dynamo}
    path: gpu-operator.values.driver.version

- name: Is the catalogue of our site in order?
  goodput.fleet.recipe_info:
    query: lint
    catalog: [shipped, "{{ playbook_dir }}/catalog"]
"""

RETURN = r"""
recipes:
  description: The declared recipes, by name.
  returned: for O(query=list)
  type: list
  elements: dict
  sample:
    - name: h100-kind-training
      description: Training on H100 in a local cluster.
      criteria: {"service": "kind", "accelerator": "h100", "intent": "training"}
      file: overlays/h100-kind-training.yaml
  contains:
    name:
      description: The overlay's name.
      returned: always
      type: str
      sample: h100-kind-training
    description:
      description: What the overlay says it is for.
      returned: always
      type: str
      sample: Training on H100 in a local cluster.
    criteria:
      description: The criteria to resolve it with.
      returned: always
      type: dict
      sample: {"service": "kind", "accelerator": "h100", "intent": "training"}
    file:
      description: The overlay's file.
      returned: always
      type: str
      sample: overlays/h100-kind-training.yaml
dimensions:
  description: The values and aliases of every criteria dimension.
  returned: for O(query=list)
  type: dict
  sample: {"service": {"values": ["eks", "kind"], "aliases": {"self-managed": "any"}}}
digest:
  description: Digest of everything in the catalogue that can reach a recipe.
  returned: for O(query=list) and O(query=lint)
  type: str
  sample: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
explanation:
  description: The value and how it came about.
  returned: for O(query=explain)
  type: dict
  sample: {"path": "gpu-operator.chart.version", "present": true, "value": "v26.7.0", "chain": []}
  contains:
    path:
      description: The path in full.
      returned: always
      type: str
      sample: gpu-operator.chart.version
    present:
      description: Whether the recipe has it in the end.
      returned: always
      type: bool
      sample: true
    value:
      description: The value in the recipe.
      returned: always
      type: raw
      sample: v26.7.0
    chain:
      description:
        - Every source that wrote it, in the order in which they apply. Each has C(overlay), C(file), C(line), C(action)
          (one of set, added, listed, deleted, removed), C(value), C(replaced) where another value was there, C(path)
          where it concerns a part, and C(includedBy) for a mixin.
      returned: always
      type: list
      elements: dict
      sample: [{"overlay": "eks", "file": "overlays/eks.yaml", "line": 12, "action": "set", "value": "v26.7.0"}]
problems:
  description: Every problem, with severity, code, message, file, line, field and hint.
  returned: for O(query=lint), and on failure
  type: list
  elements: dict
  sample:
    - severity: warning
      code: unused-file
      message: is named by no registry entry or overlay
      file: values/x.yaml
counts:
  description: Number of problems by severity.
  returned: for O(query=lint)
  type: dict
  sample: {"error": 0, "warning": 1}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.explain import explain
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.lint import lint_paths
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument


def listing(paths: list[str]) -> dict:
    catalog = load_catalog(paths)
    recipes = [
        {
            "name": one.name,
            "description": one.document.data["metadata"].get("description", ""),
            "criteria": dict(one.criteria),
            "file": one.document.source,
        }
        for one in catalog.recipes
    ]
    dimensions = {
        one.name: {"values": list(one.values), "aliases": dict(one.aliases)} for one in catalog.dimensions.values()
    }
    return {"recipes": recipes, "dimensions": dimensions, "digest": catalog.digest}


def linting(module: AnsibleModule, paths: list[str]) -> dict:
    catalog, problems = lint_paths(paths)
    errors = [one for one in problems if one.severity == "error"]
    result = {
        "digest": catalog.digest,
        "problems": [one.as_dict() for one in problems],
        "counts": {"error": len(errors), "warning": len(problems) - len(errors)},
    }
    if errors:
        module.fail_json(**{**InvalidDocument(errors).as_result(), **result})
    return result


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "query": {"type": "str", "choices": ["list", "explain", "lint"], "default": "list"},
            "criteria": {"type": "dict"},
            "path": {"type": "str"},
            "catalog": {"type": "list", "elements": "path"},
        },
        required_if=[("query", "explain", ("criteria", "path"))],
        supports_check_mode=True,
    )
    params = module.params
    paths = params["catalog"] or []
    try:
        if params["query"] == "explain":
            result = {"explanation": explain(load_catalog(paths), params["criteria"], params["path"])}
        else:
            result = listing(paths) if params["query"] == "list" else linting(module, paths)
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
