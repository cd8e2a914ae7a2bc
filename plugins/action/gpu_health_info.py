# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the signal tables of the catalogue, names the node and the time, then runs the module on the node."""

from __future__ import annotations

import time

from ansible.plugins.action import ActionBase
from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.signals import gpu_tables, tables


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        del tmp  # not used any more by action plugins
        arguments = dict(self._task.args)
        arguments.setdefault("node", (task_vars or {}).get("inventory_hostname"))
        arguments.setdefault("received", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        layers = with_shipped(arguments.pop("catalog", None))
        if isinstance(layers, list) and "tables" not in arguments:
            try:
                arguments["tables"] = gpu_tables.pack(tables.load_catalog(layers))
            except FleetError as error:
                return {**result, "failed": True, "changed": False, **error.as_result()}
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars, wrap_async=self._task.async_val))
        return result
