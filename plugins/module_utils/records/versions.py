# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions as clusters report them, and the constraints that recipes put on them.

Versions compare at full precision: missing parts are zero, any number of numeric parts counts (kernels), -dev, -alpha,
-beta, -pre and -rc come before the release, every other suffix (-eks-..., -gke...., +k3s1, .el9) is a build that has
no rank. A constraint is a conjunction: ">= 1.34, < 1.36", "== 1.34.2", "!= 1.34.1", "in (ubuntu, rhel)",
"not in (1.34.0, 1.34.1)", "~ 1.34" or "1.34.*" (the same leading numbers), or plain text for equality.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"
PRE_RELEASES = {"dev": 0, "alpha": 1, "beta": 2, "pre": 3, "preview": 3, "rc": 4}
GRAMMAR = "such as '>= 1.34, < 1.36', '== 1.34.2', 'in (ubuntu, rhel)', 'not in (a, b)', '~ 1.34' or plain text"

_VERSION = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)*)([-+._~A-Za-z0-9]*)")
_TERM = re.compile(r"(>=|<=|==|!=|>|<|~)\s*(.*)|(not\s+in|in)\s*\((.*)\)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+:/ -]*[A-Za-z0-9])?")
_WILDCARD = re.compile(r"(.*[0-9])\.[*xX]")


@dataclass(frozen=True)
class Version:
    """`numbers` as written, `pre` empty for a release, `build` the suffix without rank."""

    numbers: tuple[int, ...]
    pre: tuple[int, ...] = ()
    build: str = ""

    @property
    def key(self) -> tuple:
        """Sorts as the versions do: zeros at the end and builds do not count."""
        width = len(self.numbers)
        while width and self.numbers[width - 1] == 0:
            width -= 1
        return (self.numbers[:width], (0, *self.pre) if self.pre else (1,))

    def starts_with(self, other: Version) -> bool:
        """Are these the leading numbers of the other, and is this no pre-release before it?"""
        width = len(other.numbers)
        leading = (*self.numbers, *[0] * width)[:width]
        return leading == other.numbers and self.key >= other.key


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Version | None:
    """The version that the text is, or None."""
    text = text.strip()
    match = _VERSION.fullmatch(text) if len(text) <= 256 else None
    if not match or re.search(r"[-._~]{2}|[-._~]$", match[2]):
        return None
    numbers = [int(part) for part in match[1].split(".")]
    pre: list[int] = []
    suffix, _plus, metadata = match[2].partition("+")
    words = re.split(r"[-._~]", suffix)
    while words:
        word = words[0].lower()
        label = re.fullmatch(r"([a-z]+)([0-9]*)", word)
        if word.isdigit():
            (pre or numbers).append(int(word))
        elif label and label[1] in PRE_RELEASES and not pre:
            pre = [PRE_RELEASES[label[1]], *([int(label[2])] if label[2] else [])]
        elif word:
            break
        words.pop(0)
    return Version(tuple(numbers), tuple(pre), "-".join(words) + (f"+{metadata}" if metadata else ""))


def compare(left: str, right: str) -> int:
    """-1, 0 or 1. Raises ValueError for a text that is no version."""
    keys = []
    for text in (left, right):
        version = parse(text)
        if version is None:
            raise ValueError(f"{text!r} is not a version")
        keys.append(version.key)
    return (keys[0] > keys[1]) - (keys[0] < keys[1])


@dataclass(frozen=True)
class Term:
    """One part of a conjunction. Operands are versions, or texts where the fact is a text."""

    operator: str
    operands: tuple[Version | str, ...]

    def holds(self, found: Version | str) -> bool:
        operand = self.operands[0]
        match self.operator:
            case "==" | "in":
                return any(_equal(operand, found) for operand in self.operands)
            case "!=" | "not in":
                return not any(_equal(operand, found) for operand in self.operands)
            case "~":
                return found.starts_with(operand)
            case "!~":
                return not found.starts_with(operand)
            case ">=":
                return found.key >= operand.key
            case "<=":
                return found.key <= operand.key
            case ">":
                return found.key > operand.key
        return found.key < operand.key


def _equal(operand: Version | str, found: Version | str) -> bool:
    if isinstance(operand, Version) and isinstance(found, Version):
        # a build counts only where the constraint asks for one
        return operand.key == found.key and operand.build in ("", found.build)
    return operand == found


@functools.lru_cache(maxsize=4096)
def parse_constraint(text: str, kind: str | None = None) -> tuple[Term, ...]:
    """The terms of a constraint. `kind` of the fact: "version", "count" (whole number), "text", or None to take texts
    that are versions as such. Raises ValueError saying what is wrong."""
    parts = re.split(r",(?![^(]*\))", text)
    if not text.strip():
        raise ValueError("is empty")
    return tuple(_term(part.strip(), kind) for part in parts)


