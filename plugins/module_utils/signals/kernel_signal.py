# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one kernel message says, before it is known when, where and how often."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Signal:
    """`kind` tells apart reports that share code and entities, such as two units of one link.

    `exclusive` reports replace each other: of those with the same code and entities the last one holds, so a repeat
    after another kind is news and not a repeat.
    """

    check: str
    component: str
    space: str
    code: str
    entities: tuple[tuple[str, str], ...]
    action: str
    fatal: bool
    message: str
    severity: str
    state: str | None = None
    healthy: bool = False
    kind: tuple = ()
    exclusive: bool = False
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Unreadable:
    """Looks like a signal and cannot be read."""

    reason: str
