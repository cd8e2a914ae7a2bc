# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the catalogue and the policies of the installed collection, then runs the module."""

from __future__ import annotations

import os

from ansible_collections.goodput.fleet.plugins.action import recipe


class ActionModule(recipe.ActionModule):
    def _arguments(self):
        return {**super()._arguments(), "policy": shipped_policy(self._task.args.get("policy") or "default")}


def shipped_policy(policy):
    """The path of the shipped policy of that name; anything else as it is."""
    if not isinstance(policy, str) or os.path.basename(policy) != policy:
        return policy
    path = os.path.normpath(os.path.join(recipe.SHIPPED, "policies", f"{policy}.yaml"))
    return path if os.path.isfile(path) else policy
