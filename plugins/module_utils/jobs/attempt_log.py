# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of one attempt while its log is read: first failures, exceptions, exits, steps. Bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.signatures import Signature

NAMES = 1024  # ranks, hosts or devices kept of one failure
HITS = 4096  # failures kept of one attempt: one for each signature and rank
STEPS = 64  # times of steps kept


@dataclass(slots=True)
class Raised:
    """An exception as Python prints it. `file` and `line` are of the program, where one of its frames is shown."""

    type: str
    message: str
    file: str = ""
    line: int | None = None
    step: int | None = None


@dataclass(slots=True)
class Hit:
    """The first line of a rank that a signature fits, and how often it came."""

    signature: Signature
    rank: int | None
    pod: str
    number: int
    order: int
    text: str
    at: float | None = None
    step: int | None = None
    local: int | None = None
    count: int = 1
    collateral: bool = False
    guessed: bool = False  # no signature fits; the fallback's stands for an exception nobody described
    raised: Raised | None = None
    hosts: set[str] = field(default_factory=set)
    peers: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Exit:
    """How a process ended, by its launcher. Negative codes are signals."""

    code: int
    rank: int | None = None
    local: int | None = None
    host: str = ""
    pod: str = ""


@dataclass(slots=True)
class Attempt:
    """What one attempt left in one log."""

    number: int | None = None
    hits: dict[tuple[str, int | None], Hit] = field(default_factory=dict)
    exits: list[Exit] = field(default_factory=list)
    sequences: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    launchers: set[str] = field(default_factory=set)
    first_step: int | None = None
    last_step: int | None = None
    last_stamp: bytes = b""
    step_seconds: list[float] = field(default_factory=list)
    over: bool = False  # its launcher or its scheduler said that it ended

    @property
    def failed(self) -> bool:
        """Whether it holds a failure that is not only somebody else's."""
        return self.over or any(hit.signature.cascade != "always" for hit in self.hits.values())

    @property
    def roots(self) -> Iterator[Hit]:
        return (hit for hit in self.hits.values() if hit.signature.cascade == "never")

    def step(self, number: int, seconds: float | None, stamp: bytes) -> None:
        if self.first_step is None:
            self.first_step = number
        self.last_step = number if self.last_step is None else max(self.last_step, number)
        self.last_stamp = stamp or self.last_stamp
        if seconds:
            self.step_seconds.append(seconds)
            if len(self.step_seconds) > STEPS:
                del self.step_seconds[: STEPS // 2]

    def absorb(self, later: Attempt) -> None:
        """What came after a launcher's report was of the same attempt."""
        for key, hit in later.hits.items():
            known = self.hits.setdefault(key, hit)
            if known is not hit:
                known.count += hit.count
        self.exits += later.exits
        self.sequences |= later.sequences
        self.launchers |= later.launchers
        if later.last_step is not None:
            self.step(later.last_step, None, later.last_stamp)


@dataclass(slots=True)
class Log:
    """What a source holds: the last attempt, and the one before it where the same launcher began both."""

    rank: int | None
    pod: str
    last: Attempt
    before: Attempt | None = None
    attempts: int = 1
    ranks: set[int] = field(default_factory=set)
    hosts: dict[int, str] = field(default_factory=dict)  # by rank
    world: int = 0
    lines: int = 0
    labels: set[int] = field(default_factory=set)  # ranks that lines say are theirs
    shared: bool = False  # several ranks wrote it, and lines say which
    own: int | None = None  # the rank of lines that name none
    last_exceptions: dict[int | None, Raised] = field(default_factory=dict)
