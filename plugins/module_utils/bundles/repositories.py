# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names for chart repositories, for deployers that refer to them by name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

_LONGEST = 63


def aliases(urls: Iterable[str]) -> dict[str, str]:
    """url -> a DNS label made of it, sorted by url. Two URLs never share one."""
    names = {url: re.sub(r"[^a-z0-9]+", "-", url.partition("://")[2].lower()).strip("-") for url in sorted(set(urls))}
    shared = Counter(names.values())
    return {
        url: name if shared[name] == 1 and len(name) <= _LONGEST else _hashed(name, url) for url, name in names.items()
    }


def _hashed(name: str, url: str) -> str:
    return f"{name[: _LONGEST - 9].rstrip('-')}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
