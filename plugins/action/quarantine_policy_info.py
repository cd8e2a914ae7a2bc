# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the catalogue and the policies of the installed collection, then runs the module."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.action import node_quarantine


class ActionModule(node_quarantine.ActionModule):
    pass
