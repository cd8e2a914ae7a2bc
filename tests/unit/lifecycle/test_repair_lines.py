# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass says names everything that it counts."""

from __future__ import annotations

from collections import defaultdict

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_run


def test_a_request_that_was_made_is_named():
    found = defaultdict(list, created=["gpu-0003-43afc2cb"])
    assert repair_run.lines(found) == ["gpu-0003-43afc2cb: a repair begins"]
