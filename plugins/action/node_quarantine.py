# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the catalogue and the policies of the installed collection, then runs the module."""

from __future__ import annotations

import os

from ansible.plugins.action import ActionBase
from ansible_collections.goodput.fleet.plugins.action.recipe import SHIPPED, with_shipped


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_diff = True
    _supports_async = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        del tmp  # not used any more by action plugins
        arguments = dict(self._task.args)
        arguments["catalog"] = with_shipped(arguments.get("catalog"))
        arguments["policy"] = shipped_policy(arguments.get("policy") or "default")
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars, wrap_async=self._task.async_val))
        return result


def shipped_policy(policy):
    """The path of the shipped policy of that name; anything else as it is."""
    if not isinstance(policy, str) or os.path.basename(policy) != policy:
        return policy
    path = os.path.normpath(os.path.join(SHIPPED, "policies", f"{policy}.yaml"))
    return path if os.path.isfile(path) else policy
