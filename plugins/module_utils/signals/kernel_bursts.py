# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One event for a fault that is printed again and again: 800,000 lines of one Xid 95 are one event with a count.

Repeats are the same code of the same entities on the same node in the same boot, each within the window of the one
before. A report that the component is well again ends all bursts of its node, so that what follows it is news.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal

WINDOW = 180  # seconds


@dataclass(slots=True)
class Sighting:
    """Where and when a message stood. `time` is (clock, microseconds): clocks are not compared with each other."""

    node: str
    boot: tuple
    line: int
    text: str
    time: tuple[str, int] | None = None
    wall: int | None = None
    mono: str | None = None
    sequence: int | None = None
    user: bool = False


@dataclass(slots=True)
class Burst:
    signal: Signal
    first: Sighting
    last: Sighting
    count: int = 1
    details: dict[str, str] = field(default_factory=dict)


class Bursts:
    """All bursts, in the order they began."""

    def __init__(self, window: int = WINDOW):
        self.all: list[Burst] = []
        self._window = window * 1_000_000
        self._open: dict[tuple, Burst] = {}
        self._era: dict[tuple, int] = {}  # counts what makes repeats news, by node and boot, and by subject
        self._kind: dict[tuple, tuple] = {}  # of exclusive reports: the one seen last

    def add(self, signal: Signal, seen: Sighting) -> Burst:
        where = (seen.node, seen.boot)
        subject = (where, signal.space, signal.code, signal.entities)
        if signal.exclusive and self._kind.setdefault(subject, signal.kind) != signal.kind:
            self._kind[subject] = signal.kind
            self._era[subject] = self._era.get(subject, 0) + 1
        key = self._key(where, subject, signal)
        burst = self._open.get(key)
        if burst is not None and self.near(burst.last, seen):
            burst.count += 1
            burst.last = seen
            return burst
        if signal.healthy:
            self._era[where] = self._era.get(where, 0) + 1
            key = self._key(where, subject, signal)
        burst = self._open[key] = Burst(signal, seen, seen)
        self.all.append(burst)
        return burst

    def _key(self, where: tuple, subject: tuple, signal: Signal) -> tuple:
        return (self._era.get(where, 0), self._era.get(subject, 0), subject, signal.kind)

    def near(self, before: Sighting, now: Sighting) -> bool:
        """Whether both may be of one burst. Without times that compare, the boot is all there is."""
        if before.time is None or now.time is None or before.time[0] != now.time[0]:
            return True
        return abs(now.time[1] - before.time[1]) <= self._window
