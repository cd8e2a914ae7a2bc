# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of `journalctl -o json`, one to a line.

Fields that begin with an underscore are the journal's own and cannot be forged; all others are what the writer claims.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_prefix import KERNEL, OTHER

_BOOT = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(slots=True)
class Record:
    """`wall` and `mono` are microseconds. `root`: the journal itself says that root wrote it."""

    message: str
    origin: str
    writer: str
    host: str
    boot: str | None
    wall: int | None
    mono: int | None
    root: bool


def read(line: str) -> Record | None:
    """None where the line is no record with a message."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    message = _message(fields.get("MESSAGE")) if isinstance(fields, dict) else None
    if message is None:
        return None
    transport, writer = _text(fields, "_TRANSPORT"), _text(fields, "SYSLOG_IDENTIFIER")
    kernel = transport == "kernel" or (not transport and writer in ("", "kernel"))
    return Record(
        message=message,
        origin=KERNEL if kernel else OTHER,
        writer=writer or transport,
        host=_text(fields, "_HOSTNAME"),
        boot=boot_id(_text(fields, "_BOOT_ID")),
        wall=_number(fields, "_SOURCE_REALTIME_TIMESTAMP") or _number(fields, "__REALTIME_TIMESTAMP"),
        mono=_number(fields, "_SOURCE_MONOTONIC_TIMESTAMP") or _number(fields, "__MONOTONIC_TIMESTAMP"),
        root=_text(fields, "_UID") == "0",
    )


def boot_id(text: str) -> str | None:
    """A boot id as Kubernetes writes it, with dashes."""
    if not _BOOT.fullmatch(text):
        return None
    digits = text.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _message(value: object) -> str | None:
    """A message that is not UTF-8 comes as a list of its bytes."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 256 for one in value)
    ):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _text(fields: dict, name: str) -> str:
    """A field that occurs more than once is a list."""
    value = fields.get(name)
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, str) else ""


def _number(fields: dict, name: str) -> int | None:
    text = _text(fields, name)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
