# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the catalogue of the installed collection, then runs the module."""

from __future__ import annotations

import os

from ansible.plugins.action import ActionBase

SHIPPED = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "gitops", "catalog")


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_diff = True
    _supports_async = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        del tmp  # not used any more by action plugins
        result.update(
            self._execute_module(module_args=self._arguments(), task_vars=task_vars, wrap_async=self._task.async_val)
        )
        return result

    def _arguments(self):
        """The task's, with paths for what the collection ships."""
        return {**self._task.args, "catalog": with_shipped(self._task.args.get("catalog"))}


def with_shipped(catalog):
    """The layers, with the word `shipped` replaced by the path of the shipped catalogue; that alone by default."""
    layers = [catalog] if isinstance(catalog, str) else catalog or ["shipped"]
    if not isinstance(layers, (list, tuple)):
        return layers  # the module says what is wrong with it
    return [os.path.normpath(SHIPPED) if layer == "shipped" else layer for layer in layers]
