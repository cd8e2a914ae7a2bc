# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the catalogue and the policies of the installed collection, then runs the module: as a whole in the background,
or slice by slice to show how it goes on."""

from __future__ import annotations

import os

from ansible.utils.display import Display
from ansible_collections.goodput.fleet.plugins.action import recipe

SLICE_SECONDS = 30
# what is of each attempt, by the key that tells it
OF_ATTEMPTS = {"decisions": lambda one: one["spec"]["attempt"], "actions": lambda one: one["attempt"]}

display = Display()


class ActionModule(recipe.ActionModule):
    def run(self, tmp=None, task_vars=None):
        watch = self._task.args.get("watch") or 0
        if self._task.async_val or not str(watch).isdigit() or int(watch) <= SLICE_SECONDS:
            return super().run(tmp, task_vars)
        return self._slices(int(watch), task_vars)

    def _arguments(self):
        return {**super()._arguments(), "policy": shipped_policy(self._task.args.get("policy") or "default")}

    def _slices(self, left, task_vars):
        arguments, shown, answers = self._arguments(), set(), []
        while left > 0:
            arguments["watch"] = min(left, SLICE_SECONDS)
            answers.append(self._execute_module(module_args=arguments, task_vars=task_vars))
            left -= arguments["watch"]
            for line in answers[-1].get("lines", ()):
                if line not in shown:
                    display.display(f"  {line}")
                    shown.add(line)
            if answers[-1].get("failed"):
                break
        return joined(answers)


def joined(answers):
    """The results of slices as that of one run: the last word about each attempt."""
    last = answers[-1]
    for name, key in {**OF_ATTEMPTS, "job_attempts": lambda one: one["key"]}.items():
        found = {key(one): one for answer in answers for one in answer.get(name, ())}
        if found:
            last[name] = [found[each] for each in sorted(found)]
    last["lines"] = list(dict.fromkeys(line for answer in answers for line in answer.get("lines", ())))
    last["passes"] = sum(answer.get("passes", 0) for answer in answers)
    last["changed"] = any(answer.get("changed", False) for answer in answers)
    return last


def shipped_policy(policy):
    """The path of the shipped policy of that name; anything else as it is."""
    if not isinstance(policy, str) or os.path.basename(policy) != policy:
        return policy
    path = os.path.normpath(os.path.join(recipe.SHIPPED, "recovery", f"{policy}.yaml"))
    return path if os.path.isfile(path) else policy
