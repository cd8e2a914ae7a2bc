# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two trees of Helm values: where they differ, one path per difference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.drift.redact import is_redacted

PLAIN_KEY = re.compile(r"^[\w-]+$")
MISSING = object()


class Difference(NamedTuple):
    """`kind` is differs, missing (only expected) or added (only found); `path` reads like `driver.env[0].value`."""

    kind: str
    path: str
    expected: object
    found: object


def differences(expected, found, path: str = "") -> Iterator[Difference]:
    """Every difference, both ways. 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}, key=str):
            yield from differences(expected.get(key, MISSING), found.get(key, MISSING), join(path, key))
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif not equal(expected, found):
        kind = "missing" if found is MISSING else "added" if expected is MISSING else "differs"
        yield Difference(kind, path, _shown(expected), _shown(found))


def equal(one, other) -> bool:
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(*pair) for pair in zip(one, other, strict=True))
    return one == other


def join(path: str, key: str) -> str:
    """The path of a key below `path`; a key with dots or slashes stands in brackets."""
    if PLAIN_KEY.match(str(key)):
        return f"{path}.{key}" if path else str(key)
    return f"{path}['{key}']"


def _shown(value):
    if value is MISSING:
        return None
    return "(redacted)" if is_redacted(value) else value