def _term(text: str, kind: str | None) -> Term:
    match = _TERM.fullmatch(text)
    if not match:
        if not _PLAIN.fullmatch(text.removesuffix(".*")):
            raise ValueError(f"{text!r} is malformed")
        operator, operands = "==", [text]
    elif match[1]:
        operator, operands = match[1], [match[2].strip()]
    else:
        operator, operands = " ".join(match[3].split()), [part.strip() for part in match[4].split(",")]
    wildcard = _WILDCARD.fullmatch(operands[0]) if operator in ("==", "!=", "~") and kind != "text" else None
    if wildcard:
        operator, operands = {"!=": "!~"}.get(operator, "~"), [wildcard[1]]
    ranked = operator in (">=", "<=", ">", "<", "~", "!~")
    if kind == "text" and ranked:
        raise ValueError(f"{text!r}: {operator} needs a fact that is a version or a number, this one is a text")
    values = [_operand(part, text, kind, ranked) for part in operands]
    if not all(isinstance(value, Version) for value in values):
        values = operands  # a set that names one text is a set of texts
    return Term(operator, tuple(values))


def _operand(part: str, text: str, kind: str | None, ranked: bool) -> Version | str:
    if not _PLAIN.fullmatch(part):
        raise ValueError(f"{text!r} is malformed: {part!r} is not a value" if part else f"{text!r} lacks a value")
    if kind == "text":
        return part
    version = parse(part)
    if version is not None and kind == "count" and not part.isdigit():
        version = None
    if version is None and (ranked or kind):
        raise ValueError(f"{text!r}: {part!r} is not a {'whole number' if kind == 'count' else 'version'}")
    if version is not None and re.search(r"\.[xX]$", part):
        raise ValueError(f"{text!r}: a wildcard stands alone, not in a list")
    return part if version is None else version


def satisfies(constraint: str, found: object, kind: str | None = None) -> tuple[str, str]:
    """(pass | fail | unknown, reason). What is absent or unreadable is unknown. Raises ValueError if malformed."""
    terms = parse_constraint(constraint, kind)
    text = "" if found is None or isinstance(found, bool) else str(found).strip()
    if not text:
        return UNKNOWN, "not measured"
    version = None if kind == "text" else parse(text)
    unknown = ""
    for term in terms:
        versions = isinstance(term.operands[0], Version)
        if versions and version is None:
            unknown = f"{text!r} is not a version"
        elif not term.holds(version if versions else text):
            return FAIL, f"{text} does not satisfy {constraint}"
    return (UNKNOWN, unknown) if unknown else (PASS, f"{text} satisfies {constraint}")


def implies(child: str, parent: str, kind: str | None = None) -> bool:
    """Does everything that satisfies `child` satisfy `parent`? Raises ValueError for a malformed constraint."""
    narrow, wide = parse_constraint(child, kind), parse_constraint(parent, kind)
    return all(_holds(wide, sample) for sample in _samples(narrow + wide, kind) if _holds(narrow, sample))


def satisfiable(constraint: str, kind: str | None = None) -> bool:
    """Is there a value that satisfies it?"""
    terms = parse_constraint(constraint, kind)
    return any(_holds(terms, sample) for sample in _samples(terms, kind))


def _holds(terms: tuple[Term, ...], sample: Version | str) -> bool:
    return all(type(term.operands[0]) is type(sample) and term.holds(sample) for term in terms)


def _samples(terms: tuple[Term, ...], kind: str | None) -> list[Version | str]:
    """One value of every class that the terms can tell apart: the bounds, between each two, and beyond both ends."""
    operands = [operand for term in terms for operand in term.operands]
    texts = [operand for operand in operands if isinstance(operand, str)]
    bounds = [operand for operand in operands if isinstance(operand, Version)]
    if kind == "count":
        numbers = {bound.numbers[0] for bound in bounds}
        return [Version((number + step,)) for number in numbers for step in (-1, 0, 1) if number + step >= 0]
    samples: list[Version | str] = [*texts, "\0 any other text"] if texts else []
    if bounds:
        builds = {bound.build for bound in bounds} | {"", "\0 any other build"}
        # a prefix ends before every pre-release of the next version
        bounds += [_after_prefix(term.operands[0]) for term in terms if term.operator in ("~", "!~")]
        points = sorted(bounds, key=lambda bound: bound.key)
        points += [_between(low, high) for low, high in itertools.pairwise(points) if low.key != high.key]
        points += [Version((0,), (-1,)), Version((points[-1].numbers[0] + 1_000_000,))]
        samples += [Version(point.numbers, point.pre, build) for point in points for build in builds]
    return samples


def _after_prefix(version: Version) -> Version:
    *head, last = version.numbers
    return Version((*head, last + 1), (PRE_RELEASES["dev"],))


def _between(low: Version, high: Version) -> Version:
    if low.pre:
        return Version(low.numbers, (*low.pre, 0))
    width = max(len(low.numbers), len(high.numbers))
    return Version((*low.numbers, *[0] * (width - len(low.numbers)), 1))
