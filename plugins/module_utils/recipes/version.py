# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's version, as locks record it. Must equal galaxy.yml's, which an installed collection lacks."""

from __future__ import annotations

VERSION = "1.1.0"
