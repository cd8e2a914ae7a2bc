# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers of a run of any length in bounded memory."""

from __future__ import annotations

from array import array

EXACT = 1 << 18  # values kept one by one


class Series:
    """All values up to EXACT, then every second, fourth, … one; sum and count are always of all."""

    __slots__ = ("_count", "_kept", "_stride", "_sum", "highest")

    def __init__(self) -> None:
        self._kept = array("d")
        self._stride = 1
        self._count = 0
        self._sum = 0.0
        self.highest = float("-inf")

    def add(self, value: float) -> None:
        if not self._count % self._stride:
            self._kept.append(value)
            if len(self._kept) > EXACT:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._count += 1
        self._sum += value
        if value > self.highest:
            self.highest = value

    def add_all(self, values: list[float], total: float) -> None:
        """`total` is their sum."""
        if self._stride > 1 or len(self._kept) + len(values) > EXACT:
            for value in values:
                self.add(value)
            return
        self._kept.extend(values)
        self._count += len(values)
        self._sum += total
        highest = max(values)
        if highest > self.highest:
            self.highest = highest

    def __len__(self) -> int:
        return self._count

    @property
    def mean(self) -> float:
        return self._sum / self._count

    def quantile(self, share: float) -> float:
        """The value below which `share` of the values lie, between the nearest two."""
        ordered = sorted(self._kept)
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


class Thinned:
    """Rows spread evenly over all that came, at most `limit`: add where `count` is a multiple of `stride`."""

    __slots__ = ("_limit", "count", "rows", "stride")

    def __init__(self, limit: int):
        self._limit = limit
        self.stride = 1
        self.count = 0
        self.rows: list = []

    def add(self, row: object) -> None:
        self.rows.append(row)
        self.shrink()

    def shrink(self) -> None:
        while len(self.rows) > self._limit:
            self.rows = self.rows[::2]
            self.stride *= 2
