# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets out of Helm values, so that a difference can still be seen.

A secret becomes `redacted:` and a short digest salted with its place: equal secrets at one place look equal,
and nothing that can be read leaves.
"""

from __future__ import annotations

import functools
import hashlib
import re

from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import canonical

PREFIX = "redacted:"
SECRET_KEY = re.compile(
    r"(?i)passw(?:or)?d|passphrase|pwd$|token$|credentials?$|secrets?$|secret[-_]?(?:key|value|data|string)$"
    r"|(?:api|access|private|signing|encryption|license)[-_]?key$|(?:^|[-_])auth$|dockerconfigjson"
    r"|connection[-_]?string$|(?:^|[-_])dsn$|webhook[-_]?url$|kubeconfig$"
)
NAMES_A_SECRET = re.compile(r"(?i)pullsecrets?$|^existing|(?:name|ref|file|path|policy|length)$|passwordkey$")
SECRET_TEXT = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\beyJ[\w-]{8,}\.eyJ[\w-]+\.|://[^/\s:@]+:[^/\s@]+@"
    r"|\bnvapi-[\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\b(?:ghp|gho|ghs|github_pat|glpat|xox[abp])[-_][\w-]{16,}"
)


def redact(values, place: str):
    """A copy of the values without secrets. `place` names the release (namespace/name); it salts the digests."""
    return _walk(values, place, False)


def is_redacted(value: object) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX)


@functools.lru_cache(maxsize=4096)
def is_secret_key(key: str) -> bool:
    """Whether what stands under the key is a secret, not the name or place of one."""
    return bool(SECRET_KEY.search(key)) and not NAMES_A_SECRET.search(key)


def _walk(value, place: str, secret: bool):
    if isinstance(value, dict):
        # env entries: {name: NGC_API_KEY, value: ...}
        named = isinstance(value.get("name"), str) and is_secret_key(value["name"])
        return {
            key: _walk(item, f"{place}/{key}", secret or is_secret_key(str(key)) or (named and key == "value"))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_walk(item, f"{place}/{index}", secret) for index, item in enumerate(value)]
    if value is None or value == "" or isinstance(value, bool):
        return value
    if secret or (isinstance(value, str) and SECRET_TEXT.search(value)):
        return PREFIX + hashlib.sha256(place.encode() + b"\0" + canonical(value)).hexdigest()[:16]
    return value
