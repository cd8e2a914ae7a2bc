# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was found out about one checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

TOLD = 4  # faults that `why` spells out; a torn save of 512 ranks has as many


def is_int(value: object) -> bool:
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


class Damaged(Exception):
    """A file is not what it has to be. The text says how."""


class Unclear(Exception):
    """It cannot be told whether a file is what it has to be. The text says why."""


class Finding:
    """Faults make a checkpoint torn, doubts leave it open; without either it is complete."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.doubts: list[str] = []
        # The file whose presence tells that the save came to its end, by name in the tree.
        self.marker: str | None = None
        # The files themselves tell that they are all, whenever they were written.
        self.proved = False
        # Files whose number or names may change from one save to the next, since something inside accounts for them.
        self.accounted: set[str] = set()

    def fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    def doubt(self, text: str) -> None:
        if text not in self.doubts:
            self.doubts.append(text)

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """What goes wrong with the file `name` in the block becomes a fault or a doubt."""
        try:
            yield
        except Damaged as error:
            self.fault(f"{name} {error}")
        except Unclear as error:
            self.doubt(f"{name} {error}")
        except OSError as error:
            self.doubt(f"{name} cannot be read: {error.strerror or error}")
        except (MemoryError, RecursionError):
            self.doubt(f"{name} cannot be read: it is nested too deep or too large")

    @property
    def complete(self) -> bool | None:
        if self.faults:
            return False
        return None if self.doubts else True

    @property
    def why(self) -> str:
        """One line; empty when there is nothing to say."""
        texts = self.faults + self.doubts
        more = f"; and {len(texts) - TOLD} more" if len(texts) > TOLD else ""
        return "; ".join(texts[:TOLD]) + more


def listed(names: list[str], most: int = 3) -> str:
    """The first of `names`, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
