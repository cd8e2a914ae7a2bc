# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: helm_steps
short_description: What is left to do of a Helm bundle's plan, with the commands that do it
version_added: 1.0.0
description:
  - Compares the plan of a Helm bundle with what is installed, and gives every step with its action, the reasons, and
    command lines as lists, which no shell needs to read.
  - Nothing is run. The role P(goodput.fleet.install#role) runs them.
options:
  _input:
    description: The RV(_value) of C(plan.json) of a bundle that M(goodput.fleet.bundle) rendered for Helm.
    type: dict
    required: true
  bundle:
    description: Folder of the bundle.
    type: path
    required: true
  charts:
    description: The texts of C(Chart.yaml) of the plan's local charts, by their folder.
    type: dict
    default: {}
  releases:
    description: What C(helm list --all-namespaces --output json) says.
    type: list
    elements: dict
    default: []
  report:
    description: The RV(goodput.fleet.drift_info#module:report) of M(goodput.fleet.drift_info) for the bundle's lock.
    type: dict
    required: true
  unhealthy:
    description: Names of components that are not healthy now. A step that is done waits for its component then.
    type: list
    elements: str
    default: []
  helm:
    description: Program to call.
    type: str
    default: helm
  kubectl:
    description: Program to call for the CRDs of upgraded charts, which Helm leaves as they were.
    type: str
    default: kubectl
  version:
    description: What C(helm version --short) says.
    type: str
    default: ''
  kubeconfig:
    description: Kubeconfig for both programs.
    type: str
    default: ''
  context:
    description: Context of the kubeconfig.
    type: str
    default: ''
  extra:
    description: More arguments for Helm.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: See what is left to do
  ansible.builtin.debug:
    msg: >-
      {{ lookup('ansible.builtin.file', 'bundle/plan.json') | from_json
         | goodput.fleet.helm_steps(bundle='bundle', releases=installed.stdout | from_json, report=drift.report)
         | rejectattr('action', '==', 'none') | map(attribute='release') }}
"""

RETURN = r"""
_value:
  description:
    - The steps of the plan, each with C(action) (V(none), V(wait), V(install), V(upgrade) or V(recover)), C(why) (a
      list of texts), and C(commands) (C(deploy), C(show_crds), C(apply_crds) and C(recover)).
  type: list
  elements: dict
"""

import json

from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.module_utils.apply import helm as command_lines
from ansible_collections.goodput.fleet.plugins.module_utils.apply.steps import left_to_do
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def helm_steps(plan, bundle, report, releases=(), charts=None, unhealthy=(), **tools):
    try:
        # plain data: the templating engine hands filters containers of its own
        given = [plan, report, list(releases), charts or {}, list(unhealthy), tools]
        plan, report, releases, charts, unhealthy, tools = json.loads(json.dumps(given))
        steps = []
        for step in plan["steps"]:
            if step["path"]:
                head = yamltree.load_text(charts[step["path"]], f"{step['path']}/Chart.yaml").data
                step = {**step, "chart": head["name"], "version": head["version"]}
            steps.append(step)
        return [
            {**step, "commands": command_lines.commands(step, str(bundle), **tools)}
            for step in left_to_do(steps, releases, report, unhealthy)
        ]
    except (FleetError, TypeError, KeyError) as error:
        raise AnsibleFilterError(
            f"helm_steps: {error!r}" if isinstance(error, KeyError) else f"helm_steps: {error}"
        ) from error


class FilterModule:
    def filters(self):
        return {"helm_steps": helm_steps}
