# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As the action of goodput.fleet.recipe."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.action import recipe


class ActionModule(recipe.ActionModule):
    pass
