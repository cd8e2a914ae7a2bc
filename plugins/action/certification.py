# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the catalogue of the installed collection, and runs the module slice by slice to show how it goes on."""

from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped

SLICE_SECONDS = 15

display = Display()


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        del tmp  # not used any more by action plugins
        arguments = dict(self._task.args)
        arguments["catalog"] = with_shipped(arguments.get("catalog"))
        arguments.setdefault("slice", SLICE_SECONDS)
        changed, shown = False, None
        while True:
            answer = self._execute_module(module_args=arguments, task_vars=task_vars)
            changed = changed or answer.get("changed", False)
            for line in answer.get("news", ()):
                display.display(f"  {line}")
            if answer.get("progress", shown) != shown:
                shown = answer["progress"]
                display.display(
                    "  {done} tests done, {running} running on {nodes} nodes, {waiting} waiting".format(**shown)
                )
            if answer.get("done", True) or answer.get("failed"):
                break
        result.update(answer)
        result["changed"] = changed
        return result
