# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ed25519 signature over bundle.sha256, and so over every file of the bundle."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.bundles.manifest import LIST
from ansible_collections.goodput.fleet.plugins.module_utils.records import signing
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem


def check(content: bytes, signature: bytes, public_key: str) -> list[Problem]:
    """Nothing when the signature belongs to the content and the PEM key. Raises InvalidDocument for a bad key."""
    return signing.check(content, signature, public_key, LIST, "do not deploy it; find out who changed it")
