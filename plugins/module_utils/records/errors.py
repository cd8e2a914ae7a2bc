# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a document or a run, in words for people.

Every fault is a `Problem`: what, where, and what would be right. Domain code raises a
`FleetError` that carries all problems found, never only the first.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Problem:
    """One fault. `path` is the field ("spec.components[2].version"), `line` counts from 1."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None
    path: str = ""
    hint: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        place = self.file or ""
        if self.line:
            place += f":{self.line}"
        parts = [part for part in (place, self.path) if part]
        text = ": ".join([*parts, self.message])
        return f"{text} ({self.hint})" if self.hint else text

    def as_dict(self) -> dict:
        """The fields that are set, for a module's result."""
        return {key: value for key, value in asdict(self).items() if value not in (None, "")}


class FleetError(Exception):
    """A run cannot go on; `problems` says why. `str()` is one line per problem."""

    code = "error"

    def __init__(self, problems: Problem | str | Iterable[Problem], **fields):
        if isinstance(problems, str):
            problems = Problem(fields.pop("code", self.code), problems, **fields)
        self.problems: list[Problem] = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def as_result(self) -> dict:
        """Arguments for `fail_json`: the message and the problems as data."""
        return {"msg": str(self), "code": self.code, "problems": [problem.as_dict() for problem in self.problems]}


class InvalidDocument(FleetError):
    """A document is malformed, or breaks its schema or a rule between its fields."""

    code = "invalid-document"


class NotCovered(FleetError):
    """No overlay carries a criterion that was asked for."""

    code = "not-covered"


class Conflict(FleetError):
    """Two sources set the same thing to different values and none outranks the other."""

    code = "conflict"


class NotFound(FleetError):
    """A named file, object or context does not exist."""

    code = "not-found"


class Unavailable(FleetError):
    """A server or tool cannot be reached or answers with a failure of its own."""

    code = "unavailable"


class Denied(FleetError):
    """The credential is refused (401) or lacks a right (403)."""

    code = "denied"


class Tampered(FleetError):
    """Files are not those that were rendered, or sealed."""

    code = "tampered"


def nearest(word: object, candidates: Iterable[object]) -> str:
    """What would be right instead of `word`: the closest candidate, and all of them when they are few."""
    names = sorted(str(candidate) for candidate in candidates)
    if not names:
        return ""
    close = difflib.get_close_matches(str(word), names, n=1, cutoff=0.6)
    known = "valid: " + ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"did you mean {close[0]!r}? {known}" if close else known
