# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One notice of a cloud, before it is known which node it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OVER = ("completed", "complete", "canceled", "cancelled", "closed", "resolved")


@dataclass(slots=True)
class Notice:
    """`instances` are the cloud's own names; none: the machine that the notice was read on. Times are as given."""

    cloud: str
    code: str
    instances: list[str] = field(default_factory=list)
    id: str = ""
    status: str = ""
    healthy: bool = False
    not_before: object = None
    not_after: object = None
    deadline: object = None
    generated: object = None
    description: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.healthy or self.status.lower() in OVER


@dataclass(slots=True)
class Unreadable:
    """Looks like a notice and cannot be read."""

    reason: str


def text(value: object) -> str:
    """A field's text; '' for none and for what is a list or a map."""
    return "" if value is None or isinstance(value, (Mapping, list, tuple)) else str(value).strip()


def listed(value: object) -> list:
    """A list; one map or text counts as a list of it."""
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
