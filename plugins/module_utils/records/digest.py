# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests that are equal exactly when the data is."""

from __future__ import annotations

import hashlib
import json


def canonical(data: object) -> bytes:
    """Plain data as UTF-8 JSON with sorted keys and no spaces. Raises TypeError for what JSON cannot hold."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256(data: object) -> str:
    """The text `sha256:HEX` of the canonical form."""
    return sha256_bytes(canonical(data))


def sha256_bytes(content: bytes) -> str:
    """The text `sha256:HEX` of the bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()
