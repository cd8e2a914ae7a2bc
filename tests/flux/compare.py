# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the API server hold what it was sent?"""

from __future__ import annotations


def lost(sent: object, stored: object, path: str = "spec") -> list[str]:
    """Where something that was sent is not stored as it was; defaults may come on top."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [each for key in sent for each in lost(sent[key], stored.get(key, "nothing"), f"{path}.{key}")]
    return [] if sent == stored else [path]
