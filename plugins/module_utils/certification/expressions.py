# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions that bound a measured value: `value >= 300`, `value >= fleet.median - 4 * fleet.mad`.

Whole numbers in them count as decimals, so that a bound reads as people write it. Pure.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records import cel

VARIABLES = {"value": "double", "fleet": {"median": "double", "mad": "double", "count": "double"}}
COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_MIRRORED = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|//[^\n]*""")
_WHOLE = re.compile(_TEXT.pattern + r"|(?<![\w.])(?P<whole>\d+)(?![\w.])")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_CLAUSE = re.compile(r"(?P<left>[^<>=!]+?)\s*(?P<comparator><=|>=|<|>|==|!=)\s*(?P<right>[^<>=!]+)", re.DOTALL)
_LOGIC = re.compile(r"&&|\|\||\?|!(?!=)")
# values from far below zero to far above, at which an expression is tried when it is loaded
_GRID = [0.0, *(sign * 10.0**power for power in range(-3, 19) for sign in (1, -1)), *(5.0 * n for n in range(10, 31))]
TRIAL = {"median": 100.0, "mad": 5.0, "count": 100.0}


@dataclass(frozen=True)
class Clause:
    """One comparison of `value`; `bound` is CEL without `value`."""

    comparator: str
    bound: cel.Expression


@dataclass(frozen=True)
class Compiled:
    """`clauses` are the comparisons that must all hold; empty where the expression is more than that.

    `lowest` and `highest`: whether it holds far below zero, and far above.
    """

    text: str
    expression: cel.Expression
    clauses: tuple[Clause, ...]
    uses_fleet: bool
    lowest: bool
    highest: bool

    def holds(self, value: float, fleet: dict | None = None) -> bool | cel.Failure:
        return self.expression.holds(_activation(value, fleet))

    def failing(self, value: float, fleet: dict | None = None) -> list[tuple[str, float | None]]:
        """(comparator, bound) of each comparison that does not hold; [("", None)] where none can be named."""
        found = [
            (clause.comparator, bound)
            for clause, bound in self.bounds(fleet)
            if bound is None or not COMPARE[clause.comparator](value, bound)
        ]
        return found or [("", None)]

    def bounds(self, fleet: dict | None = None) -> list[tuple[Clause, float | None]]:
        """The comparisons with their bounds as numbers."""
        return [(clause, _number(clause.bound.evaluate(_activation(0.0, fleet)))) for clause in self.clauses]


def compile_bound(text: str) -> Compiled:
    """Raises cel.CelError, also for what holds whatever the value is, or never does."""
    bare = _TEXT.sub("", text)
    expression = _compile(text)
    if not re.search(r"(?<![\w.])value\b", bare):
        raise cel.CelError("does not look at value", hint="such as 'value >= 300'")
    trials = [expression.holds(_activation(point, TRIAL)) for point in trial_points(text)]
    answers = [answer for answer in trials if isinstance(answer, bool)]
    if not answers:
        raise cel.CelError(trials[0].why)
    if all(answers) or not any(answers):
        raise cel.CelError(f"holds for {'every' if answers[0] else 'no'} value, so that it bounds nothing")
    uses_fleet = re.search(r"(?<![\w.])fleet\b", bare) is not None
    return Compiled(text, expression, _clauses(text), uses_fleet, answers[0], answers[-1])


def trial_points(*texts: str) -> list[float]:
    """Values at which an expression shows what it bounds: far apart, and at and beside every number in the texts."""
    return sorted({*_GRID, *(point for text in texts for point in _beside(_TEXT.sub("", text)))})


def _beside(text: str) -> list[float]:
    """Each number of the text and what is just below and above it, and their negatives."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    points = [sign * number * factor for number in numbers for factor in (1 - 1e-6, 1, 1 + 1e-6) for sign in (1, -1)]
    return [point for point in points if math.isfinite(point)]


def _activation(value: float, fleet: dict | None):
    fleet = fleet or {}
    values = {f"fleet.{name}": float(fleet.get(name, 0.0)) for name in VARIABLES["fleet"]}
    return _environment().activation({"value": float(value), **values})


@functools.lru_cache(maxsize=1)
def _environment() -> cel.Environment:
    return cel.Environment(VARIABLES)


def _compile(text: str) -> cel.Expression:
    try:
        return _environment().compile(text)
    except cel.CelError as first:
        changed = _WHOLE.sub(lambda match: match[0] + (".0" if match["whole"] else ""), text)
        if changed == text:
            raise
        try:
            return _environment().compile(changed)
        except cel.CelError as error:
            if (first.line, first.message) == (error.line, error.message):
                raise first
            raise cel.CelError(error.message, error.line, _column(text, error), error.hint)


def _column(text: str, error: cel.CelError) -> int:
    """Where the fault of the changed text is in the text as it was given."""
    lines = text.splitlines() or [""]
    line = lines[min(error.line, len(lines)) - 1]
    column = error.column
    for number, match in enumerate(match for match in _WHOLE.finditer(line) if match["whole"]):
        if match.end() + 2 * number < error.column - 1:
            column -= 2
    return max(column, 1)


def _clauses(text: str) -> tuple[Clause, ...]:
    """The comparisons of `value` that the expression is the conjunction of; none if it is anything else."""
    found = []
    for part in _conjuncts(text):
        match = _CLAUSE.fullmatch(part)
        if not match or _TEXT.search(part) or _LOGIC.search(part):
            return ()
        left, comparator, right = match["left"].strip(), match["comparator"], match["right"].strip()
        if right == "value":
            left, right, comparator = right, left, _MIRRORED.get(comparator, comparator)
        if left != "value" or re.search(r"(?<![\w.])value\b", right):
            return ()
        try:
            found.append(Clause(comparator, _compile(f"dyn({right})")))
        except cel.CelError:
            return ()
    return tuple(found)


def _conjuncts(text: str) -> list[str]:
    """What stands between the outer `&&`, without parentheses around it."""
    text = _bare(text)
    depth, start, parts = 0, 0, []
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and text.startswith("&&", at):
            parts.append(text[start:at])
            start = at + 2
    if not parts:
        return [text]
    return [inner for part in [*parts, text[start:]] for inner in _conjuncts(part)]


def _bare(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for at, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if depth == 0 and at < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
